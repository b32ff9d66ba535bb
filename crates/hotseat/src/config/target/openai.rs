//! An agent behind chat completions.

use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde_json::Value;

use super::parts::{address, check_placeholders, headers};
use crate::adapters::openai::{History, Target};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, Map};

/// What is added to the path of a server's address.
const ROUTE: &str = "chat/completions";

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
        check_placeholders(body, mistakes);
    }
    let mut endpoint = address(map, "base_url", mistakes)?;
    let path = endpoint.path().trim_end_matches('/').to_string();
    let path = if path.ends_with(ROUTE) { path } else { format!("{path}/{ROUTE}") };
    endpoint.set_path(&path);
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
        conversation_id: None,
        keep_raw: false,
    })
}

pub(super) fn for_case(target: &mut Target, case: &CaseTarget) {
    target.conversation_id.clone_from(&case.thread_id);
    if let Some(Value::Object(members)) = &case.forwarded_props {
        target.body.extend(members.clone());
    }
}
