//! Rules as written in code or in a file, before they are checked.

use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{DocumentNode, SourceSpan, SourceText};
use serde_json::Value;

use crate::{ModelErrorKind, StopReason, TokenUsage, setters};

/// A rule of a script: conditions and an answer.
///
/// All conditions must match. Patterns are regular expressions that may match anywhere in the text; templates
/// can use their named groups. Problems are reported when the script is built.
///
/// ```
/// use hotseat_model::script::{Rule, ModelScript};
/// use serde_json::json;
///
/// let script = ModelScript::builder("checkout")
///     .rule(
///         Rule::new()
///             .user("refund order (?<order>\\d+)")
///             .call_tool("refund", json!({"order": "{{ order }}"})),
///     )
///     .rule(Rule::new().tool_result("refund").say("Order {{ result.order }} is refunded."))
///     .build()?;
/// # Ok::<(), hotseat_document::Diagnostics>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    pub(super) place: Option<SourceSpan>,
    pub(super) name: Option<SourceValue<String>>,
    pub(super) when: RuleConditions,
    pub(super) expect: RuleConditions,
    /// None: the setting of the script.
    pub(super) always: Option<bool>,
    pub(super) delay: Duration,
    pub(super) reply: Option<RuleReply>,
    pub(super) error: Option<RuleError>,
}

/// A value with its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SourceValue<T> {
    pub(super) value: T,
    pub(super) place: Option<SourceSpan>,
}

/// A JSON value whose strings may be templates, with its source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SourceJson {
    pub(super) node: DocumentNode,
    /// None for values built in code.
    pub(super) source: Option<Arc<SourceText>>,
}

impl From<Value> for SourceJson {
    fn from(value: Value) -> Self {
        SourceJson { node: value.into(), source: None }
    }
}

impl<T> From<T> for SourceValue<T> {
    fn from(value: T) -> Self {
        SourceValue { value, place: None }
    }
}

/// Conditions of a rule; missing ones match every request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RuleConditions {
    pub(super) conversation: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) turn: Option<u32>,
    pub(super) call: Option<u32>,
    pub(super) attempt: Option<u32>,
    pub(super) system: Option<SourceValue<String>>,
    pub(super) user: Option<SourceValue<String>>,
    pub(super) notice: Option<SourceValue<String>>,
    pub(super) tool_result: Option<ResultCondition>,
    pub(super) offered: Vec<String>,
}

/// Conditions on a tool result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ResultCondition {
    pub(super) tool: Option<String>,
    pub(super) matches: Option<SourceValue<String>>,
    pub(super) failed: Option<bool>,
}

/// A reply with templates.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RuleReply {
    pub(super) text: Option<SourceValue<String>>,
    /// The text of the reply as a JSON value.
    pub(super) json: Option<SourceJson>,
    pub(super) reasoning: Option<SourceValue<String>>,
    pub(super) tool_calls: Vec<RuleToolCall>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<TokenUsage>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleToolCall {
    pub(super) place: Option<SourceSpan>,
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) arguments: SourceJson,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleError {
    pub(super) kind: ModelErrorKind,
    pub(super) message: Option<SourceValue<String>>,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Option<String>,
    /// Text that arrives before the failure.
    pub(super) after: Option<SourceValue<String>>,
}

impl Rule {
    /// Creates a rule that matches every request and has no answer yet.
    pub fn new() -> Self {
        Rule::default()
    }

