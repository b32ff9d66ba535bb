//! Signed state: values that clients carry between the rounds of a call and cannot change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::Value;

/// Signs and verifies the state of calls, with a key of its own for each run.
pub(super) struct StateSigner {
    key: hmac::Key,
}

impl StateSigner {
    pub(super) fn new() -> StateSigner {
        let secret: Vec<u8> =
            [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].iter().flat_map(|id| *id.as_bytes()).collect();
        StateSigner { key: hmac::Key::new(hmac::HMAC_SHA256, &secret) }
    }

    /// Returns the state as a text that only this run accepts, and only with the same `purpose`.
    pub(super) fn sign(&self, purpose: &str, state: &Value) -> String {
        let body = state.to_string();
        let tag = hmac::sign(&self.key, signed_text(purpose, &body).as_bytes());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&body), URL_SAFE_NO_PAD.encode(tag))
    }

    /// Returns the state of a text, unless it was changed or made for another purpose.
    pub(super) fn verify(&self, purpose: &str, text: &str) -> Option<Value> {
        let (body, tag) = text.split_once('.')?;
        let body = String::from_utf8(URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.key, signed_text(purpose, &body).as_bytes(), &tag).ok()?;
        serde_json::from_str(&body).ok()
    }
}

fn signed_text(purpose: &str, body: &str) -> String {
    format!("{}:{purpose}{body}", purpose.len())
}
