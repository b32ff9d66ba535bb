//! The fourteen foundation tests on the tokio driver, with a clock that skips every wait.

const DRIVER: crate::kit::Driver = crate::kit::Driver::Live;

include!("foundation_tests/mod.rs");
