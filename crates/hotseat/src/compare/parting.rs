//! The first step at which two conversations part.

use serde_json::{Map, Value};

use super::cases::{Attempt, Call, Turn};
use crate::checks::{equal, read_json};

/// Where two conversations part.
#[derive(Debug, Clone, PartialEq)]
pub struct Parting {
    /// In which turn, from 1.
    pub turn: usize,
    /// At which call of the turn, from 1; none where it is not at a call.
    pub call: Option<usize>,
    /// What the first conversation does there.
    pub before: Step,
    /// What the second one does there.
    pub after: Step,
}

/// A step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The user says this.
    User(String),
    /// A tool is called.
    Call(Call),
    /// The agent calls no more tools and says this, or nothing.
    Answer(String),
    /// The turn fails.
    Error(String),
    /// The conversation is over.
    Over,
}

/// Where two conversations part in what is done: in what the user says, in a tool that is called, in its arguments, or
/// in how a turn ends. Agents say the same in other words all the time, so words are compared only where nothing else
/// differs.
pub fn parting(before: &Attempt, after: &Attempt) -> Option<Parting> {
    let longest = before.turns.len().max(after.turns.len());
    let done = (0..longest).find_map(|at| in_turn(at + 1, before.turns.get(at), after.turns.get(at)));
    done.or_else(|| {
        let both = before.turns.iter().zip(&after.turns).enumerate();
        both.into_iter().find_map(|(at, (before, after))| {
            let (one, other) = (before.answer.as_deref(), after.answer.as_deref());
            (!says_the_same(one, other)).then(|| Parting {
                turn: at + 1,
                call: None,
                before: answer(before),
                after: answer(after),
            })
        })
    })
}

fn in_turn(number: usize, before: Option<&Turn>, after: Option<&Turn>) -> Option<Parting> {
    let begins = |turn: Option<&Turn>| match turn {
        Some(turn) => Step::User(turn.user.clone().unwrap_or_default()),
        None => Step::Over,
    };
    let at = |call, before, after| Some(Parting { turn: number, call, before, after });
    let (Some(one), Some(other)) = (before, after) else { return at(None, begins(before), begins(after)) };
    if !says_the_same(one.user.as_deref(), other.user.as_deref()) {
        return at(None, begins(before), begins(after));
    }
    for place in 0..one.calls.len().max(other.calls.len()) {
        let step =
            |turn: &Turn| turn.calls.get(place).map_or_else(|| end(turn), |call| Step::Call(call.clone()));
        match (one.calls.get(place), other.calls.get(place)) {
            (Some(a), Some(b)) if a.tool == b.tool && equal(&a.arguments, &b.arguments) => {}
            _ => return at(Some(place + 1), step(one), step(other)),
        }
    }
    match (&one.error, &other.error) {
        (None, None) | (Some(_), Some(_)) => None,
        _ => at(None, end(one), end(other)),
    }
}

/// How a turn ends behind its calls.
fn end(turn: &Turn) -> Step {
    turn.error.clone().map_or_else(|| answer(turn), Step::Error)
}

fn answer(turn: &Turn) -> Step {
    Step::Answer(turn.answer.clone().unwrap_or_default())
}

/// Whether two texts say the same: JSON by its value, words whatever the blanks between them.
fn says_the_same(one: Option<&str>, other: Option<&str>) -> bool {
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    one == other
        || one.split_whitespace().eq(other.split_whitespace())
        || matches!((read_json(one), read_json(other)), (Ok(a), Ok(b)) if equal(&a, &b))
}

/// Where two values differ, in short: `flights[0].date: "2024-05-20" → "2024-05-21"`. At most so many places.
pub fn differences(before: &Value, after: &Value, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    collect(String::new(), Some(before), Some(after), &mut all);
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

fn collect(path: String, before: Option<&Value>, after: Option<&Value>, all: &mut Vec<String>) {
    match (before, after) {
        (Some(before), Some(after)) if equal(before, after) => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let inner = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            for key in keys(before, after) {
                collect(inner(key), before.get(key), after.get(key), all);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for at in 0..before.len().max(after.len()) {
                collect(format!("{path}[{at}]"), before.get(at), after.get(at), all);
            }
        }
        (before, after) => {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_string(), Value::to_string);
            let path = if path.is_empty() { "arguments" } else { &path };
            all.push(format!("{path}: {} → {}", shown(before), shown(after)));
        }
    }
}

/// The keys of both, each once, those of the first one first.
fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> impl Iterator<Item = &'a str> {
    let more = after.keys().filter(|key| !before.contains_key(*key));
    before.keys().chain(more).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use serde_json::json;

    use super::*;

    fn turn(user: &str, calls: &[(&str, Value)], answer: &str) -> Turn {
        let call =
            |(tool, arguments): &(&str, Value)| Call { tool: (*tool).into(), arguments: arguments.clone() };
        Turn {
            user: Some(user.into()),
            calls: calls.iter().map(call).collect(),
            answer: Some(answer.into()),
            error: None,
        }
    }

    fn part(before: Vec<Turn>, after: Vec<Turn>) -> Option<(usize, Option<usize>, Step, Step)> {
        let of = |turns| Attempt { turns, ..Attempt::default() };
        parting(&of(before), &of(after)).map(|at| (at.turn, at.call, at.before, at.after))
    }

    fn call(tool: &str, arguments: Value) -> Step {
        Step::Call(Call { tool: tool.into(), arguments })
    }

    #[test]
    fn what_is_done_goes_before_what_is_said() {
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
            Some((2, Some(1), call("find", find.1.clone()), Step::Answer("x".into()))),
            "words differ before, and calls tell more"
        );
        assert_eq!(
            part(vec![first], vec![turn("hi", &[find.clone(), ("book", json!({"n": 2}))], "Booked.")]),
            Some((1, Some(2), call("book", json!({"n": 1})), call("book", json!({"n": 2}))))
        );
        assert_eq!(
            part(vec![turn("hi", &[], "One.")], vec![turn("hi", &[], "Two.")]),
            Some((1, None, Step::Answer("One.".into()), Step::Answer("Two.".into())))
        );
        assert_eq!(
            part(vec![turn("hi", &[], r#"{"a":1,"b":2}"#)], vec![turn("hi", &[], r#"{"b":2.0,"a":1}"#)]),
            None
        );
    }

    #[test]
    fn conversations_part_where_one_is_over_or_fails() {
        let one = || turn("hi", &[], "a");
        assert_eq!(
            part(vec![one()], vec![one(), turn("more", &[], "b")]),
            Some((2, None, Step::Over, Step::User("more".into())))
        );
        assert_eq!(
            part(vec![one()], vec![Turn { error: Some("timeout".into()), answer: None, ..one() }]),
            Some((1, None, Step::Answer("a".into()), Step::Error("timeout".into())))
        );
        assert_eq!(
            part(vec![one()], vec![turn("hello", &[], "a")]),
            Some((1, None, Step::User("hi".into()), Step::User("hello".into())))
        );
    }

    #[test]
    fn differences_name_their_places() {
        let before = json!({"to": "SEA", "bags": [1, {"kg": 20}], "same": 1.0});
        let after = json!({"to": "JFK", "bags": [1, {"kg": 23}, 3], "same": 1, "new": true});
        assert_eq!(
            differences(&before, &after, 3),
            [r#"to: "SEA" → "JFK""#, "bags[1].kg: 20 → 23", "bags[2]: nothing → 3", "and 1 more"]
        );
        assert_eq!(differences(&json!("a"), &json!("b"), 3), [r#"arguments: "a" → "b""#]);
    }
}
