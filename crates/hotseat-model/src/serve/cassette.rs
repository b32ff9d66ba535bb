//! Recordings of requests that served models relayed: their file, and their replay in a conversation.
//!
//! JSON Lines. The first line is the header: `{"format":"hotseat-served-model","version":1}`. Each further line is a
//! [`RelayedExchange`]. The identity of a request is its lane, its model, its line and its content; ids that clients and
//! providers generate count by the order of their appearance.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::json::{error_in_line, read_record};
use hotseat_serve::TextCleaner;
use hotseat_trace::{RecordedRequest, nearest_request, optional_members};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Format name in the header.
const FORMAT_NAME: &str = "hotseat-served-model";
/// Version of the file format. Readers reject newer versions.
const FORMAT_VERSION: u64 = 1;
/// Maximum number of recorded requests that a request without an answer is compared with.
const MAX_COMPARED: usize = 200;
/// Maximum number of lanes that an error lists.
const MAX_LISTED_LANES: usize = 5;
/// Members of a request whose entries have generated ids: the conversation.
const CONVERSATION_MEMBERS: &[&str] = &["messages", "input"];
/// Types of entries of a conversation whose `id` is generated, beside those that end with `_call`.
const ID_TYPES: &[&str] =
    &["function", "tool_use", "server_tool_use", "mcp_tool_use", "message", "reasoning", "item_reference"];
/// Parameters of a query that hold keys. They are not recorded, and do not count.
const KEY_PARAMETERS: &[&str] =
    &["key", "api_key", "api-key", "apikey", "access_token", "token", "sig", "signature"];
/// Members that hold a generated id, in any object of a conversation.
const ID_MEMBERS: &[&str] = &["tool_call_id", "tool_use_id", "call_id"];
/// Members whose content belongs to tools or schemas, so an `id` there is data.
const OPAQUE_MEMBERS: &[&str] = &["arguments", "parameters", "input_schema", "schema"];

optional_members! {
    /// A relayed request with the answer of its provider. Headers are not part of it, so keys are not.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct RelayedExchange {
        /// Name of the conversation: the same in the recorded and the replayed run.
        pub lane: String,
        /// Name of the served model.
        pub model: String,
        /// HTTP method; absent in recordings of earlier versions, whose requests are equal with any method and query.
        pub method?: Option<String>,
        /// Path below the base address, without `v1` and query.
        pub path: String,
        /// Query without keys.
        pub query?: Option<String>,
        /// Body of the request; null if there is none.
        pub request: Value,
        /// HTTP status of the answer.
        pub status: u16,
        /// Content type of the answer.
        pub content_type?: Option<String>,
        /// Body of the answer: JSON, or a text such as a stream of events.
        pub response: Value,
        /// Time to the end of the answer, in milliseconds.
        pub took_ms: u64,
    }
}

/// A file with recorded exchanges.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelCassette {
    exchanges: Vec<RelayedExchange>,
    /// Lines of the exchanges, if they are those of a file.
    lines: Vec<usize>,
}

/// Error of a recording.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct CassetteLineError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong.
    #[source]
    pub problem: CassetteProblem,
}

/// Problem of a line of a recording.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum CassetteProblem {
    #[error("the recording is empty")]
    Empty,
    #[error("this is no recording of a served model (`{FORMAT_NAME}`)")]
    NoRecording,
    #[error("the recording was made by a newer version: update Hotseat, or record it again")]
    NewerVersion,
    #[error("{}", error_in_line(.0))]
    Json(#[from] serde_json::Error),
}

impl ModelCassette {
    /// Reads a recording.
    ///
    /// # Errors
    /// If a line is invalid, or the format is newer.
    pub fn parse(text: &str) -> Result<ModelCassette, CassetteLineError> {
        let wrong = |line: usize, problem| CassetteLineError { line, problem };
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (first, head) = lines.next().ok_or_else(|| wrong(1, CassetteProblem::Empty))?;
        let head: Value = serde_json::from_str(head).unwrap_or_default();
        if head["format"] != FORMAT_NAME {
            return Err(wrong(first + 1, CassetteProblem::NoRecording));
        }
        if head["version"].as_u64().is_none_or(|version| version > FORMAT_VERSION) {
            return Err(wrong(first + 1, CassetteProblem::NewerVersion));
        }
        let mut cassette = ModelCassette::default();
        for (index, line) in lines {
            let exchange = read_record(line).and_then(serde_json::from_value);
            cassette.exchanges.push(exchange.map_err(|error| wrong(index + 1, error.into()))?);
            cassette.lines.push(index + 1);
        }
        Ok(cassette)
    }

