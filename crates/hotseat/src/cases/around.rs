//! What a case takes from around it: from the project, from the head of its suite, from its scenario. Two cases that read
//! alike are not the same where this differs.

use std::fmt::Write as _;
use std::sync::Arc;

use super::topics::TopicsDecided;
use super::{Case, Topics, Trigger};
use crate::checks::{Check, CheckKind, Scripted};

impl Case {
    /// What judges it and is not written in it; empty where all of it is.
    pub fn judged_from_around(&self) -> String {
        let own = self.written().0;
        // Of what names a criterion or asks a judge only a part stands where it is written.
        let is_from_around = |check: &&Check| {
            !Arc::ptr_eq(&check.place.source, own) || check.criterion.is_some() || check.asks()
        };
        let mut all: Vec<String> = self.every_check().filter(is_from_around).map(in_full).collect();
        // Assertions hold in any order.
        all.sort_unstable();
        all.concat()
    }

    /// All that it takes from around it.
    pub fn around(&self) -> String {
        let mut all = self.judged_from_around();
        let mut add = |what: &str, words: String| {
            let _ = writeln!(all, "{what}: {words}");
        };
        if let Some(agent) = &self.agent {
            add("agent", agent.name.clone());
        }
        if let Some(topics) = &self.topics {
            add("topics", topics_in_full(topics));
        }
        if let Some(brief) = self.brief() {
            let character = |character| format!("{character:?}");
            add("character", character(&brief.character));
            for (topic, differs, _) in &brief.during_topic {
                add(topic, character(differs));
            }
            let template = brief.template.as_ref().and_then(|template| template.text.as_deref());
            add("brief", format!("{:?}", (&brief.goal, brief.max_turns, brief.max_repeats, template)));
            add("told", serde_json::Value::Object(brief.options.clone()).to_string());
        }
        if let Some(scenario) = &self.scenario {
            add("scenario", scenario.fingerprint.clone());
        }
        add("awaiting", format!("{:?}", self.signs));
        all
    }
}

/// A check with all that decides it, on a line.
fn in_full(check: &Check) -> String {
    let kind = match &check.kind {
        CheckKind::Judged(judged) => format!("{judged:?}"),
        CheckKind::Scripted(Scripted { function, expected, options, timeout, given, text }) => {
            let options = serde_json::Value::Object(options.clone());
            format!(
                "{:?}",
                (
                    function,
                    expected.as_ref().map(ToString::to_string),
                    options.to_string(),
                    timeout,
                    given,
                    text
                )
            )
        }
        CheckKind::AllOf(all) => all.checks.iter().map(in_full).collect(),
        _ => check.written.as_ref().map_or_else(|| check.describe(), |written| written.to_string()),
    };
    format!("{:?} {} {kind}\n", check.strength, check.negated)
}

fn topics_in_full(topics: &Topics) -> String {
    let one = |topic: &Arc<super::Topic>| {
        let triggers: Vec<String> = topic
            .triggers
            .iter()
            .map(|trigger| match trigger {
                Trigger::Condition(check) => in_full(check),
                other => format!("{other:?}"),
            })
            .collect();
        format!("{:?}", (&topic.name, &topic.characteristic, &topic.agent_intent, triggers))
    };
    let all: Vec<String> = topics.topics.iter().map(one).collect();
    format!(
        "{:?} {} {} {}",
        topics.graph,
        topics.following.asks_judge,
        topics.following.decided == TopicsDecided::Always,
        all.concat()
    )
}
