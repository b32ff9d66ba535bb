//! Snapshots of the messages: what only they tell counts, what they tell again counts once, and what they tell of
//! earlier turns does not count again.

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use super::talk::{Talk, Told, messages};

fn asks(id: &str, calls: &[(&str, &str, &str)]) -> Value {
    let call = |(id, name, args): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}});
    json!({"id": id, "role": "assistant", "content": "", "toolCalls": calls.iter().map(call).collect::<Vec<_>>()})
}

fn answers(id: &str, call: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": content})
}

fn says(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": content})
}

/// A conversation in which each turn says `hello`, with an agent that keeps the messages and is told by its request
/// what to add. The events of a turn come first, then a snapshot of everything.
fn told_by(
    turns: usize,
    turn: impl Fn(Run, &Request, &mut Vec<Value>) -> Run + Send + Sync + 'static,
) -> Told {
    let agent = FakeAgent::start(move |request: &Request| -> Reply {
        let mut all = messages(request);
        let run = turn(Run::of(request).started(), request, &mut all);
        run.messages_snapshot(all).finished().into()
    });
    (0..turns).fold(Talk::with(&agent), |talk, _| talk.says("hello")).held().passed()
}

/// A115, A363, A368
#[test]
fn what_only_a_snapshot_tells_counts_once() {
    let told = told_by(1, |run, _, all| {
        all.push(asks("a", &[("c1", "search", r#"{"q":"mug"}"#), ("c2", "pay", "")]));
        all.extend([answers("t1", "c1", r#"{"hits": 2}"#), answers("t2", "c2", "paid"), says("m", "Done.")]);
        run
    });
    assert_eq!(told.calls(), [r#"1 search {"q":"mug"} → {"hits":2}"#, "1 pay {} → paid"]);
    assert_eq!(told.quietly().texts(), ["1 Done."]);
}

/// A364: the snapshots of later turns hold the earlier ones.
#[test]
fn earlier_turns_do_not_count_again() {
    let told = told_by(3, |run, request, all| {
        let n = request.index;
        all.push(asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", &format!("{{\"n\":{n}}}"))]));
        all.push(answers(&format!("t{n}"), &format!("c{n}"), "paid"));
        all.push(says(&format!("m{n}"), "Done."));
        run
    });
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":0} → paid"#, r#"2 pay {"n":1} → paid"#, r#"3 pay {"n":2} → paid"#]
    );
    assert_eq!(told.quietly().texts(), ["1 Done.", "2 Done.", "3 Done."]);
}

/// A365, A367: streamed and then told again, under the same ids, other ids for messages, and other ids for calls.
#[test]
fn what_was_streamed_and_is_told_again_counts_once() {
    for (call, message) in [("c", "m"), ("c", "other"), ("other-c", "other")] {
        let told = told_by(3, move |run, request, all| {
            let n = request.index;
            let call = format!("{call}{n}");
            all.push(asks(&format!("{message}-a{n}"), &[(&call, "pay", r#"{"n": 1}"#)]));
            all.push(answers(&format!("{message}-t{n}"), &call, "paid"));
            all.push(says(&format!("{message}-m{n}"), "Done. "));
            run.tool(&format!("c{n}"), "pay", &json!({"n": 1}), Some(json!("paid"))).text("Done.")
        });
        let pay = |turn: u8| format!(r#"{turn} pay {{"n":1}} → paid"#);
        assert_eq!(told.calls(), [pay(1), pay(2), pay(3)], "{call}");
        assert_eq!(told.texts(), ["1 Done.", "2 Done.", "3 Done."], "{message}");
        told.quietly();
    }
}

/// Ids of its own in every snapshot, for everything, and nothing streamed: still once.
#[test]
fn ids_that_are_fresh_in_every_snapshot_do_not_double_anything() {
    let told = {
        let agent = FakeAgent::start(|request: &Request| {
            let run = Run::of(request).started();
            let snapshot = |n: u8, upto: usize| {
                let user = json!({"id": format!("u{n}"), "role": "user", "content": "hello"});
                let call = asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", "{\"n\":1}")]);
                let all = [
                    user,
                    call,
                    answers(&format!("t{n}"), &format!("c{n}"), "paid"),
                    says(&format!("m{n}"), "Done."),
                ];
                all[..upto].to_vec()
            };
            run.messages_snapshot(snapshot(1, 2))
                .messages_snapshot(snapshot(2, 3))
                .messages_snapshot(snapshot(3, 4))
                .finished()
        });
        Talk::with(&agent).says("hello").held().passed()
    };
    assert_eq!(
        (told.calls(), told.texts()),
        (vec![r#"1 pay {"n":1} → paid"#.into()], vec!["1 Done.".into()])
    );
}

/// A115: the call was streamed, its result comes only in the snapshot; and the other way round.
#[test]
fn a_result_may_come_in_the_snapshot_alone() {
    let told = told_by(1, |run, _, all| {
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

/// The tool message of a snapshot may say that the tool failed.
#[test]
fn a_failed_tool_of_a_snapshot_has_failed() {
    let told = told_by(1, |run, _, all| {
        let mut failed = answers("t", "c", "");
        failed["error"] = json!("out of stock");
        all.extend([asks("a", &[("c", "pay", "{}")]), failed]);
        run
    });
    assert_eq!(told.calls(), ["1 pay {} → failed: out of stock"]);
}

/// A366: some servers lose the first half of the arguments on the way.
#[test]
fn a_snapshot_completes_arguments_that_the_stream_lost() {
    for streamed in ["50 EUR\"}", "", "{\"action\":\"old\"}"] {
        let told = told_by(1, move |run, _, all| {
            all.push(asks("a", &[("c", "confirm", r#"{"action": "pay 42.50 EUR"}"#)]));
            run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "confirm"}))
                .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": streamed}))
                .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
        });
        assert_eq!(told.calls(), [r#"1 confirm {"action":"pay 42.50 EUR"} → nothing"#], "{streamed}");
        told.noting("the snapshot counts");
    }
    // A snapshot that knows less takes nothing away.
    for known in ["", "{}", "{\"action\": \"pa"] {
        let told = told_by(1, move |run, _, all| {
            all.push(asks("a", &[("c", "confirm", known)]));
            run.tool_call("c", "confirm", &json!({"action": "pay"}))
        });
        assert_eq!(told.calls(), [r#"1 confirm {"action":"pay"} → nothing"#], "{known}");
    }
}

/// A370: whatever stands in a snapshot, nothing breaks.
#[test]
fn odd_messages_are_passed_over() {
    let told = told_by(1, |run, _, all| {
        all.extend([
            json!({}),
            json!({"id": 5, "role": 6}),
            json!({"id": "x", "role": "wizard", "content": "abracadabra"}),
            json!({"id": "n", "role": "assistant", "content": null, "toolCalls": null}),
            json!({"id": "o", "role": "assistant", "toolCalls": [{}, {"id": "c"}, {"id": "d", "function": {"name": 5}}, 7]}),
            json!({"id": "p", "role": "assistant", "content": [{"type": "text", "text": "Hi "}, {"type": "hologram"}, {"type": "text", "text": "there."}]}),
            json!({"id": "t", "role": "tool", "content": "of nothing"}),
            json!({"id": "q", "role": "assistant", "toolCalls": [{"id": "e", "function": {"name": "look", "arguments": {"as": "object"}}}]}),
        ]);
        run
    });
    assert_eq!(told.texts(), ["1 Hi there."]);
    assert_eq!(told.calls(), [r#"1 look {"as":"object"} → nothing"#]);
}

/// A371: what an agent did is not undone by a later snapshot that no longer shows it.
#[test]
fn what_a_later_snapshot_leaves_out_has_happened() {
    let agent = FakeAgent::start(|request: &Request| {
        let all = messages(request);
        let first = [
            &all[..],
            &[asks("a", &[("c", "delete_order", "{}")]), answers("t", "c", "deleted"), says("m", "Deleted!")],
        ]
        .concat();
        let second =
            [&all[..], &[asks("b", &[("d", "pay", "{}")]), answers("u", "d", "paid"), says("n", "Done.")]]
                .concat();
        Run::of(request).started().messages_snapshot(first).messages_snapshot(second).finished()
    });
    let told = Talk::with(&agent).says("hello").held().passed();
    assert_eq!(told.calls(), ["1 delete_order {} → deleted", "1 pay {} → paid"]);
    assert_eq!(told.texts(), ["1 Deleted!", "1 Done."]);
}

/// A371: snapshots that grow, as a server sends after each tool.
#[test]
fn growing_snapshots_count_each_thing_once() {
    let agent = FakeAgent::start(|request: &Request| {
        let mut all = messages(request);
        let mut run = Run::of(request).started();
        let news = [
            asks("a", &[("c", "search", "{}")]),
            answers("t", "c", "..."),
            asks("b", &[("d", "pay", "{}")]),
            answers("t", "c", "found"),
            answers("u", "d", "paid"),
            says("m", "Do"),
            says("m", "Done."),
        ];
        for message in news {
            // Messages replace those with their id, as a text does that grows from snapshot to snapshot.
            all.retain(|known| known["id"] != message["id"]);
            all.push(message);
            run = run.messages_snapshot(all.clone());
        }
        run.finished()
    });
    let told = Talk::with(&agent).says("hello").held().passed();
    assert_eq!(told.calls(), ["1 search {} → found", "1 pay {} → paid"]);
    assert_eq!(told.texts(), ["1 Done."]);
}

/// A snapshot that was taken before the turn says nothing about it, even if the user says the same again.
#[test]
fn a_snapshot_from_before_the_turn_tells_nothing_of_it() {
    for user in ["hello", "something else"] {
        let agent = FakeAgent::start(|request: &Request| {
            let mut all = messages(request);
            let run = Run::of(request).started();
            match request.index {
                0 => all.extend([
                    asks("a", &[("c", "pay", "{}")]),
                    answers("t", "c", "paid"),
                    says("m", "Paid."),
                ]),
                // The message of this turn is not in it.
                _ => drop(all.pop()),
            }
            run.messages_snapshot(all).finished()
        });
        let told = Talk::with(&agent).says("hello").says(user).held().passed();
        assert_eq!(
            (told.calls(), told.texts()),
            (vec!["1 pay {} → paid".into()], vec!["1 Paid.".into()]),
            "{user}"
        );
    }
}

/// A server may give the user's message another id, other words, or a companion; what follows it is of this turn.
#[test]
fn the_turn_is_found_in_a_snapshot_however_the_user_is_quoted() {
    let user = |id: &str, content: &str| json!({"id": id, "role": "user", "content": content});
    for quoted in [
        vec![user("server-u", "hello")],
        vec![user("server-u", "[10:15] hello")],
        vec![json!({"id": "server-u", "role": "user", "content": [{"type": "text", "text": "hello"}]})],
        vec![user("server-u", "hello"), user("server-v", "The supervisor says: go on.")],
        vec![],
    ] {
        let agent = FakeAgent::start(move |request: &Request| {
            let news = [asks("a", &[("c", "pay", "{}")]), answers("t", "c", "paid"), says("m", "Paid.")];
            Run::of(request).started().messages_snapshot([&quoted[..], &news[..]].concat()).finished()
        });
        let told = Talk::with(&agent).says("hello").held().passed();
        assert_eq!((told.calls(), told.texts()), (vec!["1 pay {} → paid".into()], vec!["1 Paid.".into()]));
    }
}

/// A snapshot without any user message goes on behind what is known of earlier turns.
#[test]
fn a_snapshot_may_leave_the_user_out() {
    let told = told_by(2, |run, request, all| {
        all.retain(|message| message["role"] != "user");
        let n = request.index;
        all.extend([
            asks(&format!("a{n}"), &[(&format!("c{n}"), "pay", "{}")]),
            says(&format!("m{n}"), &format!("Paid {n}.")),
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

/// Calls numbered from the start of every turn, in snapshots: each turn has its own, with its own result.
#[test]
fn ids_that_come_again_in_snapshots_are_other_calls() {
    let told = told_by(2, |run, request, all| {
        let n = request.index;
        all.extend([
            asks(&format!("a{n}"), &[("call-1", "pay", &format!("{{\"n\":{}}}", n + 1))]),
            answers(&format!("t{n}"), "call-1", &format!("paid {n}")),
        ]);
        run
    });
    assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid 0"#, r#"2 pay {"n":2} → paid 1"#]);

    // Streamed in the second turn: the first turn's result is not taken for its own.
    let told = told_by(2, |run, request, all| {
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

/// Nothing the agent says is lost: a snapshot that shows another text under the id of a streamed one.
#[test]
fn a_text_that_a_snapshot_changes_was_said_both_ways() {
    let told = told_by(1, |run, _, all| {
        all.push(says("m", "Your card number is 4242."));
        run.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "All good."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
    });
    assert_eq!(told.texts(), ["1 All good.", "1 Your card number is 4242."]);
}

/// Both runs of a turn end with a snapshot of everything.
#[test]
fn the_snapshots_of_several_runs_of_a_turn_count_once() {
    for call in ["c", "fresh"] {
        let agent = FakeAgent::start(move |request: &Request| {
            let n = request.index;
            let id = if call == "fresh" { format!("c{n}") } else { "c".to_string() };
            let user = messages(request)[0].clone();
            let mut all = vec![
                user,
                asks(&format!("a{n}"), &[(&id, "pay", "{\"n\":1}")]),
                answers(&format!("t{n}"), &id, "paid"),
                says(&format!("m{n}"), "Paid."),
            ];
            let run = Run::of(request).started();
            match n {
                0 => {
                    all.push(asks("f", &[("ask", "confirm", "{}")]));
                    run.tool_call("ask", "confirm", &json!({})).messages_snapshot(all).finished()
                }
                _ => run.messages_snapshot(all).finished(),
            }
        });
        let tools = json!([{"name": "confirm", "answers": [{"content": "yes"}]}]);
        let told = Talk::with(&agent).case("tools", tools).says("hello").held().passed();
        assert_eq!(told.calls(), ["1 confirm {} → yes", r#"1 pay {"n":1} → paid"#], "{call}");
        assert_eq!(told.texts(), ["1 Paid."], "{call}");
    }
}
