//! Reads conversations of OpenAI messages from a file.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::BufRead;
use std::sync::Arc;

use hotseat_document::json::{self, JsonStream};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, NodeValue, NodeView, SourceSpan, SourceText};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json as value};

use super::message::{ImportedMessage, MessageContent, call_arguments, has_calls, member};
use hotseat_targets::message::{ToolReply, parse_content_output};
use hotseat_targets::recording::{
    AgentRecording, RecordedArguments, RecordedEvent, RecordedEventKind, RecordedTurn,
};
use hotseat_trace::{Origin, UniqueIds, canonical_text};

/// Keys of an object that may contain its messages.
const MESSAGE_KEYS: [&str; 3] = ["messages", "conversation", "traj"];
const EXPECTED_CALL_PATHS: [&[&str]; 3] =
    [&["info", "task", "actions"], &["task", "actions"], &["expected_calls"]];
/// Keys of the conversation id.
const ID_KEYS: [&str; 2] = ["id", "conversation_id"];
/// Maximum length of a text that is kept as metadata.
const MAX_METADATA_CHARS: usize = 200;

/// Parts of conversations that have no place in a suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedParts {
    /// Instructions: messages of `system` and `developer`.
    pub instructions: usize,
    /// Final user messages without a reply.
    pub unanswered: usize,
    /// Agent messages without text and tool calls.
    pub empty: usize,
    /// Tool calls without a result. They are imported without one.
    pub no_result: usize,
    /// Reasoning of the agent before the first user message.
    pub early_reasoning: usize,
    /// Calls before the first user message whose arguments are not valid JSON. They are imported without arguments.
    pub early_arguments: usize,
    /// Expected calls that the agent made before the first user message.
    pub early_expected: usize,
}

impl OmittedParts {
    pub(super) fn add(&mut self, other: OmittedParts) {
        self.instructions += other.instructions;
        self.unanswered += other.unanswered;
        self.empty += other.empty;
        self.no_result += other.no_result;
        self.early_reasoning += other.early_reasoning;
        self.early_arguments += other.early_arguments;
        self.early_expected += other.early_expected;
    }
}

/// Why a conversation has another id than its data gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplacedId {
    /// An earlier conversation has the given id.
    Repeated { given: String },
    /// The data gives no text and no number.
    Unusable,
}

/// A recorded conversation.
#[derive(Debug)]
pub(super) struct ConversationTranscript {
    pub(super) id: String,
    pub(super) replaced_id: Option<ReplacedId>,
    /// Messages before the first user message, as messages of a case.
    pub(super) before: Vec<Value>,
    pub(super) turns: Vec<RecordedTurn>,
    /// Expected calls, if the data lists them.
    pub(super) expected: Option<Vec<TranscriptCall>>,
    /// Other data of the conversation.
    pub(super) metadata: Map<String, Value>,
    pub(super) omitted: OmittedParts,
}

impl ConversationTranscript {
    /// Returns true if a turn calls the tool, or the data expects a call of it.
    pub(super) fn mentions(&self, name: &str) -> bool {
        let calls = |kind: &RecordedEventKind| matches!(kind, RecordedEventKind::ToolCall { tool, .. } if tool == name);
        let mut events = self.turns.iter().flat_map(|turn| &turn.events);
        events.any(|event| calls(&event.kind)) || self.expected.iter().flatten().any(|call| call.name == name)
    }
}

/// A call that the data expects.
#[derive(Debug)]
pub(super) struct TranscriptCall {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
}

impl ConversationTranscript {
    /// Converts the conversation to a recording.
    pub(super) fn into_recording(self) -> AgentRecording {
        AgentRecording { case: self.id, turns: self.turns, ..AgentRecording::default() }
    }
}

/// A value of a file with its source.
type SourceNode = (DocumentNode, Arc<SourceText>);

/// Iterator over the conversations of a file.
pub(super) struct TranscriptReader<R> {
    values: JsonStream<R>,
    /// Value that starts the next conversation, or an error.
    next: Option<Result<SourceNode, Diagnostics>>,
    /// Number of conversations read.
    number: usize,
    /// True if part of the file is not JSON or no whole conversation, so conversations may be missing.
    broken: bool,
    /// Ids of the conversations so far.
    ids: UniqueIds,
}

impl<R: BufRead> TranscriptReader<R> {
    pub(super) fn new(values: JsonStream<R>) -> Self {
        TranscriptReader { values, next: None, number: 0, broken: false, ids: UniqueIds::default() }
    }