    /// Returns the exchanges, in the order of the file.
    pub fn exchanges(&self) -> &[RelayedExchange] {
        &self.exchanges
    }

    /// Returns the line of an exchange in the file.
    fn line(&self, index: usize) -> usize {
        self.lines.get(index).copied().unwrap_or_default()
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        writeln!(out, "{}", json!({"format": FORMAT_NAME, "version": FORMAT_VERSION}))?;
        for exchange in &self.exchanges {
            writeln!(out, "{}", serde_json::to_string(exchange)?)?;
        }
        Ok(())
    }
}

/// A file that conversations record to. Each replaces its own lane; the others stay.
#[derive(Debug)]
pub struct CassetteFile {
    path: PathBuf,
    /// Read before the first write.
    lanes: Mutex<Option<CassetteLanes>>,
}

/// Exchanges by lane and model.
type CassetteLanes = BTreeMap<(String, String), Vec<RelayedExchange>>;

impl CassetteFile {
    /// Creates a file at a path, which is read and written when a conversation is saved.
    pub fn new(path: PathBuf) -> CassetteFile {
        CassetteFile { path, lanes: Mutex::new(None) }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the exchanges of a model in a lane, and writes the file.
    pub(super) fn save(&self, lane: &str, model: &str, exchanges: Vec<RelayedExchange>) -> io::Result<()> {
        let mut known = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = match known.take() {
            Some(lanes) => lanes,
            None => self.read()?,
        };
        lanes.insert((lane.to_owned(), model.to_owned()), exchanges);
        let cassette =
            ModelCassette { exchanges: lanes.values().flatten().cloned().collect(), lines: Vec::new() };
        *known = Some(lanes);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // A run that is ended while it writes leaves the old file.
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}.tmp", std::process::id()));
        let mut file = io::BufWriter::new(fs::File::create(&beside)?);
        cassette.write(&mut file)?;
        file.flush()?;
        fs::rename(&beside, &self.path)
    }

    fn read(&self) -> io::Result<CassetteLanes> {
        let text = match hotseat_document::read_text_file(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CassetteLanes::new()),
            Err(error) => return Err(error),
        };
        let cassette =
            ModelCassette::parse(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let mut lanes = CassetteLanes::new();
        for exchange in cassette.exchanges {
            lanes.entry((exchange.lane.clone(), exchange.model.clone())).or_default().push(exchange);
        }
        Ok(lanes)
    }
}

/// Where the exchanges of a relay are recorded.
#[derive(Clone)]
pub struct RecordTarget {
    /// The file.
    pub file: Arc<CassetteFile>,
    /// Name of the conversation in the recording.
    pub lane: String,
    /// Removes secrets. Keys in headers of requests are removed anyway.
    pub cleaner: TextCleaner,
}

/// A recording that a served model answers from.
#[derive(Clone)]
pub struct ReplaySource {
    /// The recording.
    pub cassette: Arc<ModelCassette>,
    /// Name of the conversation in the recording.
    pub lane: String,
    /// JSON Pointers of members that do not count, for example a date; `*` stands for any index or name.
    pub ignored: Vec<String>,
    /// Removes secrets, as they are not part of the recording.
    pub cleaner: TextCleaner,
}

/// State of a replay in one conversation.
pub(super) struct ReplayTable {
    source: ReplaySource,
    model: String,
    /// Indices of unused exchanges by the identity of their requests.
    waiting: HashMap<String, VecDeque<usize>>,
    /// Indices of the exchanges of the lane, with whether they were used.
    lane: Vec<(usize, bool)>,
}

impl ReplayTable {
    pub(super) fn new(source: ReplaySource, model: &str) -> ReplayTable {
        let mut table =
            ReplayTable { model: model.to_owned(), waiting: HashMap::new(), lane: Vec::new(), source };
        let cassette = table.source.cassette.clone();
        for (index, exchange) in cassette.exchanges.iter().enumerate() {
            if exchange.lane == table.source.lane && exchange.model == model {
                let line = match &exchange.method {
                    None => any_line(&exchange.path),
                    Some(method) => request_line(method, &exchange.path, exchange.query.as_deref()),
                };
                let key = identity(&line, &table.canonical(&exchange.request));
                table.waiting.entry(key).or_default().push_back(index);
                table.lane.push((index, false));
            }
        }
        table
    }

