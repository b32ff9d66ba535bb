//! What programs say while their conversation goes on: it comes as JSON, and is read by the shapes of case files.

use std::sync::Arc;

use serde_json::Value;

use super::block::Block;
use super::brief::Brief;
use super::case::{Turn, turn};
use super::condition::{CONDITION, condition};
use super::content::messages;
use super::criteria::Vocabulary;
use super::shape::{MESSAGE, OWN_ASSERT_KIND, TURN};
use super::topic_shape::{GRAPH_TOPIC, SHARED, SIMULATE, USER};
use super::topics::{Following, Topic, Topics, graph, topics};
use crate::checks::{Check, CheckKind, Condition};
use crate::session::{Message, Part};
use hotseat_document::{Diagnostics, Kind, Map, Place, Source, View, check, json};

static TOPIC_OF_GRAPH: Kind = Kind::Shape(&GRAPH_TOPIC);
static TOPICS: Kind = Kind::Map(&TOPIC_OF_GRAPH);

/// How the text is called that something of a program comes as.
const SAID: &str = "the test";

/// Reads a turn that is not written in a file, but comes as JSON. Beside what it says itself, that is asserted which is
/// of turns that are not written.
///
/// # Errors
/// What is wrong with it, in words.
pub fn turn_in(value: &Value, unwritten: &Turn, place: Place) -> Result<Turn, String> {
    read_in(value, &Kind::Shape(&TURN), |view, mistakes| {
        let map = view.map(&TURN)?;
        let mut read = turn(&map, &Block::default(), unwritten.options.as_ref(), mistakes);
        move_to(&place, &mut read.checks);
        for part in &mut read.content {
            if let Part::Media(media) = part {
                move_place(&place, &mut media.place);
            }
        }
        if let Some(options) = &mut read.options {
            move_place(&place, &mut options.place);
        }
        let checks = unwritten.checks.iter().cloned().chain(read.checks).collect();
        Some(Turn { checks, place, ..read })
    })
}

/// Reads what is asserted where it is not written in a file, but comes as JSON.
///
/// # Errors
/// What is wrong with it, in words.
pub fn assertions_in(value: &Value) -> Result<Vec<Check>, String> {
    read_in(value, &OWN_ASSERT_KIND, |view, mistakes| Some(Block::read(Some(view), mistakes).checks()))
}

/// Reads a condition on an argument of a call, which comes as JSON.
///
/// # Errors
/// What is wrong with it, in words.
pub fn condition_in(value: &Value) -> Result<Condition, String> {
    read_in(value, &Kind::Shape(&CONDITION), condition)
}

/// Reads messages that are not written in a file, but come as JSON.
///
/// # Errors
/// What is wrong with them, in words.
pub fn messages_in(value: &Value) -> Result<Vec<Message>, String> {
    static MESSAGES: Kind = Kind::NonEmptyList(&Kind::Shape(&MESSAGE));
    read_in(value, &MESSAGES, |view, mistakes| Some(messages(view.list()?, mistakes)))
}

/// Reads something of this kind that comes as JSON.
fn read_in<T>(
    value: &Value,
    kind: &Kind,
    read: impl FnOnce(View<'_>, &mut Diagnostics) -> Option<T>,
) -> Result<T, String> {
    let source = Source::new(SAID, value.to_string(), 1);
    let in_words = |mistakes: Diagnostics| {
        let words = mistakes.into_iter().map(|mistake| match mistake.help {
            Some(help) => format!("{} ({help})", mistake.message),
            None => mistake.message,
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let node = json::parse(&source).map_err(in_words)?;
    let mut mistakes = Diagnostics::new();
    check(&node, kind, &source, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(in_words(mistakes));
    }
    match read(View::new(&node, &source), &mut mistakes) {
        Some(read) if mistakes.is_empty() => Ok(read),
        _ => Err(in_words(mistakes)),
    }
}

/// Reads topics and a graph of them, on top of topics that are there already: `{topics, graph}`.
///
/// # Errors
/// What is wrong with them, in words.
pub fn topics_in(
    value: &Value,
    above: &[Arc<Topic>],
    following: Following,
    place: Place,
) -> Result<Topics, String> {
    read_in(value, &Kind::Shape(&SHARED), |view, mistakes| {
        let map = Map::of(view.node, view.source, &SHARED)?;
        let known = topics(map.get("topics"), above, mistakes);
        let mut topics = graph(map.get("graph")?, &known, mistakes)?;
        move_to(&place, topics.asserted_mut());
        Some(Topics { place, following, ..topics })
    })
}

/// Looks whether something is a topic, as a graph may have it that a program declares, and whether the criteria are there
/// that it names: among these names, or in a vocabulary.
///
/// # Errors
/// What is wrong with it, in words.
pub fn topic_is_sound(
    name: &str,
    said: &Value,
    criteria: &[&str],
    vocabulary: &Vocabulary,
) -> Result<(), String> {
    let named = serde_json::json!({ name: said });
    read_in(&named, &TOPICS, |view, mistakes| {
        for topic in topics(Some(view), &[], mistakes) {
            let checks = topic.checks.iter().chain(&topic.turn_checks);
            let others = checks.filter(|check| match &check.kind {
                CheckKind::Named(named) => !criteria.contains(&&*named.name),
                _ => false,
            });
            mistakes.extend(others.filter_map(|check| vocabulary.find(check).err()));
        }
        Some(())
    })
}

/// Looks whether something says who simulated users are.
///
/// # Errors
/// What is wrong with it, in words.
pub fn user_is_sound(said: &Value) -> Result<(), String> {
    read_in(said, &Kind::Shape(&USER), |view, mistakes| {
        Brief::read_shared(Some(view), &Brief::default(), mistakes);
        Some(())
    })
}

/// Reads what a simulated user is told: on top of what is said `above`, what groups say, the outermost first, and what is
/// its own, at this place.
///
/// # Errors
/// What is wrong with it, in words.
pub fn brief_in(own: &Value, groups: &[Value], above: &Brief, place: &Place) -> Result<Brief, String> {
    let mut brief = above.clone();
    for group in groups {
        brief = read_in(group, &Kind::Shape(&USER), |view, mistakes| {
            Some(Brief::read_shared(Some(view), &brief, mistakes))
        })?;
    }
    let mut brief =
        read_in(own, &Kind::Shape(&SIMULATE), |view, mistakes| Brief::read_own(view, &brief, mistakes))?;
    move_to(place, &mut brief.stop_when);
    for (_, _, said_at) in &mut brief.during_topic {
        move_place(place, said_at);
    }
    Ok(brief)
}

/// What a program asserts stands where the program says it.
fn move_to<'c>(place: &Place, checks: impl IntoIterator<Item = &'c mut Check>) {
    for check in checks {
        move_place(place, &mut check.place);
    }
}

/// The text that something of a program comes as is nobody's; what stands in a file stays there.
fn move_place(place: &Place, said_at: &mut Place) {
    if said_at.file() == SAID {
        *said_at = place.clone();
    }
}
