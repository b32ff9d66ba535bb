//! Tests of scripts.

mod common;
mod errors;
mod execution;
mod hanging_threads;
mod host_modules;
mod positions;
