//! Interrupts: a pausing agent is answered from the script of the turn, or the turn fails.

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{AgentError, Assertion, Limit, ProtocolError, TestError};
use serde_json::{Value, json};

use super::fixture::{TestConversation, messages, roles, run_turn_with, scripted_agent};

/// An agent that calls a tool, raises these interrupts, and repeats the answers.
fn asking(interrupts: Vec<Value>) -> FakeAgent {
    FakeAgent::with_run(move |run, request| match request.resume().as_slice() {
        [] => run.tool_call("c1", "refund", &json!({"n": 7})).interrupted(interrupts.clone()),
        answers => run.tool_result("c1", &json!({"answers": answers})).text("Resumed.").finished(),
    })
}

fn approval() -> Value {
    json!({"id": "int-1", "reason": "tool_call", "message": "Approve refund?", "toolCallId": "c1", "responseSchema": {}})
}

fn turn_with_answers(answers: Value) -> Value {
    json!({"user": "refund me", "resume": answers})
}

/// A401, A403, A404: every end without an interrupt.
#[test]
fn outcomes_without_interrupt_end_turn() {
    for (outcome, note) in [
        (json!(null), None),
        (json!({"type": "success"}), None),
        (json!({"type": "success", "pendingToolCallIds": null, "interrupts": null}), None),
        (json!("success"), None),
        (json!({"type": "cancelled"}), Some("cancelled")),
        (json!({"type": "postponed", "until": 5}), Some("unknown run outcome postponed")),
    ] {
        let finished = json!({"type": "RUN_FINISHED", "outcome": outcome});
        let told = run_turn_with(move |run| run.started().raw_event(finished.clone())).passed();
        match note {
            None => drop(told.assert_no_notes()),
            Some(words) => drop(told.assert_note(words)),
        }
    }
}

/// A402, A405: an unanswered interrupt is a failure that shows all of it.
#[test]
fn unanswered_interrupt_fails_turn() {
    let agent = asking(vec![approval()]);
    let told = TestConversation::new(&agent)
        .user_says("refund me")
        .run()
        .failed(TestError, "does not define (add it to `resume`)");
    let told = told
        .failed(TestError, "message: Approve refund?")
        .failed(TestError, "tool: refund")
        .failed(TestError, "responseSchema");
    let raised = &told.events("interrupt.raised")[0];
    assert_eq!((&raised["interruptId"], &raised["toolCallId"]), (&json!("int-1"), &json!("c1")));
    assert_eq!(agent.requests().len(), 1);
}

/// A406, A411, A417: another run with the answer in the same turn; the call is one call.
#[test]
fn answer_resumes_run() {
    let agent = asking(vec![approval()]);
    let told = TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"payload": {"approved": true, "editedArgs": {"n": 6}}}])))
        .run()
        .passed()
        .assert_no_notes();
    assert_eq!(told.calls().len(), 1);
    assert_eq!(told.texts(), ["1 Resumed."]);
    let requests = agent.requests();
    let (first, second) = (requests[0].input(), requests[1].input());
    assert!(requests[0].json().get("resume").is_none());
    assert_eq!(
        second.resume(),
        [
            json!({"interruptId": "int-1", "status": "resolved", "payload": {"approved": true, "editedArgs": {"n": 6}}})
        ]
    );
    assert_eq!(first.thread_id, second.thread_id);
    assert_ne!(first.run_id, second.run_id);
    assert_eq!(roles(&messages(&requests[1])), ["user", "assistant(c1)"], "no new user message");
    assert_eq!(
        told.events("interrupt.answered")[0]["payload"],
        json!({"approved": true, "editedArgs": {"n": 6}})
    );
}

#[test]
fn interrupt_without_id_is_answered_beside_the_list() {
    let mut asked = approval();
    asked.as_object_mut().expect("an object").remove("id");
    let agent = asking(vec![asked]);
    let told =
        TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": {"approved": true}}]))).run();
    told.assert_note("an interrupt has no `id`");
    let second = agent.requests()[1].json();
    assert_eq!(second["forwardedProps"]["command"]["resume"], json!({"approved": true}), "{second}");
    assert!(second.get("resume").is_none(), "{second}");
}

/// A407
#[test]
fn rejected_interrupt_has_no_payload() {
    let agent = asking(vec![approval()]);
    TestConversation::new(&agent).turn(turn_with_answers(json!([{"status": "cancelled"}]))).run().passed();
    assert_eq!(agent.requests()[1].resume(), [json!({"interruptId": "int-1", "status": "cancelled"})]);
}

