//! Runs: cases are selected, conversations held side by side, results handed on one by one.

mod attempt;
mod cancellation;
mod dispatch;
mod dispatcher;
mod generate;
mod hooks;
mod measured;
mod mode;
mod outcome;
mod outside;
mod pace;
mod partners;
mod plan;
mod powers;
mod reading;
mod recheck;
mod series;
mod setting;
mod shard;
mod signals;
mod stability;
mod starting;
mod summary;
mod together;
mod told;
mod workers;

pub use attempt::Attempt;
pub use cancellation::{CLEANUP_LIMIT, Cancellation};
pub use dispatcher::{Control, Earlier, Options, RunEvent, Started, execute};
pub use generate::generate;
pub use hooks::{Before, result};
pub use measured::{Measured, OfCriterion, Tally};
pub use mode::{Mode, Modes};
pub use outcome::{Outcome, Repetition};
pub use outside::{AskPerson, Keep, Outside, Overrides};
pub use pace::Pace;
pub use partners::role;
pub use plan::{Plan, Selected, Selection};
pub use recheck::{Conversations, Recheck};
pub use series::{Standing, Until};
pub use setting::{Choices, Environment, Setting, Tested};
pub use shard::Shard;
pub use signals::Signals;
pub use stability::{Class, Grade, PassRate, Promise, Stability};
pub use starting::{end_orphans, start, stop};
pub use summary::{Grades, Repeats, Summary};
pub(crate) use told::short_digest;
pub use told::{
    CaseFacts, CheckFacts, CheckpointFacts, Driven, Finding, ReachedFacts, SimulatorFacts, State, Told,
    Written,
};
