//! Topics, and the graph of allowed transitions between them.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::{DeclaredTopic, TopicGraph, TurnScope};

use super::assertion_checks::build_checks;
use super::caller_location::CallerLocation;
use super::conversation::Conversation;
use super::criterion::Criteria;
use super::matcher::{Assertion, ExpectedValue, TurnMatcher, call_tool, claim, not};
use super::panics;
use super::views::Turn;
use hotseat_checks::{Check, CheckKind, CheckStrength, Pattern, PatternError, RustCheck, Undecidable};
use hotseat_engine::cases::{CaseTopics, TopicDefinition as Declared, TopicTrigger as Fires};
use hotseat_engine::session::Session;
use hotseat_targets::recorder::SecretRedactor;

/// A declared topic; see [`Group::topic`](super::Group::topic). Its assertions are evaluated over all turns
/// of a visit, when the conversation leaves the topic.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.topic("presenting_results")
///     .characteristic("Presenting venue options")
///     .agent_intent("Help the user understand options")
///     .trigger(on_tool_call("search_suppliers"))
///     .evaluate(satisfy("helpful"))
///     .evaluate(grounded_in(["venues", "pricing"]).from_tools(["search_suppliers"]))
///     .expect(call_tool("search_suppliers"))
///     .forbid_claims(["discounts"]);
/// # }
/// ```
#[derive(Clone)]
pub struct Topic {
    pub(super) name: String,
    pub(super) at: CallerLocation,
    characteristic: Option<String>,
    agent_intent: Option<String>,
    triggers: Vec<(Trigger, CallerLocation)>,
    assertions: Vec<(Assertion, CheckStrength, CallerLocation)>,
}

impl Topic {
    pub(super) fn new(name: String, at: CallerLocation) -> Topic {
        let (triggers, asserted) = (Vec::new(), Vec::new());
        Topic { name, at, characteristic: None, agent_intent: None, triggers, assertions: asserted }
    }

    /// Sets the description by which a judge recognises the topic if no trigger fires.
    pub fn characteristic(&mut self, text: impl Into<String>) -> &mut Topic {
        self.characteristic = Some(text.into().trim().to_string());
        self
    }

    /// Sets the goal of the agent in this topic.
    pub fn agent_intent(&mut self, text: impl Into<String>) -> &mut Topic {
        self.agent_intent = Some(text.into().trim().to_string());
        self
    }

    /// Adds a trigger that assigns a turn to the topic without a judge. One of several triggers is enough.
    #[track_caller]
    pub fn trigger(&mut self, trigger: Trigger) -> &mut Topic {
        self.triggers.push((trigger, CallerLocation::here()));
        self
    }

    /// Adds a soft assertion on the turns of each visit.
    #[track_caller]
    pub fn evaluate(&mut self, matcher: impl TurnMatcher) -> &mut Topic {
        self.push_assertion(matcher.turns_assertion(), CheckStrength::Soft, CallerLocation::here())
    }

    /// Adds a hard assertion on the turns of each visit.
    #[track_caller]
    pub fn expect(&mut self, matcher: impl TurnMatcher) -> &mut Topic {
        self.push_assertion(matcher.turns_assertion(), CheckStrength::Hard, CallerLocation::here())
    }

    /// Adds a hard assertion: the agent makes no claims of these kinds that are unsupported by tool results.
    #[track_caller]
    pub fn forbid_claims(&mut self, kinds: impl super::matcher::IntoStrings) -> &mut Topic {
        self.push_assertion(not(claim(kinds)).turns_assertion(), CheckStrength::Hard, CallerLocation::here())
    }

    /// Adds a hard assertion: the agent does not call this tool.
    #[track_caller]
    pub fn forbid_tool_call(&mut self, name: impl Into<String>) -> &mut Topic {
        self.push_assertion(
            not(call_tool(name)).turns_assertion(),
            CheckStrength::Hard,
            CallerLocation::here(),
        )
    }

    /// Adds a soft assertion: a judge finds that the agent pursued `agent_intent` in each visit.
    #[track_caller]
    pub fn evaluate_intent(&mut self) -> &mut Topic {
        let at = CallerLocation::here();
        let asserted = match &self.agent_intent {
            Some(text) => super::matcher::intent(text.clone()).turns_assertion(),
            None => Assertion::invalid("`evaluate_intent` requires `agent_intent`: set it first"),
        };
        self.push_assertion(asserted, CheckStrength::Soft, at)
    }

