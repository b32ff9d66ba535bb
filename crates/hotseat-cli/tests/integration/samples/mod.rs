//! Samples of the two documents that define case files, run with an embedded agent behind four adapters.
//!
//! * `documents/` contains the samples verbatim, in files;
//! * `suites/` contains the tables: modes, awaiting signals, assertions, errors;
//! * `project/` contains the agent with its scripted model, the roles, and one project file per adapter.
//!
//! Every adapter must give the same results and messages. Tests name the exceptions where a protocol cannot
//! carry the data.

mod adapters;
mod attachments;
mod commands;
mod documents;
mod tables;
