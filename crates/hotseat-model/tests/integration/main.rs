//! Tests of model clients and scripts.

mod live;
mod providers;
mod script;
#[cfg(feature = "serve")]
mod served;
