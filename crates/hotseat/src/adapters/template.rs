//! Templates of requests: `{{message}}`, `{{options.connector}}` and their like in what people write about an interface
//! of their own.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::session::{Identity, Media, MediaSource, Message, MessageCall, Part as Said, Role, media, words};

/// Something that a template can hold the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// What the user says now.
    Message,
    /// The whole conversation, with what the user says now.
    Messages,
    /// The conversation before what the user says now.
    History,
    /// What is attached to what the user says now.
    Attachments,
    /// What the agent is told beside it.
    Options,
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
    /// The user on whose behalf the agent is spoken to.
    User,
    /// The team of the user.
    Team,
    /// The language and region of the user.
    Locale,
    /// All that is known of who speaks, as one object.
    Ctx,
}

impl Placeholder {
    /// All of them by name.
    pub const ALL: [(&'static str, Placeholder); 14] = [
        ("message", Placeholder::Message),
        ("messages", Placeholder::Messages),
        ("history", Placeholder::History),
        ("attachments", Placeholder::Attachments),
        ("options", Placeholder::Options),
        ("conversation_id", Placeholder::ConversationId),
        ("turn", Placeholder::Turn),
        ("state", Placeholder::State),
        ("context", Placeholder::Context),
        ("forwardedProps", Placeholder::ForwardedProps),
        ("user", Placeholder::User),
        ("team", Placeholder::Team),
        ("locale", Placeholder::Locale),
        ("ctx", Placeholder::Ctx),
    ];

    fn of(name: &str) -> Option<Placeholder> {
        Placeholder::ALL.iter().find(|(known, _)| *known == name).map(|(_, placeholder)| *placeholder)
    }

    /// Whether it stands for a word or a number, which has no members.
    fn is_plain(self) -> bool {
        match self {
            Placeholder::Message
            | Placeholder::ConversationId
            | Placeholder::Turn
            | Placeholder::User
            | Placeholder::Team
            | Placeholder::Locale => true,
            Placeholder::Messages
            | Placeholder::History
            | Placeholder::Attachments
            | Placeholder::Options
            | Placeholder::State
            | Placeholder::Context
            | Placeholder::ForwardedProps
            | Placeholder::Ctx => false,
        }
    }
}

/// What stands between double braces: a placeholder, or a path into what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The placeholder.
    pub to: Placeholder,
    /// The members that lead to the value; none for all of it.
    pub path: Vec<String>,
}

/// Double braces around something that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaningless<'t> {
    /// There is no such placeholder.
    Name(&'t str),
    /// The placeholder stands for a word or a number, and a member of it is named.
    Member(&'t str),
}

impl Reference {
    fn of(written: &str) -> Result<Reference, Meaningless<'_>> {
        let mut names = written.split('.');
        let name = names.next().unwrap_or_default();
        let to = Placeholder::of(name).ok_or(Meaningless::Name(name))?;
        let path: Vec<String> = names.map(str::to_string).collect();
        match to.is_plain() && !path.is_empty() {
            true => Err(Meaningless::Member(name)),
            false => Ok(Reference { to, path }),
        }
    }

    /// Whether it stands for this member, or for something that holds it or is in it.
    pub fn covers(&self, to: Placeholder, path: &[&str]) -> bool {
        self.to == to && self.path.iter().zip(path).all(|(own, other)| own == other)
    }
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
    /// On whose behalf the agent is spoken to.
    pub identity: Identity,
}

/// What placeholders stand for in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// What the user says, without attachments.
    pub message: &'a str,
    /// What the user says, with attachments.
    pub content: &'a [Said],
    /// What was said before.
    pub history: &'a [Message],
    /// What the agent is told beside it.
    pub options: Option<&'a Value>,
    /// Id of the conversation, once there is one.
    pub conversation_id: Option<&'a str>,
    /// Number of the turn, from 1.
    pub turn: usize,
    /// What the case gives.
    pub given: &'a Given,
}

