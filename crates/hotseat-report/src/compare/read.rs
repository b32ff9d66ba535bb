//! Reads runs from their reports: `.json`, `.jsonl`, or JSON with any file name.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::cases::{CaseStatus, CheckContent, ReportCase, ReportRun, ReportTurn};
use super::content::{AttemptContent, FailureContent, ReliabilityContent, UsageContent, counted_attempt};

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

/// Reads a report. `shown` is its name for display. Fails if the file is not a run report.
pub fn read_report(text: &[u8], shown: &str) -> Result<ReportRun, ReportReadError> {
    let mut run = ReportRun { label: shown.to_string(), is_incomplete: true, ..ReportRun::default() };
    let mut is_report = false;
    // Some shells write a byte order mark.
    let text = text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text);
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
    let head: ReportContent = serde_json::from_str(text).map_err(no_report)?;
    match head.r#type.as_deref() {
        Some("result") => {
            run.cases.push(serde_json::from_str::<ResultContent>(text).map_err(no_report)?.into_case())
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
struct ReportContent {
    r#type: Option<String>,
    results: Option<ReportResults>,
    summary: Option<SummaryContent>,
    metadata: Option<MetadataContent>,
    started_at: Option<String>,
    agent_id: Option<String>,
    connector: Option<String>,
    #[serde(default)]
    interrupted: bool,
}

#[derive(Default, serde::Deserialize)]
struct SummaryContent {
    #[serde(default)]
    interrupted: bool,
    agent_id: Option<String>,
    connector: Option<String>,
}

#[derive(serde::Deserialize)]
struct MetadataContent {
    started_at: Option<String>,
}

/// The results of a report. Each is converted to a case as it is read, because conversations are large.
struct ReportResults(Vec<ReportCase>);

impl<'de> Deserialize<'de> for ReportResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ResultsVisitor;
        impl<'de> Visitor<'de> for ResultsVisitor {
            type Value = ReportResults;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of results")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ReportResults, A::Error> {
                let mut all = Vec::new();
                while let Some(result) = list.next_element::<ResultContent>()? {
                    all.push(result.into_case());
                }
                Ok(ReportResults(all))
            }
        }
        deserializer.deserialize_seq(ResultsVisitor)
    }
}

/// The compared members of a result.
#[derive(serde::Deserialize)]
struct ResultContent {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    fingerprints: FingerprintsContent,
    #[serde(default)]
    attempts: Vec<AttemptContent>,
    #[serde(default)]
    run_details: Vec<AttemptContent>,
    reliability: Option<ReliabilityContent>,
    // Those of `AttemptContent`, because flattening would parse every conversation twice.
    status: CaseStatus,
    failure: Option<FailureContent>,
    error: Option<String>,
    #[serde(default)]
    turns: Vec<ReportTurn>,
    #[serde(default)]
    assertions: Vec<CheckContent>,
    #[serde(default)]
    final_assertions: Vec<CheckContent>,
    #[serde(default)]
    spent: UsageContent,
}

#[derive(Default, serde::Deserialize)]
struct FingerprintsContent {
    asked: Option<String>,
    checked: Option<String>,
}

impl ResultContent {
    fn into_case(self) -> ReportCase {
        let case = ReportCase {
            id: self.id,
            name: self.name,
            file: self.file,
            status: self.status,
            input_fingerprint: self.fingerprints.asked,
            check_fingerprint: self.fingerprints.checked,
            ..ReportCase::default()
        };
        let own = AttemptContent {
            status: self.status,
            failure: self.failure,
            error: self.error,
            turns: self.turns,
            assertions: self.assertions,
            final_assertions: self.final_assertions,
            spent: self.spent,
            ..AttemptContent::default()
        };
        let held = match (self.run_details, self.attempts) {
            (runs, _) if !runs.is_empty() => runs,
            (_, tried) if !tried.is_empty() => counted_attempt(tried),
            _ => vec![own],
        };
        case.with_attempts(held, self.reliability)
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
