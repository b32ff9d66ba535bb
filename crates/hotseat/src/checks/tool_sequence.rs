//! `tool_sequence`: the tool calls as a whole are these.

use hotseat_trace::{Scope, ToolCall};
use serde_json::Value;

use super::answer::shown_json;
use super::calls;
use super::tool_called::ArgumentMatch;
use super::{Decided, listed};

/// A call that is expected.
#[derive(Debug, Clone)]
pub struct ExpectedCall {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// Its arguments; where none are given they do not matter.
    pub arguments: Option<Value>,
}

/// How the calls that were made relate to those that are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceMatch {
    /// Just these, in this order.
    Strict,
    /// All of these, in this order, and perhaps others between them.
    InOrder,
    /// Just these, in any order.
    Unordered,
    /// Only these, but perhaps not all.
    Subset,
    /// All of these, and perhaps others.
    Superset,
}

/// The tool calls of the scope are these.
#[derive(Debug, Clone)]
pub struct ToolSequence {
    /// The calls that are expected.
    pub calls: Vec<ExpectedCall>,
    /// The tools whose calls are looked at; none for all.
    pub only: Option<Vec<String>>,
    /// How they relate to those that were made.
    pub order: SequenceMatch,
    /// How arguments are compared.
    pub arguments: ArgumentMatch,
}

impl ToolSequence {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(|call| self.shown(call)).collect();
        let calls = if calls.is_empty() { "none".to_string() } else { calls.join(", ") };
        let made = match &self.only {
            None => "the tool calls".to_string(),
            Some(only) => format!("the calls of {}", only.join(", ")),
        };
        match self.order {
            SequenceMatch::Strict => format!("{made} are, in this order: {calls}"),
            SequenceMatch::InOrder => format!("among {made} are, in this order: {calls}"),
            SequenceMatch::Unordered => format!("{made} are, in any order: {calls}"),
            SequenceMatch::Subset => format!("{made} are among these: {calls}"),
            SequenceMatch::Superset => format!("among {made} are: {calls}"),
        }
    }

    fn shown(&self, call: &ExpectedCall) -> String {
        match (&call.arguments, self.arguments) {
            (Some(arguments), ArgumentMatch::Exact | ArgumentMatch::Subset) => {
                format!("{}({})", call.name, shown_json(arguments))
            }
            (_, ArgumentMatch::Ignored) | (None, _) => call.name.clone(),
        }
    }

    fn fits(&self, expected: &ExpectedCall, call: &ToolCall) -> bool {
        *expected.name == *call.name
            && expected.arguments.as_ref().is_none_or(|arguments| self.arguments.fits(call, arguments))
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let is_meant = |call: &ToolCall| {
            self.only.as_ref().is_none_or(|only| only.iter().any(|name| *name == *call.name))
        };
        let made: Vec<(usize, &ToolCall)> = scope.calls().filter(|(_, call)| is_meant(call)).collect();
        let fits = |expected: usize, made_at: usize| self.fits(&self.calls[expected], made[made_at].1);
        let (wanted, there) = (self.calls.len(), made.len());
        // For each call that was made, the expected one it stands for.
        let pairs = match self.order {
            SequenceMatch::Strict => {
                (0..there).map(|at| (at < wanted && fits(at, at)).then_some(at)).collect()
            }
            SequenceMatch::InOrder => in_order(wanted, there, fits),
            SequenceMatch::Unordered | SequenceMatch::Subset | SequenceMatch::Superset => {
                assign(wanted, there, fits)
            }
        };
        let paired = pairs.iter().flatten().count();
        let all_wanted = paired == wanted;
        let all_made = paired == there;
        let holds = match self.order {
            SequenceMatch::Strict | SequenceMatch::Unordered => all_wanted && all_made,
            SequenceMatch::Subset => all_made,
            SequenceMatch::Superset | SequenceMatch::InOrder => all_wanted,
        };
        let missing = (0..wanted)
            .filter(|at| !pairs.contains(&Some(*at)))
            .map(|at| format!("missing: {}", self.shown(&self.calls[at])));
        let lines = made.iter().zip(&pairs).map(|((turn, call), pair)| {
            let mark = if pair.is_some() { "" } else { "not expected: " };
            format!("{mark}{}", calls::shown(*turn, call))
        });
        let missing: Vec<String> =
            if self.order == SequenceMatch::Subset { Vec::new() } else { missing.collect() };
        let lines: Vec<String> = lines.chain(missing).collect();
        let actual = if lines.is_empty() { "no tool was called".to_string() } else { listed(&lines) };
        Decided::of(holds, actual)
    }
}

/// Goes through the calls with the expectations in their order: each takes the first call that fits behind the one
/// before. One that finds none ends it, for those behind it can no longer be in order.
fn in_order(wanted: usize, there: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut next = 0;
    let pairs = (0..there).map(|at| {
        let taken = (next < wanted && fits(next, at)).then_some(next);
        next += usize::from(taken.is_some());
        taken
    });
    pairs.collect()
}

/// Gives as many calls as possible an expectation of their own. One call may fit several expectations, so the first
/// that fits need not be the right one: earlier choices are changed where that makes room.
fn assign(wanted: usize, there: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut pairs: Vec<Option<usize>> = vec![None; there];
    for expected in 0..wanted {
        let mut tried = vec![false; there];
        give(expected, &mut pairs, &mut tried, &fits);
    }
    pairs
}

/// Finds a call for an expectation, moving others where it has to.
fn give(
    expected: usize,
    pairs: &mut [Option<usize>],
    tried: &mut [bool],
    fits: &impl Fn(usize, usize) -> bool,
) -> bool {
    for at in 0..pairs.len() {
        if tried[at] || !fits(expected, at) {
            continue;
        }
        tried[at] = true;
        let is_free = match pairs[at] {
            None => true,
            Some(other) => give(other, pairs, tried, fits),
        };
        if is_free {
            pairs[at] = Some(expected);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_order_may_have_others_between_them() {
        let calls = ["a", "x", "b", "a"];
        let paired = |wanted: &[&str]| {
            let pairs = in_order(wanted.len(), calls.len(), |expected, at| wanted[expected] == calls[at]);
            pairs.iter().flatten().count() == wanted.len()
        };
        assert!(paired(&["a", "b"]) && paired(&["b", "a"]) && paired(&["a", "a"]) && paired(&[]));
        assert!(!paired(&["b", "x"]) && !paired(&["a", "a", "a"]) && !paired(&["y"]));
    }

    #[test]
    fn an_earlier_choice_makes_room() {
        // Expectation 0 fits both calls, expectation 1 only the first.
        let fits = |expected: usize, at: usize| expected == 0 || at == 0;
        assert_eq!(assign(2, 2, fits), [Some(1), Some(0)]);
        assert_eq!(assign(3, 2, |_, _| true).iter().flatten().count(), 2);
        assert_eq!(assign(1, 0, |_, _| true), []);
    }
}
