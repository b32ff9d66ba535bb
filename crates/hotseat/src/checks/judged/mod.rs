//! What a judge decides.
//!
//! Such a check is data like all others, but it does not decide by itself: a session asks the judge and takes the
//! judgement for the verdict. What nobody has judged holds neither way.

mod claims;
mod criterion;
mod goal;
mod grounded;
mod intent;
mod judging;
mod open;

pub use claims::Claims;
pub use criterion::{Criterion, Example, Quality};
pub use goal::Goal;
pub use grounded::Grounded;
pub use intent::Intent;
pub use judging::{EvidenceLimit, EvidenceOverflow, Judging, Whom};
pub use open::Open;

use super::Decided;

/// What a judge is asked, and who judges.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What it is asked.
    pub matter: Matter,
    /// Who judges and how, as far as the case says.
    pub judging: Judging,
}

/// What a judge is asked.
#[derive(Debug, Clone)]
pub enum Matter {
    /// Whether something is so, in words of the test that the judge is told as they are.
    Open(Open),
    /// Whether what the agent said satisfies a criterion.
    Criterion(Criterion),
    /// Whether what the agent claims is grounded in what its tools returned.
    Grounded(Grounded),
    /// Whether the agent makes claims of some kinds.
    Claims(Claims),
    /// Whether the agent pursues an intent.
    Intent(Intent),
    /// Whether a goal is achieved.
    Goal(Goal),
}

impl Judged {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.matter {
            Matter::Open(matter) => matter.describe(),
            Matter::Criterion(matter) => matter.describe(),
            Matter::Grounded(matter) => matter.describe(),
            Matter::Claims(matter) => matter.describe(),
            Matter::Intent(matter) => matter.describe(),
            Matter::Goal(matter) => matter.describe(),
        }
    }

    pub(super) fn decide() -> Decided {
        Decided::nothing("no judge was asked".to_string())
    }
}

impl Matter {
    /// The type of the assertion.
    pub fn name(&self) -> &'static str {
        match self {
            Matter::Open(_) => "agent",
            Matter::Criterion(_) => "satisfy",
            Matter::Grounded(_) => "grounded",
            Matter::Claims(_) => "claims",
            Matter::Intent(_) => "intent",
            Matter::Goal(_) => "goal",
        }
    }
}
