//! How every event type is written: one line each, with all of its members.
//!
//! Traces are kept and read by other versions and by other programs, so a line here changes only on purpose. What
//! has no line, has lost a member or calls one otherwise fails.

use std::collections::BTreeSet;

use hotseat_trace::{Event, Offset, Payload};
use serde_json::Value;

const EVENTS: &str = include_str!("golden/events.jsonl");

/// Type name and members of each line, as text.
fn lines() -> impl Iterator<Item = (String, Value, &'static str)> {
    EVENTS.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["type"].as_str().unwrap().to_string(), value["payload"].clone(), line)
    })
}

#[test]
fn every_type_is_written_as_it_always_was() {
    for (name, members, line) in lines() {
        let payload =
            Payload::from_json(&name, members.clone()).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!matches!(payload, Payload::Other(..)), "{name} is not known");
        assert_eq!(payload.to_json().unwrap(), members, "{name}");
        let event = Event { sequence: 1, offset: Offset(0), timestamp: 0, payload };
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!((written["type"].as_str(), &written["payload"]), (Some(name.as_str()), &members));
        assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
    }
}

#[test]
fn every_type_has_a_line() {
    let pinned: Vec<String> = lines().map(|(name, ..)| name).collect();
    let distinct: BTreeSet<&str> = pinned.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), pinned.len(), "one line each");
    let known: BTreeSet<&str> = Payload::TYPES.iter().copied().collect();
    assert_eq!(distinct, known);
}

#[test]
fn a_member_that_is_not_there_changes_no_other() {
    for (name, members, _) in lines() {
        for missing in members.as_object().unwrap().keys() {
            let mut without = members.clone();
            without.as_object_mut().unwrap().remove(missing);
            let Ok(payload) = Payload::from_json(&name, without.clone()) else { continue };
            let mut written = payload.to_json().unwrap();
            if missing == "async" {
                // Whether a call is asynchronous is always said.
                assert_eq!(written.as_object_mut().unwrap().remove("async"), Some(Value::Bool(false)));
            }
            assert_eq!(written, without, "{name} without {missing}");
        }
    }
}
