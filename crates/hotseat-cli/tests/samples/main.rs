//! The samples of the two documents that case files come from, at an agent of Hotseat's own behind four doors.
//!
//! * `documents/` holds the samples as they stand there, in files;
//! * `suites/` holds what their tables list: modes, signs of waiting, assertions, errors;
//! * `project/` holds the agent with its scripted model, the helpers, and a project file for each door.
//!
//! Whatever comes of a case comes of it behind every door, in the same words. Where a protocol cannot carry something, the
//! tests say so.

#[path = "../common/mod.rs"]
mod common;

mod attachments;
mod commands;
mod documents;
mod doors;
mod tables;
