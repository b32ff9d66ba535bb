//! Checks: assertions as data.
//!
//! A check is parsed once, describes itself, and is decided over a scope of a trace. Checks are pure: they
//! only read recorded events, so a stored conversation can be re-evaluated with the same verdict.

mod after;
mod after_fault;
mod agent_text;
mod all_of;
mod answer;
mod bounded_path;
mod budget;
mod call_matching;
mod call_text;
mod calls;
mod condition;
mod containment;
mod contains;
mod count;
mod criterion_ref;
mod decision;
mod differences;
mod duration;
mod equals;
mod forbidden_arguments;
mod forbidden_call;
mod forbidden_result;
mod idempotent;
mod idle;
mod javascript;
mod json_answer;
mod json_path;
mod json_schema;
mod judged;
mod kind;
mod nearest_call;
mod no_text_with_tool_calls;
mod pattern;
mod precomputed;
mod regex;
mod role_reference;
mod rust_check;
mod script_check;
mod text;
mod tool_called;
mod tool_result;
mod tool_sequence;
mod topic;
mod undecidable;
mod valid_arguments;
mod value;
mod value_type;

use std::sync::Arc;

use hotseat_trace::{CheckVerdict, ConversationTurn, TracedConversation, TurnScope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use after::CalledAfter;
pub use after_fault::AfterFault;
pub use agent_text::TurnSelection;
pub use all_of::AllOf;
pub use answer::{answer, format_text};
pub use bounded_path::{BoundedPath, PathTooCostly, name_in_path};
pub use budget::UsageBudget;
pub use calls::{ArgumentPattern, ArgumentPatterns, CallFilter, NamedTools};
pub use condition::{ArgumentCondition, ArgumentFunction, ConditionError, ValueRelation};
pub use containment::contains_value;
pub use contains::ContainsText;
pub use count::{CallCount, ToolCount};
pub use criterion_ref::CriterionRef;
pub use duration::MaxDuration;
pub use equals::AnswerEquals;
pub use forbidden_arguments::ForbiddenArguments;
pub use forbidden_call::ForbiddenCall;
pub use forbidden_result::ForbiddenResult;
pub use idempotent::Idempotent;
pub use idle::{IdleScope, MaxIdle};
pub use javascript::{JavascriptRegexError, translate_javascript_regex};
pub use json_answer::{AnswerContent, JsonAnswerError, JsonPlace, find_json, read_json};
pub use json_path::{JsonPathCheck, JsonPathError, JsonPathQuery};
pub use json_schema::{CompiledSchema, CompiledSchemaError, JsonSchemaCheck};
pub use judged::{
    AgentIntent, CriterionExample, EvidenceLimit, EvidenceOverflow, ExampleQuality, ForbiddenClaims,
    FreeFormCriterion, GoalAchieved, GroundedClaims, JudgeCriterion, JudgeSelector, JudgeSettings,
    JudgedCheck, ResponseCriterion,
};
pub use kind::ForbiddenTexts;
pub use no_text_with_tool_calls::NoTextWithToolCalls;
pub use pattern::{Pattern, PatternError, escape};
pub use precomputed::PrecomputedCheck;
pub use regex::{MatchMode, RegexCheck};
pub use role_reference::{RoleReference, RoleReferenceError};
pub use rust_check::RustCheck;
pub use script_check::{CheckFunction, ScriptCheck, ScriptInputKind, ScriptJudgementError};
pub use text::{TextMatch, TextPattern};
pub use tool_called::{ArgumentMatch, ToolCalled};
pub use tool_result::{ExpectedResult, ExpectedResultError, ToolResultCheck};
pub use tool_sequence::{SequenceCall, SequenceMatch, ToolSequence};
pub use topic::{CurrentTopic, HistoryOrder, TopicHistory, TopicReached};
pub use undecidable::Undecidable;
pub use valid_arguments::ValidArguments;
pub use value::{ConversationValue, ListComparison, NumberComparison};
pub use value_type::{JsonTypeCheck, JsonValueType};

use hotseat_document::{SourceSpan, show_hidden};

use decision::{CheckDecision, CheckOutcome, format_list};
use kind::{CheckBehavior, check_kinds};

check_kinds! {
    /// Number of calls of a tool.
    ToolCount(ToolCount),
    /// No result of a tool matches a pattern.
    ForbiddenResult(ForbiddenResult),
    /// No arguments of a tool match a pattern.
    ForbiddenArguments(ForbiddenArguments),
    /// A tool is called only after another tool.
    CalledAfter(CalledAfter),
    /// A given call is never made.
    ForbiddenCall(ForbiddenCall),
    /// Time limit.
    MaxDuration(MaxDuration),
    /// Maximum idle time around tool calls.
    MaxIdle(MaxIdle),
    /// Usage limit.
    UsageBudget(UsageBudget),
    /// The text of the agent matches a pattern, or does not.
    TextPattern(TextPattern),
    /// The agent sends no text in messages that call tools.
    NoTextWithToolCalls(NoTextWithToolCalls),
    /// The text of the agent contains a text, or does not.
    ContainsText(ContainsText),
    /// The answer equals a value.
    AnswerEquals(AnswerEquals),
    /// The text of the agent matches patterns.
    Regex(RegexCheck),
    /// A value inside the answer equals a value.
    JsonPath(JsonPathCheck),
    /// The answer has a JSON type.
    JsonType(JsonTypeCheck),
    /// The answer matches a JSON Schema.
    JsonSchema(JsonSchemaCheck),
    /// A tool is called.
    ToolCalled(ToolCalled),
    /// A tool returns a result.
    ToolResult(ToolResultCheck),
    /// Sequence of all tool calls.
    ToolSequence(ToolSequence),
    /// A tool takes effect at most once for each key.
    Idempotent(Idempotent),
    /// Behaviour after an injected fault.
    AfterFault(AfterFault),
    /// Arguments satisfy the input schemas of MCP servers.
    ValidArguments(ValidArguments),
    /// The conversation is in a topic.
    CurrentTopic(CurrentTopic),
    /// The conversation has visited a topic.
    TopicReached(TopicReached),
    /// Sequence of the visited topics.
    TopicHistory(TopicHistory),
    /// Compares a number or a list of the conversation.
    ConversationValue(ConversationValue),
    /// A judge decides.
    Judged(JudgedCheck),
    /// A Rust function of the test program decides.
    RustFunction(RustCheck),
    /// The test program has compared two values itself.
    Precomputed(PrecomputedCheck),
    /// A script function decides.
    Script(ScriptCheck),
    /// Several checks form one criterion.
    AllOf(AllOf),
    /// Reference to a criterion by name.
    CriterionRef(CriterionRef),
}

/// One assertion and its location in the source.
#[derive(Debug, Clone)]
pub struct Check {
    /// Kind of the assertion.
    pub kind: CheckKind,
    /// Location of the assertion.
    pub place: SourceSpan,
    /// Call site in the test program, if the assertion is inside a helper function.
    pub call_site: Option<SourceSpan>,
    /// Inverts the check. A check that is not applicable fails in both cases.
    pub negated: bool,
    /// Hard or soft.
    pub strength: CheckStrength,
    /// Custom message for a failure.
    pub message: Option<String>,
    /// The assertion as written in the test file, if it has an entry of its own.
    pub definition: Option<Arc<Value>>,
    /// Name or text of the criterion that this check decides, if any.
    pub criterion: Option<Arc<str>>,
}

/// Effect of a check on the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStrength {
    /// Affects the verdict.
    Hard,
    /// Informational: does not affect the verdict.
    Soft,
}

