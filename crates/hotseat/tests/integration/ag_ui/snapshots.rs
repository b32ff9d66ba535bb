//! Message snapshots: content that exists only there counts, repeated content counts once, and earlier turns
//! are not counted again.

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, messages};

fn asks(id: &str, calls: &[(&str, &str, &str)]) -> Value {
    let call = |(id, name, args): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}});
    json!({"id": id, "role": "assistant", "content": "", "toolCalls": calls.iter().map(call).collect::<Vec<_>>()})
}

fn answers(id: &str, call: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": content})
}

fn assistant_message(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": content})
}

/// A conversation with `hello` in each turn and an agent that stores the messages. Each turn sends its events
/// and then a snapshot of everything.
fn run_with_snapshots(
    turns: usize,
    turn: impl Fn(FakeRun, &FakeRequest, &mut Vec<Value>) -> FakeRun + Send + Sync + 'static,
) -> ConversationOutcome {
    let agent = FakeAgent::start(move |request: &FakeRequest| -> FakeReply {
        let mut all = messages(request);
        let run = turn(FakeRun::for_request(request).started(), request, &mut all);
        run.messages_snapshot(all).finished().into()
    });
    (0..turns).fold(TestConversation::new(&agent), |talk, _| talk.user_says("hello")).run().passed()
}

