//! A human who gives inputs at the keyboard.

use std::time::Duration;

use crate::roles::Dialogue;
use hotseat_targets::BoxFuture;

/// Prompts a human for the user's next input. At most one conversation prompts at a time.
pub trait HumanPrompter: Send + Sync {
    /// Prompts for input and waits up to the given timeout.
    fn ask<'a>(&'a self, prompt: HumanPrompt<'a>) -> BoxFuture<'a, HumanReply>;
}

/// A prompt for a human.
#[derive(Debug, Clone, Copy)]
pub struct HumanPrompt<'a> {
    /// Name of the case.
    pub case: &'a str,
    /// Id of the conversation.
    pub session: &'a str,
    /// The dialogue so far.
    pub dialogue: Dialogue<'a>,
    /// The agent's description of the awaited input.
    pub hint: Option<&'a str>,
    /// Number of the turn that the input starts, from 1.
    pub turn: usize,
    /// Maximum waiting time.
    pub timeout: Duration,
}

/// Reply of a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HumanReply {
    /// The next input.
    Text(String),
    /// End the conversation.
    End,
    /// Skip the case.
    Skip,
    /// No input, and the reason.
    Unavailable(&'static str),
    /// An input that cannot be sent, and the reason.
    Unreadable(&'static str),
}
