//! Recorded answers of judges, reused when a conversation is re-evaluated.

use std::sync::{Mutex, PoisonError};

use hotseat_trace::{EventRecord, Payload, RoleAnswered};
use serde_json::Value;

use hotseat_targets::recorder::SecretRedactor;

/// Error of a judge that must not be asked.
pub const NOT_ASKED: &str =
    "this question has no recorded answer, and judges are not asked (use `hotseat recheck --judge`)";

/// Recorded answers of the judges of a conversation.
#[derive(Debug)]
pub struct RecordedAnswers {
    questions: Vec<RecordedQuestion>,
    /// Marks questions whose answers have been used.
    taken: Mutex<Vec<bool>>,
    redactor: SecretRedactor,
    /// True if a judge may be asked a question without a recorded answer.
    may_ask: bool,
}

/// A recorded question to a judge, with all votes and attempts.
#[derive(Debug, Clone)]
pub(super) struct RecordedQuestion {
    exchanges: Vec<RoleAnswered>,
}

impl RecordedAnswers {
    /// Collects the answers of judges in a conversation. Questions are compared after redaction; a question
    /// without an answer is asked if `asks` is true.
    pub fn from_events(events: &[EventRecord], redactor: SecretRedactor, asks: bool) -> RecordedAnswers {
        let mut askings: Vec<RecordedQuestion> = Vec::new();
        for record in events {
            let Payload::RoleAnswered(answered) = &record.payload else { continue };
            if &*answered.role != "judge" {
                continue;
            }
            let answered = (**answered).clone();
            match askings.last_mut() {
                Some(last) if (answered.vote, answered.attempt) != (Some(1), Some(1)) => {
                    last.exchanges.push(answered);
                }
                _ => askings.push(RecordedQuestion { exchanges: vec![answered] }),
            }
        }
        let taken = Mutex::new(vec![false; askings.len()]);
        RecordedAnswers { questions: askings, taken, redactor, may_ask: asks }
    }

    /// True if a judge may be asked a question without a recorded answer.
    pub fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Returns the recorded answer of this judge to the same question with the same number of votes. Repeated
    /// questions are answered in order. Errors are replayed only if judges are not asked again.
    pub(super) fn take_answer(
        &self,
        judge: &str,
        question: &Value,
        votes: usize,
    ) -> Option<RecordedQuestion> {
        let question = self.redactor.json(question.clone());
        let is_it = |asking: &RecordedQuestion| {
            let is_same = |first: &RoleAnswered| {
                &*first.agent == judge && self.redactor.json(first.question.clone()) == question
            };
            asking.exchanges.first().is_some_and(is_same)
                && asking.vote_count() == votes
                && !(self.may_ask && asking.exchanges.iter().all(|exchange| exchange.error.is_some()))
        };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = || (0..self.questions.len()).filter(|place| is_it(&self.questions[*place]));
        let place = fitting().find(|place| !taken[*place]).or_else(|| fitting().next())?;
        taken[place] = true;
        Some(self.questions[place].clone())
    }
}

impl RecordedQuestion {
    /// Number of votes.
    fn vote_count(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.attempt == Some(1)).count()
    }

    /// Iterates over the attempts of a vote, numbered from 1.
    pub(super) fn attempts_of_vote(&self, vote: usize) -> impl Iterator<Item = &RoleAnswered> {
        let is_of = move |exchange: &&RoleAnswered| exchange.vote == u64::try_from(vote).ok();
        self.exchanges.iter().filter(is_of)
    }
}
