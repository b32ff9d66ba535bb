//! Simulators: questions to simulated users and their answers.

use std::borrow::Cow;
use std::sync::Arc;

use hotseat_model::ResponseFormat;
use hotseat_trace::RoleAnswered;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    Dialogue, RoleClient, RoleError, RoleExchange, RoleQuestion, RoleReply, answer_json, excerpt,
    role_options,
};
use hotseat_checks::{AnswerContent, find_json};
use hotseat_document::is_blank;
use hotseat_targets::recorder::SecretRedactor;

const PROMPT: &str = include_str!("prompts/simulator.v1.md");
/// Prompt for a simulated user with a goal, which continues until it has nothing more to say.
const GOAL_PROMPT: &str = include_str!("prompts/user.v1.md");
const GOAL_SCHEMA: &str = include_str!("prompts/user.v1.schema.json");

/// Input of a simulator.
#[derive(Debug, Clone, Copy)]
pub struct SimulatorQuestion<'a> {
    /// Options of the case: `metadata` with `persona` and `goal`, `connector`, …
    pub options: &'a Map<String, Value>,
    /// Values of its brief, for a simulated user with a goal.
    pub brief_values: Option<&'a Map<String, Value>>,
    /// Custom prompt of the case for a model.
    pub prompt: Option<&'a str>,
    /// Id of the case.
    pub test_id: &'a str,
    /// Id of the conversation with the agent.
    pub session_id: &'a str,
    /// The conversation so far.
    pub dialogue: Dialogue<'a>,
    /// True if the conversation is passed as messages.
    pub as_messages: bool,
    /// Number of the next turn, from 1.
    pub turn_number: usize,
    /// Maximum number of turns.
    pub max_turns: usize,
    /// Names of reached and pending checkpoints.
    pub checkpoints: (&'a [&'a str], &'a [&'a str]),
    /// Deadline of the answer.
    pub deadline: Option<Instant>,
}

/// Decision of a simulated user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserDecision {
    /// Sends a message.
    Says(String),
    /// The goal is achieved. Any message is discarded.
    GoalAchieved,
    /// The goal cannot be achieved, and the user stops.
    GivesUp,
}

/// Answer of a simulated user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAnswer {
    /// The decision.
    pub next: UserDecision,
    /// Progress towards the goal: `none`, `partial`, `achieved`.
    pub goal_progress: Option<Arc<str>>,
    /// Reason.
    pub reason: Option<String>,
}

impl From<UserDecision> for UserAnswer {
    fn from(next: UserDecision) -> UserAnswer {
        UserAnswer { next, goal_progress: None, reason: None }
    }
}

impl RoleClient {
    /// Asks a simulated user for the next message, and returns the exchange for the trace.
    pub async fn simulate(
        &self,
        question: SimulatorQuestion<'_>,
    ) -> (Result<UserAnswer, RoleError>, RoleExchange) {
        let (message, metadata) = question.to_message();
        let dialogue = question.dialogue;
        let asked = RoleQuestion {
            message: message.clone(),
            options: role_options(question.options, metadata),
            history: if question.as_messages { dialogue.to_messages() } else { Vec::new() },
            turn: question.turn_number,
            prompt: question.system_prompt(),
            format: question.response_format(),
            deadline: question.deadline,
        };
        let (said, read) = match self.ask(asked).await {
            Err(error) => (RoleReply::default(), Err(error)),
            Ok(said) => {
                let text = said.ensure_complete();
                let read = text.and_then(|text| question.parse_answer(text, self.is_model()));
                (said, read)
            }
        };
        let exchange = RoleExchange {
            role: "simulator",
            agent: self.label().clone(),
            question: message,
            said,
            finding: None,
            error: None,
            vote_and_attempt: None,
        };
        exchange.with_answer(read)
    }
}

impl RoleExchange {
    /// Adds the answer of a simulated user, or the error.
    fn with_answer(
        self,
        read: Result<(UserAnswer, Value), RoleError>,
    ) -> (Result<UserAnswer, RoleError>, RoleExchange) {
        match read {
            Ok((answer, finding)) => {
                (Ok(answer), RoleExchange { finding: Some(finding), error: None, ..self })
            }
            Err(error) => {
                let exchange = RoleExchange { finding: None, ..self }.with_error(&error);
                (Err(error), exchange)
            }
        }
    }
}

