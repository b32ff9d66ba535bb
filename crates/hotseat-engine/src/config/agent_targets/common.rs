//! Keys and decoding shared by several kinds of targets.

use hotseat_http::check_encryption;
use http::header::{HeaderMap, HeaderValue};
use url::Url;

use crate::cases::shape::{AWAITING, CLIENT_TOOL};
use crate::cases::{ASSERT_KIND, CaseTarget, MILLISECONDS, read_header_texts};
use crate::config::start::START;
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeValue, NodeView, SourceSpan, document_shape,
    nearest,
};
use hotseat_targets::recorder::header_secrets;
use hotseat_targets::target::template::{
    CaseInputs, Placeholder, PlaceholderError, PlaceholderRef, references,
};

document_shape! {
    /// Headers of every request.
    pub(in crate::config) const HEADERS: optional "headers" = Kind::Map(&Kind::Text),
}

static CLIENT_TOOL_KIND: Kind = Kind::Shape(&CLIENT_TOOL);

document_shape! {
    /// Client-side tools that are offered to the agent.
    pub(super) const TOOLS: optional "tools" = Kind::List(&CLIENT_TOOL_KIND),
    /// Time limit of a turn.
    pub(super) const TIMEOUT: optional "timeout_ms" = MILLISECONDS, shown "120000",
    /// Maximum time without any received data.
    pub(super) const IDLE_TIMEOUT: optional "idle_timeout_ms" = MILLISECONDS, shown "60000",
    /// For an entry of `agents`: suites below this folder test it, regardless of `target`. Relative to the
    /// project file.
    pub(super) const FOLDER: optional "folder" = Kind::NonEmptyText,
    /// Purpose of the agent, passed to the generator of cases.
    pub(super) const DESCRIPTION: optional "description" = Kind::Text,
    /// Starts the agent before the first case and stops it after the last.
    pub(super) const STARTED: optional "start" = Kind::Shape(&START),
    /// Assertions about every conversation as a whole.
    pub(super) const ASSERTED: optional "assert" = ASSERT_KIND,
    /// Markers that show that the agent waits for input, if it does not report this itself.
    pub(super) const AWAITED: optional "awaiting" = Kind::Shape(&AWAITING),
    /// Assertions about every turn.
    pub(super) const TURN_ASSERTED: optional "turn_assert" = ASSERT_KIND,
}

/// Decodes the URL under a key.
pub(super) fn read_url(map: &MapView<'_>, key: &str, mistakes: &mut Diagnostics) -> Option<Url> {
    let (text, place) = (map.text(key)?, map.place_of(key)?);
    parse_http_url(text, key, place, mistakes)
}

pub(super) fn parse_http_url(
    text: &str,
    key: &str,
    place: SourceSpan,
    mistakes: &mut Diagnostics,
) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            match check_encryption(&url) {
                Ok(()) => Some(url),
                Err(error) => {
                    mistakes.report(place, error.to_string());
                    None
                }
            }
        }
        Ok(_) => {
            mistakes.report(place, format!("`{key}` is not an HTTP URL"));
            None
        }
        Err(error) => {
            mistakes.report(place, format!("`{key}` is not a URL: {error}"));
            None
        }
    }
}

/// Decodes headers for requests.
pub(in crate::config) fn read_headers(map: &MapView<'_>, mistakes: &mut Diagnostics) -> HeaderMap {
    let headers = read_header_texts(map, mistakes).into_iter().filter_map(|(name, text)| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    headers.collect()
}

/// Secrets in headers and keys.
pub(super) fn target_secrets(map: &MapView<'_>) -> Vec<(String, String)> {
    let has = |key: &str| map.shape().field(key).is_some();
    let headers = has("headers").then(|| map.entries("headers"));
    let values = headers.into_iter().flatten().flat_map(|(key, _, view)| {
        let secrets = view.text().map(|value| header_secrets(key, value)).unwrap_or_default();
        secrets.into_iter().map(|secret| (key.to_string(), secret))
    });
    let key = has("api_key").then(|| map.text("api_key")).flatten();
    values.chain(key.map(|key| ("api_key".to_string(), key.to_string()))).collect()
}

/// Values of a case for placeholders.
pub(super) fn case_inputs(case: &CaseTarget) -> CaseInputs {
    CaseInputs {
        conversation_id: case.thread_id.clone(),
        state: case.state.clone(),
        context: case.context.clone(),
        forwarded_props: case.forwarded_props.clone(),
        identity: case.identity.clone(),
    }
}

/// Reports unknown and unsupported placeholders in all texts below a node.
pub(super) fn check_placeholders(view: NodeView<'_>, refused: &[Placeholder], mistakes: &mut Diagnostics) {
    match &view.node.value {
        NodeValue::String(text) => {
            if let Err(mistake) = check_text(text, refused) {
                mistakes.push(mistake.at(view.place()));
            }
        }
        NodeValue::List(_) => {
            view.list().into_iter().flatten().for_each(|item| check_placeholders(item, refused, mistakes));
        }
        NodeValue::Map(_) => {
            let entries = view.entries().into_iter().flatten();
            entries.for_each(|(_, _, value)| check_placeholders(value, refused, mistakes));
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
    }
}

fn check_text(text: &str, refused: &[Placeholder]) -> Result<(), Diagnostic> {
    let all = || Placeholder::ALL.iter().filter(|known| !refused.contains(known));
    let known = || all().map(|known| format!("`{{{{{known}}}}}`")).collect::<Vec<_>>().join(", ");
    match references(text) {
        Ok(found) => match found.iter().find(|reference| refused.contains(&reference.placeholder)) {
            None => Ok(()),
            Some(reference) => {
                let message = format!("`{{{{{}}}}}` is not supported here", reference.placeholder);
                Err(Diagnostic::new(message).help(format!("supported here: {}", known())))
            }
        },
        Err(PlaceholderError::Name(name)) => {
            let help = match nearest(name, all().map(|known| known.name())) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => format!("there are {}", known()),
            };
            Err(Diagnostic::new(format!("unknown placeholder `{{{{{name}}}}}`")).help(help))
        }
        Err(PlaceholderError::Member(name)) => {
            let message = format!("`{{{{{name}}}}}` is a text or a number, which has no members");
            let help = "only objects and lists have members, for example `{{options.connector}}`";
            Err(Diagnostic::new(message).help(help))
        }
    }
}

/// The password of a URL as a secret.
pub(super) fn url_password(url: &Url) -> Option<(String, String)> {
    url.password().map(|password| ("endpoint password".to_string(), password.to_string()))
}

/// Help for a case key that a template without its placeholder does not pass on.
pub(super) fn placeholder_help(key: &str, template: &str) -> Option<String> {
    let placeholders = match key {
        "threadId" => "`{{conversation_id}}`",
        "messages" => "`{{messages}}` or `{{history}}`",
        "attachments" => "`{{attachments}}` or `{{messages}}`",
        "user" => "`{{user}}`",
        "team" => "`{{team}}`",
        "state" => "`{{state}}`",
        "context" => "`{{context}}`",
        "forwardedProps" => "`{{forwardedProps}}`",
        _ => return None,
    };
    Some(format!("add {placeholders} to the {template} of the agent"))
}

/// Help for an option that a template without its placeholder does not pass on.
pub(super) fn option_help(name: &str, template: &str) -> Option<String> {
    Some(format!("add `{{{{options}}}}` or `{{{{options.{name}}}}}` to the {template} of the agent"))
}

/// Placeholders in the texts below these keys of a node.
pub(super) fn key_references(node: &DocumentNode, keys: &[&str]) -> Vec<PlaceholderRef> {
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
