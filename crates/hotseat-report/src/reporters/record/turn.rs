//! Report records of turns with their tool calls, role answers and checks.

use hotseat_trace::{
    AgentInterrupt, AgentToolCall, CallComparison, ConversationTurn, ErrorInfo, LlmFaultInjected, Millis,
    RoleAnswered, TopicStep, TurnOutcome, optional_members,
};
use serde::Serialize;
use serde_json::Value;

use super::super::console::passed;
use super::format::{documented_message, ms};
use super::spent::SpentRecord;
use hotseat_engine::run::Attempt;
use hotseat_engine::session::{
    AwaitingState, CheckResult, CheckState, CheckpointResult, JudgeOpinion, input_hint,
};

/// Checkpoint.
#[derive(Debug, Serialize)]
pub struct CheckpointRecord<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// Number of the turn in which it was reached; null if it was not reached.
    pub reached_at_turn: Option<usize>,
    pub passed: bool,
    pub required: bool,
    /// Reason why it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// Turn, or the note that replaces it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum TurnListEntry<'a> {
    /// Executed turn.
    Executed(Box<TurnRecord<'a>>),
    /// Turn without input for the agent, which was skipped.
    Skipped { turn: usize, status: &'static str, skip_reason: &'a str },
}

optional_members! {
    /// Executed turn.
    #[derive(Debug, Serialize)]
    pub struct TurnRecord<'a> {
        pub turn: usize,
        pub status: &'static str,
        pub input: Option<&'a str>,
        pub input_source: &'static str,
        /// Last message of the agent.
        pub output: Option<&'a str>,
        pub messages: Vec<&'a str>,
        pub reasoning?: Vec<&'a str>,
        pub tool_calls: Vec<ToolCallRecord<'a>>,
        /// Answers of roles in the turn, or for its input.
        pub roles?: Vec<RoleRecord<'a>>,
        pub interrupts?: Vec<InterruptRecord<'a>>,
        /// Reason why the turn did not complete, in the words of the documentation of case files.
        pub error?: Option<String>,
        /// Outcome of the run as reported by the agent, if it is not success.
        pub run_outcome?: Option<&'a str>,
        /// Error details from the agent, or from the component that aborted the turn.
        pub error_info?: Option<&'a ErrorInfo>,
        /// True if the agent waited for the user after the turn, and the sign of it.
        pub awaiting_input: bool,
        pub awaiting_reason: &'static str,
        /// Hint of the agent about the expected input.
        pub input_hint?: Option<String>,
        /// Finish reason of the last reply, as in its protocol.
        pub finish_reason?: Option<&'a str>,
        /// Topic of the turn, if topics are followed.
        pub topic?: Option<&'a str>,
        /// Reason of the topic, unless the topic just continues.
        pub topic_reason?: Option<TopicReasonRecord<'a>>,
        pub assertions: Vec<AssertionRecord<'a>>,
        pub assertion_errors?: Vec<String>,
        /// Faults that served models of the test injected into calls.
        pub model_faults?: Vec<ModelFaultRecord<'a>>,
        pub notes?: &'a [String],
        pub usage?: &'a [Value],
        /// Usage of the turn, from the reports of the agent or counted by models.
        pub spent?: Option<SpentRecord>,
        /// Start and end in Unix milliseconds, like `timestamp` of a tool call.
        pub start_ts: Millis,
        pub end_ts: Option<Millis>,
        pub duration_ms: f64,
    }

    /// Tool call.
    #[derive(Debug, Serialize)]
    pub struct ToolCallRecord<'a> {
        pub id: &'a str,
        pub name: &'a str,
        pub args: &'a Value,
        pub args_broken?: bool,
        /// Absent if the tool returned no result.
        pub result?: Option<&'a Value>,
        /// True if the turn ended without a result of this call.
        pub unanswered?: bool,
        pub error?: Option<&'a Value>,
        pub subagent?: Option<&'a str>,
        /// MCP server of the test that received the call.
        pub server?: Option<&'a str>,
        /// Sources that saw the call, unless it is only the agent's protocol: `agent`, `model`, `mcp`.
        pub seen_by?: &'static [&'static str],
        /// Faults that the server injected.
        pub faults?: Vec<&'a str>,
        /// True if the answer of the server did not reach the agent.
        pub answer_lost?: bool,
        /// Violations of the input schema.
        pub invalid_arguments?: &'a [String],
        /// Milliseconds from the start of the turn.
        pub started_ms: f64,
        pub duration_ms: f64,
        /// Arrival of the result in Unix milliseconds.
        pub timestamp?: Option<Millis>,
    }

    /// Fault in a call of a served model.
    #[derive(Debug, Serialize)]
    pub struct ModelFaultRecord<'a> {
        pub model: &'a str,
        /// Number of the call within the turn, from 1.
        pub call: u32,
        pub fault: &'a str,
    }

    /// Answer of a role.
    #[derive(Debug, Serialize)]
    pub struct RoleRecord<'a> {
        /// The role: `simulator` or `judge`.
        pub role: &'a str,
        pub agent: &'a str,
        pub answer: &'a str,
        /// Values parsed from the answer.
        pub finding?: Option<&'a Value>,
        /// Reason why the answer is invalid.
        pub error?: Option<&'a str>,
        pub model?: Option<&'a str>,
        pub usage?: Option<&'a Value>,
        /// Vote of a judge and attempt at this vote, from 1.
        pub vote?: Option<u64>,
        pub attempt?: Option<u64>,
        /// `console` output of a script function.
        pub logs?: &'a [String],
        pub duration_ms: f64,
    }

    /// Interrupt.
    #[derive(Debug, Serialize)]
    pub struct InterruptRecord<'a> {
        pub id: &'a str,
        pub reason?: Option<&'a str>,
        pub message?: Option<&'a str>,
        pub tool_call_id?: Option<&'a str>,
        pub server?: Option<&'a str>,
        pub status?: Option<&'a str>,
        pub payload?: Option<&'a Value>,
    }

    /// Check.
    #[derive(Debug, Serialize)]
    pub struct AssertionRecord<'a> {
        /// Assertion as written in the test file, if it has an entry of its own.
        #[serde(flatten)]
        pub written: Option<&'a Value>,
        pub passed: bool,
        /// `passed`, `failed`, or `errored` if it could not be decided.
        pub state: CheckState,
        /// True if the check is informational.
        pub soft?: bool,
        /// Name or text of the criterion.
        pub criterion?: Option<&'a str>,
        /// Reasoning of the judge.
        pub reasoning?: Option<&'a str>,
        /// Judge of the check and its usage.
        pub judgement?: Option<JudgementRecord<'a>>,
        pub expected: &'a str,
        pub actual: &'a str,
        /// Expected and actual tool calls, value by value, if a check of calls failed.
        pub comparison?: Option<&'a CallComparison>,
        /// Reason why the check could not be decided.
        pub error?: Option<&'a str>,
        pub file: &'a str,
        pub line: u32,
        pub column: u32,
        /// `console` output of the script function that decided.
        pub logs?: &'a [String],
        /// Turn of the check, if a topic checks every turn.
        pub turn?: Option<usize>,
    }

    /// Judge of a check and its usage.
    #[derive(Debug, Serialize)]
    pub struct JudgementRecord<'a> {
        pub judge: &'a str,
        pub model?: Option<&'a str>,
        /// Name and version of the prompt.
        pub prompt?: Option<&'a str>,
        pub score?: Option<f64>,
        /// Votes, if there are several.
        pub votes?: Option<VotesRecord>,
        /// Number of requests to the judge.
        pub calls: usize,
        /// Null if the judge does not report it.
        pub input_tokens: Option<u64>,
        pub output_tokens: Option<u64>,
        pub duration_ms: f64,
        /// Parts of the conversation that the judge did not receive.
        pub left_out?: &'a [String],
        /// Suggestions of the judge.
        pub suggestions?: &'a [String],
    }

    /// Votes of a judge.
    #[derive(Debug, Serialize)]
    pub struct VotesRecord {
        pub r#for: usize,
        pub against: usize,
        /// Invalid votes.
        pub errored: usize,
    }

    /// Reason why a turn belongs to its topic.
    #[derive(Debug, Serialize)]
    pub struct TopicReasonRecord<'a> {
        pub from?: Option<&'a str>,
        /// `trigger`, `judge` or `fallback`.
        pub why: &'static str,
        pub trigger?: Option<&'a str>,
        pub confidence?: Option<&'a str>,
        pub reasoning?: Option<&'a str>,
    }
}

