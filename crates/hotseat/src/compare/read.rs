//! Runs from their reports: `.json`, `.jsonl`, and JSON whatever the file is called.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::cases::{Attempt, Call, CameTo, Case, Figures, Run, StoppingRule, Turn};

/// A file that is no report, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReadable {
    /// It is not JSON.
    #[error("this is not JSON: {words}")]
    NotJson {
        /// What is wrong, and where.
        words: String,
    },
    /// It is JSON, and no report of a run.
    #[error("this is no report of a run: {words}")]
    NoReport {
        /// What is wrong.
        words: String,
    },
}

/// Reads a report. `shown` is what it is called for people.
///
/// # Errors
/// When it is no report.
pub fn read_report(text: &[u8], shown: &str) -> Result<Run, NotReadable> {
    let mut run = Run { shown: shown.to_string(), cut_short: true, ..Run::default() };
    let mut is_report = false;
    for value in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
        let value = match value {
            Ok(value) => value.get(),
            // The last line of a run that was killed.
            Err(error) if error.is_eof() && is_report => break,
            Err(error) => return Err(NotReadable::NotJson { words: error.to_string() }),
        };
        is_report |= piece(value, &mut run)?;
    }
    match is_report {
        true => Ok(run),
        false => Err(NotReadable::NoReport { words: "it has no results".to_string() }),
    }
}

/// Takes what a value of the file says: a whole report, or a line of one. Says whether it is either.
fn piece(text: &str, run: &mut Run) -> Result<bool, NotReadable> {
    let no_report = |error: serde_json::Error| NotReadable::NoReport { words: error.to_string() };
    let head: Head = serde_json::from_str(text).map_err(no_report)?;
    match head.r#type.as_deref() {
        Some("result") => run.cases.push(serde_json::from_str::<ResultPart>(text).map_err(no_report)?.case()),
        Some("start") => {
            run.started_at = head.started_at;
            run.agent = head.agent_id;
            run.connector = head.connector;
        }
        Some("summary") => run.cut_short = head.interrupted,
        Some(_) => {}
        None => {
            let Some(results) = head.results else { return Ok(false) };
            run.cases.extend(results.0);
            run.started_at = head.metadata.and_then(|metadata| metadata.started_at);
            let summary = head.summary.unwrap_or_default();
            run.cut_short = summary.interrupted;
            run.agent = summary.agent_id;
            run.connector = summary.connector;
        }
    }
    Ok(true)
}

/// A whole report, or what a line says of the run.
#[derive(serde::Deserialize)]
struct Head {
    r#type: Option<String>,
    results: Option<Results>,
    summary: Option<Summary>,
    metadata: Option<Metadata>,
    started_at: Option<String>,
    agent_id: Option<String>,
    connector: Option<String>,
    #[serde(default)]
    interrupted: bool,
}

#[derive(Default, serde::Deserialize)]
struct Summary {
    #[serde(default)]
    interrupted: bool,
    agent_id: Option<String>,
    connector: Option<String>,
}

#[derive(serde::Deserialize)]
struct Metadata {
    started_at: Option<String>,
}

/// The results of a report, each made a case as it is read: conversations take room.
struct Results(Vec<Case>);

impl<'de> Deserialize<'de> for Results {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Results;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of results")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Results, A::Error> {
                let mut all = Vec::new();
                while let Some(result) = list.next_element::<ResultPart>()? {
                    all.push(result.case());
                }
                Ok(Results(all))
            }
        }
        deserializer.deserialize_seq(Each)
    }
}

/// A result, as far as it is compared.
#[derive(serde::Deserialize)]
struct ResultPart {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    fingerprints: Fingerprints,
    #[serde(default)]
    attempts: Vec<Held>,
    #[serde(default)]
    run_details: Vec<Held>,
    reliability: Option<ReliabilityPart>,
    // Flattening would read every conversation twice.
    status: String,
    failure: Option<Failure>,
    error: Option<String>,
    #[serde(default)]
    turns: Vec<TurnPart>,
    #[serde(default)]
    assertions: Vec<Assertion>,
    #[serde(default)]
    final_assertions: Vec<Assertion>,
    #[serde(default)]
    spent: SpentPart,
}

