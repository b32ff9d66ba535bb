//! Decodes JSON that programs pass at run time, using the shapes of case files.

use std::sync::Arc;

use serde_json::Value;

use super::assertions::{AssertionBlock, CheckVocabulary, OWN_ASSERT_KIND};
use super::brief::SimulatorBrief;
use super::case::reading::read_turn;
use super::case::{CaseTurn, TestCase};
use super::condition::{CONDITION, read_condition};
use super::content::read_messages;
use super::shape::{MESSAGE, TURN};
use super::topic_shape::{GRAPH_TOPIC, SHARED, SIMULATE, USER};
use super::topics::{CaseTopics, TopicDefinition, TopicSettings, read_graph, read_topics};
use super::variables::redact_assertions;
use hotseat_checks::{ArgumentCondition, Check, CheckKind};
use hotseat_document::{Diagnostics, Kind, MapView, NodeView, SourceSpan, SourceText, check, json};
use hotseat_targets::message::{ContentPart, ConversationMessage};
use hotseat_targets::recorder::SecretRedactor;

static GRAPH_TOPIC_KIND: Kind = Kind::Shape(&GRAPH_TOPIC);
static TOPICS_KIND: Kind = Kind::Map(&GRAPH_TOPIC_KIND);

/// Errors in what a program passed at run time. The text is one line without locations, which are those of
/// generated JSON.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .0.one_line())]
pub struct ProgramInputError(#[from] Diagnostics);

/// Source name of JSON passed by programs.
const PROGRAM_SOURCE_NAME: &str = "the test";

/// Decodes a turn of a case from JSON, as a turn of a case file. Fails if the JSON is invalid.
pub fn parse_turn(
    value: &Value,
    case: &TestCase,
    redactor: &SecretRedactor,
    place: SourceSpan,
) -> Result<CaseTurn, ProgramInputError> {
    parse_redacted(value, &Kind::Shape(&TURN), redactor, |view, diagnostics| {
        let map = view.map(&TURN)?;
        let options = case.turn_defaults.options.as_ref();
        let mut read = read_turn(&map, &case.turn_assertions, options, diagnostics);
        move_to(&place, &mut read.checks);
        for part in &mut read.content {
            if let ContentPart::Media(media) = part {
                move_place(&place, &mut media.place);
            }
        }
        if let Some(options) = &mut read.options {
            move_place(&place, &mut options.place);
        }
        read.resume.iter_mut().for_each(|answer| move_place(&place, &mut answer.place));
        if let Some(expected) = &mut read.expect_error {
            move_place(&place, &mut expected.place);
        }
        Some(CaseTurn { place, ..read })
    })
}

/// Decodes assertions from JSON, without secrets. Fails if the JSON is invalid.
pub fn parse_assertions(value: &Value, redactor: &SecretRedactor) -> Result<Vec<Check>, ProgramInputError> {
    parse_redacted(value, &OWN_ASSERT_KIND, redactor, |view, diagnostics| {
        Some(AssertionBlock::read_checks(Some(view), diagnostics))
    })
}

/// Negates a typed assertion in JSON. Its decoder refuses a negation that is ambiguous.
pub fn negate_assertion(written: &mut Value) {
    let Value::Object(members) = written else { return };
    match members.get("negate") {
        Some(Value::Bool(true)) => drop(members.shift_remove("negate")),
        Some(Value::Bool(false)) | None => drop(members.insert("negate".to_string(), true.into())),
        // The decoder refuses it.
        Some(_) => {}
    }
}

/// Decodes a condition on an argument from JSON. Fails if the JSON is invalid.
pub fn parse_condition(value: &Value) -> Result<ArgumentCondition, ProgramInputError> {
    parse_kind(value, &Kind::Shape(&CONDITION), read_condition)
}

/// Decodes messages from JSON. Fails if the JSON is invalid.
pub fn parse_messages(value: &Value) -> Result<Vec<ConversationMessage>, ProgramInputError> {
    static MESSAGES: Kind = Kind::NonEmptyList(&Kind::Shape(&MESSAGE));
    parse_kind(value, &MESSAGES, |view, diagnostics| Some(read_messages(view.list()?, diagnostics)))
}

/// Decodes JSON of this kind.
fn parse_kind<T>(
    value: &Value,
    kind: &Kind,
    read: impl FnOnce(NodeView<'_>, &mut Diagnostics) -> Option<T>,
) -> Result<T, ProgramInputError> {
    parse_redacted(value, kind, &SecretRedactor::default(), read)
}

/// Decodes JSON of this kind. Secrets are removed from its assertions.
fn parse_redacted<T>(
    value: &Value,
    kind: &Kind,
    redactor: &SecretRedactor,
    read: impl FnOnce(NodeView<'_>, &mut Diagnostics) -> Option<T>,
) -> Result<T, ProgramInputError> {
    let source = SourceText::new(PROGRAM_SOURCE_NAME, value.to_string(), 1);
    let mut node = json::parse(&source)?;
    redact_assertions(&mut node, kind, redactor);
    let mut diagnostics = Diagnostics::new();
    check(&node, kind, &source, &mut diagnostics);
    if !diagnostics.is_empty() {
        return Err(diagnostics.into());
    }
    match read(NodeView::new(&node, &source), &mut diagnostics) {
        Some(read) if diagnostics.is_empty() => Ok(read),
        _ => Err(diagnostics.into()),
    }
}

/// Decodes topics and a graph from JSON, `{topics, graph}`, in addition to existing topics. `declared_at` returns the
/// position of a topic that is not declared with the graph, at `place`. Fails if the JSON is invalid.
pub fn parse_topics(
    value: &Value,
    above: &[Arc<TopicDefinition>],
    following: TopicSettings,
    redactor: &SecretRedactor,
    place: SourceSpan,
    declared_at: impl Fn(&str) -> Option<SourceSpan>,
) -> Result<CaseTopics, ProgramInputError> {
    parse_redacted(value, &Kind::Shape(&SHARED), redactor, |view, diagnostics| {
        let map = MapView::from_node(view.node, view.source, &SHARED)?;
        let known = read_topics(map.get("topics"), above, diagnostics);
        let mut topics = read_graph(map.get("graph")?, &known, diagnostics)?;
        for topic in topics.topics.iter_mut().filter(|topic| is_generated(&topic.place)) {
            let own_place = declared_at(&topic.name).unwrap_or_else(|| place.clone());
            Arc::make_mut(topic).places_mut().for_each(|found| move_place(&own_place, found));
        }
        Some(CaseTopics { place, settings: following, ..topics })
    })
}

/// Validates a topic that a program declares for a graph. Its criteria must be among `criteria` or in the
/// vocabulary. Fails if the topic is invalid.
pub fn validate_topic(
    name: &str,
    definition: &Value,
    criteria: &[&str],
    vocabulary: &CheckVocabulary,
) -> Result<(), ProgramInputError> {
    let named = serde_json::json!({ name: definition });
    parse_kind(&named, &TOPICS_KIND, |view, diagnostics| {
        for topic in read_topics(Some(view), &[], diagnostics) {
            let checks = topic.checks.iter().chain(&topic.turn_checks);
            let others = checks.filter(|check| match &check.kind {
                CheckKind::CriterionRef(named) => !criteria.contains(&&*named.name),
                _ => false,
            });
            diagnostics.extend(others.filter_map(|check| vocabulary.ensure_known(check).err()));
        }
        Some(())
    })
}

/// Validates shared settings of simulated users. Fails if they are invalid.
pub fn validate_simulated_user(definition: &Value) -> Result<(), ProgramInputError> {
    parse_kind(definition, &Kind::Shape(&USER), |view, diagnostics| {
        SimulatorBrief::read_shared(Some(view), &SimulatorBrief::default(), diagnostics);
        Some(())
    })
}

/// Decodes the brief of a simulated user at this position, merged onto `above` and the settings of its
/// groups, outermost first. Fails if the JSON is invalid.
pub fn parse_brief(
    own: &Value,
    groups: &[Value],
    above: &SimulatorBrief,
    place: &SourceSpan,
) -> Result<SimulatorBrief, ProgramInputError> {
    let mut brief = above.clone();
    for group in groups {
        brief = parse_kind(group, &Kind::Shape(&USER), |view, diagnostics| {
            Some(SimulatorBrief::read_shared(Some(view), &brief, diagnostics))
        })?;
    }
    let mut brief = parse_kind(own, &Kind::Shape(&SIMULATE), |view, diagnostics| {
        SimulatorBrief::read_own(view, &brief, diagnostics)
    })?;
    move_to(place, &mut brief.stop_when);
    for (_, _, said_at) in &mut brief.during_topic {
        move_place(place, said_at);
    }
    Ok(brief)
}

/// Moves checks of a program to the position of the calling code.
fn move_to<'c>(place: &SourceSpan, checks: impl IntoIterator<Item = &'c mut Check>) {
    for check in checks {
        move_place(place, &mut check.place);
    }
}

/// Moves a place within generated JSON; places within files stay.
fn move_place(place: &SourceSpan, said_at: &mut SourceSpan) {
    if is_generated(said_at) {
        *said_at = place.clone();
    }
}

fn is_generated(place: &SourceSpan) -> bool {
    place.file() == PROGRAM_SOURCE_NAME
}