impl Check {
    /// Creates a hard check that is not negated.
    pub fn new(kind: CheckKind, place: SourceSpan) -> Self {
        Check {
            kind,
            place,
            call_site: None,
            negated: false,
            strength: CheckStrength::Hard,
            message: None,
            definition: None,
            criterion: None,
        }
    }

    /// Returns true if the check affects the verdict.
    pub fn is_hard(&self) -> bool {
        self.strength == CheckStrength::Hard
    }

    /// Describes the expectation.
    pub fn describe(&self) -> String {
        let words = self.kind.behavior().describe();
        if self.negated { negate(&words) } else { words }
    }

    /// Returns the judged check, if a judge decides.
    pub fn as_judged(&self) -> Option<&JudgedCheck> {
        match &self.kind {
            CheckKind::Judged(judged) => Some(judged),
            _ => None,
        }
    }

    /// Returns the script check, if a script function decides.
    pub fn as_script(&self) -> Option<&ScriptCheck> {
        match &self.kind {
            CheckKind::Script(scripted) => Some(scripted),
            _ => None,
        }
    }

    /// Returns the reason why the test program could not compare its values, if it could not.
    pub fn comparison_error(&self) -> Option<&Undecidable> {
        match &self.kind {
            CheckKind::Precomputed(PrecomputedCheck { result: Err(why), .. }) => Some(why),
            _ => None,
        }
    }

