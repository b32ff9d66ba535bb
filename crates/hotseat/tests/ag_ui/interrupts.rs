//! Interrupts: an agent that pauses is answered from the script of the turn, or the turn fails.

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use hotseat_trace::FailureKind::{AgentError, Assertion, ProtocolError, TestError};
use serde_json::{Value, json};

use super::talk::{Talk, agent_of, hears, messages, roles};

/// An agent that calls a tool, asks these questions, and says what it was answered.
fn asking(interrupts: Vec<Value>) -> FakeAgent {
    FakeAgent::start(move |request: &Request| {
        let run = Run::of(request).started();
        match request.resume().as_slice() {
            [] => run.tool_call("c1", "refund", &json!({"n": 7})).interrupted(interrupts.clone()),
            answers => run.tool_result("c1", &json!({"answers": answers})).text("Resumed.").finished(),
        }
    })
}

fn approval() -> Value {
    json!({"id": "int-1", "reason": "tool_call", "message": "Approve refund?", "toolCallId": "c1", "responseSchema": {}})
}

fn resuming(answers: Value) -> Value {
    json!({"user": "refund me", "resume": answers})
}

/// A401, A403, A404: every way to end without a question.
#[test]
fn outcomes_without_a_question_end_the_turn() {
    for (outcome, note) in [
        (json!(null), None),
        (json!({"type": "success"}), None),
        (json!({"type": "success", "pendingToolCallIds": null, "interrupts": null}), None),
        (json!("success"), None),
        (json!({"type": "cancelled"}), Some("cancelled")),
        (json!({"type": "postponed", "until": 5}), Some("unknown run outcome postponed")),
    ] {
        let finished = json!({"type": "RUN_FINISHED", "outcome": outcome});
        let told = hears(move |run| run.started().raw_event(finished.clone())).passed();
        match note {
            None => drop(told.quietly()),
            Some(words) => drop(told.noting(words)),
        }
    }
}

/// A402, A405: an unscripted question is a failure that shows all of it.
#[test]
fn a_question_that_nobody_answers_fails_the_turn() {
    let agent = asking(vec![approval()]);
    let told = Talk::with(&agent).says("refund me").held().failed(TestError, "does not script (`resume`)");
    let told = told
        .failed(TestError, "message: Approve refund?")
        .failed(TestError, "tool: refund")
        .failed(TestError, "responseSchema");
    let raised = &told.events("interrupt.raised")[0];
    assert_eq!((&raised["interruptId"], &raised["toolCallId"]), (&json!("int-1"), &json!("c1")));
    assert_eq!(agent.requests().len(), 1);
}

