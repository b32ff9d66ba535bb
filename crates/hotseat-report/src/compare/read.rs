//! Reads runs from their reports: `.json`, `.jsonl`, or JSON with any file name.

use std::collections::BTreeMap;
use std::fmt;

use hotseat_trace::{LabelCounts, ResponsibleParty, ResultLabel};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::cases::{
    AttemptFigures, CaseStatus, ReportAttempt, ReportCall, ReportCase, ReportRun, ReportTurn, StoppingRule,
};

/// The file is not a run report, or is truncated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportReadError {
    /// The file is not JSON.
    #[error("this is not JSON: {words}")]
    NotJson {
        /// Description with the position of the error.
        words: String,
    },
    /// The file is JSON but not a run report.
    #[error("this is not a run report: {words}")]
    NoReport {
        /// Description of the error.
        words: String,
    },
}

/// Reads a report. `shown` is its name for display.
///
/// # Errors
/// If the file is not a run report.
pub fn read_report(text: &[u8], shown: &str) -> Result<ReportRun, ReportReadError> {
    let mut run = ReportRun { label: shown.to_string(), is_incomplete: true, ..ReportRun::default() };
    let mut is_report = false;
    for value in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
        let value = match value {
            Ok(value) => value.get(),
            // A killed run leaves a truncated last line.
            Err(error) if error.is_eof() && is_report => break,
            Err(error) => return Err(ReportReadError::NotJson { words: error.to_string() }),
        };
        is_report |= read_value(value, &mut run)?;
    }
    match is_report {
        true => Ok(run),
        false => Err(ReportReadError::NoReport { words: "it has no results".to_string() }),
    }
}

/// Reads one value of the file: a whole report or one line of a report. Returns true if it is either.
fn read_value(text: &str, run: &mut ReportRun) -> Result<bool, ReportReadError> {
    let no_report = |error: serde_json::Error| ReportReadError::NoReport { words: error.to_string() };
    let head: RawReport = serde_json::from_str(text).map_err(no_report)?;
    match head.r#type.as_deref() {
        Some("result") => {
            run.cases.push(serde_json::from_str::<RawResult>(text).map_err(no_report)?.into_case())
        }
        Some("start") => {
            run.started_at = head.started_at;
            run.agent = head.agent_id;
            run.connector = head.connector;
        }
        Some("summary") => run.is_incomplete = head.interrupted,
        Some(_) => {}
        None => {
            let Some(results) = head.results else { return Ok(false) };
            run.cases.extend(results.0);
            run.started_at = head.metadata.and_then(|metadata| metadata.started_at);
            let summary = head.summary.unwrap_or_default();
            run.is_incomplete = summary.interrupted;
            run.agent = summary.agent_id;
            run.connector = summary.connector;
        }
    }
    Ok(true)
}

/// A whole report, or a line with data of the run.
#[derive(serde::Deserialize)]
struct RawReport {
    r#type: Option<String>,
    results: Option<RawResults>,
    summary: Option<RawSummary>,
    metadata: Option<RawMetadata>,
    started_at: Option<String>,
    agent_id: Option<String>,
    connector: Option<String>,
    #[serde(default)]
    interrupted: bool,
}

#[derive(Default, serde::Deserialize)]
struct RawSummary {
    #[serde(default)]
    interrupted: bool,
    agent_id: Option<String>,
    connector: Option<String>,
}

#[derive(serde::Deserialize)]
struct RawMetadata {
    started_at: Option<String>,
}

/// The results of a report. Each is converted to a case as it is read, because conversations are large.
struct RawResults(Vec<ReportCase>);

impl<'de> Deserialize<'de> for RawResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ResultsVisitor;
        impl<'de> Visitor<'de> for ResultsVisitor {
            type Value = RawResults;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of results")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawResults, A::Error> {
                let mut all = Vec::new();
                while let Some(result) = list.next_element::<RawResult>()? {
                    all.push(result.into_case());
                }
                Ok(RawResults(all))
            }
        }
        deserializer.deserialize_seq(ResultsVisitor)
    }
}

/// The compared members of a result.
#[derive(serde::Deserialize)]
struct RawResult {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    fingerprints: RawFingerprints,
    #[serde(default)]
    attempts: Vec<RawAttempt>,
    #[serde(default)]
    run_details: Vec<RawAttempt>,
    reliability: Option<RawReliability>,
    // Written out instead of flattened, because flattening would parse every conversation twice.
    status: String,
    failure: Option<RawFailure>,
    error: Option<String>,
    #[serde(default)]
    turns: Vec<RawTurn>,
    #[serde(default)]
    assertions: Vec<RawAssertion>,
    #[serde(default)]
    final_assertions: Vec<RawAssertion>,
    #[serde(default)]
    spent: RawUsage,
}

