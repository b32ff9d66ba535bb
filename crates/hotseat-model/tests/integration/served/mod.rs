//! Models served over HTTP.

mod common;
mod conversations;
mod dialects;
mod faults;
mod relay;
