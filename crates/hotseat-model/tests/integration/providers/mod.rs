//! Provider clients against fake servers on real ports.

mod anthropic;
mod common;
mod failures;
mod openai;
