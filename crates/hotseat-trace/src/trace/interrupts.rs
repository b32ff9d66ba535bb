//! Interrupt events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{InterruptAnswered, InterruptRaised};

/// Interrupt events.
#[derive(Debug, Clone)]
pub struct InterruptEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> InterruptEvents<'a> {
    picks! {
        /// Returns the interrupts raised.
        raised: InterruptRaised = InterruptRaised;
        /// Returns the interrupts answered or cancelled.
        answered: InterruptAnswered = InterruptAnswered;
    }

    /// Returns the answer to an interrupt.
    pub fn answer(&self, interrupt_id: &str) -> Option<TypedRecord<'a, InterruptAnswered>> {
        self.answered().into_iter().find(|p| &*p.interrupt_id == interrupt_id)
    }
}
