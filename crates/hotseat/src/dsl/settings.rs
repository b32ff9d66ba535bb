//! What groups and examples say of their cases, in the keys of case files.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::agents::AgentChoice;

/// What a group or an example says of its cases.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub focused: bool,
    pub skip: Option<String>,
    pub tags: Vec<String>,
    pub agent: Option<AgentChoice>,
    /// Keys of case files.
    keys: Map<String, Value>,
}

impl Settings {
    /// Says something under a key of case files.
    pub(super) fn say(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match (key.as_str(), self.keys.get_mut("judge"), &value) {
            // Who judges, and how, can be said one after the other.
            ("judge", Some(Value::Object(said)), Value::Object(more)) => said.extend(more.clone()),
            _ => drop(self.keys.insert(key, value)),
        }
    }

    /// These settings on top of those of the group around.
    pub(super) fn over(self, around: &Settings) -> Settings {
        let mut all = around.clone();
        all.focused |= self.focused;
        all.skip = self.skip.or(all.skip);
        all.tags.extend(self.tags);
        all.agent = self.agent.or(all.agent);
        for (key, value) in self.keys {
            all.say(key, value);
        }
        all
    }

    /// What a case file would say of an example of this name.
    pub(super) fn written(&self, name: &str) -> Value {
        let mut written = self.keys.clone();
        written.insert("name".to_string(), name.into());
        if !self.tags.is_empty() {
            written.insert("tags".to_string(), json!(self.tags));
        }
        if let Some(reason) = &self.skip {
            written.insert("skip".to_string(), json!(reason));
        }
        written.into()
    }
}

/// Who judges in a group or an example, and how; what it does not say holds as it is said around it, and in the project file.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.judge(Judge::by("agents:critic").votes(3));
///
/// g.it("greets", async |t| {
///     t.user.says("Hi").await;
///     expect!(t.agent, satisfy("It greets the user"));
/// })
/// .judge(Judge::default().votes(5));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Judge(Map<String, Value>);

impl Judge {
    /// A judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompts.
    pub fn by(who: impl Into<String>) -> Judge {
        Judge::default().with("use", who.into().into())
    }

    /// How many judgements are asked for; more than half of them decide.
    #[must_use]
    pub fn votes(self, votes: usize) -> Judge {
        self.with("votes", votes.into())
    }

    /// How often it is asked again where its answer is not of the form that it must have.
    #[must_use]
    pub fn retries(self, times: usize) -> Judge {
        self.with("retries", times.into())
    }

    /// With which model, where the judge is an agent that can be told. Of a judge that is not named: the model that judges.
    #[must_use]
    pub fn connector(self, name: impl Into<String>) -> Judge {
        self.with("connector", name.into().into())
    }

    /// How long one answer may take.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Judge {
        self.with("timeout_ms", milliseconds(limit))
    }

    /// How many characters of the conversation it is shown at most.
    #[must_use]
    pub fn evidence(self, characters: usize) -> Judge {
        self.with("evidence", characters.into())
    }

    fn with(mut self, key: &str, value: Value) -> Judge {
        self.0.insert(key.to_string(), value);
        self
    }

    pub(super) fn written(self) -> Value {
        self.0.into()
    }
}

impl From<&str> for Judge {
    fn from(who: &str) -> Self {
        Judge::by(who)
    }
}

impl From<String> for Judge {
    fn from(who: String) -> Self {
        Judge::by(who)
    }
}

pub(super) fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

