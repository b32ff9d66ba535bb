//! Sub-agents: what they do is recorded with their names on it, and it counts.

use hotseat_trace::FailureKind::Assertion;
use serde_json::{Value, json};

use super::talk::{Talk, agent, hears_strictly};

fn by(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

/// A309–A311, A435
#[test]
fn what_a_sub_agent_does_is_its_own_and_counts() {
    let run = |run: hotseat_testkit::agui::Run| {
        let events = [
            by(
                "s",
                json!({"type": "SUBAGENT_STARTED", "name": "clerk", "description": "files things", "parentToolCallId": "c0"}),
            ),
            by("s", json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})),
            json!({"type": "TOOL_CALL_START", "toolCallId": "own", "toolCallName": "search"}),
            by("s", json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Filed."})),
            by("s", json!({"type": "TOOL_CALL_START", "toolCallId": "its", "toolCallName": "charge_card"})),
            by("s", json!({"type": "REASONING_MESSAGE_START", "messageId": "r"})),
            by("s", json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm."})),
            // The ends need not say whose they are.
            json!({"type": "REASONING_MESSAGE_END", "messageId": "r"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "its"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "own"}),
            by(
                "s",
                json!({"type": "SUBAGENT_FINISHED", "result": {"filed": 1}, "outcome": {"type": "success"}}),
            ),
            by("t", json!({"type": "SUBAGENT_STARTED", "name": "helper"})),
            by("t", json!({"type": "SUBAGENT_ERROR", "message": "boom", "code": 5})),
        ];
        events.into_iter().fold(run.started(), hotseat_testkit::agui::Run::raw_event).finished()
    };
    let told = hears_strictly(run).passed().quietly();
    let turn = &told.0.conversation.turns[0];
    let owners: Vec<(&str, Option<&str>)> =
        turn.tool_calls.iter().map(|call| (&*call.name, call.subagent.as_deref())).collect();
    assert_eq!(owners, [("search", None), ("charge_card", Some("s"))]);
    assert_eq!(
        (turn.messages[0].content.as_str(), turn.messages[0].subagent.as_deref()),
        ("Filed.", Some("s"))
    );
    assert_eq!(told.events("message.reasoning")[0]["subagent"], "s");
    assert_eq!(told.events("subagent.started")[0]["name"], "clerk");
    assert_eq!(told.events("subagent.finished")[0]["result"], json!({"filed": 1}));
    assert_eq!(told.events("subagent.failed")[0]["error"], json!({"code": "5", "message": "boom"}));

    let agent = agent(run);
    let turn = json!({"user": "hi", "assert": {"tools": {"forbid": ["charge_card"]}}});
    Talk::with(&agent).turn(turn).held().failed(Assertion, "charge_card is never called");
}
