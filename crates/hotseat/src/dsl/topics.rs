//! Topics, and the graph of those that a conversation goes through.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::{Scope, TopicGraph, Wired};

use super::criterion::Criterion;
use super::handles::Conversation;
use super::matcher::{AboutTurns, Assertion, Wanted, call_tool, claim, not};
use super::orders::checks;
use super::panics;
use super::place::At;
use super::tree::Example;
use super::views::Turn;
use crate::cases::{Following, Topic as Declared, Topics, Trigger as Fires};
use crate::checks::{Check, CheckKind, Native, Pattern, Strength};

/// A topic as it is declared; see [`Group::topic`](super::Group::topic). What is asserted of it is decided when a conversation
/// with a simulated user leaves it, over all turns of the visit.
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
    pub(super) at: At,
    characteristic: Option<String>,
    agent_intent: Option<String>,
    triggers: Vec<(Trigger, At)>,
    asserted: Vec<(Assertion, Strength, At)>,
}

impl Topic {
    pub(super) fn new(name: String, at: At) -> Topic {
        let (triggers, asserted) = (Vec::new(), Vec::new());
        Topic { name, at, characteristic: None, agent_intent: None, triggers, asserted }
    }

    /// What shows that the conversation is in it; the judge reads this where no trigger decides.
    pub fn characteristic(&mut self, text: impl Into<String>) -> &mut Topic {
        self.characteristic = Some(text.into().trim().to_string());
        self
    }

    /// What the agent is to bring about in it.
    pub fn agent_intent(&mut self, text: impl Into<String>) -> &mut Topic {
        self.agent_intent = Some(text.into().trim().to_string());
        self
    }

    /// Shows without a judge that a turn belongs to it. Of several one is enough.
    #[track_caller]
    pub fn trigger(&mut self, trigger: Trigger) -> &mut Topic {
        self.triggers.push((trigger, At::here()));
        self
    }

    /// Measures the turns of each visit.
    #[track_caller]
    pub fn evaluate(&mut self, matcher: impl AboutTurns) -> &mut Topic {
        self.asserts(matcher.of_turns(), Strength::Soft, At::here())
    }

    /// Asserts something of the turns of each visit.
    #[track_caller]
    pub fn expect(&mut self, matcher: impl AboutTurns) -> &mut Topic {
        self.asserts(matcher.of_turns(), Strength::Hard, At::here())
    }

    /// The agent claims nothing of these kinds that no tool supports.
    #[track_caller]
    pub fn forbid_claims(&mut self, kinds: impl super::matcher::Names) -> &mut Topic {
        self.asserts(not(claim(kinds)).of_turns(), Strength::Hard, At::here())
    }

    /// The agent does not call this tool.
    #[track_caller]
    pub fn forbid_tool_call(&mut self, name: impl Into<String>) -> &mut Topic {
        self.asserts(not(call_tool(name)).of_turns(), Strength::Hard, At::here())
    }

    /// Has the judge measure at the end of each visit whether the agent has pursued `agent_intent`.
    #[track_caller]
    pub fn evaluate_intent(&mut self) -> &mut Topic {
        let at = At::here();
        let asserted = match &self.agent_intent {
            Some(text) => super::matcher::intent(text.clone()).of_turns(),
            None => Assertion::wrong("`evaluate_intent` needs `agent_intent` before it"),
        };
        self.asserts(asserted, Strength::Soft, at)
    }

    fn asserts(&mut self, assertion: Assertion, strength: Strength, at: At) -> &mut Topic {
        self.asserted.push((assertion, strength, at));
        self
    }

