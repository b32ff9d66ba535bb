//! Reads recordings and reports all errors with their locations.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Kind, MapView, NodeView, SourceText, check, json};
use hotseat_trace::Payload;
use serde_json::Value;

use super::events::{EVENT, error_at};
use super::shape::{RECORDING, TURN};
use super::{AgentRecording, RecordedEvent, RecordedEventKind, RecordedTurn};

/// Reason why a recording cannot be read.
#[derive(Debug)]
pub enum ReadRecordingError {
    /// The file does not exist.
    Missing,
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The file is not a valid recording.
    Invalid(Diagnostics),
}

/// Reads a recording. `shown` is the display path. Fails if the file does not exist or is invalid.
pub fn read(path: &Path, shown: &str) -> Result<AgentRecording, ReadRecordingError> {
    let text = hotseat_document::read_text_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadRecordingError::Missing,
        _ => ReadRecordingError::Unreadable(error),
    })?;
    let source = SourceText::new(shown, text, 1);
    let node = json::parse(&source).map_err(ReadRecordingError::Invalid)?;
    if let Some((version, number)) =
        node.get("version").and_then(|version| Some((version, version.to_json().as_u64()?)))
        && number > 1
    {
        let message = format!("this recording has version {number}, and this Hotseat reads version 1");
        let help = "update Hotseat, or record the case again with `hotseat test --record FOLDER`";
        let newer = Diagnostic::new(message).at(version.place(&source)).help(help);
        return Err(ReadRecordingError::Invalid(newer.into()));
    }
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&RECORDING), &source, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(ReadRecordingError::Invalid(mistakes));
    }
    let map = MapView::from_node(&node, &source, &RECORDING).expect("the shape has been validated");
    let text = |key: &str| map.text(key).map(str::to_string);
    let mut known = KnownIds::default();
    let turns = map.maps("turns", &TURN);
    let recording = AgentRecording {
        suite: text("suite"),
        case: text("case").unwrap_or_default(),
        agent: text("agent"),
        recorded_at: text("recorded_at"),
        hides_calls: map.bool("hides_calls").unwrap_or(false),
        secrets: read_secrets(&map),
        turns: turns.map(|turn| read_turn(&turn, &mut known, &mut mistakes)).collect(),
    };
    if mistakes.is_empty() { Ok(recording) } else { Err(ReadRecordingError::Invalid(mistakes)) }
}

/// Reads the digests of the replaced secrets.
fn read_secrets(map: &MapView<'_>) -> BTreeMap<String, String> {
    let entries = map.get("secrets").and_then(NodeView::entries).into_iter().flatten();
    entries.filter_map(|(name, _, digest)| Some((name.to_string(), digest.text()?.to_string()))).collect()
}

/// Ids of calls and interrupts that later events may refer to.
#[derive(Default)]
struct KnownIds {
    calls: HashSet<String>,
    interrupts: HashSet<String>,
}

fn read_turn(map: &MapView<'_>, known: &mut KnownIds, mistakes: &mut Diagnostics) -> RecordedTurn {
    let mut turn = RecordedTurn {
        user: map.text("user").unwrap_or_default().to_string(),
        attachments: map.texts("attachments").map(str::to_string).collect(),
        duration: time(map.get("duration_ms"), mistakes),
        events: Vec::new(),
        unfinished: map.text("unfinished").map(str::to_string),
        trailing_error: map.text("trailing_error").map(str::to_string),
        place: Some(map.place()),
    };
    for view in map.items("events") {
        let Some(event) = view.tagged(&EVENT) else { continue };
        if matches!(turn.events.last(), Some(RecordedEvent { kind: RecordedEventKind::Error { .. }, .. })) {
            mistakes.push(error_at(view, "an `error` must be the last event of its turn"));
        }
        if let Some(event) = read_event(&event, known, mistakes) {
            turn.events.push(event);
        }
    }
    let times = turn.events.iter().filter_map(|event| Some((event.at?, event)));
    let mut last = Duration::ZERO;
    for (at, event) in times {
        if at < last || turn.duration.is_some_and(|duration| at > duration) {
            let message = "this time is before the previous event, or after the end of the turn";
            mistakes.extend(event.place.clone().map(|place| Diagnostic::new(message).at(place)));
        }
        last = at;
    }
    if map.list("events").is_none_or(|events| events.len() == 0) && turn.unfinished.is_none() {
        let message = "this turn has no events; a completed turn needs at least one";
        mistakes.report(map.place_near("events"), message);
    }
    turn
}

