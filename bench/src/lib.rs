//! The project's benchmark: Hotseat beside a bare client, as whole processes, against a fake agent in a third.
//!
//! What is said is in [`workload`]; [`fake_agent`] answers it; [`bare_client`] and the [`suites`] for Hotseat ask
//! it. [`contest`] lets the contestants work and watches them, [`figures`] says how they compare, and
//! [`throughput`], [`memory`], [`startup`] and [`keeping`] are the things that are measured.

pub mod bare_client;
pub mod contest;
pub mod fake_agent;
pub mod figures;
pub mod keeping;
pub mod memory;
pub mod runtime;
pub mod startup;
pub mod suites;
pub mod throughput;
pub mod workload;