    /// The topic as sessions know topics.
    ///
    /// # Errors
    /// What makes no sense of it, with its place.
    pub(super) fn declared(&self, example: &Example) -> Result<Declared, (String, At)> {
        let mut all = Vec::new();
        for (assertion, strength, at) in self.asserted.clone() {
            let place = at.place();
            let found = checks(assertion.form, assertion.negated, &place, example);
            let found = found.map_err(|words| (words, at))?;
            all.extend(found.into_iter().map(|check| Check { place: place.clone(), strength, ..check }));
        }
        // What decides comes first, as in case files.
        all.sort_by_key(|check| !check.is_hard());
        let triggers =
            self.triggers.iter().map(|(trigger, at)| trigger.fires(*at).map_err(|words| (words, *at)));
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

/// What shows that a turn belongs to a topic; see [`on_tool_call`], [`on_response_match`], [`on_user_match`],
/// [`after_turns_in`] and [`on_condition`].
#[derive(Clone)]
pub struct Trigger(Shows);

type Condition = dyn Fn(&Turn, &Conversation) -> bool + Send + Sync;

#[derive(Clone)]
enum Shows {
    ToolCall(String, Vec<(String, Wanted)>),
    Response(String),
    User(String),
    TurnsIn(String, usize),
    Condition(Arc<Condition>),
}

/// The agent calls a tool in the turn; [`Trigger::with`] says with which arguments.
///
/// ```
/// use hotseat::dsl::{matches, on_tool_call};
///
/// let trigger = on_tool_call("search_suppliers").with("location", matches("(?i)stuttgart"));
/// ```
pub fn on_tool_call(name: impl Into<String>) -> Trigger {
    Trigger(Shows::ToolCall(name.into(), Vec::new()))
}

/// What the agent says fits a pattern.
///
/// ```
/// use hotseat::dsl::on_response_match;
///
/// let trigger = on_response_match("(?i)would you like to proceed");
/// ```
pub fn on_response_match(pattern: impl Into<String>) -> Trigger {
    Trigger(Shows::Response(pattern.into()))
}

/// What the user says fits a pattern.
///
/// ```
/// use hotseat::dsl::on_user_match;
///
/// let trigger = on_user_match("(?i)yes|confirm|book");
/// ```
pub fn on_user_match(pattern: impl Into<String>) -> Trigger {
    Trigger(Shows::User(pattern.into()))
}

/// So many turns or more belong to a topic, this one included, all visits together.
///
/// ```
/// use hotseat::dsl::after_turns_in;
///
/// let trigger = after_turns_in("gathering_details", 3);
/// ```
pub fn after_turns_in(topic: impl Into<String>, count: usize) -> Trigger {
    Trigger(Shows::TurnsIn(topic.into(), count))
}

/// A function says so, of the turn and the conversation up to it.
///
/// ```
/// use hotseat::dsl::on_condition;
///
/// let trigger = on_condition(|_, conversation| conversation.all_tool_calls().len() >= 2);
/// ```
pub fn on_condition(condition: impl Fn(&Turn, &Conversation) -> bool + Send + Sync + 'static) -> Trigger {
    Trigger(Shows::Condition(Arc::new(condition)))
}

impl Trigger {
    /// For `on_tool_call`: one of the arguments of the call is this.
    #[must_use]
    pub fn with(mut self, argument: impl Into<String>, wanted: impl super::matcher::Argument) -> Trigger {
        if let Shows::ToolCall(_, arguments) = &mut self.0 {
            arguments.push((argument.into(), wanted.wanted()));
        }
        self
    }

    fn fires(&self, at: At) -> Result<Fires, String> {
        let compiled = |written: &String| {
            Pattern::compile(written)
                .map_err(|words| format!("the pattern {written:?} does not compile: {words}"))
        };
        Ok(match &self.0 {
            Shows::ToolCall(name, arguments) if arguments.is_empty() => Fires::ToolCall(name.clone(), None),
            Shows::ToolCall(name, arguments) => {
                let wrong = |(argument, wanted): &(String, Wanted)| {
                    Some(format!("argument `{argument}`: {}", wanted.mistake()?))
                };
                if let Some(wrong) = arguments.iter().find_map(wrong) {
                    return Err(wrong);
                }
                let (name, arguments) = (name.clone(), arguments.clone());
                let words = format!("calls {name} with such arguments");
                condition(words, at, move |scope| {
                    let mut fitting =
                        scope.calls().filter(|(_, call)| *call.name == *name).map(|(_, call)| {
                            let mut wanted = arguments.iter();
                            wanted.try_fold(true, |fits, (key, wanted)| {
                                Ok(fits && wanted.fits(call.arguments.get(key))?)
                            })
                        });
                    fitting.try_fold(false, |any, fits: Result<bool, String>| Ok(any || fits?))
                })
            }
            Shows::Response(pattern) => Fires::Response(compiled(pattern)?),
            Shows::User(pattern) => Fires::User(compiled(pattern)?),
            Shows::TurnsIn(topic, count) => Fires::TurnsIn(topic.clone(), *count),
            Shows::Condition(asked) => {
                let asked = asked.clone();
                condition("a function of the test says so".to_string(), at, move |scope| {
                    let conversation = Conversation::up_to(scope);
                    Ok(conversation.last_turn().is_some_and(|turn| asked(&turn, &conversation)))
                })
            }
        })
    }
}

fn condition(
    words: String,
    at: At,
    fires: impl Fn(Scope<'_>) -> Result<bool, String> + Send + Sync + 'static,
) -> Fires {
    let native = Native::new(words, move |scope: Scope<'_>| {
        let holds = panics::caught(|| fires(scope))??;
        Ok((holds, format!("the function returned {holds}")))
    });
    Fires::Condition(Box::new(Check::new(CheckKind::Native(native), at.place())))
}

/// In which conversations that is decided which topics assert; see [`Group::decide_topics`](super::Group::decide_topics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecideTopics {
    /// In those with a simulated user; in others topics assert nothing.
    Simulated,
    /// In all.
    Always,
}

/// Who says to which topic a turn belongs where no trigger does; see
/// [`Group::classify_topics`](super::Group::classify_topics).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassifyTopics {
    /// A judge.
    Judge,
    /// Nobody: the conversation stays in its topic.
    Triggers,
}

