//! A person who answers the agent.

use std::time::Duration;

use crate::adapters::Pending;
use crate::roles::Dialogue;

/// Somebody who can be asked what the user says. At most one conversation asks at a time.
pub trait Person: Send + Sync {
    /// Asks, and waits for an answer as long as is said.
    fn ask<'a>(&'a self, asked: AskedPerson<'a>) -> Pending<'a, Typed>;
}

/// What a person is asked.
#[derive(Debug, Clone, Copy)]
pub struct AskedPerson<'a> {
    /// The case.
    pub case: &'a str,
    /// The conversation.
    pub session: &'a str,
    /// What was said so far.
    pub dialogue: Dialogue<'a>,
    /// What the agent says it waits for.
    pub hint: Option<&'a str>,
    /// The turn that the answer begins, from 1.
    pub turn: usize,
    /// How long is waited.
    pub patience: Duration,
}

/// What a person has typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// What the user says.
    Said(String),
    /// The conversation is over.
    End,
    /// The case is to be skipped.
    Skip,
    /// Nothing, and why.
    Nothing(&'static str),
}
