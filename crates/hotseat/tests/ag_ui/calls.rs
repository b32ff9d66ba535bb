//! How often a call counts that is announced, answered or told more than once: the same call once, another call
//! twice, and nothing that was done is lost.

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use hotseat_trace::FailureKind::{Assertion, ProtocolError};
use serde_json::{Value, json};

use super::talk::{Talk, Told, agent_of, hears, hears_strictly};

fn start(id: &str, name: &str) -> Value {
    json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name})
}

fn args(id: &str, delta: &str) -> Value {
    json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta})
}

fn end(id: &str) -> Value {
    json!({"type": "TOOL_CALL_END", "toolCallId": id})
}

fn result(id: &str, content: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r-{content}"), "toolCallId": id, "content": content})
}

/// A turn in which these events come between the first and the last of its run.
fn turn_of(events: Vec<Value>) -> Told {
    hears(move |run| events.iter().cloned().fold(run.started(), Run::raw_event).finished())
}

/// A68, A77, A332: several calls at once keep their arguments apart and are in the order in which they began.
#[test]
fn parallel_calls_are_kept_apart() {
    let told = hears_strictly(|run| {
        let events = [
            start("a", "first"),
            start("b", "second"),
            args("b", "{\"n\""),
            args("a", "{\"n\":"),
            args("b", ":2}"),
            result("b", "two"),
            end("b"),
            args("a", "1}"),
            end("a"),
            result("a", "one"),
        ];
        events.into_iter().fold(run.started().text("Before."), Run::raw_event).text("After.").finished()
    });
    let told = told.passed().quietly();
    assert_eq!(told.calls(), [r#"1 first {"n":1} → one"#, r#"1 second {"n":2} → two"#]);
    assert_eq!(told.texts(), ["1 Before.", "1 After."]);
}

/// A349, A411: a resumed run may announce a call again; it is the same call.
#[test]
fn a_call_that_is_announced_again_is_one_call() {
    let again = |events: Vec<Value>| turn_of(events).passed().calls();
    let once = [r#"1 pay {"n":1} → paid"#];
    let call = || vec![start("c", "pay"), args("c", "{\"n\":1}"), end("c")];
    assert_eq!(again([call(), call(), vec![result("c", "paid")]].concat()), once);
    assert_eq!(again([call(), vec![start("c", "pay"), end("c"), result("c", "paid")]].concat()), once);
    // After its result too, as long as nothing shows that it ran again.
    assert_eq!(again([call(), vec![result("c", "paid")], call()].concat()), once);
    assert_eq!(again([call(), vec![result("c", "paid"), start("c", "pay"), end("c")]].concat()), once);
    // While it was still open: what has come is kept, what comes whole again is not doubled.
    assert_eq!(
        again(vec![
            start("c", "pay"),
            args("c", "{\"n\""),
            start("c", "pay"),
            args("c", ":1}"),
            end("c"),
            result("c", "paid")
        ]),
        once
    );
    assert_eq!(
        again([vec![start("c", "pay"), args("c", "{\"n\":1}")], call(), vec![result("c", "paid")]].concat()),
        once
    );
    assert_eq!(
        again(vec![
            start("c", "pay"),
            args("c", "{\"n\":1}"),
            start("c", "pay"),
            end("c"),
            result("c", "paid")
        ]),
        once
    );
}

/// The agent says that a tool ran twice, under one id: two calls.
#[test]
fn a_tool_that_ran_twice_under_one_id_is_two_calls() {
    let call = |n: u8| vec![start("c", "pay"), args("c", &format!("{{\"n\":{n}}}")), end("c")];
    for (second, calls) in [
        // Another result.
        ([call(1), vec![result("c", "b")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":1} → b"#]),
        // The same result in the same run: a run does not repeat itself.
        ([call(1), vec![result("c", "a")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":1} → a"#]),
        // Without its arguments.
        (
            vec![start("c", "pay"), result("c", "b"), end("c")],
            [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":1} → b"#],
        ),
        // Other arguments, with a result and without one.
        ([call(2), vec![result("c", "a")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → a"#]),
        (call(2), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → nothing"#]),
        // Another tool, answered or not.
        (vec![start("c", "delete_order"), end("c")], [r#"1 pay {"n":1} → a"#, "1 delete_order {} → nothing"]),
    ] {
        let told = turn_of([call(1), vec![result("c", "a")], second].concat()).passed();
        assert_eq!(told.calls(), calls);
        told.noting("tool call id c is used for two calls");
    }
    let told = turn_of(vec![
        start("c", "search"),
        args("c", "{\"q\":1}"),
        start("c", "delete_order"),
        args("c", "{\"id\":7}"),
        end("c"),
    ]);
    assert_eq!(
        told.passed().calls(),
        [r#"1 search {"q":1} → nothing"#, r#"1 delete_order {"id":7} → nothing"#]
    );
}

/// Three times is three times.
#[test]
fn an_agent_that_knows_one_id_only_is_counted_all_the_same() {
    let call = |n: u8| {
        vec![
            start("id", "pay"),
            args("id", &format!("{{\"n\":{n}}}")),
            end("id"),
            result("id", &format!("paid {n}")),
        ]
    };
    let told = turn_of([call(1), call(2), call(3)].concat()).passed();
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":1} → paid 1"#, r#"1 pay {"n":2} → paid 2"#, r#"1 pay {"n":3} → paid 3"#]
    );
}

/// A later turn that uses an id again makes another call, with all that belongs to it.
#[test]
fn an_id_of_an_earlier_turn_is_another_call() {
    fn turn(run: Run) -> Run {
        run.started().tool("call_1_0", "pay", &json!({"n": 1}), Some(json!("paid"))).finished()
    }
    let agent = agent_of(vec![turn, turn, |run| {
        run.started().tool("call_1_0", "pay", &json!({"n": 2}), None).finished()
    }]);
    let told = Talk::with(&agent).says("one").says("two").says("three").held().passed().quietly();
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":1} → paid"#, r#"2 pay {"n":1} → paid"#, r#"3 pay {"n":2} → nothing"#]
    );
    let ids: Vec<&str> = told.0.conversation.scope().calls().map(|(_, call)| &*call.id).collect();
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::HashSet<_>>().len(), "{ids:?}");
}

/// A120
#[test]
fn of_several_results_the_last_counts_and_repeats_are_nothing() {
    let call = vec![start("c", "pay"), end("c"), result("c", "first")];
    let told = turn_of([call.clone(), vec![result("c", "first")]].concat()).passed().quietly();
    assert_eq!(told.calls(), ["1 pay {} → first"]);
    let told = turn_of([call, vec![result("c", "second")]].concat()).passed();
    assert_eq!(
        told.noting("tool call c got another result; the last one counts").calls(),
        ["1 pay {} → second"]
    );
}

/// A334: order within a call does not matter as long as everything comes.
#[test]
fn the_parts_of_a_call_may_come_in_any_order() {
    let whole = [r#"1 pay {"n":1} → paid"#];
    for events in [
        vec![result("c", "paid"), start("c", "pay"), args("c", "{\"n\":1}"), end("c")],
        vec![args("c", "{\"n\""), start("c", "pay"), args("c", ":1}"), end("c"), result("c", "paid")],
        vec![start("c", "pay"), end("c"), args("c", "{\"n\""), args("c", ":1}"), result("c", "paid")],
        vec![start("c", "pay"), result("c", "paid"), args("c", "{\"n\":1}"), end("c")],
        vec![start("c", "pay"), end("c"), result("c", "paid"), args("c", "{\"n\":1}")],
        vec![start("c", "pay"), args("c", "{\"n\":1}"), result("c", "paid")],
    ] {
        assert_eq!(turn_of(events.clone()).passed().calls(), whole, "{events:?}");
    }
}

/// What is announced again broken does not replace what is known whole.
#[test]
fn broken_arguments_never_replace_whole_ones() {
    let told = turn_of(vec![
        start("c", "pay"),
        args("c", "{\"n\":1}"),
        end("c"),
        start("c", "pay"),
        args("c", "1}"),
        end("c"),
    ]);
    assert_eq!(told.passed().calls(), [r#"1 pay {"n":1} → nothing"#]);
}

/// A result or arguments that belong to no call: a call is hidden, and a run that hides one is no pass.
#[test]
fn what_belongs_to_no_call_is_an_error() {
    turn_of(vec![result("ghost", "x")]).failed(ProtocolError, "a result came for tool call ghost");
    turn_of(vec![args("ghost", "{}")]).failed(ProtocolError, "arguments came for tool call ghost");
    turn_of(vec![args("ghost", "{}"), end("ghost")])
        .failed(ProtocolError, "arguments came for tool call ghost");
    let told = hears(|run| run.started().raw_event(result("ghost", "x")).error("boom", None));
    told.failed(hotseat_trace::FailureKind::AgentError, "boom");
}

/// An id that an earlier turn used does not make it known in this one.
#[test]
fn a_hidden_call_does_not_pass_under_an_old_id() {
    for hidden in [vec![args("c", "{\"n\":2}"), end("c")], vec![result("c", "paid again")]] {
        let agent = FakeAgent::start(move |request: &Request| {
            let run = Run::of(request).started();
            match request.index {
                0 => run.tool("c", "pay", &json!({"n": 1}), Some(json!("paid"))).finished(),
                _ => hidden.iter().cloned().fold(run, Run::raw_event).finished(),
            }
        });
        let told =
            Talk::with(&agent).says("one").says("two").held().failed(ProtocolError, "came for tool call c");
        assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid"#], "the earlier call stays as it was");
    }
}

/// A result that comes a turn late belongs to the call that waited for it; one that is only told again is nothing.
#[test]
fn a_late_result_belongs_to_its_call() {
    let agent = agent_of(vec![
        |run| {
            run.started()
                .tool("slow", "ship", &json!({}), None)
                .tool("fast", "pay", &json!({}), Some(json!("paid")))
                .finished()
        },
        |run| run.started().raw_event(result("slow", "shipped")).raw_event(result("fast", "paid")).finished(),
    ]);
    let told = Talk::with(&agent).says("one").says("two").held().passed().quietly();
    assert_eq!(told.calls(), ["1 ship {} → shipped", "1 pay {} → paid"]);
}

/// A80, A83: what is recorded is what assertions see, however it came.
#[test]
fn assertions_see_every_call() {
    let agent = agent_of(vec![|run| run.started().raw_event(start("c", "delete_order")).finished()]);
    let turn = json!({"user": "hi", "assert": {"tools": {"forbid": ["delete_order"]}}});
    Talk::with(&agent).turn(turn).held().failed(Assertion, "delete_order is never called");
}
