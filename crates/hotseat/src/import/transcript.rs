//! One conversation of OpenAI's messages, and the stream of them that a file is.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::sync::Arc;

use hotseat_document::json::{self, Values};
use hotseat_document::{Diagnostic, Diagnostics, Node, Place, Source, Value as NodeValue, View};
use serde_json::{Map, Value, json as value};

use super::LeftOut;
use super::message::{Message, Said};
use crate::recording::{Arguments, Event, Recording, Turn, What};
use crate::session::output_of_content;
use hotseat_trace::Origin;

/// The keys under which an object holds its messages.
const MESSAGES: [&str; 3] = ["messages", "conversation", "traj"];
/// Where data says which calls are expected.
const EXPECTED: [&[&str]; 3] = [&["info", "task", "actions"], &["task", "actions"], &["expected_calls"]];
/// The keys that name a conversation.
const IDS: [&str; 2] = ["id", "conversation_id"];
/// The longest text that is kept as metadata.
const LONGEST: usize = 200;

/// A conversation that was held.
#[derive(Debug)]
pub(super) struct Transcript {
    pub(super) id: String,
    /// What was said before the user first spoke, as messages of a case.
    pub(super) before: Vec<Value>,
    pub(super) turns: Vec<Turn>,
    /// The calls that its data expects, if it says so.
    pub(super) expected: Option<Vec<ExpectedCall>>,
    /// What else the data says of the conversation.
    pub(super) metadata: Map<String, Value>,
    pub(super) left_out: LeftOut,
}

/// A call that the data expects.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
}

impl Transcript {
    /// What the agent did, to be served again.
    pub(super) fn into_recording(self) -> Recording {
        Recording { case: self.id, turns: self.turns, ..Recording::default() }
    }
}

/// A value of a file, and where it stands.
type Written = (Node, Arc<Source>);

/// Conversations, one after the other.
pub(super) struct Transcripts<R> {
    values: Values<R>,
    /// A value that begins the next conversation, or is none.
    next: Option<Result<Written, Diagnostics>>,
    /// How many conversations there were.
    number: usize,
    /// Whether something in the file is not JSON, so that nobody knows what is missing.
    broken: bool,
    /// The ids that are taken, and how often each was wanted.
    ids: HashMap<String, usize>,
}

impl<R: BufRead> Transcripts<R> {
    pub(super) fn new(values: Values<R>) -> Self {
        Transcripts { values, next: None, number: 0, broken: false, ids: HashMap::new() }
    }

    /// Whether something in the file is not JSON, so that nobody knows what is missing.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    fn value(&mut self) -> Option<Result<Written, Diagnostics>> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        let source = match self.values.next()? {
            Ok(source) => source,
            Err(mistake) => {
                self.broken = true;
                return Some(Err(mistake.into()));
            }
        };
        let parsed = json::parse(&source).map(|node| (node, source));
        self.broken |= parsed.is_err();
        Some(parsed)
    }

    /// An id that no other conversation has.
    fn unique(&mut self, wanted: String) -> String {
        let mut id = wanted.clone();
        while let Some(times) = self.ids.get_mut(&id) {
            *times += 1;
            id = format!("{wanted}-{times}");
        }
        self.ids.insert(id.clone(), 1);
        id
    }
}

impl<R: BufRead> Iterator for Transcripts<R> {
    type Item = Result<Transcript, Diagnostics>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = match self.value()? {
            Ok(first) => first,
            Err(mistakes) => return Some(Err(mistakes)),
        };
        // Messages that are not in a list of their own are those of one conversation.
        let mut loose = Vec::new();
        if is_message(&first.0) {
            loose.push(first.clone());
            loop {
                match self.value() {
                    Some(Ok(value)) if is_message(&value.0) => loose.push(value),
                    other => {
                        self.next = other;
                        break;
                    }
                }
            }
        }
        self.number += 1;
        let view = View::new(&first.0, &first.1);
        let mut mistakes = Diagnostics::new();
        let read = match loose.as_slice() {
            [] => read(view, &mut mistakes),
            loose => {
                let messages = loose.iter().map(|(node, source)| View::new(node, source));
                Some(Reading::default().all(messages, view.place(), &mut mistakes))
            }
        };
        let Some(mut transcript) = read.filter(|_| mistakes.is_empty()) else { return Some(Err(mistakes)) };
        if transcript.id.is_empty() {
            transcript.id = format!("conversation-{}", self.number);
        }
        transcript.id = self.unique(transcript.id);
        Some(Ok(transcript))
    }
}

