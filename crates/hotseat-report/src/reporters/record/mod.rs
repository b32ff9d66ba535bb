//! Records of report files. Their format is stable; the internal types are not.

mod attempts;
mod conversation;
mod fingerprint;
mod format;
mod run;
mod spent;
mod topics;
mod turn;

use std::borrow::Cow;

use hotseat_trace::{AttemptFailure, optional_members};
use serde::Serialize;
use serde_json::Value;

pub use self::attempts::AttemptLine;
pub use self::fingerprint::CaseFingerprints;
pub use self::format::{documented_message, ms, rfc3339};
#[cfg(feature = "store")]
pub use self::run::AgentRecord;
pub use self::run::{EnvironmentRecord, MetadataRecord, StartRecord, SummaryRecord};
pub use self::spent::SpentRecord;
pub use self::turn::ToolCallRecord;
#[cfg(feature = "store")]
pub use self::turn::turn_error;

use self::attempts::{AttemptRecord, StabilityRecord};
use self::conversation::{ConversationRecord, VerdictRecord};
use self::topics::{CompletionRecord, ScenarioRecord};
use hotseat_engine::cases::is_program;
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode, RunSettings};

optional_members! {
    /// Result of a case.
    #[derive(Debug, Serialize)]
    pub struct ResultRecord<'a> {
        /// Index of the case in the run, from 0.
        pub index: usize,
        pub id: &'a str,
        pub name: &'a str,
        pub file: &'a str,
        pub line: u32,
        /// Script of the case, if the case is a test in TypeScript or JavaScript.
        pub script?: Option<ScriptRecord<'a>>,
        /// Tested agent.
        pub agent?: Option<&'a str>,
        pub mode: &'static str,
        #[serde(flatten)]
        pub verdict: VerdictRecord<'a>,
        /// Completion of the case, with the reason if it was not completed.
        pub completion?: Option<CompletionRecord<'a>>,
        /// Identifier that stays the same in other runs, wherever the case is defined.
        pub stable_id: String,
        /// Scenario of the case.
        pub scenario?: Option<ScenarioRecord<'a>>,
        pub tags?: &'a [String],
        pub metadata?: Option<&'a Value>,
        /// Fingerprints for comparisons.
        pub fingerprints?: Option<CaseFingerprints>,
        /// If there is one input: the input of the case, or the sent input.
        pub input?: Option<Cow<'a, Value>>,
        /// True if the case passed only on a retry.
        pub flaky?: bool,
        /// Conversation of the representative attempt.
        #[serde(flatten)]
        pub held: ConversationRecord<'a>,
        /// All attempts, if the case was retried.
        pub attempts?: Vec<AttemptRecord<'a>>,
        /// Stability, if the case was repeated.
        #[serde(flatten)]
        pub stability: Option<StabilityRecord<'a>>,
    }
}

/// Script of a case.
#[derive(Debug, Serialize)]
pub struct ScriptRecord<'a> {
    pub r#type: &'static str,
    /// The file, as it was named on the command line or found.
    pub path: &'a str,
}

impl<'a> ResultRecord<'a> {
    pub fn new(outcome: &'a CaseOutcome, setting: &'a RunSettings) -> Self {
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
        ResultRecord {
            index: selected.index,
            id: &case.id,
            name: &case.name,
            file: case.place.file(),
            line: case.place.line(),
            script: is_program(&selected.suite.path)
                .then(|| ScriptRecord { r#type: "script_test", path: case.place.file() }),
            agent: agent.map(|agent| &*agent.id),
            mode: mode.name(),
            verdict: VerdictRecord::new(verdict, |failure| failure_line(failure, told)),
            completion: CompletionRecord::from_verdict(verdict, &told.conversation),
            stable_id: case.stable_id(),
            scenario: ScenarioRecord::from_case(case),
            tags: &case.tags,
            metadata: case.metadata.as_ref(),
            fingerprints: CaseFingerprints::for_case(case),
            flaky: outcome.is_flaky(),
            held: ConversationRecord::new(told, input.is_some()),
            attempts: match (&outcome.stability, outcome.attempts.as_slice()) {
                (None, attempts @ [_, _, ..]) => {
                    attempts.iter().map(|attempt| AttemptRecord::from_retry(attempt)).collect()
                }
                _ => Vec::new(),
            },
            stability: outcome.stability.as_ref().map(|of| StabilityRecord::new(of, &outcome.attempts)),
            input,
        }
    }
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
