//! Recordings: the exchanges of one server in one conversation, as a file, and their replay.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hotseat_document::json::to_line;
use hotseat_document::json::{error_in_line, read_record};
use hotseat_serve::TextCleaner;
use hotseat_trace::{RecordedRequest, canonical_text, nearest_request};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::frame::RpcError;
use crate::revision::meta;

/// Version of the file format. Readers reject newer versions.
const FORMAT_VERSION: u64 = 1;
/// Format name in the first line of a recording.
const FORMAT_NAME: &str = "hotseat-mcp-recording";
/// Maximum number of recorded exchanges that are compared with a request that none fits.
const MAX_COMPARED: usize = 1000;

/// A request with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct McpExchange {
    /// The conversation, in a recording of several ones.
    pub conversation: Option<String>,
    /// Name of the method.
    pub method: String,
    /// Parameters without `_meta`, which contains what differs from run to run.
    pub params: Map<String, Value>,
    /// Result or error.
    pub outcome: Result<Value, RpcError>,
    /// Notifications before the answer.
    pub notifications: Vec<Value>,
    /// Requests of the server to a client with a session before the answer.
    pub questions: Vec<RecordedQuestion>,
    /// Time until the answer in milliseconds.
    pub duration_ms: u64,
}

/// A request of a server to its client within a call, such as `elicitation/create`, with the response of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedQuestion {
    /// Name of the method.
    pub method: String,
    /// Parameters.
    pub params: Value,
    /// Result of the client.
    pub response: Value,
}

impl RecordedQuestion {
    fn to_json(&self) -> Value {
        json!({"method": self.method, "params": self.params, "result": self.response})
    }

    fn from_json(question: &Value) -> Option<RecordedQuestion> {
        Some(RecordedQuestion {
            method: question.get("method")?.as_str()?.to_string(),
            params: question.get("params").cloned().unwrap_or_default(),
            response: question.get("result")?.clone(),
        })
    }
}

/// The exchanges of one server in the order of their answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpRecording {
    /// Name of the recorded server.
    pub server: String,
    /// The exchanges.
    pub exchanges: Vec<McpExchange>,
    /// Lines of the exchanges, if they are those of a file.
    pub lines: Vec<usize>,
}

/// A recording to answer from.
#[derive(Debug, Clone)]
pub struct McpReplaySource {
    /// The recording.
    pub recording: Arc<McpRecording>,
    /// Removes the secrets from requests before they are compared, as they were removed from the recording.
    pub cleaner: TextCleaner,
    /// Conversation of a recording of several ones; `None` replays all of them. Lists are answered from all.
    pub conversation: Option<String>,
}

/// Error of a recording file.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RecordingLineError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong.
    #[source]
    pub problem: RecordingProblem,
}

/// Problem of a line of a recording.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum RecordingProblem {
    #[error("the recording is empty")]
    Empty,
    #[error("{}", error_in_line(.0))]
    Json(#[from] serde_json::Error),
    #[error("this is no recording of MCP traffic (`{FORMAT_NAME}`)")]
    NoRecording,
    #[error("the recording was made by a newer version: update Hotseat, or record it again")]
    NewerVersion,
    #[error("`method` is missing")]
    NoMethod,
    #[error("an exchange needs `result` or `error`")]
    NoOutcome,
    #[error("each of the `questions` needs `method` and `result`")]
    InvalidQuestion,
}

