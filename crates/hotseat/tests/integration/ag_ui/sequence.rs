//! Event order rules. A violation is a note, and an error with `protocol: strict`.

use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{AgentError, ProtocolError};
use serde_json::{Value, json};

use super::fixture::{run_strict_turn, run_turn_with};

fn event(name: &str) -> Value {
    json!({"type": name})
}

fn of_message(name: &str, id: &str) -> Value {
    json!({"type": name, "messageId": id, "delta": "x"})
}

fn of_call(name: &str, id: &str) -> Value {
    json!({"type": name, "toolCallId": id, "toolCallName": "look", "delta": "{}"})
}

fn step(name: &str, step: &str) -> Value {
    json!({"type": name, "stepName": step})
}

fn with_subagent(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

fn play_events(events: &[Value]) -> impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static {
    let events = events.to_vec();
    move |run| events.iter().cloned().fold(run, FakeRun::raw_event)
}

/// Asserts that these events violate a rule at the event with this number, from 1.
#[track_caller]
fn assert_violation(number: usize, words: &str, events: &[Value]) {
    run_turn_with(play_events(events)).passed().assert_note(words);
    run_strict_turn(play_events(events)).failed(ProtocolError, &format!("event {number}: {words}"));
}

/// Asserts that these events inside a run violate a rule.
#[track_caller]
fn assert_violation_in_run(number: usize, words: &str, events: &[Value]) {
    assert_violation(number, words, &[&[event("RUN_STARTED")], events, &[event("RUN_FINISHED")]].concat());
}

/// Asserts that these events inside a run violate no rule.
#[track_caller]
fn assert_valid_in_run(events: &[Value]) {
    let all = [&[event("RUN_STARTED")], events, &[event("RUN_FINISHED")]].concat();
    run_strict_turn(play_events(&all)).passed().assert_no_notes();
}

/// A322, A323, A325
#[test]
fn run_starts_and_ends_once() {
    let (started, finished) = (event("RUN_STARTED"), event("RUN_FINISHED"));
    let text = [of_message("TEXT_MESSAGE_START", "m"), of_message("TEXT_MESSAGE_END", "m")];
    assert_violation(
        1,
        "an event before RUN_STARTED",
        &[&text[..], &[started.clone(), finished.clone()]].concat(),
    );
    assert_violation(
        1,
        "an event before RUN_STARTED",
        &[json!({"type": "RAW", "event": 1}), started.clone(), finished.clone()],
    );
    assert_violation(
        2,
        "RUN_STARTED while a run is active",
        &[started.clone(), started.clone(), finished.clone()],
    );
    assert_violation(
        3,
        "an event after RUN_FINISHED",
        &[&[started.clone(), finished.clone()], &text[..]].concat(),
    );
    assert_violation(3, "an event after RUN_FINISHED", &[started, finished.clone(), finished]);
}

/// A324: a run after a run is new; everything may start again.
#[test]
fn run_may_follow_run() {
    let subagent = json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"});
    let ended = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"});
    let run = [event("RUN_STARTED"), subagent, ended, event("RUN_FINISHED")];
    run_strict_turn(play_events(&[&run[..], &run[..]].concat())).passed().assert_no_notes();
}

/// A326, A421: neither a clean end nor another run revokes an error.
#[test]
fn error_is_final() {
    let (started, finished) = (event("RUN_STARTED"), event("RUN_FINISHED"));
    let error = json!({"type": "RUN_ERROR", "message": "boom", "code": "E1"});
    for (events, note) in [
        (vec![started.clone(), error.clone(), finished.clone()], Some("an event after RUN_ERROR")),
        (vec![started.clone(), finished.clone(), error.clone()], None),
        (vec![started.clone(), error.clone(), started.clone(), finished.clone()], None),
        (
            vec![started.clone(), error.clone(), json!({"type": "RUN_ERROR", "message": "again"})],
            Some("RUN_ERROR after RUN_ERROR"),
        ),
    ] {
        let told = run_turn_with(play_events(&events)).failed(AgentError, "the agent failed: boom (E1)");
        match note {
            Some(words) => drop(told.assert_note(words)),
            None => drop(told.assert_no_notes()),
        }
    }
}

/// A327, A428: an error may come at any time.
#[test]
fn error_may_occur_at_any_time() {
    let open = [
        event("RUN_STARTED"),
        of_message("TEXT_MESSAGE_START", "m"),
        step("STEP_STARTED", "s"),
        of_call("TOOL_CALL_START", "c"),
    ];
    let error = json!({"type": "RUN_ERROR", "message": "boom"});
    run_strict_turn(play_events(&[&open[..], std::slice::from_ref(&error)].concat()))
        .failed(AgentError, "boom")
        .assert_note("the arguments of tool call c are unknown: the reply was cut before the arguments");
    run_strict_turn(play_events(&[error])).failed(AgentError, "boom").assert_no_notes();
}

/// A328, A329, A330, A331, A338, A339
#[test]
fn continuing_or_ending_requires_one_start() {
    assert_violation_in_run(
        3,
        "TEXT_MESSAGE_START for message m, which is already open",
        &[
            of_message("TEXT_MESSAGE_START", "m"),
            of_message("TEXT_MESSAGE_START", "m"),
            of_message("TEXT_MESSAGE_END", "m"),
        ],
    );
    assert_violation_in_run(
        2,
        "TEXT_MESSAGE_CONTENT for message m, which is not open",
        &[of_message("TEXT_MESSAGE_CONTENT", "m")],
    );
    assert_violation_in_run(
        2,
        "TEXT_MESSAGE_END for message m, which is not open",
        &[of_message("TEXT_MESSAGE_END", "m")],
    );
    assert_violation_in_run(
        3,
        "TOOL_CALL_START for tool call c, which is already open",
        &[of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_END", "c")],
    );
    assert_violation_in_run(
        4,
        "TOOL_CALL_ARGS for tool call c, which is not open",
        &[of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_END", "c"), of_call("TOOL_CALL_ARGS", "c")],
    );
    assert_violation_in_run(
        2,
        "TOOL_CALL_END for tool call c, which is not open",
        &[of_call("TOOL_CALL_END", "c")],
    );
    assert_violation_in_run(
        3,
        "REASONING_START for reasoning r, which is already open",
        &[
            of_message("REASONING_START", "r"),
            of_message("REASONING_START", "r"),
            of_message("REASONING_END", "r"),
        ],
    );
    assert_violation_in_run(
        2,
        "REASONING_END for reasoning r, which is not open",
        &[of_message("REASONING_END", "r")],
    );
    assert_violation_in_run(
        3,
        "REASONING_MESSAGE_START for reasoning message r, which is already open",
        &[
            of_message("REASONING_MESSAGE_START", "r"),
            of_message("REASONING_MESSAGE_START", "r"),
            of_message("REASONING_MESSAGE_END", "r"),
        ],
    );
    assert_violation_in_run(
        2,
        "REASONING_MESSAGE_CONTENT for reasoning message r, which is not open",
        &[of_message("REASONING_MESSAGE_CONTENT", "r")],
    );
    assert_violation_in_run(
        2,
        "REASONING_MESSAGE_END for reasoning message r, which is not open",
        &[of_message("REASONING_MESSAGE_END", "r")],
    );
}

/// A335, A336
#[test]
fn steps_pair_by_name_and_owner() {
    assert_violation_in_run(
        3,
        "STEP_STARTED s while that step is active",
        &[step("STEP_STARTED", "s"), step("STEP_STARTED", "s"), step("STEP_FINISHED", "s")],
    );
    assert_violation_in_run(2, "STEP_FINISHED s without its STEP_STARTED", &[step("STEP_FINISHED", "s")]);
    assert_violation_in_run(
        3,
        "STEP_FINISHED s without its STEP_STARTED",
        &[
            step("STEP_STARTED", "s"),
            with_subagent("x", step("STEP_FINISHED", "s")),
            step("STEP_FINISHED", "s"),
        ],
    );
    assert_valid_in_run(&[
        step("STEP_STARTED", "s"),
        with_subagent("x", step("STEP_STARTED", "s")),
        step("STEP_FINISHED", "s"),
        with_subagent("x", step("STEP_FINISHED", "s")),
    ]);
}

/// A337
#[test]
fn run_ends_with_nothing_open() {
    for (opener, what) in [
        (of_message("TEXT_MESSAGE_START", "x"), "message x"),
        (of_call("TOOL_CALL_START", "x"), "tool call x"),
        (of_message("REASONING_START", "x"), "reasoning x"),
        (of_message("REASONING_MESSAGE_START", "x"), "reasoning message x"),
        (step("STEP_STARTED", "x"), "step x"),
        (json!({"type": "SUBAGENT_STARTED", "subagentRunId": "x", "name": "n"}), "sub-agent x"),
    ] {
        assert_violation_in_run(3, &format!("RUN_FINISHED while open: {what}"), &[opener]);
    }
}

/// A332, A333, A334, A348: unusual but valid orders.
#[test]
fn messages_and_calls_may_interleave() {
    assert_valid_in_run(&[
        of_message("TEXT_MESSAGE_START", "m1"),
        of_call("TOOL_CALL_START", "c1"),
        of_message("TEXT_MESSAGE_START", "m2"),
        of_call("TOOL_CALL_START", "c2"),
        of_message("TEXT_MESSAGE_CONTENT", "m1"),
        of_call("TOOL_CALL_ARGS", "c2"),
        of_message("TEXT_MESSAGE_CONTENT", "m2"),
        of_call("TOOL_CALL_ARGS", "c1"),
        of_message("TEXT_MESSAGE_END", "m2"),
        of_call("TOOL_CALL_END", "c1"),
        of_message("TEXT_MESSAGE_END", "m1"),
        // A result before the end of its call, as from servers that end the call after execution.
        json!({"type": "TOOL_CALL_RESULT", "messageId": "r2", "toolCallId": "c2", "content": "ok"}),
        of_call("TOOL_CALL_END", "c2"),
    ]);
    // The same id for a message, a call and its result.
    assert_valid_in_run(&[
        of_message("TEXT_MESSAGE_START", "x"),
        of_message("TEXT_MESSAGE_CONTENT", "x"),
        of_message("TEXT_MESSAGE_END", "x"),
        of_call("TOOL_CALL_START", "x"),
        of_call("TOOL_CALL_ARGS", "x"),
        of_call("TOOL_CALL_END", "x"),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "x", "content": "ok"}),
    ]);
    // A closed id may be reopened.
    assert_valid_in_run(&[
        of_call("TOOL_CALL_START", "c"),
        of_call("TOOL_CALL_END", "c"),
        of_call("TOOL_CALL_START", "c"),
        of_call("TOOL_CALL_END", "c"),
    ]);
}

/// A341, A342
#[test]
fn sub_agents_start_once_with_known_parents() {
    let start = |id: &str| json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "helper"});
    let child = |id: &str, parent: &str| json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "helper", "parentSubagentRunId": parent});
    let end =
        |id: &str| json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": {"type": "success"}});
    let fail = |id: &str| json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "boom"});
    assert_valid_in_run(&[start("a"), child("b", "a"), fail("b"), end("a"), child("c", "a"), end("c")]);
    assert_violation_in_run(
        3,
        "SUBAGENT_STARTED for sub-agent a, which is already open",
        &[start("a"), start("a"), end("a")],
    );
    assert_violation_in_run(
        4,
        "SUBAGENT_STARTED a, which has already ended in this run",
        &[start("a"), end("a"), start("a")],
    );
    assert_violation_in_run(
        2,
        "SUBAGENT_STARTED a names a parent that never started: p",
        &[child("a", "p"), end("a")],
    );
    assert_violation_in_run(2, "SUBAGENT_FINISHED for sub-agent a, which is not open", &[end("a")]);
    assert_violation_in_run(
        4,
        "SUBAGENT_ERROR for sub-agent a, which is not open",
        &[start("a"), end("a"), fail("a")],
    );
    assert_violation_in_run(
        2,
        "SUBAGENT_STARTED without subagentRunId",
        &[json!({"type": "SUBAGENT_STARTED", "name": "n"})],
    );
}