impl SimulatorQuestion<'_> {
    /// Key of the first value that differs from a recorded question. Checkpoints are ignored, since they do
    /// not affect the message, and so is the id of the conversation, which is generated.
    pub fn changed_key(&self, before: &RoleAnswered, redactor: &SecretRedactor) -> Option<String> {
        let (now, before) = (redactor.json(self.to_message().0), redactor.json(before.question.clone()));
        let (Value::Object(now), Value::Object(before)) = (now, before) else { return None };
        let is_compared = |key: &&String| !key.starts_with("checkpoints_") && *key != "session_id";
        let keys = now.keys().chain(before.keys()).filter(is_compared);
        keys.into_iter().find(|key| now.get(*key) != before.get(*key)).cloned()
    }

    /// Parses a recorded answer again.
    pub fn parse_recorded(&self, before: &RoleAnswered) -> (Result<UserAnswer, RoleError>, RoleExchange) {
        let read = match (&before.finding, &before.error) {
            (None, Some(words)) => Err(RoleError::Failed(words.clone())),
            (None, None) | (Some(_), _) => self.parse_answer(&before.answer, false),
        };
        RoleExchange::from_record("simulator", before).with_answer(read)
    }

    /// System prompt for a model.
    fn system_prompt(&self) -> Cow<'static, str> {
        match (self.prompt, self.brief_values) {
            (Some(own), _) => Cow::Owned(own.to_string()),
            (None, Some(_)) => Cow::Borrowed(GOAL_PROMPT),
            (None, None) => Cow::Borrowed(PROMPT),
        }
    }

    /// Response format for a model.
    fn response_format(&self) -> Option<ResponseFormat> {
        let schema = || serde_json::from_str(GOAL_SCHEMA).expect("the schema is JSON");
        let format = || ResponseFormat { name: "user_v1".to_string(), schema: schema(), strict: true };
        self.brief_values.map(|_| format())
    }

    /// Parses an answer. A model with a goal must use the requested format.
    fn parse_answer(&self, text: &str, is_model: bool) -> Result<(UserAnswer, Value), RoleError> {
        match self.brief_values {
            None => parse_plain_answer(text).map(|(next, finding)| (next.into(), finding)),
            Some(_) => match answer_json::read_answer(text) {
                Ok(answer) if answer.get("done").is_some() => parse_goal_answer(answer),
                Err(why) if is_model => invalid(format!("the answer {why}; {}", excerpt(text))),
                Ok(answer) if is_model => {
                    let keys = ["done", "message", "goal_progress"];
                    let missing = keys.into_iter().filter(|key| answer.get(key).is_none());
                    let missing = missing.map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                    invalid(format!("the answer has no {missing}; {}", excerpt(text)))
                }
                Ok(_) | Err(_) => {
                    let (next, finding) = parse_plain_answer(text)?;
                    let next = match next {
                        UserDecision::Says(said) => UserDecision::Says(clean_message(&said)?),
                        other => other,
                    };
                    Ok((next.into(), finding))
                }
            },
        }
    }

    /// The message, and the part of it that is also metadata of the call.
    fn to_message(self) -> (Value, Map<String, Value>) {
        let mut metadata = Map::new();
        metadata.insert("test_mode".to_string(), json!("simulator"));
        metadata.insert("test_id".to_string(), json!(self.test_id));
        metadata.insert("session_id".to_string(), json!(self.session_id));
        metadata.insert("turn_number".to_string(), json!(self.turn_number));
        metadata.insert("max_turns".to_string(), json!(self.max_turns));
        metadata.insert("tool_results".to_string(), Value::Object(self.dialogue.tool_results()));
        let (reached, pending) = self.checkpoints;
        if !reached.is_empty() || !pending.is_empty() {
            metadata.insert("checkpoints_reached".to_string(), json!(reached));
            metadata.insert("checkpoints_pending".to_string(), json!(pending));
        }
        let mut message = match self.options.get("metadata") {
            Some(Value::Object(written)) => written.clone(),
            _ => Map::new(),
        };
        message
            .extend(self.brief_values.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        message.extend(metadata.clone());
        message.insert("last_response".to_string(), json!(self.dialogue.last_response()));
        if !self.as_messages {
            message.insert("conversation".to_string(), Value::Array(self.dialogue.to_json()));
        }
        (Value::Object(message), metadata)
    }
}

/// Error of an answer that is not what was asked for.
fn invalid<T>(words: impl Into<String>) -> Result<T, RoleError> {
    Err(RoleError::InvalidAnswer(words.into()))
}

/// Parses the answer of a simulated user with a goal.
fn parse_goal_answer(answer: Value) -> Result<(UserAnswer, Value), RoleError> {
    let wrong = |key: &str, wanted: &str| match answer.get(key) {
        Some(found) => format!("`{key}` of the answer is {found}, but must be {wanted}"),
        None => format!("the answer has no `{key}`: it must be {wanted}"),
    };
    let Some(done) = answer.get("done").and_then(Value::as_bool) else {
        return invalid(wrong("done", "true or false"));
    };
    let progress = answer.get("goal_progress").and_then(Value::as_str);
    let Some(progress) = progress.filter(|progress| ["none", "partial", "achieved"].contains(progress))
    else {
        return invalid(wrong("goal_progress", "`none`, `partial` or `achieved`"));
    };
    let reason = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(_) => return invalid(wrong("reason", "a text")),
    };
    let next = match (done, progress, answer.get("message")) {
        (true, "achieved", _) => UserDecision::GoalAchieved,
        (true, _, _) => UserDecision::GivesUp,
        (false, _, Some(Value::String(said))) => UserDecision::Says(clean_message(said)?),
        (false, _, _) => return invalid(wrong("message", "the user's message")),
    };
    let goal_progress = Some(progress.into());
    Ok((UserAnswer { next, goal_progress, reason }, answer))
}

