//! What targets of several kinds have in common.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::adapters::template::{Given, Meaningless, Placeholder, references};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, Map, Place, Value, View, is_secret_header, nearest};

/// The address under a key.
pub(super) fn address(map: &Map<'_>, key: &str, mistakes: &mut Diagnostics) -> Option<Url> {
    let (text, place) = (map.text(key)?, map.place_of(key)?);
    parse_address(text, key, place, mistakes)
}

/// An address of HTTP.
pub(super) fn parse_address(text: &str, key: &str, place: Place, mistakes: &mut Diagnostics) -> Option<Url> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
        Ok(_) => {
            mistakes.push(Diagnostic::new(format!("`target.{key}` is not an address of HTTP")).at(place));
            None
        }
        Err(error) => {
            mistakes.push(Diagnostic::new(format!("`target.{key}` is not an address: {error}")).at(place));
            None
        }
    }
}

/// The names of headers with their values and where these are written.
pub(super) fn header_texts<'a>(
    map: &Map<'a>,
    mistakes: &mut Diagnostics,
) -> Vec<(HeaderName, &'a str, View<'a>)> {
    let mut headers: Vec<(HeaderName, &str, View<'_>)> = Vec::new();
    for (key, place, view) in map.get("headers").and_then(View::entries).into_iter().flatten() {
        match HeaderName::try_from(key) {
            Ok(name) if headers.iter().any(|(known, ..)| *known == name) => {
                mistakes.push(Diagnostic::new(format!("header `{key}` is given twice")).at(place));
            }
            Ok(name) => headers.push((name, view.text().unwrap_or_default(), view)),
            Err(_) => mistakes.push(Diagnostic::new(format!("`{key}` is not a header name")).at(place)),
        }
    }
    headers
}

/// Headers as they are sent.
pub(in crate::config) fn headers(map: &Map<'_>, mistakes: &mut Diagnostics) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, text, view) in header_texts(map, mistakes) {
        match HeaderValue::try_from(text) {
            Ok(mut value) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            // The value is not shown: it may be a secret.
            Err(_) => mistakes.push(unfit_header(&name, view.place())),
        }
    }
    headers
}

pub(super) fn unfit_header(name: &HeaderName, place: Place) -> Diagnostic {
    Diagnostic::new(format!("header `{name}` has a line end or control character")).at(place)
}

/// Values of headers and keys that are made for secrets.
pub(super) fn header_secrets(map: &Map<'_>) -> Vec<(String, String)> {
    let has = |key: &str| map.shape().field(key).is_some();
    let headers = has("headers").then(|| map.get("headers")).flatten();
    let entries = headers.and_then(View::entries).into_iter().flatten();
    let made_for_secrets = entries.filter(|(key, ..)| is_secret_header(key));
    let values = made_for_secrets.filter_map(|(key, _, view)| {
        let value = view.text()?;
        // `Bearer TOKEN`: the token alone is the secret.
        let token = value.split_once(' ').map_or(value, |(_, token)| token.trim());
        Some((key.to_string(), token.to_string()))
    });
    let key = has("api_key").then(|| map.text("api_key")).flatten();
    values.chain(key.map(|key| ("api_key".to_string(), key.to_string()))).collect()
}

/// What a case gives to agents that are told of it by placeholders or members.
pub(super) fn given(case: &CaseTarget) -> Given {
    Given {
        conversation_id: case.thread_id.clone(),
        state: case.state.clone(),
        context: case.context.clone(),
        forwarded_props: case.forwarded_props.clone(),
        identity: case.identity.clone(),
    }
}

/// Complains of names in double braces that are no placeholders, or none that can stand here, in all texts below a
/// node.
pub(super) fn check_placeholders(view: View<'_>, refused: &[Placeholder], mistakes: &mut Diagnostics) {
    match &view.node.value {
        Value::String(text) => {
            if let Err(mistake) = references_but(text, refused) {
                mistakes.push(mistake.at(view.place()));
            }
        }
        Value::List(_) => {
            view.list().into_iter().flatten().for_each(|item| check_placeholders(item, refused, mistakes));
        }
        Value::Map(_) => {
            let entries = view.entries().into_iter().flatten();
            entries.for_each(|(_, _, value)| check_placeholders(value, refused, mistakes));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn references_but(text: &str, refused: &[Placeholder]) -> Result<(), Diagnostic> {
    let all = || Placeholder::ALL.into_iter().filter(|(_, known)| !refused.contains(known));
    let known = || all().map(|(name, _)| format!("`{{{{{name}}}}}`")).collect::<Vec<_>>().join(", ");
    match references(text) {
        Ok(found) => match found.iter().find(|reference| refused.contains(&reference.to)) {
            None => Ok(()),
            Some(reference) => {
                let name = Placeholder::ALL.into_iter().find(|(_, to)| *to == reference.to);
                let name = name.map_or("", |(name, _)| name);
                let message = format!("`{{{{{name}}}}}` stands for nothing here");
                Err(Diagnostic::new(message).help(format!("here can stand {}", known())))
            }
        },
        Err(Meaningless::Name(name)) => {
            let help = match nearest(name, all().map(|(name, _)| name)) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => format!("there are {}", known()),
            };
            Err(Diagnostic::new(format!("`{{{{{name}}}}}` is no placeholder")).help(help))
        }
        Err(Meaningless::Member(name)) => {
            let message = format!("`{{{{{name}}}}}` stands for a word or a number, which has no members");
            let help = "members can be named of objects and lists, for instance `{{options.connector}}`";
            Err(Diagnostic::new(message).help(help))
        }
    }
}
