//! Capabilities of targets: the parts of a case that reach the agent, and diagnostics for cases that set
//! others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cases::{CallOptions, ListedTools, TestCase};
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};
use hotseat_runtime::files::{ConnectorSet, Environment, ModelConnector};
use hotseat_targets::ProtocolCapabilities;
use hotseat_targets::message::{MediaAttachment, media_parts};
use hotseat_targets::target::template::{Placeholder, PlaceholderRef};
use hotseat_trace::CallVisibility;

/// Resolves a connector that turns name: `None` if the agent receives the name only.
type ResolveConnector = fn(
    &str,
    Option<SourceSpan>,
    &ConnectorSet,
    Environment<'_>,
) -> Result<Option<ModelConnector>, Diagnostics>;

/// Parts of a case that reach an agent, and the diagnostics of other parts.
#[derive(Debug, Clone)]
pub(in crate::config) struct TargetCapabilities {
    /// Supported case keys.
    pub(super) keys: Vec<&'static str>,
    pub(super) options: SupportedOptions,
    /// True if the protocol shows the tool calls of the agent.
    pub(in crate::config) shows_calls: bool,
    /// True if the agent has connectors of its own, beside those of the project.
    pub(in crate::config) own_connectors: bool,
    /// True if a named connector replaces the model of the agent; other agents receive the name only.
    pub(in crate::config) uses_connectors: bool,
    /// Reports an attachment that cannot be sent although attachments are supported.
    pub(super) media_error: fn(&MediaAttachment) -> Option<Diagnostic>,
    /// Decides about an option by its value. `None` if the list of options decides.
    pub(super) option_error: fn(&str, &Value) -> Option<Result<(), Diagnostic>>,
    /// Help for an unsupported case key.
    pub(super) key_help: fn(&str) -> Option<String>,
    /// Help for an unsupported option.
    pub(super) option_help: fn(&str) -> Option<String>,
    /// Resolves a connector that turns name.
    pub(super) resolve: ResolveConnector,
}

/// Options that reach an agent.
#[derive(Debug, Clone)]
pub(super) enum SupportedOptions {
    All,
    /// Only the values at these paths.
    Only(Vec<Vec<String>>),
}

/// Case keys that targets may support.
const ALL_KEYS: [&str; 10] = [
    "threadId",
    "state",
    "context",
    "forwardedProps",
    "tools",
    "messages",
    "attachments",
    "user",
    "team",
    "locale",
];

impl TargetCapabilities {
    /// Everything reaches the agent, and turns select connectors by name only.
    pub(super) fn all() -> TargetCapabilities {
        TargetCapabilities {
            keys: ALL_KEYS.to_vec(),
            options: SupportedOptions::All,
            shows_calls: true,
            own_connectors: false,
            uses_connectors: false,
            media_error: |_| None,
            option_error: |_, _| None,
            key_help: |_| None,
            option_help: |_| None,
            resolve: |_, _, _, _| Ok(None),
        }
    }

    /// Nothing but the user's text reaches the agent.
    pub(super) fn none() -> TargetCapabilities {
        TargetCapabilities::from_template(&[])
    }

    /// Determines the capabilities from the placeholders of a template.
    pub(super) fn from_template(told: &[PlaceholderRef]) -> TargetCapabilities {
        const PLACES: [(&str, Placeholder, &[&str]); 14] = [
            ("threadId", Placeholder::ConversationId, &[]),
            ("state", Placeholder::State, &[]),
            ("context", Placeholder::Context, &[]),
            ("forwardedProps", Placeholder::ForwardedProps, &[]),
            ("messages", Placeholder::Messages, &[]),
            ("messages", Placeholder::History, &[]),
            ("attachments", Placeholder::Messages, &[]),
            ("attachments", Placeholder::Attachments, &[]),
            ("user", Placeholder::User, &[]),
            ("user", Placeholder::Ctx, &["authorized", "user_id"]),
            ("team", Placeholder::Team, &[]),
            ("team", Placeholder::Ctx, &["authorized", "team_id"]),
            ("locale", Placeholder::Locale, &[]),
            ("locale", Placeholder::Ctx, &["locale"]),
        ];
        let places = PLACES.iter().filter(|(_, to, path)| {
            // A path into a list of messages or into the state covers a part of it.
            told.iter().any(|reference| reference.overlaps(*to, path))
        });
        let options = told.iter().filter(|reference| reference.placeholder == Placeholder::Options);
        let options = match options.clone().any(|reference| reference.path.is_empty()) {
            true => SupportedOptions::All,
            false => SupportedOptions::Only(options.map(|reference| reference.path.clone()).collect()),
        };
        let keys = places.map(|(key, ..)| *key).collect();
        TargetCapabilities { keys, options, ..TargetCapabilities::all() }
    }

