//! Faults of a model: calls that fail, arrive late, arrive broken or do not arrive.

use std::fmt;
use std::time::Duration;

use hotseat_serve::{FaultCounters, FaultTrigger};
use hotseat_trace::named_variants;
use serde_json::Value;

use crate::{ModelError, ModelErrorKind, ModelReply, ModelRequest};

use super::Dialect;

/// A rule that breaks calls of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFault {
    /// The calls that get the fault.
    pub trigger: FaultTrigger,
    /// The fault.
    pub kind: FaultKind,
}

named_variants! {
    /// A fault of one call.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum FaultKind {
        /// The answer arrives later.
        Delay(Duration) = "delay",
        /// No answer arrives; the connection stays open until the client closes it.
        Timeout = "timeout",
        /// The provider rejects the call (HTTP 429), and asks for a delay.
        RateLimit {
            /// The delay in the header `retry-after`.
            retry_after: Option<Duration>,
        } = "rate_limit",
        /// The provider is overloaded: HTTP 529 as Anthropic answers, 503 as OpenAI does.
        Overloaded = "overloaded",
        /// The provider answers with an HTTP status.
        Http(u16) = "http",
        /// The reply is empty.
        Empty = "empty",
        /// The answer is no JSON.
        Garbage = "garbage",
        /// The answer ends in its middle, and the connection is closed.
        Truncate = "truncate",
        /// The arguments of the first tool call end in their middle, so they are no JSON. Only replies with tool calls count.
        MalformedArguments = "malformed_arguments",
        /// The connection is closed before the model answers.
        Disconnect = "disconnect",
        /// The model answers, then the connection is closed without an answer.
        LostAnswer = "lost_answer",
    }
}

impl FaultKind {
    /// Returns true if the fault changes the content of a reply, which only models can do: relays and recordings pass bytes.
    pub fn changes_content(&self) -> bool {
        matches!(self, FaultKind::Empty | FaultKind::MalformedArguments)
    }

    /// Returns the error in place of a reply, for faults that need no model.
    pub(super) fn error(&self, dialect: Dialect) -> Option<ModelError> {
        let (kind, status) = match self {
            FaultKind::RateLimit { .. } => (ModelErrorKind::RateLimit, Some(429)),
            FaultKind::Overloaded => {
                (ModelErrorKind::Server, Some(if dialect == Dialect::Messages { 529 } else { 503 }))
            }
            FaultKind::Http(status) => (kind_of_status(*status), Some(*status)),
            FaultKind::Disconnect => (ModelErrorKind::Network, None),
            FaultKind::Timeout => (ModelErrorKind::Timeout, None),
            FaultKind::Delay(_)
            | FaultKind::Empty
            | FaultKind::Garbage
            | FaultKind::Truncate
            | FaultKind::MalformedArguments
            | FaultKind::LostAnswer => return None,
        };
        let mut error = ModelError::new(kind, format!("the test injected a fault: {self}"));
        error.status = status;
        if let FaultKind::RateLimit { retry_after } = self {
            error.retry_after = *retry_after;
        }
        Some(error)
    }

    /// Returns true if the fault needs the whole reply before a piece of it is sent.
    pub(super) fn needs_whole_reply(&self) -> bool {
        match self {
            FaultKind::Empty
            | FaultKind::Garbage
            | FaultKind::Truncate
            | FaultKind::MalformedArguments
            | FaultKind::LostAnswer => true,
            FaultKind::Delay(_)
            | FaultKind::Timeout
            | FaultKind::RateLimit { .. }
            | FaultKind::Overloaded
            | FaultKind::Http(_)
            | FaultKind::Disconnect => false,
        }
    }
}

/// Returns the kind of an error with an HTTP status.
pub(super) fn kind_of_status(status: u16) -> ModelErrorKind {
    match status {
        429 => ModelErrorKind::RateLimit,
        401..=403 => ModelErrorKind::Auth,
        408 => ModelErrorKind::Timeout,
        500.. => ModelErrorKind::Server,
        _ => ModelErrorKind::BadRequest,
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Delay(delay) => write!(f, "delay of {} ms", delay.as_millis()),
            FaultKind::RateLimit { retry_after: Some(delay) } => {
                write!(f, "rate_limit with retry-after of {} ms", delay.as_millis())
            }
            FaultKind::Http(status) => write!(f, "http {status}"),
            kind => f.write_str(kind.name()),
        }
    }
}

/// State of the fault rules of one model in one conversation.
pub(super) struct FaultState {
    rules: Vec<ModelFault>,
    counters: FaultCounters,
}

impl FaultState {
    pub(super) fn new(rules: Vec<ModelFault>) -> FaultState {
        FaultState { counters: FaultCounters::new(rules.len()), rules }
    }

    /// Counts a call for the rules that need no reply, and returns the first one that selects it.
    pub(super) fn select_for_request(&self, request: &ModelRequest) -> Option<(usize, FaultKind)> {
        self.select(request, |kind| *kind != FaultKind::MalformedArguments)
    }

    /// Counts a relayed or replayed call for the rules that do not change the content of replies, and returns the first one
    /// that selects it.
    pub(super) fn select_for_exchange(&self, request: &ModelRequest) -> Option<(usize, FaultKind)> {
        self.select(request, |kind| !kind.changes_content())
    }

    /// Counts a reply for the rules about replies with tool calls, and returns the first one that selects it.
    pub(super) fn select_for_reply(
        &self,
        request: &ModelRequest,
        reply: &ModelReply,
    ) -> Option<(usize, FaultKind)> {
        if reply.tool_calls.is_empty() {
            return None;
        }
        self.select(request, |kind| *kind == FaultKind::MalformedArguments)
    }

    /// Returns true if a fault may need the whole reply before a piece of it is sent.
    pub(super) fn change_replies(&self) -> bool {
        self.rules.iter().any(|rule| rule.kind == FaultKind::MalformedArguments)
    }

    fn select(
        &self,
        request: &ModelRequest,
        is_counted: impl Fn(&FaultKind) -> bool,
    ) -> Option<(usize, FaultKind)> {
        let counted = self.rules.iter().enumerate().filter(|(_, rule)| is_counted(&rule.kind));
        let counted = counted.map(|(index, rule)| (index, rule.trigger));
        let rule = self.counters.select(counted, |_| true, || digest(request))?;
        Some((rule, self.rules[rule].kind.clone()))
    }
}

/// Identifies the content of a request: calls with equal content are counted together, at any position.
fn digest(request: &ModelRequest) -> String {
    // A request contains only text, numbers and JSON, so serialisation cannot fail.
    let mut value = serde_json::to_value(request).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.shift_remove("position");
    }
    value.sort_all_objects();
    let hash = value.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