    fn push_assertion(
        &mut self,
        assertion: Assertion,
        strength: CheckStrength,
        at: CallerLocation,
    ) -> &mut Topic {
        self.assertions.push((assertion, strength, at));
        self
    }

    /// Converts to a topic of a case. Fails if an assertion or trigger is invalid: the message and its
    /// location.
    pub(super) fn to_case_topic(
        &self,
        criteria: &Criteria,
        redactor: &SecretRedactor,
    ) -> Result<Declared, (String, CallerLocation)> {
        let mut all = Vec::new();
        for (assertion, strength, at) in self.assertions.clone() {
            let place = at.place();
            let found = build_checks(assertion.kind, assertion.negated, &place, criteria, redactor);
            let found = found.map_err(|words| (words, at))?;
            all.extend(found.into_iter().map(|check| Check { place: place.clone(), strength, ..check }));
        }
        // Hard checks come first, as in case files.
        all.sort_by_key(|check| !check.is_hard());
        let triggers = self
            .triggers
            .iter()
            .map(|(trigger, at)| trigger.to_case_trigger(*at).map_err(|error| (error.to_string(), *at)));
        Ok(Declared {
            name: self.name.as_str().into(),
            characteristic: self.characteristic.clone(),
            agent_intent: self.agent_intent.clone(),
            triggers: triggers.collect::<Result<_, _>>()?,
            checks: all,
            turn_checks: Vec::new(),
            place: self.at.place(),
        })
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic {} ({})", self.name, self.at)
    }
}

/// Condition that assigns a turn to a topic; see [`on_tool_call`], [`on_response_match`], [`on_user_match`],
/// [`after_turns_in`] and [`on_condition`].
#[derive(Clone)]
pub struct Trigger(TriggerKind);

type Condition = dyn Fn(&Turn, &Conversation) -> bool + Send + Sync;

#[derive(Clone)]
enum TriggerKind {
    ToolCall(String, Vec<(String, ExpectedValue)>),
    Response(String),
    User(String),
    TurnsIn(String, usize),
    Condition(Arc<Condition>),
    /// A trigger without arguments, which are restricted nevertheless.
    WithoutArguments,
}

/// Fires if the agent calls a tool in the turn; [`Trigger::with`] restricts the arguments.
///
/// ```
/// use hotseat::dsl::{matches, on_tool_call};
///
/// let trigger = on_tool_call("search_suppliers").with("location", matches("(?i)stuttgart"));
/// ```
pub fn on_tool_call(name: impl Into<String>) -> Trigger {
    Trigger(TriggerKind::ToolCall(name.into(), Vec::new()))
}

/// Fires if the response of the agent matches a pattern.
///
/// ```
/// use hotseat::dsl::on_response_match;
///
/// let trigger = on_response_match("(?i)would you like to proceed");
/// ```
pub fn on_response_match(pattern: impl Into<String>) -> Trigger {
    Trigger(TriggerKind::Response(pattern.into()))
}

/// Fires if the user message matches a pattern.
///
/// ```
/// use hotseat::dsl::on_user_match;
///
/// let trigger = on_user_match("(?i)yes|confirm|book");
/// ```
pub fn on_user_match(pattern: impl Into<String>) -> Trigger {
    Trigger(TriggerKind::User(pattern.into()))
}

/// Fires if at least `count` turns, including this one, belong to a topic. Counts all visits.
///
/// ```
/// use hotseat::dsl::after_turns_in;
///
/// let trigger = after_turns_in("gathering_details", 3);
/// ```
pub fn after_turns_in(topic: impl Into<String>, count: usize) -> Trigger {
    Trigger(TriggerKind::TurnsIn(topic.into(), count))
}

/// Fires if a function of the turn and the conversation so far returns true.
///
/// ```
/// use hotseat::dsl::on_condition;
///
/// let trigger = on_condition(|_, conversation| conversation.all_tool_calls().len() >= 2);
/// ```
pub fn on_condition(condition: impl Fn(&Turn, &Conversation) -> bool + Send + Sync + 'static) -> Trigger {
    Trigger(TriggerKind::Condition(Arc::new(condition)))
}

