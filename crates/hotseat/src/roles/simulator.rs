//! A simulated user: what it is told, and what it says.

use std::borrow::Cow;
use std::sync::Arc;

use hotseat_model::ResponseFormat;
use hotseat_trace::RoleAnswered;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Dialogue, Exchange, Question, Role, Said, Unanswered, beginning, options, reading};
use crate::checks::{AnswerContent, find_json};
use crate::session::Redactor;

const PROMPT: &str = include_str!("prompts/simulator.v1.md");
/// For a user with a goal, who goes on until there is nothing more to say.
const USER_PROMPT: &str = include_str!("prompts/user.v1.md");
const USER_SCHEMA: &str = include_str!("prompts/user.v1.schema.json");

/// What a simulated user is told.
#[derive(Debug, Clone, Copy)]
pub struct SimulatorQuestion<'a> {
    /// What the case tells it: `metadata` with `persona` and `goal`, `connector`, …
    pub options: &'a Map<String, Value>,
    /// What it is told of itself, where it has a goal and goes on until there is nothing more to say.
    pub told: Option<&'a Map<String, Value>>,
    /// A prompt of the case's own for a model.
    pub prompt: Option<&'a str>,
    /// The case.
    pub test_id: &'a str,
    /// The conversation with the agent.
    pub session_id: &'a str,
    /// What was said so far.
    pub dialogue: Dialogue<'a>,
    /// Whether it is told of that as messages.
    pub as_messages: bool,
    /// The turn that it begins, from 1.
    pub turn_number: usize,
    /// How many turns there may be.
    pub max_turns: usize,
    /// The checkpoints that are reached, and those that are not.
    pub checkpoints: (&'a [&'a str], &'a [&'a str]),
    /// When the answer is given up.
    pub until: Option<Instant>,
}

/// What a simulated user does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserDecision {
    /// It says something.
    Says(String),
    /// It has what it wants. What it would have said is not sent.
    GoalAchieved,
    /// It will not get what it wants, and has nothing more to say.
    GivesUp,
}

/// What a simulated user answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAnswer {
    /// What it does next.
    pub next: UserDecision,
    /// How far it has come: `none`, `partial`, `achieved`.
    pub goal_progress: Option<Arc<str>>,
    /// Why.
    pub reason: Option<String>,
}

impl From<UserDecision> for UserAnswer {
    fn from(next: UserDecision) -> UserAnswer {
        UserAnswer { next, goal_progress: None, reason: None }
    }
}

impl Role {
    /// Asks a simulated user what it says next, with what the exchange leaves in the trace.
    ///
    /// # Errors
    /// When the time of the conversation is over.
    pub async fn simulate(
        &self,
        question: SimulatorQuestion<'_>,
    ) -> Result<(Result<UserAnswer, String>, Exchange), Unanswered> {
        let (message, metadata) = question.told();
        let dialogue = question.dialogue;
        let asked = Question {
            message: message.clone(),
            options: options(question.options, metadata),
            history: if question.as_messages { dialogue.messages() } else { Vec::new() },
            turn: question.turn_number,
            prompt: question.prompt(),
            format: question.format(),
            until: question.until,
        };
        let (said, next, finding) = match self.ask(asked).await {
            Err(Unanswered::Deadline) => return Err(Unanswered::Deadline),
            Err(Unanswered::Failed(words)) => (Said::default(), Err(words), None),
            Ok(said) if said.is_cut => {
                let words = said.cut_off();
                (said, Err(words), None)
            }
            Ok(said) => match question.read(&said.text, self.is_model()) {
                Ok((next, finding)) => (said, Ok(next), Some(finding)),
                Err(words) => (said, Err(words), None),
            },
        };
        let error = next.as_ref().err().cloned();
        let agent = self.shown().clone();
        Ok((
            next,
            Exchange { role: "simulator", agent, question: message, said, finding, error, asked: None },
        ))
    }
}

