//! On whose behalf an agent is spoken to.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::content::merged;

/// Who speaks to the agent, and everything else that is known about the call. What nobody gave has its default; who
/// asks for it by name is told the default, and nobody else is told anything of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// The user.
    pub user: Given,
    /// The team of the user.
    pub team: Given,
    /// The language and region.
    pub locale: Given,
    /// All of it as one object, with what else a context file says.
    pub ctx: Arc<Value>,
    /// Whether there is a context file.
    has_file: bool,
}

/// A word that somebody gave, or that stands where nobody gave one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The word.
    pub text: Arc<str>,
    /// Whether somebody gave it.
    pub is_given: bool,
}

impl Given {
    /// What was given, or else the default.
    fn or(given: Option<&str>, default: &str) -> Given {
        Given { text: given.unwrap_or(default).into(), is_given: given.is_some() }
    }

    /// The word, if somebody gave it.
    pub fn given(&self) -> Option<&str> {
        self.is_given.then_some(&*self.text)
    }
}

impl Identity {
    /// The identity of what was given, and of what a context file says beside that.
    pub fn of(user: Option<&str>, team: Option<&str>, locale: Option<&str>, file: Option<&Value>) -> Self {
        let user = Given::or(user, "test-user");
        let team = Given::or(team, "test-team");
        let locale = Given::or(locale, "en-us");
        let program = concat!("hotseat/", env!("CARGO_PKG_VERSION"));
        let usual = json!({
            "client": {"type": "test", "user_agent": program, "ip": "127.0.0.1"},
            "referer": "test",
        });
        let known = json!({
            "authorized": {"user_id": *user.text, "team_id": *team.text}, "locale": *locale.text,
        });
        let told = file.map_or_else(|| usual.clone(), |file| merged(&usual, file));
        Identity { user, team, locale, ctx: Arc::new(merged(&told, &known)), has_file: file.is_some() }
    }

    /// All of it as one object, if somebody gave any of it.
    pub fn given(&self) -> Option<&Value> {
        let words = [&self.user, &self.team, &self.locale];
        (self.has_file || words.into_iter().any(|word| word.is_given)).then_some(&*self.ctx)
    }
}

impl Default for Identity {
    /// Where nobody gave anything.
    fn default() -> Self {
        static NOBODY: LazyLock<Identity> = LazyLock::new(|| Identity::of(None, None, None, None));
        NOBODY.clone()
    }
}
