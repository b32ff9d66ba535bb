//! Reading a recording: everything that is wrong in it is told with its place.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Source, View, check, json};
use hotseat_trace::Origin;
use serde_json::Value;

use super::shape::{EVENT, RECORDING, TURN};
use super::{Arguments, Event, Recording, Turn, What};

/// Why a recording could not be read.
#[derive(Debug)]
pub enum NotRead {
    /// There is no such file.
    Missing,
    /// It is there and cannot be read.
    Unreadable(io::Error),
    /// It is no recording.
    Wrong(Diagnostics),
}

/// Reads a recording that is shown as `shown`.
///
/// # Errors
/// When there is none, or it is wrong.
pub fn read(path: &Path, shown: &str) -> Result<Recording, NotRead> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NotRead::Missing,
        _ => NotRead::Unreadable(error),
    })?;
    let source = Source::new(shown, text, 1);
    let node = json::parse(&source).map_err(NotRead::Wrong)?;
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&RECORDING), &source, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(NotRead::Wrong(mistakes));
    }
    let map = Map::of(&node, &source, &RECORDING).expect("the shape was checked");
    let text = |key: &str| map.text(key).map(str::to_string);
    let mut known = Known::default();
    let turns = map.list("turns").into_iter().flatten().filter_map(|view| view.map(&TURN));
    let recording = Recording {
        suite: text("suite"),
        case: text("case").unwrap_or_default(),
        agent: text("agent"),
        recorded_at: text("recorded_at"),
        turns: turns.map(|turn| read_turn(&turn, &mut known, &mut mistakes)).collect(),
    };
    if mistakes.is_empty() { Ok(recording) } else { Err(NotRead::Wrong(mistakes)) }
}

/// The calls and interrupts that later events may name.
#[derive(Default)]
struct Known {
    calls: HashSet<String>,
    interrupts: HashSet<String>,
}

fn read_turn(map: &Map<'_>, known: &mut Known, mistakes: &mut Diagnostics) -> Turn {
    let mut turn = Turn {
        user: map.text("user").unwrap_or_default().to_string(),
        attachments: texts(map, "attachments"),
        duration: time(map.get("duration_ms"), mistakes),
        events: Vec::new(),
        unfinished: map.text("unfinished").map(str::to_string),
        place: Some(map.place()),
    };
    for view in map.list("events").into_iter().flatten() {
        let Some(event) = view.tagged(&EVENT) else { continue };
        if matches!(turn.events.last(), Some(Event { what: What::Error { .. }, .. })) {
            mistakes.push(wrong(view, "nothing comes behind an `error` in its turn"));
        }
        if let Some(event) = read_event(&event, known, mistakes) {
            turn.events.push(event);
        }
    }
    let times = turn.events.iter().filter_map(|event| Some((event.at?, event)));
    let mut last = Duration::ZERO;
    for (at, event) in times {
        if at < last || turn.duration.is_some_and(|duration| at > duration) {
            let message = "this time is before the event above it, or behind the end of the turn";
            mistakes.extend(event.place.clone().map(|place| Diagnostic::new(message).at(place)));
        }
        last = at;
    }
    if map.list("events").is_none_or(|events| events.len() == 0) && turn.unfinished.is_none() {
        let message = "in this turn the agent does nothing, which no agent does that is done with a turn";
        mistakes.push(Diagnostic::new(message).at(map.place_of("events").unwrap_or_else(|| map.place())));
    }
    turn
}

fn read_event(map: &Map<'_>, known: &mut Known, mistakes: &mut Diagnostics) -> Option<Event> {
    let at = time(map.get("at_ms"), mistakes);
    let has_start = map.shape().field("started_ms").is_some();
    let started = if has_start { time(map.get("started_ms"), mistakes) } else { None };
    if let (Some(at), Some(started), Some(place)) = (at, started, map_place(map, "started_ms"))
        && started > at
    {
        mistakes.push(Diagnostic::new("it cannot have begun after it happened").at(place));
    }
    let what = read_what(map, known, mistakes)?;
    Some(Event { at, started, what, place: Some(map.place()) })
}

fn map_place(map: &Map<'_>, key: &str) -> Option<hotseat_document::Place> {
    map.shape().field(key).and_then(|_| map.place_of(key))
}

