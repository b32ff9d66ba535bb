//! Pieces of tool calls in chat completions.

use std::collections::HashMap;

use hotseat_document::json::optional_value;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A piece of a tool call, streamed or whole.
#[derive(Debug, Deserialize)]
pub struct ToolCallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
    /// Arguments outside of `function` would count as none.
    #[serde(default, rename = "arguments", deserialize_with = "no_arguments")]
    _arguments: (),
    /// A call of a custom tool, whose input is a text. Hotseat offers none.
    #[serde(default, rename = "custom", deserialize_with = "no_custom_call")]
    _custom: (),
    /// Members that the protocol does not define, and `type`.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    /// JSON text; some servers send the object itself.
    #[serde(default, deserialize_with = "optional_value")]
    arguments: Option<Value>,
    /// Wrong names of the arguments.
    #[serde(
        default,
        rename = "args",
        alias = "input",
        alias = "parameters",
        deserialize_with = "no_arguments"
    )]
    _others: (),
}

/// Fails if a member that holds no arguments in this protocol has some.
fn no_arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match MisplacedCalls::deserialize(deserializer)?.is_present {
        true => Err(serde::de::Error::custom("a tool call has arguments outside of `function.arguments`")),
        false => Ok(()),
    }
}

/// Fails if a call is one of a custom tool.
fn no_custom_call<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match MisplacedCalls::deserialize(deserializer)?.is_present {
        true => Err(serde::de::Error::custom(
            "a tool call has the type `custom`, which is not supported; only those with a `function` are",
        )),
        false => Ok(()),
    }
}

/// Tool calls in a place where the protocol has none, such as `function_call`, or `tool_calls` beside the message. No
/// client would carry them out.
#[derive(Debug, Default)]
pub struct MisplacedCalls {
    /// True if there are any.
    pub is_present: bool,
}

impl MisplacedCalls {
    /// Description of a reply that has some; the name of what was read precedes it.
    pub const PROBLEM: &'static str = "has tool calls outside of the `tool_calls` of its message";

    /// True if a value has calls in members with the names of tool calls.
    pub fn are_members_of(value: &Value) -> bool {
        let names = ["tool_calls", "toolCalls", "function_call", "functionCall", "tool_use", "toolUse"];
        names.iter().filter_map(|name| value.get(name)).any(MisplacedCalls::are_in)
    }

    /// True if a member for tool calls has any.
    pub fn are_in(value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
        }
    }
}

impl<'de> Deserialize<'de> for MisplacedCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(MisplacedCalls { is_present: MisplacedCalls::are_in(&Value::deserialize(deserializer)?) })
    }
}

/// True if a content part is or has a call of a tool, which belongs into `tool_calls`. Servers spell its type and its members
/// in many ways, such as `server_tool_use`, `tool-call` or `toolUse`.
pub fn is_call_part(part: &Value) -> bool {
    let letters = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
    let part_type = part.get("type").and_then(Value::as_str).map(letters).unwrap_or_default();
    let words = ["tooluse", "toolcall", "functioncall", "mcpcall"];
    words.iter().any(|word| part_type.contains(word)) || MisplacedCalls::are_members_of(part)
}

/// A piece and the call that it belongs to.
#[derive(Debug)]
pub struct PlacedPiece {
    /// Position of the call among those of the reply. Calls are numbered without gaps.
    pub call: usize,
    /// Name of the tool; empty if the piece has none.
    pub name: String,
    /// Next part of the arguments, as JSON text; empty if the piece reports a call again.
    pub arguments: String,
    /// Members that the protocol does not define.
    pub extra: Map<String, Value>,
}

/// Assigns pieces to calls.
///
/// Servers number pieces differently. A piece belongs to the call with its index, unless it has another name, or its name and
/// another id once its arguments are complete, or while neither has any: some servers send a new id with each piece, of which
/// the first one counts, and others number all calls as the first. Without an index, a piece belongs to the call with its id;
/// without both, it starts a call if it has a name, and continues the last call otherwise. Once the arguments of a call are
/// complete, further ones start another call if they come with a name, also with the same id, and are an error without a new
/// id or a name; the same arguments with the same id are the same call, reported again, and so are those of a whole message
/// after the pieces, if it has no id. The entries of a whole message are different calls, whatever their ids. Once a call has
/// a result, a piece with a name starts another call, unless it is an entry of a whole message that repeats the pieces. So
/// calls are neither lost, duplicated nor merged. Two names of one index without arguments between them are an error: they may
/// be two calls, or the parts of one name.
#[derive(Debug, Default)]
pub struct ToolCallPieces {
    calls: Vec<CallIdentity>,
    /// Last call of each index.
    by_index: HashMap<u64, usize>,
    /// Last call of each id.
    by_id: HashMap<String, usize>,
    /// Number of calls before the whole message that is read.
    before_message: Option<usize>,
}

