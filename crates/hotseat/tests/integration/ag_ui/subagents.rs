//! Sub-agents: their events are recorded with their names and counted.

use hotseat_trace::FailureKind::Assertion;
use serde_json::{Value, json};

use super::fixture::{TestConversation, agent, run_strict_turn};

fn with_subagent(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

/// A309–A311, A435
#[test]
fn sub_agent_events_are_attributed_and_counted() {
    let run = |run: hotseat_testkit::agui::FakeRun| {
        let events = [
            with_subagent(
                "s",
                json!({"type": "SUBAGENT_STARTED", "name": "clerk", "description": "files things", "parentToolCallId": "c0"}),
            ),
            with_subagent("s", json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})),
            json!({"type": "TOOL_CALL_START", "toolCallId": "own", "toolCallName": "search"}),
            with_subagent("s", json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Filed."})),
            with_subagent(
                "s",
                json!({"type": "TOOL_CALL_START", "toolCallId": "its", "toolCallName": "charge_card"}),
            ),
            with_subagent("s", json!({"type": "REASONING_MESSAGE_START", "messageId": "r"})),
            with_subagent(
                "s",
                json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm."}),
            ),
            // End events may omit their owner.
            json!({"type": "REASONING_MESSAGE_END", "messageId": "r"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "its"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "own"}),
            with_subagent(
                "s",
                json!({"type": "SUBAGENT_FINISHED", "result": {"filed": 1}, "outcome": {"type": "success"}}),
            ),
            with_subagent("t", json!({"type": "SUBAGENT_STARTED", "name": "helper"})),
            with_subagent("t", json!({"type": "SUBAGENT_ERROR", "message": "boom", "code": 5})),
        ];
        events.into_iter().fold(run.started(), hotseat_testkit::agui::FakeRun::raw_event).finished()
    };
    let told = run_strict_turn(run).passed().assert_no_notes();
    let turn = &told.0.conversation.turns[0];
    let owners: Vec<(&str, Option<&str>)> =
        turn.tool_calls.iter().map(|call| (&*call.name, call.subagent.as_deref())).collect();
    assert_eq!(owners, [("search", None), ("charge_card", Some("s"))]);
    assert_eq!((&*turn.messages[0].content, turn.messages[0].subagent.as_deref()), ("Filed.", Some("s")));
    assert_eq!(told.events("message.reasoning")[0]["subagent"], "s");
    assert_eq!(told.events("subagent.started")[0]["name"], "clerk");
    assert_eq!(told.events("subagent.finished")[0]["result"], json!({"filed": 1}));
    assert_eq!(told.events("subagent.failed")[0]["error"], json!({"code": "5", "message": "boom"}));

    let agent = agent(run);
    let turn = json!({"user": "hi", "assert": {"tools": {"forbid": ["charge_card"]}}});
    TestConversation::new(&agent).turn(turn).run().failed(Assertion, "charge_card never to be called");
}
