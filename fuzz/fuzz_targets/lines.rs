//! Any program output is processed without a panic, and the recorded trace is consistent.

#![no_main]

use std::collections::HashSet;

use hotseat_trace::Payload;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut calls = HashSet::new();
    for payload in hotseat_targets::command::fold_lines(input) {
        match payload {
            Payload::ToolInvoked(call) => assert!(calls.insert(call.tool_call_id), "an id for two calls"),
            Payload::ToolArguments(of) => assert!(calls.contains(&of.tool_call_id), "arguments of no call"),
            Payload::ToolCompleted(of) => assert!(calls.contains(&of.tool_call_id), "a result of no call"),
            _ => {}
        }
    }
});
