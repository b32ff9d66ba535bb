//! What the HTTP clients of Hotseat share: their settings, the events of streams, and the causes of errors.

mod clients;
mod sse;

pub use clients::{ClientError, HttpClients, check_encryption, root_cause};
pub use sse::{EventTooLong, MAX_EVENT_BYTES, SseDecoder};
