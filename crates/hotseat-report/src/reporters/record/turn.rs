//! Report records of turns with their tool calls, role answers and checks.

use hotseat_document::SourceSpan;
use hotseat_trace::{
    AgentInterrupt, AgentToolCall, CallComparison, ConversationTurn, ErrorInfo, LlmFaultInjected, Millis,
    RoleAnswered, TopicStep, TurnOutcome,
};
use serde::Serialize;
use serde_json::Value;

use super::super::console::passed;
use super::declare::records;
use super::format::{documented_message, ms};
use super::spent::SpentRecord;
use hotseat_engine::run::Attempt;
use hotseat_engine::session::{
    AwaitingState, CheckResult, CheckState, CheckpointResult, JudgeOpinion, input_hint,
};

records! {
    /// Checkpoint.
    pub struct CheckpointRecord<'a>(reached: &'a CheckpointResult) => {
        id: &'a str = &reached.checkpoint.id,
        description?: Option<&'a str> = reached.checkpoint.description.as_deref(),
        /// Number of the turn in which it was reached; null if it was not reached.
        reached_at_turn: Option<usize> = reached.at,
        passed: bool = reached.at.is_some(),
        required: bool = reached.checkpoint.required,
        /// Reason why it was not reached.
        message?: Option<&'a str> = reached.missing.as_deref(),
    }
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

