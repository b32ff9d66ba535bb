//! Signed state: values that clients carry between the rounds of a call and cannot change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

/// Signs and verifies the state of calls, with a key of its own for each run.
pub(super) struct StateSigner {
    key: Hmac<Sha256>,
}

impl StateSigner {
    pub(super) fn new() -> StateSigner {
        let secret: Vec<u8> =
            [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].iter().flat_map(|id| *id.as_bytes()).collect();
        StateSigner { key: Hmac::new_from_slice(&secret).expect("any length is a key") }
    }

    /// Returns the state as a text that only this run accepts, and only with the same `purpose`.
    pub(super) fn sign(&self, purpose: &str, state: &Value) -> String {
        let body = state.to_string();
        let tag = self.tag(purpose, &body).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&body), URL_SAFE_NO_PAD.encode(tag))
    }

    /// Returns the state of a text, unless it was changed or made for another purpose.
    pub(super) fn verify(&self, purpose: &str, text: &str) -> Option<Value> {
        let (body, tag) = text.split_once('.')?;
        let body = String::from_utf8(URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        self.tag(purpose, &body).verify_slice(&tag).ok()?;
        serde_json::from_str(&body).ok()
    }

    fn tag(&self, purpose: &str, body: &str) -> Hmac<Sha256> {
        self.key.clone().chain_update(format!("{}:{purpose}{body}", purpose.len()))
    }
}