    /// Returns true if part of the file is not JSON or no whole conversation, so conversations may be missing.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    fn value(&mut self) -> Option<Result<SourceNode, Diagnostics>> {
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
        match json::parse_recorded(&source) {
            Ok(node) => Some(Ok((node, source))),
            Err(mistakes) => {
                self.broken |= !is_valid_conversation(&source.text);
                Some(Err(mistakes))
            }
        }
    }
}

impl<R: BufRead> Iterator for TranscriptReader<R> {
    type Item = Result<ConversationTranscript, Diagnostics>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = match self.value()? {
            Ok(first) => first,
            Err(mistakes) => {
                self.number += 1;
                return Some(Err(mistakes));
            }
        };
        // Consecutive messages outside of a list form one conversation.
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
        let view = NodeView::new(&first.0, &first.1);
        let mut mistakes = Diagnostics::new();
        let read = match loose.as_slice() {
            [] => read_conversation(view, &mut mistakes),
            loose => {
                let messages = loose.iter().map(|(node, source)| NodeView::new(node, source));
                Some(TranscriptBuilder::default().read_messages(messages, view.place(), &mut mistakes))
            }
        };
        let Some(mut transcript) = read.filter(|_| mistakes.is_empty()) else { return Some(Err(mistakes)) };
        let given = std::mem::take(&mut transcript.id);
        let wanted = match given.as_str() {
            "" => &format!("conversation-{}", self.number),
            given => given,
        };
        transcript.id = self.ids.assign(wanted, "-");
        if !given.is_empty() && transcript.id != given {
            transcript.replaced_id = Some(ReplacedId::Repeated { given });
        }
        Some(Ok(transcript))
    }
}

/// True if a value that cannot be read is nevertheless valid JSON and a whole conversation: no other one depends on it.
fn is_valid_conversation(text: &str) -> bool {
    let members = serde_json::from_str::<HashMap<String, IgnoredAny>>(text);
    members.is_ok_and(|members| MESSAGE_KEYS.iter().any(|key| members.contains_key(*key)))
        || serde_json::from_str::<Vec<IgnoredAny>>(text).is_ok()
}

fn is_message(node: &DocumentNode) -> bool {
    node.get("role").is_some() && !MESSAGE_KEYS.iter().any(|key| node.get(key).is_some())
}

/// Reads a conversation from one value: a list of messages, or an object that contains one.
fn read_conversation(view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<ConversationTranscript> {
    let messages = match &view.node.value {
        NodeValue::List(_) => view,
        NodeValue::Map(_) => match MESSAGE_KEYS.iter().find_map(|key| member(view, key)) {
            Some(messages) => messages,
            None => {
                let help = format!(
                    "put its messages under one of {}",
                    MESSAGE_KEYS.map(|key| format!("`{key}`")).join(", ")
                );
                let message = "this is neither a message nor a conversation";
                mistakes.push(Diagnostic::new(message).at(view.place()).help(help));
                return None;
            }
        },
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            let help = "expected a list of messages, or an object that contains one";
            mistakes.push(Diagnostic::new("this is not a conversation").at(view.place()).help(help));
            return None;
        }
    };
    let Some(list) = messages.list() else {
        mistakes.report(messages.place(), "the messages of a conversation must be a list");
        return None;
    };
    let transcript = TranscriptBuilder::default().read_messages(list, messages.place(), mistakes);
    let mut lists = EXPECTED_CALL_PATHS.iter().filter_map(|path| {
        Some((path.join("."), path.iter().try_fold(view, |view, key| member(view, key))?))
    });
    let expected = lists.next();
    if let (Some((first, _)), Some((other, list))) = (&expected, lists.next()) {
        let message = format!("`{first}` and `{other}` both give the expected calls");
        mistakes.push(Diagnostic::new(message).at(list.place()).help("remove one of them"));
    }
    let mut expected = expected.and_then(|(_, view)| expected_calls(view, mistakes));
    let mut omitted = transcript.omitted;
    omitted.early_expected = expected.as_mut().map_or(0, |all| remove_early_calls(all, &transcript.before));
    let id = id_of(view);
    let is_unusable = id.is_empty() && ID_KEYS.iter().any(|key| member(view, key).is_some_and(is_given));
    Some(ConversationTranscript {
        id,
        replaced_id: is_unusable.then_some(ReplacedId::Unusable),
        expected,
        metadata: metadata_of(view),
        omitted,
        ..transcript
    })
}

