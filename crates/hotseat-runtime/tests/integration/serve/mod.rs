//! Agents served over HTTP, from the client's view.

mod ag_ui;
mod chat;
mod concurrency;
mod kit;
mod store_size;
mod transport;