/// A406: AG2 recognises by a proof in the metadata that the answer is to its interrupt.
#[test]
fn metadata_of_interrupt_is_sent_back() {
    let mut asked = approval();
    asked["metadata"] = json!({"proof": "p-1", "deep": {"n": 1}});
    for answer in [json!({"payload": true}), json!({"status": "cancelled"})] {
        let agent = asking(vec![asked.clone()]);
        TestConversation::new(&agent).turn(turn_with_answers(json!([answer]))).run().passed();
        let sent = &agent.requests()[1].resume()[0];
        assert_eq!(
            (&sent["interruptId"], &sent["metadata"]),
            (&json!("int-1"), &asked["metadata"]),
            "{sent}"
        );
        assert_eq!(sent.get("payload"), answer.get("payload"));
    }
}

/// A payload may be any JSON, including falsy values.
#[test]
fn payload_may_be_any_json_value() {
    for payload in [json!(false), json!(0), json!(""), json!(null), json!([])] {
        let agent = asking(vec![approval()]);
        TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": payload}]))).run().passed();
        assert_eq!(agent.requests()[1].resume()[0]["payload"], payload);
        assert!(agent.requests()[1].resume()[0].get("payload").is_some());
    }
}

/// A408, A419, A420: each interrupt gets its first matching answer, and all are sent in one request.
#[test]
fn several_interrupts_are_answered_together() {
    let second = json!({"id": "int-2", "reason": "my-own-reason", "message": "Colour?"});
    let answers = json!([{"reason": "^my-own", "payload": "red"}, {"tool": "refund", "message": "Approve", "payload": true}]);
    let agent = asking(vec![approval(), second.clone()]);
    TestConversation::new(&agent).turn(turn_with_answers(answers)).run().passed();
    let sent: Vec<Value> = agent.requests()[1].resume();
    assert_eq!(sent[0], json!({"interruptId": "int-1", "status": "resolved", "payload": true}));
    assert_eq!(sent[1], json!({"interruptId": "int-2", "status": "resolved", "payload": "red"}));

    // A single unanswered one stops the turn.
    let agent = asking(vec![approval(), second]);
    let told = TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"reason": "tool_call", "payload": true}])))
        .run();
    told.failed(TestError, "Colour?");
    assert_eq!(agent.requests().len(), 1);
}

/// A420: an unused answer fails the turn.
#[test]
fn unused_interrupt_answer_fails_turn() {
    let agent = scripted_agent(vec![|run| run.started().text("Refunded at once.").finished()]);
    TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .failed(Assertion, "the agent never asked for the answer at");
}

/// A410
#[test]
fn expired_interrupt_can_only_be_cancelled() {
    let mut expired = approval();
    expired["expiresAt"] = json!("2020-01-01T00:00:00Z");
    let agent = asking(vec![expired.clone()]);
    TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .failed(TestError, "expired at 2020-01-01T00:00:00Z");
    assert_eq!(agent.requests().len(), 1);
    TestConversation::new(&agent).turn(turn_with_answers(json!([{"status": "cancelled"}]))).run().passed();
    expired["expiresAt"] = json!("2999-01-01T00:00:00Z");
    TestConversation::new(&asking(vec![expired]))
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .passed();
}

/// An outcome that waits for an unspecified answer fails.
#[test]
fn pause_without_interrupt_is_an_error() {
    for outcome in
        [json!({"type": "interrupt", "interrupts": []}), json!({"type": "interrupt"}), json!("interrupt")]
    {
        let finished = json!({"type": "RUN_FINISHED", "outcome": outcome});
        let told = run_turn_with(move |run| run.started().raw_event(finished.clone()));
        told.failed(ProtocolError, "event 2: RUN_FINISHED has outcome `interrupt` but lists no interrupts");
    }
}

/// An interrupt stays open if the agent starts another run in the same stream.
#[test]
fn interrupt_stays_open_across_runs_of_stream() {
    let run = |run: FakeRun| {
        run.started()
            .interrupted(vec![approval()])
            .raw_event(json!({"type": "RUN_STARTED"}))
            .text("Going on anyway.")
            .raw_event(json!({"type": "RUN_FINISHED"}))
    };
    run_turn_with(run).failed(TestError, "Approve refund?");
    // Repeated, it is the same interrupt.
    let agent = scripted_agent(vec![
        |run| {
            run.started()
                .interrupted(vec![approval()])
                .raw_event(json!({"type": "RUN_STARTED"}))
                .interrupted(vec![approval()])
        },
        |run| run.started().finished(),
    ]);
    TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": true}]))).run().passed();
    assert_eq!(agent.requests()[1].resume().len(), 1);
}