/// Removes expected calls that messages before the first user message contain: no turn makes them again. A call without arguments
/// is equal to any call of its tool. Returns their number.
fn remove_early_calls(expected: &mut Vec<TranscriptCall>, before: &[Value]) -> usize {
    let mut by_arguments: HashMap<(&str, Option<String>), VecDeque<usize>> = HashMap::new();
    let mut by_name: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, call) in expected.iter().enumerate() {
        let arguments = call.arguments.as_ref().map(canonical_text);
        by_arguments.entry((&call.name, arguments)).or_default().push_back(place);
        by_name.entry(&call.name).or_default().push_back(place);
    }
    let mut removed = HashSet::new();
    let mut remove_first = |places: Option<&mut VecDeque<usize>>| {
        places.is_some_and(|places| {
            std::iter::from_fn(|| places.pop_front()).any(|place| removed.insert(place))
        })
    };
    for call in before.iter().filter_map(|message| message["tool_calls"].as_array()).flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        match call["arguments"].as_str().and_then(|text| text.parse::<Value>().ok()) {
            Some(arguments) => {
                let equal = Some(canonical_text(&arguments));
                let _ = remove_first(by_arguments.get_mut(&(name, equal)))
                    || remove_first(by_arguments.get_mut(&(name, None)));
            }
            None => drop(remove_first(by_name.get_mut(name))),
        }
    }
    let mut place = 0..;
    expected.retain(|_| !place.next().is_some_and(|place| removed.contains(&place)));
    removed.len()
}

/// Returns a text, or a number as text.
fn as_text(view: NodeView<'_>) -> Option<String> {
    view.text().map(str::to_string).or_else(|| view.number().map(ToString::to_string))
}

/// True for all values but `null`.
fn is_given(view: NodeView<'_>) -> bool {
    !matches!(view.node.value, NodeValue::Null)
}

/// Returns the id of the conversation, or an empty string.
fn id_of(view: NodeView<'_>) -> String {
    let said = |key: &str| member(view, key).and_then(as_text).filter(|text| !text.trim().is_empty());
    if let Some(id) = ID_KEYS.iter().find_map(|key| said(key)) {
        return id;
    }
    match (said("task_id"), said("trial")) {
        (Some(task), Some(trial)) => format!("task-{task}-trial-{trial}"),
        (Some(task), None) => format!("task-{task}"),
        (None, _) => String::new(),
    }
}

/// Returns the short values beside the messages.
fn metadata_of(view: NodeView<'_>) -> Map<String, Value> {
    // The case has the id already.
    let entries = view.entries().into_iter().flatten().filter(|(key, ..)| !ID_KEYS.contains(key));
    let short = entries.filter(|(_, _, view)| match &view.node.value {
        NodeValue::Bool(_) | NodeValue::Number(_) => true,
        NodeValue::String(text) => text.chars().count() <= MAX_METADATA_CHARS,
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => false,
    });
    short.map(|(key, _, view)| (key.to_string(), view.json())).collect()
}