/// The methods by which a group and an example say the same things.
macro_rules! settings_of {
    ($what:literal) => {
        /// A word by which examples are selected with `--tag`.
        #[doc = concat!("It holds for ", $what, ".")]
        pub fn tag(&mut self, tag: impl Into<String>) -> &mut Self {
            self.settings.tags.push(tag.into());
            self
        }

        #[doc = concat!("Leaves ", $what, " out, for this reason. `--ignored` runs it all the same.")]
        pub fn skip(&mut self, reason: impl Into<String>) -> &mut Self {
            self.settings.skip = Some(reason.into());
            self
        }

        /// While something is focused, everything else is left out.
        pub fn only(&mut self) -> &mut Self {
            self.settings.focused = true;
            self
        }

        /// How long an example may take, with everything that runs around it.
        pub fn timeout(&mut self, limit: std::time::Duration) -> &mut Self {
            self.case_key("timeout_ms", super::settings::milliseconds(limit))
        }

        /// How often an example that fails is tried again.
        pub fn retries(&mut self, times: usize) -> &mut Self {
            self.case_key("retries", times)
        }

        /// The agent that is tested: one that `hotseat.yaml` names, or one in the program itself; see
        /// [`replies`](super::replies) and [`factory`](super::factory). The innermost one counts. `-n` goes before a name, and
        /// does not replace an agent in the program.
        ///
        /// ```no_run
        /// # use hotseat::dsl::prelude::*;
        /// # fn a(g: &mut Group) {
        /// g.agent("booking");
        ///
        /// g.it("greets in German", async |t| {
        ///     t.user.says("Guten Tag").await;
        /// })
        /// .agent("booking-de");
        ///
        /// g.context("an agent that says nothing of use", |g| {
        ///     g.agent(replies(async |messages: Vec<Message>| {
        ///         format!("You have written {} messages.", messages.len())
        ///     }));
        /// });
        /// # }
        /// ```
        pub fn agent(&mut self, agent: impl Into<super::agents::AgentChoice>) -> &mut Self {
            self.settings.agent = Some(agent.into());
            self
        }

        /// Who judges, and how: the name of a judge, or a [`Judge`](super::Judge).
        pub fn judge(&mut self, judge: impl Into<super::settings::Judge>) -> &mut Self {
            self.case_key("judge", judge.into().written())
        }

        /// On whose behalf the agent is spoken to.
        pub fn user(&mut self, user: impl Into<String>) -> &mut Self {
            self.case_key("user", user.into())
        }

        /// The team of the user.
        pub fn team(&mut self, team: impl Into<String>) -> &mut Self {
            self.case_key("team", team.into())
        }

        /// Anything else that reports should hold of the cases; their agent is told of it where it is told metadata of calls.
        pub fn metadata(&mut self, metadata: serde_json::Value) -> &mut Self {
            self.case_key("metadata", metadata)
        }

        /// What the agent is told with every turn.
        pub fn options(&mut self, options: serde_json::Value) -> &mut Self {
            self.case_key("options", options)
        }

        /// In which conversations that is decided which topics assert: in those with a simulated user, or in all. Default: in all.
        pub fn decide_topics(&mut self, conversations: super::DecideTopics) -> &mut Self {
            let word = match conversations {
                super::DecideTopics::Simulated => "simulated",
                super::DecideTopics::Always => "always",
            };
            self.case_key("decide_topics", word)
        }

        /// Who says to which topic a turn belongs where no trigger does. Default: a judge.
        pub fn classify_topics(&mut self, by: super::ClassifyTopics) -> &mut Self {
            let word = match by {
                super::ClassifyTopics::Judge => "judge",
                super::ClassifyTopics::Triggers => "triggers",
            };
            self.case_key("classify_topics", word)
        }

        /// Any other key of a case file, such as `tools`, `state`, `messages`, `reliability` or `before`. What an inner group or
        /// the example says replaces it.
        ///
        /// ```no_run
        /// # use hotseat::dsl::prelude::*;
        /// # use serde_json::json;
        /// # fn a(g: &mut Group) {
        /// g.case_key("reliability", json!({"rate": 0.9}));
        /// # }
        /// ```
        pub fn case_key(&mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> &mut Self {
            self.settings.say(key, value.into());
            self
        }
    };
}

pub(super) use settings_of;
