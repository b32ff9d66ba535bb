//! Digests of texts, as identifiers.

use ring::digest::{SHA256, digest};

/// Returns the first bytes of the digest of a text, in hexadecimal.
pub fn short_digest(text: &str, bytes: usize) -> String {
    let whole = digest(&SHA256, text.as_bytes());
    whole.as_ref().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
