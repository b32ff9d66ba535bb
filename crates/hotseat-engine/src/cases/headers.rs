//! Headers of requests in files.

use hotseat_document::{Diagnostics, MapView};
use hotseat_http::read_header_name;
use http::header::{HeaderName, HeaderValue};

/// Decodes the headers under `headers` into names and values. Reports those that no request can have.
pub fn read_header_texts<'a>(map: &MapView<'a>, mistakes: &mut Diagnostics) -> Vec<(HeaderName, &'a str)> {
    let mut headers: Vec<(HeaderName, &str)> = Vec::new();
    for (key, place, view) in map.entries("headers") {
        let text = view.text().unwrap_or_default();
        match read_header_name(key) {
            Ok(name) if headers.iter().any(|(known, _)| *known == name) => {
                mistakes.report(place, format!("header `{key}` is set twice"));
            }
            // The value is not shown, since it may be a secret.
            Ok(name) if HeaderValue::from_str(text).is_err() => {
                let message = format!("header `{name}` contains a line break or control character");
                mistakes.report(view.place(), message);
            }
            Ok(name) => headers.push((name, text)),
            Err(error) => mistakes.report(place, error.to_string()),
        }
    }
    headers
}
