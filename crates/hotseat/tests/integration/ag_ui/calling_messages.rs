//! The message that makes a call, if its event does not name it.

use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::Assertion;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, agent, scripted_agent};

/// Runs a turn that forbids text in messages that call tools.
fn run(run: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static) -> ConversationOutcome {
    let turn = json!({"user": "pay", "assert": {"text": {"with_tool_calls": "forbid"}}});
    TestConversation::new(&agent(move |begun: FakeRun| run(begun.started()).finished())).turn(turn).run()
}

/// A text with this id, then a call of `pay` with its result.
fn text_and_call(run: FakeRun, id: &str, text: &str, call: &str) -> FakeRun {
    run.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": id}))
        .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}))
        .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
        .tool(call, "pay", &json!({}), Some(json!("paid")))
}

/// Messages of an agent: a text with a call, if there is one.
fn message(id: &str, text: &str, call: Option<&str>) -> Value {
    let mut message = json!({"id": id, "role": "assistant", "content": text});
    if let Some(call) = call {
        let function = json!({"name": "pay", "arguments": "{}"});
        message["toolCalls"] = json!([{"id": call, "type": "function", "function": function}]);
    }
    message
}

fn snapshot(run: FakeRun, messages: &[Value]) -> FakeRun {
    let mut all = vec![json!({"id": "u", "role": "user", "content": "pay"})];
    all.extend(messages.iter().cloned());
    run.messages_snapshot(all)
}

const VIOLATED: &str = "turn 1: \"Let me see.\" in a message that calls tools";
const UNKNOWN: &str = "the agent does not report which message makes a call";

#[test]
fn a_snapshot_tells_the_message_of_a_call() {
    let told = |messages: &[Value]| {
        let messages = messages.to_vec();
        run(move |run| snapshot(text_and_call(run, "m", "Let me see.", "c"), &messages))
    };
    told(&[message("m", "Let me see.", Some("c"))]).failed(Assertion, VIOLATED);
    told(&[message("m", "Let me see.", None), message("n", "", Some("c"))]).passed();
    // With other ids than in the stream, the text identifies the message, and tool and arguments the call.
    told(&[message("x", "Let me see.", Some("c"))]).failed(Assertion, VIOLATED);
    told(&[message("x", "Let me see.", Some("other"))]).failed(Assertion, VIOLATED);
    told(&[message("x", "Let me see.", None), message("y", "", Some("c"))]).passed();
    told(&[message("x", "Let me", Some("c"))]).failed(Assertion, VIOLATED.split(" see").next().unwrap());
}

#[test]
fn equal_texts_with_other_ids_tell_nothing() {
    let told = run(|run| {
        let run = text_and_call(run, "m", "Let me see.", "c");
        let run = text_and_call(run, "n", "Let me see.", "d");
        let said = [message("x", "Let me see.", None), message("y", "Let me see.", Some("d"))];
        snapshot(run, &[message("z", "", Some("c")), said[0].clone(), said[1].clone()])
    });
    told.failed(Assertion, UNKNOWN);
}

#[test]
fn the_order_of_the_stream_tells_the_message_of_a_call() {
    let call = |run: FakeRun| run.tool("c", "pay", &json!({}), Some(json!("paid")));
    run(move |run| call(run).text("Paid.")).passed();
    // A text may belong to the message of the calls around it, until all of them have results.
    run(move |run| call(run.text("Let me see."))).failed(Assertion, UNKNOWN);
    let two = |run: FakeRun| {
        let run = run.tool("c", "pay", &json!({}), None).tool("d", "pay", &json!({}), None);
        run.tool_result("c", &json!("paid")).text("Let me see.").tool_result("d", &json!("paid"))
    };
    run(two).failed(Assertion, UNKNOWN);
    run(|run| run.tool("c", "pay", &json!({}), None).text("Let me see.")).failed(Assertion, UNKNOWN);
    // Only another run of the turn brings a text.
    let agent =
        scripted_agent(vec![|run| run.started().tool_call("c", "pay", &json!({})).finished(), |run| {
            run.started().text("Paid.").finished()
        }]);
    let tool = json!([{"name": "pay", "answers": [{"content": "paid"}]}]);
    let turn = json!({"user": "pay", "assert": {"text": {"with_tool_calls": "forbid"}}});
    TestConversation::new(&agent).case("tools", tool).turn(turn).run().passed();
    // A call within a text belongs to its message.
    let open = json!({"type": "TEXT_MESSAGE_START", "messageId": "m"});
    let delta = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Let me see."});
    let end = json!({"type": "TEXT_MESSAGE_END", "messageId": "m"});
    run(move |run| {
        let run = run.raw_event(open.clone()).raw_event(delta.clone()).tool("c", "pay", &json!({}), None);
        run.raw_event(end.clone()).tool_result("c", &json!("paid")).text("Paid.")
    })
    .failed(Assertion, VIOLATED);
}
