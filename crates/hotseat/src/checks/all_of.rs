//! A criterion that assertions decide.

use hotseat_trace::Scope;

use super::{Check, Decided, Outcome, listed};

/// All of some assertions hold.
#[derive(Debug, Clone)]
pub struct AllOf {
    /// What that amounts to, in words.
    pub text: String,
    /// The assertions.
    pub checks: Vec<Check>,
}

impl AllOf {
    pub(super) fn describe(&self) -> String {
        self.text.clone()
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let mut broken = Vec::new();
        let mut unjudged = Vec::new();
        for check in &self.checks {
            let Decided { outcome, actual } = check.kind.decide(scope);
            let words = format!("{}: {actual}", check.describe());
            match (outcome, check.negated) {
                (Outcome::NothingToJudge, _) => unjudged.push(words),
                (Outcome::Holds, true) | (Outcome::Fails, false) => broken.push(words),
                (Outcome::Holds, false) | (Outcome::Fails, true) => {}
            }
        }
        match (broken.as_slice(), unjudged.as_slice()) {
            ([], []) => Decided::of(true, "all of it holds".to_string()),
            ([], unjudged) => Decided::nothing(listed(unjudged)),
            (broken, _) => Decided::of(false, listed(broken)),
        }
    }

    /// Why it cannot be known whether it holds; none where it can, or where one of the assertions is broken anyhow.
    pub(super) fn undecided(&self, scope: Scope<'_>) -> Option<String> {
        let Outcome::NothingToJudge = self.decide(scope).outcome else { return None };
        self.checks.iter().find_map(|check| check.undecided(scope))
    }
}