fn read_what(map: &Map<'_>, known: &mut Known, mistakes: &mut Diagnostics) -> Option<What> {
    let text = |key: &str| map.text(key).map(str::to_string);
    if matches!(map.text("type"), Some("message" | "reasoning"))
        && let Some(said) = map.get("text").filter(|said| said.text() == Some(""))
    {
        mistakes.push(wrong(said, "this text is to be one that is not empty"));
    }
    Some(match map.text("type")? {
        "message" => What::Message {
            text: text("text")?,
            calls_tools: map.bool("calls_tools"),
            subagent: text("subagent"),
        },
        "reasoning" => What::Reasoning { text: text("text")? },
        "tool_call" => {
            let id = text("id")?;
            if !known.calls.insert(id.clone()) {
                mistakes.push(wrong(map.get("id")?, "another call of this recording has this id"));
            }
            let arguments = match (map.json("arguments"), text("arguments_text")) {
                (Some(_), Some(_)) => {
                    let message = "`arguments` and `arguments_text` both give the arguments";
                    mistakes.push(wrong(map.get("arguments_text")?, message));
                    return None;
                }
                (Some(Value::Null) | None, None) => Arguments::None,
                (Some(value), None) => Arguments::Json(value),
                (None, Some(text)) => Arguments::Broken(text),
            };
            let (tool, subagent) = (text("tool")?, text("subagent"));
            What::ToolCall { id, tool, arguments, origin: origin(map), subagent }
        }
        "tool_result" => {
            let id = text("id")?;
            if !known.calls.contains(&id) {
                mistakes.push(wrong(map.get("id")?, "no call before this has this id"));
            }
            let result = match (map.json("result"), text("error")) {
                (Some(value), None) => Ok(value),
                (None, Some(message)) => Err(message),
                (Some(_), Some(_)) | (None, None) => {
                    let message = "a tool answers with either `result` or `error`";
                    mistakes.push(Diagnostic::new(message).at(map.place()));
                    return None;
                }
            };
            What::ToolResult { id, result, origin: origin(map) }
        }
        "interrupt" => {
            let id = text("id")?;
            known.interrupts.insert(id.clone());
            What::Interrupt {
                id,
                reason: text("reason"),
                message: text("message"),
                tool: text("tool"),
                tool_call_id: text("tool_call_id"),
                value: map.json("value").unwrap_or_default(),
            }
        }
        "interrupt_answer" => {
            let id = text("id")?;
            if !known.interrupts.contains(&id) {
                mistakes.push(wrong(map.get("id")?, "no interrupt before this has this id"));
            }
            let cancelled = map.text("status") == Some("cancelled");
            if let (true, Some(view)) = (cancelled, map.get("payload")) {
                mistakes.push(wrong(view, "an interrupt that is cancelled is answered with no `payload`"));
            }
            let payload = (!cancelled).then(|| map.json("payload").unwrap_or_default());
            What::InterruptAnswer { id, payload }
        }
        "state" => What::State { state: map.json("state")? },
        "awaiting_input" => What::AwaitingInput { awaiting: map.bool("awaiting")?, hint: text("hint") },
        "note" => What::Note { text: text("text")? },
        "finished" => What::Finished {
            outcome: text("outcome").unwrap_or_else(|| "success".to_string()),
            result: map.json("result"),
            usage: map.json("usage"),
            finish_reason: text("finish_reason"),
        },
        "error" => What::Error { message: text("message")?, code: text("code") },
        _ => return None,
    })
}

fn origin(map: &Map<'_>) -> Origin {
    match map.text("origin") {
        Some("client") => Origin::Client,
        Some("snapshot") => Origin::Snapshot,
        _ => Origin::Stream,
    }
}

fn texts(map: &Map<'_>, key: &str) -> Vec<String> {
    map.list(key).into_iter().flatten().filter_map(View::text).map(str::to_string).collect()
}

/// A time in milliseconds.
fn time(view: Option<View<'_>>, mistakes: &mut Diagnostics) -> Option<Duration> {
    let view = view?;
    let seconds = view.number()?.as_f64()? / 1000.0;
    let time = Duration::try_from_secs_f64(seconds).ok();
    if time.is_none() {
        mistakes.push(wrong(view, "this is not a number of milliseconds"));
    }
    // What is written has microseconds; whatever is behind them comes from the way numbers are kept.
    time.map(|time| Duration::from_micros(((time.as_nanos() + 500) / 1000).try_into().unwrap_or(u64::MAX)))
}

fn wrong(view: View<'_>, message: &str) -> Diagnostic {
    Diagnostic::new(message).at(view.place())
}
