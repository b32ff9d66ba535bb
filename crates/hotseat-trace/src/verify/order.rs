//! Moments that come one after the other.

use super::Mismatch;
use crate::{Payload, View};

/// A kind of moment in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// An event of this type.
    Event(&'static str),
    /// A tool is called.
    Invoked(&'static str),
    /// The move of a tool is recorded with its result.
    MoveWithResult(&'static str),
    /// The model is asked for the so-manieth time in its turn, from 1.
    LlmStarted(u32),
    /// An agent says something that contains this.
    Said(&'static str),
}

pub(super) fn find(view: &View<'_>, moments: &[Moment]) -> Vec<Mismatch> {
    let mut after = 0;
    for (place, moment) in moments.iter().enumerate() {
        let next = view.records().find(|record| record.sequence > after && is(moment, &record.payload));
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

fn is(moment: &Moment, payload: &Payload) -> bool {
    match (moment, payload) {
        (Moment::Event(name), payload) => payload.type_name() == *name,
        (Moment::Invoked(tool), Payload::ToolInvoked(p)) => &*p.tool_name == *tool,
        (Moment::MoveWithResult(tool), Payload::MoveRecorded(p)) => {
            p.tool_result.is_some() && p.tool_call.as_ref().is_some_and(|call| &*call.tool_id == *tool)
        }
        (Moment::LlmStarted(call), Payload::LlmCallStarted(p)) => p.call_no == *call,
        (Moment::Said(part), Payload::AssistantMessage(p)) => p.content.contains(part),
        _ => false,
    }
}