/// A343, A344: the opening event determines the owner of a message; an event without owner is neutral.
#[test]
fn message_cannot_be_continued_by_another_agent() {
    let (start, content, end) = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END");
    assert_valid_in_run(&[
        with_subagent("a", of_message(start, "m")),
        of_message(content, "m"),
        with_subagent("a", of_message(content, "m")),
        of_message(end, "m"),
    ]);
    assert_violation_in_run(
        3,
        "TEXT_MESSAGE_CONTENT for message m, which another agent started",
        &[of_message(start, "m"), with_subagent("a", of_message(content, "m")), of_message(end, "m")],
    );
    assert_violation_in_run(
        3,
        "TEXT_MESSAGE_END for message m, which another agent started",
        &[with_subagent("a", of_message(start, "m")), with_subagent("b", of_message(end, "m"))],
    );
    assert_violation_in_run(
        3,
        "TOOL_CALL_END for tool call c, which another agent started",
        &[of_call("TOOL_CALL_START", "c"), with_subagent("a", of_call("TOOL_CALL_END", "c"))],
    );

    let result = json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "ok"});
    let value = json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "c", "encryptedValue": "x"});
    let call_of = |owner: &str| {
        [of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_END", "c")]
            .map(|event| with_subagent(owner, event))
    };
    let [start_of_a, end_of_a] = call_of("a");
    assert_valid_in_run(&[
        start_of_a.clone(),
        end_of_a.clone(),
        with_subagent("a", value.clone()),
        result.clone(),
    ]);
    for (name, event) in [("TOOL_CALL_RESULT", result), ("REASONING_ENCRYPTED_VALUE", value)] {
        assert_violation_in_run(
            4,
            &format!("{name} for tool call c, which another agent started"),
            &[start_of_a.clone(), end_of_a.clone(), with_subagent("b", event)],
        );
    }

    let call_in = |mut call: Value| {
        call["parentMessageId"] = json!("m");
        call
    };
    let (call, ended) = (call_in(of_call("TOOL_CALL_START", "c")), of_call("TOOL_CALL_END", "c"));
    assert_valid_in_run(&[
        with_subagent("a", of_message(start, "m")),
        of_message(end, "m"),
        with_subagent("a", call.clone()),
        ended.clone(),
    ]);
    assert_valid_in_run(&[with_subagent("a", call.clone()), ended.clone()]);
    assert_violation_in_run(
        4,
        "TOOL_CALL_START for tool call c names a message of another agent",
        &[of_message(start, "m"), of_message(end, "m"), with_subagent("a", call), ended],
    );
}

