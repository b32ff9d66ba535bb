//! `with_tool_calls`: the agent does not send text in a message that calls tools.

use hotseat_document::{is_blank, quote};
use hotseat_trace::TurnScope;

use super::call_text::truncate;
use super::{CheckBehavior, CheckDecision, CheckOutcome, format_list};

/// No message of the agent has both text and tool calls. Characters that nobody sees are no text.
#[derive(Debug, Clone, Copy)]
pub struct NoTextWithToolCalls;

impl CheckBehavior for NoTextWithToolCalls {
    fn describe(&self) -> String {
        "the agent to say nothing in messages that call tools".to_string()
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let said = scope.turns().iter().flat_map(|turn| {
            let calling = turn.calling_messages();
            let messages = turn.messages.iter().filter(|message| !is_blank(&message.content));
            messages.map(move |message| (turn, message, calling.calls_tools(message)))
        });
        let (mut beside, mut unknown) = (Vec::new(), None);
        for (turn, message, calls_tools) in said {
            let shown = || format!("turn {}: {}", turn.number, quote(&truncate(&message.content)));
            match calls_tools {
                Some(true) => beside.push(format!("{} in a message that calls tools", shown())),
                Some(false) => {}
                None => unknown = unknown.or_else(|| Some(shown())),
            }
        }
        match (beside.as_slice(), unknown) {
            ([], None) => CheckDecision::new(true, "no message with both text and tool calls".to_string()),
            ([], Some(shown)) => CheckDecision::not_applicable(format!(
                "the agent does not report which message makes a call, so this cannot be decided for {shown}"
            )),
            (beside, _) => CheckDecision::new(false, format_list(beside)),
        }
    }

    fn reads_calls(&self) -> bool {
        true
    }
}