/// A406, A411, A417: one more run with the answer, in the same turn; the call is one call.
#[test]
fn an_answer_resumes_the_run() {
    let agent = asking(vec![approval()]);
    let told = Talk::with(&agent)
        .turn(resuming(json!([{"payload": {"approved": true, "editedArgs": {"n": 6}}}])))
        .held()
        .passed()
        .quietly();
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

/// A407
#[test]
fn a_refusal_has_no_payload() {
    let agent = asking(vec![approval()]);
    Talk::with(&agent).turn(resuming(json!([{"status": "cancelled"}]))).held().passed();
    assert_eq!(agent.requests()[1].resume(), [json!({"interruptId": "int-1", "status": "cancelled"})]);
}

/// A payload may be any JSON, also what other languages take for nothing.
#[test]
fn every_json_value_is_a_payload() {
    for payload in [json!(false), json!(0), json!(""), json!(null), json!([])] {
        let agent = asking(vec![approval()]);
        Talk::with(&agent).turn(resuming(json!([{"payload": payload}]))).held().passed();
        assert_eq!(agent.requests()[1].resume()[0]["payload"], payload);
        assert!(agent.requests()[1].resume()[0].get("payload").is_some());
    }
}

/// A408, A419, A420: each question gets the first answer that fits it, and all go in one request.
#[test]
fn several_questions_are_answered_together() {
    let second = json!({"id": "int-2", "reason": "my-own-reason", "message": "Colour?"});
    let answers = json!([{"reason": "^my-own", "payload": "red"}, {"tool": "refund", "message": "Approve", "payload": true}]);
    let agent = asking(vec![approval(), second.clone()]);
    Talk::with(&agent).turn(resuming(answers)).held().passed();
    let sent: Vec<Value> = agent.requests()[1].resume();
    assert_eq!(sent[0], json!({"interruptId": "int-1", "status": "resolved", "payload": true}));
    assert_eq!(sent[1], json!({"interruptId": "int-2", "status": "resolved", "payload": "red"}));

    // One that nobody answers is enough to stop.
    let agent = asking(vec![approval(), second]);
    let told = Talk::with(&agent).turn(resuming(json!([{"reason": "tool_call", "payload": true}]))).held();
    told.failed(TestError, "Colour?");
    assert_eq!(agent.requests().len(), 1);
}

/// A420: an answer that is never asked for fails the turn.
#[test]
fn an_agent_that_never_asks_fails_a_turn_that_answers() {
    let agent = agent_of(vec![|run| run.started().text("Refunded at once.").finished()]);
    Talk::with(&agent)
        .turn(resuming(json!([{"payload": true}])))
        .held()
        .failed(Assertion, "the agent never paused for the answer at");
}

/// A410
#[test]
fn an_expired_question_can_only_be_refused() {
    let mut expired = approval();
    expired["expiresAt"] = json!("2020-01-01T00:00:00Z");
    let agent = asking(vec![expired.clone()]);
    Talk::with(&agent)
        .turn(resuming(json!([{"payload": true}])))
        .held()
        .failed(TestError, "expired at 2020-01-01T00:00:00Z");
    assert_eq!(agent.requests().len(), 1);
    Talk::with(&agent).turn(resuming(json!([{"status": "cancelled"}]))).held().passed();
    expired["expiresAt"] = json!("2999-01-01T00:00:00Z");
    Talk::with(&asking(vec![expired])).turn(resuming(json!([{"payload": true}]))).held().passed();
}

/// An outcome that says the agent waits, and not for what, cannot be answered and is no pass.
#[test]
fn a_pause_without_a_question_is_an_error() {
    for outcome in
        [json!({"type": "interrupt", "interrupts": []}), json!({"type": "interrupt"}), json!("interrupt")]
    {
        let finished = json!({"type": "RUN_FINISHED", "outcome": outcome});
        let told = hears(move |run| run.started().raw_event(finished.clone()));
        told.failed(
            ProtocolError,
            "event 2: RUN_FINISHED says that the agent waits for an answer, but not to what",
        );
    }
}

/// A question of one run is still open when the agent begins another in the same stream.
#[test]
fn a_question_stays_open_over_another_run_of_the_stream() {
    let run = |run: Run| {
        run.started()
            .interrupted(vec![approval()])
            .raw_event(json!({"type": "RUN_STARTED"}))
            .text("Going on anyway.")
            .raw_event(json!({"type": "RUN_FINISHED"}))
    };
    hears(run).failed(TestError, "Approve refund?");
    // Asked again, it is the same question.
    let agent = agent_of(vec![
        |run| {
            run.started()
                .interrupted(vec![approval()])
                .raw_event(json!({"type": "RUN_STARTED"}))
                .interrupted(vec![approval()])
        },
        |run| run.started().finished(),
    ]);
    Talk::with(&agent).turn(resuming(json!([{"payload": true}]))).held().passed();
    assert_eq!(agent.requests()[1].resume().len(), 1);
}

/// A call that a question holds up waits for that answer, even if the client offers a tool of its name.
#[test]
fn a_held_up_call_is_not_answered_as_a_client_tool() {
    let agent = asking(vec![approval()]);
    let tools = json!([{"name": "refund", "answers": [{"content": "by the client"}]}]);
    let told =
        Talk::with(&agent).case("tools", tools).turn(resuming(json!([{"payload": true}]))).held().passed();
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)"]);
    assert_eq!(told.calls().len(), 1);
    assert!(told.calls()[0].contains("answers"), "{:?}", told.calls());
}

