//! Mutation test: every event of fifteen traces is deleted, duplicated, swapped with its neighbour, and
//! altered member by member. Each mutant violates an invariant or is listed in a table with the reason why it
//! is valid.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::subjects;
use hotseat_runtime::conversation::ApprovalVerdict;
use hotseat_trace::{EventRecord, InvariantOptions, Trace, check_invariants};
use serde_json::Value;

const OPTIONS: InvariantOptions = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };

/// Undetectable mutants with the reason. A star matches one word or the rest of a word.
const UNDETECTABLE_MUTANTS: &[(&str, &str)] = &[
    ("swapped apart * *", "two turns or runs go on beside each other, and neither waits for the other"),
    ("swapped message.assistant interrupt.answered", "a person may answer before the words are out"),
    (
        "deleted operation.tokens.status_changed",
        "the run of a token that failed fails itself, which says the same",
    ),
    ("altered * /error/*", "what failed says why, and says it once"),
    ("altered message.user /content", "only the user knows what was said"),
    ("altered turn.started /callerId", "only the caller knows who it is"),
    ("altered turn.started /agentId", "an agent that joined is named by its turn"),
    ("altered message.assistant /subagent", "as the agent of its turn"),
    (
        "altered executor.action.* /*",
        "what definitions make of inputs and outputs, which are no part of a trace",
    ),
    ("altered executor.task.started /*", "as actions; steps that a condition passes over leave no event"),
    (
        "altered executor.task.completed /output",
        "of a node of a workflow, whose mapping is in the definition",
    ),
    ("altered workflow.started /input", "mappings of the definition"),
    ("altered workflow.completed /output", "of a hook, whose result is the request that no event holds"),
    ("altered operation.tokens.created /nodeRef", "nodes are in the definition"),
    ("altered agent.call.context /input", "mappings of the definition"),
    ("altered conversation.created /parent/*", "said once, for whoever reads the child alone"),
    ("altered interrupt.raised /message", "worded by the definition"),
    ("altered interrupt.answered /*", "what a person said, once"),
    ("altered memory.written /*", "what was written, once"),
    ("altered context_assembly.completed /tokenCount", "a measure"),
    ("altered llm.call.started /*", "measures, and the profile of the definition"),
    (
        "altered llm.call.completed /*",
        "measures, and the words of the provider; a last reply may call what is not made",
    ),
];

fn traces() -> Vec<(&'static str, Vec<EventRecord>)> {
    let approval = subjects::approval(ApprovalVerdict::Approved { input: None });
    let all = subjects::all().into_iter().chain([("15 approval", approval)]);
    all.map(|(name, test)| (name, test.run().trace.all().to_vec())).collect()
}

fn is_caught(mut records: Vec<EventRecord>) -> bool {
    // Renumbered, since a gap would always be detected.
    for (index, record) in records.iter_mut().enumerate() {
        record.event.sequence = index as u64 + 1;
    }
    !check_invariants(&Trace::new(records), OPTIONS).is_empty()
}

/// A different value of the same type.
fn altered_value(value: &Value) -> Value {
    match value {
        Value::Null => Value::from("altered"),
        Value::Bool(value) => Value::from(!value),
        Value::Number(number) => Value::from(number.as_u64().map_or(7, |number| number + 1)),
        Value::String(text) => Value::from(format!("{text}x")),
        Value::Array(_) => Value::Array(vec![Value::from("altered")]),
        Value::Object(_) => serde_json::json!({"altered": true}),
    }
}

/// Member paths of a value, including nested structures of events.
fn members(value: &Value, prefix: &str, into: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    for (name, inner) in object {
        let path = format!("{prefix}/{name}");
        // Tool arguments and results are arbitrary.
        let is_foreign =
            matches!(name.as_str(), "input" | "output" | "result" | "value" | "payload" | "state");
        if inner.is_object() && !(is_foreign && name != "result") {
            members(inner, &path, into);
        }
        into.push(path);
    }
}

/// Returns true if two events belong to different turns or runs.
fn are_unrelated(one: &EventRecord, other: &EventRecord) -> bool {
    one.execution != other.execution || one.payload.turn_id() != other.payload.turn_id()
}

fn mutants(records: &[EventRecord]) -> Vec<(String, Vec<EventRecord>)> {
    let mut mutants = Vec::new();
    for (place, record) in records.iter().enumerate() {
        let name = record.payload.type_name();
        let mut deleted = records.to_vec();
        deleted.remove(place);
        mutants.push((format!("deleted {name}"), deleted));
        let mut doubled = records.to_vec();
        doubled.insert(place, record.clone());
        mutants.push((format!("doubled {name}"), doubled));
        if let Some(next) = records.get(place + 1) {
            let mut swapped = records.to_vec();
            swapped.swap(place, place + 1);
            let apart = if are_unrelated(record, next) { "apart " } else { "" };
            mutants.push((format!("swapped {apart}{name} {}", next.payload.type_name()), swapped));
        }
        let whole = serde_json::to_value(record).unwrap();
        let mut paths = Vec::new();
        members(&whole["payload"], "", &mut paths);
        for path in paths {
            let at = format!("/payload{path}");
            let mut altered = whole.clone();
            let slot = altered.pointer_mut(&at).unwrap();
            *slot = altered_value(slot);
            // Unreadable records are not a trace.
            if let Ok(altered) = serde_json::from_value::<EventRecord>(altered) {
                let mut all = records.to_vec();
                all[place] = altered;
                mutants.push((format!("altered {name} {path}"), all));
            }
        }
    }
    mutants
}

#[test]
fn every_mutant_is_caught_or_listed() {
    let (mut survivors, mut caught, mut total) =
        (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new(), 0);
    for (name, records) in traces() {
        assert!(!is_caught(records.clone()), "{name} is sound");
        for (kind, mutant) in mutants(&records) {
            total += 1;
            let into = if is_caught(mutant) { &mut caught } else { &mut survivors };
            *into.entry(kind).or_default() += 1;
        }
    }
    let mut unused: BTreeSet<&str> = UNDETECTABLE_MUTANTS.iter().map(|(pattern, _)| *pattern).collect();
    let mut unlisted = Vec::new();
    for (kind, count) in &survivors {
        match UNDETECTABLE_MUTANTS.iter().find(|(pattern, _)| matches_pattern(pattern, kind)) {
            Some((pattern, _)) => drop(unused.remove(pattern)),
            None => {
                unlisted.push(format!("{count:>4} of {:>4} {kind}", count + caught.get(kind).unwrap_or(&0)))
            }
        }
    }
    let left: usize = survivors.values().sum();
    assert!(unlisted.is_empty(), "not caught and not listed:\n{}", unlisted.join("\n"));
    assert!(unused.is_empty(), "listed, and caught all the same: {unused:#?}");
    assert!(total > 5000, "{total}, of which {left} cannot be told from a sound trace");
}

/// Returns true if a pattern matches a kind of mutant; a star matches one word.
fn matches_pattern(pattern: &str, kind: &str) -> bool {
    let (mut wanted, mut words) = (pattern.split(' '), kind.split(' '));
    loop {
        match (wanted.next(), words.next()) {
            (None, None) => return true,
            (Some(wanted), Some(word)) if wanted == "*" || wanted == word => {}
            (Some(wanted), Some(word)) => match wanted.strip_suffix('*') {
                Some(start) if word.starts_with(start) => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}