records! {
    /// Executed turn.
    pub struct TurnRecord<'a>(turn: &'a ConversationTurn, attempt: &'a Attempt) {
        let checks = &attempt.checks;
        let assertions: Vec<AssertionRecord> = checks
            .iter()
            .filter(|checked| checked.turn == Some(turn.number) && checked.topic.is_none())
            .map(AssertionRecord::new)
            .collect();
        let is_good = passed(turn, attempt);
        let awaiting = AwaitingState::detect(turn, &attempt.case_ref.case.signs);
    } => {
        turn: usize = turn.number,
        status: &'static str = match (&turn.outcome, is_good) {
            (TurnOutcome::Completed | TurnOutcome::Failed(_), true) => "passed",
            (TurnOutcome::Completed | TurnOutcome::Failed(_), false) => "failed",
            (TurnOutcome::Open, _) => "unfinished",
        },
        input: Option<&'a str> = turn.user.as_deref(),
        input_source: &'static str = match &*turn.caller {
            "simulator" => "simulated",
            "person" => "interactive",
            _ => "static",
        },
        /// Last message of the agent.
        output: Option<&'a str> = turn.answer(),
        messages: Vec<&'a str> = turn.messages.iter().map(|message| &*message.content).collect(),
        reasoning?: Vec<&'a str> = turn.reasoning.iter().map(|thought| &*thought.content).collect(),
        tool_calls: Vec<ToolCallRecord<'a>> =
            turn.tool_calls.iter().map(|call| ToolCallRecord::new(call, turn)).collect(),
        /// Answers of roles in the turn, or for its input.
        roles?: Vec<RoleRecord<'a>> = turn.roles.iter().map(RoleRecord::new).collect(),
        interrupts?: Vec<InterruptRecord<'a>> = turn.interrupts.iter().map(InterruptRecord::new).collect(),
        /// Reason why the turn did not complete, in the words of the documentation of case files.
        error?: Option<String> = turn_error(turn, attempt),
        /// Outcome of the run as reported by the agent, if it is not success.
        run_outcome?: Option<&'a str> = turn.run_outcome.as_deref(),
        /// Error details from the agent, or from the component that aborted the turn.
        error_info?: Option<&'a ErrorInfo> = error_info(turn),
        /// True if the agent waited for the user after the turn, and the sign of it.
        awaiting_input: bool = awaiting.is_awaiting(),
        awaiting_reason: &'static str = awaiting.name(),
        /// Hint of the agent about the expected input.
        input_hint?: Option<String> = input_hint(turn).filter(|_| awaiting.is_awaiting()),
        /// Finish reason of the last reply, as in its protocol.
        finish_reason?: Option<&'a str> = turn.finish_reason.as_deref(),
        /// Topic of the turn, if topics are followed.
        topic?: Option<&'a str> = turn.topic.as_deref(),
        /// Reason of the topic, unless the topic just continues.
        topic_reason?: Option<TopicReasonRecord<'a>> = turn.topic_step.as_ref().map(TopicReasonRecord::new),
        assertions: Vec<AssertionRecord<'a>> = assertions,
        assertion_errors?: Vec<String> = failed_check_messages(
            checks.iter().filter(|checked| checked.turn == Some(turn.number)),
        ),
        /// Faults that served models of the test injected into calls.
        model_faults?: Vec<ModelFaultRecord<'a>> =
            turn.model_faults.iter().map(ModelFaultRecord::new).collect(),
        notes?: &'a [String] = &turn.notes,
        usage?: &'a [Value] = &turn.reported_usage,
        /// Usage of the turn, from the reports of the agent or counted by models.
        spent?: Option<SpentRecord> = turn.usage_totals.clone().map(SpentRecord::new),
        /// Start and end in Unix milliseconds, like `timestamp` of a tool call.
        start_ts: Millis = turn.started_at,
        end_ts: Option<Millis> = turn.ended_at,
        duration_ms: f64 = ms(turn.duration()),
    }

    /// Tool call.
    pub struct ToolCallRecord<'a>(call: &'a AgentToolCall, turn: &ConversationTurn) {
        let (result, seen) = (call.result.as_ref(), call.server_call.as_ref());
    } => {
        id: &'a str = &call.id,
        name: &'a str = &call.name,
        args: &'a Value = &call.arguments,
        args_broken?: bool = call.arguments_broken,
        /// Absent if the tool returned no result.
        result?: Option<&'a Value> = result.filter(|result| !result.failed).map(|result| &result.value),
        /// True if the turn ended without a result of this call.
        unanswered?: bool = result.is_none() && turn.outcome != TurnOutcome::Open,
        error?: Option<&'a Value> = result.filter(|result| result.failed).map(|result| &result.value),
        subagent?: Option<&'a str> = call.subagent.as_deref(),
        /// MCP server of the test that received the call.
        server?: Option<&'a str> = call.server(),
        /// Sources that saw the call, unless it is only the agent's protocol: `agent`, `model`, `mcp`.
        seen_by?: &'static [&'static str] =
            Some(call.sources()).filter(|sources| **sources != ["agent"]).unwrap_or_default(),
        /// Faults that the server injected.
        faults?: Vec<&'a str> =
            seen.into_iter().flat_map(|seen| &seen.faults).map(|fault| &*fault.kind).collect(),
        /// True if the answer of the server did not reach the agent.
        answer_lost?: bool = seen.is_some_and(|seen| seen.lost_success.is_some()),
        /// Violations of the input schema.
        invalid_arguments?: &'a [String] = seen.map_or(&[], |seen| &seen.argument_errors),
        /// Milliseconds from the start of the turn.
        started_ms: f64 = ms(call.started - turn.started),
        duration_ms: f64 = ms(call.ended - call.started),
        /// Arrival of the result in Unix milliseconds.
        timestamp?: Option<Millis> = call.completed_at,
    }

    /// Fault in a call of a served model.
    pub struct ModelFaultRecord<'a>(injected: &'a LlmFaultInjected) => {
        model: &'a str = &injected.model,
        /// Number of the call within the turn, from 1.
        call: u32 = injected.call_no,
        fault: &'a str = &injected.fault,
    }

    /// Answer of a role.
    pub struct RoleRecord<'a>(said: &'a RoleAnswered) => {
        /// The role: `simulator` or `judge`.
        role: &'a str = &said.role,
        agent: &'a str = &said.agent,
        answer: &'a str = &said.answer,
        /// Values parsed from the answer.
        finding?: Option<&'a Value> = said.finding.as_ref(),
        /// Reason why the answer is invalid.
        error?: Option<&'a str> = said.error.as_deref(),
        model?: Option<&'a str> = said.model.as_deref(),
        usage?: Option<&'a Value> = said.usage.as_ref(),
        /// Vote of a judge and attempt at this vote, from 1.
        vote?: Option<u64> = said.vote,
        attempt?: Option<u64> = said.attempt,
        /// `console` output of a script function.
        logs?: &'a [String] = &said.logs,
        duration_ms: f64 = said.duration_us as f64 / 1000.0,
    }

    /// Interrupt.
    pub struct InterruptRecord<'a>(interrupt: &'a AgentInterrupt) => {
        id: &'a str = &interrupt.id,
        reason?: Option<&'a str> = interrupt.reason.as_deref(),
        message?: Option<&'a str> = interrupt.message.as_deref(),
        tool_call_id?: Option<&'a str> = interrupt.tool_call_id.as_deref(),
        server?: Option<&'a str> = interrupt.server.as_deref(),
        status?: Option<&'a str> = interrupt.answer.as_ref().map(|(status, _)| &**status),
        payload?: Option<&'a Value> = interrupt.answer.as_ref().and_then(|(_, payload)| payload.as_ref()),
    }

    /// Check.
    pub struct AssertionRecord<'a>(checked: &'a CheckResult) {
        let place = &checked.check.place;
    } => {
        /// Assertion as written in the test file, if it has an entry of its own.
        #[serde(flatten)]
        written: Option<&'a Value> = checked.check.written.as_deref(),
        passed: bool = checked.verdict.passed,
        /// `passed`, `failed`, or `errored` if it could not be decided.
        state: CheckState = checked.state(),
        /// True if the check is informational.
        soft?: bool = !checked.check.is_hard(),
        /// Name or text of the criterion.
        criterion?: Option<&'a str> = checked.check.criterion.as_deref(),
        /// Reasoning of the judge.
        reasoning?: Option<&'a str> =
            checked.opinion.as_ref().and_then(|opinion| opinion.reasoning.as_deref()),
        /// Judge of the check and its usage.
        judgement?: Option<JudgementRecord<'a>> = checked.opinion.as_ref().map(JudgementRecord::new),
        expected: &'a str = &checked.verdict.expected,
        actual: &'a str = &checked.verdict.actual,
        /// Expected and actual tool calls, value by value, if a check of calls failed.
        comparison?: Option<&'a CallComparison> = checked.verdict.comparison.as_deref(),
        /// Reason why the check could not be decided.
        error?: Option<&'a str> = checked.error.as_deref(),
        file: &'a str = place.file(),
        line: u32 = place.line(),
        column: u32 = place.column(),
        /// Call of the helper function that made the check.
        called_at?: Option<CallSiteRecord<'a>> = checked.check.call_site.as_ref().map(CallSiteRecord::new),
        /// `console` output of the script function that decided.
        logs?: &'a [String] = &checked.said,
        /// Turn of the check, if a topic checks every turn.
        turn?: Option<usize> = checked.topic.as_ref().and(checked.turn),
    }

    /// Place of a call in a test.
    pub struct CallSiteRecord<'a>(place: &'a SourceSpan) => {
        file: &'a str = place.file(),
        line: u32 = place.line(),
        column: u32 = place.column(),
    }

    /// Judge of a check and its usage.
    pub struct JudgementRecord<'a>(opinion: &'a JudgeOpinion) {
        let by = &opinion.by;
    } => {
        judge: &'a str = &by.judge,
        model?: Option<&'a str> = by.model.as_deref(),
        /// Name and version of the prompt.
        prompt?: Option<&'a str> = by.prompt.as_deref(),
        score?: Option<f64> = opinion.score,
        /// Votes, if there are several.
        votes?: Option<VotesRecord> =
            by.votes.map(|[r#for, against, errored]| VotesRecord { r#for, against, errored }),
        /// Number of requests to the judge.
        calls: usize = by.calls,
        /// Null if the judge does not report it.
        input_tokens: Option<u64> = by.input_tokens,
        output_tokens: Option<u64> = by.output_tokens,
        duration_ms: f64 = ms(by.took),
        /// Parts of the conversation that the judge did not receive.
        left_out?: &'a [String] = &by.left_out,
        /// Suggestions of the judge.
        suggestions?: &'a [String] = &opinion.suggestions,
    }

    /// Reason why a turn belongs to its topic.
    pub struct TopicReasonRecord<'a>(step: &'a TopicStep) => {
        from?: Option<&'a str> = step.from.as_deref(),
        /// `trigger`, `judge` or `fallback`.
        why: &'static str = step.why.name(),
        trigger?: Option<&'a str> = step.trigger.as_deref(),
        confidence?: Option<&'a str> = step.confidence.as_deref(),
        reasoning?: Option<&'a str> = step.reasoning.as_deref(),
    }
}

/// Votes of a judge.
#[derive(Debug, Serialize)]
pub struct VotesRecord {
    pub r#for: usize,
    pub against: usize,
    /// Invalid votes.
    pub errored: usize,
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

/// Describes each failed check in one line.
pub(super) fn failed_check_messages<'a>(checks: impl Iterator<Item = &'a CheckResult>) -> Vec<String> {
    let failed = checks.filter(|checked| checked.fails());
    let words = failed.map(|checked| match &checked.check.message {
        Some(own) => own.clone(),
        None => checked.verdict.describe(checked.state() == CheckState::Errored),
    });
    words.collect()
}
