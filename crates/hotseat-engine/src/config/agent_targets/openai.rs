//! Agents behind an OpenAI-compatible chat completions API.

use std::collections::BTreeMap;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use super::common::{
    ASSERTED, AWAITED, DESCRIPTION, FOLDER, HEADERS, IDLE_TIMEOUT, STARTED, TIMEOUT, TOOLS, TURN_ASSERTED,
    case_inputs, check_placeholders, key_references, read_headers, read_url, url_password,
};
use super::{AgentTarget, SupportedOptions, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, SourceSpan, document_shape};
use hotseat_model::Provider;
use hotseat_runtime::files::{ConnectorSet, Environment, ModelConnector};
use hotseat_targets::connection::http::without_credentials;
use hotseat_targets::message::{MediaAttachment, MediaSource};
use hotseat_targets::openai::{ChatBackend, ChatSession, ChatTarget, RESERVED_BODY_KEYS, is_supported};
use hotseat_targets::target::template::{CaseInputs, Placeholder};
use hotseat_targets::{AgentSession, HistoryMode};

/// Path appended to the base URL.
const COMPLETIONS_ROUTE: &str = "chat/completions";
/// Default base URL of a connector.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

document_shape! {
    /// An agent behind an OpenAI-compatible chat completions API.
    pub(super) static SHAPE "OpenAiTarget" {
        /// Type of the target.
        required "type" = Kind::Choice(&["openai"]),
        /// URL of the server; `/chat/completions` is appended if missing.
        required "base_url" = Kind::Url, other_names &["endpoint", "url", "baseURL", "api_base"],
        /// Name of the model on the server.
        required "model" = Kind::NonEmptyText,
        /// Sent as `Authorization: Bearer …` and redacted in output. An empty key is not sent.
        optional "api_key" = Kind::Text,
        ..HEADERS,
        /// A system message at the start of the conversation.
        optional "system" = Kind::Text,
        /// Whether replies are streamed.
        optional "stream" = Kind::Bool, shown "true",
        /// The temperature. Default: the server's.
        optional "temperature" = Kind::Number,
        /// Further members of every request. They replace members of the same name; `null` removes one.
        /// `{{conversation_id}}`, `{{turn}}`, `{{user}}`, `{{team}}`, `{{locale}}`, `{{ctx}}` and
        /// `{{options}}` are filled in, and their members.
        optional "body" = Kind::JsonMap,
        /// `full`: every request carries the whole conversation, as the protocol expects. `delta`: only new
        /// messages, for a server that stores conversations. `auto` is `full`.
        optional "history" = Kind::Choice(&["full", "delta", "auto"]), shown "auto",
        ..TOOLS,
        ..TIMEOUT,
        ..IDLE_TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..STARTED,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }
}

impl AgentTarget for ChatTarget {
    fn capabilities(node: &DocumentNode) -> TargetCapabilities {
        let mut capabilities = TargetCapabilities::from_template(&key_references(node, &["body"]));
        capabilities.keys.extend(["messages", "attachments", "forwardedProps", "tools", "user"]);
        TargetCapabilities {
            options: SupportedOptions::All,
            uses_connectors: true,
            media_error,
            option_error,
            key_help,
            resolve: resolve_connector,
            ..capabilities
        }
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
        let mut headers = read_headers(map, mistakes);
        if let Some(key) = map.text("api_key").filter(|key| !key.is_empty()) {
            let place = map.place_of("api_key");
            match (HeaderValue::try_from(format!("Bearer {key}")), place) {
                // An explicit header is more specific.
                (Ok(_), _) if headers.contains_key(AUTHORIZATION) => {
                    let mistake =
                        Diagnostic::new("`api_key` and the header `Authorization` cannot be combined");
                    mistakes.push(mistake.at(map.place_near("api_key")));
                }
                (Ok(mut value), _) => {
                    value.set_sensitive(true);
                    headers.insert(AUTHORIZATION, value);
                }
                (Err(_), place) => {
                    let mistake = Diagnostic::new("`api_key` contains a line break or control character");
                    mistakes.push(mistake.at(place.unwrap_or_else(|| map.place())));
                }
            }
        }
        if let Some(body) = map.get("body") {
            // Messages have their own place in this protocol, and the other values have none.
            let refused = [
                Placeholder::Message,
                Placeholder::Messages,
                Placeholder::History,
                Placeholder::Attachments,
                Placeholder::State,
                Placeholder::Context,
                Placeholder::ForwardedProps,
            ];
            check_placeholders(body, &refused, mistakes);
            let members = body.entries().into_iter().flatten();
            for (_, place, _) in members.filter(|(key, ..)| *key == "messages") {
                let wrong =
                    Diagnostic::new("`messages` of `body` would replace the messages of the conversation");
                mistakes.push(
                    wrong.at(place).help("remove it; `system` begins the conversation with a system message"),
                );
            }
        }
        let base = read_url(map, "base_url", mistakes)?;
        if base.fragment().is_some() {
            let wrong = Diagnostic::new("`base_url` has a fragment (`#…`), which is not sent");
            mistakes.push(wrong.at(map.place_of("base_url")).help("remove it"));
            return None;
        }
        let endpoint = append_route(base);
        input.secrets.extend(url_password(&endpoint));
        Some(ChatTarget {
            endpoint,
            headers,
            model: map.text("model").unwrap_or_default().to_string(),
            system: map.text("system").map(str::to_string),
            stream: map.bool("stream").unwrap_or(true),
            temperature: map.number("temperature").cloned(),
            body: map.members("body"),
            history: map.text("history").and_then(HistoryMode::from_name).unwrap_or(HistoryMode::Full),
            connectors: BTreeMap::new(),
            given: CaseInputs::default(),
            keep_raw: false,
        })
    }

    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        let target = ChatTarget { keep_raw: env.keep_raw, ..self.clone() };
        Box::new(ChatSession::open(env.http.clone(), target))
    }

    fn summary(&self) -> TargetSummary {
        let connector = Some(self.model.clone());
        TargetSummary { connector, ..TargetSummary::at(without_credentials(&self.endpoint)) }
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        self.given = case_inputs(case);
        if let Some(Value::Object(members)) = &case.forwarded_props {
            self.body.extend(members.clone());
        }
    }

    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        self.given.conversation_id.as_mut()
    }

    /// Sets connectors, which were validated for this protocol.
    fn set_connectors(&mut self, connectors: BTreeMap<String, ModelConnector>) {
        let backends = connectors.into_iter().filter_map(|(name, connector)| match connector {
            ModelConnector::Provider(connector) => Some((name, backend(&connector)?)),
            ModelConnector::Scripted(_) => None,
        });
        self.connectors = backends.collect();
    }
}