impl Values<'_> {
    /// The value of a reference. A path that leads nowhere leads to nothing.
    fn json(&self, reference: &Reference) -> Value {
        let mut value = self.whole(reference.to);
        for name in &reference.path {
            let inner = match &mut value {
                Value::Object(members) => members.get_mut(name),
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get_mut(at)),
                _ => None,
            };
            value = inner.map_or(Value::Null, Value::take);
        }
        value
    }

    fn whole(&self, placeholder: Placeholder) -> Value {
        let given = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
        match placeholder {
            Placeholder::Message => json!(self.message),
            Placeholder::Messages => {
                let now = user_message(self.content);
                self.history.iter().chain([&now]).map(message_as_json).collect()
            }
            Placeholder::History => self.history.iter().map(message_as_json).collect(),
            Placeholder::Attachments => attachments_as_json(self.content),
            Placeholder::Options => self.options.cloned().unwrap_or(Value::Null),
            Placeholder::ConversationId => json!(self.conversation_id),
            Placeholder::Turn => json!(self.turn),
            Placeholder::State => given(&self.given.state),
            Placeholder::Context => given(&self.given.context),
            Placeholder::ForwardedProps => given(&self.given.forwarded_props),
            Placeholder::User => json!(self.given.identity.user.text),
            Placeholder::Team => json!(self.given.identity.team.text),
            Placeholder::Locale => json!(self.given.identity.locale.text),
            Placeholder::Ctx => (*self.given.identity.ctx).clone(),
        }
    }

    fn text(&self, reference: &Reference) -> String {
        match self.json(reference) {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

/// A message of the user.
pub fn user_message(content: &[Said]) -> Message {
    Message {
        role: Role::User,
        content: content.to_vec(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

/// A message as agents with an interface of their own are told of it.
pub fn message_as_json(message: &Message) -> Value {
    let said = words(&message.content);
    let content = match media(&message.content).next() {
        Some(_) => message.content.iter().map(part_as_json).collect(),
        None if said.is_empty() && !message.tool_calls.is_empty() => Value::Null,
        None => Value::String(said),
    };
    let mut written = json!({"role": message.role.name(), "content": content});
    if let Some(name) = &message.name {
        written["name"] = json!(name);
    }
    if !message.tool_calls.is_empty() {
        written["tool_calls"] = message.tool_calls.iter().map(call_as_json).collect();
    }
    if let Some(id) = &message.tool_call_id {
        written["tool_call_id"] = json!(id);
    }
    written
}

/// A call in the form of chat completions.
pub fn call_as_json(call: &MessageCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

fn part_as_json(part: &Said) -> Value {
    match part {
        Said::Text(text) => json!({"type": "text", "text": text}),
        Said::Media(media) => attachment_as_json(media),
    }
}

/// What is attached, as agents with an interface of their own are told of it.
pub fn attachments_as_json(content: &[Said]) -> Value {
    media(content).map(attachment_as_json).collect()
}

fn attachment_as_json(media: &Media) -> Value {
    let mut written = Map::new();
    written.insert("type".to_string(), json!(media.kind.name()));
    if let Some(name) = &media.name {
        written.insert("name".to_string(), json!(name));
    }
    if let Some(mime) = &media.mime {
        written.insert("mimeType".to_string(), json!(mime));
    }
    match &media.source {
        MediaSource::Data(data) => written.insert("data".to_string(), json!(data)),
        // A file is read before the conversation begins; what is left would be a name that means nothing elsewhere.
        MediaSource::Url(url) | MediaSource::File(url) => written.insert("url".to_string(), json!(url)),
    };
    Value::Object(written)
}

/// A part of a template.
enum Part<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// Takes a template apart. Braces around anything but names with points between them are text.
fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (template, 0);
    while let Some(at) = rest[from..].find("{{").map(|at| from + at) {
        let name = rest[at + 2..].find("}}").map(|end| (at + 2 + end, rest[at + 2..at + 2 + end].trim()));
        match name {
            Some((end, name)) if is_path(name) => {
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

fn is_path(written: &str) -> bool {
    let (name, members) = written.split_once('.').unwrap_or((written, "a"));
    let is_name = |name: &str, more: &[char]| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    is_name(name, &['_']) && members.split('.').all(|member| is_name(member, &['_', '-']))
}

/// What the placeholders of a text refer to, or the first that means nothing.
///
/// # Errors
/// That one.
pub fn references(template: &str) -> Result<Vec<Reference>, Meaningless<'_>> {
    let names = parts(template).into_iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Name(name) => Some(Reference::of(name)),
    });
    names.collect()
}

/// A text with its placeholders filled in; `encode` makes the values fit where they stand.
pub fn fill_text(template: &str, values: &Values<'_>, encode: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(template.len());
    for part in parts(template) {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Name(name) => match Reference::of(name) {
                Ok(reference) => filled.push_str(&encode(&values.text(&reference))),
                // Refused when the template was read.
                Err(_) => {
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
        Value::String(text) => {
            if let [Part::Text(""), Part::Name(name), Part::Text("")] = parts(text).as_slice()
                && let Ok(reference) = Reference::of(name)
            {
                return values.json(&reference);
            }
            Value::String(fill_text(text, values, str::to_string))
        }
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
        let given = Given { state: Some(json!({"a": {"b-c": [1, "x"]}})), ..Given::default() };
        let history = [
            user_message(&[Said::Text("one".into())]),
            Message { role: Role::Assistant, ..user_message(&[Said::Text("two".into())]) },
        ];
        test(&Values {
            message: "say \"hi\" & {{turn}}",
            content: &[],
            history: &history,
            options: None,
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
            (json!("{{state}}"), json!({"a": {"b-c": [1, "x"]}})),
            (json!("s={{state.a}}"), json!("s={\"b-c\":[1,\"x\"]}")),
            (json!("{{state.a.b-c.0}}"), json!(1)),
            (json!("{{ state.a.b-c.1 }}!"), json!("x!")),
            (json!("{{state.a.b-c.2}}"), Value::Null),
            (json!("{{state.nothing.here}}"), Value::Null),
            (json!("[{{state.nothing}}]"), json!("[]")),
            (json!("{{options.connector}}"), Value::Null),
            (json!("{{user}} of {{ctx.authorized.team_id}}"), json!("test-user of test-team")),
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
        let plain = |to| Reference { to, path: Vec::new() };
        let both = vec![plain(Placeholder::Message), plain(Placeholder::Turn)];
        assert_eq!(references("{{message}} {{turn}}"), Ok(both));
        assert_eq!(references("{{message}} {{mesage}}"), Err(Meaningless::Name("mesage")));
        assert_eq!(references("{{user.name}}"), Err(Meaningless::Member("user")));
        assert_eq!(references("a {{}} b }} {{ {{options.}} {{.a}}"), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn a_text_without_placeholders_stays_as_it_is(text in "[^{}]*") {
            prop_assert_eq!(with(|values| fill_text(&text, values, str::to_string)), text);
        }

        #[test]
        fn nothing_that_is_filled_in_leaves_its_part_of_a_url(message in ".*") {
            let given = Given::default();
            let values = Values {
                message: &message, content: &[], history: &[], options: None, conversation_id: None, turn: 1,
                given: &given,
            };
            let url = fill_text("http://127.0.0.1:9/a/{{message}}/b?q={{message}}#f", &values, percent_encoded);
            let url = reqwest::Url::parse(&url).expect("it is a URL");
            let q = url.query_pairs().next().map(|(_, value)| value.into_owned());
            prop_assert_eq!((url.host_str(), url.fragment()), (Some("127.0.0.1"), Some("f")));
            prop_assert_eq!(q, Some(message));
        }

        #[test]
        fn no_template_makes_it_panic(text in "[{} a_messagturn.-]*") {
            with(|values| fill_text(&text, values, str::to_string));
            let _ = references(&text);
        }
    }
}
