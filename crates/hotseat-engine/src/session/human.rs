//! A human who gives inputs at the keyboard.

use std::fmt;
use std::time::Duration;

use crate::roles::Dialogue;
use hotseat_targets::BoxFuture;

/// Caller of the turns whose input a human typed.
pub(super) const HUMAN_CALLER: &str = "person";

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
    Unavailable(MissingHumanInput),
    /// An input that cannot be sent, and the reason.
    Unreadable(&'static str),
}

/// Why a human who was asked gave no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingHumanInput {
    /// Standard input has ended.
    InputEnded,
    /// Nothing was typed within the timeout of the prompt.
    TimedOut,
}

impl MissingHumanInput {
    pub(super) const ALL: [MissingHumanInput; 2] =
        [MissingHumanInput::InputEnded, MissingHumanInput::TimedOut];

    /// Returns what a user can do to give the input.
    pub(super) fn advice(self) -> &'static str {
        match self {
            MissingHumanInput::InputEnded => {
                "Run the case in a terminal, or pipe one line for each question to standard input"
            }
            MissingHumanInput::TimedOut => {
                "Type the input in time, or set a longer `timeout` of `interactive`"
            }
        }
    }
}

impl fmt::Display for MissingHumanInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MissingHumanInput::InputEnded => "standard input has ended",
            MissingHumanInput::TimedOut => "no input was typed in time",
        })
    }
}