fn read_event(map: &MapView<'_>, known: &mut KnownIds, mistakes: &mut Diagnostics) -> Option<RecordedEvent> {
    let at = time(map.get("at_ms"), mistakes);
    let mut optional_time = |key: &str| {
        let is_known = map.shape().field(key).is_some();
        if is_known { time(map.get(key), mistakes) } else { None }
    };
    let (started, ended) = (optional_time("started_ms"), optional_time("ended_ms"));
    if let (Some(at), Some(started), Some(place)) = (at, started, map_place(map, "started_ms"))
        && started > at
    {
        mistakes.report(place, "the start time is after the time of the event");
    }
    if let (Some(started), Some(ended), Some(place)) = (started.or(at), ended, map_place(map, "ended_ms"))
        && ended < started
    {
        mistakes.report(place, "the end time is before the start time");
    }
    check_event(map, known, mistakes)?;
    let kind = RecordedEventKind::read(map, mistakes)?;
    Some(RecordedEvent { at, started, ended, kind, place: Some(map.place()) })
}

fn map_place(map: &MapView<'_>, key: &str) -> Option<hotseat_document::SourceSpan> {
    map.shape().field(key).and_then(|_| map.place_of(key))
}

/// Reports ids that are not unique or refer to nothing, and contents that the shapes cannot describe.
fn check_event(map: &MapView<'_>, known: &mut KnownIds, mistakes: &mut Diagnostics) -> Option<()> {
    let id = |map: &MapView<'_>| map.text("id").map(str::to_string);
    match map.text("type")? {
        "message" | "reasoning" if map.text("text") == Some("") => {
            mistakes.push(error_at(map.get("text")?, "this text must not be empty"));
        }
        "tool_call" if !known.calls.insert(id(map)?) => {
            mistakes.push(error_at(map.get("id")?, "another call of this recording has this id"));
        }
        "tool_result" if !known.calls.contains(map.text("id")?) => {
            mistakes.push(error_at(map.get("id")?, "no earlier call has this id"));
        }
        "interrupt" => {
            known.interrupts.insert(id(map)?);
        }
        "interrupt_answer" if !known.interrupts.contains(map.text("id")?) => {
            mistakes.push(error_at(map.get("id")?, "no earlier interrupt has this id"));
        }
        "mcp" => {
            let (event, payload) = (map.text("event")?, map.json("payload")?);
            if let Err(error) = mcp_payload(event, &payload, "") {
                mistakes.push(error_at(map.get("payload")?, &format!("not a payload of `{event}`: {error}")));
            }
        }
        _ => {}
    }
    Some(())
}

/// Converts an event of an MCP server to the payload of a turn. Fails if it is not a payload of this type.
pub(crate) fn mcp_payload(event: &str, payload: &Value, turn_id: &str) -> serde_json::Result<Payload> {
    let mut payload = payload.clone();
    if let Value::Object(members) = &mut payload {
        members.insert("turnId".to_string(), turn_id.into());
    }
    Payload::from_json(event, payload)
}

/// Reads a time in milliseconds.
fn time(view: Option<NodeView<'_>>, mistakes: &mut Diagnostics) -> Option<Duration> {
    let view = view?;
    let seconds = view.number()?.as_f64()? / 1000.0;
    let time = Duration::try_from_secs_f64(seconds).ok();
    if time.is_none() {
        mistakes.push(error_at(view, "this is not a number of milliseconds"));
    }
    // Recorded times have microsecond precision; the rest is a floating-point error.
    time.map(|time| Duration::from_micros(((time.as_nanos() + 500) / 1000).try_into().unwrap_or(u64::MAX)))
}