/// Which topics may follow which; made by [`graph!`](crate::graph), or step by step.
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
/// A topic can be declared where it stands in the graph:
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
    topics: Vec<Wiring>,
    /// Those that it declares itself.
    own: Vec<Topic>,
}

/// A topic in a graph, and what may follow it.
#[derive(Debug, Clone)]
pub struct Wiring(Wired);

impl Graph {
    /// A graph in which there is no topic yet.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Puts a topic into it; the first one is where conversations begin.
    pub fn topic(&mut self, name: impl Into<String>) -> &mut Wiring {
        self.topics.push(Wiring(Wired { name: name.into(), ..Wired::default() }));
        let last = self.topics.len() - 1;
        &mut self.topics[last]
    }

    /// Puts a topic into it that is declared here, for this graph alone. One that a group declares under the same name is not
    /// meant then.
    #[track_caller]
    pub fn topic_of(&mut self, name: impl Into<String>, declare: impl FnOnce(&mut Topic)) -> &mut Wiring {
        let name = name.into();
        let mut topic = Topic::new(name.clone(), At::here());
        declare(&mut topic);
        self.own.push(topic);
        self.topic(name)
    }

    /// The graph with its topics as sessions know them.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn declared(
        &self,
        example: &Example,
        following: Following,
        at: At,
    ) -> Result<Topics, Vec<(String, At)>> {
        let wired: Vec<Wired> = self.topics.iter().map(|Wiring(wired)| wired.clone()).collect();
        let find = |name: &str| self.own.iter().chain(&example.topics).find(|topic| topic.name == name);
        let graph = TopicGraph::build(&wired, |name| find(name).is_some()).map_err(|errors| {
            let words = |error: hotseat_trace::GraphError| {
                (format!("{}: {}", error.mistake, error.mistake.help()), at)
            };
            errors.into_iter().map(words).collect::<Vec<_>>()
        })?;
        let mut topics = Vec::new();
        let mut wrong = Vec::new();
        for wired in &wired {
            match find(&wired.name).map(|topic| topic.declared(example)) {
                Some(Ok(topic)) => topics.push(Arc::new(topic)),
                Some(Err(found)) => wrong.push(found),
                None => {}
            }
        }
        for topic in &topics {
            for trigger in &topic.triggers {
                if let Fires::TurnsIn(name, _) = trigger
                    && graph.place(name).is_none()
                {
                    wrong.push((format!("`after_turns_in`: no topic of the graph is called `{name}`"), at));
                }
            }
        }
        match wrong.is_empty() {
            false => Err(wrong),
            true => Ok(Topics { graph: Arc::new(graph), topics, following, place: at.place() }),
        }
    }
}

impl Wiring {
    /// A topic that may follow it. Of several the one that is said first is looked at first.
    pub fn next(&mut self, name: impl Into<String>) -> &mut Wiring {
        self.0.next.push(name.into());
        self
    }

    /// It may follow every other topic, whether these name it or not.
    pub fn from_any(&mut self) -> &mut Wiring {
        self.0.from_any = true;
        self
    }

    /// How many turns there may be in it, all visits together. One more, and the case has failed.
    pub fn max_turns(&mut self, turns: usize) -> &mut Wiring {
        self.0.max_turns = Some(turns);
        self
    }
}

/// A criterion that code decides, as a check of turns.
pub(super) fn by_code(criterion: &Criterion) -> Option<Native> {
    let code = criterion.code.clone()?;
    Some(Native::new(criterion.described(), move |scope: Scope<'_>| {
        panics::caught(|| code.decide(&Conversation::up_to(scope)))
    }))
}

/// Which topics may follow which, for [`Test::expect_conversation_to`](crate::dsl::Test::expect_conversation_to): each topic
/// with the one or those that may follow it, or alone. The first one is where conversations begin.
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
