//! On whose behalf agents are spoken to, and with which model: what the command line and its context file say, over
//! what cases say.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map as Members, Value, json};

use super::target::is_secret;
use crate::cases::{Case, CaseTarget, Environment, Options, Variables, interpolate};
use crate::session::{Identity, Redactor, merged};
use hotseat_document::{Diagnostic, Diagnostics, Field, Kind, Map, Shape, Source, check, json as json_file};

/// A context file: who speaks, and what else is known of a call.
pub static CONTEXT_FILE: Shape = Shape {
    name: "ContextFile",
    doc: "A context file for `--ctx`: who speaks to the agent, and what else is known of the call. `${ENV.NAME}` stands for an environment variable.",
    fields: &[
        Field::optional(
            "chat_id",
            Kind::NonEmptyText,
            "Id of every conversation, unless a case has a `threadId`.",
        ),
        Field::optional("authorized", Kind::Shape(&AUTHORIZED), "Who was let in, and what they may do."),
        Field::optional(
            "metadata",
            Kind::JsonMap,
            "The metadata of every call, below that of cases and their options.",
        ),
        Field::optional("client", Kind::Shape(&CLIENT), "With what they speak to the agent."),
        Field::optional("locale", Kind::NonEmptyText, "Their language and region.").default("en-us"),
        Field::optional("referer", Kind::Text, "Where the call comes from.").default("test"),
    ],
};

static AUTHORIZED: Shape = Shape {
    name: "Authorized",
    doc: "Who was let in, and what they may do.",
    fields: &[
        Field::optional("sub", Kind::Text, "The subject of the token."),
        Field::optional("client_id", Kind::Text, "The client that the token was given to."),
        Field::optional("scope", Kind::Text, "What the token is good for."),
        Field::optional("session_id", Kind::Text, "The session."),
        Field::optional("user_id", Kind::NonEmptyText, "The user.").default("test-user"),
        Field::optional("team_id", Kind::NonEmptyText, "The team of the user.").default("test-team"),
        Field::optional("tenant_id", Kind::Text, "The tenant."),
        Field::optional("remember_me", Kind::Bool, "Whether the session lasts."),
        Field::optional("constraints", Kind::Shape(&CONSTRAINTS), "What they may see."),
    ],
};

static CONSTRAINTS: Shape = Shape {
    name: "Constraints",
    doc: "What somebody may see.",
    fields: &[
        Field::optional("owner_only", Kind::Bool, "Only what they own."),
        Field::optional("creator_only", Kind::Bool, "Only what they made."),
        Field::optional("editor_only", Kind::Bool, "Only what they changed."),
        Field::optional("team_only", Kind::Bool, "Only what their team has."),
        Field::optional("extra", Kind::JsonMap, "Anything else."),
    ],
};

static CLIENT: Shape = Shape {
    name: "Client",
    doc: "With what somebody speaks to the agent.",
    fields: &[
        Field::optional("type", Kind::Text, "What kind of program.").default("test"),
        Field::optional("user_agent", Kind::Text, "Which program.").default("hotseat/VERSION"),
        Field::optional("ip", Kind::Text, "Its address.").default("127.0.0.1"),
    ],
};

/// A context file that was read.
#[derive(Debug, Clone)]
pub struct ContextFile {
    /// What it says.
    members: Value,
    /// What it says that must not appear anywhere, with its names.
    secrets: Vec<(String, String)>,
}

impl ContextFile {
    /// Reads a context file that is shown as `shown`.
    ///
    /// # Errors
    /// When it cannot be read, and everything that is wrong with it.
    pub fn read(path: &Path, shown: &str, environment: &Environment) -> Result<ContextFile, Diagnostics> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Diagnostic::new(format!("cannot read --ctx {shown}: {error}")))?;
        let source = Source::new(shown, text, 1);
        let mut node = json_file::parse(&source)?;
        let (kind, mut mistakes) = (Kind::Shape(&CONTEXT_FILE), Diagnostics::new());
        check(&node, &kind, &source, &mut mistakes);
        if mistakes.is_empty() {
            let (given, redactor) = (BTreeMap::new(), Redactor::default());
            let variables =
                Variables { environment, given: &given, more_to_come: false, redactor: &redactor };
            interpolate(&mut node, &kind, variables, &source, &mut mistakes);
        }
        match Map::of(&node, &source, &CONTEXT_FILE) {
            Some(map) if mistakes.is_empty() => {
                let members = map.to_json();
                let mut secrets = Vec::new();
                collect_secrets("ctx", &members, &mut secrets);
                Ok(ContextFile { members, secrets })
            }
            _ => Err(mistakes),
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.members.pointer(pointer)?.as_str()
    }
}

