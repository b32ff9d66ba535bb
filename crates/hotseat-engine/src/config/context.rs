//! Call settings: user identity, conversation id, metadata and connector, from the command line, its context
//! file and the cases.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map as Members, Value, json};

use crate::cases::{CallOptions, CaseTarget, Environment, TestCase, VariableScope, interpolate};
use hotseat_document::{
    Diagnostic, Diagnostics, Kind, MapView, check, document_shape, json as json_file, source_from_bytes,
};
use hotseat_targets::message::{RequestIdentity, merge_json};
use hotseat_targets::recorder::{SecretRedactor, collect_secrets};

document_shape! {
    /// A context file for `--ctx`: user identity and further data of the call. `${ENV.NAME}` is replaced by
    /// an environment variable.
    pub static CONTEXT_FILE "ContextFile" {
        /// Conversation id, unless a case has a `threadId`.
        optional "chat_id" = Kind::NonEmptyText,
        /// The authenticated user and their permissions.
        optional "authorized" = Kind::Shape(&AUTHORIZED),
        /// Metadata of every call. Metadata of cases and options takes precedence.
        optional "metadata" = Kind::JsonMap,
        /// The client program.
        optional "client" = Kind::Shape(&CLIENT),
        /// Language and region.
        optional "locale" = Kind::NonEmptyText, shown "en-us",
        /// Origin of the call.
        optional "referer" = Kind::Text, shown "test",
    }

    /// The authenticated user and their permissions.
    static AUTHORIZED "Authorized" {
        /// The subject of the token.
        optional "sub" = Kind::Text,
        /// Client that the token was issued to.
        optional "client_id" = Kind::Text,
        /// Scope of the token.
        optional "scope" = Kind::Text,
        /// Id of the session.
        optional "session_id" = Kind::Text,
        /// Id of the user.
        optional "user_id" = Kind::NonEmptyText, shown "test-user",
        /// Id of the user's team.
        optional "team_id" = Kind::NonEmptyText, shown "test-team",
        /// Id of the tenant.
        optional "tenant_id" = Kind::Text,
        /// Whether the session is persistent.
        optional "remember_me" = Kind::Bool,
        /// Restrictions on visible data.
        optional "constraints" = Kind::Shape(&CONSTRAINTS),
    }

    /// Restrictions on visible data.
    static CONSTRAINTS "Constraints" {
        /// Only items that the user owns.
        optional "owner_only" = Kind::Bool,
        /// Only items that the user created.
        optional "creator_only" = Kind::Bool,
        /// Only items that the user edited.
        optional "editor_only" = Kind::Bool,
        /// Only items of the user's team.
        optional "team_only" = Kind::Bool,
        /// Further restrictions.
        optional "extra" = Kind::JsonMap,
    }

    /// The client program.
    static CLIENT "Client" {
        /// Type of the program.
        optional "type" = Kind::Text, shown "test",
        /// Name and version of the program.
        optional "user_agent" = Kind::Text, shown "hotseat/VERSION",
        /// IP address of the client.
        optional "ip" = Kind::Text, shown "127.0.0.1",
    }
}

/// A decoded context file.
#[derive(Debug, Clone)]
pub struct ContextFile {
    /// Its content.
    members: Value,
    /// Secret values with their names.
    secrets: Vec<(String, String)>,
}

impl ContextFile {
    /// Returns the content.
    pub fn members(&self) -> &Value {
        &self.members
    }

    /// Reads a context file, displayed as `shown`. Fails if it cannot be read or is invalid.
    pub fn read(path: &Path, shown: &str, environment: &Environment) -> Result<ContextFile, Diagnostics> {
        let text = std::fs::read(path)
            .map_err(|error| Diagnostic::new(format!("cannot read --ctx {shown}: {error}")))?;
        let source = source_from_bytes(shown, text).map_err(|mistake| *mistake)?;
        let mut node = json_file::parse(&source)?;
        let (kind, mut mistakes) = (Kind::Shape(&CONTEXT_FILE), Diagnostics::new());
        check(&node, &kind, &source, &mut mistakes);
        if mistakes.is_empty() {
            let redactor = SecretRedactor::default();
            let variables = VariableScope::new(environment, &redactor);
            interpolate(&mut node, &kind, variables, &source, &mut mistakes);
        }
        match MapView::from_node(&node, &source, &CONTEXT_FILE) {
            Some(map) if mistakes.is_empty() => {
                let members = map.to_json();
                let mut secrets = Vec::new();
                collect_secrets("ctx", &members, false, &mut secrets);
                Ok(ContextFile { members, secrets })
            }
            _ => Err(mistakes),
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.members.pointer(pointer)?.as_str()
    }
}

/// Call settings of the command line. They override those of cases; a context file has the lowest precedence.
#[derive(Debug, Clone, Default)]
pub struct CallSettings {
    /// The user.
    pub user: Option<String>,
    /// The user's team.
    pub team: Option<String>,
    /// Language and region.
    pub locale: Option<String>,
    /// Connector of every turn.
    pub connector: Option<String>,
    /// The context file.
    pub context: Option<ContextFile>,
}

impl CallSettings {
    /// Default user identity.
    pub fn identity(&self) -> RequestIdentity {
        self.resolve_identity(None, None)
    }

