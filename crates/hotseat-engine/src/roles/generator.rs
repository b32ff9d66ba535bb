//! Generators, which write test cases for an agent.

use serde_json::{Map, Value, json};

use super::answer_json::read_answer;
use super::{RoleClient, RoleError, RoleQuestion, excerpt, role_options};

const PROMPT: &str = include_str!("prompts/generator.v1.md");

/// Default number of generated cases.
const DEFAULT_CASE_COUNT: u64 = 5;

/// Input of a generator.
#[derive(Debug, Clone)]
pub struct GeneratorQuestion<'a> {
    /// Name of the tested agent.
    pub target: &'a str,
    /// Purpose of the agent, if known.
    pub description: Option<&'a str>,
    /// Tools of the agent, if known.
    pub tools: Vec<Value>,
    /// Further parameters: `count`, `focus`, `complexity`, …
    pub parameters: Map<String, Value>,
}

impl RoleClient {
    /// Asks a generator for cases and returns them as JSON values. Fails if it returns none.
    pub async fn generate_cases(&self, question: GeneratorQuestion<'_>) -> Result<Vec<Value>, RoleError> {
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
        told.insert("count".to_string(), json!(DEFAULT_CASE_COUNT));
        told.extend(question.parameters);
        let asked = RoleQuestion {
            message: Value::Object(told.clone()),
            options: role_options(&Map::new(), told),
            turn: 1,
            prompt: PROMPT.into(),
            ..RoleQuestion::default()
        };
        parse_cases(self.ask(asked).await?.ensure_complete()?)
    }
}

/// Parses generated cases: `{"cases": […]}`, `{"test_cases": […]}`, a list, or a single case.
fn parse_cases(text: &str) -> Result<Vec<Value>, RoleError> {
    let wrong = |what: &str| {
        let text = excerpt(text);
        Err(RoleError::InvalidAnswer(format!("failed to parse generator response as JSON: {what}; {text}")))
    };
    let cases = match read_answer(text) {
        Err(why) => return wrong(&format!("it {why}")),
        Ok(Value::Array(cases)) => cases,
        Ok(Value::Object(mut members)) => match (members.remove("cases"), members.remove("test_cases")) {
            (Some(Value::Array(cases)), None) | (None, Some(Value::Array(cases))) => cases,
            (Some(_), Some(_)) => return wrong("it has both `cases` and `test_cases`"),
            (Some(_), None) | (None, Some(_)) => return wrong("`cases` is not a list"),
            (None, None) => vec![Value::Object(members)],
        },
        Ok(_) => return wrong("it is neither an object nor a list"),
    };
    if cases.is_empty() {
        return Err(RoleError::InvalidAnswer("the generator returned no cases".to_string()));
    }
    if let Some(place) = cases.iter().position(|case| !case.is_object()) {
        return wrong(&format!("case {place} is not an object"));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedKind, malformed_answers};

    use super::*;

    #[test]
    fn rejects_malformed_answers() {
        let cases =
            |input: &str| json!({"cases": [{"id": "G1", "input": input}, {"id": "G2", "input": input}]});
        for malformed in malformed_answers(&cases("hi"), &cases("bye")) {
            let is_read = malformed.kind == MalformedKind::Unescaped;
            assert_eq!(parse_cases(&malformed.text).is_ok(), is_read, "{}", malformed.text);
        }
    }

    #[test]
    fn reads_all_documented_forms() {
        for (text, count) in [
            (r#"{"cases": [{"id": "G1"}, {"id": "G2"}]}"#, 2),
            (r#"{"test_cases": [{"id": "G1"}]}"#, 1),
            (r#"[{"id": "G1"}]"#, 1),
            (r#"{"id": "G1", "input": "hi"}"#, 1),
            ("```json\n{\"cases\": [{\"id\": \"G1\"}]}\n```", 1),
        ] {
            assert_eq!(parse_cases(text).map(|cases| cases.len()), Ok(count), "{text}");
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
            assert!(parse_cases(text).is_err(), "{text}");
        }
    }
}
