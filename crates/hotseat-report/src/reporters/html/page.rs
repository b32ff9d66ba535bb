//! HTML of the page, and how data is embedded in it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hotseat_trace::ResultLabel;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");

/// Script of a page with embedded data.
static SCRIPT: LazyLock<String> = LazyLock::new(|| script_with(include_str!("source.js")));
/// Script of a page that queries a server.
static SERVED_SCRIPT: LazyLock<String> = LazyLock::new(|| script_with(include_str!("served.js")));

/// Joins the parts of the script with the given data source. The parts share one scope that is not visible
/// outside.
fn script_with(source: &str) -> String {
    let parts = [
        include_str!("dom.js"),
        source,
        include_str!("settings.js"),
        include_str!("markdown.js"),
        include_str!("diff.js"),
        include_str!("origin.js"),
        include_str!("turns.js"),
        include_str!("chat.js"),
        include_str!("timeline.js"),
        include_str!("outline.js"),
        include_str!("attempts.js"),
        include_str!("case.js"),
        include_str!("overview.js"),
        include_str!("trends.js"),
        include_str!("compare.js"),
        include_str!("runs.js"),
        include_str!("live.js"),
        include_str!("app.js"),
    ];
    let colors: BTreeMap<&str, &str> =
        ResultLabel::ALL.iter().map(|label| (label.name(), label.color().name())).collect();
    let colors = serde_json::json!(colors);
    format!("(() => {{\n'use strict';\nconst LABEL_COLORS = {colors};\n{}}})();\n", parts.join("\n"))
}

/// Serialises a value as JSON for a script element. Only `<` can end the element or start another one; in
/// JSON it occurs only in strings, where it is escaped.
pub fn to_script_json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let plain = serde_json::to_vec(value)?;
    let mut out = Vec::with_capacity(plain.len() + plain.len() / 16);
    let mut rest = plain.as_slice();
    while let Some(at) = memchr::memchr(b'<', rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"\\u003c");
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// Page that queries a server for its data.
pub struct ServedPage {
    /// HTML of the page.
    pub html: String,
    /// Content security policy, which the server also sends as a header.
    pub policy: String,
}

/// Returns the page that queries its server. It is the same for all runs.
pub fn served_page() -> ServedPage {
    let policy = content_policy("'self'", &SERVED_SCRIPT);
    let html = format!(
        "{}<script>{}</script>\n</body>\n</html>\n",
        page_head(&policy, "This page needs JavaScript."),
        *SERVED_SCRIPT
    );
    ServedPage { html, policy: format!("{policy}; frame-ancestors 'none'") }
}

/// Writes the start of a page with embedded data.
pub fn begin_page(out: &mut impl Write) -> io::Result<()> {
    let policy = content_policy("'none'", &SCRIPT);
    out.write_all(page_head(&policy, "This report needs JavaScript.").as_bytes())
}

/// Content security policy that allows only our own script and style.
fn content_policy(connect: &str, script: &str) -> String {
    format!(
        "default-src 'none'; connect-src {connect}; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; \
         form-action 'none'",
        fingerprint(STYLE),
        fingerprint(script),
    )
}

fn page_head(policy: &str, without_script: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Hotseat</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>{without_script}</noscript>\n<div id=\"app\"></div>\n"
    )
}

/// Writes data from [`to_script_json`] in an element with an id.
pub fn write_data(out: &mut impl Write, id: &str, json: &[u8]) -> io::Result<()> {
    begin_data(out, id)?;
    out.write_all(json)?;
    end_data(out)
}

/// Starts an element for data. The id must be safe in HTML.
pub fn begin_data(out: &mut impl Write, id: &str) -> io::Result<()> {
    write!(out, "<script type=\"application/json\" id=\"{id}\">")
}

/// Ends an element for data.
pub fn end_data(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</script>\n")
}

/// Writes the script that builds the page from the data before it; cases may follow.
pub fn write_script(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<script>{}</script>", *SCRIPT)
}

/// Ends the page.
pub fn end_page(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</body>\n</html>\n")
}

/// Returns the hash of a style or script for the content security policy.
fn fingerprint(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_data_in_script_elements() {
        let hostile = ["</script><script>alert(1)</script>", "<!--", "]]>", "<SCRIPT", "a < b"];
        let written = to_script_json(&hostile).unwrap();
        assert!(!written.contains(&b'<'), "{}", String::from_utf8_lossy(&written));
        assert_eq!(serde_json::from_slice::<Vec<String>>(&written).unwrap(), hostile);
    }

    #[test]
    fn static_parts_are_safe_to_embed() {
        for part in [STYLE, &SCRIPT, &SERVED_SCRIPT] {
            assert!(!part.contains("</") && !part.contains("<!--"), "a browser would end the element there");
            assert!(!part.contains("innerHTML"), "texts are texts");
        }
    }
}
