//! A generator: makes test cases up for an agent.

use serde_json::{Map, Value, json};

use super::reading::read_answer;
use super::{Question, Role, Unanswered, beginning, options};

const PROMPT: &str = include_str!("prompts/generator.v1.md");

/// How many cases are asked for where nobody says.
const CASES: u64 = 5;

/// What a generator is told.
#[derive(Debug, Clone)]
pub struct GeneratorQuestion<'a> {
    /// The agent that the cases are for.
    pub target: &'a str,
    /// What it is for, where the project says so.
    pub description: Option<&'a str>,
    /// Its tools, where they are known.
    pub tools: Vec<Value>,
    /// Whatever else was asked for: `count`, `focus`, `complexity`, …
    pub parameters: Map<String, Value>,
}

impl Role {
    /// Asks a generator for cases: a value each, as it wrote them.
    ///
    /// # Errors
    /// When it gives none, in words.
    pub async fn generate(&self, question: GeneratorQuestion<'_>) -> Result<Vec<Value>, String> {
        let mut told = Map::new();
        told.insert("test_mode".to_string(), json!("generator"));
        told.insert("target_agent".to_string(), json!(question.target));
        let target = json!({"id": question.target, "description": question.description});
        told.insert("target".to_string(), target);
        if let Some(description) = question.description {
            told.insert("target_description".to_string(), json!(description));
        }
        if !question.tools.is_empty() {
            told.insert("target_tools".to_string(), Value::Array(question.tools));
        }
        told.insert("count".to_string(), json!(CASES));
        told.extend(question.parameters);
        let asked = Question {
            message: Value::Object(told.clone()),
            options: options(&Map::new(), told),
            history: Vec::new(),
            turn: 1,
            prompt: PROMPT.into(),
            format: None,
            until: None,
        };
        match self.ask(asked).await {
            Ok(said) if said.is_cut => Err(said.cut_off()),
            Ok(said) => read(&said.text),
            Err(Unanswered::Failed(words)) => Err(words),
            Err(Unanswered::Deadline) => Err("no answer in time".to_string()),
        }
    }
}

/// Reads cases: `{"cases": […]}`, `{"test_cases": […]}`, a list, or a single case.
fn read(text: &str) -> Result<Vec<Value>, String> {
    let wrong =
        |what: &str| Err(format!("failed to parse generator response as JSON: {what}; {}", beginning(text)));
    let cases = match read_answer(text) {
        Err(why) => return wrong(&format!("it {why}")),
        Ok(Value::Array(cases)) => cases,
        Ok(Value::Object(mut members)) => match (members.remove("cases"), members.remove("test_cases")) {
            (Some(Value::Array(cases)), None) | (None, Some(Value::Array(cases))) => cases,
            (Some(_), Some(_)) => return wrong("it has both `cases` and `test_cases`"),
            (Some(_), None) | (None, Some(_)) => return wrong("`cases` is no list"),
            (None, None) => vec![Value::Object(members)],
        },
        Ok(_) => return wrong("it is neither a mapping nor a list"),
    };
    if cases.is_empty() {
        return Err("the generator made no cases up".to_string());
    }
    if let Some(place) = cases.iter().position(|case| !case.is_object()) {
        return wrong(&format!("case {place} is no mapping"));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};

    use super::*;

    #[test]
    fn no_cases_are_read_out_of_malformed_answers() {
        let cases =
            |input: &str| json!({"cases": [{"id": "G1", "input": input}, {"id": "G2", "input": input}]});
        for malformed in malformed_answers(&cases("hi"), &cases("bye")) {
            let is_read = malformed.kind == MalformedKind::Unescaped;
            assert_eq!(read(&malformed.text).is_ok(), is_read, "{}", malformed.text);
        }
    }

    #[test]
    fn cases_are_read_in_every_form_that_is_documented() {
        for (text, count) in [
            (r#"{"cases": [{"id": "G1"}, {"id": "G2"}]}"#, 2),
            (r#"{"test_cases": [{"id": "G1"}]}"#, 1),
            (r#"[{"id": "G1"}]"#, 1),
            (r#"{"id": "G1", "input": "hi"}"#, 1),
            ("```json\n{\"cases\": [{\"id\": \"G1\"}]}\n```", 1),
        ] {
            assert_eq!(read(text).map(|cases| cases.len()), Ok(count), "{text}");
        }
        for text in [
            "",
            "no cases today",
            r#"{"cases": []}"#,
            r#"{"cases": 3}"#,
            r#"{"cases": ["x"]}"#,
            "[]",
            r#"[{"id": "G1"}, {"id": "G2"}, {"id":"#,
            r#"{"cases": [{"id": "G1"}"#,
            "{\"id\": \"G1\"}\n{\"id\": \"G2\"}",
            "Here they are:\n```json\n[{\"id\": \"G1\"}]\n```",
            r#"{"cases": [{"id": "G1"}], "test_cases": [{"id": "G2"}]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
