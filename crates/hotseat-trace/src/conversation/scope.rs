//! The turns that checks are evaluated on, and the time of the agent within them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Number, Value};

use super::{AgentToolCall, ConversationTurn, TracedConversation, UnseenCalls};
use crate::TimeOffset;

impl TracedConversation {
    /// Returns a scope with all turns.
    pub fn scope(&self) -> TurnScope<'_> {
        TurnScope { conversation: self, first: 0, end: self.turns.len(), is_condition: false }
    }

    /// Returns a scope with one turn, by index.
    pub fn turn_scope(&self, index: usize) -> Option<TurnScope<'_>> {
        self.turns_scope(index..index + 1)
    }

    /// Returns a scope with a range of turns, by index.
    pub fn turns_scope(&self, turns: Range<usize>) -> Option<TurnScope<'_>> {
        let exists = turns.start <= turns.end && turns.end <= self.turns.len();
        let (first, end) = (turns.start, turns.end);
        exists.then_some(TurnScope { conversation: self, first, end, is_condition: false })
    }
}

/// The turns that a check is evaluated on: one, a range, or all.
#[derive(Debug, Clone, Copy)]
pub struct TurnScope<'a> {
    conversation: &'a TracedConversation,
    /// Index of the first turn of the scope.
    first: usize,
    /// Index after the last turn of the scope.
    end: usize,
    /// True for a condition that decides how the conversation goes on: the agent may still use a service of the test.
    is_condition: bool,
}

impl<'a> TurnScope<'a> {
    /// Returns the turns of the scope.
    pub fn turns(self) -> &'a [ConversationTurn] {
        &self.conversation.turns[self.first..self.end]
    }

    /// Returns all turns of the conversation up to the last turn of the scope.
    pub fn turns_up_to_end(self) -> &'a [ConversationTurn] {
        &self.conversation.turns[..self.end]
    }

    /// Returns the conversation, also with later turns.
    pub fn conversation(self) -> &'a TracedConversation {
        self.conversation
    }

    /// Copies the conversation, with other texts of the agent in the turns of the scope: in messages, in arguments and
    /// results of calls, in results of runs, and in the shared state. Numbers in JSON become the texts that `number` returns.
    pub fn with_texts(
        self,
        text: impl Fn(&str) -> String,
        number: impl Fn(&Number) -> Option<String>,
    ) -> TracedConversation {
        let mut copy = self.conversation.clone();
        // The state may come from an earlier turn.
        for state in copy.turns[..self.end].iter_mut().filter_map(|turn| turn.state.as_mut()) {
            map_json_texts(Arc::make_mut(state), &text, &number);
        }
        for turn in &mut copy.turns[self.first..self.end] {
            for message in &mut turn.messages {
                message.content = text(&message.content).into();
            }
            turn.result.iter_mut().for_each(|result| map_json_texts(result, &text, &number));
            for call in &mut turn.tool_calls {
                map_json_texts(&mut call.arguments, &text, &number);
                call.result.iter_mut().for_each(|result| map_json_texts(&mut result.value, &text, &number));
            }
        }
        copy
    }

    /// The same scope of a copy of the conversation.
    pub fn of_copy<'b>(self, copy: &'b TracedConversation) -> TurnScope<'b> {
        TurnScope { conversation: copy, first: self.first, end: self.end, is_condition: self.is_condition }
    }

    /// Marks the scope as that of a condition, which decides how the conversation goes on.
    #[must_use]
    pub fn for_condition(self) -> TurnScope<'a> {
        TurnScope { is_condition: true, ..self }
    }

    /// True for the scope of a condition.
    pub fn is_condition(self) -> bool {
        self.is_condition
    }

    /// Returns why the tool calls of the agent are not visible, if they are not. In a condition, an agent that used no
    /// service of the test so far has called nothing so far.
    pub fn unseen_calls(self) -> Option<UnseenCalls<'a>> {
        let unseen = self.conversation.unseen_calls()?;
        (!self.is_condition || unseen != UnseenCalls::UnusedServices).then_some(unseen)
    }

    /// Returns all tool calls with their turn numbers, in start order.
    pub fn calls(self) -> impl Iterator<Item = (usize, &'a AgentToolCall)> + Clone {
        self.turns().iter().flat_map(|turn| turn.tool_calls.iter().map(|call| (turn.number, call)))
    }

    /// Returns the messages of the agent, joined by newlines.
    pub fn text(self) -> String {
        let mut text = String::new();
        for message in self.turns().iter().flat_map(|turn| &turn.messages) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&message.content);
        }
        text
    }

    /// Returns the agent's shared state at the end of the scope: it stays until the agent sends another one.
    pub fn state(self) -> Option<&'a Value> {
        self.turns_up_to_end().iter().rev().find_map(|turn| turn.state.as_deref())
    }

    /// Restricts the scope to its last turn.
    #[must_use]
    pub fn last_turn(self) -> TurnScope<'a> {
        TurnScope { first: self.first.max(self.end.saturating_sub(1)), ..self }
    }

    /// Returns the start of the first turn.
    pub fn started(self) -> TimeOffset {
        self.turns().first().map_or(TimeOffset(0), |turn| turn.started)
    }

    /// Returns the end of the last turn.
    pub fn ended(self) -> TimeOffset {
        self.turns().iter().filter_map(|turn| turn.ended).max().unwrap_or_else(|| self.started())
    }

    /// Returns the time from the start of the first turn to the end of the last.
    pub fn duration(self) -> Duration {
        self.ended() - self.started()
    }

    /// Returns the clock of the agent.
    pub fn agent_clock(self) -> AgentClock {
        let mut before = Duration::ZERO;
        let spans = self.turns().iter().map(|turn| {
            let span = AgentSpan { started: turn.started, length: turn.duration(), before };
            before += span.length;
            span
        });
        AgentClock { spans: spans.collect(), total: before }
    }
}

/// A clock that runs only within turns: between them, simulated users, judges, people and hooks take their time.
#[derive(Debug, Clone)]
pub struct AgentClock {
    /// The turns, in order.
    spans: Vec<AgentSpan>,
    total: Duration,
}

#[derive(Debug, Clone, Copy)]
struct AgentSpan {
    started: TimeOffset,
    length: Duration,
    /// Time of the turns before.
    before: Duration,
}

impl AgentClock {
    /// The time of all turns.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The time of the agent up to `at`, since the start of the first turn.
    pub fn at(&self, at: TimeOffset) -> Duration {
        let started = self.spans.partition_point(|span| span.started <= at);
        let Some(span) = started.checked_sub(1).map(|last| self.spans[last]) else { return Duration::ZERO };
        span.before + (at - span.started).min(span.length)
    }
}

/// Replaces all strings of a JSON value, also the names of members.
fn map_json_texts(
    value: &mut Value,
    text: &impl Fn(&str) -> String,
    number: &impl Fn(&Number) -> Option<String>,
) {
    match value {
        Value::String(string) => *string = text(string),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| map_json_texts(entry, text, number)),
        Value::Object(members) => {
            let entries = std::mem::take(members);
            members.extend(entries.into_iter().map(|(name, mut member)| {
                map_json_texts(&mut member, text, number);
                (text(&name), member)
            }));
        }
        Value::Number(found) => {
            if let Some(text) = number(found) {
                *value = Value::String(text);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