    pub(super) fn protocol(&self) -> ProtocolCapabilities {
        ProtocolCapabilities {
            history: self.supports("messages"),
            attachments: self.supports("attachments"),
            options: match &self.options {
                SupportedOptions::All => true,
                SupportedOptions::Only(paths) => !paths.is_empty(),
            },
            calls: match self.shows_calls {
                true => CallVisibility::Protocol,
                false => CallVisibility::Hidden,
            },
        }
    }

    /// True if the agent receives the value of this case key.
    pub(in crate::config) fn supports(&self, key: &str) -> bool {
        match key {
            "metadata" => self.supports_option(key),
            key => self.keys.contains(&key),
        }
    }

    /// True if the agent receives this member of the options.
    pub(in crate::config) fn supports_option(&self, name: &str) -> bool {
        match &self.options {
            SupportedOptions::All => true,
            SupportedOptions::Only(paths) => {
                paths.iter().any(|path| path.first().is_some_and(|first| first == name))
            }
        }
    }

    /// Diagnostics of assertions and triggers about tool calls which nothing shows.
    pub(in crate::config) fn hidden_calls(&self, case: &TestCase) -> Vec<Diagnostic> {
        let checks = case.every_check().filter(|check| check.reads_calls());
        match self.call_visibility(case) {
            CallVisibility::Protocol => Vec::new(),
            CallVisibility::Services => {
                let none = ListedTools::new();
                let triggers = case.topics.iter().flat_map(|topics| case.unseen_triggers(topics, &none));
                checks.flat_map(|check| case.unseen_tools(check, &none)).chain(triggers).collect()
            }
            CallVisibility::Hidden => case.hidden_calls().into_iter().collect(),
        }
    }

    /// What shows the tool calls of the agent in a case.
    pub(in crate::config) fn call_visibility(&self, case: &TestCase) -> CallVisibility {
        match self.shows_calls {
            true => CallVisibility::Protocol,
            false if case.mcp.is_empty() && case.models.is_empty() => CallVisibility::Hidden,
            false => CallVisibility::Services,
        }
    }

    /// Diagnostics of case parts that do not reach the agent.
    pub(in crate::config) fn unsupported_parts(&self, case: &TestCase) -> Vec<Diagnostic> {
        let target = &case.target;
        let opening = &case.opening.messages;
        let in_turns = case.turns.iter().flat_map(|turn| media_parts(&turn.content));
        let before = opening.iter().flat_map(|message| media_parts(&message.content));
        let attached: Vec<&MediaAttachment> = in_turns.chain(before).collect();
        let wrong = |media: &&MediaAttachment| Some((self.media_error)(media)?.at(media.place.clone()));
        if let Some(wrong) = attached.iter().find_map(wrong) {
            return vec![wrong];
        }
        let attached = attached.first().map(|media| media.place.clone());
        let place = |key: &str| target.places.get(key).unwrap_or(&case.place).clone();
        let wanted = [
            ("threadId", target.thread_id.is_some().then(|| place("threadId"))),
            ("state", target.state.is_some().then(|| place("state"))),
            ("context", target.context.is_some().then(|| place("context"))),
            ("forwardedProps", target.forwarded_props.is_some().then(|| place("forwardedProps"))),
            ("tools", (!target.tools.is_empty()).then(|| place("tools"))),
            ("messages", (!opening.is_empty()).then(|| place("messages"))),
            ("attachments", attached),
            ("user", target.user.is_some().then(|| place("user"))),
            ("team", target.team.is_some().then(|| place("team"))),
        ];
        let unheard = wanted.into_iter().filter_map(|(key, place)| {
            let place = place.filter(|_| !self.supports(key))?;
            let what = if key == "messages" { "messages before the first turn" } else { &format!("`{key}`") };
            let message = format!("this case sets {what}, which its agent does not support");
            Some(Diagnostic::new(message).at(place).help(self.help_for_key(key)))
        });
        let mut mistakes: Vec<Diagnostic> = unheard.collect();
        let mut seen: Vec<&SourceSpan> = Vec::new();
        for options in
            case.turns.iter().filter_map(|turn| turn.options.as_ref()).chain(&case.turn_defaults.options)
        {
            // Options of the case are repeated in each of its turns.
            if !seen.contains(&&options.place) {
                seen.push(&options.place);
                mistakes.extend(self.unsupported_options(options));
            }
        }
        mistakes
    }

