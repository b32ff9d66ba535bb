//! Result of one input.

use hotseat_trace::Payload;

use super::{ConversationEffect, Decision};

/// Result of one input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversationStep {
    /// Decisions, in order.
    pub decisions: Vec<Decision>,
    /// Events for the trace, in order. The driver numbers them.
    pub events: Vec<Payload>,
    /// Effects to start once the step has been stored.
    pub effects: Vec<ConversationEffect>,
}

/// Decision that cannot be applied because of a bug in the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeFault {
    /// Description of the fault.
    pub message: String,
}
