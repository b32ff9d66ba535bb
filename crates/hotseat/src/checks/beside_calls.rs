//! `beside_calls`: whether the agent talks to the user in the same message in which it calls tools.

use hotseat_trace::Scope;

use super::calls::cut;
use super::{Decided, listed};

/// No message of the agent both says something and calls tools. Space alone is not something it says.
#[derive(Debug, Clone, Copy)]
pub struct NoTextBesideCalls;

impl NoTextBesideCalls {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        "the agent says nothing in messages that call tools".to_string()
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let said = scope.turns().iter().flat_map(|turn| {
            let calling = turn.calling_messages();
            let messages = turn.messages.iter().filter(|message| !message.content.trim().is_empty());
            messages.map(move |message| (turn, message, calling.calls_tools(message)))
        });
        let (mut beside, mut unknown) = (Vec::new(), None);
        for (turn, message, calls_tools) in said {
            let shown = || format!("turn {}: {:?}", turn.number, cut(&message.content));
            match calls_tools {
                Some(true) => beside.push(format!("{} in a message that calls tools", shown())),
                Some(false) => {}
                None => unknown = unknown.or_else(|| Some(shown())),
            }
        }
        match (beside.as_slice(), unknown) {
            ([], None) => Decided::of(true, "no message both says something and calls tools".to_string()),
            ([], Some(shown)) => Decided::nothing(format!(
                "this agent does not tell which message makes a call, so it cannot be said of {shown}"
            )),
            (beside, _) => Decided::of(false, listed(beside)),
        }
    }
}
