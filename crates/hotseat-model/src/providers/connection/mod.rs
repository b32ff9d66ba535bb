//! What the clients of all providers share: configuration, requests with time limits, reading of replies.

mod call;
mod call_ids;
mod config;
pub(super) mod failure;
mod http;
mod retry_after;

#[cfg(any(test, feature = "serve"))]
pub(super) use call::read_events;
pub(super) use call::{
    ProviderIds, ReplyParser, call, invalid_reply_error, late_call_error, merge_extra, results_first,
    truncated_reply_error, unreadable_reply_error, unsupported_call_error,
};
pub(super) use call_ids::CallIds;
pub use config::{ConnectorConfig, Provider, Secret, TimeLimits};
pub(super) use http::ProviderConnection;
