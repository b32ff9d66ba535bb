//! Interrupt events.

use super::view::pick;
use super::{ConversationView, TypedRecord};
use crate::{InterruptAnswered, InterruptRaised};

/// Interrupt events.
#[derive(Debug, Clone)]
pub struct InterruptEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> InterruptEvents<'a> {
    /// Returns the interrupts raised.
    pub fn raised(&self) -> Vec<TypedRecord<'a, InterruptRaised>> {
        pick!(self.0, InterruptRaised)
    }

    /// Returns the interrupts answered or cancelled.
    pub fn answered(&self) -> Vec<TypedRecord<'a, InterruptAnswered>> {
        pick!(self.0, InterruptAnswered)
    }

    /// Returns the answer to an interrupt.
    pub fn answer(&self, interrupt_id: &str) -> Option<TypedRecord<'a, InterruptAnswered>> {
        self.answered().into_iter().find(|p| &*p.interrupt_id == interrupt_id)
    }
}
