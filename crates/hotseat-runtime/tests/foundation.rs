//! The fourteen foundation tests on the simulated driver.

mod kit;

const DRIVER: kit::Driver = kit::Driver::Simulated;

include!("foundation_tests/mod.rs");
