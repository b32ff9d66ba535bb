//! `tool_sequence`: the sequence of all tool calls.

use std::collections::{BTreeSet, HashMap};

use hotseat_trace::{
    AgentToolCall, CallComparison, ComparedPart, MissingCall, TurnScope, canonical_text, format_count, named,
};
use serde_json::Value;

use super::answer::format_json;
use super::call_matching::{GroupMatching, TooManyDifferentCalls, group_calls};
use super::call_text::format_calls;
use super::calls::{self, NamedTools};
use super::differences::DifferenceList;
use super::nearest_call::{Similarity, list_calls, nearest_call};
use super::tool_called::ArgumentMatch;
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// Maximum number of missing calls that are compared with the nearest ones.
const MAX_COMPARED_CALLS: usize = 20;

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

named! {
    /// Relation between the actual and the expected calls.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SequenceMatch {
        /// Exactly the expected calls, in this order.
        Strict = "strict",
        /// All expected calls in this order, with other calls allowed between them.
        InOrder = "in_order",
        /// Exactly the expected calls, in any order.
        Unordered = "unordered",
        /// Only expected calls, but not necessarily all of them.
        Subset = "subset",
        /// All expected calls, with other calls allowed.
        Superset = "superset",
    }
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

impl SequenceCall {
    fn is_of_tool(&self, call: &AgentToolCall) -> bool {
        call.is_named(&self.name) && calls::is_at_server(call, self.server.as_deref())
    }
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
        expected.is_of_tool(call)
            && expected.arguments.as_ref().is_none_or(|arguments| self.arguments.matches(call, arguments))
    }

    /// Returns true if the call matches, or would match with other arguments: those that are no JSON object are unknown.
    fn may_match(&self, expected: &SequenceCall, call: &AgentToolCall) -> bool {
        (expected.is_of_tool(call) && call.arguments_broken) || self.matches(expected, call)
    }

    /// Returns true if the calls match, given the matching expected call for each actual one.
    fn holds(&self, pairs: &[Option<usize>]) -> bool {
        let paired = pairs.iter().flatten().count();
        let (all_wanted, all_made) = (paired == self.calls.len(), paired == pairs.len());
        match self.order {
            SequenceMatch::Strict | SequenceMatch::Unordered => all_wanted && all_made,
            SequenceMatch::Subset => all_made,
            SequenceMatch::Superset | SequenceMatch::InOrder => all_wanted,
        }
    }
}

impl CheckBehavior for ToolSequence {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        let reads_arguments = self.arguments != ArgumentMatch::Ignored
            && self.calls.iter().any(|call| call.arguments.is_some());
        ForbiddenTexts::in_calls(negated && reads_arguments)
    }

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

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        let calls = self.calls.iter();
        let calls = calls.map(|call| NamedTools { server: call.server.as_deref(), tools: vec![&call.name] });
        let only = self.only.iter().flatten().map(|name| NamedTools { server: None, tools: vec![name] });
        calls.chain(only).collect()
    }

    fn reads_calls(&self) -> bool {
        true
    }

    fn lasting_outcome(&self, scope: TurnScope<'_>) -> Option<CheckOutcome> {
        match self.order {
            SequenceMatch::Subset => Some(CheckOutcome::Violated),
            SequenceMatch::InOrder | SequenceMatch::Superset => Some(CheckOutcome::Satisfied),
            // A call that is not expected stays, while a missing one may follow.
            SequenceMatch::Strict | SequenceMatch::Unordered => {
                let pairs = self.pairs(&self.made(scope), Self::may_match).ok()?;
                pairs.contains(&None).then_some(CheckOutcome::Violated)
            }
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made = self.made(scope);
        self.decide_calls(&made).unwrap_or_else(|TooManyDifferentCalls| self.too_many_calls(made.len()))
    }
}

/// Decides whether an actual call matches an expected one.
type CallMatcher = fn(&ToolSequence, &SequenceCall, &AgentToolCall) -> bool;

/// Calls of the scope that are compared, with their turns.
type MadeCalls<'a> = [(usize, &'a AgentToolCall)];

