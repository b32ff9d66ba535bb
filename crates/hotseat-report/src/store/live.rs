//! Running conversations for viewers in other processes: a file beside the lock of the run.
//!
//! The file is written only while a viewer asks for it: a viewer touches a second file, and the process of the run looks
//! at its time. Both files are removed at the end of the run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use hotseat_trace::{AgentToolCall, ConversationTurn, Millis, TracedConversation, TurnItem, TurnOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use hotseat_engine::run::{RunningConversation, RunningConversations};

/// Time between two looks at the viewers and at the conversations.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time after its last request for which a viewer counts.
const WATCH_TIME: Duration = Duration::from_secs(10);
/// Maximum number of conversations in the file.
const MAX_CONVERSATIONS: usize = 24;
/// Maximum number of turns of a conversation, and of messages and calls of a turn. The last ones are kept.
const MAX_TURNS: usize = 24;
const MAX_ITEMS: usize = 24;
/// Maximum length of a text in bytes, and of the text in an overview.
const MAX_TEXT: usize = 1_500;
const MAX_OVERVIEW_TEXT: usize = 200;
/// Maximum size of one conversation in the file.
const MAX_CONVERSATION_BYTES: usize = 100_000;
/// Maximum size of the file for a reader.
const MAX_FILE_BYTES: u64 = 16_000_000;

/// Running conversations at one time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LiveRun {
    /// Number of running conversations.
    pub total: usize,
    /// The conversations that started first.
    pub conversations: Vec<LiveConversation>,
}

/// Running conversation.
#[derive(Debug, Serialize, Deserialize)]
pub struct LiveConversation {
    /// Index of the case in the run.
    pub index: usize,
    /// Number of the attempt.
    pub attempt: usize,
    /// Start time.
    pub started_at: Millis,
    /// Number of turns so far.
    pub total_turns: usize,
    /// Beginning of the last text.
    pub last: String,
    /// The last turns.
    pub turns: Vec<LiveTurn>,
}

/// Turn of a running conversation.
#[derive(Debug, Serialize, Deserialize)]
pub struct LiveTurn {
    /// Number of the turn.
    pub number: usize,
    /// True if the agent has not answered completely.
    pub open: bool,
    /// Duration, if the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Error of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Messages and calls that are left out before the others.
    pub omitted: usize,
    /// Input, messages and calls, as the page displays them.
    pub items: Vec<LiveItem>,
}

/// Message or call of a running conversation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveItem {
    /// Input of the user.
    User {
        /// The text.
        text: String,
        /// Source of the input.
        who: String,
        /// Time since the start of the conversation in microseconds.
        at: u64,
    },
    /// Message of the agent.
    Agent {
        /// The text.
        text: String,
        /// Sub-agent, if it wrote the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Time since the start of the conversation in microseconds.
        at: u64,
    },
    /// Tool call.
    Call {
        /// Name of the tool.
        name: String,
        /// Arguments.
        input: Value,
        /// True if there is a result.
        answered: bool,
        /// True if the tool failed.
        failed: bool,
        /// Result.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// Start and end in microseconds.
        start: u64,
        /// End, if the call has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<u64>,
    },
}

/// Thread that writes the running conversations of a run while there is a viewer.
#[derive(Debug)]
pub(super) struct LiveWriter {
    store: PathBuf,
    run: String,
    /// `None` when the writer is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Conversation as far as it was read.
struct ReadConversation {
    known: usize,
    conversation: TracedConversation,
}

fn live_path(store: &Path, run: &str) -> PathBuf {
    store.with_file_name("locks").join(format!("{run}.live"))
}

fn watch_path(store: &Path, run: &str) -> PathBuf {
    store.with_file_name("locks").join(format!("{run}.watch"))
}

/// Removes the files of a run that has ended.
pub(super) fn remove_files(store: &Path, run: &str) {
    for path in [live_path(store, run), watch_path(store, run)] {
        let _ = fs::remove_file(path);
    }
}

/// Reads the running conversations of a run, and asks its process to write them. The first reading finds
/// nothing, because the process writes only for a viewer.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read(store: &Path, run: &str) -> io::Result<LiveRun> {
    // A folder that cannot be written only means that there is no live view.
    if let Ok(file) = File::create(watch_path(store, run)) {
        let _ = file.set_modified(SystemTime::now());
    }
    let mut text = Vec::new();
    match File::open(live_path(store, run)) {
        Ok(file) => file.take(MAX_FILE_BYTES).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LiveRun::default()),
        Err(error) => return Err(error),
    };
    serde_json::from_slice(&text).map_err(io::Error::from)
}

impl LiveWriter {
    /// Starts the thread. Without one there is no live view, which does not affect the run.
    pub fn start(store: &Path, run: &str, running: Arc<RunningConversations>) -> LiveWriter {
        let (stop, stopped) = channel();
        let (path, watched) = (live_path(store, run), watch_path(store, run));
        let thread = thread::Builder::new().name("live view".to_string()).spawn(move || {
            let mut known = BTreeMap::new();
            let mut written = Vec::new();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if is_watched(&watched) {
                    let json = serde_json::to_vec(&collect(&running, &mut known)).unwrap_or_default();
                    if json != written && write_atomically(&path, &json).is_ok() {
                        written = json;
                    }
                } else {
                    known.clear();
                }
            }
        });
        LiveWriter { store: store.to_path_buf(), run: run.to_string(), stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for LiveWriter {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        remove_files(&self.store, &self.run);
    }
}

/// Returns true if a viewer has asked a short time ago.
fn is_watched(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < WATCH_TIME))
}