fn is_message(node: &Node) -> bool {
    node.get("role").is_some() && !MESSAGES.iter().any(|key| node.get(key).is_some())
}

/// A conversation that is one value: a list of messages, or an object that holds one.
fn read(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Transcript> {
    let messages = match &view.node.value {
        NodeValue::List(_) => view,
        NodeValue::Map(_) => match MESSAGES.iter().find_map(|key| member(view, key)) {
            Some(messages) => messages,
            None => {
                let help =
                    format!("its messages stand under {}", MESSAGES.map(|key| format!("`{key}`")).join(", "));
                let message = "this is neither a message nor a conversation";
                mistakes.push(Diagnostic::new(message).at(view.place()).help(help));
                return None;
            }
        },
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            let help = "a conversation is a list of messages, or an object that holds one";
            mistakes.push(Diagnostic::new("this is no conversation").at(view.place()).help(help));
            return None;
        }
    };
    let Some(list) = messages.list() else {
        mistakes.push(Diagnostic::new("the messages of a conversation are a list").at(messages.place()));
        return None;
    };
    let transcript = Reading::default().all(list, messages.place(), mistakes);
    let expected = EXPECTED.iter().find_map(|path| path.iter().try_fold(view, |view, key| member(view, key)));
    Some(Transcript {
        id: id_of(view),
        expected: expected.and_then(|view| expected_calls(view, mistakes)),
        metadata: metadata_of(view),
        ..transcript
    })
}

/// The value of a key. What is null is not there.
pub(super) fn member<'a>(view: View<'a>, key: &str) -> Option<View<'a>> {
    view.node.get(key).map(|node| View::new(node, view.source)).filter(|view| !view.is_null())
}

/// A text, or a number as text.
fn as_text(view: View<'_>) -> Option<String> {
    view.text().map(str::to_string).or_else(|| view.number().map(ToString::to_string))
}

/// What the data calls a conversation; empty where it does not.
fn id_of(view: View<'_>) -> String {
    let said = |key: &str| member(view, key).and_then(as_text).filter(|text| !text.trim().is_empty());
    if let Some(id) = IDS.iter().find_map(|key| said(key)) {
        return id;
    }
    match (said("task_id"), said("trial")) {
        (Some(task), Some(trial)) => format!("task-{task}-trial-{trial}"),
        (Some(task), None) => format!("task-{task}"),
        (None, _) => String::new(),
    }
}

/// What the data says beside the messages, as far as it is short.
fn metadata_of(view: View<'_>) -> Map<String, Value> {
    // The id is that of the case already.
    let entries = view.entries().into_iter().flatten().filter(|(key, ..)| !IDS.contains(key));
    let short = entries.filter(|(_, _, view)| match &view.node.value {
        NodeValue::Bool(_) | NodeValue::Number(_) => true,
        NodeValue::String(text) => text.chars().count() <= LONGEST,
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => false,
    });
    short.map(|(key, _, view)| (key.to_string(), view.json())).collect()
}

