//! Settings that a case inherits from the project, its suite and its scenario. Two cases with identical text
//! differ if these differ.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use super::awaiting_markers::AwaitingMarkers;
use super::case::TestCase;
use super::topics::{CaseTopics, TopicCheckPolicy, TopicDefinition, TopicTrigger};
use hotseat_checks::{Check, CheckKind, ScriptCheck};

impl TestCase {
    /// Text of all inherited settings that judge the case. Empty if there are none.
    pub fn inherited_checks_digest(&self) -> String {
        let own = self.source().0;
        // Checks with criteria or judges depend on definitions outside the case.
        let is_inherited = |check: &&Check| {
            !Arc::ptr_eq(&check.place.source, own) || check.criterion.is_some() || check.needs_answer()
        };
        let mut all: Vec<String> = self.every_check().filter(is_inherited).map(canonical_check).collect();
        // The order of assertions is irrelevant.
        all.sort_unstable();
        all.concat()
    }

    /// Text of all inherited settings.
    pub fn inherited_settings(&self) -> String {
        let mut all = self.inherited_checks_digest();
        let mut add = |what: &str, words: String| {
            let _ = writeln!(all, "{what}: {words}");
        };
        if let Some(agent) = &self.agent {
            add("agent", agent.name.clone());
        }
        if let Some(topics) = &self.topics {
            add("topics", canonical_topics(topics));
        }
        if let Some(brief) = self.brief() {
            let character = |character| format!("{character:?}");
            add("character", character(&brief.persona));
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
        match *self.signs == DEFAULT_SIGNS.0 {
            true => all.push_str(&DEFAULT_SIGNS.1),
            false => all.push_str(&canonical_signs(&self.signs)),
        }
        all
    }
}

/// The default markers and their text. Nearly all cases have them, and formatting them for each takes longer than
/// all other inherited settings.
static DEFAULT_SIGNS: LazyLock<(AwaitingMarkers, String)> = LazyLock::new(|| {
    let signs = AwaitingMarkers::default();
    let text = canonical_signs(&signs);
    (signs, text)
});

fn canonical_signs(signs: &AwaitingMarkers) -> String {
    format!("awaiting: {signs:?}\n")
}

/// One-line text of a check with everything that affects its result.
fn canonical_check(check: &Check) -> String {
    let kind = match &check.kind {
        CheckKind::Judged(judged) => format!("{judged:?}"),
        CheckKind::Script(ScriptCheck { function, expected, options, timeout, input_kind, text }) => {
            let options = serde_json::Value::Object(options.clone());
            format!(
                "{:?}",
                (
                    function.to_string(),
                    expected.as_ref().map(ToString::to_string),
                    options.to_string(),
                    timeout,
                    input_kind,
                    text
                )
            )
        }
        CheckKind::AllOf(all) => all.checks.iter().map(canonical_check).collect(),
        _ => check.definition.as_ref().map_or_else(|| check.describe(), |written| written.to_string()),
    };
    format!("{:?} {} {kind}\n", check.strength, check.negated)
}

fn canonical_topics(topics: &CaseTopics) -> String {
    let one = |topic: &Arc<TopicDefinition>| {
        let triggers: Vec<String> = topic
            .triggers
            .iter()
            .map(|trigger| match trigger {
                TopicTrigger::Condition(check, _) => canonical_check(check),
                other => format!("{other:?}"),
            })
            .collect();
        format!("{:?}", (&topic.name, &topic.characteristic, &topic.agent_intent, triggers))
    };
    let all: Vec<String> = topics.topics.iter().map(one).collect();
    format!(
        "{:?} {} {} {}",
        topics.graph,
        topics.settings.asks_judge,
        topics.settings.check_policy == TopicCheckPolicy::Always,
        all.concat()
    )
}