/// A question and a client-side tool in one run are both answered in the next.
#[test]
fn a_question_and_a_client_tool_are_answered_together() {
    let agent = FakeAgent::start(|request: &Request| {
        let run = Run::of(request).started();
        match request.resume().len() {
            0 => run
                .tool_call("c1", "refund", &json!({}))
                .tool_call("c2", "confirm", &json!({}))
                .interrupted(vec![approval()]),
            _ => run.tool_result("c1", &json!("refunded")).finished(),
        }
    });
    let tools = json!([{"name": "confirm", "answers": [{"content": "yes"}]}]);
    let told =
        Talk::with(&agent).case("tools", tools).turn(resuming(json!([{"payload": true}]))).held().passed();
    assert_eq!(told.calls(), ["1 refund {} → refunded", "1 confirm {} → yes"]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "assistant(c2)", "tool:c2"]);
}

/// A349, A411: a resumed run may announce the held up call once more.
#[test]
fn a_resumed_run_may_announce_the_call_again() {
    let agent = FakeAgent::start(|request: &Request| {
        let run = Run::of(request).started();
        match request.resume().len() {
            0 => run.tool_call("c1", "refund", &json!({"n": 7})).interrupted(vec![approval()]),
            _ => run.tool("c1", "refund", &json!({"n": 7}), Some(json!("refunded"))).finished(),
        }
    });
    let told = Talk::with(&agent).turn(resuming(json!([{"payload": true}]))).held().passed().quietly();
    assert_eq!(told.calls(), [r#"1 refund {"n":7} → refunded"#]);
}

/// What was done before the pause is done once; a resumed run that does it again is seen.
#[test]
fn a_resumed_run_that_repeats_what_was_done_is_seen() {
    let resumed = |result: &'static str| {
        let agent = FakeAgent::start(move |request: &Request| {
            let run = Run::of(request).started();
            match request.resume().len() {
                0 => run
                    .tool("c0", "pay", &json!({"n": 1}), Some(json!("ch_1")))
                    .tool_call("c1", "refund", &json!({}))
                    .interrupted(vec![approval()]),
                _ => run
                    .tool("c0", "pay", &json!({"n": 1}), Some(json!(result)))
                    .tool_result("c1", &json!("ok"))
                    .finished(),
            }
        });
        Talk::with(&agent).turn(resuming(json!([{"payload": true}]))).held().passed().calls()
    };
    assert_eq!(resumed("ch_1"), [r#"1 pay {"n":1} → ch_1"#, "1 refund {} → ok"], "told again");
    assert_eq!(
        resumed("ch_2"),
        [r#"1 pay {"n":1} → ch_1"#, "1 refund {} → ok", r#"1 pay {"n":1} → ch_2"#],
        "done again"
    );
}

/// A414: the channel of producers before 1.0.
mod before_outcomes {
    use super::*;

    /// An agent that asks by a custom event, and says what came back.
    fn asking(value: Value) -> FakeAgent {
        FakeAgent::start(move |request: &Request| {
            let run = Run::of(request).started();
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

    #[test]
    fn the_answer_goes_into_the_forwarded_properties_and_only_once() {
        let agent = asking(json!("{\"question\": \"Refund 42.5?\"}"));
        let talk = Talk::with(&agent)
            .target(|target| target.forwarded_props = json!({"user": 7, "command": {"other": 1}}));
        let told = talk
            .turn(resuming(json!([{"message": "Refund 42", "payload": {"approved": true}}])))
            .says("next")
            .held();
        let told = told.failed(TestError, "does not script");
        assert_eq!(told.texts(), [r#"1 {"approved":true} []"#]);
        let props: Vec<Value> =
            agent.requests().iter().map(|request| request.json()["forwardedProps"].clone()).collect();
        assert_eq!(props[0], json!({"user": 7, "command": {"other": 1}}));
        assert_eq!(props[1], json!({"user": 7, "command": {"other": 1, "resume": {"approved": true}}}));
        assert_eq!(props[2], props[0], "an answer never outlives its run");
    }

    #[test]
    fn the_question_may_be_text_or_json() {
        for (value, shown) in [
            (json!("Really?"), "message: Really?"),
            (json!({"message": "Really?", "reason": "why"}), "reason: why; message: Really?"),
            (json!({"a": 1}), r#"message: {"a":1}"#),
        ] {
            Talk::with(&asking(value)).says("refund me").held().failed(TestError, shown);
        }
    }

    #[test]
    fn a_refusal_goes_the_newer_way() {
        let agent = asking(json!("Really?"));
        let told = Talk::with(&agent).turn(resuming(json!([{"status": "cancelled"}]))).held().passed();
        assert_eq!(agent.requests()[1].resume()[0]["status"], "cancelled");
        assert_eq!(
            told.events("interrupt.answered")[0]["interruptId"],
            told.events("interrupt.raised")[0]["interruptId"]
        );
    }

    #[test]
    fn a_question_on_both_channels_is_one() {
        let agent = FakeAgent::start(|request: &Request| {
            let run = Run::of(request).started();
            match request.resume().len() {
                0 => run
                    .custom("on_interrupt", json!("\"Really?\""))
                    .interrupted(vec![json!({"id": "x", "reason": "langgraph:interrupt"})]),
                _ => run.text("Resumed.").finished(),
            }
        });
        let told = Talk::with(&agent).turn(resuming(json!([{"payload": true}]))).held().passed();
        assert_eq!(told.events("interrupt.raised").len(), 1);
        assert!(agent.requests()[1].json()["forwardedProps"].get("command").is_none());
    }

    #[test]
    fn an_outcome_that_leaves_the_question_to_the_event_is_understood() {
        let agent = FakeAgent::start(|request: &Request| {
            let run = Run::of(request).started();
            match request.index {
                0 => run.custom("on_interrupt", json!("Really?")).interrupted(vec![]),
                _ => run.finished(),
            }
        });
        Talk::with(&agent).turn(resuming(json!([{"payload": true}]))).held().passed();
        assert_eq!(agent.requests()[1].json()["forwardedProps"]["command"]["resume"], json!(true));
    }

    #[test]
    fn two_questions_at_once_cannot_be_answered_here() {
        let agent = agent_of(vec![|run| {
            run.started()
                .custom("on_interrupt", json!("One?"))
                .custom("on_interrupt", json!("Two?"))
                .raw_event(json!({"type": "RUN_FINISHED"}))
        }]);
        Talk::with(&agent)
            .turn(resuming(json!([{"payload": true}])))
            .held()
            .failed(TestError, "two questions at once");
    }
}

/// A418
#[test]
fn an_answer_that_the_agent_refuses_is_its_error() {
    let agent = agent_of(vec![|run| run.started().interrupted(vec![json!({"id": "x"})]), |run| {
        run.started().error("unknown interrupt x", None)
    }]);
    Talk::with(&agent)
        .turn(resuming(json!([{"payload": true}])))
        .held()
        .failed(AgentError, "unknown interrupt x");
}

/// The same answer may be asked for again and again; that ends too.
#[test]
fn an_agent_that_pauses_for_ever_is_stopped() {
    let agent = super::talk::agent(|run| run.started().interrupted(vec![json!({"id": "x"})]));
    Talk::with(&agent)
        .turn(resuming(json!([{"payload": true}])))
        .held()
        .failed(AgentError, "25 times in one turn; given up");
}
