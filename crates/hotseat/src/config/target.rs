//! The target: the agent under test, as the project file describes it.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::adapters::ag_ui::{Envelope, Strictness, Target};
use crate::cases::{CaseTarget, client_tools, millis, references};
use crate::session::{ClientTool, Timeouts};
use hotseat_document::{Diagnostic, Diagnostics, Map, View};

/// Header names whose values are secrets, whatever they are made of.
const SECRET_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
];

/// Settings of the target that are the same for every case.
#[derive(Debug, Clone, Copy)]
pub struct TargetSettings {
    /// How long an agent may take.
    pub timeouts: Timeouts,
    /// Whether other settings use variables that hooks give.
    pub varies: bool,
}

/// A target with its variables filled in.
#[derive(Debug, Clone)]
pub struct BoundTarget {
    /// What the adapter is told.
    pub ag_ui: Target,
    /// Client-side tools that are offered to the agent.
    pub tools: Vec<ClientTool>,
    /// Values that must not appear anywhere, with their names.
    pub secrets: Vec<(String, String)>,
}

impl TargetSettings {
    pub(super) fn read(map: &Map<'_>) -> Self {
        let limit = |key: &str, default: u64| map.integer(key).map_or(Duration::from_millis(default), millis);
        let timeouts = Timeouts {
            turn: limit("timeout_ms", 120_000),
            idle: limit("idle_timeout_ms", 60_000),
            case: None,
        };
        let text = &map.source().text;
        TargetSettings { timeouts, varies: !references(text).iter().all(|(_, environment)| *environment) }
    }
}

/// What is wrong with a target although every value has the right type. Values with variables are looked at when
/// they are filled in.
pub(super) fn find_mistakes(map: &Map<'_>, mistakes: &mut Diagnostics) {
    if let Some(place) = map.place_of("agentId")
        && map.text("envelope") != Some("copilotkit")
    {
        mistakes.push(Diagnostic::new("`agentId` goes with `envelope: copilotkit`").at(place));
    }
    if map.text("endpoint").is_some_and(|endpoint| !endpoint.contains("${")) {
        BoundTarget::read(map, mistakes);
    }
}

impl BoundTarget {
    /// Reads a target whose variables are filled in.
    pub(super) fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Self> {
        let endpoint = endpoint(map, mistakes);
        let headers = headers(map, mistakes);
        let tools = client_tools(map, "tools", mistakes);
        let endpoint = endpoint?;
        let mut secrets = header_secrets(map);
        if let Some(password) = endpoint.password() {
            secrets.push(("endpoint password".to_string(), password.to_string()));
        }
        let ag_ui = Target {
            endpoint,
            headers,
            envelope: match map.text("envelope") {
                Some("copilotkit") => {
                    Envelope::CopilotKit { agent_id: map.text("agentId").map(str::to_string) }
                }
                _ => Envelope::None,
            },
            thread_id: map.text("threadId").map(str::to_string),
            state: map.json("state").unwrap_or_else(|| json!({})),
            context: map.json("context").unwrap_or_else(|| json!([])),
            forwarded_props: map.json("forwardedProps").unwrap_or_else(|| json!({})),
            strictness: match map.text("protocol") {
                Some("strict") => Strictness::Strict,
                _ => Strictness::Lenient,
            },
            keep_raw: false,
        };
        Some(BoundTarget { ag_ui, tools, secrets })
    }

    /// The target as a case wants it.
    #[must_use]
    pub fn for_case(mut self, case: &CaseTarget) -> Self {
        let target = &mut self.ag_ui;
        if let Some(thread_id) = &case.thread_id {
            target.thread_id = Some(thread_id.clone());
        }
        let values = [
            (&mut target.state, &case.state),
            (&mut target.context, &case.context),
            (&mut target.forwarded_props, &case.forwarded_props),
        ];
        for (value, replacement) in values {
            if let Some(replacement) = replacement {
                value.clone_from(replacement);
            }
        }
        self.tools.retain(|tool| !case.tools.iter().any(|own| own.name == tool.name));
        self.tools.extend(case.tools.iter().cloned());
        self
    }
}

fn endpoint(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Url> {
    let (text, place) = (map.text("endpoint")?, map.place_of("endpoint")?);
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
        Ok(_) => {
            mistakes.push(Diagnostic::new("`target.endpoint` is not an address of HTTP").at(place));
            None
        }
        Err(error) => {
            mistakes.push(Diagnostic::new(format!("`target.endpoint` is not an address: {error}")).at(place));
            None
        }
    }
}

fn headers(map: &Map<'_>, mistakes: &mut Diagnostics) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (key, place, view) in map.get("headers").and_then(View::entries).into_iter().flatten() {
        let name = HeaderName::try_from(key);
        let value = HeaderValue::try_from(view.text().unwrap_or_default());
        match (name, value) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                if headers.insert(name, value).is_some() {
                    mistakes.push(Diagnostic::new(format!("header `{key}` is given twice")).at(place));
                }
            }
            (Err(_), _) => mistakes.push(Diagnostic::new(format!("`{key}` is not a header name")).at(place)),
            // The value is not shown: it may be a secret.
            (_, Err(_)) => {
                mistakes.push(
                    Diagnostic::new(format!("header `{key}` has a line end or control character")).at(place),
                );
            }
        }
    }
    headers
}

/// Values of headers that are made for secrets.
fn header_secrets(map: &Map<'_>) -> Vec<(String, String)> {
    let entries = map.get("headers").and_then(View::entries).into_iter().flatten();
    let made_for_secrets =
        entries.filter(|(key, ..)| SECRET_HEADERS.contains(&key.to_ascii_lowercase().as_str()));
    let values = made_for_secrets.filter_map(|(key, _, view)| {
        let value = view.text()?;
        // `Bearer TOKEN`: the token alone is the secret.
        let token = value.split_once(' ').map_or(value, |(_, token)| token.trim());
        Some((key.to_string(), token.to_string()))
    });
    values.collect()
}

/// Whether a variable is a secret by its name. Short values are not: `true` is none.
pub fn is_secret(name: &str, value: &str) -> bool {
    const SHORTEST: usize = 8;
    let name = name.to_ascii_uppercase();
    let words = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "APIKEY",
        "API_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "ACCESS_KEY",
    ];
    value.len() >= SHORTEST && words.iter().any(|word| name.contains(word))
}

/// The JSON value of a variable as text, where it has one.
pub fn secret_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
