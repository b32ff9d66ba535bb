//! Topics and graphs, as people write them.

use std::sync::Arc;

use hotseat_trace::{GraphError, TopicGraph, Wired};

use super::block::{Block, pattern};
use super::case::Case;
use super::criteria::Vocabulary;
use super::topic_shape::{GRAPH_TOPIC, TOPIC, TRIGGER, WIRING};
use super::variables::mistake;
use crate::checks::{
    Check, CheckKind, Expected, Given, Intent, Judged, Judging, Matter, Pattern, Scripted, Strength,
};
use hotseat_document::{Diagnostic, Diagnostics, Map, Place, View, nearest};

/// A phase of a conversation.
#[derive(Debug, Clone)]
pub struct Topic {
    /// Its name.
    pub name: Arc<str>,
    /// What shows that the conversation is in it.
    pub characteristic: Option<String>,
    /// What the agent is to bring about in it.
    pub agent_intent: Option<String>,
    /// What shows without a judge that a turn belongs to it.
    pub triggers: Vec<Trigger>,
    /// What is asserted and measured of the turns of each visit.
    pub checks: Vec<Check>,
    /// What is asserted and measured of each of these turns alone.
    pub turn_checks: Vec<Check>,
    /// Where its name is written.
    pub place: Place,
}

impl Topic {
    /// Whether it asserts or measures anything.
    pub fn asserts(&self) -> bool {
        !self.checks.is_empty() || !self.turn_checks.is_empty()
    }

    /// What is wrong with the names of criteria in a topic that no graph has: what a graph has is looked at with it.
    pub fn unknown_criteria(&self, vocabulary: &Vocabulary) -> Diagnostics {
        let checks = self.checks.iter().chain(&self.turn_checks);
        let mut mistakes = Diagnostics::new();
        mistakes.extend(checks.filter_map(|check| vocabulary.find(check).err()));
        mistakes
    }
}

/// What shows that a turn belongs to a topic.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// A tool is called, with these arguments if any are given.
    ToolCall(String, Option<Expected>),
    /// What the agent says fits.
    Response(Pattern),
    /// What the user says fits.
    User(Pattern),
    /// So many turns belong to a topic.
    TurnsIn(String, usize),
    /// A function of a script says so.
    Condition(Box<Check>),
}

impl Trigger {
    /// What fires, in words.
    pub fn describe(&self) -> String {
        match self {
            Trigger::ToolCall(name, None) => format!("calls {name}"),
            Trigger::ToolCall(name, Some(_)) => format!("calls {name} with such arguments"),
            Trigger::Response(pattern) => format!("the agent says {pattern}"),
            Trigger::User(pattern) => format!("the user says {pattern}"),
            Trigger::TurnsIn(topic, 1) => format!("1 turn in {topic}"),
            Trigger::TurnsIn(topic, count) => format!("{count} turns in {topic}"),
            Trigger::Condition(check) => check.describe(),
        }
    }
}

/// How the topics of a case are followed, whoever declares their graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Following {
    /// Whether a judge is asked where no trigger decides; otherwise the conversation stays in its topic.
    pub asks_judge: bool,
    /// In which conversations that is decided which topics assert.
    pub decided: TopicsDecided,
}

/// In which conversations that is decided which topics assert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TopicsDecided {
    /// In those with a simulated user, and in all that a program holds. A case file is told where that decides nothing.
    #[default]
    Unsaid,
    /// In those with a simulated user, and in others they assert nothing.
    Simulated,
    /// In all.
    Always,
}

impl Following {
    pub(super) fn read(map: &Map<'_>) -> Following {
        Following {
            asks_judge: map.text("classify_topics") != Some("triggers"),
            decided: match map.text("decide_topics") {
                Some("always") => TopicsDecided::Always,
                Some(_) => TopicsDecided::Simulated,
                None => TopicsDecided::Unsaid,
            },
        }
    }
}

impl Default for Following {
    fn default() -> Self {
        Following { asks_judge: true, decided: TopicsDecided::Unsaid }
    }
}

/// The topics of a conversation, and which may follow which.
#[derive(Debug, Clone)]
pub struct Topics {
    /// Which may follow which.
    pub graph: Arc<TopicGraph>,
    /// The topics, in the order of the graph.
    pub topics: Vec<Arc<Topic>>,
    /// How they are followed.
    pub following: Following,
    /// Where the graph is written.
    pub place: Place,
}

impl Topics {
    /// Everything that is asserted and measured in the topics, and the functions that their triggers ask.
    pub fn every_check(&self) -> impl Iterator<Item = &Check> {
        self.topics.iter().flat_map(|topic| {
            let conditions = topic.triggers.iter().filter_map(|trigger| match trigger {
                Trigger::Condition(check) => Some(&**check),
                _ => None,
            });
            topic.checks.iter().chain(&topic.turn_checks).chain(conditions)
        })
    }

