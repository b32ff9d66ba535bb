//! Decodes targets with chat completions.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::common::{case_inputs, check_placeholders, read_headers, read_url};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, MapView};
use hotseat_runtime::files::ModelConnector;
use hotseat_targets::HistoryMode;
use hotseat_targets::openai::{ChatBackend, ChatTarget};
use hotseat_targets::target::template::{CaseInputs, Placeholder};

/// Path appended to the base URL.
const COMPLETIONS_ROUTE: &str = "chat/completions";
/// Default base URL of a connector.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

pub(super) fn read_target(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<ChatTarget> {
    let mut headers = read_headers(map, mistakes);
    if let Some(key) = map.text("api_key").filter(|key| !key.is_empty()) {
        let place = map.place_of("api_key");
        match (HeaderValue::try_from(format!("Bearer {key}")), place) {
            // An explicit header is more specific.
            (Ok(_), _) if headers.contains_key(AUTHORIZATION) => {
                let mistake = Diagnostic::new("`api_key` and the header `Authorization` cannot be combined");
                mistakes.push(mistake.at(map.place_of("api_key").unwrap_or_else(|| map.place())));
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
    }
    let endpoint = append_route(read_url(map, "base_url", mistakes)?);
    Some(ChatTarget {
        endpoint,
        headers,
        model: map.text("model").unwrap_or_default().to_string(),
        system: map.text("system").map(str::to_string),
        stream: map.bool("stream").unwrap_or(true),
        temperature: map.number("temperature").cloned(),
        body: match map.json("body") {
            Some(Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        },
        history: match map.text("history") {
            Some("delta") => HistoryMode::Delta,
            _ => HistoryMode::Full,
        },
        connectors: BTreeMap::new(),
        given: CaseInputs::default(),
        keep_raw: false,
    })
}

pub(super) fn apply_case(target: &mut ChatTarget, case: &CaseTarget) {
    target.given = case_inputs(case);
    if let Some(Value::Object(members)) = &case.forwarded_props {
        target.body.extend(members.clone());
    }
}

fn append_route(mut address: Url) -> Url {
    let path = address.path().trim_end_matches('/').to_string();
    let path = if path.ends_with(COMPLETIONS_ROUTE) { path } else { format!("{path}/{COMPLETIONS_ROUTE}") };
    address.set_path(&path);
    address
}

/// Sets connectors, which were validated for this protocol.
pub(super) fn with_connectors(target: &mut ChatTarget, connectors: BTreeMap<String, ModelConnector>) {
    let backends = connectors.into_iter().filter_map(|(name, connector)| match connector {
        ModelConnector::Provider(connector) => Some((name, backend(&connector)?)),
        ModelConnector::Scripted(_) | ModelConnector::Recorded { .. } => None,
    });
    target.connectors = backends.collect();
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
