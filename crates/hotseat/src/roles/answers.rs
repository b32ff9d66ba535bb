//! What judges answered when a conversation was held, for the same questions to be answered by it when it is decided
//! again.

use std::sync::{Mutex, PoisonError};

use hotseat_trace::{Payload, Record, RoleAnswered};
use serde_json::Value;

use crate::session::Redactor;

/// Why a judge says nothing whom nobody may ask.
pub const NOT_ASKED: &str = "this question was not put when the conversation was held, and nobody is asked now (`hotseat recheck --judge` asks)";

/// What judges answered before.
#[derive(Debug)]
pub struct Answers {
    askings: Vec<Asking>,
    /// Which of them were taken.
    taken: Mutex<Vec<bool>>,
    redactor: Redactor,
    /// Whether a judge is asked who has not answered before.
    asks: bool,
}

/// One question to a judge with all votes and all attempts at them.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    exchanges: Vec<RoleAnswered>,
}

impl Answers {
    /// What judges answered in a conversation. Questions are compared without the secrets that this takes out; where
    /// nothing was answered, the judge is asked if `asks` says so.
    pub fn of(events: &[Record], redactor: Redactor, asks: bool) -> Answers {
        let mut askings: Vec<Asking> = Vec::new();
        for record in events {
            let Payload::RoleAnswered(answered) = &record.payload else { continue };
            if &*answered.role != "judge" {
                continue;
            }
            match askings.last_mut() {
                Some(last) if (answered.vote, answered.attempt) != (Some(1), Some(1)) => {
                    last.exchanges.push(answered.clone());
                }
                _ => askings.push(Asking { exchanges: vec![answered.clone()] }),
            }
        }
        let taken = Mutex::new(vec![false; askings.len()]);
        Answers { askings, taken, redactor, asks }
    }

    /// Whether a judge is asked who has not answered before.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// What this judge answered to just this question, in so many votes. Where it was asked the same several times, the
    /// answers are taken in turn. What was no answer is one only where nobody is asked.
    pub(super) fn take(&self, judge: &str, question: &Value, votes: usize) -> Option<Asking> {
        let question = self.redactor.json(question.clone());
        let is_it = |asking: &Asking| {
            let is_same = |first: &RoleAnswered| {
                &*first.agent == judge && self.redactor.json(first.question.clone()) == question
            };
            asking.exchanges.first().is_some_and(is_same)
                && asking.votes() == votes
                && !(self.asks && asking.exchanges.iter().all(|exchange| exchange.error.is_some()))
        };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = || (0..self.askings.len()).filter(|place| is_it(&self.askings[*place]));
        let place = fitting().find(|place| !taken[*place]).or_else(|| fitting().next())?;
        taken[place] = true;
        Some(self.askings[place].clone())
    }
}

impl Asking {
    /// How many votes there are.
    fn votes(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.attempt == Some(1)).count()
    }

    /// The attempts at a vote, from 1.
    pub(super) fn vote(&self, vote: usize) -> impl Iterator<Item = &RoleAnswered> {
        let is_of = move |exchange: &&RoleAnswered| exchange.vote == u64::try_from(vote).ok();
        self.exchanges.iter().filter(is_of)
    }
}
