//! Answers of simulators and judges in one conversation: recorded, and given again to equal questions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_document::json::{error_in_line, read_record};
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::{RecordedRequest, nearest_request, optional_members};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::dialogue::message_json;
use super::{RetryAdvice, RoleError, RoleQuestion, RoleReply};

/// Format of the file, in its first line.
const FORMAT_NAME: &str = "hotseat-roles";
const FORMAT_VERSION: u64 = 2;
/// Maximum number of recorded questions that are compared with one that has no answer.
const MAX_COMPARED: usize = 200;

/// Recorded answers of roles in one conversation.
#[derive(Debug, Default)]
pub struct RoleCassette {
    is_replay: bool,
    answers: Mutex<Vec<RecordedAnswer>>,
}

/// A cassette, and the redactor of the conversation.
#[derive(Debug, Clone)]
pub struct RoleCassetteHandle {
    /// The cassette.
    pub cassette: Arc<RoleCassette>,
    /// Removes secrets from questions and answers.
    pub redactor: SecretRedactor,
}

optional_members! {
    /// A question with its answer, which is missing while the role is asked.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct RecordedAnswer {
        /// Displayable reference of the role.
        role: String,
        question: Value,
        reply?: Option<RecordedReply>,
        /// Why there is no reply.
        error?: Option<String>,
        /// True if the answer was given in this conversation.
        #[serde(skip)]
        is_used: bool,
        /// Its line in the file, if it was read from one.
        #[serde(skip)]
        line: usize,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct RecordedReply {
        text: String,
        model?: Option<String>,
        usage?: Option<Value>,
        is_truncated?: bool,
        logs?: Vec<String>,
        duration_ms: u64,
    }
}

/// Error of a recorded cassette.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum RoleCassetteError {
    #[error("line 1: this is no recording of roles (`{FORMAT_NAME}`)")]
    NoRecording,
    #[error("line 1: the recording was made by a newer version: update Hotseat, or record it again")]
    NewerVersion,
    #[error("line {number}: {}", error_in_line(.source))]
    Line { number: usize, source: serde_json::Error },
}

impl RoleCassette {
    /// Reads a recorded cassette. Fails if a line is invalid, or the format is newer.
    pub fn parse(text: &str) -> Result<RoleCassette, RoleCassetteError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let head = lines.next().map(|(_, line)| serde_json::from_str::<Value>(line).unwrap_or_default());
        let head = head.unwrap_or_default();
        if head["format"] != FORMAT_NAME {
            return Err(RoleCassetteError::NoRecording);
        }
        if head["version"].as_u64().is_none_or(|version| version > FORMAT_VERSION) {
            return Err(RoleCassetteError::NewerVersion);
        }
        let read = |(index, line): (usize, &str)| {
            let answer = read_record(line).and_then(serde_json::from_value::<RecordedAnswer>);
            let answer = answer.map(|answer| RecordedAnswer { line: index + 1, ..answer });
            answer.map_err(|source| RoleCassetteError::Line { number: index + 1, source })
        };
        let mut answers = lines.map(read).collect::<Result<Vec<RecordedAnswer>, _>>()?;
        // Earlier versions kept more of a question.
        answers.iter_mut().for_each(|answer| normalize(&mut answer.question));
        Ok(RoleCassette { is_replay: true, answers: Mutex::new(answers) })
    }

    /// A replay without any answer.
    pub fn without_answers() -> RoleCassette {
        RoleCassette { is_replay: true, answers: Mutex::default() }
    }

    /// The recorded answers as JSON lines.
    pub fn to_text(&self) -> String {
        let head = json!({"format": FORMAT_NAME, "version": FORMAT_VERSION}).to_string();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = answers.iter().filter(|answer| answer.reply.is_some() || answer.error.is_some());
        let lines = lines.filter_map(|answer| serde_json::to_string(answer).ok());
        std::iter::once(head).chain(lines).map(|line| line + "\n").collect()
    }

    /// Describes the answers of a replay that no question used.
    pub fn unused_answers(&self) -> Vec<String> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = answers.iter().filter(|answer| self.is_replay && !answer.is_used);
        unused.map(|answer| format!("{} in line {}", answer.role, answer.line)).collect()
    }

    /// True if roles are not asked.
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }
}