    /// User identity of an attempt at a case, without values that contain hook variables.
    pub fn identity_before_hooks(&self, case: &TestCase, attempt: usize) -> RequestIdentity {
        let written = |word: &'_ Option<String>| word.clone().filter(|word| !word.contains("${"));
        let CaseTarget { user, team, .. } = &case.target;
        self.resolve_identity(written(user).as_deref(), written(team).as_deref()).for_attempt(attempt)
    }

    /// Default conversation id.
    pub fn chat_id(&self) -> Option<&str> {
        self.context.as_ref().and_then(|context| context.text("/chat_id"))
    }

    /// Resolves the user identity with the values of a case.
    fn resolve_identity(&self, user: Option<&str>, team: Option<&str>) -> RequestIdentity {
        let file = |pointer: &str| self.context.as_ref().and_then(|context| context.text(pointer));
        let user = self.user.as_deref().or(user).or_else(|| file("/authorized/user_id"));
        let team = self.team.as_deref().or(team).or_else(|| file("/authorized/team_id"));
        let locale = self.locale.as_deref().or_else(|| file("/locale"));
        RequestIdentity::new(user, team, locale, self.context.as_ref().map(|file| &file.members))
    }

    /// Applies the call settings to an attempt at a case; `metadata` is true if the agent receives metadata of calls.
    pub fn apply_to_case(&self, case: &Arc<TestCase>, attempt: usize, metadata: bool) -> Arc<TestCase> {
        let says = &case.target;
        if self.is_empty() && says.user.is_none() && says.team.is_none() && says.metadata.is_none() {
            return case.clone();
        }
        let mut addressed = (**case).clone();
        let target = &mut addressed.target;
        let identity = self.resolve_identity(target.user.as_deref(), target.team.as_deref());
        target.identity = identity.for_attempt(attempt);
        target.thread_id = target.thread_id.take().or(self.chat_id().map(str::to_string));
        let of_file = self.context.as_ref().and_then(|context| context.members.get("metadata"));
        let below = match (of_file, &target.metadata) {
            _ if !metadata => None,
            (Some(file), Some(case)) => Some(merge_json(file, case)),
            (file, case) => file.or(case.as_ref()).cloned(),
        };
        let below = below.filter(|below| below.as_object().is_some_and(|members| !members.is_empty()));
        let turns = addressed.turns.iter_mut().map(|turn| &mut turn.options);
        for options in turns.chain([&mut addressed.turn_defaults.options]) {
            let value = self.merge_options(options.as_ref().map(|options| &options.value), below.as_ref());
            match (options, value) {
                (_, None) => {}
                (Some(options), Some(value)) => options.value = value,
                (none, Some(value)) => {
                    *none = Some(CallOptions { value, place: case.place.clone(), connector: None });
                }
            }
        }
        Arc::new(addressed)
    }

    /// Merges options onto metadata, and overrides the connector with that of the command line.
    fn merge_options(&self, written: Option<&Value>, metadata: Option<&Value>) -> Option<Value> {
        let mut all = Members::new();
        if let Some(metadata) = metadata {
            all.insert("metadata".to_string(), metadata.clone());
        }
        let mut all = Value::Object(all);
        if let Some(written) = written {
            all = merge_json(&all, written);
        }
        if let Some(connector) = &self.connector {
            all = merge_json(&all, &json!({"connector": connector}));
        }
        let says_nothing = all.as_object().is_some_and(Members::is_empty);
        (!says_nothing || written.is_some()).then_some(all)
    }

    /// True if the command line has no call settings.
    fn is_empty(&self) -> bool {
        let CallSettings { user, team, locale, connector, context } = self;
        [user, team, locale, connector].into_iter().all(Option::is_none) && context.is_none()
    }

    /// Case keys set by the command line, with their source.
    pub(super) fn given_keys(&self) -> Vec<(&'static str, &'static str)> {
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

    /// Notes about flags that differ from the context file.
    pub fn notes(&self) -> Vec<String> {
        let Some(file) = &self.context else { return Vec::new() };
        let pairs = [
            ("-u", &self.user, "authorized.user_id"),
            ("-t", &self.team, "authorized.team_id"),
            ("--locale", &self.locale, "locale"),
        ];
        let disagree = pairs.into_iter().filter_map(|(flag, said, member)| {
            let (said, written) = (said.as_deref()?, file.text(&format!("/{}", member.replace('.', "/")))?);
            (said != written).then(|| format!("{flag} {said} overrides `{member}` of --ctx ({written})"))
        });
        disagree.collect()
    }

    /// Secret values with their names.
    pub fn secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.context.iter().flat_map(|context| context.secrets.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::CONTEXT_FILE.problems(), Vec::<String>::new());
    }
}
