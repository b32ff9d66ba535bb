//! The verifier: passes on valid traces, and each of its checks can fail.

use crate::kit::subjects;
use hotseat_trace::{
    AgentCallSpec, FailureSpec, InvocationMode, MessagesSpec, MovesSpec, ToolCallSpec, Trace, TraceMoment,
    TraceVerifier, TurnsSpec, verify,
};
use serde_json::json;

fn call(name: &str, is_async: bool) -> ToolCallSpec {
    ToolCallSpec { completed: Some(true), is_async: Some(is_async), ..ToolCallSpec::new(name) }
}

#[test]
fn verifies_sync_tool() {
    let result = subjects::sync_tool().run();
    let trace = &result.trace;
    let turn = trace.turns().ids()[0].to_string();
    verify(trace)
        .completed()
        .with_turns(TurnsSpec { count: Some(1), all_completed: true, ..TurnsSpec::default() })
        .with_moves(MovesSpec {
            for_turn: Some(turn),
            min_count: Some(2),
            has_tool_call: Some("echo".into()),
            ..MovesSpec::default()
        })
        .with_tool_invocations([ToolCallSpec {
            output: Some(json!({"echoed": "hello world"})),
            ..call("echo", false)
        }])
        .with_context_assembly(true)
        .with_memory_extraction()
        .with_messages(MessagesSpec {
            user: Some(1),
            assistant: Some(1),
            last_contains: Some("hello".into()),
        })
        .with_order([
            TraceMoment::Invoked("echo"),
            TraceMoment::Event("turn.waiting"),
            TraceMoment::Event("executor.task.started"),
            TraceMoment::Event("executor.task.completed"),
            TraceMoment::Event("tool.completed"),
            TraceMoment::MoveWithResult("echo"),
            TraceMoment::Event("turn.resumed"),
            TraceMoment::LlmStarted(2),
            TraceMoment::Said("hello world"),
            TraceMoment::Event("turn.completed"),
        ])
        .assert();
}

#[test]
fn verifies_agents_and_failures() {
    let looped = subjects::loop_in().run();
    let seen = AgentCallSpec { mode: InvocationMode::LoopIn, completed: true, saw_history: true };
    verify(&looped.trace).completed().with_agent_calls([seen]).assert();
    let apart = subjects::delegate().run();
    let apart_call = AgentCallSpec { mode: InvocationMode::Delegate, completed: true, saw_history: false };
    verify(&apart.trace).completed().with_agent_calls([apart_call]).assert();
    assert!(verify(&apart.trace).with_agent_calls([seen]).run().is_err());
    let failed = subjects::context_failure().run();
    let spec = FailureSpec {
        code: Some("CONTEXT_ASSEMBLY_FAILED".into()),
        message_contains: Some("store".into()),
        turn: None,
    };
    verify(&failed.trace).failed(spec.clone()).assert();
    assert!(verify(&failed.trace).completed().run().is_err());
    assert!(verify(&apart.trace).failed(spec).run().is_err());
}

/// Adds an expectation.
type Expect = fn(TraceVerifier<'_>) -> TraceVerifier<'_>;

#[test]
fn every_check_can_fail() {
    let result = subjects::sync_tool().run();
    let trace = &result.trace;
    let checks: [(&str, Expect); 12] = [
        ("count", |v| v.with_turns(TurnsSpec { count: Some(2), ..TurnsSpec::default() })),
        ("before", |v| {
            v.with_turns(TurnsSpec {
                completed_before: vec![("c1-t1".into(), "c1-t2".into())],
                ..TurnsSpec::default()
            })
        }),
        ("statuses", |v| {
            v.with_turns(TurnsSpec { statuses: vec![("c1-t1".into(), vec![])], ..TurnsSpec::default() })
        }),
        ("min", |v| v.with_moves(MovesSpec { min_count: Some(3), ..MovesSpec::default() })),
        ("max", |v| v.with_moves(MovesSpec { max_count: Some(1), ..MovesSpec::default() })),
        ("call", |v| v.with_moves(MovesSpec { has_tool_call: Some("ech".into()), ..MovesSpec::default() })),
        ("results", |v| v.with_moves(MovesSpec { results: Some(vec![false]), ..MovesSpec::default() })),
        ("tools", |v| v.with_tool_invocations([])),
        ("async", |v| v.with_tool_invocations([call("echo", true)])),
        ("messages", |v| v.with_messages(MessagesSpec { user: Some(2), ..MessagesSpec::default() })),
        ("order", |v| {
            v.with_order([TraceMoment::Event("tool.completed"), TraceMoment::Event("tool.invoked")])
        }),
        ("custom", |v| v.with_custom("never", |_| Err("found it".into()))),
    ];
    for (name, check) in checks {
        assert!(check(verify(trace)).run().is_err(), "{name}");
    }
    let without = |name: &str| {
        Trace::new(trace.all().iter().filter(|record| record.payload.type_name() != name).cloned())
    };
    assert!(verify(&without("context_assembly.completed")).with_context_assembly(true).run().is_err());
    assert!(verify(&without("context_assembly.started")).with_context_assembly(false).run().is_err());
    let none =
        Trace::new(trace.all().iter().filter(|r| r.payload.category() != "memory_extraction").cloned());
    assert!(verify(&none).with_memory_extraction().run().is_err());
}

#[test]
fn all_failures_are_reported_with_conversation() {
    let result = subjects::sync_tool().run();
    let error = verify(&result.trace)
        .with_turns(TurnsSpec { count: Some(2), ..TurnsSpec::default() })
        .with_moves(MovesSpec { exact_count: Some(5), ..MovesSpec::default() })
        .with_tool_invocations([ToolCallSpec { completed: Some(false), ..ToolCallSpec::new("echo") }])
        .run()
        .unwrap_err();
    assert_eq!(error.mismatches.len(), 3);
    let text = error.to_string();
    for part in [
        "number of turns: 2",
        "number of moves: 5",
        "turn c1-t1: active → completed",
        "call echo (c1-t1-k1): completed",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
