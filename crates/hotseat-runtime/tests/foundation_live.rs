//! The fourteen foundation tests on the tokio driver, with a clock that jumps over every wait.

mod kit;

const DRIVER: kit::Driver = kit::Driver::Live;

include!("fourteen/mod.rs");