fn expected_calls(view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<Vec<TranscriptCall>> {
    let Some(list) = view.list() else {
        mistakes.report(view.place(), "the expected calls must be a list");
        return None;
    };
    let calls = list.filter_map(|view| {
        let Some(name) = member(view, "name").and_then(NodeView::text).filter(|name| !name.is_empty()) else {
            mistakes.report(view.place(), "this expected call has no `name`");
            return None;
        };
        let arguments = call_arguments(view, "expected call", mistakes);
        if let Some(wrong) = arguments.filter(|arguments| arguments.entries().is_none()) {
            mistakes.report(wrong.place(), "the arguments of an expected call must be an object");
        }
        Some(TranscriptCall { name: name.to_string(), arguments: arguments.map(NodeView::json) })
    });
    Some(calls.collect())
}

/// Builds a conversation from its messages.
#[derive(Default)]
struct TranscriptBuilder {
    before: Vec<Value>,
    turns: Vec<RecordedTurn>,
    /// Unique ids of the calls without a result, by the id in the data.
    open: HashMap<String, VecDeque<String>>,
    /// Unique ids of all calls.
    call_ids: UniqueIds,
    /// Unique ids of the calls before the first user message.
    early_calls: HashSet<String>,
    /// True if a message with calls has a mistake: results may belong to these calls.
    has_unread_calls: bool,
    omitted: OmittedParts,
}

impl TranscriptBuilder {
    fn read_messages<'v>(
        mut self,
        messages: impl Iterator<Item = NodeView<'v>>,
        place: SourceSpan,
        mistakes: &mut Diagnostics,
    ) -> ConversationTranscript {
        for view in messages {
            match ImportedMessage::read(view, mistakes) {
                Some(message) => self.take(message, mistakes),
                None => self.has_unread_calls |= has_calls(view),
            }
        }
        if self.turns.last().is_some_and(|turn| turn.events.is_empty()) {
            self.turns.pop();
            self.omitted.unanswered += 1;
        }
        if self.turns.is_empty() && mistakes.is_empty() {
            mistakes.report(place, "this conversation has no user message with a reply");
        }
        let TranscriptBuilder { before, turns, omitted: mut left_out, open, .. } = self;
        left_out.no_result = open.values().map(VecDeque::len).sum();
        let (id, metadata) = (String::new(), Map::new());
        ConversationTranscript {
            id,
            replaced_id: None,
            before,
            turns,
            expected: None,
            metadata,
            omitted: left_out,
        }
    }

    fn take(&mut self, message: ImportedMessage, mistakes: &mut Diagnostics) {
        let ImportedMessage { content: said, place } = message;
        match said {
            MessageContent::Instruction => self.omitted.instructions += 1,
            MessageContent::User(text) => match self.turns.last_mut() {
                // Consecutive user messages form one turn.
                Some(turn) if turn.events.is_empty() => turn.user = format!("{}\n\n{text}", turn.user),
                Some(_) | None => self.turns.push(RecordedTurn { user: text, ..RecordedTurn::default() }),
            },
            MessageContent::Agent { text, reasoning, calls } => {
                if text.is_none() && reasoning.is_none() && calls.is_empty() {
                    self.omitted.empty += 1;
                    return;
                }
                let calls: Vec<_> = calls
                    .into_iter()
                    .map(|call| (self.unique_call_id(&call.id), call.tool, call.arguments))
                    .collect();
                match self.turns.last_mut() {
                    None => {
                        let is_broken =
                            |arguments: &RecordedArguments| matches!(arguments, RecordedArguments::Broken(_));
                        self.omitted.early_reasoning += usize::from(reasoning.is_some());
                        self.omitted.early_arguments +=
                            calls.iter().filter(|(_, _, arguments)| is_broken(arguments)).count();
                        self.early_calls.extend(calls.iter().map(|(id, ..)| id.clone()));
                        if text.is_some() || !calls.is_empty() {
                            self.before.push(initial_agent_message(text, &calls));
                        }
                    }
                    Some(turn) => {
                        let has_calls = !calls.is_empty();
                        let thought = reasoning.map(|text| RecordedEventKind::Reasoning { text });
                        let said = text.map(|text| RecordedEventKind::Message {
                            text,
                            calls_tools: Some(has_calls),
                            subagent: None,
                        });
                        let calls = calls.into_iter().map(|(id, tool, arguments)| {
                            let (origin, subagent) = (Origin::Stream, None);
                            RecordedEventKind::ToolCall { id, tool, arguments, origin, subagent }
                        });
                        turn.events
                            .extend(thought.into_iter().chain(said).chain(calls).map(RecordedEvent::untimed));
                    }
                }
            }
            MessageContent::Tool { id, content } => {
                let Some(id) = self.open.get_mut(&id).and_then(VecDeque::pop_front) else {
                    if self.has_unread_calls {
                        return;
                    }
                    let message = format!("no earlier call has the id {id:?}, or it already has a result");
                    mistakes.report(place, message);
                    return;
                };
                // A late result belongs to its call: no turn of the recording makes that.
                let is_early = self.early_calls.contains(&id);
                match self.turns.last_mut().filter(|_| !is_early) {
                    None => {
                        let said = match parse_content_output(&content) {
                            Value::String(text) => text,
                            other => other.to_string(),
                        };
                        self.before.push(value!({"role": "tool", "tool_call_id": id, "content": said}));
                    }
                    Some(turn) => {
                        let result = ToolReply::Content(parse_content_output(&content));
                        turn.events.push(RecordedEvent::untimed(RecordedEventKind::ToolResult {
                            id,
                            result,
                            origin: Origin::Stream,
                        }));
                    }
                }
            }
        }
    }

    /// Returns an id that no other call of the conversation has. Some data restarts call ids in each turn.
    fn unique_call_id(&mut self, wanted: &str) -> String {
        let id = self.call_ids.assign(if wanted.is_empty() { "call" } else { wanted }, "#");
        self.open.entry(wanted.to_string()).or_default().push_back(id.clone());
        id
    }
}

/// Converts an agent message before the first user message to a message of a case.
fn initial_agent_message(text: Option<String>, calls: &[(String, String, RecordedArguments)]) -> Value {
    let mut message = value!({"role": "assistant"});
    if let Some(text) = text {
        message["content"] = Value::String(text);
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(|(id, tool, arguments)| {
            let arguments = match arguments {
                RecordedArguments::Json(value) => value.to_string(),
                RecordedArguments::None | RecordedArguments::Broken(_) => "{}".to_string(),
            };
            value!({"id": id, "name": tool, "arguments": arguments})
        });
        message["tool_calls"] = calls.collect();
    }
    message
}
