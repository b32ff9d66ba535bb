//! What a client sent.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

/// One request, read to its end.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place in the order of arrival, from 0.
    pub index: usize,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query as they were sent.
    pub path: String,
    /// Names in lower case; order and repetition as they were sent.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Bytes,
    /// When its last byte had been read.
    pub arrived: Instant,
}

impl Request {
    /// The value of the first header of this name, which is written in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON; in a handler that fails the test (see [`FakeAgent`](crate::FakeAgent)).
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
