//! Settings of a judge.

use std::time::Duration;

use hotseat_document::SourceSpan;

use crate::RoleReference;

/// Settings of a judge. Project, suite, case and assertion can each set some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeSettings {
    /// The judge.
    pub judge: Option<RoleReference>,
    /// Position of the judge or connector, if it is not that of the check.
    pub place: Option<SourceSpan>,
    /// Connector (model) to use, if the judge is an agent that accepts one.
    pub connector: Option<String>,
    /// Number of retries after an invalid answer.
    pub retries: Option<usize>,
    /// Number of votes; the majority decides.
    pub votes: Option<usize>,
    /// Maximum duration of one answer.
    pub timeout: Option<Duration>,
    /// Limit on the part of the conversation in the prompt.
    pub evidence: EvidenceLimit,
}

/// Limit on the part of a conversation that a judge receives. Unset members are inherited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvidenceLimit {
    /// Maximum number of characters.
    pub max_characters: Option<usize>,
    /// Behaviour for a longer conversation.
    pub on_overflow: Option<EvidenceOverflow>,
}

/// Behaviour for a conversation that is longer than the evidence limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvidenceOverflow {
    /// The judge is not asked; the check ends with a judge error.
    #[default]
    Error,
    /// The conversation is shortened, and console and reports say so.
    Truncate,
}

/// Reference to a judge, optionally with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeSelector {
    /// The judge; `None` for the default judge of the project.
    pub judge: Option<RoleReference>,
    /// The connector (model).
    pub connector: Option<String>,
}

impl JudgeSettings {
    /// Returns the judge and the model.
    pub fn selector(&self) -> JudgeSelector {
        JudgeSelector { judge: self.judge.clone(), connector: self.connector.clone() }
    }

    /// Returns these settings, with unset members taken from `above`.
    #[must_use]
    pub fn or_inherit(&self, above: &JudgeSettings) -> JudgeSettings {
        // A model belongs to the judge next to which it is set.
        let connector = match &self.judge {
            Some(_) => self.connector.clone(),
            None => self.connector.clone().or_else(|| above.connector.clone()),
        };
        let is_named = self.judge.is_some() || self.connector.is_some();
        JudgeSettings {
            place: if is_named { self.place.clone() } else { above.place.clone() },
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
