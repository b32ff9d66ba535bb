//! Rules as written in code or in a file, before they are checked.

use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{DocumentNode, FromDocument, Kind, NodeView, SourceSpan, SourceText, document_shape};
use serde_json::Value;

use crate::{ModelErrorKind, StopReason, TokenUsage, setters};

/// Up to one day.
const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 24 * 60 * 60 * 1000 };
const ORDINAL: Kind = Kind::Integer { min: 1, max: u32::MAX as i64 };
const TOKENS: Kind = Kind::Integer { min: 0, max: i64::MAX };
/// `use` of a script.
pub const USE: Kind = Kind::Choice(&["once", "always"]);

/// Names of the failures that a script can simulate.
const ERROR_KINDS: &[&str] =
    &["network", "timeout", "rate_limit", "server", "auth", "bad_request", "context_too_long", "decode"];

/// Stop reasons of scripted replies.
const STOP_REASONS: &[&str] = &["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"];

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

document_shape! {
    /// A rule: conditions and an answer. It needs `reply` or `error`.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Rule as pub RULE "Rule", place pub(super) place {
        /// A name for messages.
        optional pub(super) name: Option<SourceValue<String>> = Kind::NonEmptyText,
        /// Conditions for the rule to answer. Without them the rule matches every request.
        optional pub(super) when: RuleConditions = Kind::Shape(&CONDITIONS),
        /// Conditions that every answered request must meet; otherwise the call is an error.
        optional pub(super) expect: RuleConditions = Kind::Shape(&CONDITIONS),
        /// How often it may answer in each conversation. Default: `use` of the script.
        optional pub(super) always("use"): Option<bool> = USE,
            from |view| Some(view.text().map(|word| word == "always")),
        /// Duration of the answer in milliseconds.
        optional pub(super) delay("delay_ms"): Duration = MILLISECONDS, shown "0", from millis,
        /// The answer: a text, or a mapping.
        optional pub(super) reply: Option<RuleReply> = Kind::OneOf(&[Kind::Text, Kind::Shape(&REPLY)]),
        /// The failure instead of an answer: its kind, or a mapping.
        optional pub(super) error: Option<RuleError> =
            Kind::OneOf(&[Kind::Choice(ERROR_KINDS), Kind::Shape(&ERROR)]),
    }

    /// Conditions on a request. Patterns are regular expressions that may match anywhere in the text.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub(super) struct RuleConditions as CONDITIONS "Conditions" {
        /// The id of the conversation.
        optional pub(super) conversation: Option<String> = Kind::Text,
        /// The id of the agent that makes the call.
        optional pub(super) agent: Option<String> = Kind::Text,
        /// The number of the turn in the conversation.
        optional pub(super) turn: Option<u32> = ORDINAL,
        /// The number of the model call in the turn.
        optional pub(super) call: Option<u32> = ORDINAL,
        /// The number of the attempt at the call.
        optional pub(super) attempt: Option<u32> = ORDINAL,
        /// Pattern for the system prompt.
        optional pub(super) system: Option<SourceValue<String>> = Kind::Pattern,
        /// Pattern for the last user message. Without `call`, `tool_result` or `notice`, only if the model has not
        /// replied to it yet.
        optional pub(super) user: Option<SourceValue<String>> = Kind::Pattern,
        /// Pattern for a notice since the last reply.
        optional pub(super) notice: Option<SourceValue<String>> = Kind::Pattern,
        /// Pattern for a tool result since the last reply, or a mapping.
        optional pub(super) tool_result: Option<ResultCondition> =
            Kind::OneOf(&[Kind::Pattern, Kind::Shape(&RESULT)]),
        /// A tool, or several, that must be offered to the model.
        optional pub(super) offered: Vec<String> =
            Kind::OneOf(&[Kind::NonEmptyText, Kind::List(&Kind::NonEmptyText)]),
            from |view| Some(view.one_or_many().filter_map(String::from_view).collect()),
    }

    /// Conditions on a tool result.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub(super) struct ResultCondition as RESULT "ToolResultCondition",
        else |view| {
            Some(ResultCondition { matches: SourceValue::from_view(view), ..ResultCondition::default() })
        } {
        /// The name of the tool.
        optional pub(super) tool: Option<String> = Kind::NonEmptyText,
        /// Pattern for the result, as text.
        optional pub(super) matches: Option<SourceValue<String>> = Kind::Pattern,
        /// True if the tool must have failed, false if it must have succeeded. Default: either.
        optional pub(super) failed: Option<bool> = Kind::Bool,
    }

    /// The answer of the model. It needs `text`, `json` or `tool_calls`; an empty reply is `reply: ""`.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub(super) struct RuleReply as pub(super) REPLY "Reply",
        else |view| { Some(RuleReply { text: SourceValue::from_view(view), ..RuleReply::default() }) } {
        /// The text, a template.
        optional pub(super) text: Option<SourceValue<String>> = Kind::Text,
        /// A value that is sent as JSON text; the strings in it are templates.
        optional pub(super) json: Option<SourceJson> = Kind::Json,
        /// The reasoning before the text, a template.
        optional pub(super) reasoning: Option<SourceValue<String>> = Kind::Text,
        /// The tool calls: the name of a tool without arguments, or a mapping.
        optional pub(super) tool_calls: Vec<RuleToolCall> =
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CALL)])),
        /// The stop reason. Default: `tool_use` with tool calls, otherwise `end_turn`.
        optional pub(super) stop: Option<StopReason> = Kind::Choice(STOP_REASONS),
            from |view| Some(view.text().map(|word| StopReason::from(word.to_owned()))),
        /// The token usage. Default: an estimate.
        optional pub(super) usage: Option<TokenUsage> = Kind::Shape(&USAGE),
            from |view| RuleUsage::from_view(view).map(|usage| Some(usage.into())),
    }

    /// A tool that the model calls.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct RuleToolCall as CALL "ToolCall", place pub(super) place,
        else |view| {
            let (place, arguments) = (Some(view.place()), SourceJson::default());
            Some(RuleToolCall { place, name: String::from_view(view)?, arguments, id: None })
        } {
        /// The name of the tool.
        required pub(super) name: String = Kind::NonEmptyText,
        /// The arguments; the strings in them are templates. A plain string is read like the arguments that a
        /// model writes, and may be invalid JSON.
        optional pub(super) arguments: SourceJson = Kind::OneOf(&[Kind::JsonMap, Kind::Text]),
        /// The id of the call. Default: made from its position.
        optional pub(super) id: Option<String> = Kind::NonEmptyText,
    }

    /// The token usage of a call.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub(super) struct RuleUsage as USAGE "Usage" {
        /// Tokens of the request.
        optional pub(super) input_tokens: u64 = TOKENS, default 0,
        /// Tokens of the reply.
        optional pub(super) output_tokens: u64 = TOKENS, default 0,
        /// Request tokens read from a cache.
        optional pub(super) cached_tokens: u64 = TOKENS, default 0,
    }

    /// A failure of a call.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct RuleError as ERROR "Error", else |view| { kind_of(view).map(RuleError::new) } {
        /// The kind of failure.
        required pub(super) kind: ModelErrorKind = Kind::Choice(ERROR_KINDS), from kind_of,
        /// The message, a template.
        optional pub(super) message: Option<SourceValue<String>> = Kind::Text,
        /// The HTTP status. Default: the usual status of the kind.
        optional pub(super) status: Option<u16> = Kind::Integer { min: 100, max: 599 },
        /// The delay in milliseconds that the provider requests.
        optional pub(super) retry_after("retry_after_ms"): Option<Duration> = MILLISECONDS,
            from |view| millis(view).map(Some),
        /// The body of the response.
        optional pub(super) body: Option<String> = Kind::Text,
        /// Text that arrives before the failure, a template.
        optional pub(super) after: Option<SourceValue<String>> = Kind::Text,
    }
}