impl ToolSequence {
    /// Returns the calls that are compared.
    fn made<'a>(&self, scope: TurnScope<'a>) -> Vec<(usize, &'a AgentToolCall)> {
        let is_meant = |call: &AgentToolCall| {
            self.only.as_ref().is_none_or(|only| only.iter().any(|name| call.is_named(name)))
        };
        scope.calls().filter(|(_, call)| is_meant(call)).collect()
    }

    /// Decides for these calls.
    fn decide_calls(&self, made: &MadeCalls<'_>) -> Result<CheckDecision, TooManyDifferentCalls> {
        let pairs = self.pairs(made, Self::matches)?;
        if !self.holds(&pairs) {
            // Each call is compared with one expected call, so all unknown arguments may be the expected ones at once.
            let may_hold = self.holds(&self.pairs(made, Self::may_match)?);
            let comparison = self.compare(made, pairs);
            return Ok(match may_hold {
                false => CheckDecision::violated(comparison),
                true => {
                    let unknown = made.iter().filter(|(_, call)| call.arguments_broken).count();
                    CheckDecision::unmet(comparison, unknown)
                }
            });
        }
        let lines = format_calls(made.iter().copied());
        let actual = if lines.is_empty() { "no tool calls".to_string() } else { format_list(&lines) };
        Ok(CheckDecision::new(true, actual))
    }

    /// Decision for calls that differ in too many ways to be assigned to each other.
    fn too_many_calls(&self, made: usize) -> CheckDecision {
        let (expected, made) = (format_count(self.calls.len(), "expected call"), format_count(made, "call"));
        CheckDecision::not_applicable(format!(
            "{made} that differ from {expected} in too many ways to be compared in any order; \
             use `order: strict` or `in_order`, or compare fewer calls, with `only` or in a single turn"
        ))
    }

    /// Returns the index of the matching expected call for each actual call.
    fn pairs(
        &self,
        made: &MadeCalls<'_>,
        matches: CallMatcher,
    ) -> Result<Vec<Option<usize>>, TooManyDifferentCalls> {
        let fits = |expected: usize, made_at: usize| matches(self, &self.calls[expected], made[made_at].1);
        let (wanted, there) = (self.calls.len(), made.len());
        match self.order {
            SequenceMatch::Strict => {
                Ok((0..there).map(|at| (at < wanted && fits(at, at)).then_some(at)).collect())
            }
            SequenceMatch::InOrder => Ok(match_in_order(wanted, there, fits)),
            SequenceMatch::Unordered | SequenceMatch::Subset | SequenceMatch::Superset => {
                self.pairs_in_any_order(made, matches)
            }
        }
    }

    /// Returns the index of the matching expected call for each actual call, for as many as possible.
    fn pairs_in_any_order(
        &self,
        made: &MadeCalls<'_>,
        matches: CallMatcher,
    ) -> Result<Vec<Option<usize>>, TooManyDifferentCalls> {
        let (ignored, exact) =
            (self.arguments == ArgumentMatch::Ignored, self.arguments == ArgumentMatch::Exact);
        let text = |arguments: &Value| (!ignored).then(|| canonical_text(arguments));
        let (wanted_keys, wanted) = group_calls(self.calls.iter().map(|call| {
            (call.name.as_str(), call.server.as_deref(), call.arguments.as_ref().and_then(text))
        }));
        let (made_keys, there) = group_calls(made.iter().map(|(_, call)| {
            let at_server = call.server_call.as_ref().map(|seen| (&*seen.server, &*seen.tool));
            // Arguments that could not be parsed are all alike: unknown.
            (&*call.name, at_server, if call.arguments_broken { None } else { text(&call.arguments) })
        }));
        // Exact arguments have equal texts, so only these calls and those with unknown arguments are compared.
        let all: Vec<usize> = (0..there.len()).collect();
        let unknown: Vec<usize> = all.iter().copied().filter(|group| made_keys[*group].2.is_none()).collect();
        let mut by_text: HashMap<&str, Vec<usize>> = HashMap::new();
        for (group, (_, _, text)) in made_keys.iter().enumerate() {
            let Some(text) = text.as_deref().filter(|_| exact) else { continue };
            by_text.entry(text).or_insert_with(|| unknown.clone()).push(group);
        }
        let candidates = |group: usize| match wanted_keys[group].2.as_deref().filter(|_| exact) {
            Some(text) => by_text.get(text).unwrap_or(&unknown).as_slice(),
            None => &all,
        };
        let fits = |expected: usize, made_at: usize| matches(self, &self.calls[expected], made[made_at].1);
        GroupMatching::new(wanted, there, candidates, fits)?.assign()
    }

    /// Explains why the calls do not match. `pairs` has the expected call for each actual call.
    fn compare(&self, made: &MadeCalls<'_>, pairs: Vec<Option<usize>>) -> CallComparison {
        let is_ordered = matches!(self.order, SequenceMatch::Strict | SequenceMatch::InOrder);
        // A call at another position is not missing.
        let in_any_order = match is_ordered {
            true => self.pairs_in_any_order(made, Self::matches).unwrap_or_else(|_| pairs.clone()),
            false => pairs.clone(),
        };
        let mut is_paired = vec![false; self.calls.len()];
        in_any_order.iter().flatten().for_each(|expected| is_paired[*expected] = true);
        let missing: Vec<&SequenceCall> = match self.order {
            SequenceMatch::Subset => Vec::new(),
            _ => {
                self.calls.iter().zip(is_paired).filter(|(_, paired)| !paired).map(|(call, _)| call).collect()
            }
        };
        let allows_others = matches!(self.order, SequenceMatch::InOrder | SequenceMatch::Superset);
        let unpaired =
            || made.iter().zip(&in_any_order).filter(|(_, pair)| pair.is_none()).map(|(made, _)| *made);
        let unexpected = if allows_others { 0 } else { unpaired().count() };

        let mut parts = Vec::new();
        parts.extend((!missing.is_empty()).then(|| {
            let calls = if self.calls.len() == 1 { "call" } else { "calls" };
            format!("{} of {} expected {calls} missing", missing.len(), self.calls.len())
        }));
        parts.extend((unexpected > 0).then(|| format_count(unexpected, "unexpected call")));
        parts.extend(made.is_empty().then(|| "no tool calls".to_string()));
        if missing.is_empty() && unexpected == 0 {
            parts.push(self.order_problem(made, &pairs));
        }
        let missing_tools: BTreeSet<&str> = missing.iter().map(|call| call.name.as_str()).collect();
        let is_missing = |call: &AgentToolCall| missing_tools.iter().any(|tool| call.is_named(tool));
        // Calls that are allowed explain nothing, unless they could be the missing ones.
        let others: Vec<(usize, &AgentToolCall, bool)> = match self.order {
            SequenceMatch::Strict | SequenceMatch::InOrder if missing.is_empty() && unexpected == 0 => {
                made.iter().map(|(turn, call)| (*turn, *call, false)).collect()
            }
            SequenceMatch::InOrder | SequenceMatch::Superset => unpaired()
                .filter(|(_, call)| is_missing(call))
                .map(|(turn, call)| (turn, call, false))
                .collect(),
            SequenceMatch::Strict | SequenceMatch::Unordered | SequenceMatch::Subset => {
                unpaired().map(|(turn, call)| (turn, call, true)).collect()
            }
        };
        let (lines, unlisted) = list_calls(others.into_iter());
        let compared = self.compare_missing(&missing, unpaired().collect());
        let omitted = unlisted + missing.len() - compared.len();
        CallComparison { summary: parts.join(", "), missing: compared, lines, omitted }
    }

    /// Compares each missing call with the most similar call of its tool that no other one was compared with.
    fn compare_missing(
        &self,
        missing: &[&SequenceCall],
        mut free: Vec<(usize, &AgentToolCall)>,
    ) -> Vec<MissingCall> {
        let compare = |expected: &&SequenceCall| {
            let of_tool = free.iter().copied().filter(|(_, call)| call.is_named(&expected.name));
            let arguments = expected.arguments.as_ref();
            let similarity = |call: &AgentToolCall| {
                arguments.map_or_else(Similarity::default, |wanted| self.arguments.similarity(call, wanted))
            };
            let nearest = nearest_call(of_tool, similarity).map(|(turn, call)| {
                free.retain(|(_, other)| other.id != call.id);
                let mut list = DifferenceList::new(ComparedPart::Arguments);
                if let Some(arguments) = arguments {
                    self.arguments.add_differences(call, arguments, &mut list);
                }
                list.of_call(turn, call)
            });
            MissingCall { expected: Some(self.format_call(expected)), nearest }
        };
        missing.iter().take(MAX_COMPARED_CALLS).map(compare).collect()
    }

    /// Describes the first call that is not in the expected order.
    fn order_problem(&self, made: &MadeCalls<'_>, pairs: &[Option<usize>]) -> String {
        let name = |at: usize| self.calls.get(at).map_or("", |call| &call.name);
        let problem = match self.order {
            SequenceMatch::Strict => pairs.iter().position(Option::is_none).map(|at| {
                format!(
                    "call {} is {} in turn {}, expected {}",
                    at + 1,
                    made[at].1.name,
                    made[at].0,
                    name(at)
                )
            }),
            _ => {
                let reached = pairs.iter().flatten().count();
                let turn = pairs.iter().rposition(Option::is_some).map(|at| made[at].0);
                let after = turn.map(|turn| format!(" after {} in turn {turn}", name(reached - 1)));
                Some(format!("no call of {}{}", name(reached), after.unwrap_or_default()))
            }
        };
        format!("the expected calls in another order: {}", problem.unwrap_or_default())
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
}
