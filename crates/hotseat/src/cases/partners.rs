//! Who goes on with a conversation when its turns are over, as people write it: a simulated user, a person.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map as Members, Value};

use super::assertion::reference;
use super::brief::Brief;
use super::limits::duration;
use super::shape::{INTERACTIVE, SIMULATOR};
use super::variables::mistake;
use crate::checks::Reference;
use crate::session::Asked;
use hotseat_document::{Diagnostics, Map, Place};

/// How long is waited for a person where the case does not say.
const PATIENCE: Duration = Duration::from_secs(300);

/// A simulated user.
#[derive(Debug, Clone)]
pub struct Simulator {
    /// Who simulates; none where the project or the command line says it.
    pub reference: Option<Reference>,
    /// What it is told: `metadata` with `persona` and `goal`, `connector`, and whatever its protocol carries.
    pub options: Members<String, Value>,
    /// How it is told of the conversation.
    pub style: Style,
    /// Where it is written.
    pub place: Place,
    /// What it is told of who it is and what it wants, where it goes on until there is nothing more to say.
    pub brief: Option<Arc<Brief>>,
}

impl Simulator {
    /// The simulated user of a case that has none of its own: who it is stands elsewhere.
    pub fn unnamed(place: Place) -> Simulator {
        Simulator { reference: None, options: Members::new(), style: Style::Message, place, brief: None }
    }
}

/// How a simulated user is told of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As a member of the one message that it gets.
    Message,
    /// As messages that were said before.
    Transcript,
}

/// A person who answers.
#[derive(Debug, Clone)]
pub struct Interactive {
    /// When a person is asked.
    pub asked: Asked,
    /// How long is waited for an answer.
    pub patience: Duration,
    /// Where it is written.
    pub place: Place,
}

impl Interactive {
    /// A person who is asked because the command line says so.
    pub fn asked(asked: Asked, place: Place) -> Interactive {
        Interactive { asked, patience: PATIENCE, place }
    }
}

/// Reads the simulated user of a case, and how many turns it may make the conversation.
pub(super) fn simulator(case: &Map<'_>, mistakes: &mut Diagnostics) -> (Option<Simulator>, Option<usize>) {
    let Some(map) = case.get("simulator").and_then(|view| view.map(&SIMULATOR)) else { return (None, None) };
    let place = case.key_place("simulator").unwrap_or_else(|| map.place());
    let reference = map.get("use").and_then(|view| reference(view, mistakes));
    let mut options = match map.json("options") {
        Some(Value::Object(options)) => options,
        _ => Members::new(),
    };
    if let Some(metadata) = map.json("metadata") {
        if options.contains_key("metadata") {
            let message = "`metadata` stands here and under `options`";
            mistakes.push(mistake(map.key_place("metadata"), message).help("leave one of them out"));
        }
        options.insert("metadata".to_string(), metadata);
    }
    let told = options.get("metadata").and_then(|metadata| metadata.get("max_turns"));
    let max_turns = told.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    if let (Some(told), None | Some(0)) = (told, max_turns) {
        let message = format!("`max_turns` is {told}, and a number from 1 is needed");
        let place = map.place_of("metadata").or_else(|| map.place_of("options"));
        mistakes.push(mistake(place, message));
    }
    let style = match map.text("style") {
        Some("transcript") => Style::Transcript,
        _ => Style::Message,
    };
    (Some(Simulator { reference, options, style, place, brief: None }), max_turns)
}

/// Reads whether a person answers.
pub(super) fn interactive(case: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Interactive> {
    let map = case.get("interactive").and_then(|view| view.map(&INTERACTIVE))?;
    let patience = map.get("timeout").map(|view| {
        let read = duration(view.text().unwrap_or_default());
        if read.is_none() {
            let wrong = mistake(Some(view.place()), "this is not a duration of up to a week");
            mistakes.push(wrong.help("write for instance `500ms`, `30s` or `1m30s`"));
        }
        read.unwrap_or(PATIENCE)
    });
    let enabled = map.bool("enabled") == Some(true);
    enabled.then(|| Interactive {
        patience: patience.unwrap_or(PATIENCE),
        ..Interactive::asked(Asked::WhenAwaited, map.place())
    })
}