impl McpExchange {
    /// Identity of a request: two requests with the same digest get the same answers.
    pub fn digest(method: &str, params: &Map<String, Value>) -> String {
        let text = format!("{method}\0{}", canonical_text(&Value::Object(without_meta(params))));
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn to_json(&self) -> Value {
        let mut line = Map::new();
        if let Some(conversation) = &self.conversation {
            line.insert("conversation".to_string(), json!(conversation));
        }
        line.insert("method".to_string(), json!(self.method));
        line.insert("params".to_string(), json!(self.params));
        let mut line = Value::Object(line);
        match &self.outcome {
            Ok(result) => line["result"] = result.clone(),
            Err(error) => line["error"] = error.to_json(),
        }
        if !self.notifications.is_empty() {
            line["notifications"] = json!(self.notifications);
        }
        if !self.questions.is_empty() {
            line["questions"] = self.questions.iter().map(RecordedQuestion::to_json).collect();
        }
        line["duration_ms"] = json!(self.duration_ms);
        line
    }

    fn from_json(line: &Value) -> Result<McpExchange, RecordingProblem> {
        let method =
            line.get("method").and_then(Value::as_str).ok_or(RecordingProblem::NoMethod)?.to_string();
        let outcome = match (line.get("result"), line.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(RpcError::from_json(error)),
            _ => return Err(RecordingProblem::NoOutcome),
        };
        let questions = line.get("questions").and_then(Value::as_array).into_iter().flatten();
        let questions: Option<Vec<_>> = questions.map(RecordedQuestion::from_json).collect();
        Ok(McpExchange {
            questions: questions.ok_or(RecordingProblem::InvalidQuestion)?,
            conversation: line.get("conversation").and_then(Value::as_str).map(str::to_string),
            method,
            params: line.get("params").and_then(Value::as_object).cloned().unwrap_or_default(),
            outcome,
            notifications: line.get("notifications").and_then(Value::as_array).cloned().unwrap_or_default(),
            duration_ms: line.get("duration_ms").and_then(Value::as_u64).unwrap_or_default(),
        })
    }

    /// Whether a replay must match the request, which is not so for handshakes and lists.
    fn is_matched(&self) -> bool {
        !matches!(self.method.as_str(), "initialize" | "ping" | "server/discover" | "logging/setLevel")
            && !self.method.ends_with("/list")
            && !self.method.ends_with("/listen")
    }
}

impl McpReplaySource {
    /// Whether an exchange belongs to the conversation of the replay.
    fn is_in_conversation(&self, exchange: &McpExchange) -> bool {
        let (wanted, recorded) = (&self.conversation, &exchange.conversation);
        wanted.is_none() || recorded.is_none() || wanted == recorded
    }
}

/// Returns parameters without `_meta`.
pub(crate) fn without_meta(params: &Map<String, Value>) -> Map<String, Value> {
    params
        .iter()
        .filter(|(key, _)| *key != "_meta")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

impl McpRecording {
    /// Reads a recording. Fails if a line is invalid, or the format is newer.
    pub fn read(text: &str) -> Result<McpRecording, RecordingLineError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let wrong = |index: usize, problem| RecordingLineError { line: index + 1, problem };
        let parse = |index: usize, line: &str| read_record(line).map_err(|error| wrong(index, error.into()));
        let Some((index, head)) = lines.next() else {
            return Err(wrong(0, RecordingProblem::Empty));
        };
        let head = read_record(head).unwrap_or_default();
        if head["format"] != FORMAT_NAME {
            return Err(wrong(index, RecordingProblem::NoRecording));
        }
        if head["version"].as_u64().is_none_or(|version| version > FORMAT_VERSION) {
            return Err(wrong(index, RecordingProblem::NewerVersion));
        }
        let server = head["server"].as_str().unwrap_or_default().to_string();
        let (mut exchanges, mut numbers) = (Vec::new(), Vec::new());
        for (index, line) in lines {
            numbers.push(index + 1);
            let exchange = McpExchange::from_json(&parse(index, line)?);
            exchanges.push(exchange.map_err(|problem| wrong(index, problem))?);
        }
        Ok(McpRecording { server, exchanges, lines: numbers })
    }

    /// Writes the recording as JSON lines, without secrets.
    pub fn write(&self, cleaner: &TextCleaner) -> String {
        let head = json!({"format": FORMAT_NAME, "version": FORMAT_VERSION, "server": self.server});
        let mut text = format!("{head}\n");
        for exchange in &self.exchanges {
            text.push_str(&to_line(&cleaner.value(&exchange.to_json())));
            text.push('\n');
        }
        text
    }

    /// Returns true if a request of this method was answered without an error.
    pub fn has_answer(&self, method: &str) -> bool {
        self.exchanges.iter().any(|exchange| exchange.method == method && exchange.outcome.is_ok())
    }

    /// Entries of a recorded list over all its pages, such as `tools` of `tools/list`. Of entries with the same name the first
    /// stays.
    pub fn entries(&self, method: &str, member: &str) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        let mut names = std::collections::HashSet::new();
        let results = self.exchanges.iter().filter(|exchange| exchange.method == method);
        for result in results.filter_map(|exchange| exchange.outcome.as_ref().ok()) {
            for entry in result.get(member).and_then(Value::as_array).into_iter().flatten() {
                let name = ["name", "uri", "uriTemplate"].iter().find_map(|key| entry.get(key)?.as_str());
                if names.insert(name.unwrap_or_default().to_string()) {
                    found.push(entry.clone());
                }
            }
        }
        found
    }
}

/// State of a replay in one conversation.
pub(crate) struct ReplayTable {
    source: McpReplaySource,
    waiting: HashMap<String, VecDeque<usize>>,
    used: Vec<bool>,
    /// Result of the first recorded handshake.
    announced: Value,
}