/// A call held by an interrupt waits for that answer, even if the client offers a tool with its name.
#[test]
fn interrupted_call_is_not_answered_as_client_tool() {
    let agent = asking(vec![approval()]);
    let tools = json!([{"name": "refund", "answers": [{"content": "by the client"}]}]);
    let told = TestConversation::new(&agent)
        .case("tools", tools)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .passed();
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)"]);
    assert_eq!(told.calls().len(), 1);
    assert!(told.calls()[0].contains("answers"), "{:?}", told.calls());
}

/// An interrupt and a client tool of one run are both answered in the next.
#[test]
fn interrupt_and_client_tool_are_answered_together() {
    let agent = FakeAgent::with_run(|run, request| match request.resume().len() {
        0 => run
            .tool_call("c1", "refund", &json!({}))
            .tool_call("c2", "confirm", &json!({}))
            .interrupted(vec![approval()]),
        _ => run.tool_result("c1", &json!("refunded")).finished(),
    });
    let tools = json!([{"name": "confirm", "answers": [{"content": "yes"}]}]);
    let told = TestConversation::new(&agent)
        .case("tools", tools)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .passed();
    assert_eq!(told.calls(), ["1 refund {} → refunded", "1 confirm {} → yes"]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "assistant(c2)", "tool:c2"]);
}

