//! Runs: cases are selected, conversations held side by side, results handed on one by one.

mod attempt;
mod dispatcher;
mod generate;
mod partners;
mod plan;

pub use attempt::{Attempt, Outside, Overrides};
pub use dispatcher::{Control, Options, RunEvent, Started, Summary, execute};
pub use generate::generate;
pub use partners::role;
pub use plan::{Plan, Selected, Selection};