/// The texts of members that are named like secrets.
fn collect_secrets(path: &str, value: &Value, secrets: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{name}");
                match value {
                    Value::String(text) if is_secret(name, text) => secrets.push((path, text.clone())),
                    value => collect_secrets(&path, value, secrets),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(path, item, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the command line says of how agents are spoken to. It goes before what cases say; a context file comes behind
/// them.
#[derive(Debug, Clone, Default)]
pub struct Calling {
    /// The user.
    pub user: Option<String>,
    /// The team of the user.
    pub team: Option<String>,
    /// The language and region.
    pub locale: Option<String>,
    /// The connector of every turn.
    pub connector: Option<String>,
    /// The context file.
    pub context: Option<ContextFile>,
}

impl Calling {
    /// On whose behalf agents are spoken to where no case says anything of it.
    pub fn identity(&self) -> Identity {
        self.identity_of(None, None)
    }

    /// On whose behalf the agent of a case is spoken to, as far as the case says it without variables of its hooks.
    pub fn identity_before_hooks(&self, case: &Case) -> Identity {
        let written = |word: &'_ Option<String>| word.clone().filter(|word| !word.contains("${"));
        let CaseTarget { user, team, .. } = &case.target;
        self.identity_of(written(user).as_deref(), written(team).as_deref())
    }

    /// The id that conversations have whose case says none.
    pub fn chat_id(&self) -> Option<&str> {
        self.context.as_ref().and_then(|context| context.text("/chat_id"))
    }

    /// The same for a case that says something.
    fn identity_of(&self, user: Option<&str>, team: Option<&str>) -> Identity {
        let file = |pointer: &str| self.context.as_ref().and_then(|context| context.text(pointer));
        let user = self.user.as_deref().or(user).or_else(|| file("/authorized/user_id"));
        let team = self.team.as_deref().or(team).or_else(|| file("/authorized/team_id"));
        let locale = self.locale.as_deref().or_else(|| file("/locale"));
        Identity::of(user, team, locale, self.context.as_ref().map(|file| &file.members))
    }

    /// A case as its agent is to be told of it; `metadata` says whether the agent is told metadata of calls.
    pub fn addressed(&self, case: &Arc<Case>, metadata: bool) -> Arc<Case> {
        let says = &case.target;
        if self.is_silent() && says.user.is_none() && says.team.is_none() && says.metadata.is_none() {
            return case.clone();
        }
        let mut addressed = (**case).clone();
        let target = &mut addressed.target;
        target.identity = self.identity_of(target.user.as_deref(), target.team.as_deref());
        target.thread_id = target.thread_id.take().or(self.chat_id().map(str::to_string));
        let of_file = self.context.as_ref().and_then(|context| context.members.get("metadata"));
        let below = match (of_file, &target.metadata) {
            _ if !metadata => None,
            (Some(file), Some(case)) => Some(merged(file, case)),
            (file, case) => file.or(case.as_ref()).cloned(),
        };
        let below = below.filter(|below| below.as_object().is_some_and(|members| !members.is_empty()));
        let turns = addressed.turns.iter_mut().map(|turn| &mut turn.options);
        for options in turns.chain([&mut addressed.unwritten.options]) {
            let value = self.options(options.as_ref().map(|options| &options.value), below.as_ref());
            match (options, value) {
                (_, None) => {}
                (Some(options), Some(value)) => options.value = value,
                (none, Some(value)) => {
                    *none = Some(Options { value, place: case.place.clone(), connector: None });
                }
            }
        }
        Arc::new(addressed)
    }

    /// Options as they are told: over this metadata, and under the connector of the command line.
    fn options(&self, written: Option<&Value>, metadata: Option<&Value>) -> Option<Value> {
        let mut all = Members::new();
        if let Some(metadata) = metadata {
            all.insert("metadata".to_string(), metadata.clone());
        }
        let mut all = Value::Object(all);
        if let Some(written) = written {
            all = merged(&all, written);
        }
        if let Some(connector) = &self.connector {
            all = merged(&all, &json!({"connector": connector}));
        }
        let says_nothing = all.as_object().is_some_and(Members::is_empty);
        (!says_nothing || written.is_some()).then_some(all)
    }

    /// Whether the command line says nothing of it.
    fn is_silent(&self) -> bool {
        let Calling { user, team, locale, connector, context } = self;
        [user, team, locale, connector].into_iter().all(Option::is_none) && context.is_none()
    }

    /// What of the command line an agent could be told, by the keys of cases.
    pub(super) fn gives(&self) -> Vec<(&'static str, &'static str)> {
        let file = |pointer: &str| {
            self.context.as_ref().is_some_and(|context| context.members.pointer(pointer).is_some())
        };
        let all = [
            ("user", "-u", self.user.is_some()),
            ("team", "-t", self.team.is_some()),
            ("locale", "--locale", self.locale.is_some()),
            ("user", "`authorized.user_id` of --ctx", file("/authorized/user_id") && self.user.is_none()),
            ("team", "`authorized.team_id` of --ctx", file("/authorized/team_id") && self.team.is_none()),
            ("locale", "`locale` of --ctx", file("/locale") && self.locale.is_none()),
            ("threadId", "`chat_id` of --ctx", file("/chat_id")),
            ("metadata", "`metadata` of --ctx", file("/metadata")),
        ];
        all.into_iter().filter(|(.., is_given)| *is_given).map(|(key, shown, _)| (key, shown)).collect()
    }

    /// What a person may want to know: flags that say something else than the context file.
    pub fn notes(&self) -> Vec<String> {
        let Some(file) = &self.context else { return Vec::new() };
        let pairs = [
            ("-u", &self.user, "authorized.user_id"),
            ("-t", &self.team, "authorized.team_id"),
            ("--locale", &self.locale, "locale"),
        ];
        let disagree = pairs.into_iter().filter_map(|(flag, said, member)| {
            let (said, written) = (said.as_deref()?, file.text(&format!("/{}", member.replace('.', "/")))?);
            (said != written)
                .then(|| format!("{flag} {said} goes before `{member}` of --ctx, which says {written}"))
        });
        disagree.collect()
    }

    /// What must not appear anywhere, with its names.
    pub fn secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.context.iter().flat_map(|context| context.secrets.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::CONTEXT_FILE.problems(), Vec::<String>::new());
    }
}