/// Error of a trigger.
#[derive(Debug, thiserror::Error)]
enum TriggerError {
    #[error("the pattern {0:?} does not compile: {1}")]
    Pattern(String, #[source] PatternError),
    #[error("argument `{0}`: {1}")]
    Argument(String, String),
    #[error("`with` restricts arguments of `on_tool_call`; this trigger has none")]
    NoArguments,
}

impl Trigger {
    /// Restricts an argument of an `on_tool_call` trigger.
    #[must_use]
    pub fn with(
        mut self,
        argument: impl Into<String>,
        wanted: impl super::matcher::IntoExpectedValue,
    ) -> Trigger {
        match &mut self.0 {
            TriggerKind::ToolCall(_, arguments) => arguments.push((argument.into(), wanted.into_expected())),
            TriggerKind::Response(_)
            | TriggerKind::User(_)
            | TriggerKind::TurnsIn(..)
            | TriggerKind::Condition(_)
            | TriggerKind::WithoutArguments => self.0 = TriggerKind::WithoutArguments,
        }
        self
    }

    fn to_case_trigger(&self, at: CallerLocation) -> Result<Fires, TriggerError> {
        let compiled = |written: &String| {
            Pattern::compile(written).map_err(|source| TriggerError::Pattern(written.clone(), source))
        };
        Ok(match &self.0 {
            TriggerKind::ToolCall(name, arguments) if arguments.is_empty() => {
                Fires::ToolCall(name.clone(), None, at.place())
            }
            TriggerKind::ToolCall(name, arguments) => {
                let wrong = |(argument, wanted): &(String, ExpectedValue)| {
                    Some(TriggerError::Argument(argument.clone(), wanted.problem()?))
                };
                if let Some(wrong) = arguments.iter().find_map(wrong) {
                    return Err(wrong);
                }
                let (name, arguments) = (name.clone(), arguments.clone());
                let words = format!("calls {name} with matching arguments");
                condition_trigger(words, at, Some(name.clone()), move |scope| {
                    let mut fitting = scope
                        .calls()
                        .filter(|(_, call)| call.is_named(&name) && !call.arguments_broken)
                        .map(|(_, call)| {
                            let mut wanted = arguments.iter();
                            wanted.try_fold(true, |fits, (key, wanted)| {
                                Ok(fits && wanted.is_met_by(call.arguments.get(key))?)
                            })
                        });
                    fitting.try_fold(false, |any, fits: Result<bool, Undecidable>| Ok(any || fits?))
                })
            }
            TriggerKind::Response(pattern) => Fires::Response(compiled(pattern)?),
            TriggerKind::User(pattern) => Fires::User(compiled(pattern)?),
            TriggerKind::WithoutArguments => return Err(TriggerError::NoArguments),
            TriggerKind::TurnsIn(topic, count) => Fires::TurnsIn(topic.clone(), *count),
            TriggerKind::Condition(asked) => {
                let asked = asked.clone();
                condition_trigger("a test function returns true".to_string(), at, None, move |scope| {
                    let conversation = Conversation::up_to(scope);
                    Ok(conversation.last_turn().is_some_and(|turn| asked(&turn, &conversation)))
                })
            }
        })
    }
}

fn condition_trigger(
    words: String,
    at: CallerLocation,
    tool: Option<String>,
    fires: impl Fn(TurnScope<'_>) -> Result<bool, Undecidable> + Send + Sync + 'static,
) -> Fires {
    let native = RustCheck::new(words, move |scope: TurnScope<'_>| {
        let holds = panics::catch(|| fires(scope))??;
        Ok((holds, format!("the function returned {holds}")))
    });
    Fires::Condition(Box::new(Check::new(CheckKind::RustFunction(native), at.place())), tool)
}

/// Selects the conversations that evaluate assertions of topics; see
/// [`Group::decide_topics`](super::Group::decide_topics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecideTopics {
    /// Only conversations with a simulated user.
    Simulated,
    /// All conversations.
    Always,
}

/// Selects how a turn is assigned to a topic if no trigger fires; see
/// [`Group::classify_topics`](super::Group::classify_topics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassifyTopics {
    /// A judge selects the topic.
    Judge,
    /// The conversation stays in its topic.
    Triggers,
}

/// Graph of topics and their allowed transitions, created with [`graph!`](crate::graph) or step by step.
///
/// ```
/// use hotseat::dsl::Graph;
///
/// let mut graph = Graph::new();
/// graph.topic("greeting").next("gathering_details");
/// graph.topic("gathering_details").next("confirming").next("greeting").max_turns(5);
/// graph.topic("confirming");
/// graph.topic("error_recovery").from_any().next("gathering_details");
/// ```
///
/// A topic can be declared in the graph itself:
///
/// ```
/// use hotseat::dsl::{Graph, on_tool_call};
///
/// let mut graph = Graph::new();
/// graph.topic("greeting").next("booking");
/// graph.topic_of("booking", |topic| {
///     topic.characteristic("The room is booked").trigger(on_tool_call("book_room"));
/// });
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    topics: Vec<TopicNode>,
    /// Topics that the graph itself declares.
    own_topics: Vec<Topic>,
}

