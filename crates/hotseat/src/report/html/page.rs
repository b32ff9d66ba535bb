//! The page itself: what stands around the data, and how data stands in it.

use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::Serialize;

const STYLE: &str = include_str!("style.css");

/// The script of a page that holds the run.
static SCRIPT: LazyLock<String> = LazyLock::new(|| script_with(include_str!("source.js")));
/// The script of a page that asks for the run.
static ASKING_SCRIPT: LazyLock<String> = LazyLock::new(|| script_with(include_str!("served.js")));

/// The script in its parts, with the one that knows where the run comes from; they see each other, and nobody sees them.
fn script_with(source: &str) -> String {
    let parts = [
        include_str!("dom.js"),
        source,
        include_str!("trace.js"),
        include_str!("chat.js"),
        include_str!("timeline.js"),
        include_str!("case.js"),
        include_str!("overview.js"),
        include_str!("runs.js"),
        include_str!("app.js"),
    ];
    format!("(() => {{\n'use strict';\n{}}})();\n", parts.join("\n"))
}

/// A value as JSON that can stand in a script element: nothing ends that element, or begins another one, but `<`, and
/// JSON has that in texts only.
pub fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
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

/// A page that asks for what it shows.
pub struct Page {
    /// The page.
    pub html: String,
    /// What the browser may do for it; the server says so, too.
    pub policy: String,
}

/// The page that asks the server that it comes from. It is the same for all runs.
pub fn served() -> Page {
    let policy = policy("'self'", &ASKING_SCRIPT);
    let html = format!(
        "{}<script>{}</script>\n</body>\n</html>\n",
        head(&policy, "This page is made by a script that stands in it."),
        *ASKING_SCRIPT
    );
    Page { html, policy: format!("{policy}; frame-ancestors 'none'") }
}

/// Begins a page that holds what it shows.
pub fn begin(out: &mut impl Write) -> io::Result<()> {
    let policy = policy("'none'", &SCRIPT);
    out.write_all(head(&policy, "This report is shown by a script that stands in this page.").as_bytes())
}

/// The browser runs our script and uses our style, and no others, whatever else stands in the page.
fn policy(connect: &str, script: &str) -> String {
    format!(
        "default-src 'none'; connect-src {connect}; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; \
         form-action 'none'",
        fingerprint(STYLE),
        fingerprint(script),
    )
}

fn head(policy: &str, without_script: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Hotseat</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>{without_script}</noscript>\n<div id=\"app\"></div>\n"
    )
}

/// Data, as [`json`] makes it, under an id.
pub fn data(out: &mut impl Write, id: &str, json: &[u8]) -> io::Result<()> {
    begin_data(out, id)?;
    out.write_all(json)?;
    end_data(out)
}

/// Begins data; the id is one of ours.
pub fn begin_data(out: &mut impl Write, id: &str) -> io::Result<()> {
    write!(out, "<script type=\"application/json\" id=\"{id}\">")
}

/// Ends data.
pub fn end_data(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</script>\n")
}

/// What makes the page of the data that stands before it; cases may follow.
pub fn script(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<script>{}</script>", *SCRIPT)
}

/// Ends the page.
pub fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</body>\n</html>\n")
}

/// What a content security policy knows a style or a script by.
fn fingerprint(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_element() {
        let hostile = ["</script><script>alert(1)</script>", "<!--", "]]>", "<SCRIPT", "a < b"];
        let written = json(&hostile).unwrap();
        assert!(!written.contains(&b'<'), "{}", String::from_utf8_lossy(&written));
        assert_eq!(serde_json::from_slice::<Vec<String>>(&written).unwrap(), hostile);
    }

    #[test]
    fn our_own_parts_stand_in_the_page_as_they_are() {
        for part in [STYLE, &SCRIPT, &ASKING_SCRIPT] {
            assert!(!part.contains("</") && !part.contains("<!--"), "a browser would end the element there");
            assert!(!part.contains("innerHTML"), "texts are texts");
        }
    }
}
