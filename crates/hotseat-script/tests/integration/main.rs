//! Tests of scripts.

mod common;
mod errors;
mod execution;
mod fresh_contexts;
mod hanging_threads;
mod host_modules;
mod positions;