    /// Everything that is asserted and measured in the topics, to be changed.
    pub fn asserted_mut(&mut self) -> impl Iterator<Item = &mut Check> {
        self.topics.iter_mut().flat_map(|topic| {
            let topic = Arc::make_mut(topic);
            topic.checks.iter_mut().chain(&mut topic.turn_checks)
        })
    }

    /// Whether what they assert is decided in a case, as far as that is known before it is held.
    fn is_decided(&self, case: &Case) -> bool {
        self.following.decided == TopicsDecided::Always || case.simulator.is_some() || case.body.is_some()
    }

    /// Whether they assert something that is not decided in a case, and nobody has said that it need not be.
    pub fn is_mute(&self, case: &Case) -> bool {
        let unsaid = self.following.decided == TopicsDecided::Unsaid;
        unsaid && !self.is_decided(case) && self.topics.iter().any(|topic| topic.asserts())
    }

    /// Whether something that they assert decides a case.
    pub fn decide(&self, case: &Case) -> bool {
        let is_hard = |topic: &Arc<Topic>| topic.checks.iter().chain(&topic.turn_checks).any(Check::is_hard);
        self.is_decided(case) && self.topics.iter().any(is_hard)
    }

    /// Whether a judge may have to say to which topic a turn belongs.
    pub fn may_ask_judge(&self) -> bool {
        let has_choice = |place: usize| self.graph.precedence(place).choice().is_some();
        self.following.asks_judge && (0..self.graph.len()).any(has_choice)
    }

    /// What is wrong with checks that name topics that the graph does not have.
    pub fn unknown<'c>(topics: Option<&Topics>, checks: impl Iterator<Item = &'c Check>) -> Diagnostics {
        let mut mistakes = Diagnostics::new();
        for check in checks {
            if let CheckKind::AllOf(all) = &check.kind {
                mistakes.extend(Topics::unknown(topics, all.checks.iter()));
            }
            let Some(names) = check.topics() else { continue };
            let Some(topics) = topics else {
                let message = "no topics are followed here: there is no `graph`";
                let help = "write a `graph` that says which topics may follow which";
                mistakes.push(Diagnostic::new(message).at(check.place.clone()).help(help));
                continue;
            };
            for name in names.iter().filter(|name| topics.graph.place(name).is_none()) {
                mistakes.push(no_topic(name, &topics.graph, check.place.clone()));
            }
        }
        mistakes
    }
}

