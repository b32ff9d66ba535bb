//! Decodes topics and graphs.

use std::sync::Arc;

use hotseat_trace::{DeclaredTopic, GraphError, TopicGraph};

use super::assertions::{AssertionBlock, CheckVocabulary, into_soft};
use super::patterns::read_pattern;
use super::topic_shape::{GRAPH_ONLY_KEYS, GRAPH_TOPIC, TOPIC, TRIGGER};
use hotseat_checks::{
    AgentIntent, Check, CheckKind, CheckStrength, ExpectedResult, JudgeCriterion, JudgeSettings, JudgedCheck,
    Pattern, ScriptCheck, ScriptInputKind,
};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan, nearest_or};

/// A topic: a phase of a conversation.
#[derive(Debug, Clone)]
pub struct TopicDefinition {
    /// Name.
    pub name: Arc<str>,
    /// Description for the judge that classifies turns.
    pub characteristic: Option<String>,
    /// Intended outcome of the agent in the topic.
    pub agent_intent: Option<String>,
    /// Triggers that assign a turn to the topic without a judge.
    pub triggers: Vec<TopicTrigger>,
    /// Checks of the turns of each visit, hard and informational.
    pub checks: Vec<Check>,
    /// Checks of each of these turns, hard and informational.
    pub turn_checks: Vec<Check>,
    /// Position of the name in the file.
    pub place: SourceSpan,
}

impl TopicDefinition {
    /// True if the topic has checks.
    fn has_checks(&self) -> bool {
        !self.checks.is_empty() || !self.turn_checks.is_empty()
    }

    /// Iterates over the positions of the topic, of its checks and of its triggers.
    pub(super) fn places_mut(&mut self) -> impl Iterator<Item = &mut SourceSpan> {
        let of_triggers = self.triggers.iter_mut().filter_map(|trigger| match trigger {
            TopicTrigger::ToolCall(_, _, place) => Some(place),
            TopicTrigger::Condition(check, _) => Some(&mut check.place),
            TopicTrigger::Response(_) | TopicTrigger::User(_) | TopicTrigger::TurnsIn(..) => None,
        });
        let of_checks = self.checks.iter_mut().chain(&mut self.turn_checks).map(|check| &mut check.place);
        std::iter::once(&mut self.place).chain(of_checks).chain(of_triggers)
    }

    /// Returns diagnostics for unknown criteria in a topic outside a graph. Topics in a graph are validated
    /// with it.
    pub fn unknown_criteria(&self, vocabulary: &CheckVocabulary) -> Diagnostics {
        let checks = self.checks.iter().chain(&self.turn_checks);
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(checks.filter_map(|check| vocabulary.ensure_known(check).err()));
        diagnostics
    }
}

/// A condition that assigns a turn to a topic.
#[derive(Debug, Clone)]
pub enum TopicTrigger {
    /// A tool call, optionally with these arguments, and its position in the source.
    ToolCall(String, Option<ExpectedResult>, SourceSpan),
    /// A pattern for the agent's text.
    Response(Pattern),
    /// A pattern for the user's text.
    User(Pattern),
    /// A number of turns in a topic.
    TurnsIn(String, usize),
    /// A function, and the tool if it only reads the arguments of calls of one.
    Condition(Box<Check>, Option<String>),
}

impl TopicTrigger {
    /// Description of the trigger.
    pub fn describe(&self) -> String {
        match self {
            TopicTrigger::ToolCall(name, None, _) => format!("calls {name}"),
            TopicTrigger::ToolCall(name, Some(_), _) => format!("calls {name} with matching arguments"),
            TopicTrigger::Response(pattern) => format!("the agent says {pattern}"),
            TopicTrigger::User(pattern) => format!("the user says {pattern}"),
            TopicTrigger::TurnsIn(topic, 1) => format!("1 turn in {topic}"),
            TopicTrigger::TurnsIn(topic, count) => format!("{count} turns in {topic}"),
            TopicTrigger::Condition(check, _) => match &check.kind {
                // The description of the check is an expectation; a trigger reports what happened.
                CheckKind::Script(script) if script.text.is_none() => format!("{} passes", script.function),
                _ => check.describe(),
            },
        }
    }
}

