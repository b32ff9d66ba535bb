//! Templates of requests: `{{message}}` and its like in what people write about an interface of their own.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

/// Something that a template can hold the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// What the user says now.
    Message,
    /// The whole conversation, with what the user says now.
    Messages,
    /// The conversation before what the user says now.
    History,
    /// Id of the conversation.
    ConversationId,
    /// Number of the turn, from 1.
    Turn,
    /// The state that the case gives.
    State,
    /// The context entries that the case gives.
    Context,
    /// What the case forwards to the agent.
    ForwardedProps,
}

impl Placeholder {
    /// All of them by name.
    pub const ALL: [(&'static str, Placeholder); 8] = [
        ("message", Placeholder::Message),
        ("messages", Placeholder::Messages),
        ("history", Placeholder::History),
        ("conversation_id", Placeholder::ConversationId),
        ("turn", Placeholder::Turn),
        ("state", Placeholder::State),
        ("context", Placeholder::Context),
        ("forwardedProps", Placeholder::ForwardedProps),
    ];

    fn of(name: &str) -> Option<Placeholder> {
        Placeholder::ALL.iter().find(|(known, _)| *known == name).map(|(_, placeholder)| *placeholder)
    }
}

/// A message of the conversation, as agents are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Who said it: `user` or `assistant`.
    pub role: &'static str,
    /// What was said.
    pub content: String,
}

/// What a case gives beside the conversation.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Id of the conversation; without one the adapter makes it up.
    pub conversation_id: Option<String>,
    /// The state before the first turn.
    pub state: Option<Value>,
    /// Context entries.
    pub context: Option<Value>,
    /// What is forwarded to the agent.
    pub forwarded_props: Option<Value>,
}

/// What placeholders stand for in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// What the user says.
    pub message: &'a str,
    /// What was said before.
    pub history: &'a [Said],
    /// Id of the conversation, once there is one.
    pub conversation_id: Option<&'a str>,
    /// Number of the turn, from 1.
    pub turn: usize,
    /// What the case gives.
    pub given: &'a Given,
}

impl Values<'_> {
    fn json(&self, placeholder: Placeholder) -> Value {
        match placeholder {
            Placeholder::Message => json!(self.message),
            Placeholder::Messages => {
                let now = Said { role: "user", content: self.message.to_string() };
                self.history.iter().chain([&now]).map(|said| json!(said)).collect()
            }
            Placeholder::History => json!(self.history),
            Placeholder::ConversationId => json!(self.conversation_id),
            Placeholder::Turn => json!(self.turn),
            Placeholder::State => self.given.state.clone().unwrap_or(Value::Null),
            Placeholder::Context => self.given.context.clone().unwrap_or(Value::Null),
            Placeholder::ForwardedProps => self.given.forwarded_props.clone().unwrap_or(Value::Null),
        }
    }

    fn text(&self, placeholder: Placeholder) -> String {
        match self.json(placeholder) {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

/// A part of a template.
enum Part<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// Takes a template apart. Braces around anything but a name are text.
fn parts(template: &str) -> Vec<Part<'_>> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut parts = Vec::new();
    let (mut rest, mut from) = (template, 0);
    while let Some(at) = rest[from..].find("{{").map(|at| from + at) {
        let name = rest[at + 2..].find("}}").map(|end| (at + 2 + end, rest[at + 2..at + 2 + end].trim()));
        match name {
            Some((end, name)) if is_name(name) => {
                parts.push(Part::Text(&rest[..at]));
                parts.push(Part::Name(name));
                (rest, from) = (&rest[end + 2..], 0);
            }
            Some(_) | None => from = at + 1,
        }
    }
    parts.push(Part::Text(rest));
    parts
}

/// The placeholders of a text, or the first name in it that is none.
///
/// # Errors
/// The name.
pub fn placeholders(template: &str) -> Result<Vec<Placeholder>, &str> {
    let names = parts(template).into_iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Name(name) => Some(Placeholder::of(name).ok_or(name)),
    });
    names.collect()
}

