//! User identity that is sent to agents.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::content::merge_json;

/// The user and the context of a call. Unset values have defaults; a target receives a default only if its
/// template names the value.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestIdentity {
    /// The user.
    pub user: IdentityValue,
    /// The team of the user.
    pub team: IdentityValue,
    /// The language and region.
    pub locale: IdentityValue,
    /// All values as one object, with those of the context file.
    pub ctx: Arc<Value>,
    /// True if there is a context file.
    has_context_file: bool,
}

/// A value and a flag that is true if it was set explicitly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityValue {
    /// The value.
    pub text: Arc<str>,
    /// True if it was set explicitly, false for the default.
    pub is_explicit: bool,
}

impl IdentityValue {
    /// Returns the given value, or else the default.
    fn new(explicit: Option<&str>, default: &str) -> IdentityValue {
        IdentityValue { text: explicit.unwrap_or(default).into(), is_explicit: explicit.is_some() }
    }

    /// Returns the value, if it was set explicitly.
    pub fn explicit(&self) -> Option<&str> {
        self.is_explicit.then_some(&*self.text)
    }
}

/// Returns the id of the conversation of an attempt, from 1, if the first one has this id.
pub fn attempt_id(first: &str, number: usize) -> String {
    if number > 1 { format!("{first}-{number}") } else { first.to_string() }
}

impl RequestIdentity {
    /// Creates an identity from explicit values and a context file.
    pub fn new(user: Option<&str>, team: Option<&str>, locale: Option<&str>, file: Option<&Value>) -> Self {
        let user = IdentityValue::new(user, "test-user");
        let team = IdentityValue::new(team, "test-team");
        let locale = IdentityValue::new(locale, "en-us");
        let program = concat!("hotseat/", env!("CARGO_PKG_VERSION"));
        let usual = json!({
            "client": {"type": "test", "user_agent": program, "ip": "127.0.0.1"},
            "referer": "test",
        });
        let known = json!({
            "authorized": {"user_id": *user.text, "team_id": *team.text}, "locale": *locale.text,
        });
        let base = file.map_or_else(|| usual.clone(), |file| merge_json(&usual, file));
        RequestIdentity {
            user,
            team,
            locale,
            ctx: Arc::new(merge_json(&base, &known)),
            has_context_file: file.is_some(),
        }
    }

    /// Applies the number of an attempt, from 1, to the `chat_id` of the context file: each attempt has its own conversation.
    pub fn for_attempt(mut self, number: usize) -> Self {
        if number > 1 && self.ctx.get("chat_id").is_some_and(Value::is_string) {
            let members = Arc::make_mut(&mut self.ctx);
            members["chat_id"] = attempt_id(members["chat_id"].as_str().unwrap_or_default(), number).into();
        }
        self
    }

    /// Returns the whole object, if any value was set explicitly.
    pub fn explicit(&self) -> Option<&Value> {
        let words = [&self.user, &self.team, &self.locale];
        (self.has_context_file || words.into_iter().any(|word| word.is_explicit)).then_some(&*self.ctx)
    }
}

impl Default for RequestIdentity {
    /// Only default values.
    fn default() -> Self {
        static DEFAULTS: LazyLock<RequestIdentity> =
            LazyLock::new(|| RequestIdentity::new(None, None, None, None));
        DEFAULTS.clone()
    }
}
