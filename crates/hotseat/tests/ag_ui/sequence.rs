//! Which event may follow which. A broken rule is a note, and an error where the target says `protocol: strict`.

use hotseat_testkit::agui::Run;
use hotseat_trace::FailureKind::{AgentError, ProtocolError};
use serde_json::{Value, json};

use super::talk::{hears, hears_strictly};

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

fn by(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

fn played(events: &[Value]) -> impl Fn(Run) -> Run + Send + Sync + 'static {
    let events = events.to_vec();
    move |run| events.iter().cloned().fold(run, Run::raw_event)
}

/// These events break a rule at the event of this number, from 1.
#[track_caller]
fn breaks(number: usize, words: &str, events: &[Value]) {
    hears(played(events)).passed().noting(words);
    hears_strictly(played(events)).failed(ProtocolError, &format!("event {number}: {words}"));
}

/// These events between the first and the last of a run break one.
#[track_caller]
fn breaks_within(number: usize, words: &str, events: &[Value]) {
    breaks(number, words, &[&[event("RUN_STARTED")], events, &[event("RUN_FINISHED")]].concat());
}

/// These events between the first and the last of a run break none.
#[track_caller]
fn keeps_within(events: &[Value]) {
    let all = [&[event("RUN_STARTED")], events, &[event("RUN_FINISHED")]].concat();
    hears_strictly(played(&all)).passed().quietly();
}

/// A322, A323, A325
#[test]
fn a_run_begins_and_ends_once() {
    let (started, finished) = (event("RUN_STARTED"), event("RUN_FINISHED"));
    let text = [of_message("TEXT_MESSAGE_START", "m"), of_message("TEXT_MESSAGE_END", "m")];
    breaks(1, "an event before RUN_STARTED", &[&text[..], &[started.clone(), finished.clone()]].concat());
    breaks(
        1,
        "an event before RUN_STARTED",
        &[json!({"type": "RAW", "event": 1}), started.clone(), finished.clone()],
    );
    breaks(2, "RUN_STARTED while a run is going on", &[started.clone(), started.clone(), finished.clone()]);
    breaks(3, "an event after RUN_FINISHED", &[&[started.clone(), finished.clone()], &text[..]].concat());
    breaks(3, "an event after RUN_FINISHED", &[started, finished.clone(), finished]);
}

/// A324: a run after a run is a new one, in which everything may begin again.
#[test]
fn a_run_may_follow_a_run() {
    let subagent = json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"});
    let ended = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"});
    let run = [event("RUN_STARTED"), subagent, ended, event("RUN_FINISHED")];
    hears_strictly(played(&[&run[..], &run[..]].concat())).passed().quietly();
}

/// A326, A421: an error is not taken back, neither by an end in order nor by another run.
#[test]
fn an_error_stays_an_error() {
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
        let told = hears(played(&events)).failed(AgentError, "the agent failed: boom (E1)");
        match note {
            Some(words) => drop(told.noting(words)),
            None => drop(told.quietly()),
        }
    }
}

/// A327, A428: an error may come at any time.
#[test]
fn an_error_may_come_at_any_time() {
    let open = [
        event("RUN_STARTED"),
        of_message("TEXT_MESSAGE_START", "m"),
        step("STEP_STARTED", "s"),
        of_call("TOOL_CALL_START", "c"),
    ];
    let error = json!({"type": "RUN_ERROR", "message": "boom"});
    hears_strictly(played(&[&open[..], std::slice::from_ref(&error)].concat()))
        .failed(AgentError, "boom")
        .quietly();
    hears_strictly(played(&[error])).failed(AgentError, "boom").quietly();
}

