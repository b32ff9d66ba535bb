//! A rule as it is written, in code or in a file. Nothing of it is checked yet.

use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Node, Place, Source};
use serde_json::Value;

use crate::{ErrorKind, StopReason, Usage};

/// One rule of a script: when it applies, and what the model then answers.
///
/// All conditions have to hold. Patterns are regular expressions that may match anywhere in the text; their named
/// groups can be used in templates. Mistakes are reported when the script is built.
///
/// ```
/// use hotseat_model::script::{Rule, Script};
/// use serde_json::json;
///
/// let script = Script::builder("checkout")
///     .rule(Rule::new().user("refund order (?<order>\\d+)").call_tool("refund", json!({"order": "{{ order }}"})))
///     .rule(Rule::new().tool_result("refund").say("Order {{ result.order }} is refunded."))
///     .build()?;
/// # Ok::<(), hotseat_document::Diagnostics>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    pub(super) place: Option<Place>,
    pub(super) name: Option<Written<String>>,
    pub(super) when: Conditions,
    pub(super) expect: Conditions,
    /// None: as the script says.
    pub(super) always: Option<bool>,
    pub(super) delay: Duration,
    pub(super) reply: Option<WrittenReply>,
    pub(super) error: Option<WrittenError>,
}

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written<T> {
    pub(super) value: T,
    pub(super) place: Option<Place>,
}

/// A JSON value whose texts may be templates, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenTree {
    pub(super) node: Node,
    /// None for what was built in code.
    pub(super) source: Option<Arc<Source>>,
}

impl From<Value> for WrittenTree {
    fn from(value: Value) -> Self {
        WrittenTree { node: value.into(), source: None }
    }
}

impl<T> From<T> for Written<T> {
    fn from(value: T) -> Self {
        Written { value, place: None }
    }
}

/// The conditions of a rule; those that are not written hold for every request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Conditions {
    pub(super) conversation: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) turn: Option<u32>,
    pub(super) call: Option<u32>,
    pub(super) attempt: Option<u32>,
    pub(super) system: Option<Written<String>>,
    pub(super) user: Option<Written<String>>,
    pub(super) notice: Option<Written<String>>,
    pub(super) tool_result: Option<ResultCondition>,
    pub(super) offered: Vec<String>,
}

/// What a tool result must be like.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ResultCondition {
    pub(super) tool: Option<String>,
    pub(super) matches: Option<Written<String>>,
    pub(super) failed: Option<bool>,
}

/// A reply with its templates.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct WrittenReply {
    pub(super) text: Option<Written<String>>,
    /// The text as a JSON value.
    pub(super) json: Option<WrittenTree>,
    pub(super) reasoning: Option<Written<String>>,
    pub(super) tool_calls: Vec<WrittenCall>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenCall {
    pub(super) place: Option<Place>,
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) arguments: WrittenTree,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenError {
    pub(super) kind: ErrorKind,
    pub(super) message: Option<Written<String>>,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Option<String>,
    /// Text that arrives before the failure.
    pub(super) after: Option<Written<String>>,
}

impl Rule {
    /// A rule for every request; it still needs something to answer.
    pub fn new() -> Self {
        Rule::default()
    }