    setters! {
        /// Sets the name for messages and for [`ModelScript::unused`](super::ModelScript::unused).
        name(self, name: impl Into<String>) => self.name = Some(name.into().into());
        /// Matches only this conversation.
        conversation(self, id: impl Into<String>) => self.when.conversation = Some(id.into());
        /// Matches only this agent.
        agent(self, name: impl Into<String>) => self.when.agent = Some(name.into());
        /// Matches only this turn of the conversation, from 1.
        turn(self, turn: u32) => self.when.turn = Some(turn);
        /// Matches only this call of the turn, from 1.
        call(self, call: u32) => self.when.call = Some(call);
        /// Matches only this attempt at the call, from 1.
        attempt(self, attempt: u32) => self.when.attempt = Some(attempt);
        /// Matches only if the system prompt matches the pattern.
        system(self, pattern: impl Into<String>) => self.when.system = Some(pattern.into().into());
        /// Matches only if the last user message matches the pattern. Without [`call`](Self::call),
        /// [`tool_result`](Self::tool_result) or [`notice`](Self::notice), the user message must be newer than
        /// the last reply.
        user(self, pattern: impl Into<String>) => self.when.user = Some(pattern.into().into());
        /// Matches only if a notice since the last reply matches the pattern.
        notice(self, pattern: impl Into<String>) => self.when.notice = Some(pattern.into().into());
        /// Matches only if this tool returned a result since the last reply.
        tool_result(self, tool: impl Into<String>) =>
            self.when.tool_result.get_or_insert_default().tool = Some(tool.into());
        /// Matches only if a tool result since the last reply matches the pattern, as text.
        result_matches(self, pattern: impl Into<String>) =>
            self.when.tool_result.get_or_insert_default().matches = Some(pattern.into().into());
        /// Matches only if a tool result since the last reply is a failure, or is not.
        result_failed(self, failed: bool) =>
            self.when.tool_result.get_or_insert_default().failed = Some(failed);
        /// Matches only if this tool is offered to the model. May be called several times.
        offered(self, tool: impl Into<String>) => self.when.offered.push(tool.into());
        /// Sets conditions that every answered request must meet; a request that does not is an error. Only the
        /// conditions of the given rule are used.
        expect(self, conditions: Rule) => self.expect = conditions.when;
        /// Lets the rule answer once per conversation.
        once(self) => self.always = Some(false);
        /// Lets the rule answer any number of times.
        always(self) => self.always = Some(true);
        /// Delays the answer, in whole milliseconds.
        delay(self, delay: Duration) => self.delay = delay;
        /// Answers with this text, a template. Can be combined with tool calls.
        say(self, text: impl Into<String>) =>
            self.reply.get_or_insert_default().text = Some(text.into().into());
        /// Answers with this JSON value as text; its strings are templates.
        say_json(self, value: Value) => self.reply.get_or_insert_default().json = Some(value.into());
        /// Adds this reasoning, a template, before the answer.
        reasoning(self, text: impl Into<String>) =>
            self.reply.get_or_insert_default().reasoning = Some(text.into().into());
    }

    /// Calls a tool; strings in the arguments are templates. Arguments that are a plain string are sent
    /// unchanged, as from a model that writes invalid JSON. May be called several times.
    pub fn call_tool(mut self, name: impl Into<String>, arguments: Value) -> Self {
        let call = RuleToolCall { place: None, name: name.into(), id: None, arguments: arguments.into() };
        self.reply.get_or_insert_default().tool_calls.push(call);
        self
    }

    setters! {
        /// Sets the stop reason of the reply.
        stop(self, reason: StopReason) => self.reply.get_or_insert_default().stop = Some(reason);
        /// Sets the token usage; by default it is estimated.
        usage(self, usage: TokenUsage) => self.reply.get_or_insert_default().usage = Some(usage);
        /// Fails with this kind of error.
        fail(self, kind: ModelErrorKind) => self.error = Some(RuleError::new(kind));
        /// Fails after streaming this text, a template.
        fail_after(self, kind: ModelErrorKind, text: impl Into<String>) =>
            self.error = Some(RuleError { after: Some(text.into().into()), ..RuleError::new(kind) });
    }

    /// Fails with a rate limit error and requests this delay.
    pub fn fail_rate_limit(mut self, retry_after: Duration) -> Self {
        self.error =
            Some(RuleError { retry_after: Some(retry_after), ..RuleError::new(ModelErrorKind::RateLimit) });
        self
    }
}

impl RuleError {
    pub(super) fn new(kind: ModelErrorKind) -> Self {
        RuleError { kind, message: None, status: None, retry_after: None, body: None, after: None }
    }
}