/// A topic in a graph, with its successors.
#[derive(Debug, Clone)]
pub struct TopicNode(DeclaredTopic);

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a topic. The first one is the initial topic.
    pub fn topic(&mut self, name: impl Into<String>) -> &mut TopicNode {
        self.topics.push(TopicNode(DeclaredTopic { name: name.into().into(), ..DeclaredTopic::default() }));
        let last = self.topics.len() - 1;
        &mut self.topics[last]
    }

    /// Adds a topic and declares it for this graph only. It hides a topic of a group with the same name.
    #[track_caller]
    pub fn topic_of(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Topic)) -> &mut TopicNode {
        let name = name.into();
        let mut topic = Topic::new(name.clone(), CallerLocation::here());
        declare(&mut topic);
        self.own_topics.push(topic);
        self.topic(name)
    }

    /// Converts to the topics of a case. Fails if the graph or a topic is invalid: all messages with their
    /// locations.
    pub(super) fn to_case_topics(
        &self,
        declared: &[Topic],
        criteria: &Criteria,
        session: &Session<'_>,
        at: CallerLocation,
    ) -> Result<CaseTopics, Vec<(String, CallerLocation)>> {
        let wired: Vec<DeclaredTopic> = self.topics.iter().map(|TopicNode(wired)| wired.clone()).collect();
        let find = |name: &str| self.own_topics.iter().chain(declared).find(|topic| topic.name == name);
        let graph = TopicGraph::build(&wired, |name| find(name).is_some()).map_err(|errors| {
            let words =
                |error: hotseat_trace::GraphError| (format!("{}: {}", error.kind, error.kind.help()), at);
            errors.into_iter().map(words).collect::<Vec<_>>()
        })?;
        let mut topics = Vec::new();
        let mut wrong = Vec::new();
        for wired in &wired {
            match find(&wired.name).map(|topic| topic.to_case_topic(criteria, session.redactor())) {
                Some(Ok(topic)) => topics.push(Arc::new(topic)),
                Some(Err(found)) => wrong.push(found),
                None => {}
            }
        }
        for topic in &topics {
            for trigger in &topic.triggers {
                if let Fires::TurnsIn(name, _) = trigger
                    && graph.index_of(name).is_none()
                {
                    wrong.push((format!("`after_turns_in`: no topic of the graph is called `{name}`"), at));
                }
            }
        }
        match wrong.is_empty() {
            false => Err(wrong),
            true => Ok(CaseTopics {
                graph: Arc::new(graph),
                topics,
                settings: session.case().topic_settings,
                place: at.place(),
            }),
        }
    }
}

impl TopicNode {
    /// Adds a successor. Successors are tried in the order in which they were added.
    pub fn next(&mut self, name: impl Into<String>) -> &mut TopicNode {
        self.0.next.push(name.into().into());
        self
    }

    /// Allows transitions from every other topic.
    pub fn from_any(&mut self) -> &mut TopicNode {
        self.0.from_any = true;
        self
    }

    /// Sets the maximum number of turns in this topic, over all visits. The case fails if it is exceeded.
    pub fn max_turns(&mut self, turns: usize) -> &mut TopicNode {
        self.0.max_turns = Some(turns);
        self
    }
}

/// Creates a topic graph for [`Test::expect_conversation_to`](crate::dsl::Test::expect_conversation_to). Each
/// entry is a topic, optionally with one successor or a list of them. The first one is the initial topic.
///
/// ```
/// use hotseat::dsl::graph;
///
/// let graph = graph! {
///     greeting => gathering_details,
///     gathering_details => [presenting_results, greeting],
///     presenting_results,
/// };
/// ```
#[macro_export]
macro_rules! graph {
    (@next $wiring:ident [$($next:ident),* $(,)?]) => {
        $($wiring.next(stringify!($next));)*
    };
    (@next $wiring:ident $next:ident) => {
        $wiring.next(stringify!($next));
    };
    ($($topic:ident $(=> $next:tt)?),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut graph = $crate::dsl::Graph::new();
        $(
            #[allow(unused_variables)]
            let wiring = graph.topic(stringify!($topic));
            $($crate::graph!(@next wiring $next);)?
        )*
        graph
    }};
}