impl SimulatorQuestion<'_> {
    /// What it is told now, and was not told when it was asked before; by its key. Which checkpoints there are is no
    /// matter of what was said.
    pub fn differs(&self, before: &RoleAnswered, redactor: &Redactor) -> Option<String> {
        let (now, before) = (redactor.json(self.told().0), redactor.json(before.question.clone()));
        let (Value::Object(now), Value::Object(before)) = (now, before) else { return None };
        let keys = now.keys().chain(before.keys()).filter(|key| !key.starts_with("checkpoints_"));
        keys.into_iter().find(|key| now.get(*key) != before.get(*key)).cloned()
    }

    /// The answer that it gave before, read once more.
    pub fn answered_before(&self, before: &RoleAnswered) -> (Result<UserAnswer, String>, Exchange) {
        let read = match (&before.finding, &before.error) {
            (None, Some(words)) => Err(words.clone()),
            (None, None) | (Some(_), _) => self.read(&before.answer, false),
        };
        let exchange = Exchange::before("simulator", before);
        match read {
            Ok((next, finding)) => (Ok(next), Exchange { finding: Some(finding), error: None, ..exchange }),
            Err(words) => (Err(words.clone()), Exchange { finding: None, error: Some(words), ..exchange }),
        }
    }

    /// What a model is told about its part.
    fn prompt(&self) -> Cow<'static, str> {
        match (self.prompt, self.told) {
            (Some(own), _) => Cow::Owned(own.to_string()),
            (None, Some(_)) => Cow::Borrowed(USER_PROMPT),
            (None, None) => Cow::Borrowed(PROMPT),
        }
    }

    /// The form that the answer of a model must have.
    fn format(&self) -> Option<ResponseFormat> {
        let schema = || serde_json::from_str(USER_SCHEMA).expect("the schema is JSON");
        let format = || ResponseFormat { name: "user_v1".to_string(), schema: schema(), strict: true };
        self.told.map(|_| format())
    }

    /// Reads an answer. A user with a goal answers as it is asked to, if it is a model that was asked so.
    fn read(&self, text: &str, is_model: bool) -> Result<(UserAnswer, Value), String> {
        match self.told {
            None => read(text).map(|(next, finding)| (next.into(), finding)),
            Some(_) => match reading::read_answer(text) {
                Ok(answer) if answer.get("done").is_some() => read_goal_answer(answer),
                Err(why) if is_model => Err(format!("the answer {why}; {}", beginning(text))),
                Ok(_) if is_model => {
                    Err(format!("the answer has no `done`, `message`, `goal_progress`; {}", beginning(text)))
                }
                Ok(_) | Err(_) => {
                    let (next, finding) = read(text)?;
                    let next = match next {
                        UserDecision::Says(said) => UserDecision::Says(cleaned(&said)?),
                        other => other,
                    };
                    Ok((next.into(), finding))
                }
            },
        }
    }

    /// The message, and what of it is metadata of the call too.
    fn told(&self) -> (Value, Map<String, Value>) {
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
        message.extend(self.told.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        message.extend(metadata.clone());
        message.insert("last_response".to_string(), json!(self.dialogue.last_response()));
        if !self.as_messages {
            message.insert("conversation".to_string(), Value::Array(self.dialogue.json()));
        }
        (Value::Object(message), metadata)
    }
}

/// Reads the answer of a user with a goal.
fn read_goal_answer(answer: Value) -> Result<(UserAnswer, Value), String> {
    let wrong = |key: &str, wanted: &str| match answer.get(key) {
        Some(found) => format!("`{key}` of the answer is {found}, and has to be {wanted}"),
        None => format!("the answer has no `{key}`: it has to be {wanted}"),
    };
    let Some(done) = answer.get("done").and_then(Value::as_bool) else {
        return Err(wrong("done", "true or false"));
    };
    let progress = answer.get("goal_progress").and_then(Value::as_str);
    let Some(progress) = progress.filter(|progress| ["none", "partial", "achieved"].contains(progress))
    else {
        return Err(wrong("goal_progress", "`none`, `partial` or `achieved`"));
    };
    let reason = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()),
        Some(_) => return Err(wrong("reason", "a text")),
    };
    let next = match (done, progress, answer.get("message")) {
        (true, "achieved", _) => UserDecision::GoalAchieved,
        (true, _, _) => UserDecision::GivesUp,
        (false, _, Some(Value::String(said))) => UserDecision::Says(cleaned(said)?),
        (false, _, _) => return Err(wrong("message", "what the user says")),
    };
    let goal_progress = Some(progress.into());
    Ok((UserAnswer { next, goal_progress, reason }, answer))
}