/// Reports media that the protocol cannot carry.
fn media_error(media: &MediaAttachment) -> Option<Diagnostic> {
    if is_supported(media) {
        return None;
    }
    let what = match &media.source {
        MediaSource::Url(_) => " by URL",
        MediaSource::Data(_) | MediaSource::File(_) => "",
    };
    let message = format!("{}{what} cannot be sent to a chat completions API", media.kind.name());
    Some(
        Diagnostic::new(message)
            .help("supported are images, and audio and documents that are files or `data:`"),
    )
}

/// Reports options that would replace a member of the request.
fn option_error(name: &str, _: &Value) -> Option<Result<(), Diagnostic>> {
    if !RESERVED_BODY_KEYS.contains(&name) {
        return None;
    }
    Some(Err(Diagnostic::new(format!("`options.{name}` would overwrite a member that Hotseat sets"))))
}

fn key_help(key: &str) -> Option<String> {
    let placeholder = match key {
        "team" => "{{team}}",
        "threadId" => "{{conversation_id}}",
        _ => return None,
    };
    Some(format!("add `{placeholder}` to the `body` of the agent, where its server expects it"))
}

/// Resolves a connector that turns name. Any unknown name is a model of the server.
fn resolve_connector(
    name: &str,
    place: Option<SourceSpan>,
    connectors: &ConnectorSet,
    environment: Environment<'_>,
) -> Result<Option<ModelConnector>, Diagnostics> {
    if !connectors.contains(name) {
        return Ok(None);
    }
    match connectors.get(name, place.clone(), environment)? {
        ModelConnector::Provider(connector) if connector.provider == Provider::OpenAi => {
            Ok(Some(ModelConnector::Provider(connector)))
        }
        ModelConnector::Provider(_) | ModelConnector::Scripted(_) => {
            let message = format!(
                "the connector `{name}` must have `type: openai` for an agent behind a chat completions API"
            );
            Err(Diagnostic { place, ..Diagnostic::new(message) }.into())
        }
    }
}

fn append_route(mut address: Url) -> Url {
    let path = address.path().trim_end_matches('/').to_string();
    let path = if path.ends_with(COMPLETIONS_ROUTE) { path } else { format!("{path}/{COMPLETIONS_ROUTE}") };
    address.set_path(&path);
    address
}

/// Returns `None` for a connector with an invalid URL or headers, which is rejected when it is resolved.
fn backend(connector: &hotseat_model::ConnectorConfig) -> Option<ChatBackend> {
    let address = connector.base_url.as_deref().unwrap_or(DEFAULT_BASE_URL);
    let mut headers = HeaderMap::new();
    let key = connector.key.as_ref().map(|key| (AUTHORIZATION, format!("Bearer {}", key.reveal())));
    let further = connector
        .headers
        .iter()
        .map(|(name, value)| Some((HeaderName::try_from(name.as_str()).ok()?, value.reveal().to_string())));
    for header in key.map(Some).into_iter().chain(further) {
        let (name, value) = header?;
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let mut body = connector.extra.clone();
    if let Some(most) = connector.max_tokens {
        // `max_completion_tokens` is supported by OpenAI only.
        let limit = if address == DEFAULT_BASE_URL { "max_completion_tokens" } else { "max_tokens" };
        body.entry(limit).or_insert(most.into());
    }
    Some(ChatBackend {
        endpoint: append_route(Url::parse(address).ok()?),
        headers,
        model: connector.model.clone(),
        temperature: connector.temperature.and_then(serde_json::Number::from_f64),
        body,
    })
}