    /// Decides the check for a turn or a whole conversation. Checks of judges and scripts are not applicable
    /// here.
    pub fn decide(&self, scope: TurnScope<'_>) -> CheckVerdict {
        self.to_verdict(self.decision(scope))
    }

    /// Decides the check, before negation. An undecided check is neither satisfied nor violated.
    fn decision(&self, scope: TurnScope<'_>) -> CheckDecision {
        let behavior = self.kind.behavior();
        match behavior.undecided_reason(scope) {
            Some(reason) => CheckDecision::not_applicable(reason),
            None => behavior.decide(scope),
        }
    }

    /// Calls the Rust function of the check, if it has one. Returns its verdict, and the error if it could
    /// not decide.
    pub fn decide_in_program(&self, scope: TurnScope<'_>) -> Option<(CheckVerdict, Option<Undecidable>)> {
        let CheckKind::RustFunction(native) = &self.kind else { return None };
        let found = native.call(scope);
        let error = found.as_ref().err().cloned();
        Some((self.to_verdict(CheckDecision::from_result(found)), error))
    }

    fn to_verdict(&self, CheckDecision { outcome, actual, comparison }: CheckDecision) -> CheckVerdict {
        let passed = match outcome {
            CheckOutcome::Satisfied => !self.negated,
            CheckOutcome::Violated => self.negated,
            CheckOutcome::NotApplicable => false,
        };
        let mut comparison = comparison.filter(|_| !passed);
        // Texts that look the same, but are not equal, are told apart.
        let show = |text: &str| show_hidden(text).into_owned();
        if let Some(comparison) = &mut comparison {
            comparison.map_texts(show);
        }
        CheckVerdict { comparison, ..CheckVerdict::new(passed, show(&self.describe()), show(&actual)) }
    }

    /// Describes what a check found that passes without the secrets of the scope, and fails with them: `actual`, which it found
    /// without them, or that of its parts that fail.
    pub fn describe_secret(&self, actual: String, scope: TurnScope<'_>, original: TurnScope<'_>) -> String {
        let parts = if let CheckKind::AllOf(all) = &self.kind { &all.checks[..] } else { &[] };
        let violated: Vec<String> = parts
            .iter()
            .filter(|part| !part.decide(original).passed)
            .map(|part| {
                let actual = part.describe_secret(part.decide(scope).actual, scope, original);
                format!("expected {}, got {actual}", part.describe())
            })
            .collect();
        match violated.is_empty() {
            true => format!("a redacted secret that violates this (without the secret: {actual})"),
            false => format_list(&violated),
        }
    }

    /// Returns the texts of the agent in which the check forbids something.
    pub fn forbidden_texts(&self) -> ForbiddenTexts {
        self.kind.behavior().forbidden_texts(self.negated)
    }

    /// Returns true if the check itself reads the conversation, and no judge, script or function of the test program does.
    pub fn reads_conversation(&self) -> bool {
        let is_of_program = match &self.kind {
            CheckKind::RustFunction(_) | CheckKind::Precomputed(_) => true,
            CheckKind::ToolCalled(called) => called.has_function(),
            _ => false,
        };
        !is_of_program && !self.needs_answer()
    }

    /// Returns true if the check selects all turns of its scope.
    pub fn selects_all_turns(&self) -> bool {
        let turns = match &self.kind {
            CheckKind::ContainsText(check) => check.turns,
            CheckKind::Regex(check) => check.turns,
            _ => None,
        };
        turns == Some(TurnSelection::All)
    }

    /// Adapts the check to a topic visit: it reads all turns of the visit, unless it selects turns itself.
    #[must_use]
    pub fn for_topic_visit(&self) -> Check {
        let mut check = self.clone();
        check.kind.behavior_mut().read_all_turns();
        check
    }

    /// Returns the topics that the check names.
    pub fn topics(&self) -> Option<&[String]> {
        self.kind.behavior().topics()
    }

    /// Returns the tool that must be called for the check to pass.
    pub fn expected_tool(&self) -> Option<&str> {
        if self.negated { None } else { self.kind.behavior().expected_tool() }
    }

    /// Returns true if the check reads tool calls, so that it needs an agent whose calls are visible.
    pub fn reads_calls(&self) -> bool {
        self.kind.behavior().reads_calls()
    }