/// Result of a declared reliability.
#[derive(serde::Deserialize)]
struct RawReliability {
    rate: f64,
    confidence: f64,
    max_runs: usize,
    decided_after: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
struct RawFingerprints {
    asked: Option<String>,
    checked: Option<String>,
}

/// An attempt.
#[derive(serde::Deserialize)]
struct RawAttempt {
    run: Option<usize>,
    attempt: Option<usize>,
    #[serde(default)]
    invalid: bool,
    status: String,
    failure: Option<RawFailure>,
    error: Option<String>,
    #[serde(default)]
    turns: Vec<RawTurn>,
    #[serde(default)]
    assertions: Vec<RawAssertion>,
    #[serde(default)]
    final_assertions: Vec<RawAssertion>,
    #[serde(default)]
    spent: RawUsage,
}

#[derive(serde::Deserialize)]
struct RawFailure {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    fault: String,
}

#[derive(serde::Deserialize)]
struct RawTurn {
    input: Option<String>,
    output: Option<String>,
    error: Option<String>,
    #[serde(default)]
    tool_calls: Vec<RawToolCall>,
    #[serde(default)]
    assertions: Vec<RawAssertion>,
    #[serde(default)]
    duration_ms: f64,
    /// Present in an entry that replaces a skipped turn.
    skip_reason: Option<String>,
}

#[derive(serde::Deserialize)]
struct RawToolCall {
    name: String,
    #[serde(default)]
    args: Value,
}

/// Usage of an attempt, if reported.
#[derive(Default, serde::Deserialize)]
struct RawUsage {
    total_tokens: Option<f64>,
    cost: Option<f64>,
}

/// A check. The result members follow those of the test file, which may have the same names: the last one
/// counts.
#[derive(serde::Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
struct RawAssertion {
    passed: bool,
    soft: bool,
    /// True if the check was decided.
    decided: bool,
    /// Name: the criterion or the text of the check.
    name: String,
    /// The judge with its model.
    judge: Option<String>,
}

impl From<BTreeMap<String, Value>> for RawAssertion {
    fn from(members: BTreeMap<String, Value>) -> Self {
        let is = |key: &str| members.get(key).and_then(Value::as_bool) == Some(true);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_string);
        let judgement = members.get("judgement");
        let of = |key: &str| text(judgement.and_then(|judgement| judgement.get(key)));
        RawAssertion {
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

impl RawResult {
    fn into_case(self) -> ReportCase {
        let came_to = parse_status(&self.status);
        let own = RawAttempt {
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
            // Use the first valid attempt; the others were made only after its failure.
            (_, mut tried) if !tried.is_empty() => {
                let first = tried.iter().position(|held| !held.is_invalid()).unwrap_or(0);
                vec![tried.swap_remove(first)]
            }
            _ => vec![own],
        };
        let stopping = self.reliability.map(|found| {
            // Drop attempts that were still running when the result was decided; their number depends on the
            // speed of the machine.
            let last = found.decided_after.unwrap_or(usize::MAX);
            held.retain(|held| held.run.is_none_or(|run| run <= last));
            StoppingRule { rate: found.rate, confidence: found.confidence, max_runs: found.max_runs }
        });
        let judges =
            held.iter().flat_map(RawAttempt::checks).filter_map(|check| check.judge.clone()).collect();
        let all = held.len();
        let mut invalid_labels = LabelCounts::default();
        for label in held.iter().filter(|held| held.is_invalid()).filter_map(RawAttempt::label) {
            invalid_labels.add(label);
        }
        held.retain(|held| !held.is_invalid());
        let invalid = all - held.len();
        let mut attempts: Vec<ReportAttempt> =
            held.into_iter().filter_map(RawAttempt::into_attempt).collect();
        drop_unneeded_turns(&mut attempts);
        ReportCase {
            id: self.id,
            name: self.name,
            file: self.file,
            status: came_to,
            input_fingerprint: self.fingerprints.asked,
            check_fingerprint: self.fingerprints.checked,
            judges,
            attempts,
            invalid,
            invalid_labels,
            stopping,
        }
    }
}

/// Keeps only the conversations of the first attempt, the first passed one and the first failed one.
fn drop_unneeded_turns(attempts: &mut [ReportAttempt]) {
    let first = |passed| attempts.iter().position(|attempt| attempt.passed == passed);
    let told = [Some(0), first(true), first(false)];
    for (place, attempt) in attempts.iter_mut().enumerate() {
        if !told.contains(&Some(place)) {
            attempt.turns = Vec::new();
        }
    }
}

fn parse_status(status: &str) -> CaseStatus {
    match status {
        "passed" => CaseStatus::Passed,
        "failed" => CaseStatus::Failed,
        _ => CaseStatus::Skipped,
    }
}

impl RawAttempt {
    /// Returns true if the attempt is invalid.
    fn is_invalid(&self) -> bool {
        let by_other = |failure: &RawFailure| match &*failure.fault {
            "infrastructure" | "simulator" | "judge" => true,
            "test" => failure.kind != "no_input",
            _ => false,
        };
        self.invalid || self.failure.as_ref().is_some_and(by_other)
    }

    /// Returns the label of a failed attempt, if the report names the fault.
    fn label(&self) -> Option<ResultLabel> {
        let fault = Value::from(&*self.failure.as_ref()?.fault);
        serde_json::from_value::<ResponsibleParty>(fault).ok().map(ResultLabel::from)
    }

    /// Returns all checks of the attempt.
    fn checks(&self) -> impl Iterator<Item = &RawAssertion> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.assertions);
        of_turns.chain(&self.assertions).chain(&self.final_assertions)
    }