    fn unsupported_options<'a>(&'a self, options: &'a CallOptions) -> impl Iterator<Item = Diagnostic> + 'a {
        let members = options.value.as_object().into_iter().flatten();
        members.flat_map(|(name, value)| {
            if let Some(decided) = (self.option_error)(name, value) {
                return decided.err().map(|wrong| wrong.at(options.place.clone())).into_iter().collect();
            }
            let unsupported = |path: String| {
                let message = format!("this case sets `options.{path}`, which its agent does not support");
                Diagnostic::new(message).at(options.place.clone()).help(self.help_for_option(&path))
            };
            self.unsupported_values(name, value).into_iter().map(unsupported).collect::<Vec<_>>()
        })
    }

    /// Paths of the values below an option that do not reach the agent.
    fn unsupported_values(&self, name: &str, value: &Value) -> Vec<String> {
        let SupportedOptions::Only(paths) = &self.options else { return Vec::new() };
        let below = paths.iter().filter(|path| path.first().is_some_and(|first| first == name));
        let below: Vec<&[String]> = below.map(|path| &path[1..]).collect();
        let mut unsupported = Vec::new();
        collect_uncovered(&below, value, name.to_string(), &mut unsupported);
        unsupported
    }

    /// Diagnostic of a connector of the command line that the agent does not support.
    pub(in crate::config) fn unsupported_connector(&self) -> Option<Diagnostic> {
        if self.supports_option("connector") {
            return None;
        }
        let message = "`-c` selects a connector, but the agent does not support this";
        Some(Diagnostic::new(message).help(self.help_for_option("connector")))
    }

    /// Resolves a connector that turns of such an agent name.
    pub(in crate::config) fn resolve_connector(
        &self,
        name: &str,
        place: Option<SourceSpan>,
        connectors: &ConnectorSet,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<ModelConnector>, Diagnostics> {
        (self.resolve)(name, place, connectors, &|name| environment.get(name).cloned())
    }

    /// Help for an unsupported case key.
    fn help_for_key(&self, key: &str) -> String {
        (self.key_help)(key).unwrap_or_else(|| "remove it, or use a target type that supports it".to_string())
    }

    /// Help for an option that the agent does not support.
    pub(in crate::config) fn help_for_option(&self, name: &str) -> String {
        (self.option_help)(name).unwrap_or_else(|| "leave it out".to_string())
    }
}

/// Collects the paths of the values below `value` that none of `paths` reaches, relative to `value`. A value that is no object or
/// list is reached by its own path only.
fn collect_uncovered(paths: &[&[String]], value: &Value, at: String, uncovered: &mut Vec<String>) {
    if paths.iter().any(|path| path.is_empty()) {
        return;
    }
    let mut collect_member = |name: &str, member: &Value| {
        let below = paths.iter().filter(|path| path.first().is_some_and(|first| first == name));
        let below: Vec<&[String]> = below.map(|path| &path[1..]).collect();
        collect_uncovered(&below, member, format!("{at}.{name}"), uncovered);
    };
    match value {
        Value::Object(members) if !paths.is_empty() => {
            members.iter().for_each(|(name, member)| collect_member(name, member));
        }
        Value::Array(entries) if !paths.is_empty() => {
            entries.iter().enumerate().for_each(|(place, entry)| collect_member(&place.to_string(), entry));
        }
        _ => uncovered.push(at),
    }
}
