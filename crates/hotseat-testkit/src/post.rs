//! A blocking HTTP request for fake agents: one request per connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::error::TestkitError;

/// Longer than a server of a test may take.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// An answer to a request.
#[derive(Debug, Clone)]
pub struct PostAnswer {
    /// HTTP status.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// The body as sent, with the sizes of its chunks.
    pub body: String,
}

/// Posts a JSON body to an HTTP address.
///
/// # Errors
/// If there is no connection or no answer. Panics if it is not an HTTP address.
pub fn post(url: &str, headers: &[(&str, &str)], body: &str) -> Result<PostAnswer, TestkitError> {
    post_within(READ_TIMEOUT, url, headers, body)
}

/// Posts a JSON body, and gives up if nothing arrives for this time.
///
/// # Errors
/// As [`post`]. Panics as [`post`].
pub fn post_within(
    limit: Duration,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<PostAnswer, TestkitError> {
    let (host, head) = request_head("POST", url, headers, body.len());
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(TestkitError::Closed)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok(PostAnswer { status, head: head.to_string(), body: body.to_string() })
}

/// Returns the host of an HTTP address, and the head of a request with a JSON body. Panics if it is not an
/// HTTP address.
pub(crate) fn request_head<'a>(
    method: &str,
    url: &'a str,
    headers: &[(&str, &str)],
    body_bytes: usize,
) -> (&'a str, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("not an address: {url}"));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}Connection: close\r\nContent-Length: {body_bytes}\r\n\r\n"
    );
    (host, head)
}

impl PostAnswer {
    /// Returns the body without the sizes of its chunks. Text after an incomplete chunk is missing.
    pub fn content(&self) -> String {
        if !self.head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return self.body.clone();
        }
        let (mut content, mut rest) = (String::new(), self.body.as_str());
        while let Some((size, after)) = rest.split_once("\r\n")
            && let Ok(size @ 1..) = usize::from_str_radix(size.trim(), 16)
            && let Some(chunk) = after.get(..size)
        {
            content.push_str(chunk);
            rest = after[size..].trim_start_matches("\r\n");
        }
        content
    }
}