impl From<RuleUsage> for TokenUsage {
    fn from(RuleUsage { input_tokens, output_tokens, cached_tokens }: RuleUsage) -> Self {
        TokenUsage { input_tokens, output_tokens, cached_tokens, ..TokenUsage::default() }
    }
}

/// Decodes the kind of an error. Other names have already been reported.
fn kind_of(view: NodeView<'_>) -> Option<ModelErrorKind> {
    Some(view.text().and_then(ModelErrorKind::from_name).unwrap_or(ModelErrorKind::Server))
}

fn millis(view: NodeView<'_>) -> Option<Duration> {
    u64::from_view(view).map(Duration::from_millis)
}

impl FromDocument for SourceValue<String> {
    fn from_view(view: NodeView<'_>) -> Option<Self> {
        Some(SourceValue { value: view.text()?.to_owned(), place: Some(view.place()) })
    }
}

impl FromDocument for SourceJson {
    fn from_view(view: NodeView<'_>) -> Option<Self> {
        Some(SourceJson { node: view.node.clone(), source: Some(Arc::clone(view.source)) })
    }
}

impl Default for SourceJson {
    fn default() -> Self {
        Value::Object(serde_json::Map::new()).into()
    }
}

impl Rule {
    /// Creates a rule that matches every request and has no answer yet.
    ///
    /// All conditions must match. Templates can use the named groups of patterns. Problems are reported when the
    /// script is built.
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

    /// Calls a tool; strings in the arguments are templates. A plain string is read like the
    /// arguments that a model writes, and may be invalid JSON. May be called several times.
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
