//! Recordings as files: JSON with a line for each event, so that people can read them and a difference is short.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use hotseat_trace::Origin;
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::{Arguments, Event, Recording, Turn, What, file_name};

/// Writes a recording into a folder, under the name of its case. What was there is replaced by the whole new file or
/// not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write(folder: &Path, recording: &Recording) -> io::Result<()> {
    let path = folder.join(file_name(recording.suite.as_deref(), &recording.case));
    let mut file = temporary(folder)?;
    let mut out = BufWriter::new(file.as_file_mut());
    put(&mut out, recording)?;
    out.flush()?;
    drop(out);
    file.persist(path).map_err(|error| error.error).map(drop)
}

/// A file that nobody sees before it has its name. It may be read by whoever may read other files of its folder.
pub(crate) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".recording-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn put(out: &mut impl Write, recording: &Recording) -> io::Result<()> {
    let Recording { suite, case, agent, recorded_at, turns } = recording;
    writeln!(out, "{{\n  \"version\": 1,")?;
    let texts = [
        ("suite", suite.as_ref()),
        ("case", Some(case)),
        ("agent", agent.as_ref()),
        ("recorded_at", recorded_at.as_ref()),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            writeln!(out, "  {}: {},", json!(key), json!(text))?;
        }
    }
    writeln!(out, "  \"turns\": [")?;
    for (number, turn) in turns.iter().enumerate() {
        put_turn(out, turn)?;
        writeln!(out, "{}", if number + 1 < turns.len() { "," } else { "" })?;
    }
    writeln!(out, "  ]\n}}")
}

fn put_turn(out: &mut impl Write, turn: &Turn) -> io::Result<()> {
    writeln!(out, "    {{\n      \"user\": {},", json!(turn.user))?;
    if !turn.attachments.is_empty() {
        writeln!(out, "      \"attachments\": {},", json!(turn.attachments))?;
    }
    if let Some(duration) = turn.duration {
        writeln!(out, "      \"duration_ms\": {},", ms(duration))?;
    }
    if let Some(unfinished) = &turn.unfinished {
        writeln!(out, "      \"unfinished\": {},", json!(unfinished))?;
    }
    write!(out, "      \"events\": [")?;
    for (number, event) in turn.events.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}\n        {}", Value::Object(as_json(event)))?;
    }
    let end = if turn.events.is_empty() { "]" } else { "\n      ]" };
    write!(out, "{end}\n    }}")
}

fn as_json(event: &Event) -> Map<String, Value> {
    let mut members = Map::new();
    let (word, own) = own_members(&event.what);
    members.insert("type".to_string(), json!(word));
    for (key, time) in [("at_ms", event.at), ("started_ms", event.started)] {
        if let Some(time) = time {
            members.insert(key.to_string(), ms(time));
        }
    }
    members.extend(own.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
    members
}

type Members = Vec<(&'static str, Option<Value>)>;

fn own_members(what: &What) -> (&'static str, Members) {
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    match what {
        What::Message { text: said, calls_tools, subagent } => (
            "message",
            vec![
                ("text", Some(json!(said))),
                ("calls_tools", calls_tools.map(Value::Bool)),
                ("subagent", text(subagent)),
            ],
        ),
        What::Reasoning { text: thought } => ("reasoning", vec![("text", Some(json!(thought)))]),
        What::ToolCall { id, tool, arguments, origin, subagent } => {
            let arguments = match arguments {
                Arguments::None => ("arguments", None),
                Arguments::Json(value) => ("arguments", Some(value.clone())),
                Arguments::Broken(text) => ("arguments_text", Some(json!(text))),
            };
            let tool = ("tool", Some(json!(tool)));
            (
                "tool_call",
                vec![("id", Some(json!(id))), tool, arguments, seen(*origin), ("subagent", text(subagent))],
            )
        }
        What::ToolResult { id, result, origin } => {
            let result = match result {
                Ok(value) => ("result", Some(value.clone())),
                Err(message) => ("error", Some(json!(message))),
            };
            ("tool_result", vec![("id", Some(json!(id))), result, seen(*origin)])
        }
        What::Interrupt { id, reason, message, tool, tool_call_id, value } => (
            "interrupt",
            vec![
                ("id", Some(json!(id))),
                ("reason", text(reason)),
                ("message", text(message)),
                ("tool", text(tool)),
                ("tool_call_id", text(tool_call_id)),
                ("value", Some(value.clone()).filter(|value| !value.is_null())),
            ],
        ),
        What::InterruptAnswer { id, payload } => {
            let status = if payload.is_some() { "resolved" } else { "cancelled" };
            let members = vec![
                ("id", Some(json!(id))),
                ("status", Some(json!(status))),
                ("payload", payload.clone().filter(|payload| !payload.is_null())),
            ];
            ("interrupt_answer", members)
        }
        What::State { state } => ("state", vec![("state", Some(state.clone()))]),
        What::AwaitingInput { awaiting, hint } => {
            ("awaiting_input", vec![("awaiting", Some(json!(awaiting))), ("hint", text(hint))])
        }
        What::Note { text: note } => ("note", vec![("text", Some(json!(note)))]),
        What::Finished { outcome, result, usage, finish_reason } => (
            "finished",
            vec![
                ("outcome", Some(json!(outcome)).filter(|_| outcome != "success")),
                ("result", result.clone()),
                ("usage", usage.clone()),
                ("finish_reason", text(finish_reason)),
            ],
        ),
        What::Error { message, code } => {
            ("error", vec![("message", Some(json!(message))), ("code", text(code))])
        }
    }
}

/// Where something was seen, unless that was in the stream.
fn seen(origin: Origin) -> (&'static str, Option<Value>) {
    let word = match origin {
        Origin::Stream => None,
        Origin::Client => Some(json!("client")),
        Origin::Snapshot => Some(json!("snapshot")),
    };
    ("origin", word)
}

/// Milliseconds, to the microsecond; whole ones as whole numbers.
fn ms(duration: Duration) -> Value {
    let micros = duration.as_micros();
    match u64::try_from(micros / 1000) {
        Ok(whole) if micros.is_multiple_of(1000) => json!(whole),
        Ok(_) | Err(_) => json!((micros as f64) / 1000.0),
    }
}