    /// Returns the next recorded answer to a request with this method, path and query without keys. Fails if no exchange fits: the nearest
    /// one with its first difference.
    pub(super) fn take(
        &mut self,
        method: &str,
        path: &str,
        query: Option<&str>,
        request: &Value,
    ) -> Result<RelayedExchange, UnmatchedRequest> {
        let now = self.canonical(request);
        let query = query.map(|query| self.source.cleaner.text(query));
        let line = request_line(method, path, query.as_deref());
        let lines = [&line, &any_line(path)];
        let next =
            lines.into_iter().find_map(|line| self.waiting.get_mut(&identity(line, &now))?.pop_front());
        let Some(index) = next else { return Err(UnmatchedRequest(self.describe_miss(&line, path, &now))) };
        if let Ok(position) = self.lane.binary_search_by_key(&index, |(index, _)| *index) {
            self.lane[position].1 = true;
        }
        Ok(self.source.cassette.exchanges[index].clone())
    }

    /// Describes the exchanges that no request used.
    pub(super) fn unused(&self) -> Vec<String> {
        let unused = self.lane.iter().filter(|(_, is_used)| !is_used);
        let line = |index: &usize| self.source.cassette.line(*index);
        unused.map(|(index, _)| format!("the exchange in line {}", line(index))).collect()
    }

    fn canonical(&self, request: &Value) -> Value {
        let mut value = self.source.cleaner.value(request);
        for pointer in &self.source.ignored {
            let names: Vec<&str> = pointer.split('/').skip(1).collect();
            remove(&mut value, &names);
        }
        value.sort_all_objects();
        let mut known = HashMap::new();
        for member in CONVERSATION_MEMBERS {
            if let Some(entries) = value.get_mut(member) {
                number_ids(entries, &mut known);
            }
        }
        value
    }

    fn describe_miss(&self, line: &str, path: &str, now: &Value) -> String {
        let exchanges = &self.source.cassette.exchanges;
        let of_path = self.lane.iter().filter(|(index, _)| exchanges[*index].path == path);
        let recorded = of_path.take(MAX_COMPARED).map(|(index, is_used)| RecordedRequest {
            index: *index,
            request: self.canonical(&exchanges[*index].request),
            is_used: *is_used,
        });
        if let Some((index, change)) = nearest_request(recorded, now) {
            let change = change.unwrap_or_else(|| {
                let exchange = &exchanges[index];
                match exchange.method.as_deref() {
                    Some(method) if request_line(method, path, exchange.query.as_deref()) != line => {
                        format!("it is {}", request_line(method, path, exchange.query.as_deref()))
                    }
                    _ => "the recording has no further answer to this request".to_owned(),
                }
            });
            let line = self.source.cassette.line(index);
            return format!("the nearest recorded request is in line {line}: {change}");
        }
        if !self.lane.is_empty() {
            return format!("the recording has no request to `{path}` in this conversation");
        }
        let mut lanes: Vec<&str> = Vec::new();
        for exchange in exchanges.iter().filter(|exchange| exchange.model == self.model) {
            if lanes.last() != Some(&exchange.lane.as_str()) {
                lanes.push(&exchange.lane);
            }
        }
        lanes.truncate(MAX_LISTED_LANES);
        let known = if lanes.is_empty() { "nothing".to_owned() } else { lanes.join(", ") };
        let (lane, model) = (&self.source.lane, &self.model);
        format!("the recording has no conversation `{lane}` with the model `{model}`; it has {known}")
    }
}

/// A request that no exchange fits, described by the nearest one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnmatchedRequest(String);

/// The first line of a request, as `GET files?after=2`.
fn request_line(method: &str, path: &str, query: Option<&str>) -> String {
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{method} {path}{query}")
}

/// The first line of a request of an earlier version, whose method and query are not known.
fn any_line(path: &str) -> String {
    format!("* {path}")
}

fn identity(line: &str, canonical: &Value) -> String {
    format!("{line}\n{canonical}")
}

/// A query without its keys; `None` if nothing else is in it.
pub(super) fn query_without_keys(query: &str) -> Option<String> {
    let kept: Vec<&str> = query.split('&').filter(|parameter| !holds_key(parameter)).collect();
    let kept = kept.join("&");
    (!kept.is_empty()).then_some(kept)
}

