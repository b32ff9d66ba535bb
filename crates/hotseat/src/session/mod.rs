//! Runs one conversation: sends turns, records events and evaluates checks.

mod awaiting;
mod body;
mod checkpoints;
mod clock;
mod content;
mod depth_limit;
mod direct_turns;
mod evaluate;
mod external_answer;
mod hook;
mod human;
mod identity;
mod live_session;
mod next_input;
mod recorded_conversation;
mod recorder;
mod redact;
mod resolve_references;
mod run_conversation;
mod script_check;
mod scripted_answers;
mod simulation;
mod simulator_rules;
mod spending;
mod tool_output;
mod topics;
mod traffic;
mod turn;
mod written_turns;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{CheckVerdict, ConversationTurn, EventRecord, TracedConversation, Verdict};
use serde::{Deserialize, Serialize};

pub use awaiting::{AwaitingMarkers, AwaitingState, input_hint};
pub use body::CaseBody;
pub use checkpoints::{CheckpointProgress, missing_required};
pub use clock::{SessionClock, wall_millis};
pub use content::{
    ContentPart, ConversationMessage, MediaAttachment, MediaKind, MediaSource, MessageCall, MessageRole,
    joined_text, media_parts, merge_json,
};
pub use direct_turns::{DirectTurn, DirectTurns};
pub use external_answer::ExternalAnswer;
pub use hook::{run_command, run_hook};
pub use human::{HumanPrompt, HumanPrompter, HumanReply};
pub use identity::RequestIdentity;
pub use live_session::{CheckSubject, EndedCaseError, Session};
pub use next_input::{InputSources, NextInput, OnMissingInput, PromptPolicy};
pub use recorded_conversation::{RERUN_HINT, RecordedConversation, RecordedOutcome, rerun_required};
pub use recorder::TraceRecorder;
pub use redact::SecretRedactor;
pub use run_conversation::{reevaluate, run_conversation};
pub use script_check::response_json;
pub(crate) use scripted_answers::response_schema_errors;
pub use scripted_answers::{
    ClientTool, InterruptAnswer, InterruptReply, InterruptRequest, ScriptedAnswers, ToolAnswer, ToolReply,
};
pub use simulation::{SimulationOptions, SimulationOutcome};
pub use spending::{ModelPrices, reported_tokens};
pub(crate) use tool_output::{is_content_parts, parse_content_output, parse_json};
pub use traffic::{RunTraffic, TrafficBounds, TrafficLimits, TrafficMeter};
pub use turn::ATTACHMENT_NOTE_PREFIX;
pub use written_turns::{MISSING_INPUT_HINT, NO_NEXT_TURN};

use crate::checks::{Check, JudgeSelector, JudgeSettings, RoleReference};
use crate::roles;
use crate::scripts::{BoundFunction, ScriptCapabilities};
use crate::targets::BoxFuture;
use hotseat_document::SourceSpan;

/// Default time limits, used if neither the case nor the turn sets one.
#[derive(Debug, Clone, Copy)]
pub struct SessionTimeouts {
    /// Limit of one turn.
    pub turn: Duration,
    /// Limit of the time without received data.
    pub idle: Duration,
    /// Limit of all turns of a case together, if the run sets one.
    pub case: Option<Duration>,
}

/// An evaluated check and its result.
#[derive(Debug, Clone)]
pub struct EvaluatedCheck {
    /// The check.
    pub check: Check,
    /// The evaluated turn, from 1; `None` for the whole conversation.
    pub turn: Option<usize>,
    /// True if the check is listed under `final_assertions`.
    pub is_final: bool,
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The reason why the check errored. An errored check does not pass, and the agent is not at fault.
    pub error: Option<String>,
    /// Lines that the check function wrote to `console`.
    pub console_lines: Vec<String>,
    /// The topic visit that the check belongs to, for checks of topics.
    pub topic: Option<TopicVisitRef>,
    /// The opinion of the judge, for checks that ask one.
    pub opinion: Option<JudgeOpinion>,
}

/// A visit of a topic.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TopicVisitRef {
    /// The topic.
    pub topic: Arc<str>,
    /// Number of the visit among the visits of this topic, from 1.
    pub visit: usize,
}

/// Answer of a judge to one check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgeOpinion {
    /// The judge's reasoning; `None` if it gave no judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The judge's score, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Improvements that the judge suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// The judge and its usage.
    pub by: roles::JudgeUsage,
}

