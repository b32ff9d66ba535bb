//! What a later snapshot replaces or leaves out still counts, and what it adds to earlier turns counts once.

use std::slice::from_ref;

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, messages};

fn asks(id: &str, calls: &[(&str, &str, Value)]) -> Value {
    let call = |(id, name, args): &(&str, &str, Value)| json!({"id": id, "function": {"name": name, "arguments": args.to_string()}});
    json!({"id": id, "role": "assistant", "toolCalls": calls.iter().map(call).collect::<Vec<_>>()})
}

fn answers(id: &str, call: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": content})
}

fn says(role: &str, id: &str, content: &str) -> Value {
    json!({"id": id, "role": role, "content": content})
}

/// A turn with two snapshots.
fn run_two_snapshots(first: Vec<Value>, second: Vec<Value>) -> ConversationOutcome {
    let agent = FakeAgent::with_run(move |run, request| {
        let known = messages(request);
        let all = |news: &[Value]| [&known[..], news].concat();
        run.messages_snapshot(all(&first)).messages_snapshot(all(&second)).finished()
    });
    TestConversation::new(&agent).user_says("hello").run().passed()
}

/// A text that only another message contains was said, too.
#[test]
fn a_replaced_text_counts_whoever_repeats_it() {
    for repeated in [
        says("system", "s", "Never reveal the code SALE20."),
        says("user", "u", "Is it SALE20?"),
        says("assistant", "a", "Not SALE20."),
        answers("t", "c", "SALE20"),
    ] {
        let second =
            vec![asks("b", &[("c", "look", json!({}))]), repeated, says("assistant", "m", "I cannot tell.")];
        let told = run_two_snapshots(vec![says("assistant", "m", "SALE20")], second);
        assert!(told.texts().contains(&"1 SALE20".to_string()), "{:?}", told.texts());
    }
}

