//! Any AG-UI stream is processed without a panic, and the recorded trace is consistent.

#![no_main]

use std::collections::HashSet;

use hotseat_targets::ag_ui::{ProtocolStrictness, fold_streams};
use hotseat_trace::{Event, Payload, TimeOffset, TracedConversation};
use libfuzzer_sys::fuzz_target;

// Byte 1 ends a turn, byte 0 ends a stream within a turn.
fuzz_target!(|input: &[u8]| {
    let streams = |turn: &'_ [u8]| turn.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let turns: Vec<Vec<Vec<u8>>> = input.split(|byte| *byte == 1).map(streams).collect();
    for strictness in [ProtocolStrictness::Lenient, ProtocolStrictness::Strict] {
        let mut calls = HashSet::new();
        let (recorded, state) = fold_streams(&turns, strictness);
        let mut conversation = TracedConversation::default();
        for (place, payload) in recorded.into_iter().enumerate() {
            let sequence = place as u64 + 1;
            let event = Event { sequence, offset: TimeOffset(sequence), timestamp: 0, payload };
            conversation.apply(&event);
            match event.payload {
                Payload::ToolInvoked(call) => assert!(calls.insert(call.tool_call_id), "an id for two calls"),
                Payload::ToolArguments(of) => {
                    assert!(calls.contains(&of.tool_call_id), "arguments of no call")
                }
                Payload::ToolCompleted(of) => {
                    assert!(calls.contains(&of.tool_call_id), "a result of no call")
                }
                _ => {}
            }
        }
        if let Some(folded) = conversation.state {
            assert_eq!(*folded, state, "the state of the trace differs");
        }
    }
});