    /// Returns `None` if the attempt was skipped.
    fn into_attempt(self) -> Option<ReportAttempt> {
        let passed = match parse_status(&self.status) {
            CaseStatus::Passed => true,
            CaseStatus::Failed => false,
            CaseStatus::Skipped => return None,
        };
        let mut soft: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for one in self.checks() {
            if one.soft && one.decided {
                let (decided, holds) = soft.entry(one.name.clone()).or_default();
                *decided += 1;
                *holds += usize::from(one.passed);
            }
        }
        let turns: Vec<RawTurn> = self.turns.into_iter().filter(|turn| turn.skip_reason.is_none()).collect();
        let mut figures = AttemptFigures {
            seconds: turns.iter().map(|turn| turn.duration_ms).sum::<f64>() / 1000.0,
            turns: turns.len(),
            tokens: self.spent.total_tokens,
            cost: self.spent.cost,
            ..AttemptFigures::default()
        };
        for call in turns.iter().flat_map(|turn| &turn.tool_calls) {
            *figures.tools.entry(call.name.clone()).or_default() += 1;
        }
        Some(ReportAttempt {
            number: self.run.or(self.attempt).unwrap_or(1),
            passed,
            error: self.error,
            figures,
            soft,
            turns: turns.into_iter().map(RawTurn::into_turn).collect(),
        })
    }
}

impl RawTurn {
    fn into_turn(self) -> ReportTurn {
        let calls =
            self.tool_calls.into_iter().map(|call| ReportCall { tool: call.name, arguments: call.args });
        ReportTurn { user: self.input, calls: calls.collect(), answer: self.output, error: self.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_json_and_json_lines() {
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
                (run.agent.as_deref(), run.started_at.as_deref(), run.is_incomplete),
                (Some("shop"), Some("then"), false)
            );
            let [case] = &run.cases[..] else { panic!("{run:?}") };
            let [attempt] = &case.attempts[..] else { panic!("{case:?}") };
            assert_eq!((&*case.id, case.status, attempt.passed), ("a", CaseStatus::Failed, false));
            assert_eq!((attempt.figures.seconds, attempt.figures.tools["find"]), (1.5, 1));
            assert_eq!((attempt.soft["kind"], attempt.turns.len()), ((1, 1), 1));
            assert_eq!((attempt.figures.tokens, attempt.figures.cost), (Some(70.0), Some(0.5)));
            assert_eq!(case.judges.iter().collect::<Vec<_>>(), ["stern (m1)"]);
        }
        let killed = &lines[..lines.len() - 12];
        assert!(read_report(killed.as_bytes(), "x").expect("a report").is_incomplete);
    }

    #[test]
    fn counts_invalid_attempts_separately() {
        let text = r#"{"results":[{"id":"a","status":"failed","run_details":[
            {"run":1,"status":"passed"},{"run":2,"status":"failed","invalid":true},
            {"run":3,"status":"failed","failure":{"fault":"judge"}},{"run":4,"status":"skipped"},{"run":5,"status":"failed"}]},
            {"id":"b","status":"passed","attempts":[{"attempt":1,"status":"failed"},{"attempt":2,"status":"passed"}]}]}"#;
        let run = read_report(text.as_bytes(), "x").expect("a report");
        let of =
            |case: &ReportCase| case.attempts.iter().map(|one| (one.number, one.passed)).collect::<Vec<_>>();
        assert_eq!((of(&run.cases[0]), run.cases[0].invalid), (vec![(1, true), (5, false)], 2));
        assert_eq!(of(&run.cases[1]), [(1, false)], "the second attempt was made because the first failed");
    }

    #[test]
    fn rejects_other_files() {
        let wrong =
            |text: &str| read_report(text.as_bytes(), "x").map(|_| ()).expect_err("no report").to_string();
        assert!(wrong("<testsuites/>").starts_with("this is not JSON: expected value at line 1 column 1"));
        assert_eq!(wrong(r#"{"id": "a"}"#), "this is not a run report: it has no results");
        assert_eq!(wrong(""), "this is not a run report: it has no results");
        assert!(wrong(r#"{"results": [{"name": "a"}]}"#).contains("missing field `id`"));
        assert!(wrong("[1]").starts_with("this is not a run report: invalid"));
    }
}
