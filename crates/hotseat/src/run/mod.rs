//! Runs: cases are selected, conversations held side by side, results handed on one by one.

mod attempt;
mod dispatch;
mod dispatcher;
mod generate;
mod hooks;
mod mode;
mod outcome;
mod outside;
mod partners;
mod plan;
mod reading;
mod setting;
mod stability;
mod summary;

pub use attempt::Attempt;
pub use dispatcher::{Control, Options, RunEvent, Started, execute};
pub use generate::generate;
pub use hooks::{Before, result};
pub use mode::{Mode, Modes};
pub use outcome::{Outcome, Repetition};
pub use outside::{AskPerson, Keep, Outside, Overrides};
pub use partners::role;
pub use plan::{Plan, Selected, Selection};
pub use setting::{Choices, Setting, Tested};
pub use stability::{Class, PassRate, Stability};
pub use summary::{Repeats, Summary};
