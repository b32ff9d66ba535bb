//! An agent behind chat completions.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::parts::{address, check_placeholders, given, headers};
use crate::adapters::History;
use crate::adapters::openai::{Backend, Target};
use crate::adapters::template::{Given, Placeholder};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, Map};
use hotseat_runtime::files::Connector;

/// What is added to the path of a server's address.
const ROUTE: &str = "chat/completions";
/// Where a connector leads that names no address.
const USUAL: &str = "https://api.openai.com/v1";

pub(super) fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Target> {
    let mut headers = headers(map, mistakes);
    if let Some(key) = map.text("api_key").filter(|key| !key.is_empty()) {
        let place = map.place_of("api_key");
        match (HeaderValue::try_from(format!("Bearer {key}")), place) {
            // A header that was written out says more exactly what is wanted.
            (Ok(_), _) if headers.contains_key(AUTHORIZATION) => {
                let mistake = Diagnostic::new("`api_key` and the header `Authorization` are two keys");
                mistakes.push(mistake.at(map.place_of("api_key").unwrap_or_else(|| map.place())));
            }
            (Ok(mut value), _) => {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            (Err(_), place) => {
                let mistake = Diagnostic::new("`api_key` has a line end or control character");
                mistakes.push(mistake.at(place.unwrap_or_else(|| map.place())));
            }
        }
    }
    if let Some(body) = map.get("body") {
        // The conversation has its own places in this protocol, and there are none for the others.
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
    let endpoint = with_route(address(map, "base_url", mistakes)?);
    Some(Target {
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
            Some("delta") => History::Delta,
            _ => History::Full,
        },
        connectors: BTreeMap::new(),
        given: Given::default(),
        keep_raw: false,
    })
}

pub(super) fn for_case(target: &mut Target, case: &CaseTarget) {
    target.given = given(case);
    if let Some(Value::Object(members)) = &case.forwarded_props {
        target.body.extend(members.clone());
    }
}

fn with_route(mut address: Url) -> Url {
    let path = address.path().trim_end_matches('/').to_string();
    let path = if path.ends_with(ROUTE) { path } else { format!("{path}/{ROUTE}") };
    address.set_path(&path);
    address
}

/// Connectors that were found to be of this protocol when they were looked up.
pub(super) fn with_connectors(target: &mut Target, connectors: BTreeMap<String, Connector>) {
    let backends = connectors.into_iter().filter_map(|(name, connector)| match connector {
        Connector::Provider(connector) => Some((name, backend(&connector)?)),
        Connector::Scripted(_) | Connector::Recorded { .. } => None,
    });
    target.connectors = backends.collect();
}

/// None for a connector whose address or headers mean nothing, which is refused when it is looked up.
fn backend(connector: &hotseat_model::Connector) -> Option<Backend> {
    let address = connector.base_url.as_deref().unwrap_or(USUAL);
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
        // The name that only the first server of this protocol knows is for that one alone.
        let limit = if address == USUAL { "max_completion_tokens" } else { "max_tokens" };
        body.entry(limit).or_insert(most.into());
    }
    Some(Backend {
        endpoint: with_route(Url::parse(address).ok()?),
        headers,
        model: connector.model.clone(),
        temperature: connector.temperature.and_then(serde_json::Number::from_f64),
        body,
    })
}
