//! Comparison of two runs: cases that got worse or better, the significance of the changes, and the first
//! divergence of their conversations. No agent or judge is called.

mod cases;
mod comparison;
mod content;
mod divergence;
mod figures;
mod json;
mod pairing;
mod read;
#[cfg(feature = "store")]
mod saved_run;
mod significance;
mod text;

pub use cases::{AttemptFigures, ReportAttempt, ReportCall, ReportCase, ReportRun, ReportTurn};
pub use comparison::{
    ComparedCase, ComparedCheck, ComparisonRules, DEFAULT_CONFIDENCE, PassChange, PassRates, RunComparison,
    compare,
};
pub use divergence::{Divergence, DivergentStep};
pub use figures::ComparedFigure;
pub use json::write_json;
pub use pairing::ExcludedCase;
pub use read::read_report;
#[cfg(feature = "store")]
pub use saved_run::read_saved_run;
pub use significance::SignificantChange;
pub use text::write_text;
