//! Criteria, evaluated by a judge or by a function.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use hotseat_checks::RustCheck;
use hotseat_trace::TurnScope;
use serde_json::{Value, json};

use super::caller_location::CallerLocation;
use super::conversation::Conversation;
use super::panics;
use super::views::Message;

/// A declared criterion; see [`Group::criterion`](super::Group::criterion).
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
    text: String,
    pub(super) at: CallerLocation,
    good_examples: Vec<Value>,
    bad_examples: Vec<Value>,
    edge_cases: Vec<Value>,
    function: Option<CriterionFunction>,
    /// True if two functions were set, which is an error.
    has_two_functions: bool,
}

/// Declared criteria by name.
pub(super) type Criteria = BTreeMap<String, Criterion>;

type ConversationPredicate = dyn Fn(&Conversation) -> bool + Send + Sync;
type MessagesPredicate = dyn Fn(&[Message]) -> bool + Send + Sync;

/// A function that evaluates a criterion.
#[derive(Clone)]
enum CriterionFunction {
    Conversation(Arc<ConversationPredicate>),
    Messages(Arc<MessagesPredicate>),
}

impl Criterion {
    pub(super) fn new(name: String, text: String, at: CallerLocation) -> Criterion {
        let (good, bad, edge) = (Vec::new(), Vec::new(), Vec::new());
        Criterion {
            name,
            text,
            at,
            good_examples: good,
            bad_examples: bad,
            edge_cases: edge,
            function: None,
            has_two_functions: false,
        }
    }

    /// Adds a response that satisfies the criterion, with the reason.
    pub fn good_example(&mut self, text: &str, explanation: &str) -> &mut Criterion {
        self.good_examples.push(json!({"text": text, "explanation": explanation}));
        self
    }

    /// Adds a response that does not satisfy the criterion, with the reason.
    pub fn bad_example(&mut self, text: &str, explanation: &str) -> &mut Criterion {
        self.bad_examples.push(json!({"text": text, "explanation": explanation}));
        self
    }

    /// Adds a borderline response with its verdict and the reason.
    pub fn edge_case(&mut self, text: &str, verdict: bool, explanation: &str) -> &mut Criterion {
        self.edge_cases.push(json!({"text": text, "verdict": verdict, "explanation": explanation}));
        self
    }

    /// Evaluates the criterion with a function of the conversation so far, instead of a judge.
    pub fn matches(
        &mut self,
        decide: impl Fn(&Conversation) -> bool + Send + Sync + 'static,
    ) -> &mut Criterion {
        self.set_function(CriterionFunction::Conversation(Arc::new(decide)))
    }

    /// Evaluates the criterion with a function of the messages so far, instead of a judge.
    pub fn matches_messages(
        &mut self,
        decide: impl Fn(&[Message]) -> bool + Send + Sync + 'static,
    ) -> &mut Criterion {
        self.set_function(CriterionFunction::Messages(Arc::new(decide)))
    }

    fn set_function(&mut self, code: CriterionFunction) -> &mut Criterion {
        self.has_two_functions |= self.function.is_some();
        self.function = Some(code);
        self
    }

    /// Returns the criterion in the format of case files; none if a function evaluates it.
    pub(super) fn to_json(&self) -> Option<Value> {
        if self.function.is_some() {
            return None;
        }
        let mut written = json!({"description": self.text});
        for (key, examples) in [
            ("good_examples", &self.good_examples),
            ("bad_examples", &self.bad_examples),
            ("edge_cases", &self.edge_cases),
        ] {
            if !examples.is_empty() {
                written[key] = json!(examples);
            }
        }
        Some(written)
    }

    /// Returns the error in the declaration, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let name = &self.name;
        let has_examples =
            !(self.good_examples.is_empty() && self.bad_examples.is_empty() && self.edge_cases.is_empty());
        match () {
            () if self.has_two_functions => {
                Some(format!("criterion `{name}`: two functions are set; remove one of them"))
            }
            () if self.function.is_some() && has_examples => Some(format!(
                "criterion `{name}`: examples are for a judge, but a function evaluates the criterion"
            )),
            () if self.function.is_none() && self.text.trim().is_empty() => {
                Some(format!("criterion `{name}`: the description is empty"))
            }
            () => None,
        }
    }

    /// Returns the check that calls the function; none if a judge evaluates the criterion.
    pub(super) fn function_check(&self) -> Option<RustCheck> {
        let function = self.function.clone()?;
        Some(RustCheck::new(self.description(), move |scope: TurnScope<'_>| {
            Ok(panics::catch(|| function.evaluate(&Conversation::up_to(scope)))?)
        }))
    }

    /// Returns the description that reports show.
    fn description(&self) -> String {
        match self.text.trim() {
            "" => format!("the agent to satisfy {}", self.name),
            text => format!("the agent to satisfy {}: {text}", self.name),
        }
    }
}

impl CriterionFunction {
    /// Evaluates the criterion. Returns the result and a text that explains it.
    fn evaluate(&self, conversation: &Conversation) -> (bool, String) {
        let holds = match self {
            CriterionFunction::Conversation(decide) => decide(conversation),
            CriterionFunction::Messages(decide) => decide(&conversation.messages()),
        };
        (holds, format!("the function returned {holds}"))
    }
}

impl fmt::Debug for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Criterion({})", self.name)
    }
}