/// A328, A329, A330, A331, A338, A339
#[test]
fn what_goes_on_or_ends_has_begun_and_begins_once() {
    breaks_within(
        3,
        "TEXT_MESSAGE_START for message m, which is open already",
        &[
            of_message("TEXT_MESSAGE_START", "m"),
            of_message("TEXT_MESSAGE_START", "m"),
            of_message("TEXT_MESSAGE_END", "m"),
        ],
    );
    breaks_within(
        2,
        "TEXT_MESSAGE_CONTENT for message m, which is not open",
        &[of_message("TEXT_MESSAGE_CONTENT", "m")],
    );
    breaks_within(
        2,
        "TEXT_MESSAGE_END for message m, which is not open",
        &[of_message("TEXT_MESSAGE_END", "m")],
    );
    breaks_within(
        3,
        "TOOL_CALL_START for tool call c, which is open already",
        &[of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_END", "c")],
    );
    breaks_within(
        4,
        "TOOL_CALL_ARGS for tool call c, which is not open",
        &[of_call("TOOL_CALL_START", "c"), of_call("TOOL_CALL_END", "c"), of_call("TOOL_CALL_ARGS", "c")],
    );
    breaks_within(2, "TOOL_CALL_END for tool call c, which is not open", &[of_call("TOOL_CALL_END", "c")]);
    breaks_within(
        3,
        "REASONING_START for reasoning r, which is open already",
        &[
            of_message("REASONING_START", "r"),
            of_message("REASONING_START", "r"),
            of_message("REASONING_END", "r"),
        ],
    );
    breaks_within(2, "REASONING_END for reasoning r, which is not open", &[of_message("REASONING_END", "r")]);
    breaks_within(
        3,
        "REASONING_MESSAGE_START for reasoning message r, which is open already",
        &[
            of_message("REASONING_MESSAGE_START", "r"),
            of_message("REASONING_MESSAGE_START", "r"),
            of_message("REASONING_MESSAGE_END", "r"),
        ],
    );
    breaks_within(
        2,
        "REASONING_MESSAGE_CONTENT for reasoning message r, which is not open",
        &[of_message("REASONING_MESSAGE_CONTENT", "r")],
    );
    breaks_within(
        2,
        "REASONING_MESSAGE_END for reasoning message r, which is not open",
        &[of_message("REASONING_MESSAGE_END", "r")],
    );
}

/// A335, A336
#[test]
fn steps_pair_by_name_and_owner() {
    breaks_within(
        3,
        "STEP_STARTED s while that step is going on",
        &[step("STEP_STARTED", "s"), step("STEP_STARTED", "s"), step("STEP_FINISHED", "s")],
    );
    breaks_within(2, "STEP_FINISHED s without its STEP_STARTED", &[step("STEP_FINISHED", "s")]);
    breaks_within(
        3,
        "STEP_FINISHED s without its STEP_STARTED",
        &[step("STEP_STARTED", "s"), by("x", step("STEP_FINISHED", "s")), step("STEP_FINISHED", "s")],
    );
    keeps_within(&[
        step("STEP_STARTED", "s"),
        by("x", step("STEP_STARTED", "s")),
        step("STEP_FINISHED", "s"),
        by("x", step("STEP_FINISHED", "s")),
    ]);
}

/// A337
#[test]
fn a_run_ends_with_nothing_open() {
    for (opener, what) in [
        (of_message("TEXT_MESSAGE_START", "x"), "message x"),
        (of_call("TOOL_CALL_START", "x"), "tool call x"),
        (of_message("REASONING_START", "x"), "reasoning x"),
        (of_message("REASONING_MESSAGE_START", "x"), "reasoning message x"),
        (step("STEP_STARTED", "x"), "step x"),
        (json!({"type": "SUBAGENT_STARTED", "subagentRunId": "x", "name": "n"}), "sub-agent x"),
    ] {
        breaks_within(3, &format!("RUN_FINISHED while open: {what}"), &[opener]);
    }
}

/// A332, A333, A334, A348: what looks wild and is allowed.
#[test]
fn messages_and_calls_may_interleave() {
    keeps_within(&[
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
        // A result before the end of its call, as servers send that say the end when the tool has run.
        json!({"type": "TOOL_CALL_RESULT", "messageId": "r2", "toolCallId": "c2", "content": "ok"}),
        of_call("TOOL_CALL_END", "c2"),
    ]);
    // The same id for a message, a call and its result.
    keeps_within(&[
        of_message("TEXT_MESSAGE_START", "x"),
        of_message("TEXT_MESSAGE_CONTENT", "x"),
        of_message("TEXT_MESSAGE_END", "x"),
        of_call("TOOL_CALL_START", "x"),
        of_call("TOOL_CALL_ARGS", "x"),
        of_call("TOOL_CALL_END", "x"),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "x", "content": "ok"}),
    ]);
    // An id that has been closed may be opened again.
    keeps_within(&[
        of_call("TOOL_CALL_START", "c"),
        of_call("TOOL_CALL_END", "c"),
        of_call("TOOL_CALL_START", "c"),
        of_call("TOOL_CALL_END", "c"),
    ]);
}

/// A341, A342
#[test]
fn sub_agents_begin_once_and_have_known_parents() {
    let start = |id: &str| json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "helper"});
    let child = |id: &str, parent: &str| json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "helper", "parentSubagentRunId": parent});
    let end =
        |id: &str| json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": {"type": "success"}});
    let fail = |id: &str| json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "boom"});
    keeps_within(&[start("a"), child("b", "a"), fail("b"), end("a"), child("c", "a"), end("c")]);
    breaks_within(
        3,
        "SUBAGENT_STARTED for sub-agent a, which is open already",
        &[start("a"), start("a"), end("a")],
    );
    breaks_within(
        4,
        "SUBAGENT_STARTED a, which has already ended in this run",
        &[start("a"), end("a"), start("a")],
    );
    breaks_within(2, "SUBAGENT_STARTED a names a parent that never began: p", &[child("a", "p"), end("a")]);
    breaks_within(2, "SUBAGENT_FINISHED for sub-agent a, which is not open", &[end("a")]);
    breaks_within(4, "SUBAGENT_ERROR for sub-agent a, which is not open", &[start("a"), end("a"), fail("a")]);
    breaks_within(
        2,
        "SUBAGENT_STARTED without subagentRunId",
        &[json!({"type": "SUBAGENT_STARTED", "name": "n"})],
    );
}