pub(super) fn no_topic(name: &str, graph: &TopicGraph, place: Place) -> Diagnostic {
    let message = format!("no topic of the graph is called `{name}`");
    let help = match nearest(name, graph.names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "there are {}",
            graph.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    Diagnostic::new(message).at(place).help(help)
}

/// Reads `topics`, on top of those that are there already: the same name replaces.
pub fn topics(view: Option<View<'_>>, above: &[Arc<Topic>], mistakes: &mut Diagnostics) -> Vec<Arc<Topic>> {
    let mut all = above.to_vec();
    for (name, place, view) in view.and_then(View::entries).into_iter().flatten() {
        let Some(map) = view.map(&TOPIC) else { continue };
        let topic = Arc::new(topic(name, place, &map, mistakes));
        match all.iter_mut().find(|known| known.name == topic.name) {
            Some(known) => *known = topic,
            None => all.push(topic),
        }
    }
    all
}

fn topic(name: &str, place: Place, map: &Map<'_>, mistakes: &mut Diagnostics) -> Topic {
    let mut checks = |hard: &str, soft: &str| {
        let mut checks = Block::read(map.get(hard), mistakes).checks();
        checks.extend(Block::read(map.get(soft), mistakes).soft_checks());
        checks
    };
    let (mut checks, turn_checks) = (checks("assert", "evaluate"), checks("turn_assert", "turn_evaluate"));
    let text = |key: &str| map.text(key).map(|text| text.trim().to_string());
    if map.bool("evaluate_intent") == Some(true) {
        let place = map.key_place("evaluate_intent").unwrap_or_else(|| map.place());
        match text("agent_intent") {
            Some(intent) => checks.push(Check { strength: Strength::Soft, ..after(intent, place) }),
            None => {
                let message = "`evaluate_intent` wants an `agent_intent` to measure";
                mistakes.push(mistake(Some(place), message));
            }
        }
    }
    let triggers = map.get("triggers").into_iter().flat_map(View::one_or_many);
    let triggers = triggers.filter_map(|view| trigger(&view.map(&TRIGGER)?, mistakes)).collect();
    Topic {
        name: name.into(),
        characteristic: text("characteristic"),
        agent_intent: text("agent_intent"),
        triggers,
        checks,
        turn_checks,
        place,
    }
}

fn trigger(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Trigger> {
    const KINDS: [&str; 5] =
        ["on_tool_call", "on_response_match", "on_user_match", "after_turns_in", "on_condition"];
    let given: Vec<&str> = KINDS.into_iter().filter(|key| map.has(key)).collect();
    let [kind] = given.as_slice() else {
        let message = match given.as_slice() {
            [] => "this trigger never fires".to_string(),
            several => format!("`{}` are triggers of their own", several.join("` and `")),
        };
        let help = format!("a trigger has one of `{}`", KINDS.join("`, `"));
        mistakes.push(mistake(Some(map.place()), message).help(help));
        return None;
    };
    for (key, of) in [("with_params", "on_tool_call"), ("count", "after_turns_in")] {
        if map.has(key) && *kind != of {
            mistakes.push(mistake(map.key_place(key), format!("`{key}` goes with `{of}`")));
        }
    }
    let place = map.place_of(kind).unwrap_or_else(|| map.place());
    Some(match *kind {
        "on_tool_call" => {
            let arguments = match map.json("with_params").map(|written| Expected::read(&written)) {
                None => None,
                Some(Ok(expected)) => Some(expected),
                Some(Err(words)) => {
                    mistakes.push(mistake(map.place_of("with_params"), words));
                    return None;
                }
            };
            Trigger::ToolCall(map.text(kind)?.to_string(), arguments)
        }
        "on_response_match" => Trigger::Response(pattern(map.get(kind)?, mistakes)?),
        "on_user_match" => Trigger::User(pattern(map.get(kind)?, mistakes)?),
        "after_turns_in" => {
            let count = map.integer("count").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
            Trigger::TurnsIn(map.text(kind)?.to_string(), count)
        }
        _ => Trigger::Condition(Box::new(function(map.text(kind)?, place))),
    })
}

/// A check that the agent is after something.
fn after(intent: String, place: Place) -> Check {
    let matter = Matter::Intent(Intent { name: None, text: intent });
    Check::new(CheckKind::Judged(Judged { matter, judging: Judging::default() }), place)
}

/// A check that a function of a script decides.
pub(super) fn function(name: &str, place: Place) -> Check {
    let options = serde_json::Map::new();
    let scripted = Scripted {
        function: name.to_string(),
        expected: None,
        options,
        timeout: None,
        given: Given::Answer,
        text: None,
    };
    Check::new(CheckKind::Scripted(scripted), place)
}

/// Reads a `graph` of these topics. None where something is wrong with it, which is said then.
pub fn graph(view: View<'_>, known: &[Arc<Topic>], mistakes: &mut Diagnostics) -> Option<Topics> {
    let mut wired = Vec::new();
    let mut places = Vec::new();
    let mut found: Vec<Option<Arc<Topic>>> = Vec::new();
    for (name, place, view) in view.entries()? {
        let map = view.map(&GRAPH_TOPIC);
        let next = map.as_ref().map_or(Some(view), |map| map.get("next"));
        let next: Vec<View<'_>> =
            next.filter(|next| !next.is_null()).into_iter().flat_map(View::one_or_many).collect();
        wired.push(Wired {
            name: name.to_string(),
            next: next.iter().filter_map(|next| next.text()).map(str::to_string).collect(),
            from_any: map.as_ref().is_some_and(|map| map.has("from")),
            max_turns: map
                .as_ref()
                .and_then(|map| map.integer("max_turns"))
                .and_then(|n| usize::try_from(n).ok()),
        });
        places.push((place.clone(), next.iter().map(|next| next.place()).collect::<Vec<_>>()));
        let says_more = |view: View<'_>| {
            view.entries().is_some_and(|mut entries| entries.any(|(key, ..)| !WIRING.contains(&key)))
        };
        let own = map.filter(|_| says_more(view));
        found.push(match own {
            Some(map) => Some(Arc::new(topic(name, place, &map, mistakes))),
            None => known.iter().find(|topic| &*topic.name == name).cloned(),
        });
    }
    let is_defined = |name: &str| {
        wired.iter().position(|wired| wired.name == name).is_some_and(|place| found[place].is_some())
    };
    let graph = match TopicGraph::build(&wired, is_defined) {
        Ok(graph) => graph,
        Err(errors) => {
            for GraphError { mistake: wrong, topic, next } in errors {
                let place = match (topic, next) {
                    (Some(topic), Some(next)) => places[topic].1[next].clone(),
                    (Some(topic), None) => places[topic].0.clone(),
                    (None, _) => view.place(),
                };
                mistakes.push(Diagnostic::new(wrong.to_string()).at(place).help(wrong.help()));
            }
            return None;
        }
    };
    let topics: Vec<Arc<Topic>> = found.into_iter().flatten().collect();
    for topic in &topics {
        for trigger in &topic.triggers {
            if let Trigger::TurnsIn(name, _) = trigger
                && graph.place(name).is_none()
            {
                mistakes.push(no_topic(name, &graph, topic.place.clone()));
            }
        }
    }
    Some(Topics { graph: Arc::new(graph), topics, following: Following::default(), place: view.place() })
}
