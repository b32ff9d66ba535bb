//! Requests received by a fake agent.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

/// A complete request.
#[derive(Debug, Clone)]
pub struct FakeRequest {
    /// Index in order of arrival, from 0.
    pub index: usize,
    /// Index of its connection in order of acceptance, from 0.
    pub connection: usize,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, unchanged.
    pub path: String,
    /// Headers with names in lower case, in the original order and with repetitions.
    pub headers: Vec<(String, String)>,
    /// Body without framing.
    pub body: Bytes,
    /// Time at which the last byte was read.
    pub arrived: Instant,
}

impl FakeRequest {
    /// Returns the first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON. Panics if it is not JSON. A panic in a handler fails the test (see
    /// [`FakeAgent`](crate::FakeAgent)).
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!(
                "the body of {} {} is not JSON: {error}: {:?}",
                self.method,
                self.path,
                String::from_utf8_lossy(&self.body)
            )
        })
    }
}