/// What is known of a call so far; empty if unknown.
#[derive(Debug, Default)]
struct CallIdentity {
    id: String,
    name: String,
    arguments: ArgumentsProgress,
    /// True if it began in a whole message.
    is_whole: bool,
    has_result: bool,
}

/// The arguments of a call as far as they have arrived, as JSON text.
#[derive(Debug, Clone, Default)]
pub struct ArgumentsProgress {
    text: String,
    /// Index of the first byte that is no space.
    start: Option<usize>,
    /// Number of open objects and lists.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

/// A piece whose call is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousPiece {
    /// Two names for one call.
    #[error("tool call {index} has two names, {first:?} and {second:?}, without arguments between them")]
    Name {
        /// Index of the call.
        index: u64,
        /// Name of the call so far.
        first: String,
        /// Name of the piece.
        second: String,
    },
    /// Arguments after the complete ones of a call, without the name or the id of another one.
    #[error(
        "after the complete arguments of tool call {name:?}, further ones have neither a name nor a new id"
    )]
    Arguments {
        /// Name of the call.
        name: String,
    },
}

/// Relation of a piece to the last call with its index or id.
enum PieceFit {
    Continues,
    /// The piece reports the call again.
    Repeats,
    /// The piece belongs to another call.
    Differs,
}

impl ToolCallPieces {
    /// Begins to read the calls of a message: a whole one, or a delta of a stream.
    pub fn begin_message(&mut self, is_whole: bool) {
        self.before_message = is_whole.then_some(self.calls.len());
    }

    /// Finds the call of a piece; a new one if the piece starts a call.
    ///
    /// # Errors
    /// If it cannot be decided whether the piece starts a call or continues the name of one.
    pub fn place(&mut self, piece: ToolCallPiece) -> Result<PlacedPiece, AmbiguousPiece> {
        let ToolCallPiece { index, id, function, mut extra, .. } = piece;
        extra.shift_remove("type");
        let id = id.unwrap_or_default();
        let (name, mut arguments) = match function {
            Some(FunctionPiece { name, arguments, .. }) => {
                (name.unwrap_or_default(), arguments.map(arguments_text).unwrap_or_default())
            }
            None => (String::new(), String::new()),
        };
        let (known, is_whole) = (self.known_call(index, &id, &name), self.before_message.is_some());
        let fit =
            known.map(|call| self.calls[call].fit(index, &id, &name, &arguments, is_whole)).transpose()?;
        let call = match (known, fit) {
            (Some(call), Some(PieceFit::Continues)) => call,
            (Some(call), Some(PieceFit::Repeats)) => {
                arguments.clear();
                call
            }
            _ => {
                self.check_name(index, &id, &name)?;
                self.add_call(index)
            }
        };
        let identity = &mut self.calls[call];
        identity.arguments.add(&arguments);
        if identity.name.is_empty() {
            identity.name.clone_from(&name);
        }
        if identity.id.is_empty() && !id.is_empty() {
            identity.id.clone_from(&id);
            let last = self.by_id.entry(id).or_insert(call);
            *last = call.max(*last);
        }
        Ok(PlacedPiece { call, name, arguments, extra })
    }

    /// Arguments of a call so far, as JSON text.
    pub fn arguments(&self, call: usize) -> &str {
        &self.calls[call].arguments.text
    }

    /// Id of a call; empty if it has none.
    pub fn id(&self, call: usize) -> &str {
        &self.calls[call].id
    }

    /// The last call with an id.
    pub fn call_with_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Ends a call, whose result has arrived.
    pub fn set_result(&mut self, call: usize) {
        self.calls[call].has_result = true;
    }