/// Removes surrounding quotes and a leading name from a message. Fails if the message is blank.
fn clean_message(said: &str) -> Result<String, RoleError> {
    let mut text = said.trim();
    text = ["User:", "user:", "USER:"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text).trim();
    for (open, close) in [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»')] {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
            text = inner.trim();
        }
    }
    match is_blank(text) {
        true => invalid("the answer has neither a message nor `done: true`"),
        false => Ok(text.to_string()),
    }
}

/// Parses the answer of a simulated user: one JSON object with `input` or `message` and `goal_achieved`, or
/// plain text, which becomes the message. Any other JSON is rejected.
fn parse_plain_answer(text: &str) -> Result<(UserDecision, Value), RoleError> {
    let wrong = |why: &dyn std::fmt::Display| invalid(format!("{why}; {}", excerpt(text)));
    let answer = match answer_json::read_answer(text) {
        Ok(answer @ Value::Object(_)) => answer,
        Ok(Value::String(said)) => return parse_plain_text(&said).or_else(|why| wrong(&why)),
        Ok(_) => return wrong(&"the answer is JSON, but neither an object nor a string"),
        Err(_) if is_blank(text) => return invalid("the answer is empty"),
        Err(_) => return parse_plain_text(text).or_else(|why| wrong(&why)),
    };
    if !["input", "message", "goal_achieved"].iter().any(|key| answer.get(key).is_some()) {
        return wrong(&"the answer has neither `input` nor `goal_achieved`");
    }
    let achieved = match answer.get("goal_achieved") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(achieved)) => *achieved,
        Some(other) => return invalid(format!("`goal_achieved` is {other}, but must be true or false")),
    };
    if achieved {
        return Ok((UserDecision::GoalAchieved, answer));
    }
    let given = |key: &str| answer.get(key).filter(|value| !value.is_null());
    if given("input").is_some() && given("message").is_some() {
        return wrong(&"the answer has both `input` and `message`");
    }
    match given("input").or_else(|| given("message")) {
        Some(Value::String(said)) if !is_blank(said) => {
            Ok((UserDecision::Says(said.clone()), answer.clone()))
        }
        None | Some(Value::String(_)) => {
            invalid("the answer has neither a message nor `goal_achieved: true`")
        }
        Some(other) => invalid(format!("`input` is {other}, but must be a string")),
    }
}

/// Markup of reasoning, tool calls and ends of messages, in lower case. No user writes it.
const MODEL_MARKUP: [&str; 10] =
    ["<think", "</think", "[think]", "[/think]", "◁", "<|", "|>", "</s>", "<tool_call", "[tool_calls]"];

/// Accepts plain text as a message. Text with braces, a code block or markup is malformed JSON and rejected.
fn parse_plain_text(text: &str) -> Result<(UserDecision, Value), RoleError> {
    let said = text.trim();
    let why = match find_json(said) {
        AnswerContent::Malformed(why) => why,
        AnswerContent::Json(Value::Object(_) | Value::Array(_), _) => {
            "contains JSON and other text".to_string()
        }
        _ if said.contains(['{', '}']) || said.contains("```") || said.starts_with('<') => {
            "has braces, a code block or markup".to_string()
        }
        _ if has_model_markup(said) => "has markup of the model".to_string(),
        AnswerContent::Text if is_blank(said) => return invalid("the answer is empty"),
        // The text of a JSON value is the message, even a number.
        AnswerContent::Text | AnswerContent::Json(..) => {
            let finding = json!({"input": said, "goal_achieved": false});
            return Ok((UserDecision::Says(said.to_string()), finding));
        }
    };
    invalid(format!("the answer is neither plain text nor one JSON object: it {why}"))
}

