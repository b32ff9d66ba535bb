//! Settings that groups and examples apply to their cases, with the keys of case files.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::agents::AgentChoice;
use super::caller_location::CallerLocation;
use super::user_turn::milliseconds;

/// Settings of a group or an example.
#[derive(Clone, Default)]
pub(super) struct CaseSettings {
    pub focused: bool,
    pub skip: Option<String>,
    pub tags: Vec<String>,
    pub agent: Option<AgentChoice>,
    /// Settings in the format of case files.
    keys: Map<String, Value>,
    /// Invalid settings, with their places.
    pub problems: Vec<(String, CallerLocation)>,
}

impl CaseSettings {
    /// Sets the value of a key of case files.
    pub(super) fn set(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match (key.as_str(), self.keys.get_mut("judge"), &value) {
            // The name of a judge and its options can be set one after the other.
            ("judge", Some(Value::Object(said)), Value::Object(more)) => said.extend(more.clone()),
            _ => drop(self.keys.insert(key, value)),
        }
    }

    /// Sets a key that no method sets, for [`Group::case_key`](super::Group::case_key).
    pub(super) fn set_other(&mut self, key: String, value: Value, at: CallerLocation) {
        let method = match key.as_str() {
            "name" => "the name of the example, the first argument of `it`",
            "tags" => "`tag`",
            "skip" => "`skip`",
            "agent" => "`agent`",
            _ => return self.set(key, value),
        };
        self.problems.push((format!("`case_key` cannot set `{key}`: use {method}"), at));
    }

    /// The id, if one is set.
    pub(super) fn id(&self) -> Option<&str> {
        self.keys.get("id").and_then(Value::as_str)
    }

    /// Merges these settings over those of the enclosing group.
    pub(super) fn layered_over(self, around: &CaseSettings) -> CaseSettings {
        let mut all = around.clone();
        all.focused |= self.focused;
        all.skip = self.skip.or(all.skip);
        all.tags.extend(self.tags);
        all.agent = self.agent.or(all.agent);
        for (key, value) in self.keys {
            all.set(key, value);
        }
        all
    }

