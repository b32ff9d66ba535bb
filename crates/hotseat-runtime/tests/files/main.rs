//! Agents that are written in files.

mod connectors;
mod examples;
mod mistakes;
mod properties;
