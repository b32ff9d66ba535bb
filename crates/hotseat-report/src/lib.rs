//! What happens to the results of a run: reports, saved runs, comparison, and a viewer.
//!
//! - [`reporters`]: console, events, JSON, JSON lines, JUnit, HTML, Markdown, GitHub reports;
//! - [`runner`]: runs the cases of a plan, saves and reports their events;
//! - [`store`]: saves runs and replays their events;
//! - [`compare`]: compares two runs;
//! - [`extract`]: writes single results of a report as files;
//! - [`view`]: shows runs in a browser, also while they are running.
//!
//! The feature `store` compiles [`store`] with its database, and `viewer` also [`view`] with its server.

pub mod compare;
pub mod extract;
mod report_file;
pub mod reporters;
pub mod runner;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "viewer")]
pub mod view;

pub use report_file::{ReportPlace, ReportReadError};
