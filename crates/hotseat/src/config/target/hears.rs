//! What of a case an agent is told, and what is wrong with a case that gives more.

use std::collections::BTreeMap;

use crate::adapters::openai::{RESERVED, has_form};
use crate::adapters::template::{Placeholder, Reference, references};
use crate::adapters::{Carries, embedded};
use crate::cases::{Case, Options};
use crate::session::{MediaSource, media};
use hotseat_document::{Diagnostic, Diagnostics, Node, Place, Value};
use hotseat_model::Provider;
use hotseat_runtime::files::{Connector, Connectors};

use super::Kind;

/// What of a case an agent is told.
#[derive(Debug, Clone)]
pub(in crate::config) struct Hears {
    kind: Kind,
    /// By the keys of cases.
    keys: Vec<&'static str>,
    options: HeardOptions,
}

/// What of the options an agent is told.
#[derive(Debug, Clone)]
enum HeardOptions {
    All,
    /// These members.
    Only(Vec<String>),
}

/// What a case can tell, by its keys.
const EVERYTHING: [&str; 10] = [
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

impl Hears {
    /// What an agent is told that is described by this node.
    pub(in crate::config) fn of(kind: Kind, node: &Node) -> Hears {
        let is_text = matches!(node.get("speaks").map(|speaks| &speaks.value), Some(Value::String(speaks)) if speaks == "text");
        match kind {
            // Whatever a case gives, the agent was given when it was recorded.
            Kind::AgUi | Kind::Replay => {
                Hears { kind, keys: EVERYTHING.to_vec(), options: HeardOptions::All }
            }
            Kind::Command if !is_text => {
                Hears { kind, keys: EVERYTHING.to_vec(), options: HeardOptions::All }
            }
            Kind::Http => Hears::by_template(kind, &told(node, &["endpoint", "headers", "body"])),
            Kind::Command => {
                let mut hears = Hears::by_template(kind, &told(node, &["command"]));
                // Files do not fit into arguments.
                hears.keys.retain(|key| *key != "attachments");
                hears
            }
            Kind::OpenAi => {
                let mut hears = Hears::by_template(kind, &told(node, &["body"]));
                hears.keys.extend(["messages", "attachments", "forwardedProps", "tools", "user"]);
                Hears { options: HeardOptions::All, ..hears }
            }
            Kind::InCode => Hears { kind, keys: vec!["messages"], options: HeardOptions::All },
            Kind::Embedded => {
                let keys =
                    vec!["threadId", "state", "context", "tools", "messages", "user", "team", "locale"];
                let known = embedded::OPTIONS.map(str::to_string).to_vec();
                Hears { kind, keys, options: HeardOptions::Only(known) }
            }
        }
    }

    /// What an agent is told that is told what a template says.
    fn by_template(kind: Kind, told: &[Reference]) -> Hears {
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
            // A path into a list of messages or into the state tells a part of it.
            told.iter().any(|reference| reference.covers(*to, path))
        });
        let options = told.iter().filter(|reference| reference.to == Placeholder::Options);
        let members = options.clone().filter_map(|reference| reference.path.first().cloned());
        let options = match options.clone().any(|reference| reference.path.is_empty()) {
            true => HeardOptions::All,
            false => HeardOptions::Only(members.collect()),
        };
        Hears { kind, keys: places.map(|(key, ..)| *key).collect(), options }
    }

    /// What its adapter carries.
    pub(super) fn carries(&self) -> Carries {
        Carries {
            history: self.hears("messages"),
            attachments: self.hears("attachments"),
            options: match &self.options {
                HeardOptions::All => true,
                HeardOptions::Only(members) => !members.is_empty(),
            },
        }
    }

    /// Whether it is told what a case gives under this key.
    pub(in crate::config) fn hears(&self, key: &str) -> bool {
        match key {
            "metadata" => self.hears_option(key),
            key => self.keys.contains(&key),
        }
    }

    /// Whether it is told this member of the options.
    pub(in crate::config) fn hears_option(&self, name: &str) -> bool {
        match &self.options {
            HeardOptions::All => true,
            HeardOptions::Only(members) => members.iter().any(|member| member == name),
        }
    }

    /// What a case wants the agent to be told although it has no way to hear it.
    pub(in crate::config) fn deaf_to(&self, case: &Case) -> Vec<Diagnostic> {
        let target = &case.target;
        let opening = &case.opening.messages;
        let in_turns = case.turns.iter().flat_map(|turn| media(&turn.content));
        let before = opening.iter().flat_map(|message| media(&message.content));
        let mut attached = in_turns.chain(before);
        if self.kind == Kind::OpenAi
            && let Some(media) = attached.find(|media| !has_form(media))
        {
            let what = match &media.source {
                MediaSource::Url(_) => "the address of ",
                MediaSource::Data(_) | MediaSource::File(_) => "",
            };
            let message = format!("{what}{} cannot be sent over chat completions", media.kind.name());
            let help = "pictures, and sound and documents that are files or `data:`, have a form there";
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
            let place = place.filter(|_| !self.hears(key))?;
            let what = if key == "messages" { "messages before the first turn" } else { &format!("`{key}`") };
            let message = format!("this case gives {what}, which its agent is never told");
            Some(Diagnostic::new(message).at(place).help(self.advice(key)))
        });
        let mut mistakes: Vec<Diagnostic> = unheard.collect();
        let mut seen: Vec<&Place> = Vec::new();
        for options in
            case.turns.iter().filter_map(|turn| turn.options.as_ref()).chain(&case.unwritten.options)
        {
            // Options of the case stand in each of its turns.
            if !seen.contains(&&options.place) {
                seen.push(&options.place);
                mistakes.extend(self.deaf_to_options(options));
            }
        }
        mistakes
    }

    fn deaf_to_options<'a>(&'a self, options: &'a Options) -> impl Iterator<Item = Diagnostic> + 'a {
        let members = options.value.as_object().into_iter().flatten();
        members.filter_map(|(name, value)| {
            if let (Kind::Embedded, "skip", Some(wishes)) = (self.kind, name.as_str(), value.as_object()) {
                let (what, wanted) = wishes.iter().find(|(what, wanted)| !embedded::skips(what, wanted))?;
                let message = format!(
                    "this case gives `options.skip.{what}: {wanted}`, and an embedded agent cannot do that"
                );
                let help = "its conversations are kept nowhere and always traced: `history: true` and `trace: false` hold anyway";
                return Some(Diagnostic::new(message).at(options.place.clone()).help(help));
            }
            if self.kind == Kind::OpenAi && RESERVED.contains(&name.as_str()) {
                let message =
                    format!("`options.{name}` would take the place of what is said and how it is sent");
                return Some(Diagnostic::new(message).at(options.place.clone()));
            }
            if self.hears_option(name) {
                return None;
            }
            let message = format!("this case gives `options.{name}`, which its agent is never told");
            Some(Diagnostic::new(message).at(options.place.clone()).help(self.advice_on_option(name)))
        })
    }

    /// What is wrong with the connector of the command line.
    pub(in crate::config) fn deaf_to_connector(&self) -> Option<Diagnostic> {
        if self.hears_option("connector") {
            return None;
        }
        let message = "`-c` names a connector, and the agent is never told which one";
        Some(Diagnostic::new(message).help(self.advice_on_option("connector")))
    }

    /// What to do about something that the agent is not told.
    fn advice(&self, key: &str) -> String {
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
            (Kind::Embedded, "attachments", _) => "an embedded agent reads words only".to_string(),
            (Kind::Command, "attachments", _) => {
                "files do not fit into arguments; a program that `speaks: json_lines` is told them"
                    .to_string()
            }
            (Kind::OpenAi, "team", _) => {
                "write `{{team}}` into the `body` of the agent, where its server looks for it".to_string()
            }
            (Kind::Http | Kind::Command, _, [first, rest @ ..]) => {
                let rest: String = rest.iter().map(|name| format!(" or `{{{{{name}}}}}`")).collect();
                let place =
                    if self.kind == Kind::Http { "template of the agent" } else { "command of the agent" };
                format!("write `{{{{{first}}}}}`{rest} into the {place}, where it is to be told")
            }
            (Kind::OpenAi, "threadId", _) => {
                "write `{{conversation_id}}` into the `body` of the agent, where its server looks for it"
                    .to_string()
            }
            _ => "leave it out, or reach the agent by a protocol that has a place for it".to_string(),
        }
    }

    fn advice_on_option(&self, name: &str) -> String {
        match self.kind {
            Kind::Embedded => "an embedded agent is told `connector` and `metadata`".to_string(),
            Kind::Http | Kind::Command => {
                let place = if self.kind == Kind::Http { "template" } else { "command" };
                format!("write `{{{{options}}}}` or `{{{{options.{name}}}}}` into the {place} of the agent")
            }
            Kind::AgUi | Kind::OpenAi | Kind::Replay | Kind::InCode => "leave it out".to_string(),
        }
    }

    /// What is wrong with a connector that turns of such an agent name.
    pub(in crate::config) fn connector(
        &self,
        name: &str,
        place: Option<Place>,
        connectors: &Connectors,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Connector>, Diagnostics> {
        let looked_up = |name: &str| environment.get(name).cloned();
        match self.kind {
            Kind::Embedded => connectors.get(name, place, &looked_up).map(Some),
            // Any other name is that of a model of the server.
            Kind::OpenAi if !connectors.has(name) => Ok(None),
            Kind::OpenAi => match connectors.get(name, place.clone(), &looked_up)? {
                Connector::Provider(connector) if connector.provider == Provider::OpenAi => {
                    Ok(Some(Connector::Provider(connector)))
                }
                Connector::Provider(_) | Connector::Scripted(_) | Connector::Recorded { .. } => {
                    let message = format!(
                        "the connector `{name}` is not of `type: openai`, so an agent behind chat completions cannot be reached by it"
                    );
                    Err(Diagnostic { place, ..Diagnostic::new(message) }.into())
                }
            },
            Kind::AgUi | Kind::Http | Kind::Command | Kind::Replay | Kind::InCode => Ok(None),
        }
    }
}

/// What the texts below these keys of a node refer to.
fn told(node: &Node, keys: &[&str]) -> Vec<Reference> {
    keys.iter().filter_map(|key| node.get(key)).flat_map(node_references).collect()
}

/// What all texts below a node refer to.
pub(super) fn node_references(node: &Node) -> Vec<Reference> {
    match &node.value {
        Value::String(text) => references(text).unwrap_or_default(),
        Value::List(nodes) => nodes.iter().flat_map(node_references).collect(),
        Value::Map(entries) => entries.iter().flat_map(|entry| node_references(&entry.value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