impl RoleCassetteHandle {
    /// Answers a question: from the recording, or with `ask`, whose answer is recorded.
    pub(super) async fn answer<F>(
        &self,
        role: &str,
        question: RoleQuestion,
        ask: impl FnOnce(RoleQuestion) -> F,
    ) -> Result<RoleReply, (RoleError, RetryAdvice)>
    where
        F: Future<Output = Result<RoleReply, (RoleError, RetryAdvice)>>,
    {
        let compared = self.compared(&question);
        if self.cassette.is_replay {
            return self.take(role, &compared);
        }
        // Answers keep the order of their questions.
        let place = {
            let mut answers = self.cassette.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let (role, question) = (role.to_string(), compared);
            answers.push(RecordedAnswer {
                role,
                question,
                reply: None,
                error: None,
                is_used: false,
                line: 0,
            });
            answers.len() - 1
        };
        let outcome = ask(question).await;
        let mut answers = self.cassette.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(reply) => answers[place].reply = Some(self.recorded(reply)),
            // How much time is left differs from run to run.
            Err((RoleError::Deadline, _)) => {}
            Err((error, _)) => {
                answers[place].error = Some(self.redactor.message(&error.to_string()).into_owned())
            }
        }
        outcome
    }

    fn recorded(&self, reply: &RoleReply) -> RecordedReply {
        let clean = |text: &String| self.redactor.text(text).into_owned();
        RecordedReply {
            text: clean(&reply.text),
            model: reply.model.clone(),
            usage: reply.usage.clone(),
            is_truncated: reply.is_truncated,
            logs: reply.logs.iter().map(clean).collect(),
            duration_ms: u64::try_from(reply.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// What must be equal in two questions: everything but ids and the order of tool calls between two messages.
    fn compared(&self, question: &RoleQuestion) -> Value {
        let mut value = json!({"message": question.message, "prompt": question.prompt});
        if !question.options.is_empty() {
            value["options"] = Value::Object(question.options.clone());
        }
        if !question.history.is_empty() {
            value["history"] = question.history.iter().map(message_json).collect();
        }
        let mut value = self.redactor.json(value);
        normalize(&mut value);
        value
    }

    /// Returns the next recorded answer to an equal question.
    fn take(&self, role: &str, question: &Value) -> Result<RoleReply, (RoleError, RetryAdvice)> {
        let mut answers = self.cassette.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = |answer: &&mut RecordedAnswer| {
            !answer.is_used && answer.role == role && answer.question == *question
        };
        let Some(answer) = answers.iter_mut().find(is_next) else {
            let words = describe_miss(&answers, role, question);
            return Err((RoleError::NotRecorded(words), RetryAdvice::Never));
        };
        answer.is_used = true;
        match answer.reply.clone() {
            Some(reply) => Ok(RoleReply {
                text: reply.text,
                duration: Duration::from_millis(reply.duration_ms),
                model: reply.model,
                usage: reply.usage,
                is_truncated: reply.is_truncated,
                logs: reply.logs,
            }),
            None => Err((RoleError::Failed(answer.error.clone().unwrap_or_default()), RetryAdvice::Now)),
        }
    }
}

/// Names the nearest recorded question of a role and its first difference.
fn describe_miss(answers: &[RecordedAnswer], role: &str, question: &Value) -> String {
    let of_role = answers.iter().enumerate().filter(|(_, answer)| answer.role == role);
    let recorded = of_role.take(MAX_COMPARED).map(|(index, answer)| RecordedRequest {
        index,
        request: answer.question.clone(),
        is_used: answer.is_used,
    });
    let missing = format!("the cassette has no answer of {role} to this question");
    match nearest_request(recorded, question) {
        None => format!("{missing}, and none to another one"),
        Some((index, change)) => {
            let change = change.unwrap_or_else(|| "it has no further answer to this question".to_string());
            format!("{missing}; the nearest one is in line {}: {change}", answers[index].line)
        }
    }
}

/// Removes ids, which differ from run to run, and the order of tool calls between two messages: calls at the same
/// time arrive in any order.
fn normalize(question: &mut Value) {
    if let Some(Value::String(text)) = question.get_mut("message")
        && let Some(normal) = normalize_evidence(text)
    {
        *text = normal;
    }
    if let Some(Value::Object(message)) = question.get_mut("message") {
        message.shift_remove("session_id");
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            calls.sort_by_cached_key(Value::to_string);
        }
        if let Some(Value::Array(messages)) = message.get_mut("conversation") {
            normalize_messages(messages);
        }
    }
    if let Some(Value::Object(metadata)) = question.pointer_mut("/options/metadata") {
        metadata.shift_remove("session_id");
    }
    if let Some(Value::Array(messages)) = question.get_mut("history") {
        normalize_messages(messages);
    }
}

/// The question of a built-in judge without the name of the marks around the evidence, which differs with any part of it, and
/// with sorted calls between two other lines. `None` if there are no such marks.
fn normalize_evidence(text: &str) -> Option<String> {
    // Only fixed text follows the evidence.
    let (before, rest) = text.rsplit_once("\n</evidence-")?;
    let (name, after) = rest.split_once('>')?;
    let (before, evidence) = before.rsplit_once(&format!("<evidence-{name}>\n"))?;
    let mut lines: Vec<&str> = evidence.split('\n').collect();
    let is_call =
        |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|line| line.get("tool").is_some());
    for run in lines.chunk_by_mut(|one, other| is_call(one) && is_call(other)) {
        run.sort_unstable();
    }
    Some(format!("{before}<evidence>\n{}\n</evidence>{after}", lines.join("\n")))
}

/// Puts calls in place of their ids, so that each result stays that of its call, and sorts calls and results between two messages.
fn normalize_messages(messages: &mut [Value]) {
    let mut by_id: HashMap<String, Value> = HashMap::new();
    for message in messages.iter_mut() {
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            for call in calls.iter_mut() {
                let id = call.as_object_mut().and_then(|call| call.shift_remove("id"));
                if let Some(Value::String(id)) = id {
                    by_id.insert(id, call.clone());
                }
            }
            calls.sort_by_cached_key(Value::to_string);
        }
        let id = message.as_object_mut().and_then(|message| message.shift_remove("tool_call_id"));
        if let Some(call) = id.and_then(|id| by_id.get(id.as_str()?)) {
            message["call"] = call.clone();
        }
    }
    for run in messages.chunk_by_mut(|one, other| is_about_tool(one) && is_about_tool(other)) {
        run.sort_by_cached_key(Value::to_string);
    }
}

/// True if a value is a message with tool calls, or with the result of one.
fn is_about_tool(message: &Value) -> bool {
    message["role"] == "tool" || (message["role"] == "assistant" && message["tool_calls"].is_array())
}
