//! Agents defined in files.

mod connectors;
mod errors;
mod examples;
mod properties;