    /// Returns the MCP servers that the check names, with the tools that it names of each.
    pub fn named_tools(&self) -> Vec<NamedTools<'_>> {
        self.kind.behavior().named_tools()
    }

    /// Returns true if a judge or a script function has to decide.
    pub fn needs_answer(&self) -> bool {
        self.kind.behavior().needs_answer()
    }

    /// Returns true if the check holds in a conversation without tool calls, or without calls after a fault.
    pub fn passes_without_calls(&self) -> bool {
        self.needs_fault() || self.decide(TracedConversation::default().scope()).passed
    }

    /// Returns true if the check passes in a turn in which nothing happens.
    pub fn passes_in_idle_turn(&self) -> bool {
        let mut conversation = TracedConversation::default();
        conversation.turns.push(ConversationTurn::default());
        self.passes_without_calls() || self.decide(conversation.scope()).passed
    }

    /// Returns the reason if the check cannot be decided although it needs no judge or script.
    pub fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        self.undecided_part(scope).map(|(_, reason)| reason)
    }

    /// Like [`Check::undecided_reason`], with the check to which the reason belongs: for a criterion, one of its parts.
    pub fn undecided_part(&self, scope: TurnScope<'_>) -> Option<(&Check, String)> {
        match &self.kind {
            CheckKind::AllOf(all) => all.undecided_part(scope),
            _ => Some((self, self.kind.behavior().undecided_reason(scope)?)),
        }
    }

    /// Returns true if the check is about faults that the test injects.
    pub fn needs_fault(&self) -> bool {
        matches!(self.kind, CheckKind::AfterFault(_))
    }

    /// Returns true if the check measures time.
    pub fn is_timing(&self) -> bool {
        self.kind.behavior().is_timing()
    }

    /// Returns true if the check has failed and no further turn can change that.
    pub fn is_failed_for_good(&self, scope: TurnScope<'_>) -> bool {
        self.lasting_result(scope) == Some(false)
    }

    /// Returns whether the check passes, if no further turn can change that.
    fn lasting_result(&self, scope: TurnScope<'_>) -> Option<bool> {
        let outcome = self.kind.behavior().lasting_outcome(scope)?;
        let is_decided = self.decision(scope).outcome == outcome;
        is_decided.then_some((outcome == CheckOutcome::Satisfied) != self.negated)
    }

    /// Returns true if the check may take long even in a short conversation.
    pub fn may_take_long(&self) -> bool {
        self.kind.behavior().may_take_long()
    }

    /// Returns the time limit for a turn or case, if this check is a hard one.
    pub fn time_limit(&self) -> Option<std::time::Duration> {
        if self.is_hard() && !self.negated { self.kind.behavior().time_limit() } else { None }
    }
}

/// Negates an expectation: `refund to be called` becomes `refund not to be called`. Inserts nothing if the
/// words before `to` may quote a value, or if they would negate only a part of the meaning.
fn negate(words: &str) -> String {
    let is_plain = |subject: &str| {
        let partial = subject.starts_with("no ")
            || subject.starts_with("a ")
            || subject.ends_with(" never")
            || subject.ends_with(" not");
        !partial
            && !subject.contains(['"', '{', '[', '/', ':'])
            && subject.matches('`').count().is_multiple_of(2)
    };
    match words.split_once(" to ") {
        Some((subject, rest)) if is_plain(subject) => format!("{subject} not to {rest}"),
        _ => format!("not: {words}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn negates_only_the_whole_expectation() {
        for (words, negated) in [
            ("refund to be called", "refund not to be called"),
            ("`1 + 1` to be 3", "`1 + 1` not to be 3"),
            ("the agent's text to contain \"go to bed\"", "the agent's text not to contain \"go to bed\""),
            ("go with {\"a\":\"to b\"} to be called", "not: go with {\"a\":\"to b\"} to be called"),
            ("`a to b` to be 3", "not: `a to b` to be 3"),
            ("refund never to be called", "not: refund never to be called"),
            ("the text not to contain \"x\"", "not: the text not to contain \"x\""),
            ("no result of refund to match /x/", "not: no result of refund to match /x/"),
            ("a call of refund to succeed", "not: a call of refund to succeed"),
            ("at most 100 tokens", "not: at most 100 tokens"),
        ] {
            assert_eq!(super::negate(words), negated);
        }
    }
}
