//! An agent that sends endless text or very many calls, and runs of Hotseat against it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use wait4::Wait4;

use crate::arena::ProcessCost;
use crate::bare_client::BenchError;

/// Number of words in a piece of endless text.
const PIECE_WORDS: usize = 200;
/// Number of events that are written at once.
const WRITTEN_EVENTS: usize = 64;

/// Protocol of a flooding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodProtocol {
    /// AG-UI.
    AgUi,
    /// Chat completions, streamed.
    Chat,
    /// A program that prints JSON lines.
    Command,
}

/// Behaviour of a flooding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodKind {
    /// It accepts the request and sends nothing.
    Silence,
    /// It sends text without end.
    Text,
    /// It makes this number of calls, each begun and ended before the next.
    Calls(usize),
    /// It begins this number of calls before it sends the arguments of the first.
    CallsAtOnce(usize),
    /// It sends this number of calls in one snapshot of all messages.
    CallsInSnapshot(usize),
}

/// An agent on a free port of this machine, in threads of this process.
#[derive(Debug)]
pub struct FloodAgent {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
}

/// Time limit that no run reaches, in milliseconds.
pub const UNLIMITED_MS: u64 = 600_000;

/// The part of a report that is measured. The texts of the agent are skipped: they would count as memory of this program,
/// which the programs that it starts inherit in their statistics.
#[derive(Debug, Deserialize)]
struct FloodReport {
    results: Vec<FloodCase>,
}

#[derive(Debug, Deserialize)]
struct FloodCase {
    turns: Vec<FloodTurn>,
}

#[derive(Debug, Deserialize)]
struct FloodTurn {
    duration_ms: f64,
}

/// A project with a flooding agent.
#[derive(Debug)]
pub struct FloodProject {
    folder: TempDir,
    hotseat: PathBuf,
}

impl FloodAgent {
    /// Starts an agent. Fails if it cannot listen.
    pub fn start(protocol: FloodProtocol, kind: FloodKind) -> Result<Self, BenchError> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let sent = Arc::new(AtomicU64::new(0));
        let counted = sent.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = counted.clone();
                // An error means that the client has closed the connection.
                thread::spawn(move || drop(answer(stream, protocol, kind, &counted)));
            }
        });
        Ok(FloodAgent { address, sent })
    }

    /// Returns the number of bytes sent so far.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// Reads one request and answers it.
fn answer(
    stream: TcpStream,
    protocol: FloodProtocol,
    kind: FloodKind,
    sent: &AtomicU64,
) -> Result<(), BenchError> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut write = |bytes: &[u8]| -> Result<(), BenchError> {
        stream.write_all(bytes)?;
        sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    };
    match kind {
        FloodKind::Silence => {
            write(b": nothing follows\n\n")?;
            // Ends when the client closes the connection.
            reader.read_to_end(&mut Vec::new())?;
            Ok(())
        }
        FloodKind::Text => {
            let piece = event_text(&text_event(protocol)).repeat(WRITTEN_EVENTS);
            write(event_text(&json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})).as_bytes())
                .and_then(|()| {
                    loop {
                        write(piece.as_bytes())?;
                    }
                })
        }
        FloodKind::Calls(_) | FloodKind::CallsAtOnce(_) | FloodKind::CallsInSnapshot(_) => {
            write(&call_stream(protocol, kind))
        }
    }
}

fn event_text(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// Returns an event with a piece of endless text.
fn text_event(protocol: FloodProtocol) -> Value {
    let delta = "word ".repeat(PIECE_WORDS);
    match protocol {
        FloodProtocol::AgUi => json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta}),
        FloodProtocol::Chat => json!({"choices": [{"index": 0, "delta": {"content": delta}}]}),
        FloodProtocol::Command => json!({"type": "text", "delta": delta}),
    }
}

