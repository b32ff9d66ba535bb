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

use hotseat_trace::{
    ConversationTurn, Event, EventRecord, Millis, Payload, TracedConversation, TurnItem, TurnOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::reporters::html::{PageItem, PageTurn};
use crate::reporters::record::ToolCallRecord;
use hotseat_engine::run::{RunningConversation, RunningConversations};

/// Time between two looks at the viewers and at the conversations.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time after its last request for which a viewer counts.
const WATCH_TIME: Duration = Duration::from_secs(10);
/// Maximum number of conversations in the file.
const MAX_CONVERSATIONS: usize = 24;
/// Maximum number of turns of a conversation, and of items of a turn beside its input. The last ones are kept.
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
    /// The last turns as the page draws them, with their content.
    pub turns: Vec<Value>,
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
#[derive(Default)]
struct ReadConversation {
    known: usize,
    conversation: TracedConversation,
    /// Events of the last turns.
    events: Vec<EventRecord>,
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
/// nothing, because the process writes only for a viewer. Fails if the file cannot be read.
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
        let read = known.entry(one.number).or_default();
        loop {
            let (events, now_known) = one.events.after(read.known);
            events.iter().for_each(|record| read.conversation.apply(&record.event));
            read.events.extend(events);
            if now_known == read.known {
                break;
            }
            read.known = now_known;
        }
        let turns = &read.conversation.turns;
        if let Some(first) = turns.len().checked_sub(MAX_TURNS) {
            let start = turns[first].started;
            read.events.retain(|record| record.offset >= start);
        }
        LiveConversation::new(one, read)
    });
    LiveRun { total, conversations: conversations.collect() }
}

impl LiveConversation {
    fn new(running: &RunningConversation, read: &ReadConversation) -> Self {
        let turns = &read.conversation.turns;
        let mut live = LiveConversation {
            index: running.case_index,
            attempt: running.attempt,
            started_at: running.started_at,
            total_turns: turns.len(),
            last: turns.last().map_or_else(String::new, last_text),
            turns: Vec::new(),
        };
        let events: Vec<&EventRecord> = read.events.iter().collect();
        let shown = PageTurn::from_events(&read.conversation, &events);
        let mut free = MAX_CONVERSATION_BYTES;
        for (turn, shown) in turns.iter().rev().zip(shown.into_iter().rev()) {
            let turn = live_turn(turn, shown, &events);
            free = free.saturating_sub(turn.to_string().len());
            if free == 0 && !live.turns.is_empty() {
                break;
            }
            live.turns.push(turn);
        }
        live.turns.reverse();
        live
    }
}

/// Returns a turn as the page draws it: its input and the last other items, shortened and with their content.
fn live_turn(turn: &ConversationTurn, shown: PageTurn<'_>, events: &[&EventRecord]) -> Value {
    let count = shown.items.len();
    let content = |(place, item): (usize, PageItem<'_>)| {
        let record = events.binary_search_by_key(&item.sequence, |record| record.sequence).ok()?;
        let Event { payload, offset, .. } = &events[record].event;
        if place + MAX_ITEMS < count && !matches!(payload, Payload::UserMessage(_)) {
            return None;
        }
        let index = item.call.and_then(|index| usize::try_from(index.as_u64()?).ok());
        let call = index.map(|index| cut_members(json!(ToolCallRecord::new(&turn.tool_calls[index], turn))));
        Some(json!({"type": payload.type_name(), "offsetUs": offset, "from": item.from,
            "payload": cut_members(json!(payload)), "call": call}))
    };
    let items: Vec<Value> = shown.items.into_iter().enumerate().filter_map(content).collect();
    json!({"number": turn.number, "open": turn.outcome == TurnOutcome::Open, "start": shown.start, "end": shown.end,
        "omitted": count - items.len(), "items": items})
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

/// Replaces long members by the beginnings of their texts.
fn cut_members(mut value: Value) -> Value {
    for member in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let text = member.as_str().map_or_else(|| member.to_string(), str::to_string);
        if text.len() > MAX_TEXT {
            *member = Value::String(cut(&text, MAX_TEXT));
        }
    }
    value
}