    /// A name for messages and for [`Script::unused`](super::Script::unused).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into());
        self
    }

    /// Only in this conversation.
    pub fn conversation(mut self, id: impl Into<String>) -> Self {
        self.when.conversation = Some(id.into());
        self
    }

    /// Only for this agent.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.when.agent = Some(name.into());
        self
    }

    /// Only in this turn of the conversation, from 1.
    pub fn turn(mut self, turn: u32) -> Self {
        self.when.turn = Some(turn);
        self
    }

    /// Only at this call of the turn, from 1.
    pub fn call(mut self, call: u32) -> Self {
        self.when.call = Some(call);
        self
    }

    /// Only at this attempt of the call, from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.when.attempt = Some(attempt);
        self
    }

    /// Only if the system prompt matches.
    pub fn system(mut self, pattern: impl Into<String>) -> Self {
        self.when.system = Some(pattern.into().into());
        self
    }

    /// Only if what the user said last matches. Without [`call`](Self::call), [`tool_result`](Self::tool_result) and
    /// [`notice`](Self::notice), the rule answers the user's message itself and not what comes after a tool call.
    pub fn user(mut self, pattern: impl Into<String>) -> Self {
        self.when.user = Some(pattern.into().into());
        self
    }

    /// Only if a notice matches that came since the model last replied.
    pub fn notice(mut self, pattern: impl Into<String>) -> Self {
        self.when.notice = Some(pattern.into().into());
        self
    }

    /// Only if this tool answered since the model last replied.
    pub fn tool_result(mut self, tool: impl Into<String>) -> Self {
        self.when.tool_result.get_or_insert_default().tool = Some(tool.into());
        self
    }

    /// Only if a tool's answer since the model last replied matches, as text.
    pub fn result_matches(mut self, pattern: impl Into<String>) -> Self {
        self.when.tool_result.get_or_insert_default().matches = Some(pattern.into().into());
        self
    }

    /// Only if a tool failed, or did not, since the model last replied.
    pub fn result_failed(mut self, failed: bool) -> Self {
        self.when.tool_result.get_or_insert_default().failed = Some(failed);
        self
    }

    /// Only if this tool is offered to the model; may be called for several.
    pub fn offered(mut self, tool: impl Into<String>) -> Self {
        self.when.offered.push(tool.into());
        self
    }

    /// Something that must hold of the request that this rule answers: a request that the conditions fit and this
    /// does not is an error. Takes the conditions of another rule.
    pub fn expect(mut self, conditions: Rule) -> Self {
        self.expect = conditions.when;
        self
    }

    /// The rule may answer once in each conversation.
    pub fn once(mut self) -> Self {
        self.always = Some(false);
        self
    }

    /// The rule may answer any number of times.
    pub fn always(mut self) -> Self {
        self.always = Some(true);
        self
    }

    /// The time until the answer is there, in whole milliseconds.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Answers this text, a template. May be combined with tool calls.
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.reply.get_or_insert_default().text = Some(text.into().into());
        self
    }

    /// Answers this JSON value as text; the texts in it are templates.
    pub fn say_json(mut self, value: Value) -> Self {
        self.reply.get_or_insert_default().json = Some(value.into());
        self
    }

    /// Thinks these words first, a template.
    pub fn think(mut self, text: impl Into<String>) -> Self {
        self.reply.get_or_insert_default().reasoning = Some(text.into().into());
        self
    }

    /// Calls a tool; the texts in the arguments are templates. Arguments that are a text are sent as they are, as by
    /// a model that writes something that is not JSON. May be called for several.
    pub fn call_tool(mut self, name: impl Into<String>, arguments: Value) -> Self {
        let call = WrittenCall { place: None, name: name.into(), id: None, arguments: arguments.into() };
        self.reply.get_or_insert_default().tool_calls.push(call);
        self
    }

    /// Ends the reply for this reason.
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.reply.get_or_insert_default().stop = Some(reason);
        self
    }

    /// Says that the call cost this; otherwise it is estimated.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.reply.get_or_insert_default().usage = Some(usage);
        self
    }

    /// Fails in this way.
    pub fn fail(mut self, kind: ErrorKind) -> Self {
        self.error = Some(WrittenError::new(kind));
        self
    }

    /// Fails in this way after the text, a template, has arrived.
    pub fn fail_after(mut self, kind: ErrorKind, text: impl Into<String>) -> Self {
        self.error = Some(WrittenError { after: Some(text.into().into()), ..WrittenError::new(kind) });
        self
    }

    /// Fails because there were too many requests, and asks for a pause.
    pub fn fail_rate_limit(mut self, retry_after: Duration) -> Self {
        self.error =
            Some(WrittenError { retry_after: Some(retry_after), ..WrittenError::new(ErrorKind::RateLimit) });
        self
    }
}

impl WrittenError {
    pub(super) fn new(kind: ErrorKind) -> Self {
        WrittenError { kind, message: None, status: None, retry_after: None, body: None, after: None }
    }
}
