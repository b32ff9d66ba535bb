//! Runs: cases are selected, conversations held side by side, results handed on one by one.

mod attempt;
mod dispatcher;
mod generate;
mod hooks;
mod mode;
mod partners;
mod plan;
mod setting;

pub use attempt::{AskPerson, Attempt, Keep, Outside, Overrides};
pub use dispatcher::{Control, Options, RunEvent, Started, Summary, execute};
pub use generate::generate;
pub use hooks::{Before, result};
pub use mode::{Mode, Modes};
pub use partners::role;
pub use plan::{Plan, Selected, Selection};
pub use setting::{Choices, Setting, Tested};
