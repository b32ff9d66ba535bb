//! Moments that must occur in order.

use super::mismatch::Mismatch;
use crate::{ConversationView, Payload};

/// A kind of moment in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceMoment {
    /// An event of this type.
    Event(&'static str),
    /// A call of this tool.
    Invoked(&'static str),
    /// A move of this tool, recorded with its result.
    MoveWithResult(&'static str),
    /// The n-th model call of its turn, from 1.
    LlmStarted(u32),
    /// An agent message that contains this text.
    Said(&'static str),
}

pub(super) fn find(view: &ConversationView<'_>, moments: &[TraceMoment]) -> Vec<Mismatch> {
    let mut after = 0;
    for (place, moment) in moments.iter().enumerate() {
        let next = view.records().find(|record| record.sequence > after && matches(moment, &record.payload));
        match next {
            Some(record) => after = record.sequence,
            None => {
                let before = place
                    .checked_sub(1)
                    .map_or("the beginning".to_string(), |last| format!("{:?}", moments[last]));
                let mismatch =
                    Mismatch::new(format!("{moment:?} after {before}"), format!("none after event {after}"));
                return vec![mismatch.at(after)];
            }
        }
    }
    Vec::new()
}

fn matches(moment: &TraceMoment, payload: &Payload) -> bool {
    match (moment, payload) {
        (TraceMoment::Event(name), payload) => payload.type_name() == *name,
        (TraceMoment::Invoked(tool), Payload::ToolInvoked(p)) => &*p.tool_name == *tool,
        (TraceMoment::MoveWithResult(tool), Payload::MoveRecorded(p)) => {
            p.tool_result.is_some() && p.tool_call.as_ref().is_some_and(|call| &*call.tool_id == *tool)
        }
        (TraceMoment::LlmStarted(call), Payload::LlmCallStarted(p)) => p.call_no == *call,
        (TraceMoment::Said(part), Payload::AssistantMessage(p)) => p.content.contains(part),
        _ => false,
    }
}
