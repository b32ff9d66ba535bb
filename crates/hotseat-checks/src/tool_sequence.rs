//! `tool_sequence`: the sequence of all tool calls.

use hotseat_trace::{AgentToolCall, TurnScope};
use serde_json::Value;

use super::answer::format_json;
use super::calls;
use super::tool_called::ArgumentMatch;
use super::{CheckBehavior, CheckDecision, format_list};

/// Expected call of a sequence.
#[derive(Debug, Clone)]
pub struct SequenceCall {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// MCP server of the test that must have received the call.
    pub server: Option<String>,
    /// Expected arguments; `None` accepts any arguments.
    pub arguments: Option<Value>,
}

/// Relation between the actual and the expected calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceMatch {
    /// Exactly the expected calls, in this order.
    Strict,
    /// All expected calls in this order, with other calls allowed between them.
    InOrder,
    /// Exactly the expected calls, in any order.
    Unordered,
    /// Only expected calls, but not necessarily all of them.
    Subset,
    /// All expected calls, with other calls allowed.
    Superset,
}

/// The tool calls of the scope match a sequence.
#[derive(Debug, Clone)]
pub struct ToolSequence {
    /// Expected calls.
    pub calls: Vec<SequenceCall>,
    /// Tools whose calls are compared; `None` for all tools.
    pub only: Option<Vec<String>>,
    /// Relation between the actual and the expected calls.
    pub order: SequenceMatch,
    /// Comparison of arguments.
    pub arguments: ArgumentMatch,
}

impl ToolSequence {
    fn format_call(&self, call: &SequenceCall) -> String {
        let tool = calls::describe_tool(&call.name, call.server.as_deref());
        match (&call.arguments, self.arguments) {
            (Some(arguments), ArgumentMatch::Exact | ArgumentMatch::Subset) => {
                format!("{tool}({})", format_json(arguments))
            }
            (_, ArgumentMatch::Ignored) | (None, _) => tool,
        }
    }

    fn matches(&self, expected: &SequenceCall, call: &AgentToolCall) -> bool {
        call.is_named(&expected.name)
            && calls::is_at_server(call, expected.server.as_deref())
            && expected.arguments.as_ref().is_none_or(|arguments| self.arguments.matches(call, arguments))
    }
}

impl CheckBehavior for ToolSequence {
    fn describe(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(|call| self.format_call(call)).collect();
        let calls = if calls.is_empty() { "none".to_string() } else { calls.join(", ") };
        let made = match &self.only {
            None => "the tool calls".to_string(),
            Some(only) => format!("the calls of {}", only.join(", ")),
        };
        match self.order {
            SequenceMatch::Strict => format!("{made} to be, in this order: {calls}"),
            SequenceMatch::InOrder => format!("{made} to include, in this order: {calls}"),
            SequenceMatch::Unordered => format!("{made} to be, in any order: {calls}"),
            SequenceMatch::Subset => format!("{made} to be among these: {calls}"),
            SequenceMatch::Superset => format!("{made} to include: {calls}"),
        }
    }

    fn servers(&self) -> Vec<&str> {
        self.calls.iter().filter_map(|call| call.server.as_deref()).collect()
    }

    fn reads_calls(&self) -> bool {
        true
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let is_meant = |call: &AgentToolCall| {
            self.only.as_ref().is_none_or(|only| only.iter().any(|name| call.is_named(name)))
        };
        let made: Vec<(usize, &AgentToolCall)> = scope.calls().filter(|(_, call)| is_meant(call)).collect();
        let fits = |expected: usize, made_at: usize| self.matches(&self.calls[expected], made[made_at].1);
        let (wanted, there) = (self.calls.len(), made.len());
        // Index of the matching expected call for each actual call.
        let pairs = match self.order {
            SequenceMatch::Strict => {
                (0..there).map(|at| (at < wanted && fits(at, at)).then_some(at)).collect()
            }
            SequenceMatch::InOrder => match_in_order(wanted, there, fits),
            SequenceMatch::Unordered | SequenceMatch::Subset | SequenceMatch::Superset => {
                match_any_order(wanted, there, fits)
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
            .map(|at| format!("missing: {}", self.format_call(&self.calls[at])));
        let lines = made.iter().zip(&pairs).map(|((turn, call), pair)| {
            let mark = if pair.is_some() { "" } else { "unexpected: " };
            format!("{mark}{}", calls::format_call(*turn, call))
        });
        let missing: Vec<String> =
            if self.order == SequenceMatch::Subset { Vec::new() } else { missing.collect() };
        let lines: Vec<String> = lines.chain(missing).collect();
        let actual = if lines.is_empty() { "no tool calls".to_string() } else { format_list(&lines) };
        CheckDecision::new(holds, actual)
    }
}

/// Matches expected calls in their order: each takes the first matching call after the previous one. An
/// expected call without a match ends the search, because later ones could not be in order.
fn match_in_order(wanted: usize, there: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut next = 0;
    let pairs = (0..there).map(|at| {
        let taken = (next < wanted && fits(next, at)).then_some(next);
        next += usize::from(taken.is_some());
        taken
    });
    pairs.collect()
}

/// Assigns expected calls to as many actual calls as possible (bipartite matching). One call may match
/// several expected calls, so earlier assignments are changed if that makes room.
fn match_any_order(wanted: usize, there: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut pairs: Vec<Option<usize>> = vec![None; there];
    for expected in 0..wanted {
        let mut tried = vec![false; there];
        find_call(expected, &mut pairs, &mut tried, &fits);
    }
    pairs
}

/// Finds a call for an expected call, and reassigns other ones if needed.
fn find_call(
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
            Some(other) => find_call(other, pairs, tried, fits),
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
    fn in_order_allows_other_calls_between() {
        let calls = ["a", "x", "b", "a"];
        let paired = |wanted: &[&str]| {
            let pairs =
                match_in_order(wanted.len(), calls.len(), |expected, at| wanted[expected] == calls[at]);
            pairs.iter().flatten().count() == wanted.len()
        };
        assert!(paired(&["a", "b"]) && paired(&["b", "a"]) && paired(&["a", "a"]) && paired(&[]));
        assert!(!paired(&["b", "x"]) && !paired(&["a", "a", "a"]) && !paired(&["y"]));
    }

    #[test]
    fn reassigns_earlier_matches() {
        // Expected call 0 matches both calls, expected call 1 only the first one.
        let fits = |expected: usize, at: usize| expected == 0 || at == 0;
        assert_eq!(match_any_order(2, 2, fits), [Some(1), Some(0)]);
        assert_eq!(match_any_order(3, 2, |_, _| true).iter().flatten().count(), 2);
        assert_eq!(match_any_order(1, 0, |_, _| true), []);
    }
}
