//! The first divergence of two conversations.

use serde_json::Value;

use super::cases::{ReportAttempt, ReportCall, ReportTurn};
use hotseat_checks::read_json;
use hotseat_trace::{PathStep, first_differences, json_equal};

/// First difference between two conversations.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// Number of the turn, from 1.
    pub turn: usize,
    /// Number of the call in the turn, from 1; `None` if the difference is not at a call.
    pub call: Option<usize>,
    /// Step of the first conversation.
    pub before: DivergentStep,
    /// Step of the second conversation.
    pub after: DivergentStep,
}

/// Step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum DivergentStep {
    /// Input of the user.
    User(String),
    /// Tool call.
    Call(ReportCall),
    /// Final answer of the agent, possibly empty.
    Answer(String),
    /// Failure of the turn.
    Error(String),
    /// End of the conversation.
    End,
}

/// Finds the first divergence in actions: a user input, a tool call, its arguments, or the end of a turn.
/// Agents often rephrase the same content, so the text of answers is compared only if there is no other
/// difference.
pub fn find_divergence(before: &ReportAttempt, after: &ReportAttempt) -> Option<Divergence> {
    let longest = before.turns.len().max(after.turns.len());
    let done =
        (0..longest).find_map(|at| divergence_in_turn(at + 1, before.turns.get(at), after.turns.get(at)));
    done.or_else(|| {
        let both = before.turns.iter().zip(&after.turns).enumerate();
        both.into_iter().find_map(|(at, (before, after))| {
            let (one, other) = (before.answer.as_deref(), after.answer.as_deref());
            (!same_text(one, other)).then(|| Divergence {
                turn: at + 1,
                call: None,
                before: answer_step(before),
                after: answer_step(after),
            })
        })
    })
}

fn divergence_in_turn(
    number: usize,
    before: Option<&ReportTurn>,
    after: Option<&ReportTurn>,
) -> Option<Divergence> {
    let begins = |turn: Option<&ReportTurn>| match turn {
        Some(turn) => DivergentStep::User(turn.user.clone().unwrap_or_default()),
        None => DivergentStep::End,
    };
    let at = |call, before, after| Some(Divergence { turn: number, call, before, after });
    let (Some(one), Some(other)) = (before, after) else { return at(None, begins(before), begins(after)) };
    if !same_text(one.user.as_deref(), other.user.as_deref()) {
        return at(None, begins(before), begins(after));
    }
    for place in 0..one.calls.len().max(other.calls.len()) {
        let step = |turn: &ReportTurn| {
            turn.calls.get(place).map_or_else(|| turn_end(turn), |call| DivergentStep::Call(call.clone()))
        };
        match (one.calls.get(place), other.calls.get(place)) {
            (Some(a), Some(b)) if a.tool == b.tool && json_equal(&a.arguments, &b.arguments) => {}
            _ => return at(Some(place + 1), step(one), step(other)),
        }
    }
    match (&one.error, &other.error) {
        (None, None) | (Some(_), Some(_)) => None,
        _ => at(None, turn_end(one), turn_end(other)),
    }
}

/// Returns the end of a turn after its calls.
fn turn_end(turn: &ReportTurn) -> DivergentStep {
    turn.error.clone().map_or_else(|| answer_step(turn), DivergentStep::Error)
}

fn answer_step(turn: &ReportTurn) -> DivergentStep {
    DivergentStep::Answer(turn.answer.clone().unwrap_or_default())
}

/// Returns true if two texts are equal: JSON by value, other text regardless of white space.
fn same_text(one: Option<&str>, other: Option<&str>) -> bool {
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    one == other
        || one.split_whitespace().eq(other.split_whitespace())
        || matches!((read_json(one), read_json(other)), (Ok(a), Ok(b)) if json_equal(&a, &b))
}

/// Lists up to `most` differences of two values: `flights[0].date: "2024-05-20" → "2024-05-21"`.
pub fn describe_differences(before: &Value, after: &Value, most: usize) -> Vec<String> {
    let (mut all, count) = first_differences(before, after, most, |path, before, after| {
        let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_string(), Value::to_string);
        format!("{}: {} → {}", dotted_path(path), shown(before), shown(after))
    });
    let more = count - all.len();
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

