//! Tests of model clients, scripts and recordings.

mod live;
mod providers;
mod recording;
mod script;
#[cfg(feature = "serve")]
mod served;
