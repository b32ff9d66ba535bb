//! The fourteen foundation tests on the simulated driver.

const DRIVER: crate::kit::Driver = crate::kit::Driver::Simulated;

include!("foundation_tests/mod.rs");