/// A346, A347
#[test]
fn run_and_thread_ids_match_request() {
    let (started, finished) =
        (json!({"type": "RUN_STARTED", "runId": "a"}), json!({"type": "RUN_FINISHED", "runId": "b"}));
    assert_violation(2, "RUN_FINISHED has run b, RUN_STARTED has a", &[started, finished]);
    run_turn_with(|run| run.raw_event(json!({"type": "RUN_STARTED", "runId": "other"})).finished())
        .passed()
        .assert_note("RUN_STARTED has run other, the request has");
    run_turn_with(|run| run.raw_event(json!({"type": "RUN_STARTED", "threadId": "other"})).finished())
        .passed()
        .assert_note("RUN_STARTED has thread other, the request has");
    run_turn_with(|run| run.started().raw_event(json!({"type": "RUN_FINISHED", "threadId": "other"})))
        .passed()
        .assert_note("RUN_FINISHED has thread other, the request has");
}

/// Invalid events still count, so a broken agent cannot hide actions.
#[test]
fn events_breaking_rules_still_count() {
    let told = run_turn_with(|run| {
        run.raw_event(of_call("TOOL_CALL_START", "early"))
            .started()
            .finished()
            .raw_event(of_call("TOOL_CALL_START", "late"))
            .raw_event(of_message("TEXT_MESSAGE_CONTENT", "unopened"))
    });
    let told = told.passed();
    assert_eq!(told.calls(), [r#"1 look "the reply was cut before the arguments" → nothing"#; 2]);
    assert_eq!(told.texts(), ["1 x"]);
}

/// A rule violated a thousand times is one note.
#[test]
fn repeated_violation_is_noted_once() {
    let told = run_turn_with(|run| {
        (0..1000)
            .fold(run.started(), |run, _| run.raw_event(of_message("TEXT_MESSAGE_CONTENT", "m")))
            .finished()
    });
    let told = told.passed();
    assert_eq!(told.texts(), [format!("1 {}", "x".repeat(1000))]);
    assert!(told.notes().len() <= 2, "{:?}", told.notes());
}

/// A429: strict mode keeps the events before the violation.
#[test]
fn strict_mode_keeps_earlier_events() {
    let told = run_strict_turn(|run| {
        run.started()
            .tool("c", "pay", &json!({}), Some(json!("paid")))
            .text("Hi.")
            .raw_event(step("STEP_FINISHED", "s"))
            .tool("d", "more", &json!({}), None)
            .finished()
    });
    assert_eq!(told.failed(ProtocolError, "event 10: STEP_FINISHED s without").calls(), ["1 pay {} → paid"]);
}
