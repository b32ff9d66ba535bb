//! Serialized form of every event type: one line each, with all members.
//!
//! Other versions and programs read stored traces, so a line changes only on purpose. The test fails for an
//! event type without a line and for removed or renamed members.

use std::collections::BTreeSet;

use hotseat_trace::{Event, Payload, TimeOffset};
use serde_json::Value;

const EVENTS: &str = include_str!("golden/events.jsonl");

/// Type name and members of each line, and its text.
fn lines() -> impl Iterator<Item = (String, Value, &'static str)> {
    EVENTS.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["type"].as_str().unwrap().to_string(), value["payload"].clone(), line)
    })
}

#[test]
fn every_type_keeps_its_serialized_form() {
    for (name, members, line) in lines() {
        let payload =
            Payload::from_json(&name, members.clone()).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!matches!(payload, Payload::Other(..)), "{name} is not known");
        assert_eq!(payload.to_json().unwrap(), members, "{name}");
        let event = Event { sequence: 1, offset: TimeOffset(0), timestamp: 0, payload };
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!((written["type"].as_str(), &written["payload"]), (Some(name.as_str()), &members));
        assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
    }
}

#[test]
fn every_type_has_a_golden_line() {
    let pinned: Vec<String> = lines().map(|(name, ..)| name).collect();
    let distinct: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), pinned.len(), "one line each");
    let known: BTreeSet<&str> = Payload::TYPES.iter().copied().collect();
    assert_eq!(distinct, known);
}

#[test]
fn missing_optional_member_changes_no_other() {
    for (name, members, _) in lines() {
        for missing in members.as_object().unwrap().keys() {
            let mut without = members.clone();
            without.as_object_mut().unwrap().remove(missing);
            let Ok(payload) = Payload::from_json(&name, without.clone()) else { continue };
            let mut written = payload.to_json().unwrap();
            if missing == "async" {
                // Every call states whether it is asynchronous.
                assert_eq!(written.as_object_mut().unwrap().remove("async"), Some(Value::Bool(false)));
            }
            assert_eq!(written, without, "{name} without {missing}");
        }
    }
}

#[test]
fn null_is_not_an_absent_member() {
    let may_be_null = [
        ("tool.invoked", "input"),
        ("tool.arguments", "input"),
        ("state.delta", "state"),
        ("agent.run.finished", "result"),
        ("subagent.finished", "result"),
        ("interrupt.answered", "payload"),
        ("role.answered", "finding"),
    ];
    for (name, member) in may_be_null {
        let mut members = lines().find(|(line, ..)| line == name).unwrap().1;
        members[member] = Value::Null;
        assert_eq!(Payload::from_json(name, members.clone()).unwrap().to_json().unwrap(), members, "{name}");
    }
}
