//! The fourteen foundation tests on the tokio driver, with a clock that skips every wait.

mod kit;

const DRIVER: kit::Driver = kit::Driver::Live;

include!("foundation_tests/mod.rs");