/// A343, A344: whose message it is, is said by who opened it. Who says nothing claims nothing.
#[test]
fn nobody_goes_on_with_the_message_of_another() {
    let (start, content, end) = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END");
    keeps_within(&[
        by("a", of_message(start, "m")),
        of_message(content, "m"),
        by("a", of_message(content, "m")),
        of_message(end, "m"),
    ]);
    breaks_within(
        3,
        "TEXT_MESSAGE_CONTENT for message m, which another agent began",
        &[of_message(start, "m"), by("a", of_message(content, "m")), of_message(end, "m")],
    );
    breaks_within(
        3,
        "TEXT_MESSAGE_END for message m, which another agent began",
        &[by("a", of_message(start, "m")), by("b", of_message(end, "m"))],
    );
    breaks_within(
        3,
        "TOOL_CALL_END for tool call c, which another agent began",
        &[of_call("TOOL_CALL_START", "c"), by("a", of_call("TOOL_CALL_END", "c"))],
    );

    let call_in = |mut call: Value| {
        call["parentMessageId"] = json!("m");
        call
    };
    let (call, ended) = (call_in(of_call("TOOL_CALL_START", "c")), of_call("TOOL_CALL_END", "c"));
    keeps_within(&[
        by("a", of_message(start, "m")),
        of_message(end, "m"),
        by("a", call.clone()),
        ended.clone(),
    ]);
    keeps_within(&[by("a", call.clone()), ended.clone()]);
    breaks_within(
        4,
        "TOOL_CALL_START for tool call c names a message of another agent",
        &[of_message(start, "m"), of_message(end, "m"), by("a", call), ended],
    );
}

/// A346, A347
#[test]
fn runs_and_threads_are_called_as_in_the_request() {
    let (started, finished) =
        (json!({"type": "RUN_STARTED", "runId": "a"}), json!({"type": "RUN_FINISHED", "runId": "b"}));
    breaks(2, "RUN_FINISHED says run b, RUN_STARTED said a", &[started, finished]);
    hears(|run| run.raw_event(json!({"type": "RUN_STARTED", "runId": "other"})).finished())
        .passed()
        .noting("RUN_STARTED says run other");
    hears(|run| run.raw_event(json!({"type": "RUN_STARTED", "threadId": "other"})).finished())
        .passed()
        .noting("RUN_STARTED says thread other");
    hears(|run| run.started().raw_event(json!({"type": "RUN_FINISHED", "threadId": "other"})))
        .passed()
        .noting("RUN_FINISHED says thread other");
}

/// What a rule is broken with still counts: a broken agent cannot hide behind its own mistakes.
#[test]
fn what_breaks_a_rule_still_counts() {
    let told = hears(|run| {
        run.raw_event(of_call("TOOL_CALL_START", "early"))
            .started()
            .finished()
            .raw_event(of_call("TOOL_CALL_START", "late"))
            .raw_event(of_message("TEXT_MESSAGE_CONTENT", "unopened"))
    });
    let told = told.passed();
    assert_eq!(told.calls(), ["1 look {} → nothing", "1 look {} → nothing"]);
    assert_eq!(told.texts(), ["1 x"]);
}

/// A rule that is broken a thousand times is one note.
#[test]
fn the_same_is_not_noted_twice() {
    let told = hears(|run| {
        (0..1000)
            .fold(run.started(), |run, _| run.raw_event(of_message("TEXT_MESSAGE_CONTENT", "m")))
            .finished()
    });
    let told = told.passed();
    assert_eq!(told.texts(), [format!("1 {}", "x".repeat(1000))]);
    assert!(told.notes().len() <= 2, "{:?}", told.notes());
}

/// A429: by the strictest rules what came before the fault is kept.
#[test]
fn a_strict_end_keeps_what_came_before() {
    let told = hears_strictly(|run| {
        run.started()
            .tool("c", "pay", &json!({}), Some(json!("paid")))
            .text("Hi.")
            .raw_event(step("STEP_FINISHED", "s"))
            .tool("d", "more", &json!({}), None)
            .finished()
    });
    assert_eq!(told.failed(ProtocolError, "event 10: STEP_FINISHED s without").calls(), ["1 pay {} → paid"]);
}
