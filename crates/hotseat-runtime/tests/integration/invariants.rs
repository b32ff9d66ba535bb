//! Each invariant can be violated: every test damages a valid trace in one place and expects that invariant
//! to report it.

use crate::kit::{Test, subjects};
use hotseat_runtime::conversation::ApprovalVerdict;
use hotseat_trace::{EventRecord, InvariantOptions, Payload, Trace, check_invariants};

fn records(test: &Test) -> Vec<EventRecord> {
    test.run().trace.all().to_vec()
}

/// Names of violated invariants.
fn violated_invariants(records: Vec<EventRecord>, options: InvariantOptions) -> Vec<&'static str> {
    let mut names: Vec<_> =
        check_invariants(&Trace::new(records), options).iter().map(|v| v.invariant).collect();
    names.dedup();
    names
}

/// Removes events of this type and renumbers the rest.
fn without_event(test: &Test, name: &str) -> Vec<&'static str> {
    let mut kept: Vec<_> =
        records(test).into_iter().filter(|record| record.payload.type_name() != name).collect();
    for (index, record) in kept.iter_mut().enumerate() {
        record.event.sequence = index as u64 + 1;
    }
    violated_invariants(kept, InvariantOptions { allow_failed_turns: true, deny_tool_failures: false })
}

/// Duplicates every event of this type.
fn with_duplicates(test: &Test, name: &str) -> Vec<&'static str> {
    let twice = |record: EventRecord| {
        if record.payload.type_name() == name { vec![record.clone(), record] } else { vec![record] }
    };
    let mut all: Vec<_> = records(test).into_iter().flat_map(twice).collect();
    for (index, record) in all.iter_mut().enumerate() {
        record.event.sequence = index as u64 + 1;
    }
    violated_invariants(all, InvariantOptions { allow_failed_turns: true, deny_tool_failures: false })
}

/// Swaps the first events of two types.
fn with_swapped_events(test: &Test, one: &str, other: &str) -> Vec<&'static str> {
    let mut all = records(test);
    let place = |name: &str| all.iter().position(|record| record.payload.type_name() == name).unwrap();
    let (a, b) = (place(one), place(other));
    all.swap(a, b);
    for (index, record) in all.iter_mut().enumerate() {
        record.event.sequence = index as u64 + 1;
    }
    violated_invariants(all, InvariantOptions { allow_failed_turns: true, deny_tool_failures: false })
}

#[test]
fn detects_missing_event() {
    let (sync, slow, one) = (subjects::sync_tool(), subjects::async_tool(), subjects::greeter());
    let agents = subjects::delegate();
    let asked = subjects::approval(ApprovalVerdict::Approved { input: None });
    let table = [
        (&one, "turn.completed", "turns_end"),
        (&sync, "tool.completed", "sync_calls_answered"),
        (&slow, "turn.async_completed", "async_calls_completed"),
        (&one, "context_assembly.started", "context_assembled"),
        (&one, "memory_extraction.started", "memory_extracted"),
        (&one, "llm.call.completed", "llm_calls_paired"),
        (&one, "memory_extraction.completed", "hooks_paired"),
        (&sync, "turn.resumed", "waits_resumed"),
        (&sync, "move.recorded", "calls_settled"),
        (&agents, "agent.call.completed", "agent_calls_paired"),
        (&one, "message.user", "messages_belong"),
        (&one, "turn.started", "ids_known"),
        (&asked, "interrupt.answered", "interrupts_answered"),
        (&asked, "interrupt.raised", "ids_known"),
    ];
    for (test, event, invariant) in table {
        let found = without_event(test, event);
        assert!(found.contains(&invariant), "without {event}: {found:?}");
    }
    assert!(without_event(&sync, "tool.completed").contains(&"nothing_outstanding"));
}

#[test]
fn detects_duplicate_event() {
    let sync = subjects::sync_tool();
    for (event, invariant) in [
        ("move.recorded", "moves_counted"),
        ("turn.completed", "nothing_after_end"),
        ("llm.call.started", "llm_calls_paired"),
        ("tool.completed", "calls_settled"),
        ("message.assistant", "ids_known"),
        ("turn.resumed", "waits_resumed"),
    ] {
        let found = with_duplicates(&sync, event);
        assert!(found.contains(&invariant), "{event} twice: {found:?}");
    }
    let asked = subjects::approval(ApprovalVerdict::Approved { input: None });
    for (event, invariant) in
        [("interrupt.raised", "ids_known"), ("interrupt.answered", "interrupts_answered")]
    {
        let found = with_duplicates(&asked, event);
        assert!(found.contains(&invariant), "{event} twice: {found:?}");
    }
}

