//! What only a snapshot reports stands in the order of the snapshot, among what the agent streamed.

use std::time::Duration;

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, messages, run_turn_with};

fn asks(id: &str, call: &str, tool: &str) -> Value {
    json!({"id": id, "role": "assistant", "toolCalls": [{"id": call, "function": {"name": tool, "arguments": "{}"}}]})
}

fn answers(call: &str) -> Value {
    json!({"id": format!("t-{call}"), "role": "tool", "toolCallId": call, "content": "ok"})
}

fn says(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": content})
}

/// A turn whose run sends these parts: an object is an event, a list a snapshot with these messages after the known ones.
fn run_parts(parts: Vec<Value>) -> ConversationOutcome {
    let agent = FakeAgent::with_run(move |run, request| {
        let known = messages(request);
        let add = |run: FakeRun, part: &Value| match part {
            Value::Array(news) => run.messages_snapshot([&known[..], news].concat()),
            Value::String(text) => run.text(text),
            event => run.tool(
                event["id"].as_str().unwrap_or(""),
                event["tool"].as_str().unwrap_or(""),
                &json!({}),
                Some(json!("ok")),
            ),
        };
        parts.iter().fold(run, add).finished()
    });
    TestConversation::new(&agent).user_says("hello").run().passed()
}

fn tools(told: &ConversationOutcome) -> Vec<String> {
    let calls = told.0.conversation.scope().calls();
    calls.map(|(_, call)| call.name.to_string()).collect()
}

#[test]
fn a_message_before_the_streamed_answer_is_not_the_answer() {
    let told = run_parts(vec![json!("final"), json!([says("m0", "draft"), says("m1", "final")])]);
    assert_eq!(told.texts(), ["1 draft", "1 final"]);
}

#[test]
fn calls_are_in_the_order_of_the_snapshot() {
    let book = json!({"id": "c2", "tool": "book"});
    let first = json!([asks("m1", "c1", "find"), answers("c1")]);
    let all = json!([asks("m1", "c1", "find"), answers("c1"), asks("m2", "c2", "book"), answers("c2")]);
    for parts in [vec![first.clone(), book.clone(), all.clone()], vec![first, book.clone()], vec![book, all]]
    {
        let told = run_parts(parts.clone());
        assert_eq!(tools(&told), ["find", "book"], "{parts:?}");
    }
}

/// Texts and calls of a snapshot alone keep their order, too.
#[test]
fn texts_and_calls_of_a_snapshot_alternate() {
    let told = run_parts(vec![json!([
        says("m0", "one"),
        asks("m1", "c1", "find"),
        answers("c1"),
        says("m2", "two"),
        asks("m3", "c2", "book"),
        answers("c2"),
        says("m4", "three"),
    ])]);
    let items: Vec<String> = told.0.conversation.turns[0]
        .items()
        .iter()
        .map(|item| match item {
            hotseat_trace::TurnItem::Message(message) => message.content.to_string(),
            hotseat_trace::TurnItem::Call(call) => call.name.to_string(),
        })
        .collect();
    assert_eq!(items, ["one", "find", "two", "book", "three"]);
}

/// A message stands where it began: another may end before it.
#[test]
fn messages_are_in_the_order_of_their_starts() {
    let start = |id: &str| json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"});
    let text = |id: &str| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": id});
    let end = |id: &str| json!({"type": "TEXT_MESSAGE_END", "messageId": id});
    for ends in [vec![end("second"), end("first")], vec![end("second")]] {
        let events = [vec![start("second"), text("second")], ends].concat();
        let told = run_turn_with(move |run| {
            let run = run
                .started()
                .raw_event(start("first"))
                .raw_event(text("first"))
                .pause(Duration::from_millis(20));
            events.iter().cloned().fold(run, FakeRun::raw_event).finished()
        });
        assert_eq!(told.passed().texts(), ["1 first", "1 second"]);
    }
}