/// A text with its placeholders filled in; `encode` makes the values fit where they stand.
pub fn fill_text(template: &str, values: &Values<'_>, encode: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(template.len());
    for part in parts(template) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Name(name) => match Placeholder::of(name) {
                Some(placeholder) => filled.push_str(&encode(&values.text(placeholder))),
                // Refused when the template was read.
                None => {
                    let _ = write!(filled, "{{{{{name}}}}}");
                }
            },
        }
    }
    filled
}

/// A JSON value with the placeholders of its texts filled in. A text that is one placeholder becomes its value.
pub fn fill_json(template: &Value, values: &Values<'_>) -> Value {
    match template {
        Value::String(text) => match parts(text).as_slice() {
            [Part::Text(""), Part::Name(name), Part::Text("")] if Placeholder::of(name).is_some() => {
                Placeholder::of(name).map_or(Value::Null, |placeholder| values.json(placeholder))
            }
            _ => Value::String(fill_text(text, values, str::to_string)),
        },
        Value::Array(items) => items.iter().map(|item| fill_json(item, values)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), fill_json(value, values))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

/// A text as a part of a URL: everything that is not a plain letter, digit or one of `-._~` is percent-encoded.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with<T>(test: impl FnOnce(&Values<'_>) -> T) -> T {
        let given = Given { state: Some(json!({"a": 1})), ..Given::default() };
        let history =
            [Said { role: "user", content: "one".into() }, Said { role: "assistant", content: "two".into() }];
        test(&Values {
            message: "say \"hi\" & {{turn}}",
            history: &history,
            conversation_id: None,
            turn: 2,
            given: &given,
        })
    }

    #[test]
    fn placeholders_keep_their_types_and_their_values_are_not_templates() {
        let history = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]);
        for (template, expected) in [
            (json!("{{message}}"), json!("say \"hi\" & {{turn}}")),
            (json!("<{{ message }}>"), json!("<say \"hi\" & {{turn}}>")),
            (json!("{{turn}}"), json!(2)),
            (json!("turn {{turn}}"), json!("turn 2")),
            (json!("{{state}}"), json!({"a": 1})),
            (json!("s={{state}}"), json!("s={\"a\":1}")),
            (json!("{{conversation_id}}"), Value::Null),
            (json!("id={{conversation_id}}"), json!("id=")),
            (json!({"{{turn}}": ["{{history}}", 1]}), json!({"{{turn}}": [history, 1]})),
            (json!("{{ not a name }} {{{turn}}} {{"), json!("{{ not a name }} {2} {{")),
        ] {
            assert_eq!(with(|values| fill_json(&template, values)), expected, "{template}");
        }
    }

    #[test]
    fn names_that_are_none_are_found() {
        assert_eq!(placeholders("{{message}} {{turn}}"), Ok(vec![Placeholder::Message, Placeholder::Turn]));
        assert_eq!(placeholders("{{message}} {{mesage}}"), Err("mesage"));
        assert_eq!(placeholders("a {{}} b }} {{"), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn a_text_without_placeholders_stays_as_it_is(text in "[^{}]*") {
            prop_assert_eq!(with(|values| fill_text(&text, values, str::to_string)), text);
        }

        #[test]
        fn nothing_that_is_filled_in_leaves_its_part_of_a_url(message in ".*") {
            let given = Given::default();
            let values = Values { message: &message, history: &[], conversation_id: None, turn: 1, given: &given };
            let url = fill_text("http://127.0.0.1:9/a/{{message}}/b?q={{message}}#f", &values, percent_encoded);
            let url = reqwest::Url::parse(&url).expect("it is a URL");
            let q = url.query_pairs().next().map(|(_, value)| value.into_owned());
            prop_assert_eq!((url.host_str(), url.fragment()), (Some("127.0.0.1"), Some("f")));
            prop_assert_eq!(q, Some(message));
        }

        #[test]
        fn no_template_makes_it_panic(text in "[{} a_messagturn]*") {
            with(|values| fill_text(&text, values, str::to_string));
            let _ = placeholders(&text);
        }
    }
}