/// Settings for tracking the topics of a case, regardless of the origin of its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSettings {
    /// True if a judge classifies turns without a trigger; otherwise the conversation stays in its topic.
    pub asks_judge: bool,
    /// Policy for evaluating the checks of topics.
    pub check_policy: TopicCheckPolicy,
}

/// Conversations in which the checks of topics are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TopicCheckPolicy {
    /// Not set: conversations with a simulated user, and those of programs. Case files whose topics are never
    /// checked get a note.
    #[default]
    Unsaid,
    /// Conversations with a simulated user only.
    Simulated,
    /// All conversations.
    Always,
}

impl TopicSettings {
    pub(super) fn read(map: &MapView<'_>) -> TopicSettings {
        TopicSettings {
            asks_judge: map.text("classify_topics") != Some("triggers"),
            check_policy: match map.text("decide_topics") {
                Some("always") => TopicCheckPolicy::Always,
                Some(_) => TopicCheckPolicy::Simulated,
                None => TopicCheckPolicy::Unsaid,
            },
        }
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        TopicSettings { asks_judge: true, check_policy: TopicCheckPolicy::Unsaid }
    }
}

/// The topics of a conversation and the transitions between them.
#[derive(Debug, Clone)]
pub struct CaseTopics {
    /// Transitions.
    pub graph: Arc<TopicGraph>,
    /// Topics, in the order of the graph.
    pub topics: Vec<Arc<TopicDefinition>>,
    /// Settings for tracking them.
    pub settings: TopicSettings,
    /// Position of the graph in the file.
    pub place: SourceSpan,
}

impl CaseTopics {
    /// Iterates over all checks of the topics, including the functions of their triggers.
    pub fn every_check(&self) -> impl Iterator<Item = &Check> {
        self.topics.iter().flat_map(|topic| {
            let conditions = topic.triggers.iter().filter_map(|trigger| match trigger {
                TopicTrigger::Condition(check, _) => Some(&**check),
                _ => None,
            });
            topic.checks.iter().chain(&topic.turn_checks).chain(conditions)
        })
    }

    /// Tools of the triggers that fire at tool calls, and the positions of these triggers.
    pub fn call_triggers(&self) -> impl Iterator<Item = (&str, &SourceSpan)> {
        self.topics.iter().flat_map(|topic| &topic.triggers).filter_map(|trigger| match trigger {
            TopicTrigger::ToolCall(tool, _, place) => Some((tool.as_str(), place)),
            TopicTrigger::Condition(check, Some(tool)) => Some((tool.as_str(), &check.place)),
            _ => None,
        })
    }

    /// Mutable iterator over all checks of the topics.
    pub fn checks_mut(&mut self) -> impl Iterator<Item = &mut Check> {
        self.topics.iter_mut().flat_map(|topic| {
            let topic = Arc::make_mut(topic);
            topic.checks.iter_mut().chain(&mut topic.turn_checks)
        })
    }

    /// True if the checks of topics are evaluated, as far as this is known in advance. `has_user`: the user is
    /// simulated, or a program writes its texts.
    fn are_checked(&self, has_user: bool) -> bool {
        has_user || self.settings.check_policy == TopicCheckPolicy::Always
    }

    /// True if the topics have checks that are not evaluated, without an explicit setting.
    pub(super) fn has_ignored_checks(&self, has_user: bool) -> bool {
        let unsaid = self.settings.check_policy == TopicCheckPolicy::Unsaid;
        unsaid && !self.are_checked(has_user) && self.topics.iter().any(|topic| topic.has_checks())
    }

    /// True if a hard check of a topic is evaluated.
    pub(super) fn affect_verdict(&self, has_user: bool) -> bool {
        let is_hard =
            |topic: &Arc<TopicDefinition>| topic.checks.iter().chain(&topic.turn_checks).any(Check::is_hard);
        self.are_checked(has_user) && self.topics.iter().any(is_hard)
    }

    /// True if a judge may be needed to classify turns.
    pub fn may_ask_judge(&self) -> bool {
        let has_choice = |place: usize| self.graph.trigger_order(place).candidates().is_some();
        self.settings.asks_judge && (0..self.graph.len()).any(has_choice)
    }