/// A request that no exchange of a recording fits.
#[derive(Debug, thiserror::Error)]
#[error("{nearest}")]
pub(crate) struct UnmatchedRequest {
    /// The nearest exchange with its first difference.
    pub(crate) nearest: String,
}

impl ReplayTable {
    pub(crate) fn new(source: McpReplaySource) -> ReplayTable {
        let mut waiting: HashMap<String, VecDeque<usize>> = HashMap::new();
        let all = source.recording.exchanges.iter().enumerate();
        let matched = all.filter(|(_, one)| one.is_matched() && source.is_in_conversation(one));
        for (index, exchange) in matched {
            let params = source.cleaner.value(&Value::Object(exchange.params.clone()));
            let params = params.as_object().cloned().unwrap_or_default();
            waiting.entry(McpExchange::digest(&exchange.method, &params)).or_default().push_back(index);
        }
        let used = vec![false; source.recording.exchanges.len()];
        let announced = source.recording.exchanges.iter().find_map(|exchange| {
            let is_handshake = matches!(exchange.method.as_str(), "initialize" | "server/discover");
            exchange.outcome.as_ref().ok().filter(|_| is_handshake).cloned()
        });
        ReplayTable { source, waiting, used, announced: announced.unwrap_or_default() }
    }

    /// Returns a member of the recorded handshake, such as `capabilities`.
    pub(crate) fn announced(&self, member: &str) -> Option<&Value> {
        self.announced.get(member)
    }

    /// Returns the name and the version that the recorded server announced.
    pub(crate) fn server_info(&self) -> Option<&Value> {
        self.announced("serverInfo").or_else(|| self.announced("_meta")?.get(meta::SERVER_INFO))
    }

    /// Returns the next recorded answer to a request. Fails if no exchange fits: the nearest one with its
    /// first difference.
    pub(crate) fn take(
        &mut self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<McpExchange, UnmatchedRequest> {
        let params = self.source.cleaner.value(&Value::Object(without_meta(params)));
        let params = params.as_object().cloned().unwrap_or_default();
        let recorded = self.waiting.get_mut(&McpExchange::digest(method, &params));
        if let Some(index) = recorded.and_then(VecDeque::pop_front) {
            self.used[index] = true;
            return Ok(self.source.recording.exchanges[index].clone());
        }
        Err(UnmatchedRequest { nearest: self.nearest(method, &params) })
    }

    /// Returns the first difference between a recorded response of the client and one of now.
    pub(crate) fn response_difference(&self, recorded: &Value, now: &Value) -> Option<String> {
        let clean = |value: &Value| self.source.cleaner.value(value);
        let request = RecordedRequest { index: 0, request: clean(recorded), is_used: false };
        nearest_request(std::iter::once(request), &clean(now))?.1
    }

    fn nearest(&self, method: &str, params: &Map<String, Value>) -> String {
        let now = Value::Object(params.clone());
        let compared = |is_same_tool: bool| {
            let all = self.source.recording.exchanges.iter().enumerate();
            let own = all.filter(|(_, one)| self.source.is_in_conversation(one) && one.method == method);
            let tool =
                own.filter(move |(_, one)| !is_same_tool || one.params.get("name") == params.get("name"));
            let recorded = tool.take(MAX_COMPARED).map(|(index, exchange)| RecordedRequest {
                index,
                request: self.source.cleaner.value(&Value::Object(exchange.params.clone())),
                is_used: self.used[index],
            });
            nearest_request(recorded, &now)
        };
        match compared(true).or_else(|| compared(false)) {
            Some((index, change)) => {
                let change = change
                    .unwrap_or_else(|| "the recording has no further answer to this request".to_string());
                let line = self.source.recording.lines.get(index).copied().unwrap_or_default();
                format!("exchange in line {line}: {change}")
            }
            None => match &self.source.conversation {
                Some(name) => format!("the recording has no request `{method}` of the conversation `{name}`"),
                None => format!("the recording has no request `{method}`"),
            },
        }
    }

    /// Returns the exchanges that no request has used.
    pub(crate) fn unused(&self) -> Vec<McpExchange> {
        let exchanges = self.source.recording.exchanges.iter().zip(&self.used);
        let is_unused = |one: &McpExchange| one.is_matched() && self.source.is_in_conversation(one);
        exchanges.filter(|(one, used)| !**used && is_unused(one)).map(|(one, _)| one.clone()).collect()
    }
}