/// Replaces a file, so that a reader sees the old or the new content.
fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("live.new");
    fs::write(&new, content)?;
    fs::rename(&new, path)
}

/// Reads what is new in the running conversations, and returns all of them within the limits.
fn collect(running: &RunningConversations, known: &mut BTreeMap<u64, ReadConversation>) -> LiveRun {
    let (total, listed) = running.list(MAX_CONVERSATIONS);
    known.retain(|number, _| listed.iter().any(|one| one.number == *number));
    let conversations = listed.iter().map(|one| {
        let read = known
            .entry(one.number)
            .or_insert_with(|| ReadConversation { known: 0, conversation: TracedConversation::default() });
        loop {
            let (events, now_known) = one.events.after(read.known);
            events.iter().for_each(|event| read.conversation.apply(event));
            if now_known == read.known {
                break;
            }
            read.known = now_known;
        }
        LiveConversation::new(one, &read.conversation)
    });
    LiveRun { total, conversations: conversations.collect() }
}

impl LiveConversation {
    fn new(running: &RunningConversation, conversation: &TracedConversation) -> Self {
        let turns = &conversation.turns;
        let first = turns.len().saturating_sub(MAX_TURNS);
        let mut live = LiveConversation {
            index: running.case_index,
            attempt: running.attempt,
            started_at: running.started_at,
            total_turns: turns.len(),
            last: turns.last().map_or_else(String::new, last_text),
            turns: Vec::new(),
        };
        let mut free = MAX_CONVERSATION_BYTES;
        for turn in turns[first..].iter().rev() {
            let turn = LiveTurn::new(turn);
            free = free.saturating_sub(turn.items.iter().map(LiveItem::size).sum());
            if free == 0 && !live.turns.is_empty() {
                break;
            }
            live.turns.push(turn);
        }
        live.turns.reverse();
        live
    }
}

impl LiveTurn {
    fn new(turn: &ConversationTurn) -> Self {
        let all = turn.items();
        let omitted = all.len().saturating_sub(MAX_ITEMS);
        let input = turn.user.as_deref().map(|user| LiveItem::User {
            text: cut(user, MAX_TEXT),
            who: turn.caller.to_string(),
            at: turn.started.0,
        });
        let error = match (&turn.outcome, &turn.run_error) {
            (TurnOutcome::Failed(error), _) | (_, Some(error)) => Some(cut(&error.message, MAX_TEXT)),
            (TurnOutcome::Open | TurnOutcome::Completed, None) => None,
        };
        let open = turn.outcome == TurnOutcome::Open;
        LiveTurn {
            number: turn.number,
            open,
            duration_ms: (!open).then(|| turn.duration().as_micros() as f64 / 1000.0),
            error,
            omitted,
            items: input.into_iter().chain(all[omitted..].iter().map(LiveItem::new)).collect(),
        }
    }
}

impl LiveItem {
    fn new(item: &TurnItem<'_>) -> Self {
        match item {
            TurnItem::Message(message) => LiveItem::Agent {
                text: cut(&message.content, MAX_TEXT),
                agent: message.subagent.as_deref().map(str::to_string),
                at: message.started.unwrap_or(message.ended).0,
            },
            TurnItem::Call(call) => LiveItem::from_call(call),
        }
    }

    fn from_call(call: &AgentToolCall) -> Self {
        let result = call.result.as_ref();
        LiveItem::Call {
            name: cut(&call.name, MAX_OVERVIEW_TEXT),
            input: cut_value(&call.arguments),
            answered: result.is_some(),
            failed: result.is_some_and(|result| result.failed),
            output: result.map(|result| cut_value(&result.value)),
            start: call.started.0,
            end: result.map(|_| call.ended.0),
        }
    }

    /// Returns about the size in the file.
    fn size(&self) -> usize {
        match self {
            LiveItem::User { text, .. } | LiveItem::Agent { text, .. } => text.len(),
            LiveItem::Call { .. } => 2 * MAX_TEXT,
        }
    }
}

/// Returns the beginning of the last text of a turn: its last message or call, otherwise its input.
fn last_text(turn: &ConversationTurn) -> String {
    let text = match turn.items().last().copied() {
        Some(TurnItem::Message(message)) => &*message.content,
        Some(TurnItem::Call(call)) => &call.name,
        None => turn.user.as_deref().unwrap_or_default(),
    };
    cut(text, MAX_OVERVIEW_TEXT)
}

/// Shortens a text.
fn cut(text: &str, most: usize) -> String {
    match text.len() <= most {
        true => text.to_string(),
        false => format!("{} …", &text[..text.floor_char_boundary(most)]),
    }
}

/// Returns a value, or the beginning of its text if it is long.
fn cut_value(value: &Value) -> Value {
    let text = value.to_string();
    match text.len() <= MAX_TEXT {
        true => value.clone(),
        false => Value::String(cut(value.as_str().unwrap_or(&text), MAX_TEXT)),
    }
}