    /// Returns the last call with the index of a piece; without an index, that with its id.
    fn known_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if !id.is_empty() => self.call_with_id(id),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        known.filter(|call| self.before_message.is_none_or(|before| *call < before))
    }

    /// Checks a name that differs from that of the call with its index.
    fn check_name(&self, index: Option<u64>, id: &str, name: &str) -> Result<(), AmbiguousPiece> {
        let index = index.filter(|_| self.before_message.is_none());
        let named = index.and_then(|index| Some((index, &self.calls[*self.by_index.get(&index)?])));
        match named {
            Some((_, known)) if known.has_result => Ok(()),
            Some((index, known)) if known.arguments.start.is_none() && (id.is_empty() || id == known.id) => {
                Err(AmbiguousPiece::Name { index, first: known.name.clone(), second: name.to_string() })
            }
            _ => Ok(()),
        }
    }

    fn add_call(&mut self, index: Option<u64>) -> usize {
        if let Some(index) = index {
            self.by_index.insert(index, self.calls.len());
        }
        let is_whole = self.before_message.is_some();
        self.calls.push(CallIdentity { is_whole, ..CallIdentity::default() });
        self.calls.len() - 1
    }
}

impl CallIdentity {
    /// Returns how a piece relates to this call, which has its index or id. Fails if it has further arguments without a sign
    /// whose they are. `is_whole` is true if the piece is an entry of a whole message.
    fn fit(
        &self,
        index: Option<u64>,
        id: &str,
        name: &str,
        arguments: &str,
        is_whole: bool,
    ) -> Result<PieceFit, AmbiguousPiece> {
        let agree = |known: &str, new: &str| known.is_empty() || new.is_empty() || known == new;
        let (has_same_id, is_complete) = (agree(&self.id, id), self.arguments.are_complete());
        let runs_again = self.has_result && !name.is_empty() && (!is_whole || self.is_whole);
        if runs_again || !agree(&self.name, name) {
            return Ok(PieceFit::Differs);
        }
        if !arguments.trim_ascii().is_empty() {
            let is_same_call = if id.is_empty() { is_whole } else { id == self.id };
            let is_equal = match is_complete {
                true => self.arguments.equal(arguments),
                // Numbers never show that they are complete.
                false => is_whole && self.arguments.text == arguments,
            };
            match (has_same_id, name.is_empty()) {
                (true, _) if is_same_call && is_equal => return Ok(PieceFit::Repeats),
                _ if !is_complete => {}
                (true, true) => return Err(AmbiguousPiece::Arguments { name: self.name.clone() }),
                (true, false) | (false, _) => return Ok(PieceFit::Differs),
            }
        }
        // Two pieces without arguments are two calls without arguments.
        let goes_on = !is_complete && (self.arguments.start.is_some() || !arguments.is_empty());
        match has_same_id || (index.is_some() && (name.is_empty() || goes_on)) {
            true => Ok(PieceFit::Continues),
            false => Ok(PieceFit::Differs),
        }
    }
}

impl ArgumentsProgress {
    /// Adds the next part.
    pub fn add(&mut self, text: &str) {
        if self.start.is_none() {
            let start = text.bytes().position(|byte| !byte.is_ascii_whitespace());
            self.start = start.map(|start| self.text.len() + start);
        }
        self.text.push_str(text);
        for byte in text.bytes() {
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'\\' if self.is_in_text => self.is_escaped = true,
                b'"' => self.is_in_text = !self.is_in_text,
                _ if self.is_in_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// True if these arguments are the same, as text or as JSON.
    fn equal(&self, arguments: &str) -> bool {
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        self.text == arguments || parse(&self.text).is_some_and(|known| Some(known) == parse(arguments))
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text so far.
    pub fn into_text(self) -> String {
        self.text
    }

    /// True if nothing can follow. Numbers and texts that are no JSON may always go on.
    pub fn are_complete(&self) -> bool {
        let Some(start) = self.start else { return false };
        match &self.text[start..] {
            "null" | "true" | "false" => true,
            value if value.starts_with(['{', '[', '"']) => self.depth == 0 && !self.is_in_text,
            _ => false,
        }
    }
}

impl From<String> for ArgumentsProgress {
    fn from(text: String) -> Self {
        let mut progress = ArgumentsProgress::default();
        progress.add(&text);
        progress
    }
}

fn arguments_text(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        arguments => arguments.to_string(),
    }
}