/// What became of a declared reliability.
#[derive(serde::Deserialize)]
struct ReliabilityPart {
    rate: f64,
    confidence: f64,
    max_runs: usize,
    decided_after: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
struct Fingerprints {
    asked: Option<String>,
    checked: Option<String>,
}

/// An attempt.
#[derive(serde::Deserialize)]
struct Held {
    run: Option<usize>,
    attempt: Option<usize>,
    #[serde(default)]
    invalid: bool,
    status: String,
    failure: Option<Failure>,
    error: Option<String>,
    #[serde(default)]
    turns: Vec<TurnPart>,
    #[serde(default)]
    assertions: Vec<Assertion>,
    #[serde(default)]
    final_assertions: Vec<Assertion>,
    #[serde(default)]
    spent: SpentPart,
}

#[derive(serde::Deserialize)]
struct Failure {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    fault: String,
}

#[derive(serde::Deserialize)]
struct TurnPart {
    input: Option<String>,
    output: Option<String>,
    error: Option<String>,
    #[serde(default)]
    tool_calls: Vec<CallPart>,
    #[serde(default)]
    assertions: Vec<Assertion>,
    #[serde(default)]
    duration_ms: f64,
    /// What says in place of a turn why there is none.
    skip_reason: Option<String>,
}

#[derive(serde::Deserialize)]
struct CallPart {
    name: String,
    #[serde(default)]
    args: Value,
}

/// What an attempt took, where somebody says so.
#[derive(Default, serde::Deserialize)]
struct SpentPart {
    total_tokens: Option<f64>,
    cost: Option<f64>,
}

/// A check. Its members stand behind those that somebody wrote, which may have the same names: the last one counts.
#[derive(serde::Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
struct Assertion {
    passed: bool,
    soft: bool,
    /// Whether it was decided.
    decided: bool,
    /// What it is called: its criterion, or its words.
    name: String,
    /// Who judged it, with the model.
    judge: Option<String>,
}

impl From<BTreeMap<String, Value>> for Assertion {
    fn from(members: BTreeMap<String, Value>) -> Self {
        let is = |key: &str| members.get(key).and_then(Value::as_bool) == Some(true);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_string);
        let judgement = members.get("judgement");
        let of = |key: &str| text(judgement.and_then(|judgement| judgement.get(key)));
        Assertion {
            passed: is("passed"),
            soft: is("soft"),
            decided: text(members.get("error")).is_none(),
            name: text(members.get("criterion"))
                .or_else(|| text(members.get("expected")))
                .unwrap_or_default(),
            judge: of("judge").map(|judge| match of("model") {
                Some(model) => format!("{judge} ({model})"),
                None => judge,
            }),
        }
    }
}

impl ResultPart {
    fn case(self) -> Case {
        let came_to = came_to(&self.status);
        let own = Held {
            run: None,
            attempt: None,
            invalid: false,
            status: self.status,
            failure: self.failure,
            error: self.error,
            turns: self.turns,
            assertions: self.assertions,
            final_assertions: self.final_assertions,
            spent: self.spent,
        };
        let mut held = match (self.run_details, self.attempts) {
            (runs, _) if !runs.is_empty() => runs,
            // The first attempt that says something about the agent counts: the others were made because it failed.
            (_, mut tried) if !tried.is_empty() => {
                let first = tried.iter().position(|held| !held.is_invalid()).unwrap_or(0);
                vec![tried.swap_remove(first)]
            }
            _ => vec![own],
        };
        let stopping = self.reliability.map(|found| {
            // Attempts that were running when the result was known were made or not as machines were fast.
            let last = found.decided_after.unwrap_or(usize::MAX);
            held.retain(|held| held.run.is_none_or(|run| run <= last));
            StoppingRule { rate: found.rate, confidence: found.confidence, max_runs: found.max_runs }
        });
        let judges = held.iter().flat_map(Held::checks).filter_map(|check| check.judge.clone()).collect();
        let all = held.len();
        held.retain(|held| !held.is_invalid());
        let invalid = all - held.len();
        let mut attempts: Vec<Attempt> = held.into_iter().filter_map(Held::attempt).collect();
        keep_what_tells(&mut attempts);
        Case {
            id: self.id,
            name: self.name,
            file: self.file,
            came_to,
            asked: self.fingerprints.asked,
            checked: self.fingerprints.checked,
            judges,
            attempts,
            invalid,
            stopping,
        }
    }
}

/// Conversations are kept of the first attempt, the first that passed and the first that failed.
fn keep_what_tells(attempts: &mut [Attempt]) {
    let first = |passed| attempts.iter().position(|attempt| attempt.passed == passed);
    let told = [Some(0), first(true), first(false)];
    for (place, attempt) in attempts.iter_mut().enumerate() {
        if !told.contains(&Some(place)) {
            attempt.turns = Vec::new();
        }
    }
}

fn came_to(status: &str) -> CameTo {
    match status {
        "passed" => CameTo::Passed,
        "failed" => CameTo::Failed,
        _ => CameTo::Skipped,
    }
}

impl Held {
    /// Whether it says nothing about the agent.
    fn is_invalid(&self) -> bool {
        let by_other = |failure: &Failure| match &*failure.fault {
            "infrastructure" | "simulator" | "judge" => true,
            "test" => failure.kind != "no_input",
            _ => false,
        };
        self.invalid || self.failure.as_ref().is_some_and(by_other)
    }

