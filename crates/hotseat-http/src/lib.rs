//! What the HTTP clients of Hotseat share: their settings, requests, texts and events of responses, and the causes of errors.

mod body;
mod client_error;
mod clients;
mod connector;
mod header_names;
mod proxies;
mod requests;
mod sse;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_error;

pub use body::{NotUtf8, UnsupportedEncoding, check_encoding, decode_utf8};
pub use client_error::{ClientError, check_encryption, root_cause, shown_address};
pub use clients::{HttpClients, is_loopback};
pub use header_names::{HeaderNameError, is_connection_header, passed_headers, read_header_name};
pub use proxies::check_proxies;
pub use requests::{HttpRequestError, IncomingResponse, OutgoingRequest};
pub use sse::{EventError, MAX_EVENT_BYTES, SseDecoder, SseEvent};