impl EvaluatedCheck {
    /// Returns the result of a check that could not be evaluated.
    fn errored(check: Check, words: &str) -> EvaluatedCheck {
        let (expected, actual) = (check.describe(), words.to_string());
        let verdict = CheckVerdict { passed: false, expected, actual };
        EvaluatedCheck {
            check,
            turn: None,
            is_final: false,
            verdict,
            error: Some(words.to_string()),
            console_lines: Vec::new(),
            topic: None,
            opinion: None,
        }
    }

    /// Returns true if this check makes the case fail: it is hard and did not pass.
    pub fn is_hard_failure(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }
}

/// Result of a conversation, complete or not.
#[derive(Debug)]
pub struct ConversationResult {
    /// The verdict of the case.
    pub verdict: Verdict,
    /// All evaluated checks, in order.
    pub checks: Vec<EvaluatedCheck>,
    /// Progress of the checkpoints.
    pub checkpoints: Vec<CheckpointProgress>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// Log lines of the test itself.
    pub logs: Vec<String>,
    /// The recorded conversation.
    pub conversation: TracedConversation,
    /// The trace, if it was requested.
    pub events: Vec<EventRecord>,
    /// Time from the first input to the end of the last turn.
    pub duration: Duration,
    /// True if the times are unknown because the conversation was replayed from a recording without times.
    pub is_untimed: bool,
}

/// Roles, script functions and other resources that a session uses besides the agent.
#[derive(Default)]
pub struct SessionRoles {
    /// The simulated users, by the reference that the case uses.
    pub simulators: Vec<(Option<RoleReference>, roles::RoleClient)>,
    /// The judges of the checks, by reference; or the reason why a judge cannot be used.
    pub judges: Vec<(JudgeSelector, Result<roles::RoleClient, String>)>,
    /// Default judge settings, for checks without their own.
    pub judging: JudgeSettings,
    /// The script functions that checks call, by reference.
    pub functions: Vec<(String, BoundFunction)>,
    /// The human who can be prompted, if one is present.
    pub human: Option<Arc<dyn HumanPrompter>>,
    /// Permissions of the program that drives the conversation.
    pub permissions: Option<ScriptCapabilities>,
    /// Turns that the program runs by calling an agent directly.
    pub direct_turns: DirectTurns,
    /// Resolves judges and simulators that the program names at run time.
    pub role_lookup: Option<Arc<dyn RoleLookup>>,
    /// Check functions that the program itself defines.
    pub program_checks: Option<Arc<dyn ProgramChecks>>,
    /// Recorded judge answers, when a saved run is re-evaluated.
    pub answers: Option<Arc<roles::RecordedAnswers>>,
}

/// Resolves judges and simulators that a test names at run time.
pub trait RoleLookup: Send + Sync {
    /// Resolves a reference to a judge; `place` is its position in the source.
    ///
    /// # Errors
    /// If there is no such judge; the text says why.
    fn judge(&self, whom: &JudgeSelector, place: &SourceSpan) -> Result<roles::RoleClient, String>;

    /// Resolves a reference to a simulated user; `place` is its position in the source.
    ///
    /// # Errors
    /// If there is no such simulated user; the text says why.
    fn simulator(
        &self,
        reference: Option<&RoleReference>,
        place: &SourceSpan,
    ) -> Result<roles::RoleClient, String>;
}

/// Check functions of the program that drives the conversation.
pub trait ProgramChecks: Send + Sync {
    /// Evaluates a function on the last of the `evaluated` turns. Returns `None` if the program has no such
    /// function.
    fn evaluate<'a>(
        &'a self,
        function: &'a str,
        turns: &'a [ConversationTurn],
        evaluated: &'a [ConversationTurn],
    ) -> Option<BoxFuture<'a, Result<bool, String>>>;
}

impl SessionRoles {
    fn function(&self, reference: &str) -> Option<&BoundFunction> {
        self.functions.iter().find(|(known, _)| known == reference).map(|(_, function)| function)
    }

    /// Returns the simulated user with this reference.
    fn simulator(&self, reference: Option<&RoleReference>) -> Option<&roles::RoleClient> {
        self.simulators.iter().find(|(known, _)| known.as_ref() == reference).map(|(_, role)| role)
    }

    /// Returns the judge for these settings.
    ///
    /// # Errors
    /// If there is no such judge; the text says why.
    pub fn judge(&self, judging: &JudgeSettings) -> Result<roles::JudgeRole, String> {
        let whom = judging.selector();
        match self.judges.iter().find(|(known, _)| *known == whom) {
            Some((_, Ok(role))) => {
                let judge = roles::JudgeRole::new(role.clone(), &judging.or_inherit(&self.judging));
                Ok(judge.with_recorded_answers(self.answers.clone()))
            }
            Some((_, Err(words))) => Err(words.clone()),
            None => Err("no judge is configured".to_string()),
        }
    }
}
