//! Agent errors: they fail a turn unless it expects them.

use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{AgentError, Assertion, ProtocolError};
use serde_json::{Value, json};

use super::fixture::{
    ConversationOutcome, RunScript, TestConversation, agent, run_turn_with, scripted_agent,
};

/// A turn that expects this error from an agent whose run ends like this.
fn run_expecting(
    expected: Value,
    end: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static,
) -> ConversationOutcome {
    let agent = agent(move |run| end(run.started().text("So far.")));
    TestConversation::new(&agent).turn(json!({"user": "crash", "expect_error": expected})).run()
}

/// A421, A424, A78
#[test]
fn error_fails_turn_with_its_message() {
    let told = run_turn_with(|run| {
        run.started().tool("c", "pay", &json!({}), Some(json!("paid"))).error("backend exploded", Some("E42"))
    });
    let told = told.failed(AgentError, "the agent failed: backend exploded (E42)");
    assert_eq!(told.calls(), ["1 pay {} → paid"], "what came before is kept");
    let error = told.0.conversation.turns[0].run_error.clone().expect("it is recorded");
    assert_eq!((error.message.as_str(), error.code.as_deref()), ("backend exploded", Some("E42")));
    run_turn_with(|run| run.started().error("backend exploded", None))
        .failed(AgentError, "the agent failed: backend exploded");
}

/// Any value that producers use as code.
#[test]
fn error_code_may_be_a_number() {
    let coded = |code: Value| {
        run_turn_with(move |run| {
            run.started().raw_event(
                json!({"type": "RUN_ERROR", "message": "boom", "code": code, "threadId": "t", "runId": "r"}),
            )
        })
    };
    coded(json!(500)).failed(AgentError, "boom (500)");
    coded(json!(null)).failed(AgentError, "the agent failed: boom");
}

/// The agent says that it failed, also if it does not say why.
#[test]
fn a_run_error_without_a_message_is_one_of_the_agent() {
    for event in [
        json!({"type": "RUN_ERROR"}),
        json!({"type": "RUN_ERROR", "message": null}),
        json!({"type": "RUN_ERROR", "message": "", "code": "E1"}),
    ] {
        run_turn_with(move |run| run.started().raw_event(event.clone()))
            .failed(AgentError, "the agent failed: RUN_ERROR without a `message`");
    }
    run_turn_with(|run| run.started().raw_event(json!({"type": "RUN_ERROR", "message": {"why": "boom"}})))
        .failed(AgentError, r#"the agent failed: {"why":"boom"}"#);
}

/// A run that ends with an error has not succeeded, however the event is named.
#[test]
fn a_run_that_finishes_with_an_error_is_one_of_the_agent() {
    for (members, message) in [
        (json!({"error": "boom"}), "the agent failed: boom"),
        (json!({"error": {"message": "boom", "code": 7}}), "the agent failed: boom (7)"),
        (json!({"outcome": "error"}), "the agent failed: the run ended with the outcome error"),
        (json!({"outcome": {"type": "failed"}}), "the agent failed: the run ended with the outcome failed"),
        (
            json!({"outcome": {"type": "error", "message": "boom"}}),
            "the agent failed: the run ended with the outcome error: boom",
        ),
    ] {
        let mut event = members.clone();
        event["type"] = json!("RUN_FINISHED");
        let told = run_turn_with(move |run| run.started().text("So far.").raw_event(event.clone()));
        assert_eq!(told.failed(AgentError, message).texts(), ["1 So far."], "{members}");
    }
    for error in [json!(null), json!(false), json!(""), json!({}), json!([])] {
        run_turn_with(move |run| {
            run.started().raw_event(json!({"type": "RUN_FINISHED", "error": error, "outcome": "success"}))
        })
        .passed()
        .assert_no_notes();
    }
}

/// A422, A423
#[test]
fn expected_error_passes() {
    let boom = |run: FakeRun| run.error("backend exploded", Some("E42"));
    run_expecting(json!("exploded$"), boom).passed();
    run_expecting(json!({"message": "^backend", "code": "^E4"}), boom).passed();
    run_expecting(json!({"code": "E42"}), boom).passed();
    run_expecting(json!("imploded"), boom)
        .failed(Assertion, "the agent failed with backend exploded (E42), expected an error that matches");
    run_expecting(json!({"message": "exploded", "code": "E7"}), boom)
        .failed(Assertion, "expected an error that matches");
    run_expecting(json!({"code": "E42"}), |run| run.error("exploded", None))
        .failed(Assertion, "expected an error with a code that matches");
}

/// Only a run error counts: no clean end, truncation or protocol error matches.
#[test]
fn only_the_expected_error_passes() {
    run_expecting(json!("."), FakeRun::finished)
        .failed(Assertion, "expected an error that matches /./, got a regular end of the turn");
    run_expecting(json!("."), FakeRun::cut).failed(ProtocolError, "the connection broke");
    run_expecting(json!("."), |run| run).failed(ProtocolError, "without RUN_FINISHED or RUN_ERROR");
    run_expecting(json!("."), |run| run.raw_event(json!({"type": "TOOL_CALL_START"})))
        .failed(ProtocolError, "missing field");
}

/// A427
#[test]
fn unexpected_error_ends_conversation() {
    let runs: Vec<RunScript> =
        vec![|run| run.started().error("boom", None), |run| run.started().text("Still here.").finished()];
    let agent = scripted_agent(runs.clone());
    TestConversation::new(&agent).user_says("crash").user_says("again").run().failed(AgentError, "boom");
    assert_eq!(agent.requests().len(), 1);

    let agent = scripted_agent(runs);
    let talk = TestConversation::new(&agent).turn(json!({"user": "crash", "expect_error": "boom"}));
    assert_eq!(talk.user_says("again").run().passed().texts(), ["2 Still here."]);
}

/// A425: every form of a tool failure is recorded.
#[test]
fn every_tool_failure_form_is_detected() {
    let ways: [(RunScript, &str); 4] = [
        (|run| run.error("tool exploded", None), "nothing"),
        (
            |run| {
                run.tool_result("c", &json!("Tool execution was interrupted by an error."))
                    .error("tool exploded", None)
            },
            "Tool execution was interrupted by an error.",
        ),
        (|run| run.tool_result("c", &json!("Error: exploded")).finished(), "Error: exploded"),
        (FakeRun::finished, "nothing"),
    ];
    for (end, result) in ways {
        let told = run_turn_with(move |run| end(run.started().tool_call("c", "fail_tool", &json!({}))));
        assert_eq!(told.calls(), [format!("1 fail_tool {{}} → {result}")]);
    }
}

/// Only texts of the agent are checked, so a text of an unknown role would escape every check.
#[test]
fn text_of_an_unknown_role_is_invalid() {
    for role in ["Assistant", "agent", "ai", ""] {
        let expected = format!("has the role `{role}`, expected one of assistant, user");
        let start = json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": role});
        run_turn_with(move |run| run.started().raw_event(start.clone())).failed(ProtocolError, &expected);
        let chunk = json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": role, "delta": "x"});
        run_turn_with(move |run| run.started().raw_event(chunk.clone())).failed(ProtocolError, &expected);
    }
    for role in ["ASSISTANT", "agent", "model"] {
        let expected = format!("a message of MESSAGES_SNAPSHOT has the role `{role}`");
        let message = json!({"id": "m", "role": role, "content": "x"});
        run_turn_with(move |run| run.started().messages_snapshot(vec![message.clone()]).finished())
            .failed(ProtocolError, &expected);
    }
    run_turn_with(|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": null}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
            .finished()
    })
    .passed();
}
