//! Tests of the reference agent.

mod agent_calls;
mod changed_definitions;
mod external_answers;
mod files;
mod foundation;
mod foundation_details;
mod foundation_live;
mod invariants;
mod kit;
mod known_faults;
mod live;
mod mutants;
mod schedule_sweep;
mod serialization;
mod serve;
mod verifier;
mod workflows;