/// Returns the keys in a query, as they are in it and decoded.
pub(super) fn query_keys(query: &str) -> impl Iterator<Item = String> {
    query.split('&').filter(|parameter| holds_key(parameter)).flat_map(|parameter| {
        let raw = parameter.split_once('=').map_or("", |(_, value)| value).to_owned();
        let (_, decoded) = decode_parameter(parameter);
        std::iter::once(raw).chain([decoded])
    })
}

fn holds_key(parameter: &str) -> bool {
    KEY_PARAMETERS.contains(&decode_parameter(parameter).0.to_ascii_lowercase().as_str())
}

/// Returns the name and the value of a parameter.
fn decode_parameter(parameter: &str) -> (String, String) {
    url::form_urlencoded::parse(parameter.as_bytes())
        .next()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .unwrap_or_default()
}

/// Removes what a pointer names.
fn remove(value: &mut Value, names: &[&str]) {
    let [name, rest @ ..] = names else { return };
    let key = name.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(members) if rest.is_empty() && *name == "*" => members.clear(),
        Value::Object(members) if rest.is_empty() => drop(members.shift_remove(&key)),
        Value::Object(members) if *name == "*" => {
            members.values_mut().for_each(|member| remove(member, rest));
        }
        Value::Object(members) => members.get_mut(&key).into_iter().for_each(|member| remove(member, rest)),
        Value::Array(items) => {
            let index = name.parse::<usize>().ok();
            for (position, item) in items.iter_mut().enumerate() {
                if *name == "*" || index == Some(position) {
                    match rest.is_empty() {
                        true => *item = Value::Null,
                        false => remove(item, rest),
                    }
                }
            }
        }
        _ => {}
    }
}

/// Replaces generated ids by numbers, in the order of their appearance.
fn number_ids(value: &mut Value, known: &mut HashMap<String, usize>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| number_ids(item, known)),
        Value::Object(members) => {
            let entry = members.get("type").and_then(Value::as_str);
            let is_typed = entry.is_some_and(|kind| ID_TYPES.contains(&kind) || kind.ends_with("_call"));
            let is_call = members.get("type").is_some_and(|kind| kind == "tool_use");
            for (key, member) in members.iter_mut() {
                let is_id = ID_MEMBERS.contains(&key.as_str()) || (key == "id" && is_typed);
                match member {
                    Value::String(id) if is_id => {
                        let next = known.len() + 1;
                        *id = format!("id-{}", known.entry(std::mem::take(id)).or_insert(next));
                    }
                    _ if OPAQUE_MEMBERS.contains(&key.as_str()) || (is_call && key == "input") => {}
                    member => number_ids(member, known),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::{number_ids, remove};

    #[test]
    fn ids_count_by_their_order_and_data_of_tools_stays() {
        let mut value = json!([
            {"tool_calls": [{"id": "call_x", "type": "function", "function": {"arguments": {"id": "o-7"}}}]},
            {"role": "tool", "tool_call_id": "call_x"},
            {"type": "tool_use", "id": "toolu_9", "input": {"type": "order", "id": "o-7"}},
            {"id": "kept"},
            {"type": "order", "id": "kept"},
        ]);
        number_ids(&mut value, &mut HashMap::new());
        assert_eq!(value[0]["tool_calls"][0]["id"], "id-1");
        assert_eq!(value[0]["tool_calls"][0]["function"]["arguments"]["id"], "o-7");
        assert_eq!(value[1]["tool_call_id"], "id-1");
        assert_eq!((&value[2]["id"], &value[2]["input"]["id"]), (&json!("id-2"), &json!("o-7")));
        assert_eq!((&value[3]["id"], &value[4]["id"]), (&json!("kept"), &json!("kept")));
    }

    #[test]
    fn pointers_remove_members_and_items() {
        let mut value =
            json!({"user": "u1", "messages": [{"content": "today", "role": "system"}, {"content": "hi"}]});
        remove(&mut value, &["user"]);
        remove(&mut value, &["messages", "0", "content"]);
        remove(&mut value, &["messages", "7", "content"]);
        assert_eq!(value, json!({"messages": [{"role": "system"}, {"content": "hi"}]}));
        remove(&mut value, &["messages", "*", "content"]);
        assert_eq!(value, json!({"messages": [{"role": "system"}, {}]}));
    }
}