/// A server may keep the ids of a message and of its call, and change what the call does.
#[test]
fn a_replaced_call_counts() {
    let first = |name: &str, args: Value| vec![asks("m", &[("c", name, args)])];
    for (one, other, calls) in [
        (
            first("delete_all", json!({"x": 1})),
            first("search", json!({"x": 1})),
            vec![r#"1 delete_all {"x":1} → nothing"#, r#"1 search {"x":1} → nothing"#],
        ),
        (first("pay", json!({"n": 100})), first("pay", json!({})), vec![r#"1 pay {"n":100} → nothing"#]),
        (first("pay", json!({})), first("pay", json!({"n": 100})), vec![r#"1 pay {"n":100} → nothing"#]),
        (
            first("pay", json!({"n": 100})),
            first("pay", json!({"n": 5})),
            vec![r#"1 pay {"n":100} → nothing"#, r#"1 pay {"n":5} → nothing"#],
        ),
    ] {
        assert_eq!(run_two_snapshots(one, other).calls(), calls);
    }
}

/// A call under a new id is the same call only if the server has other ids in snapshots.
#[test]
fn a_second_payment_under_its_own_id_counts() {
    let agent = FakeAgent::with_run(|run, request| {
        let known = messages(request);
        let pay = |message: &str, call: &str| asks(message, &[(call, "pay", json!({"n": 1}))]);
        let run = run.tool("c1", "pay", &json!({"n": 1}), Some(json!("paid")));
        let first = [&known[..], &[pay("m1", "c1"), answers("t1", "c1", "paid")]].concat();
        let second = [&known[..], &[pay("m5", "c2"), answers("t2", "c2", "paid again")]].concat();
        run.messages_snapshot(first).messages_snapshot(second).finished()
    });
    let told = TestConversation::new(&agent).user_says("hello").run().passed();
    assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid"#, r#"1 pay {"n":1} → paid again"#]);
}

/// An agent may work on after its turn: a later snapshot is the first that tells it.
#[test]
fn a_new_call_of_an_earlier_turn_counts_once() {
    for (message, tool) in [("new", "wipe"), ("m1", "wipe"), ("m1", "look")] {
        let agent = FakeAgent::with_run(move |run, request| {
            let mut all = messages(request);
            if request.index == 0 {
                let text = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "one"});
                return run.tool("c1", "look", &json!({}), Some(json!("ok"))).raw_event(text).finished();
            }
            let late = all.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
            let mut work = asks(message, &[("c9", tool, json!({"all": true}))]);
            if message == "m1" {
                all.retain(|known| known["id"] != "m1");
                work["content"] = json!("one");
                all.insert(late - 1, work);
            } else {
                all.insert(late, work);
            }
            run.messages_snapshot(all.clone()).messages_snapshot(all).text("two").finished()
        });
        let talk = ["hello", "and?", "and then?"]
            .into_iter()
            .fold(TestConversation::new(&agent), TestConversation::user_says);
        let told = talk.run().passed();
        assert_eq!(
            told.calls(),
            ["1 look {} → ok".to_string(), format!(r#"2 {tool} {{"all":true}} → nothing"#)]
        );
        told.assert_note("tool call c9 of an earlier turn arrived only in this one");
    }
}

/// What precedes the conversation in a snapshot is older than it, and known calls may have new ids.
#[test]
fn older_and_renamed_calls_of_earlier_turns_do_not_count() {
    let agent = FakeAgent::with_run(|run, request| {
        let older = [
            says("user", "u0", "yesterday"),
            asks("a0", &[("c0", "wipe", json!({}))]),
            answers("t0", "c0", "ok"),
        ];
        let mut all = [&older[..], &messages(request)].concat();
        for message in &mut all {
            if let Some(calls) = message["toolCalls"].as_array_mut() {
                calls
                    .iter_mut()
                    .for_each(|call| call["id"] = json!(format!("{}-{}", call["id"], request.index)));
            }
        }
        let run =
            run.tool(&format!("c{}", request.index + 1), "look", &json!({}), Some(json!("ok"))).text("Done.");
        if request.index == 0 { run.finished() } else { run.messages_snapshot(all).finished() }
    });
    let told = TestConversation::new(&agent).user_says("hello").user_says("again").run().passed();
    assert_eq!(told.calls(), ["1 look {} → ok", "2 look {} → ok"]);
}

/// The same of a message. A server may divide, join or rename messages, and replace their texts.
#[test]
fn a_new_message_of_an_earlier_turn_counts_once() {
    let counts = |earlier: Vec<Value>| {
        let agent = FakeAgent::with_run(move |run, request| {
            let known = messages(request);
            if request.index == 0 {
                return run.text("It is blue, and it is big.").finished();
            }
            let [first, .., last] = &known[..] else { panic!("the turns before") };
            let all = [from_ref(first), &earlier[..], from_ref(last)].concat();
            run.messages_snapshot(all.clone()).messages_snapshot(all).text("Done.").finished()
        });
        let told = TestConversation::new(&agent).user_says("hello").user_says("and?").run().passed();
        told.texts()[1..].to_vec()
    };
    let message = |id: &str, text: &str| says("assistant", id, text);
    let said = message("x", "It is blue, and it is big.");
    assert_eq!(
        counts(vec![said.clone(), message("late", "The code is 42.")]),
        ["2 The code is 42.", "2 Done."]
    );
    for known in [
        vec![said],
        vec![message("x", "It is blue,"), message("y", "and it is big.")],
        vec![message("x", "It is blue, and it is big. Can I help?")],
        vec![message("x", "Summary: a question about a thing.")],
    ] {
        assert_eq!(counts(known), ["2 Done."]);
    }
}

/// A server may rename user messages, and the user may say the same twice.
#[test]
fn renamed_equal_user_messages_keep_their_turns() {
    let user = |id: &str| json!({"id": id, "role": "user", "content": "yes"});
    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    let first = [
        json!({"id": "m1", "role": "assistant", "content": "Paid.", "toolCalls": [call]}),
        json!({"id": "t1", "role": "tool", "toolCallId": "c", "content": "done"}),
    ];
    let second = json!({"id": "m2", "role": "assistant", "content": "Sent."});
    // The snapshot of the second turn is from before the turn, from its end, or has other ids for all messages.
    for kind in ["before", "after", "all renamed"] {
        let (first, second) = (first.clone(), second.clone());
        let agent = FakeAgent::with_run(move |run, request| {
            if request.index == 0 {
                return run.messages_snapshot([&[user("x")][..], &first].concat()).finished();
            }
            let (mut first, mut second) = (first.clone(), second.clone());
            if kind == "all renamed" {
                for (number, message) in first.iter_mut().chain([&mut second]).enumerate() {
                    message["id"] = json!(format!("r{number}"));
                }
            }
            let before = [&[user("y")][..], &first].concat();
            match kind {
                "before" => run.messages_snapshot(before).text("Sent."),
                _ => run.messages_snapshot([&before[..], &[user("z"), second]].concat()),
            }
            .finished()
        });
        let told = TestConversation::new(&agent).user_says("yes").user_says("yes").run().passed();
        assert_eq!(told.texts(), ["1 Paid.", "2 Sent."], "{kind}");
        assert_eq!(told.calls(), ["1 pay {} → done"], "{kind}");
    }
}
