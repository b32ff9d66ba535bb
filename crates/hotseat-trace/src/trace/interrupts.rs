//! The questions of a conversation to people.

use super::view::pick;
use super::{Typed, View};
use crate::{InterruptAnswered, InterruptRaised};

/// Interrupt events.
#[derive(Debug, Clone)]
pub struct Interrupts<'a>(pub(super) View<'a>);

impl<'a> Interrupts<'a> {
    /// What was asked.
    pub fn raised(&self) -> Vec<Typed<'a, InterruptRaised>> {
        pick!(self.0, InterruptRaised)
    }

    /// What was answered, and what was taken back.
    pub fn answered(&self) -> Vec<Typed<'a, InterruptAnswered>> {
        pick!(self.0, InterruptAnswered)
    }

    /// What came of a question.
    pub fn answer(&self, interrupt_id: &str) -> Option<Typed<'a, InterruptAnswered>> {
        self.answered().into_iter().find(|p| &*p.interrupt_id == interrupt_id)
    }
}
