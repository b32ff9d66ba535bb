//! Report writers, which write a report of a run.

use serde_json::{Map, Value, json};

use super::{RoleClient, RoleError, RoleQuestion};

const PROMPT: &str = include_str!("prompts/reporter.v1.md");

/// Input of a report writer.
#[derive(Debug, Clone)]
pub struct ReporterQuestion<'a> {
    /// Content of the `.json` report of the run.
    pub report: Value,
    /// Extension of the report file: `md`, `html`, `txt`.
    pub format: &'a str,
    /// True if passed cases are included.
    pub verbose: bool,
}

impl RoleClient {
    /// Asks for a report. Fails if there is no report.
    pub async fn write_report(&self, question: ReporterQuestion<'_>) -> Result<String, RoleError> {
        let ReporterQuestion { report, format, verbose } = question;
        let options = json!({"verbose": verbose, "include_inputs": true, "include_outputs": true});
        let metadata = json!({"test_mode": "reporter", "format": format});
        let asked = RoleQuestion {
            message: json!({"test_mode": "reporter", "format": format, "options": options, "report": report}),
            options: Map::from_iter([("metadata".to_string(), metadata)]),
            turn: 1,
            prompt: PROMPT.into(),
            ..RoleQuestion::default()
        };
        let reply = self.ask(asked).await?;
        // A report that was cut off may lack the failures.
        match reply.ensure_complete()?.trim() {
            "" => Err(RoleError::InvalidAnswer("it returned an empty report".to_string())),
            _ => Ok(reply.text),
        }
    }
}
