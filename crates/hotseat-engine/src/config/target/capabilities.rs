//! Capabilities of targets: the parts of a case that reach the agent, and diagnostics for cases that set
//! others.

use std::collections::BTreeMap;

use crate::cases::{CallOptions, TestCase};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, NodeValue, SourceSpan};
use hotseat_model::Provider;
use hotseat_runtime::files::{ConnectorSet, ModelConnector};
use hotseat_targets::message::{MediaSource, media_parts};
use hotseat_targets::openai::{RESERVED_BODY_KEYS, is_supported};
use hotseat_targets::target::template::{Placeholder, PlaceholderRef, references};
use hotseat_targets::{ProtocolCapabilities, embedded};

use super::TargetKind;

/// Parts of a case that reach an agent.
#[derive(Debug, Clone)]
pub(in crate::config) struct TargetCapabilities {
    kind: TargetKind,
    /// Supported case keys.
    keys: Vec<&'static str>,
    options: SupportedOptions,
}

/// Options that reach an agent.
#[derive(Debug, Clone)]
enum SupportedOptions {
    All,
    /// Only these members.
    Only(Vec<String>),
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
    /// Determines the capabilities of an agent from its definition.
    pub(in crate::config) fn from_node(kind: TargetKind, node: &DocumentNode) -> TargetCapabilities {
        let is_text = matches!(node.get("protocol").map(|protocol| &protocol.value), Some(NodeValue::String(protocol)) if protocol == "text");
        match kind {
            // A recorded agent received everything during the recording.
            TargetKind::AgUi | TargetKind::Replay => {
                TargetCapabilities { kind, keys: ALL_KEYS.to_vec(), options: SupportedOptions::All }
            }
            TargetKind::Command if !is_text => {
                TargetCapabilities { kind, keys: ALL_KEYS.to_vec(), options: SupportedOptions::All }
            }
            TargetKind::Http => TargetCapabilities::from_template(
                kind,
                &key_references(node, &["endpoint", "headers", "body"]),
            ),
            TargetKind::Command => {
                let mut hears = TargetCapabilities::from_template(kind, &key_references(node, &["command"]));
                // Files cannot be passed as arguments.
                hears.keys.retain(|key| *key != "attachments");
                hears
            }
            TargetKind::OpenAi => {
                let mut hears = TargetCapabilities::from_template(kind, &key_references(node, &["body"]));
                hears.keys.extend(["messages", "attachments", "forwardedProps", "tools", "user"]);
                TargetCapabilities { options: SupportedOptions::All, ..hears }
            }
            TargetKind::InCode => {
                TargetCapabilities { kind, keys: vec!["messages"], options: SupportedOptions::All }
            }
            TargetKind::Embedded => {
                let keys =
                    vec!["threadId", "state", "context", "tools", "messages", "user", "team", "locale"];
                let known = embedded::SUPPORTED_OPTIONS.map(str::to_string).to_vec();
                TargetCapabilities { kind, keys, options: SupportedOptions::Only(known) }
            }
        }
    }

    /// Determines the capabilities from the placeholders of a template.
    fn from_template(kind: TargetKind, told: &[PlaceholderRef]) -> TargetCapabilities {
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
        let members = options.clone().filter_map(|reference| reference.path.first().cloned());
        let options = match options.clone().any(|reference| reference.path.is_empty()) {
            true => SupportedOptions::All,
            false => SupportedOptions::Only(members.collect()),
        };
        TargetCapabilities { kind, keys: places.map(|(key, ..)| *key).collect(), options }
    }

    /// Capabilities of the adapter.
    pub(super) fn adapter_capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities {
            history: self.supports("messages"),
            attachments: self.supports("attachments"),
            options: match &self.options {
                SupportedOptions::All => true,
                SupportedOptions::Only(members) => !members.is_empty(),
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
            SupportedOptions::Only(members) => members.iter().any(|member| member == name),
        }
    }

