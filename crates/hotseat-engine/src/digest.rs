//! Digests of texts, as identifiers.

use sha2::{Digest as _, Sha256};

/// Returns the first bytes of the digest of a text, in hexadecimal.
pub fn short_digest(text: &str, bytes: usize) -> String {
    let whole = Sha256::digest(text);
    whole.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