#[test]
fn every_order_rule_can_be_violated() {
    let (sync, slow, one, flow) =
        (subjects::sync_tool(), subjects::async_tool(), subjects::greeter(), subjects::workflow_tool());
    let (agent, failed) = (subjects::delegate(), subjects::extraction_failure());
    let asked = subjects::approval(ApprovalVerdict::Approved { input: None });
    for (test, first, then) in [
        (&one, "turn.started", "message.user"),
        (&one, "message.user", "context_assembly.started"),
        (&one, "context_assembly.started", "context_assembly.completed"),
        (&one, "context_assembly.completed", "llm.call.started"),
        (&one, "llm.call.started", "llm.call.completed"),
        (&one, "llm.call.completed", "message.assistant"),
        (&one, "message.assistant", "move.recorded"),
        (&one, "move.recorded", "memory_extraction.started"),
        (&one, "memory_extraction.started", "turn.completed"),
        (&one, "memory_extraction.completed", "turn.completed"),
        (&sync, "llm.call.completed", "tool.invoked"),
        (&sync, "tool.invoked", "turn.waiting"),
        (&sync, "turn.waiting", "tool.completed"),
        (&sync, "tool.completed", "move.recorded"),
        (&sync, "move.recorded", "turn.resumed"),
        (&sync, "turn.waiting", "turn.resumed"),
        (&slow, "tool.invoked", "turn.async_tracked"),
        (&slow, "tool.completed", "turn.async_completed"),
        (&flow, "turn.waiting", "tool.completed"),
        (&agent, "tool.invoked", "agent.call.started"),
        (&agent, "agent.call.started", "agent.call.context"),
        (&agent, "agent.call.context", "turn.waiting"),
        (&agent, "agent.call.completed", "tool.completed"),
        (&failed, "memory_extraction.failed", "turn.completed"),
        (&asked, "tool.invoked", "interrupt.raised"),
        (&asked, "interrupt.raised", "interrupt.answered"),
        (&asked, "interrupt.answered", "turn.waiting"),
    ] {
        let found = with_swapped_events(test, first, then);
        assert!(found.contains(&"ordered"), "{then} before {first}: {found:?}");
    }
}

#[test]
fn detects_zero_or_skipped_numbers() {
    let mut zero = records(&subjects::greeter());
    zero[0].event.sequence = 0;
    assert!(violated_invariants(zero, InvariantOptions::default()).contains(&"sequences_positive"));
    let mut gap = records(&subjects::greeter());
    gap.remove(3);
    assert!(violated_invariants(gap, InvariantOptions::default()).contains(&"sequences_contiguous"));
}

#[test]
fn options_allow_and_forbid_events() {
    let failed = records(&subjects::context_failure());
    assert!(violated_invariants(failed.clone(), InvariantOptions::default()).contains(&"no_errors"));
    assert_eq!(
        violated_invariants(failed, InvariantOptions { allow_failed_turns: true, deny_tool_failures: false }),
        [""; 0]
    );
    let tool = records(&subjects::tool_failure());
    let strict = InvariantOptions { allow_failed_turns: false, deny_tool_failures: true };
    assert_eq!(violated_invariants(tool.clone(), strict), ["no_tool_failures"]);
    assert_eq!(violated_invariants(tool, InvariantOptions::default()), [""; 0]);
}

#[test]
fn detects_extraction_of_failed_turn() {
    let mut all = records(&subjects::greeter());
    for record in &mut all {
        if let Payload::TurnCompleted(end) = &record.event.payload {
            let error = hotseat_trace::ErrorInfo {
                code: Some("LLM_FAILED".into()),
                message: "no".into(),
                retriable: None,
            };
            record.event.payload = hotseat_trace::TurnFailed { turn_id: end.turn_id.clone(), error }.into();
        }
    }
    let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    assert_eq!(violated_invariants(all, options), ["failed_extract_nothing"]);
}

#[test]
fn violation_shows_surrounding_events() {
    let mut all = records(&subjects::greeter());
    all.pop();
    let panic = std::panic::catch_unwind(|| {
        hotseat_trace::assert_conversation_invariants(&Trace::new(all), InvariantOptions::default());
    });
    let text = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("turn c1-t1 did not reach a terminal state: active"), "{text}");
    assert!(text.contains(">    2") && text.contains("turn.started"), "{text}");
}
