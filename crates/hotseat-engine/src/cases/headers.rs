//! Headers of requests in files.

use hotseat_document::{Diagnostics, MapView, NodeView};
use hotseat_http::read_header_name;
use http::header::HeaderName;

/// Decodes the headers under `headers` into names, values and positions.
pub fn read_header_texts<'a>(
    map: &MapView<'a>,
    mistakes: &mut Diagnostics,
) -> Vec<(HeaderName, &'a str, NodeView<'a>)> {
    let mut headers: Vec<(HeaderName, &str, NodeView<'_>)> = Vec::new();
    for (key, place, view) in map.entries("headers") {
        match read_header_name(key) {
            Ok(name) if headers.iter().any(|(known, ..)| *known == name) => {
                mistakes.report(place, format!("header `{key}` is set twice"));
            }
            Ok(name) => headers.push((name, view.text().unwrap_or_default(), view)),
            Err(error) => mistakes.report(place, error.to_string()),
        }
    }
    headers
}
