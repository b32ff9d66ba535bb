//! Reads runs from their reports, for comparisons.

use std::collections::HashSet;

use super::cases::{CheckContent, ReportCase, ReportRun, ReportTurn, read_status};
use super::content::{AttemptContent, FailureContent, ReliabilityContent, UsageContent, counted_attempt};
use crate::report_file::{ReportPart, ReportReadError, read_parts};
use hotseat_trace::VerdictStatus;

/// Reads a report. `shown` is its name for display. Fails if the file is not the report of one run.
pub fn read_report(text: &[u8], shown: &str) -> Result<ReportRun, ReportReadError> {
    let mut run = ReportRun { label: shown.to_string(), is_incomplete: true, ..ReportRun::default() };
    let mut known = HashSet::new();
    read_parts(text, |part| {
        match part {
            ReportPart::Result(result) => {
                let content: ResultContent = result.read()?;
                if let Some(words) = content.find_duplicate(&mut known) {
                    return Err(ReportReadError::more_than_one_run(text, result.0, words));
                }
                run.cases.push(content.into_case());
            }
            ReportPart::Start(start) => {
                run.started_at = start.started_at;
                run.agent = start.agent_id;
                run.connector = start.connector;
            }
            ReportPart::End { is_interrupted } => run.is_incomplete = is_interrupted,
        }
        Ok(())
    })?;
    Ok(run)
}

/// The compared members of a result.
#[derive(serde::Deserialize)]
#[serde(expecting = "an object")]
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
    #[serde(deserialize_with = "read_status")]
    status: VerdictStatus,
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
#[serde(expecting = "an object")]
struct FingerprintsContent {
    asked: Option<String>,
    checked: Option<String>,
    functions: Option<String>,
    judges: Option<String>,
}

impl ResultContent {
    /// Returns what is there twice: the case among those with a `known` suite and id, or one of its attempts.
    fn find_duplicate(&self, known: &mut HashSet<(String, String)>) -> Option<String> {
        let id = &self.id;
        if !known.insert((self.file.clone(), id.clone())) {
            return Some(format!(
                "this is the second result of the case `{id}`, and a report has one of each case"
            ));
        }
        let mut numbers = HashSet::new();
        let repeats = self.run_details.iter().filter_map(|attempt| attempt.run);
        let mut tried = repeats.chain(self.attempts.iter().filter_map(|attempt| attempt.attempt));
        let twice = tried.find(|number| !numbers.insert(*number));
        twice.map(|number| format!("the case `{id}` has two attempts with the number {number}"))
    }

    fn into_case(self) -> ReportCase {
        let case = ReportCase {
            id: self.id,
            name: self.name,
            file: self.file,
            status: self.status,
            input_fingerprint: self.fingerprints.asked,
            check_fingerprint: self.fingerprints.checked,
            function_fingerprint: self.fingerprints.functions,
            judge_fingerprint: self.fingerprints.judges,
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
            assert_eq!((&*case.id, case.status, attempt.passed), ("a", VerdictStatus::Failed, false));
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
        assert_eq!((of(&run.cases[0]), run.cases[0].invalid), (vec![(1, true), (4, false), (5, false)], 2));
        assert_eq!(of(&run.cases[1]), [(1, false)], "the second attempt was made because the first failed");
    }

    #[test]
    fn rejects_other_files() {
        let wrong =
            |text: &str| read_report(text.as_bytes(), "x").map(|_| ()).expect_err("no report").to_string();
        assert!(wrong("<testsuites/>").starts_with("this is not JSON (expected value at line 1 column 1"));
        assert_eq!(wrong(r#"{"id": "a"}"#), "this is not a run report: it has no results");
        assert_eq!(wrong(""), "this is not a run report: it has no results");
        assert_eq!(
            wrong("{\"results\": [\n  {\"name\": \"a\"}]}"),
            "line 2 column 3: this is not the result of a case: missing field `id`"
        );
        for (results, words) in [
            ("[3]", "invalid type: integer `3`, expected an object"),
            (r#"[{"id": "a", "status": "zzz"}]"#, "unknown status `zzz`"),
            (
                r#"[{"id": "a", "status": "passed", "run_details": [{"status": "ok"}]}]"#,
                "unknown status `ok`",
            ),
        ] {
            let message = wrong(&format!(r#"{{"results": {results}}}"#));
            assert_eq!(message, format!("line 1 column 14: this is not the result of a case: {words}"));
        }
        assert_eq!(
            wrong(r#"{"results": 3}"#),
            "this is not a run report: invalid type: integer `3`, expected a sequence"
        );
        for later in
            [r#"{"metadata": {"version": "99.0"}, "results": []}"#, r#"{"type": "start", "version": "99.0"}"#]
        {
            let message = wrong(later);
            assert!(
                message.starts_with("this report has the format 99.0, and this version of Hotseat reads ")
            );
        }
        assert!(read_report(br#"{"metadata": {"version": "1.99"}, "results": []}"#, "x").is_ok());
        assert_eq!(wrong("[]"), "this is not a run report: it is not a JSON object");
    }
}