fn expected_calls(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Vec<ExpectedCall>> {
    let Some(list) = view.list() else {
        mistakes.push(Diagnostic::new("the calls that are expected are a list").at(view.place()));
        return None;
    };
    let calls = list.filter_map(|view| {
        let Some(name) = member(view, "name").and_then(View::text).filter(|name| !name.is_empty()) else {
            mistakes.push(Diagnostic::new("this call that is expected has no `name`").at(view.place()));
            return None;
        };
        let arguments = ["kwargs", "arguments", "args"].iter().find_map(|key| member(view, key));
        if let Some(wrong) = arguments.filter(|arguments| arguments.entries().is_none()) {
            let message = "the arguments of a call that is expected are an object";
            mistakes.push(Diagnostic::new(message).at(wrong.place()));
        }
        Some(ExpectedCall { name: name.to_string(), arguments: arguments.map(View::json) })
    });
    Some(calls.collect())
}

/// A conversation as far as its messages were read.
#[derive(Default)]
struct Reading {
    before: Vec<Value>,
    turns: Vec<Turn>,
    /// The calls that have no result yet: their ids in the data, and here.
    open: Vec<(String, String)>,
    /// The ids of all calls.
    calls: HashSet<String>,
    left_out: LeftOut,
}

impl Reading {
    fn all<'v>(
        mut self,
        messages: impl Iterator<Item = View<'v>>,
        place: Place,
        mistakes: &mut Diagnostics,
    ) -> Transcript {
        for view in messages {
            if let Some(message) = Message::read(view, mistakes) {
                self.take(message, mistakes);
            }
        }
        if self.turns.last().is_some_and(|turn| turn.events.is_empty()) {
            self.turns.pop();
            self.left_out.unanswered += 1;
        }
        if self.turns.is_empty() && mistakes.is_empty() {
            let message = "in this conversation no user says anything that is answered";
            mistakes.push(Diagnostic::new(message).at(place));
        }
        let Reading { before, turns, mut left_out, open, .. } = self;
        left_out.no_result = open.len();
        let (id, metadata) = (String::new(), Map::new());
        Transcript { id, before, turns, expected: None, metadata, left_out }
    }

    fn take(&mut self, message: Message, mistakes: &mut Diagnostics) {
        let Message { said, place } = message;
        match said {
            Said::Instruction => self.left_out.instructions += 1,
            Said::User(text) => match self.turns.last_mut() {
                // Who speaks twice before being answered has said it all in one turn.
                Some(turn) if turn.events.is_empty() => turn.user = format!("{}\n\n{text}", turn.user),
                Some(_) | None => self.turns.push(Turn { user: text, ..Turn::default() }),
            },
            Said::Agent { text, reasoning, calls } => {
                if text.is_none() && reasoning.is_none() && calls.is_empty() {
                    self.left_out.empty += 1;
                    return;
                }
                let calls: Vec<_> = calls
                    .into_iter()
                    .map(|call| (self.unique(&call.id), call.tool, call.arguments))
                    .collect();
                match self.turns.last_mut() {
                    None => self.before.push(before_agent(text, &calls)),
                    Some(turn) => {
                        let has_calls = !calls.is_empty();
                        let thought = reasoning.map(|text| What::Reasoning { text });
                        let said = text.map(|text| What::Message {
                            text,
                            calls_tools: Some(has_calls),
                            subagent: None,
                        });
                        let calls = calls.into_iter().map(|(id, tool, arguments)| {
                            let (origin, subagent) = (Origin::Stream, None);
                            What::ToolCall { id, tool, arguments, origin, subagent }
                        });
                        turn.events.extend(thought.into_iter().chain(said).chain(calls).map(Event::untimed));
                    }
                }
            }
            Said::Tool { id, content } => {
                let Some(at) = self.open.iter().position(|(known, _)| *known == id) else {
                    let message =
                        format!("no call before this has the id {id:?}, or it has its result already");
                    mistakes.push(Diagnostic::new(message).at(place));
                    return;
                };
                let (_, id) = self.open.remove(at);
                match self.turns.last_mut() {
                    None => {
                        let said = match output_of_content(&content) {
                            Value::String(text) => text,
                            other => other.to_string(),
                        };
                        self.before.push(value!({"role": "tool", "tool_call_id": id, "content": said}));
                    }
                    Some(turn) => {
                        let (result, origin) = (Ok(output_of_content(&content)), Origin::Stream);
                        turn.events.push(Event::untimed(What::ToolResult { id, result, origin }));
                    }
                }
            }
        }
    }

    /// An id that no other call of the conversation has: some data counts calls anew in each turn.
    fn unique(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_string();
        let mut number = 1;
        while id.is_empty() || !self.calls.insert(id.clone()) {
            number += 1;
            id = format!("{}#{number}", if wanted.is_empty() { "call" } else { wanted });
        }
        self.open.push((wanted.to_string(), id.clone()));
        id
    }
}

/// A message of the agent from before the user first spoke, as one of a case.
fn before_agent(text: Option<String>, calls: &[(String, String, Arguments)]) -> Value {
    let mut message = value!({"role": "assistant"});
    if let Some(text) = text {
        message["content"] = Value::String(text);
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(|(id, tool, arguments)| {
            let arguments = match arguments {
                Arguments::Json(value) => value.to_string(),
                Arguments::None | Arguments::Broken(_) => "{}".to_string(),
            };
            value!({"id": id, "name": tool, "arguments": arguments})
        });
        message["tool_calls"] = calls.collect();
    }
    message
}