/// Returns the whole answer of an agent that makes calls.
pub fn call_stream(protocol: FloodProtocol, kind: FloodKind) -> Vec<u8> {
    let mut events = String::new();
    let mut add = |event: &Value| events.push_str(&event_text(event));
    if protocol == FloodProtocol::Chat {
        let FloodKind::Calls(count) = kind else { return Vec::new() };
        for n in 0..count {
            let function = json!({"name": "look", "arguments": format!("{{\"n\":{n}}}")});
            let call = json!({"index": n, "id": format!("c{n}"), "function": function});
            add(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
        }
        add(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        events.push_str("data: [DONE]\n\n");
        return events.into_bytes();
    }
    let border = |kind: &str| json!({"type": kind, "threadId": "t", "runId": "r"});
    add(&border("RUN_STARTED"));
    let start = |n| json!({"type": "TOOL_CALL_START", "toolCallId": format!("c{n}"), "toolCallName": "look"});
    let rest = |n| {
        let id = format!("c{n}");
        [
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": format!("{{\"n\":{n}}}")}),
            json!({"type": "TOOL_CALL_END", "toolCallId": id}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r{n}"), "toolCallId": id, "content": "ok"}),
        ]
    };
    match kind {
        FloodKind::Calls(count) => (0..count).for_each(|n| {
            add(&start(n));
            rest(n).iter().for_each(&mut add);
        }),
        FloodKind::CallsAtOnce(count) => {
            (0..count).for_each(|n| add(&start(n)));
            (0..count).for_each(|n| rest(n).iter().for_each(&mut add));
        }
        FloodKind::CallsInSnapshot(count) => {
            let messages = (0..count).flat_map(|n| {
                let function = json!({"name": "look", "arguments": "{}"});
                let call = json!({"id": format!("c{n}"), "type": "function", "function": function});
                [
                    json!({"id": format!("m{n}"), "role": "assistant", "toolCalls": [call]}),
                    json!({"id": format!("r{n}"), "role": "tool", "toolCallId": format!("c{n}"), "content": "ok"}),
                ]
            });
            add(&json!({"type": "MESSAGES_SNAPSHOT", "messages": messages.collect::<Vec<_>>()}));
        }
        FloodKind::Silence | FloodKind::Text => {}
    }
    add(&border("RUN_FINISHED"));
    events.into_bytes()
}

impl FloodProject {
    /// Creates a project whose only case talks to this agent, for at most `timeout_ms` milliseconds. The
    /// default limits of data apply only with [`UNLIMITED_MS`]; else the agent reaches the time limit first.
    /// Fails if it cannot be written.
    pub fn new(
        programs: &Path,
        protocol: FloodProtocol,
        kind: FloodKind,
        agent: &FloodAgent,
        timeout_ms: u64,
    ) -> Result<Self, BenchError> {
        let hotseat = programs.join(format!("hotseat{}", std::env::consts::EXE_SUFFIX));
        let folder = TempDir::new()?;
        let url = format!("http://{}/", agent.address);
        let target = match protocol {
            FloodProtocol::AgUi => format!("{{ endpoint: '{url}', timeout_ms: {timeout_ms} }}"),
            FloodProtocol::Chat => {
                format!("{{ type: openai, base_url: '{url}v1', model: m, timeout_ms: {timeout_ms} }}")
            }
            FloodProtocol::Command => format!(
                "{{ type: command, command: [sh, agent.sh], protocol: json_lines, timeout_ms: {timeout_ms} }}"
            ),
        };
        let limits = match timeout_ms {
            UNLIMITED_MS => "",
            _ => {
                "limits: { turn: { bytes: 8000000000, events: 100000000 }, conversation: { bytes: 8000000000, events: 100000000 }, run: { bytes: 8000000000 } }\n"
            }
        };
        fs::write(folder.path().join("hotseat.yaml"), format!("target: {target}\n{limits}"))?;
        let printed = match kind {
            FloodKind::Silence => "sleep 1000".to_string(),
            _ => format!("yes '{}'", text_event(protocol)),
        };
        fs::write(folder.path().join("agent.sh"), format!("read -r message\n{printed}\n"))?;
        fs::write(folder.path().join("a.test.yaml"), "name: a\nturns: [{ user: hello }]\n")?;
        Ok(FloodProject { folder, hotseat })
    }

    /// Runs the case and returns the cost of the process. The case may fail. Fails if Hotseat cannot be
    /// started.
    pub fn run(&self, args: &[&str]) -> Result<ProcessCost, BenchError> {
        let output = File::create(self.folder.path().join("output.txt"))?;
        let mut command = Command::new(&self.hotseat);
        command.args(["test", "--color", "never"]).args(args).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let started = Instant::now();
        let used = command.spawn()?.wait4()?;
        let cpu = used.rusage.utime + used.rusage.stime;
        Ok(ProcessCost { wall: started.elapsed(), cpu, peak: used.rusage.maxrss })
    }

    /// Runs the case with a report and returns the duration of its only turn, in milliseconds. Fails if there
    /// is no report with a turn.
    pub fn turn_duration(&self) -> Result<f64, BenchError> {
        self.run(&["-o", "report.json"])?;
        let report = BufReader::new(File::open(self.folder.path().join("report.json"))?);
        let report: FloodReport = serde_json::from_reader(report)?;
        let turn = report.results.first().and_then(|case| case.turns.first()).ok_or("there is no turn")?;
        Ok(turn.duration_ms)
    }
}