/// What is said, without the quotes around it and the name before it.
///
/// # Errors
/// When nothing is left.
fn cleaned(said: &str) -> Result<String, String> {
    let mut text = said.trim();
    text = ["User:", "user:", "USER:"].iter().find_map(|name| text.strip_prefix(name)).unwrap_or(text).trim();
    for (open, close) in [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»')] {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
            text = inner.trim();
        }
    }
    match text.is_empty() {
        true => Err("the answer says nothing, and not that it is done".to_string()),
        false => Ok(text.to_string()),
    }
}

/// Reads what a simulated user said: one JSON object with `input` or `message` and `goal_achieved`, or plain words,
/// which are what the user says. Whatever has JSON in it, and is not just that object, is of no use.
fn read(text: &str) -> Result<(UserDecision, Value), String> {
    let wrong = |why: &str| Err(format!("{why}; {}", beginning(text)));
    let answer = match reading::read_answer(text) {
        Ok(answer @ Value::Object(_)) => answer,
        Ok(Value::String(said)) => return says(&said).or_else(|why| wrong(&why)),
        Ok(_) => return wrong("the answer is JSON, and neither an object nor a text"),
        Err(_) if text.trim().is_empty() => return Err("the answer is empty".to_string()),
        Err(_) => return says(text).or_else(|why| wrong(&why)),
    };
    if !["input", "message", "goal_achieved"].iter().any(|key| answer.get(key).is_some()) {
        return wrong("the answer has neither `input` nor `goal_achieved`");
    }
    let achieved = match answer.get("goal_achieved") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(achieved)) => *achieved,
        Some(other) => return Err(format!("`goal_achieved` is {other}, and has to be true or false")),
    };
    if achieved {
        return Ok((UserDecision::GoalAchieved, answer));
    }
    let given = |key: &str| answer.get(key).filter(|value| !value.is_null());
    if given("input").is_some() && given("message").is_some() {
        return wrong("the answer has both `input` and `message`");
    }
    match given("input").or_else(|| given("message")) {
        Some(Value::String(said)) if !said.trim().is_empty() => {
            Ok((UserDecision::Says(said.clone()), answer.clone()))
        }
        None | Some(Value::String(_)) => {
            Err("the answer says nothing, and not that the goal is achieved".to_string())
        }
        Some(other) => Err(format!("`input` is {other}, and has to be a text")),
    }
}

/// Takes plain words for what the user says. Words with braces, with a code block or in markup are an answer in JSON
/// that is broken, or has something around it.
fn says(text: &str) -> Result<(UserDecision, Value), String> {
    let said = text.trim();
    let why = match find_json(said) {
        AnswerContent::Malformed(why) => why,
        AnswerContent::Json(Value::Object(_) | Value::Array(_), _) => {
            "has JSON and something beside it".to_string()
        }
        _ if said.contains(['{', '}']) || said.contains("```") || said.starts_with('<') => {
            "has braces, a code block or markup".to_string()
        }
        AnswerContent::Text if said.is_empty() => return Err("the answer is empty".to_string()),
        // What a text in JSON says is said, a number too.
        AnswerContent::Text | AnswerContent::Json(..) => {
            let finding = json!({"input": said, "goal_achieved": false});
            return Ok((UserDecision::Says(said.to_string()), finding));
        }
    };
    Err(format!("the answer is neither plain words nor one JSON object: it {why}"))
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};

    use super::*;

    #[test]
    fn nothing_of_a_malformed_answer_is_said() {
        let (glad, sorry) =
            (json!({"input": "Yes", "goal_achieved": true}), json!({"input": "No", "goal_achieved": false}));
        for malformed in malformed_answers(&glad, &sorry) {
            let is_read = malformed.kind == MalformedKind::Unescaped;
            assert_eq!(read(&malformed.text).is_ok(), is_read, "{}", malformed.text);
        }
    }

    #[test]
    fn a_user_with_a_goal_answers_in_one_form() {
        let answer = |message: Value, done: Value, progress: &str| {
            read_goal_answer(
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
            (json!(null), json!(false), "none"),
            (json!("x"), json!("false"), "none"),
            (json!("x"), json!(false), "some"),
        ] {
            assert!(answer(message.clone(), done.clone(), progress).is_err(), "{message} {done} {progress}");
        }
    }

    #[test]
    fn answers_are_read_in_every_form_that_is_documented() {
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
            assert_eq!(read(text).map(|(next, _)| next), expected, "{text}");
        }
        for text in [
            "",
            "  ",
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
            assert!(read(text).is_err(), "{text}");
        }
    }
}