    /// Returns diagnostics for checks that name topics missing from the graph.
    pub fn unknown_topics<'c>(
        topics: Option<&CaseTopics>,
        checks: impl Iterator<Item = &'c Check>,
    ) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        for check in checks {
            if let CheckKind::AllOf(all) = &check.kind {
                diagnostics.extend(CaseTopics::unknown_topics(topics, all.checks.iter()));
            }
            let Some(names) = check.topics() else { continue };
            let Some(topics) = topics else {
                let message = "topics need a `graph`, but none is defined";
                let help = "add a `graph` that defines the transitions between topics";
                diagnostics.push(Diagnostic::new(message).at(check.place.clone()).help(help));
                continue;
            };
            for name in names.iter().filter(|name| topics.graph.index_of(name).is_none()) {
                diagnostics.push(unknown_topic(name, &topics.graph, check.place.clone()));
            }
        }
        diagnostics
    }
}

pub(super) fn unknown_topic(name: &str, graph: &TopicGraph, place: SourceSpan) -> Diagnostic {
    let message = format!("unknown topic `{name}`: it is not in the graph");
    let names = || graph.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let help = nearest_or(name, graph.names(), || format!("there are {}", names()));
    Diagnostic::new(message).at(place).help(help)
}

/// Decodes `topics` in addition to existing ones; the same name replaces.
pub fn read_topics(
    view: Option<NodeView<'_>>,
    above: &[Arc<TopicDefinition>],
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<TopicDefinition>> {
    let mut all = above.to_vec();
    for (name, place, view) in view.and_then(NodeView::entries).into_iter().flatten() {
        let Some(map) = view.map(&TOPIC) else { continue };
        let topic = Arc::new(read_topic(name, place, &map, diagnostics));
        match all.iter_mut().find(|known| known.name == topic.name) {
            Some(known) => *known = topic,
            None => all.push(topic),
        }
    }
    all
}

fn read_topic(
    name: &str,
    place: SourceSpan,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> TopicDefinition {
    let mut checks = AssertionBlock::read_checks(map.get("assert"), diagnostics);
    checks.extend(into_soft(AssertionBlock::read_checks(map.get("evaluate"), diagnostics)));
    let mut turn_checks = AssertionBlock::read_turn_checks(map.get("turn_assert"), diagnostics);
    turn_checks.extend(into_soft(AssertionBlock::read_turn_checks(map.get("turn_evaluate"), diagnostics)));
    let text = |key: &str| map.text(key).map(|text| text.trim().to_string());
    if map.bool("evaluate_intent") == Some(true) {
        let place = map.key_place("evaluate_intent").unwrap_or_else(|| map.place());
        match text("agent_intent") {
            Some(intent) => {
                checks.push(Check { strength: CheckStrength::Soft, ..intent_check(intent, place) })
            }
            None => {
                diagnostics.report(place, "`evaluate_intent` needs an `agent_intent`");
            }
        }
    }
    let triggers = map
        .one_or_many("triggers")
        .filter_map(|view| read_trigger(&view.map(&TRIGGER)?, diagnostics))
        .collect();
    TopicDefinition {
        name: name.into(),
        characteristic: text("characteristic"),
        agent_intent: text("agent_intent"),
        triggers,
        checks,
        turn_checks,
        place,
    }
}

fn read_trigger(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<TopicTrigger> {
    const KINDS: [&str; 5] =
        ["on_tool_call", "on_response_match", "on_user_match", "after_turns_in", "on_condition"];
    let present: Vec<&str> = KINDS.into_iter().filter(|key| map.has(key)).collect();
    let [kind] = present.as_slice() else {
        let message = match present.as_slice() {
            [] => "this trigger never fires".to_string(),
            several => format!("`{}` cannot be combined in one trigger", several.join("` and `")),
        };
        let help = format!(
            "a trigger needs exactly one of `{}`; a list of triggers fires if any of them fires",
            KINDS.join("`, `")
        );
        diagnostics.push(Diagnostic::new(message).at(map.place()).help(help));
        return None;
    };
    for (key, of) in [("with_params", "on_tool_call"), ("count", "after_turns_in")] {
        if map.has(key) && *kind != of {
            diagnostics.report(map.key_place(key), format!("`{key}` requires `{of}`"));
        }
    }
    let place = map.place_near(kind);
    Some(match *kind {
        "on_tool_call" => {
            let arguments = match map.json("with_params").map(|written| ExpectedResult::parse(&written)) {
                None => None,
                Some(Ok(expected)) => Some(expected),
                Some(Err(words)) => {
                    diagnostics.report(map.place_of("with_params"), words);
                    return None;
                }
            };
            TopicTrigger::ToolCall(map.text(kind)?.to_string(), arguments, place)
        }
        "on_response_match" => TopicTrigger::Response(read_pattern(map.get(kind)?, diagnostics)?),
        "on_user_match" => TopicTrigger::User(read_pattern(map.get(kind)?, diagnostics)?),
        "after_turns_in" => {
            let count = map.size("count").unwrap_or(1);
            TopicTrigger::TurnsIn(map.text(kind)?.to_string(), count)
        }
        _ => TopicTrigger::Condition(Box::new(function_check(map.text(kind)?, place)), None),
    })
}

/// Creates a check for the intent of the agent.
fn intent_check(intent: String, place: SourceSpan) -> Check {
    let matter = JudgeCriterion::Intent(AgentIntent { name: None, text: intent });
    Check::new(
        CheckKind::Judged(JudgedCheck { criterion: matter, settings: JudgeSettings::default() }),
        place,
    )
}

/// Creates a check decided by a script function.
pub(super) fn function_check(name: &str, place: SourceSpan) -> Check {
    let options = serde_json::Map::new();
    let scripted = ScriptCheck {
        function: name.into(),
        expected: None,
        options,
        timeout: None,
        input_kind: ScriptInputKind::Answer,
        text: None,
    };
    Check::new(CheckKind::Script(scripted), place)
}

/// Decodes a `graph` of these topics. Returns `None` after reporting an error.
pub fn read_graph(
    view: NodeView<'_>,
    known: &[Arc<TopicDefinition>],
    diagnostics: &mut Diagnostics,
) -> Option<CaseTopics> {
    let mut wired = Vec::new();
    let mut places = Vec::new();
    let mut found: Vec<Option<Arc<TopicDefinition>>> = Vec::new();
    for (name, place, view) in view.entries()? {
        let map = view.map(&GRAPH_TOPIC);
        let next = map.as_ref().map_or(Some(view), |map| map.get("next"));
        let next: Vec<NodeView<'_>> =
            next.filter(|next| !next.is_null()).into_iter().flat_map(NodeView::one_or_many).collect();
        wired.push(DeclaredTopic {
            name: name.into(),
            next: next.iter().filter_map(|next| next.text()).map(Arc::from).collect(),
            from_any: map.as_ref().is_some_and(|map| map.has("from")),
            max_turns: map
                .as_ref()
                .and_then(|map| map.integer("max_turns"))
                .and_then(|n| usize::try_from(n).ok()),
        });
        places.push((place.clone(), next.iter().map(|next| next.place()).collect::<Vec<_>>()));
        let says_more = |view: NodeView<'_>| {
            view.entries().is_some_and(|mut entries| entries.any(|(key, ..)| !GRAPH_ONLY_KEYS.contains(&key)))
        };
        let own = map.filter(|_| says_more(view));
        found.push(match own {
            Some(map) => Some(Arc::new(read_topic(name, place, &map, diagnostics))),
            None => known.iter().find(|topic| &*topic.name == name).cloned(),
        });
    }
    let is_defined = |name: &str| {
        wired.iter().position(|wired| &*wired.name == name).is_some_and(|place| found[place].is_some())
    };
    let graph = match TopicGraph::build(&wired, is_defined) {
        Ok(graph) => graph,
        Err(errors) => {
            for GraphError { kind: wrong, topic, next } in errors {
                let place = match (topic, next) {
                    (Some(topic), Some(next)) => places[topic].1[next].clone(),
                    (Some(topic), None) => places[topic].0.clone(),
                    (None, _) => view.place(),
                };
                diagnostics.push(Diagnostic::new(wrong.to_string()).at(place).help(wrong.help()));
            }
            return None;
        }
    };
    let topics: Vec<Arc<TopicDefinition>> = found.into_iter().flatten().collect();
    for topic in &topics {
        for trigger in &topic.triggers {
            if let TopicTrigger::TurnsIn(name, _) = trigger
                && graph.index_of(name).is_none()
            {
                diagnostics.push(unknown_topic(name, &graph, topic.place.clone()));
            }
        }
    }
    Some(CaseTopics {
        graph: Arc::new(graph),
        topics,
        settings: TopicSettings::default(),
        place: view.place(),
    })
}
