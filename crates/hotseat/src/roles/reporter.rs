//! A writer of reports: is told what a run came to, and writes it up.

use serde_json::{Map, Value, json};

use super::{Question, Role, Unanswered};

const PROMPT: &str = include_str!("prompts/reporter.v1.md");

/// What a writer of reports is told.
#[derive(Debug, Clone)]
pub struct ReporterQuestion<'a> {
    /// What the `.json` report of the run holds.
    pub report: Value,
    /// The ending of the file that is wanted: `md`, `html`, `txt`.
    pub format: &'a str,
    /// Whether more than the failures is wanted.
    pub verbose: bool,
}

impl Role {
    /// Asks for a report.
    ///
    /// # Errors
    /// When nothing is written, in words.
    pub async fn report(&self, question: ReporterQuestion<'_>) -> Result<String, String> {
        let ReporterQuestion { report, format, verbose } = question;
        let options = json!({"verbose": verbose, "include_inputs": true, "include_outputs": true});
        let metadata = json!({"test_mode": "reporter", "format": format});
        let asked = Question {
            message: json!({"test_mode": "reporter", "format": format, "options": options, "report": report}),
            options: Map::from_iter([("metadata".to_string(), metadata)]),
            history: Vec::new(),
            turn: 1,
            prompt: PROMPT.into(),
            format: None,
            until: None,
        };
        match self.ask(asked).await {
            Ok(said) if said.text.trim().is_empty() => Err("it wrote nothing".to_string()),
            Ok(said) => Ok(said.text),
            Err(Unanswered::Failed(words)) => Err(words),
            Err(Unanswered::Deadline) => Err("no answer in time".to_string()),
        }
    }
}
