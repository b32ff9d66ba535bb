//! What the HTTP clients of Hotseat share: their settings, requests, texts and events of responses, and the causes of errors.

mod body;
mod clients;
mod connector;
mod requests;
mod sse;
#[cfg(feature = "tls")]
mod tls;

pub use body::{NotUtf8, decode_utf8};
pub use clients::{ClientError, HttpClients, check_encryption, is_loopback, root_cause};
pub use requests::{HttpRequestError, IncomingResponse, OutgoingRequest};
pub use sse::{EventError, MAX_EVENT_BYTES, SseDecoder, SseEvent};