/// A115, A363, A368
#[test]
fn content_only_in_snapshot_counts_once() {
    let told = run_with_snapshots(1, |run, _, all| {
        all.push(asks("a", &[("c1", "search", r#"{"q":"mug"}"#), ("c2", "pay", "")]));
        all.extend([
            answers("t1", "c1", r#"{"hits": 2}"#),
            answers("t2", "c2", "paid"),
            assistant_message("m", "Done."),
        ]);
        run
    });
    assert_eq!(told.calls(), [r#"1 search {"q":"mug"} → {"hits":2}"#, "1 pay {} → paid"]);
    assert_eq!(told.assert_no_notes().texts(), ["1 Done."]);
}

/// A364: snapshots of later turns contain the earlier ones.
#[test]
fn earlier_turns_are_not_counted_again() {
    let told = run_with_snapshots(3, |run, request, all| {
        let n = request.index;
        all.push(asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", &format!("{{\"n\":{n}}}"))]));
        all.push(answers(&format!("t{n}"), &format!("c{n}"), "paid"));
        all.push(assistant_message(&format!("m{n}"), "Done."));
        run
    });
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":0} → paid"#, r#"2 pay {"n":1} → paid"#, r#"3 pay {"n":2} → paid"#]
    );
    assert_eq!(told.assert_no_notes().texts(), ["1 Done.", "2 Done.", "3 Done."]);
}

/// A365, A367: streamed and repeated under the same ids, other message ids, and other call ids.
#[test]
fn streamed_content_repeated_in_snapshot_counts_once() {
    for (call, message) in [("c", "m"), ("c", "other"), ("other-c", "other")] {
        let told = run_with_snapshots(3, move |run, request, all| {
            let n = request.index;
            let call = format!("{call}{n}");
            all.push(asks(&format!("{message}-a{n}"), &[(&call, "pay", r#"{"n": 1}"#)]));
            all.push(answers(&format!("{message}-t{n}"), &call, "paid"));
            all.push(assistant_message(&format!("{message}-m{n}"), "Done. "));
            run.tool(&format!("c{n}"), "pay", &json!({"n": 1}), Some(json!("paid"))).text("Done.")
        });
        let pay = |turn: u8| format!(r#"{turn} pay {{"n":1}} → paid"#);
        assert_eq!(told.calls(), [pay(1), pay(2), pay(3)], "{call}");
        assert_eq!(told.texts(), ["1 Done.", "2 Done.", "3 Done."], "{message}");
        told.assert_no_notes();
    }
}

/// New ids in every snapshot and no streamed content: still counted once.
#[test]
fn snapshots_with_new_ids_duplicate_nothing() {
    let told = {
        let agent = FakeAgent::with_run(|run, _| {
            let snapshot = |n: u8, upto: usize| {
                let user = json!({"id": format!("u{n}"), "role": "user", "content": "hello"});
                let call = asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", "{\"n\":1}")]);
                let all = [
                    user,
                    call,
                    answers(&format!("t{n}"), &format!("c{n}"), "paid"),
                    assistant_message(&format!("m{n}"), "Done."),
                ];
                all[..upto].to_vec()
            };
            run.messages_snapshot(snapshot(1, 2))
                .messages_snapshot(snapshot(2, 3))
                .messages_snapshot(snapshot(3, 4))
                .finished()
        });
        TestConversation::new(&agent).user_says("hello").run().passed()
    };
    assert_eq!(
        (told.calls(), told.texts()),
        (vec![r#"1 pay {"n":1} → paid"#.into()], vec!["1 Done.".into()])
    );
}

/// A115: the call is streamed and its result is only in the snapshot, and vice versa.
#[test]
fn result_may_arrive_only_in_snapshot() {
    let told = run_with_snapshots(1, |run, _, all| {
        all.extend([
            asks("a", &[("c", "pay", "{}"), ("d", "ship", "{}")]),
            answers("t", "c", "paid"),
            answers("s", "d", "sent"),
        ]);
        run.tool_call("c", "pay", &json!({})).raw_event(
            json!({"type": "TOOL_CALL_RESULT", "messageId": "s", "toolCallId": "d", "content": "sent"}),
        )
    });
    assert_eq!(told.calls(), ["1 pay {} → paid", "1 ship {} → sent"]);
}

/// The tool message of a snapshot may report a failure.
#[test]
fn failed_tool_in_snapshot_is_failed() {
    let told = run_with_snapshots(1, |run, _, all| {
        let mut failed = answers("t", "c", "");
        failed["error"] = json!("out of stock");
        all.extend([asks("a", &[("c", "pay", "{}")]), failed]);
        run
    });
    assert_eq!(told.calls(), ["1 pay {} → failed: out of stock"]);
}

/// A366: some servers lose the first half of the arguments.
#[test]
fn snapshot_completes_lost_arguments() {
    for streamed in ["50 EUR\"}", ""] {
        let told = run_with_snapshots(1, move |run, _, all| {
            all.push(asks("a", &[("c", "confirm", r#"{"action": "pay 42.50 EUR"}"#)]));
            run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "confirm"}))
                .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": streamed}))
                .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
        });
        assert_eq!(told.calls(), [r#"1 confirm {"action":"pay 42.50 EUR"} → nothing"#], "{streamed}");
        told.assert_note("the snapshot is used");
    }
    // A less complete snapshot removes nothing.
    for known in ["", "{}", "{\"action\": \"pa"] {
        let told = run_with_snapshots(1, move |run, _, all| {
            all.push(asks("a", &[("c", "confirm", known)]));
            run.tool_call("c", "confirm", &json!({"action": "pay"}))
        });
        assert_eq!(told.calls(), [r#"1 confirm {"action":"pay"} → nothing"#], "{known}");
    }
}

/// Servers that read and write JSON may turn 1.0 into 1, and change the order of members.
#[test]
fn one_number_in_two_forms_is_one_call() {
    for id in ["c", "renamed"] {
        let told = run_with_snapshots(1, move |run, _, all| {
            all.push(asks("a", &[(id, "pay", r#"{"b": [2e0], "n": 1.0}"#)]));
            run.tool_call("c", "pay", &json!({"n": 1, "b": [2]}))
        });
        assert_eq!(told.calls(), [r#"1 pay {"n":1,"b":[2]} → nothing"#], "{id}");
        told.assert_no_notes();
    }
}

/// Other complete arguments under a known id are a second call: what the first one did stays visible.
#[test]
fn other_arguments_in_snapshot_are_a_second_call() {
    let two = |result: &str| {
        [r#"1 pay {"n":1} → nothing"#.replace("nothing", result), r#"1 pay {"n":2} → nothing"#.into()]
    };
    for result in [None, Some("paid")] {
        let told = run_with_snapshots(1, move |run, _, all| {
            all.push(asks("a", &[("c", "pay", r#"{"n": 2}"#)]));
            run.tool("c", "pay", &json!({"n": 1}), result.map(Value::from))
        });
        assert_eq!(told.calls(), two(result.unwrap_or("nothing")));
        told.assert_note("tool call id c is used for two calls");
    }
    // In two snapshots, also under the same message.
    for message in ["a", "b"] {
        let told = run_with_snapshots(1, move |run, _, all| {
            let first = [&all[..], &[asks("a", &[("c", "pay", r#"{"n":1}"#)])]].concat();
            all.push(asks(message, &[("c", "pay", r#"{"n":2}"#)]));
            run.messages_snapshot(first)
        });
        assert_eq!(told.calls(), two("nothing"), "{message}");
    }
    // A snapshot that lists one of two known calls adds none.
    let told = run_with_snapshots(1, |run, _, all| {
        all.push(asks("a", &[("c", "pay", r#"{"n":1}"#)]));
        run.tool_call("c", "pay", &json!({"n": 1})).tool_call("c", "pay", &json!({"n": 2}))
    });
    assert_eq!(told.calls(), two("nothing"));
}

/// A370: malformed snapshot content causes no error, except a call that cannot be read.
#[test]
fn malformed_snapshot_messages_are_skipped() {
    let told = run_with_snapshots(1, |run, _, all| {
        all.extend([
            json!({}),
            json!({"id": 5, "role": 6}),
            json!({"id": "x", "role": "wizard", "content": "abracadabra"}),
            json!({"id": "n", "role": "assistant", "content": null, "toolCalls": null}),
            json!({"id": "p", "role": "assistant", "content": [{"type": "text", "text": "Hi "}, {"type": "hologram"}, {"type": "text", "text": "there."}]}),
            json!({"id": "t", "role": "tool", "content": "of nothing"}),
            json!({"id": "q", "role": "assistant", "toolCalls": [{"id": "e", "function": {"name": "look", "arguments": {"as": "object"}}}]}),
        ]);
        run
    });
    assert_eq!(told.texts(), ["1 Hi there."]);
    let told = told.assert_note("a tool message of a snapshot has no `toolCallId`");
    assert_eq!(told.calls(), [r#"1 look {"as":"object"} → nothing"#]);
}

/// A server may take a call out of its history, or replace a text, under the id of the message.
#[test]
fn content_replaced_by_later_snapshot_is_kept() {
    let agent = FakeAgent::with_run(|run, request| {
        let all = messages(request);
        let first = [
            &all[..],
            &[
                asks("a", &[("c", "refund", "{}")]),
                answers("t", "c", "paid"),
                assistant_message("m", "Paid."),
            ],
        ]
        .concat();
        let second =
            [&all[..], &[assistant_message("a", "Let me see."), assistant_message("m", "Nothing was paid.")]]
                .concat();
        run.messages_snapshot(first).messages_snapshot(second).finished()
    });
    let told = TestConversation::new(&agent).user_says("hello").run().passed();
    assert_eq!(told.calls(), ["1 refund {} → paid"]);
    assert_eq!(told.texts(), ["1 Let me see.", "1 Paid.", "1 Nothing was paid."]);
}

/// A371: a later snapshot does not undo actions that it omits.
#[test]
fn content_missing_from_later_snapshot_is_kept() {
    let agent = FakeAgent::with_run(|run, request| {
        let all = messages(request);
        let first = [
            &all[..],
            &[
                asks("a", &[("c", "delete_order", "{}")]),
                answers("t", "c", "deleted"),
                assistant_message("m", "Deleted!"),
            ],
        ]
        .concat();
        let second = [
            &all[..],
            &[asks("b", &[("d", "pay", "{}")]), answers("u", "d", "paid"), assistant_message("n", "Done.")],
        ]
        .concat();
        run.messages_snapshot(first).messages_snapshot(second).finished()
    });
    let told = TestConversation::new(&agent).user_says("hello").run().passed();
    assert_eq!(told.calls(), ["1 delete_order {} → deleted", "1 pay {} → paid"]);
    assert_eq!(told.texts(), ["1 Deleted!", "1 Done."]);
}

/// A371: growing snapshots, as from a server that sends one after each tool.
#[test]
fn growing_snapshots_count_everything_once() {
    let agent = FakeAgent::with_run(|mut run, request| {
        let mut all = messages(request);
        let news = [
            asks("a", &[("c", "search", "{}")]),
            answers("t", "c", "..."),
            asks("b", &[("d", "pay", "{}")]),
            answers("t", "c", "found"),
            answers("u", "d", "paid"),
            assistant_message("m", "Do"),
            assistant_message("m", "Done."),
        ];
        for message in news {
            // Messages replace earlier ones with the same id, like a text that grows from snapshot to
            // snapshot.
            all.retain(|known| known["id"] != message["id"]);
            all.push(message);
            run = run.messages_snapshot(all.clone());
        }
        run.finished()
    });
    let told = TestConversation::new(&agent).user_says("hello").run().passed();
    assert_eq!(told.calls(), ["1 search {} → found", "1 pay {} → paid"]);
    assert_eq!(told.texts(), ["1 Done."]);
}

/// A snapshot taken before the turn adds nothing to it, even if the user text is repeated.
#[test]
fn snapshot_of_earlier_turn_adds_nothing() {
    for user in ["hello", "something else"] {
        let agent = FakeAgent::with_run(|run, request| {
            let mut all = messages(request);
            match request.index {
                0 => all.extend([
                    asks("a", &[("c", "pay", "{}")]),
                    answers("t", "c", "paid"),
                    assistant_message("m", "Paid."),
                ]),
                // The message of this turn is missing.
                _ => drop(all.pop()),
            }
            run.messages_snapshot(all).finished()
        });
        let told = TestConversation::new(&agent).user_says("hello").user_says(user).run().passed();
        assert_eq!(
            (told.calls(), told.texts()),
            (vec!["1 pay {} → paid".into()], vec!["1 Paid.".into()]),
            "{user}"
        );
    }
}

/// A server may change the id or text of the user message or add another; following messages belong to this
/// turn.
#[test]
fn turn_is_located_in_snapshot_despite_rewritten_user_text() {
    let user = |id: &str, content: &str| json!({"id": id, "role": "user", "content": content});
    for quoted in [
        vec![user("server-u", "hello")],
        vec![user("server-u", "[10:15] hello")],
        vec![json!({"id": "server-u", "role": "user", "content": [{"type": "text", "text": "hello"}]})],
        vec![user("server-u", "hello"), user("server-v", "The supervisor says: go on.")],
        vec![],
    ] {
        let agent = FakeAgent::with_run(move |run, _| {
            let news = [
                asks("a", &[("c", "pay", "{}")]),
                answers("t", "c", "paid"),
                assistant_message("m", "Paid."),
            ];
            run.messages_snapshot([&quoted[..], &news[..]].concat()).finished()
        });
        let told = TestConversation::new(&agent).user_says("hello").run().passed();
        assert_eq!((told.calls(), told.texts()), (vec!["1 pay {} → paid".into()], vec!["1 Paid.".into()]));
    }
}

/// A snapshot without user messages continues after the known earlier turns.
#[test]
fn snapshot_may_omit_user_message() {
    let told = run_with_snapshots(2, |run, request, all| {
        all.retain(|message| message["role"] != "user");
        let n = request.index;
        all.extend([
            asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", "{}")]),
            assistant_message(&format!("m{n}"), &format!("Paid {n}.")),
        ]);
        run
    });
    assert_eq!(
        (told.calls(), told.texts()),
        (
            vec!["1 pay {} → nothing".into(), "2 pay {} → nothing".into()],
            vec!["1 Paid 0.".into(), "2 Paid 1.".into()]
        )
    );
}

/// Call ids restarted in every turn: each turn has its own calls and results.
#[test]
fn ids_reused_in_snapshots_are_other_calls() {
    let told = run_with_snapshots(2, |run, request, all| {
        let n = request.index;
        all.extend([
            asks(&format!("a{n}"), &[("call-1", "pay", &format!("{{\"n\":{}}}", n + 1))]),
            answers(&format!("t{n}"), "call-1", &format!("paid {n}")),
        ]);
        run
    });
    assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid 0"#, r#"2 pay {"n":2} → paid 1"#]);

    // Streamed in the second turn: the result of the first turn is not reused.
    let told = run_with_snapshots(2, |run, request, all| {
        let n = request.index;
        all.push(asks(&format!("a{n}"), &[("call-1", "pay", &format!("{{\"n\":{}}}", n + 1))]));
        match n {
            0 => {
                all.push(answers("t", "call-1", "paid"));
                run
            }
            _ => run.tool_call("call-1", "pay", &json!({"n": 2})),
        }
    });
    assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid"#, r#"2 pay {"n":2} → nothing"#]);
}

/// A snapshot with another text under a streamed id: both texts count.
#[test]
fn text_changed_by_snapshot_counts_in_both_forms() {
    let told = run_with_snapshots(1, |run, _, all| {
        all.push(assistant_message("m", "Your card number is 4242."));
        run.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "All good."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
    });
    assert_eq!(told.texts(), ["1 All good.", "1 Your card number is 4242."]);
}

/// Both runs of a turn end with a complete snapshot.
#[test]
fn snapshots_of_several_runs_in_turn_count_once() {
    for call in ["c", "fresh"] {
        let agent = FakeAgent::with_run(move |run, request| {
            let n = request.index;
            let id = if call == "fresh" { format!("c{n}") } else { "c".to_string() };
            let user = messages(request)[0].clone();
            let mut all = vec![
                user,
                asks(&format!("a{n}"), &[(&id, "pay", "{\"n\":1}")]),
                answers(&format!("t{n}"), &id, "paid"),
                assistant_message(&format!("m{n}"), "Paid."),
            ];
            match n {
                0 => {
                    all.push(asks("f", &[("ask", "confirm", "{}")]));
                    run.tool_call("ask", "confirm", &json!({})).messages_snapshot(all).finished()
                }
                _ => run.messages_snapshot(all).finished(),
            }
        });
        let tools = json!([{"name": "confirm", "answers": [{"content": "yes"}]}]);
        let told = TestConversation::new(&agent).case("tools", tools).user_says("hello").run().passed();
        assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid"#, "1 confirm {} → yes"], "{call}");
        assert_eq!(told.texts(), ["1 Paid."], "{call}");
    }
}

/// The event of a result has no member for an error: only the message of the tool tells it.
#[test]
fn an_error_in_the_message_of_a_streamed_result_counts() {
    let told = run_with_snapshots(1, |run, _, all| {
        let mut answer = answers("t1", "c1", "no funds");
        answer["error"] = json!("declined");
        all.extend([asks("a", &[("c1", "pay", "{}")]), answer]);
        run.tool("c1", "pay", &json!({}), Some(json!("no funds")))
    });
    assert_eq!(told.calls(), ["1 pay {} → failed: declined: no funds"]);
}

/// Some producers write content parts as plain texts.
#[test]
fn plain_texts_in_a_list_are_content() {
    let told = run_with_snapshots(1, |run, _, all| {
        all.push(
            json!({"id": "m", "role": "assistant", "content": ["the ", {"type": "text", "text": "secret"}]}),
        );
        run
    });
    assert_eq!(told.texts(), ["1 the secret"]);
}
