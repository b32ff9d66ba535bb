//! Tests of the public API, and of the source itself.

mod ag_ui;
mod architecture;
mod attributes;
mod checks;
mod compiler_messages;
mod dsl;
mod session;
