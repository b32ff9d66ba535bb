//! Who judges, and how.

use std::time::Duration;

use crate::checks::Reference;

/// Who judges and how, as far as somebody says. A project, a suite, a case and an assertion may each say some of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judging {
    /// Who judges.
    pub judge: Option<Reference>,
    /// With which model, where the judge is an agent that can be told.
    pub connector: Option<String>,
    /// How often it is asked again where its answer is of no use.
    pub retries: Option<usize>,
    /// How many judgements are asked for, of which the majority decides.
    pub votes: Option<usize>,
    /// How long one answer may take.
    pub timeout: Option<Duration>,
    /// How much of a conversation it is shown.
    pub evidence: EvidenceLimit,
}

/// How much of a conversation a judge is shown, as far as somebody says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvidenceLimit {
    /// How many characters at most.
    pub max_characters: Option<usize>,
    /// What happens to a conversation that is longer.
    pub on_overflow: Option<EvidenceOverflow>,
}

/// What happens when a conversation is longer than a judge may be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvidenceOverflow {
    /// The judge is not asked; the check ends with a judge error.
    #[default]
    Error,
    /// The conversation is shortened, and console and reports say so.
    Truncate,
}

/// A judge as it is referred to: by name, and perhaps with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whom {
    /// The judge; none where only the project says it.
    pub judge: Option<Reference>,
    /// The model.
    pub connector: Option<String>,
}

impl Judging {
    /// Who is meant.
    pub fn whom(&self) -> Whom {
        Whom { judge: self.judge.clone(), connector: self.connector.clone() }
    }

    /// What is said here, and where nothing is said what is said above.
    #[must_use]
    pub fn over(&self, above: &Judging) -> Judging {
        // A model goes with the judge beside which it is named.
        let connector = match &self.judge {
            Some(_) => self.connector.clone(),
            None => self.connector.clone().or_else(|| above.connector.clone()),
        };
        Judging {
            judge: self.judge.clone().or_else(|| above.judge.clone()),
            connector,
            retries: self.retries.or(above.retries),
            votes: self.votes.or(above.votes),
            timeout: self.timeout.or(above.timeout),
            evidence: EvidenceLimit {
                max_characters: self.evidence.max_characters.or(above.evidence.max_characters),
                on_overflow: self.evidence.on_overflow.or(above.evidence.on_overflow),
            },
        }
    }
}