impl<'a> TopicReasonRecord<'a> {
    pub fn new(step: &'a TopicStep) -> Self {
        TopicReasonRecord {
            from: step.from.as_deref(),
            why: step.why.name(),
            trigger: step.trigger.as_deref(),
            confidence: step.confidence.as_deref(),
            reasoning: step.reasoning.as_deref(),
        }
    }
}

impl<'a> JudgementRecord<'a> {
    fn new(opinion: &'a JudgeOpinion) -> Self {
        let by = &opinion.by;
        JudgementRecord {
            judge: &by.judge,
            model: by.model.as_deref(),
            prompt: by.prompt.as_deref(),
            score: opinion.score,
            votes: by.votes.map(|[r#for, against, errored]| VotesRecord { r#for, against, errored }),
            calls: by.calls,
            input_tokens: by.input_tokens,
            output_tokens: by.output_tokens,
            duration_ms: ms(by.took),
            left_out: &by.left_out,
            suggestions: &opinion.suggestions,
        }
    }
}

/// Returns the error details of a turn that did not complete.
fn error_info(turn: &ConversationTurn) -> Option<&ErrorInfo> {
    match (&turn.outcome, &turn.run_error) {
        (TurnOutcome::Failed(error), _) | (_, Some(error)) => Some(error),
        (TurnOutcome::Open | TurnOutcome::Completed, None) => None,
    }
}

/// Returns the reason why a turn did not complete, in the words of the documentation of case files. An expected error is
/// not a failure.
pub fn turn_error(turn: &ConversationTurn, attempt: &Attempt) -> Option<String> {
    let failure = attempt.verdict.failure.as_ref().filter(|_| error_info(turn).is_some());
    failure.filter(|_| !passed(turn, attempt)).map(|failure| documented_message(failure, attempt))
}

impl<'a> TurnRecord<'a> {
    pub(super) fn new(turn: &'a ConversationTurn, attempt: &'a Attempt) -> Self {
        let checks = &attempt.checks;
        let assertions: Vec<AssertionRecord> = checks
            .iter()
            .filter(|checked| checked.turn == Some(turn.number) && checked.topic.is_none())
            .map(AssertionRecord::new)
            .collect();
        let is_good = passed(turn, attempt);
        let awaiting = AwaitingState::detect(turn, &attempt.case_ref.case.signs);
        TurnRecord {
            turn: turn.number,
            status: match (&turn.outcome, is_good) {
                (TurnOutcome::Completed | TurnOutcome::Failed(_), true) => "passed",
                (TurnOutcome::Completed | TurnOutcome::Failed(_), false) => "failed",
                (TurnOutcome::Open, _) => "unfinished",
            },
            input: turn.user.as_deref(),
            input_source: match &*turn.caller {
                "simulator" => "simulated",
                "person" => "interactive",
                _ => "static",
            },
            output: turn.answer(),
            messages: turn.messages.iter().map(|message| &*message.content).collect(),
            reasoning: turn.reasoning.iter().map(|thought| &*thought.content).collect(),
            tool_calls: turn.tool_calls.iter().map(|call| ToolCallRecord::new(call, turn)).collect(),
            roles: turn.roles.iter().map(RoleRecord::new).collect(),
            interrupts: turn.interrupts.iter().map(InterruptRecord::new).collect(),
            error: turn_error(turn, attempt),
            run_outcome: turn.run_outcome.as_deref(),
            error_info: error_info(turn),
            awaiting_input: awaiting.is_awaiting(),
            awaiting_reason: awaiting.name(),
            input_hint: input_hint(turn).filter(|_| awaiting.is_awaiting()),
            finish_reason: turn.finish_reason.as_deref(),
            topic: turn.topic.as_deref(),
            topic_reason: turn.topic_step.as_ref().map(TopicReasonRecord::new),
            assertions,
            assertion_errors: failed_check_messages(
                checks.iter().filter(|checked| checked.turn == Some(turn.number)),
            ),
            model_faults: turn.model_faults.iter().map(ModelFaultRecord::new).collect(),
            notes: &turn.notes,
            usage: &turn.reported_usage,
            spent: turn.usage_totals.clone().map(SpentRecord::new),
            start_ts: turn.started_at,
            end_ts: turn.ended_at,
            duration_ms: ms(turn.duration()),
        }
    }
}

impl<'a> CheckpointRecord<'a> {
    pub(super) fn new(reached: &'a CheckpointResult) -> Self {
        CheckpointRecord {
            id: &reached.checkpoint.id,
            description: reached.checkpoint.description.as_deref(),
            reached_at_turn: reached.at,
            passed: reached.at.is_some(),
            required: reached.checkpoint.required,
            message: reached.missing.as_deref(),
        }
    }
}

/// Describes each failed check in one line.
pub(super) fn failed_check_messages<'a>(checks: impl Iterator<Item = &'a CheckResult>) -> Vec<String> {
    let failed = checks.filter(|checked| checked.fails());
    let words = failed.map(|checked| match &checked.check.message {
        Some(own) => own.clone(),
        None => checked.verdict.describe(checked.state() == CheckState::Errored),
    });
    words.collect()
}

impl<'a> ToolCallRecord<'a> {
    pub fn new(call: &'a AgentToolCall, turn: &ConversationTurn) -> Self {
        let (result, seen) = (call.result.as_ref(), call.server_call.as_ref());
        ToolCallRecord {
            id: &call.id,
            name: &call.name,
            args: &call.arguments,
            args_broken: call.arguments_broken,
            unanswered: result.is_none() && turn.outcome != TurnOutcome::Open,
            result: result.filter(|result| !result.failed).map(|result| &result.value),
            error: result.filter(|result| result.failed).map(|result| &result.value),
            subagent: call.subagent.as_deref(),
            server: call.server(),
            seen_by: Some(call.sources()).filter(|sources| **sources != ["agent"]).unwrap_or_default(),
            faults: seen.into_iter().flat_map(|seen| &seen.faults).map(|fault| &*fault.kind).collect(),
            answer_lost: seen.is_some_and(|seen| seen.lost_success.is_some()),
            invalid_arguments: seen.map_or(&[], |seen| &seen.argument_errors),
            started_ms: ms(call.started - turn.started),
            duration_ms: ms(call.ended - call.started),
            timestamp: call.completed_at,
        }
    }
}

impl<'a> ModelFaultRecord<'a> {
    fn new(injected: &'a LlmFaultInjected) -> Self {
        ModelFaultRecord { model: &injected.model, call: injected.call_no, fault: &injected.fault }
    }
}

impl<'a> RoleRecord<'a> {
    pub(super) fn new(said: &'a RoleAnswered) -> Self {
        RoleRecord {
            role: &said.role,
            agent: &said.agent,
            answer: &said.answer,
            finding: said.finding.as_ref(),
            error: said.error.as_deref(),
            model: said.model.as_deref(),
            usage: said.usage.as_ref(),
            vote: said.vote,
            attempt: said.attempt,
            logs: &said.logs,
            duration_ms: said.duration_us as f64 / 1000.0,
        }
    }
}

impl<'a> InterruptRecord<'a> {
    pub(super) fn new(interrupt: &'a AgentInterrupt) -> Self {
        InterruptRecord {
            id: &interrupt.id,
            reason: interrupt.reason.as_deref(),
            message: interrupt.message.as_deref(),
            tool_call_id: interrupt.tool_call_id.as_deref(),
            server: interrupt.server.as_deref(),
            status: interrupt.answer.as_ref().map(|(status, _)| &**status),
            payload: interrupt.answer.as_ref().and_then(|(_, payload)| payload.as_ref()),
        }
    }
}

impl<'a> AssertionRecord<'a> {
    pub(super) fn new(checked: &'a CheckResult) -> Self {
        let place = &checked.check.place;
        AssertionRecord {
            written: checked.check.written.as_deref(),
            soft: !checked.check.is_hard(),
            passed: checked.verdict.passed,
            state: checked.state(),
            criterion: checked.check.criterion.as_deref(),
            reasoning: checked.opinion.as_ref().and_then(|opinion| opinion.reasoning.as_deref()),
            judgement: checked.opinion.as_ref().map(JudgementRecord::new),
            expected: &checked.verdict.expected,
            actual: &checked.verdict.actual,
            comparison: checked.verdict.comparison.as_deref(),
            error: checked.error.as_deref(),
            file: place.file(),
            line: place.line(),
            column: place.column(),
            logs: &checked.said,
            turn: checked.topic.as_ref().and(checked.turn),
        }
    }
}
