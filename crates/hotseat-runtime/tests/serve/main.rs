//! Agents as their clients see them over HTTP.

mod ag_ui;
mod beside;
mod chat;
mod kit;
mod transport;
