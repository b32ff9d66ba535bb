//! Texts of responses.

use http::header::{CONTENT_ENCODING, HeaderMap};

/// The byte order mark that some programs write before a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Maximum number of characters shown of bytes that are not UTF-8.
const MAX_SHOWN_CHARS: usize = 200;

/// Bytes that are not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not UTF-8: {beginning}")]
pub struct NotUtf8 {
    /// The first characters, without the bytes that are none, and an ellipsis if there are more.
    beginning: String,
}

/// A body that is encoded: requests ask for no encoding, and nothing decodes one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "has the unsupported encoding {0}; turn off compression at the server or the proxy before it, and send no header `Accept-Encoding`"
)]
pub struct UnsupportedEncoding(String);

/// Fails if the body of a response is encoded.
pub fn check_encoding(headers: &HeaderMap) -> Result<(), UnsupportedEncoding> {
    let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(()) };
    let encoding = String::from_utf8_lossy(value.as_bytes()).trim().to_string();
    match encoding.to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(()),
        _ => Err(UnsupportedEncoding(encoding)),
    }
}

/// Decodes a whole text, without a byte order mark. Fails if it is not UTF-8.
pub fn decode_utf8(bytes: Vec<u8>) -> Result<String, NotUtf8> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(error.as_bytes());
        let beginning = match text.char_indices().nth(MAX_SHOWN_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.into_owned(),
        };
        NotUtf8 { beginning }
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}
