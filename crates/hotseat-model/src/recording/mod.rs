//! Recording and replay of model traffic.
//!
//! [`RecordingModel`] records the traffic of a model; [`ReplayModel`] answers from a recording and rejects requests that
//! differ, listing the changes.
//!
//! # File format
//! JSON Lines. The first line is the header: `{"format":"hotseat-model-traffic","version":1,"model":"…"}`.
//! Each further line is a [`RecordedExchange`]: the request with its position, its digest, the duration, and the
//! reply or the error.

mod exchange;
mod recording_model;
mod replay_model;

pub use exchange::{FORMAT_VERSION, RecordedAnswer, RecordedExchange, digest};
pub use recording_model::RecordingModel;
pub use replay_model::{RecordingError, ReplayModel};
