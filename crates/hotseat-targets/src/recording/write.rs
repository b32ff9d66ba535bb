//! Writes recordings as JSON with one line per event, for readability and short diffs.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::{AgentRecording, RecordedEvent, RecordedTurn, file_name};

/// Writes a recording into a folder under the name of its case. An existing file is replaced atomically.
/// Fails if the file cannot be written.
pub fn write(folder: &Path, recording: &AgentRecording) -> io::Result<()> {
    let path = folder.join(file_name(recording.suite.as_deref(), &recording.case));
    let mut file = create_temporary(folder)?;
    let mut out = BufWriter::new(file.as_file_mut());
    write_recording(&mut out, recording)?;
    out.flush()?;
    drop(out);
    file.persist(path).map_err(|error| error.error).map(drop)
}

/// Returns the path of another recording in a folder that [`write()`] would replace. One with the same content is no other.
pub fn find_other(folder: &Path, recording: &AgentRecording) -> io::Result<Option<PathBuf>> {
    let path = folder.join(file_name(recording.suite.as_deref(), &recording.case));
    if !path.try_exists()? {
        return Ok(None);
    }
    let mut content = Vec::new();
    write_recording(&mut content, recording)?;
    let is_same = std::fs::read(&path).is_ok_and(|existing| existing == content);
    Ok((!is_same).then_some(path))
}

/// Creates a temporary file with the usual permissions of the folder.
pub fn create_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".recording-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn write_recording(out: &mut impl Write, recording: &AgentRecording) -> io::Result<()> {
    let AgentRecording { suite, case, agent, recorded_at, hides_calls, secrets, turns } = recording;
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
    if *hides_calls {
        writeln!(out, "  \"hides_calls\": true,")?;
    }
    if !secrets.is_empty() {
        writeln!(out, "  \"secrets\": {},", json!(secrets))?;
    }
    writeln!(out, "  \"turns\": [")?;
    for (number, turn) in turns.iter().enumerate() {
        write_turn(out, turn)?;
        writeln!(out, "{}", if number + 1 < turns.len() { "," } else { "" })?;
    }
    writeln!(out, "  ]\n}}")
}

fn write_turn(out: &mut impl Write, turn: &RecordedTurn) -> io::Result<()> {
    writeln!(out, "    {{\n      \"user\": {},", json!(turn.user))?;
    if !turn.attachments.is_empty() {
        writeln!(out, "      \"attachments\": {},", json!(turn.attachments))?;
    }
    if let Some(duration) = turn.duration {
        writeln!(out, "      \"duration_ms\": {},", milliseconds(duration))?;
    }
    for (key, text) in [("unfinished", &turn.unfinished), ("trailing_error", &turn.trailing_error)] {
        if let Some(text) = text {
            writeln!(out, "      {}: {},", json!(key), json!(text))?;
        }
    }
    write!(out, "      \"events\": [")?;
    for (number, event) in turn.events.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}\n        {}", Value::Object(event_json(event)))?;
    }
    let end = if turn.events.is_empty() { "]" } else { "\n      ]" };
    write!(out, "{end}\n    }}")
}

fn event_json(event: &RecordedEvent) -> Map<String, Value> {
    let mut members = Map::new();
    let (word, own) = event.kind.members();
    members.insert("type".to_string(), json!(word));
    for (key, time) in [("at_ms", event.at), ("started_ms", event.started), ("ended_ms", event.ended)] {
        if let Some(time) = time {
            members.insert(key.to_string(), milliseconds(time));
        }
    }
    members.extend(own.into_iter().map(|(key, value)| (key.to_string(), value)));
    members
}

/// Returns milliseconds with microsecond precision; whole numbers as integers.
fn milliseconds(duration: Duration) -> Value {
    let micros = duration.as_micros();
    match u64::try_from(micros / 1000) {
        Ok(whole) if micros.is_multiple_of(1000) => json!(whole),
        Ok(_) | Err(_) => json!((micros as f64) / 1000.0),
    }
}
