//! Digests of secrets, by which a recorded conversation shows whether a secret still has the value that was replaced
//! there.

use sha2::{Digest as _, Sha256};

/// Prefix of what is hashed. It is the same for all runs: together, many runs say no more about a secret than one.
const PURPOSE: &str = "hotseat secret\0";

/// Returns the digest of a secret: 8 bits in hexadecimal. So few say next to nothing about a secret, even about a short
/// number; one change in 256 stays unnoticed.
pub(super) fn digest(value: &str) -> String {
    let hash = Sha256::new().chain_update(PURPOSE).chain_update(value).finalize();
    format!("{:02x}", hash[0])
}