    /// Converts to the case file format, with the name of the example.
    pub(super) fn to_json(&self, name: &str) -> Value {
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

/// Judge of a group or an example. Options that are not set are inherited from the enclosing group and the
/// project file.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.judge(Judge::new("agents:critic").votes(3));
///
/// g.it("greets", async |t| {
///     t.user.says("Hi").await;
///     expect!(t.agent, satisfy("It greets the user"));
/// })
/// .judge(Judge::default().votes(5));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Judge(Map<String, Value>);

impl Judge {
    /// Creates a judge from `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the
    /// built-in prompts.
    pub fn new(who: impl Into<String>) -> Judge {
        Judge::default().with("use", who.into().into())
    }

    /// Sets the number of votes; the majority decides.
    pub fn votes(self, votes: usize) -> Judge {
        self.with("votes", votes.into())
    }

    /// Sets how many times an invalid answer of the judge is retried.
    pub fn retries(self, times: usize) -> Judge {
        self.with("retries", times.into())
    }

    /// Sets the model of the judge: for a judge agent that accepts a connector, or instead of a named judge.
    pub fn connector(self, name: impl Into<String>) -> Judge {
        self.with("connector", name.into().into())
    }

    /// Sets the time limit of one vote.
    pub fn timeout(self, limit: Duration) -> Judge {
        self.with("timeout_ms", milliseconds(limit))
    }

    /// Sets the maximum number of characters of the conversation that the judge sees.
    pub fn evidence(self, characters: usize) -> Judge {
        self.with("evidence", characters.into())
    }

    fn with(mut self, key: &str, value: Value) -> Judge {
        self.0.insert(key.to_string(), value);
        self
    }

    pub(super) fn into_json(self) -> Value {
        self.0.into()
    }
}

impl<T: Into<String>> From<T> for Judge {
    fn from(who: T) -> Self {
        Judge::new(who)
    }
}

/// Defines the settings methods that groups and examples share.
macro_rules! settings_of {
    ($what:literal) => {
        /// Adds a tag. `--tag` selects examples by their tags.
        #[doc = concat!("Applies to ", $what, ".")]
        pub fn tag(&mut self, tag: impl Into<String>) -> &mut Self {
            self.settings.tags.push(tag.into());
            self
        }

        #[doc = concat!("Skips ", $what, ", with a reason. `--ignored` runs skipped examples.")]
        pub fn skip(&mut self, reason: impl Into<String>) -> &mut Self {
            self.settings.skip = Some(reason.into());
            self
        }

        /// Focuses on these examples: all examples that are not focused are skipped.
        pub fn only(&mut self) -> &mut Self {
            self.settings.focused = true;
            self
        }

        /// Sets the time limit of an example, including its hooks.
        pub fn timeout(&mut self, limit: std::time::Duration) -> &mut Self {
            self.key("timeout_ms", super::user_turn::milliseconds(limit))
        }

        /// Sets how many times a failed example is retried.
        pub fn retries(&mut self, times: usize) -> &mut Self {
            self.key("retries", times)
        }

        /// Sets the agent under test: one that `hotseat.yaml` names, or one in the test program; see
        /// [`replies`](super::replies) and [`factory`](super::factory). The innermost setting applies. `-n`
        /// overrides a name but not an agent in the test program.
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

        /// Sets the judge: the name of a judge, or a [`Judge`](super::Judge).
        pub fn judge(&mut self, judge: impl Into<super::settings::Judge>) -> &mut Self {
            self.key("judge", judge.into().into_json())
        }

        /// Sets the user identity that the agent receives.
        pub fn user(&mut self, user: impl Into<String>) -> &mut Self {
            self.key("user", user.into())
        }

        /// Sets the team of the user identity.
        pub fn team(&mut self, team: impl Into<String>) -> &mut Self {
            self.key("team", team.into())
        }

        /// Sets metadata of the cases for reports. Targets that accept metadata of calls receive it, too.
        pub fn metadata(&mut self, metadata: serde_json::Value) -> &mut Self {
            self.key("metadata", metadata)
        }

        /// Sets options that the agent receives with every turn.
        pub fn options(&mut self, options: serde_json::Value) -> &mut Self {
            self.key("options", options)
        }

        /// Sets which conversations evaluate the assertions of topics. Default: all.
        pub fn decide_topics(&mut self, conversations: super::DecideTopics) -> &mut Self {
            let word = match conversations {
                super::DecideTopics::Simulated => "simulated",
                super::DecideTopics::Always => "always",
            };
            self.key("decide_topics", word)
        }

        /// Sets how a turn is assigned to a topic if no trigger fires. Default: by a judge.
        pub fn classify_topics(&mut self, by: super::ClassifyTopics) -> &mut Self {
            let word = match by {
                super::ClassifyTopics::Judge => "judge",
                super::ClassifyTopics::Triggers => "triggers",
            };
            self.key("classify_topics", word)
        }

        /// Sets any other key of a case file, such as `tools`, `state`, `messages`, `reliability` or
        /// `before`. Inner groups and examples override the value.
        ///
        /// ```no_run
        /// # use hotseat::dsl::prelude::*;
        /// # use serde_json::json;
        /// # fn a(g: &mut Group) {
        /// g.case_key("reliability", json!({"rate": 0.9}));
        /// # }
        /// ```
        #[track_caller]
        pub fn case_key(&mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> &mut Self {
            let at = super::caller_location::CallerLocation::here();
            self.settings.set_other(key.into(), value.into(), at);
            self
        }

        fn key(&mut self, key: &str, value: impl Into<serde_json::Value>) -> &mut Self {
            self.settings.set(key, value.into());
            self
        }
    };
}

pub(super) use settings_of;
