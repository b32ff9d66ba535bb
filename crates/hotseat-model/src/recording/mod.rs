//! The traffic with a model, recorded and played.
//!
//! [`Recorded`] writes down what goes through a model; [`Played`] answers from what was written, and refuses a
//! request that differs, with what has changed.
//!
//! # The file
//! JSON Lines. The first line says what the file is: `{"format":"hotseat-model-traffic","version":1,"model":"…"}`.
//! Each further line is an [`Exchange`]: the request with its position, its digest, how long the answer took, and
//! the reply or the error.

mod diff;
mod exchange;
mod played;
mod recorded;

pub use exchange::{Exchange, FORMAT_VERSION, Outcome, digest};
pub use played::{Played, RecordingError};
pub use recorded::Recorded;