    /// Every check that was decided or should have been.
    fn checks(&self) -> impl Iterator<Item = &Assertion> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.assertions);
        of_turns.chain(&self.assertions).chain(&self.final_assertions)
    }

    /// None where nothing was held.
    fn attempt(self) -> Option<Attempt> {
        let passed = match came_to(&self.status) {
            CameTo::Passed => true,
            CameTo::Failed => false,
            CameTo::Skipped => return None,
        };
        let mut soft: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for one in self.checks() {
            if one.soft && one.decided {
                let (decided, holds) = soft.entry(one.name.clone()).or_default();
                *decided += 1;
                *holds += usize::from(one.passed);
            }
        }
        let turns: Vec<TurnPart> = self.turns.into_iter().filter(|turn| turn.skip_reason.is_none()).collect();
        let mut figures = Figures {
            seconds: turns.iter().map(|turn| turn.duration_ms).sum::<f64>() / 1000.0,
            turns: turns.len(),
            tokens: self.spent.total_tokens,
            cost: self.spent.cost,
            ..Figures::default()
        };
        for call in turns.iter().flat_map(|turn| &turn.tool_calls) {
            *figures.tools.entry(call.name.clone()).or_default() += 1;
        }
        Some(Attempt {
            number: self.run.or(self.attempt).unwrap_or(1),
            passed,
            error: self.error,
            figures,
            soft,
            turns: turns.into_iter().map(TurnPart::turn).collect(),
        })
    }
}

impl TurnPart {
    fn turn(self) -> Turn {
        let calls = self.tool_calls.into_iter().map(|call| Call { tool: call.name, arguments: call.args });
        Turn { user: self.input, calls: calls.collect(), answer: self.output, error: self.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_however_it_is_written() {
        let result = r#"{"id":"a","status":"failed","failure":{"kind":"assertion","fault":"agent"},"error":"no",
            "turns":[{"turn":1,"input":"hi","output":"x","tool_calls":[{"name":"find","args":{"n":1}}],"duration_ms":1500.0,
            "assertions":[{"criterion":"is it kind?","passed":true,"soft":true,"criterion":"kind","expected":"is kind",
            "judgement":{"judge":"stern","model":"m1"}}]}],"assertions":[],"spent":{"total_tokens":70,"cost":0.5}}"#;
        let whole = format!(
            r#"{{"summary":{{"interrupted":false,"agent_id":"shop"}},"metadata":{{"started_at":"then"}},"results":[{result}]}}"#
        );
        let line = result.replace('\n', " ").replacen('{', r#"{"type":"result","#, 1);
        let lines = format!(
            "{}\n{line}\n{}\n",
            r#"{"type":"start","started_at":"then","agent_id":"shop"}"#,
            r#"{"type":"summary","interrupted":false}"#
        );
        for text in [&whole, &lines] {
            let run = read_report(text.as_bytes(), "x").expect("a report");
            assert_eq!(
                (run.agent.as_deref(), run.started_at.as_deref(), run.cut_short),
                (Some("shop"), Some("then"), false)
            );
            let [case] = &run.cases[..] else { panic!("{run:?}") };
            let [attempt] = &case.attempts[..] else { panic!("{case:?}") };
            assert_eq!((&*case.id, case.came_to, attempt.passed), ("a", CameTo::Failed, false));
            assert_eq!((attempt.figures.seconds, attempt.figures.tools["find"]), (1.5, 1));
            assert_eq!((attempt.soft["kind"], attempt.turns.len()), ((1, 1), 1));
            assert_eq!((attempt.figures.tokens, attempt.figures.cost), (Some(70.0), Some(0.5)));
            assert_eq!(case.judges.iter().collect::<Vec<_>>(), ["stern (m1)"]);
        }
        let killed = &lines[..lines.len() - 12];
        assert!(read_report(killed.as_bytes(), "x").expect("a report").cut_short);
    }

    #[test]
    fn attempts_that_say_nothing_are_counted_apart() {
        let text = r#"{"results":[{"id":"a","status":"failed","run_details":[
            {"run":1,"status":"passed"},{"run":2,"status":"failed","invalid":true},
            {"run":3,"status":"failed","failure":{"fault":"judge"}},{"run":4,"status":"skipped"},{"run":5,"status":"failed"}]},
            {"id":"b","status":"passed","attempts":[{"attempt":1,"status":"failed"},{"attempt":2,"status":"passed"}]}]}"#;
        let run = read_report(text.as_bytes(), "x").expect("a report");
        let of = |case: &Case| case.attempts.iter().map(|one| (one.number, one.passed)).collect::<Vec<_>>();
        assert_eq!((of(&run.cases[0]), run.cases[0].invalid), (vec![(1, true), (5, false)], 2));
        assert_eq!(of(&run.cases[1]), [(1, false)], "the second attempt was made because the first failed");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let wrong =
            |text: &str| read_report(text.as_bytes(), "x").map(|_| ()).expect_err("no report").to_string();
        assert!(wrong("<testsuites/>").starts_with("this is not JSON: expected value at line 1 column 1"));
        assert_eq!(wrong(r#"{"id": "a"}"#), "this is no report of a run: it has no results");
        assert_eq!(wrong(""), "this is no report of a run: it has no results");
        assert!(wrong(r#"{"results": [{"name": "a"}]}"#).contains("missing field `id`"));
        assert!(wrong("[1]").starts_with("this is no report of a run: invalid"));
    }
}