/// A349, A411: a resumed run may announce the held call again.
#[test]
fn resumed_run_may_repeat_call_announcement() {
    let agent = FakeAgent::with_run(|run, request| match request.resume().len() {
        0 => run.tool_call("c1", "refund", &json!({"n": 7})).interrupted(vec![approval()]),
        _ => run.tool("c1", "refund", &json!({"n": 7}), Some(json!("refunded"))).finished(),
    });
    let told = TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .passed()
        .assert_no_notes();
    assert_eq!(told.calls(), [r#"1 refund {"n":7} → refunded"#]);
}

/// A call executed before the pause runs once; a repetition by the resumed run is detected.
#[test]
fn repeated_execution_in_resumed_run_is_detected() {
    let resumed = |result: &'static str| {
        let agent = FakeAgent::with_run(move |run, request| match request.resume().len() {
            0 => run
                .tool("c0", "pay", &json!({"n": 1}), Some(json!("ch_1")))
                .tool_call("c1", "refund", &json!({}))
                .interrupted(vec![approval()]),
            _ => run
                .tool("c0", "pay", &json!({"n": 1}), Some(json!(result)))
                .tool_result("c1", &json!("ok"))
                .finished(),
        });
        TestConversation::new(&agent)
            .turn(turn_with_answers(json!([{"payload": true}])))
            .run()
            .passed()
            .calls()
    };
    assert_eq!(resumed("ch_1"), [r#"1 pay {"n":1} → ch_1"#, "1 refund {} → ok"], "told again");
    assert_eq!(
        resumed("ch_2"),
        [r#"1 pay {"n":1} → ch_1"#, "1 refund {} → ok", r#"1 pay {"n":1} → ch_2"#],
        "done again"
    );
}

/// A414: the legacy channel of producers before 1.0.
mod before_outcomes {
    use super::*;

    /// An agent that interrupts with a custom event and repeats the answer.
    fn asking(value: Value) -> FakeAgent {
        FakeAgent::with_run(move |run, request| {
            let body = request.json();
            let answer = &body["forwardedProps"]["command"]["resume"];
            match (answer, request.resume().as_slice()) {
                (Value::Null, []) => {
                    run.custom("on_interrupt", value.clone()).raw_event(json!({"type": "RUN_FINISHED"}))
                }
                (answer, resume) => run.text(&format!("{answer} {}", json!(resume))).finished(),
            }
        })
    }

    /// The message shows the whole value if that has no text of its own.
    #[test]
    fn value_without_a_text_is_shown() {
        for (value, message) in [
            (json!([{"action": "refund"}]), json!(r#"[{"action":"refund"}]"#)),
            (json!([{"type": "text", "text": "Really?"}]), json!("Really?")),
            (json!({"action": "refund"}), json!(r#"{"action":"refund"}"#)),
            (json!({"message": ""}), json!(r#"{"message":""}"#)),
            (json!([]), json!("[]")),
            (json!(null), json!("null")),
        ] {
            let agent = asking(value.clone());
            let told = TestConversation::new(&agent)
                .turn(turn_with_answers(json!([{"payload": {"approved": true}}])))
                .run()
                .passed();
            assert_eq!(told.events("interrupt.raised")[0]["message"], message, "{value}");
        }
    }

    #[test]
    fn legacy_answer_is_forwarded_once() {
        let agent = asking(json!("{\"question\": \"Refund 42.5?\"}"));
        let talk = TestConversation::new(&agent)
            .target(|target| target.forwarded_props = json!({"user": 7, "command": {"other": 1}}));
        let told = talk
            .turn(turn_with_answers(json!([{"message": "Refund 42", "payload": {"approved": true}}])))
            .user_says("next")
            .run();
        let told = told.failed(TestError, "the agent paused for an answer that the turn does not define");
        assert_eq!(told.texts(), [r#"1 {"approved":true} []"#]);
        let props: Vec<Value> =
            agent.requests().iter().map(|request| request.json()["forwardedProps"].clone()).collect();
        assert_eq!(props[0], json!({"user": 7, "command": {"other": 1}}));
        assert_eq!(props[1], json!({"user": 7, "command": {"other": 1, "resume": {"approved": true}}}));
        assert_eq!(props[2], props[0], "an answer never outlives its run");
    }

    #[test]
    fn legacy_interrupt_may_be_text_or_json() {
        for (value, shown) in [
            (json!("Really?"), "message: Really?"),
            (json!({"message": "Really?", "reason": "why"}), "reason: why; message: Really?"),
            (json!({"a": 1}), r#"message: {"a":1}"#),
        ] {
            TestConversation::new(&asking(value)).user_says("refund me").run().failed(TestError, shown);
        }
    }

    #[test]
    fn rejection_uses_current_protocol() {
        let agent = asking(json!("Really?"));
        let told = TestConversation::new(&agent)
            .turn(turn_with_answers(json!([{"status": "cancelled"}])))
            .run()
            .passed();
        assert_eq!(agent.requests()[1].resume()[0]["status"], "cancelled");
        assert_eq!(
            told.events("interrupt.answered")[0]["interruptId"],
            told.events("interrupt.raised")[0]["interruptId"]
        );
    }

    #[test]
    fn interrupt_on_both_channels_is_one() {
        let agent = FakeAgent::with_run(|run, request| match request.resume().len() {
            0 => run
                .custom("on_interrupt", json!("\"Really?\""))
                .interrupted(vec![json!({"id": "x", "reason": "langgraph:interrupt"})]),
            _ => run.text("Resumed.").finished(),
        });
        let told =
            TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": true}]))).run().passed();
        assert_eq!(told.events("interrupt.raised").len(), 1);
        assert!(agent.requests()[1].json()["forwardedProps"].get("command").is_none());
    }

    #[test]
    fn outcome_may_leave_interrupt_to_event() {
        let agent = FakeAgent::with_run(|run, request| match request.index {
            0 => run.custom("on_interrupt", json!("Really?")).interrupted(vec![]),
            _ => run.finished(),
        });
        TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": true}]))).run().passed();
        assert_eq!(agent.requests()[1].json()["forwardedProps"]["command"]["resume"], json!(true));
    }

    #[test]
    fn two_legacy_interrupts_cannot_be_answered() {
        let agent = scripted_agent(vec![|run| {
            run.started()
                .custom("on_interrupt", json!("One?"))
                .custom("on_interrupt", json!("Two?"))
                .raw_event(json!({"type": "RUN_FINISHED"}))
        }]);
        TestConversation::new(&agent)
            .turn(turn_with_answers(json!([{"payload": true}])))
            .run()
            .failed(TestError, "two interrupts at once");
    }
}

/// A418
#[test]
fn answer_rejected_by_agent_is_agent_error() {
    let agent = scripted_agent(vec![|run| run.started().interrupted(vec![json!({"id": "x"})]), |run| {
        run.started().error("unknown interrupt x", None)
    }]);
    TestConversation::new(&agent)
        .turn(turn_with_answers(json!([{"payload": true}])))
        .run()
        .failed(AgentError, "unknown interrupt x");
}

/// Endless repetition of the same interrupt is stopped.
#[test]
fn endless_interrupts_are_stopped() {
    let agent = super::fixture::agent(|run| run.started().interrupted(vec![json!({"id": "x"})]));
    TestConversation::new(&agent).turn(turn_with_answers(json!([{"payload": true}]))).run().failed(
        Limit,
        "the agent made more than 25 requests to the client in one turn, the maximum that Hotseat answers",
    );
}
