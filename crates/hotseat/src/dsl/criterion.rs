//! Criteria: decided by a judge, or by code.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::handles::Conversation;
use super::place::At;
use super::views::Message;

/// A criterion as it is declared; see [`Group::criterion`](super::Group::criterion).
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.criterion("grounded_pricing", "Prices must come from tool results")
///     .good_example("The venue costs 500 EUR per day.", "It is what the tool returned")
///     .bad_example("It is around 400-600 EUR.", "A vague range that no tool returned")
///     .edge_case("From 500 EUR, depending on your dates.", true, "The right price with a caveat");
///
/// g.criterion("searched", "A search was made").matches(|conversation| conversation.called_tool("search") > 0);
/// # }
/// ```
#[derive(Clone)]
pub struct Criterion {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) at: At,
    good: Vec<Value>,
    bad: Vec<Value>,
    edge: Vec<Value>,
    pub(super) code: Option<Code>,
    /// Whether code decides it twice.
    twice: bool,
}

type OfConversation = dyn Fn(&Conversation) -> bool + Send + Sync;
type OfMessages = dyn Fn(&[Message]) -> bool + Send + Sync;

/// A function that decides a criterion.
#[derive(Clone)]
pub(super) enum Code {
    Conversation(Arc<OfConversation>),
    Messages(Arc<OfMessages>),
}

impl Criterion {
    pub(super) fn new(name: String, text: String, at: At) -> Criterion {
        let (good, bad, edge) = (Vec::new(), Vec::new(), Vec::new());
        Criterion { name, text, at, good, bad, edge, code: None, twice: false }
    }

    /// A response that satisfies it, and why.
    pub fn good_example(&mut self, text: &str, explanation: &str) -> &mut Criterion {
        self.good.push(json!({"text": text, "explanation": explanation}));
        self
    }

    /// A response that does not satisfy it, and why.
    pub fn bad_example(&mut self, text: &str, explanation: &str) -> &mut Criterion {
        self.bad.push(json!({"text": text, "explanation": explanation}));
        self
    }

    /// A response of which it is not plain whether it satisfies it, whether it does, and why.
    pub fn edge_case(&mut self, text: &str, verdict: bool, explanation: &str) -> &mut Criterion {
        self.edge.push(json!({"text": text, "verdict": verdict, "explanation": explanation}));
        self
    }

    /// Code decides instead of a judge: a function of the conversation so far.
    pub fn matches(
        &mut self,
        decide: impl Fn(&Conversation) -> bool + Send + Sync + 'static,
    ) -> &mut Criterion {
        self.decided_by(Code::Conversation(Arc::new(decide)))
    }

    /// Code decides instead of a judge: a function of the messages so far.
    pub fn matches_messages(
        &mut self,
        decide: impl Fn(&[Message]) -> bool + Send + Sync + 'static,
    ) -> &mut Criterion {
        self.decided_by(Code::Messages(Arc::new(decide)))
    }

    fn decided_by(&mut self, code: Code) -> &mut Criterion {
        self.twice |= self.code.is_some();
        self.code = Some(code);
        self
    }

    /// What a case file would say of it; nothing where code decides.
    pub(super) fn written(&self) -> Option<Value> {
        if self.code.is_some() {
            return None;
        }
        let mut written = json!({"description": self.text});
        for (key, examples) in
            [("good_examples", &self.good), ("bad_examples", &self.bad), ("edge_cases", &self.edge)]
        {
            if !examples.is_empty() {
                written[key] = json!(examples);
            }
        }
        Some(written)
    }

    /// What makes no sense of it.
    pub(super) fn mistake(&self) -> Option<String> {
        let name = &self.name;
        let has_examples = !(self.good.is_empty() && self.bad.is_empty() && self.edge.is_empty());
        match () {
            () if self.twice => {
                Some(format!("criterion `{name}`: two functions decide; leave one of them out"))
            }
            () if self.code.is_some() && has_examples => {
                Some(format!("criterion `{name}`: examples are for a judge, and a function decides"))
            }
            () if self.code.is_none() && self.text.trim().is_empty() => {
                Some(format!("criterion `{name}`: nothing says what it is"))
            }
            () => None,
        }
    }

    /// What it asks for, as reports tell it.
    pub(super) fn described(&self) -> String {
        match self.text.trim() {
            "" => format!("satisfies {}", self.name),
            text => format!("satisfies {}: {text}", self.name),
        }
    }
}

impl Code {
    /// Whether a conversation satisfies it, and what was looked at.
    pub(super) fn decide(&self, conversation: &Conversation) -> (bool, String) {
        let holds = match self {
            Code::Conversation(decide) => decide(conversation),
            Code::Messages(decide) => decide(&conversation.messages()),
        };
        (holds, format!("it returned {holds}"))
    }
}

impl fmt::Debug for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Criterion({})", self.name)
    }
}