    /// Diagnostics of case parts that do not reach the agent.
    pub(in crate::config) fn unsupported_parts(&self, case: &TestCase) -> Vec<Diagnostic> {
        let target = &case.target;
        let opening = &case.opening.messages;
        let in_turns = case.turns.iter().flat_map(|turn| media_parts(&turn.content));
        let before = opening.iter().flat_map(|message| media_parts(&message.content));
        let mut attached = in_turns.chain(before);
        if self.kind == TargetKind::OpenAi
            && let Some(media) = attached.find(|media| !is_supported(media))
        {
            let what = match &media.source {
                MediaSource::Url(_) => " by URL",
                MediaSource::Data(_) | MediaSource::File(_) => "",
            };
            let message = format!("{}{what} cannot be sent to a chat completions API", media.kind.name());
            let help = "supported are images, and audio and documents that are files or `data:`";
            return vec![Diagnostic::new(message).at(media.place.clone()).help(help)];
        }
        let attached = attached.next().map(|media| media.place.clone());
        let wanted = [
            ("threadId", target.thread_id.is_some().then(|| case.place.clone())),
            ("state", target.state.is_some().then(|| case.place.clone())),
            ("context", target.context.is_some().then(|| case.place.clone())),
            ("forwardedProps", target.forwarded_props.is_some().then(|| case.place.clone())),
            ("tools", (!target.tools.is_empty()).then(|| case.place.clone())),
            ("messages", (!opening.is_empty()).then(|| case.place.clone())),
            ("attachments", attached),
            ("user", target.user.is_some().then(|| case.place.clone())),
            ("team", target.team.is_some().then(|| case.place.clone())),
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
        members.filter_map(|(name, value)| {
            if let (TargetKind::Embedded, "skip", Some(wishes)) = (self.kind, name.as_str(), value.as_object()) {
                let (what, wanted) = wishes.iter().find(|(what, wanted)| !embedded::satisfies_skip(what, wanted))?;
                let message = format!(
                    "this case sets `options.skip.{what}: {wanted}`, which embedded agents do not support"
                );
                let help = "its conversations are never stored and always traced, as with `history: true` and `trace: false`";
                return Some(Diagnostic::new(message).at(options.place.clone()).help(help));
            }
            if self.kind == TargetKind::OpenAi && RESERVED_BODY_KEYS.contains(&name.as_str()) {
                let message =
                    format!("`options.{name}` would overwrite a member that Hotseat sets");
                return Some(Diagnostic::new(message).at(options.place.clone()));
            }
            if self.supports_option(name) {
                return None;
            }
            let message = format!("this case sets `options.{name}`, which its agent does not support");
            Some(Diagnostic::new(message).at(options.place.clone()).help(self.help_for_option(name)))
        })
    }

    /// Diagnostic of a connector of the command line that the agent does not support.
    pub(in crate::config) fn unsupported_connector(&self) -> Option<Diagnostic> {
        if self.supports_option("connector") {
            return None;
        }
        let message = "`-c` selects a connector, but the agent does not support this";
        Some(Diagnostic::new(message).help(self.help_for_option("connector")))
    }

    /// Help for an unsupported case key.
    fn help_for_key(&self, key: &str) -> String {
        let placeholders: &[&str] = match key {
            "threadId" => &["conversation_id"],
            "messages" => &["messages", "history"],
            "attachments" => &["attachments", "messages"],
            "user" => &["user"],
            "team" => &["team"],
            "state" => &["state"],
            "context" => &["context"],
            "forwardedProps" => &["forwardedProps"],
            _ => &[],
        };
        match (self.kind, key, placeholders) {
            (TargetKind::Embedded, "attachments", _) => "embedded agents support text only".to_string(),
            (TargetKind::Command, "attachments", _) => {
                "files cannot be passed as arguments; use a program with `protocol: json_lines`".to_string()
            }
            (TargetKind::OpenAi, "team", _) => {
                "add `{{team}}` to the `body` of the agent, where its server expects it".to_string()
            }
            (TargetKind::Http | TargetKind::Command, _, [first, rest @ ..]) => {
                let rest: String = rest.iter().map(|name| format!(" or `{{{{{name}}}}}`")).collect();
                let place = if self.kind == TargetKind::Http {
                    "template of the agent"
                } else {
                    "command of the agent"
                };
                format!("add `{{{{{first}}}}}`{rest} to the {place}")
            }
            (TargetKind::OpenAi, "threadId", _) => {
                "add `{{conversation_id}}` to the `body` of the agent, where its server expects it"
                    .to_string()
            }
            _ => "remove it, or use a target type that supports it".to_string(),
        }
    }

    fn help_for_option(&self, name: &str) -> String {
        match self.kind {
            TargetKind::Embedded => "embedded agents support `connector` and `metadata`".to_string(),
            TargetKind::Http | TargetKind::Command => {
                let place = if self.kind == TargetKind::Http { "template" } else { "command" };
                format!("add `{{{{options}}}}` or `{{{{options.{name}}}}}` to the {place} of the agent")
            }
            TargetKind::AgUi | TargetKind::OpenAi | TargetKind::Replay | TargetKind::InCode => {
                "leave it out".to_string()
            }
        }
    }

    /// Resolves a connector that turns of such an agent name.
    pub(in crate::config) fn resolve_connector(
        &self,
        name: &str,
        place: Option<SourceSpan>,
        connectors: &ConnectorSet,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<ModelConnector>, Diagnostics> {
        let looked_up = |name: &str| environment.get(name).cloned();
        match self.kind {
            TargetKind::Embedded => connectors.get(name, place, &looked_up).map(Some),
            // Any other name is a model of the server.
            TargetKind::OpenAi if !connectors.contains(name) => Ok(None),
            TargetKind::OpenAi => match connectors.get(name, place.clone(), &looked_up)? {
                ModelConnector::Provider(connector) if connector.provider == Provider::OpenAi => {
                    Ok(Some(ModelConnector::Provider(connector)))
                }
                ModelConnector::Provider(_)
                | ModelConnector::Scripted(_)
                | ModelConnector::Recorded { .. } => {
                    let message = format!(
                        "the connector `{name}` must have `type: openai` for an agent behind a chat completions API"
                    );
                    Err(Diagnostic { place, ..Diagnostic::new(message) }.into())
                }
            },
            TargetKind::AgUi
            | TargetKind::Http
            | TargetKind::Command
            | TargetKind::Replay
            | TargetKind::InCode => Ok(None),
        }
    }
}

/// Placeholders in the texts below these keys of a node.
fn key_references(node: &DocumentNode, keys: &[&str]) -> Vec<PlaceholderRef> {
    keys.iter().filter_map(|key| node.get(key)).flat_map(node_references).collect()
}

/// Placeholders in all texts below a node.
pub(super) fn node_references(node: &DocumentNode) -> Vec<PlaceholderRef> {
    match &node.value {
        NodeValue::String(text) => references(text).unwrap_or_default(),
        NodeValue::List(nodes) => nodes.iter().flat_map(node_references).collect(),
        NodeValue::Map(entries) => entries.iter().flat_map(|entry| node_references(&entry.value)).collect(),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => Vec::new(),
    }
}
