//! Records of report files. Their format is stable; the internal types are not.

mod attempts;
mod conversation;
mod declare;
mod fingerprint;
mod format;
mod run;
mod spent;
mod topics;
mod turn;

use std::borrow::Cow;

use hotseat_trace::{AttemptFailure, VerdictStatus};
use serde::Serialize;
use serde_json::Value;

pub use self::attempts::AttemptLine;
pub(crate) use self::declare::records;
pub use self::fingerprint::CaseFingerprints;
pub use self::format::{VERSION, documented_message, ms, rfc3339};
#[cfg(feature = "store")]
pub use self::run::AgentRecord;
pub use self::run::{EnvironmentRecord, MetadataRecord, StartRecord, SummaryRecord};
pub use self::spent::SpentRecord;
pub use self::turn::ToolCallRecord;
#[cfg(feature = "store")]
pub use self::turn::turn_error;

use self::attempts::{AttemptNumber, AttemptRecord, StabilityRecord};
use self::conversation::{ConversationRecord, VerdictRecord};
use self::topics::{CompletionRecord, ScenarioRecord};
use hotseat_engine::cases::is_program;
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode, RunSettings};

records! {
    /// Result of a case.
    pub struct ResultRecord<'a>(outcome: &'a CaseOutcome, setting: &'a RunSettings) {
        let CaseOutcome { case_ref: selected, verdict, .. } = outcome;
        let (case, told) = (&selected.case, outcome.representative());
        let mode = told.mode();
        let agent = setting.agent_of_case(selected);
        let said = told.conversation.turns.first().and_then(|turn| turn.user.clone());
        let input = match (&case.input, mode) {
            (Some(written), _) => Some(Cow::Borrowed(written)),
            (None, ConversationMode::Standard) => said.map(|said| Cow::Owned(Value::String(said))),
            (None, ConversationMode::MultiTurn | ConversationMode::Dynamic) => None,
        };
        let is_one = input.is_some();
    } => {
        /// Index of the case in the run, from 0.
        index: usize = selected.index,
        id: &'a str = &case.id,
        name: &'a str = &case.name,
        file: &'a str = case.place.file(),
        line: u32 = case.place.line(),
        /// Script of the case, if the case is a test in TypeScript or JavaScript.
        script?: Option<ScriptRecord<'a>> = is_program(&selected.suite.path)
            .then(|| ScriptRecord { r#type: "script_test", path: case.place.file() }),
        /// Tested agent.
        agent?: Option<&'a str> = agent.map(|agent| &*agent.id),
        mode: &'static str = mode.name(),
        #[serde(flatten)]
        verdict: VerdictRecord<'a> = VerdictRecord::new(verdict, |failure| failure_line(failure, told)),
        /// Completion of the case, with the reason if it was not completed. Absent for a skipped case.
        completion?: Option<CompletionRecord<'a>> = (verdict.status != VerdictStatus::Skipped)
            .then(|| CompletionRecord::new(verdict, &told.conversation)),
        /// Identifier that stays the same in other runs, wherever the case is defined.
        stable_id: String = case.stable_id(),
        /// Scenario of the case.
        scenario?: Option<ScenarioRecord<'a>> = case.scenario.as_deref().map(ScenarioRecord::new),
        tags?: &'a [String] = &case.tags,
        metadata?: Option<&'a Value> = case.metadata.as_ref(),
        /// Fingerprints for comparisons.
        fingerprints?: Option<CaseFingerprints> = CaseFingerprints::for_case(outcome),
        /// If there is one input: the input of the case, or the sent input.
        input?: Option<Cow<'a, Value>> = input,
        /// True if the case passed only on a retry.
        flaky?: bool = outcome.is_flaky(),
        /// Conversation of the representative attempt.
        #[serde(flatten)]
        held: ConversationRecord<'a> = ConversationRecord::new(told, is_one),
        /// All attempts, if the case was retried.
        attempts?: Vec<AttemptRecord<'a>> = match (&outcome.stability, outcome.attempts.as_slice()) {
            (None, attempts @ [_, _, ..]) => {
                attempts.iter().map(|attempt| AttemptRecord::new(attempt, AttemptNumber::Attempt(attempt.number))).collect()
            }
            _ => Vec::new(),
        },
        /// Stability, if the case was repeated.
        #[serde(flatten)]
        stability: Option<StabilityRecord<'a>> =
            outcome.stability.as_ref().map(|of| StabilityRecord::new(of, &outcome.attempts)),
    }
}

/// Script of a case.
#[derive(Debug, Serialize)]
pub struct ScriptRecord<'a> {
    pub r#type: &'static str,
    /// The file, as it was named on the command line or found.
    pub path: &'a str,
}

/// Formats the reason of a failure. The message of a repeated case starts with its number of passed runs.
fn failure_line(failure: &AttemptFailure, told: &Attempt) -> String {
    match &told.verdict.failure {
        Some(own) => match failure.message.strip_suffix(&own.message) {
            Some(before) => format!("{before}{}", documented_message(own, told)),
            None => failure.message.clone(),
        },
        None => failure.message.clone(),
    }
}