/// Writes a path within arguments: `flights[0].date`.
fn dotted_path(path: &[PathStep<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Key(key) if text.is_empty() => text.push_str(key),
            PathStep::Key(key) => text.extend([".", key]),
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if text.is_empty() { "arguments".to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use serde_json::json;

    use super::*;

    fn turn(user: &str, calls: &[(&str, Value)], answer: &str) -> ReportTurn {
        let call = |(tool, arguments): &(&str, Value)| ReportCall {
            tool: (*tool).into(),
            arguments: arguments.clone(),
        };
        ReportTurn {
            user: Some(user.into()),
            calls: calls.iter().map(call).collect(),
            answer: Some(answer.into()),
            ..ReportTurn::default()
        }
    }

    fn part(
        before: Vec<ReportTurn>,
        after: Vec<ReportTurn>,
    ) -> Option<(usize, Option<usize>, DivergentStep, DivergentStep)> {
        let of = |turns| ReportAttempt { turns, ..ReportAttempt::default() };
        find_divergence(&of(before), &of(after)).map(|at| (at.turn, at.call, at.before, at.after))
    }

    fn call(tool: &str, arguments: Value) -> DivergentStep {
        DivergentStep::Call(ReportCall { tool: tool.into(), arguments })
    }

    #[test]
    fn actions_take_precedence_over_text() {
        let (find, book) = (("find", json!({"to": "SEA"})), ("book", json!({"n": 1})));
        let first = turn("hi", &[find.clone(), book.clone()], "Booked.");
        assert_eq!(
            part(vec![turn("hi", from_ref(&find), "a")], vec![turn("hi", from_ref(&find), " a ")]),
            None
        );
        assert_eq!(
            part(
                vec![turn("hi", &[], "One."), turn("go", from_ref(&find), "x")],
                vec![turn("hi", &[], "Two."), turn("go", &[], "x")]
            ),
            Some((2, Some(1), call("find", find.1.clone()), DivergentStep::Answer("x".into()))),
            "words differ before, and calls tell more"
        );
        assert_eq!(
            part(vec![first], vec![turn("hi", &[find.clone(), ("book", json!({"n": 2}))], "Booked.")]),
            Some((1, Some(2), call("book", json!({"n": 1})), call("book", json!({"n": 2}))))
        );
        assert_eq!(
            part(vec![turn("hi", &[], "One.")], vec![turn("hi", &[], "Two.")]),
            Some((1, None, DivergentStep::Answer("One.".into()), DivergentStep::Answer("Two.".into())))
        );
        assert_eq!(
            part(vec![turn("hi", &[], r#"{"a":1,"b":2}"#)], vec![turn("hi", &[], r#"{"b":2.0,"a":1}"#)]),
            None
        );
    }

    #[test]
    fn diverges_at_an_end_or_failure() {
        let one = || turn("hi", &[], "a");
        assert_eq!(
            part(vec![one()], vec![one(), turn("more", &[], "b")]),
            Some((2, None, DivergentStep::End, DivergentStep::User("more".into())))
        );
        assert_eq!(
            part(vec![one()], vec![ReportTurn { error: Some("timeout".into()), answer: None, ..one() }]),
            Some((1, None, DivergentStep::Answer("a".into()), DivergentStep::Error("timeout".into())))
        );
        assert_eq!(
            part(vec![one()], vec![turn("hello", &[], "a")]),
            Some((1, None, DivergentStep::User("hi".into()), DivergentStep::User("hello".into())))
        );
    }

    #[test]
    fn differences_include_paths() {
        let before = json!({"to": "SEA", "bags": [1, {"kg": 20}], "same": 1.0});
        let after = json!({"to": "JFK", "bags": [1, {"kg": 23}, 3], "same": 1, "new": true});
        assert_eq!(
            describe_differences(&before, &after, 3),
            [r#"to: "SEA" → "JFK""#, "bags[1].kg: 20 → 23", "bags[2]: nothing → 3", "and 1 more"]
        );
        assert_eq!(describe_differences(&json!("a"), &json!("b"), 3), [r#"arguments: "a" → "b""#]);
    }
}