/// True if a text has markup of a model, or begins with a member of an object without its braces.
fn has_model_markup(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_member =
        |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':'));
    MODEL_MARKUP.iter().any(|sign| text.contains(sign))
        || [r#""input""#, r#""message""#, r#""reasoning""#].into_iter().any(is_member)
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};

    use super::*;

    #[test]
    fn rejects_malformed_answers() {
        let (glad, sorry) =
            (json!({"input": "Yes", "goal_achieved": true}), json!({"input": "No", "goal_achieved": false}));
        for malformed in malformed_answers(&glad, &sorry) {
            let is_read = malformed.kind == MalformedKind::Unescaped;
            assert_eq!(parse_plain_answer(&malformed.text).is_ok(), is_read, "{}", malformed.text);
        }
    }

    /// Words of the model itself are not sent to the agent.
    #[test]
    fn model_markup_is_no_message() {
        for text in [
            "I should ask.</think>I need a room",
            "[THINK]hm[/THINK]I need a room",
            "◁think▷hm◁/think▷I need a room",
            "I need a room<|im_end|>",
            "I need a room</s>",
            "assistant<|end_header_id|>I need a room",
            "I need <tool_call>x</tool_call>",
            "[TOOL_CALLS]book[ARGS]",
            r#""input": "I need a room", "goal_achieved": false"#,
        ] {
            assert!(parse_plain_answer(text).is_err(), "{text}");
        }
        for text in ["I think 3 < 4", "\"input\" is what I need", "Is a|b fine? [think about it]"] {
            assert!(parse_plain_answer(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn goal_answers_have_one_form() {
        let answer = |message: Value, done: Value, progress: &str| {
            parse_goal_answer(
                json!({"message": message, "done": done, "goal_progress": progress, "reason": "r"}),
            )
            .map(|(answer, _)| answer.next)
        };
        let says = |text: &str| Ok(UserDecision::Says(text.to_string()));
        assert_eq!(answer(json!("User: \"I need a room\""), json!(false), "none"), says("I need a room"));
        assert_eq!(answer(json!("\"a\" or \"b\""), json!(false), "partial"), says("\"a\" or \"b\""));
        assert_eq!(answer(json!(""), json!(true), "achieved"), Ok(UserDecision::GoalAchieved));
        assert_eq!(answer(json!("Bye"), json!(true), "partial"), Ok(UserDecision::GivesUp));
        for (message, done, progress) in [
            (json!(" "), json!(false), "none"),
            (json!("User: \u{200b}"), json!(false), "none"),
            (json!("\u{2800}\u{feff}\u{ad}"), json!(false), "none"),
            (json!(null), json!(false), "none"),
            (json!("x"), json!("false"), "none"),
            (json!("x"), json!(false), "some"),
        ] {
            assert!(answer(message.clone(), done.clone(), progress).is_err(), "{message} {done} {progress}");
        }
    }

    #[test]
    fn reads_all_documented_forms() {
        let says = |text: &str| Ok(UserDecision::Says(text.to_string()));
        for (text, expected) in [
            (r#"{"input": "The amount is $500", "goal_achieved": false}"#, says("The amount is $500")),
            (r#"{"message": "Yes"}"#, says("Yes")),
            ("```json\n{\"input\": \"Yes\", \"goal_achieved\": false}\n```", says("Yes")),
            ("\"Yes\"", says("Yes")),
            (r#"{"input": "I paid {\"amount\": 3} for it"}"#, says("I paid {\"amount\": 3} for it")),
            (r#"{"input": "42"}"#, says("42")),
            ("Note: my order is 7", says("Note: my order is 7")),
            ("[sighs] As in [1]: \"no\"", says("[sighs] As in [1]: \"no\"")),
            (r#"{"input": "", "goal_achieved": true}"#, Ok(UserDecision::GoalAchieved)),
            (r#"{"goal_achieved": true}"#, Ok(UserDecision::GoalAchieved)),
            (r#"{"input": "Thanks", "goal_achieved": true}"#, Ok(UserDecision::GoalAchieved)),
        ] {
            assert_eq!(parse_plain_answer(text).map(|(next, _)| next), expected, "{text}");
        }
        for text in [
            "",
            "  ",
            "\u{200b}",
            "\"\u{3164}\"",
            "{\"input\": \"\u{2800}\u{feff}\u{ad}\"}",
            r#"{"input": "", "goal_achieved": false}"#,
            r#"{"goal_achieved": false}"#,
            r#"{"input": 3}"#,
            r#"{"input": "x", "goal_achieved": "yes"}"#,
            r#"{"answer": "x"}"#,
            "[]",
            "42",
            "true",
            "null",
            r#""{\"input\": \"Yes\"}""#,
            r#"{"input": "Yes", "message": "No"}"#,
            r#"{"input": "Yes", "input": "No"}"#,
            r#"{"input": "Yes"} {"input": "No"}"#,
            r#"{"input": "Ye"#,
            "{",
            "```json\n{\"input\": \"Yes\"}",
            "``",
            "\"I need a ro",
            "Sure:\n```json\n{\"input\": \"Yes\", \"goal_achieved\": false}\n```",
            "I answer {\"input\": \"Yes\"} here",
            "I paid {\"amount\": 3} for it",
            "Sure: {input: Yes}",
            "<think>Yes?</think>No",
        ] {
            assert!(parse_plain_answer(text).is_err(), "{text}");
        }
    }
}
