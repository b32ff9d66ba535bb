//! Errors of the agent: they fail a turn, unless they are what the turn expects.

use hotseat_testkit::agui::Run;
use hotseat_trace::FailureKind::{AgentError, Assertion, ProtocolError};
use serde_json::{Value, json};

use super::talk::{Play, Talk, Told, agent, agent_of, hears};

/// A turn that expects this error of an agent whose run ends like this.
fn expecting(expected: Value, end: impl Fn(Run) -> Run + Send + Sync + 'static) -> Told {
    let agent = agent(move |run| end(run.started().text("So far.")));
    Talk::with(&agent).turn(json!({"user": "crash", "expect_error": expected})).held()
}

/// A421, A424, A78
#[test]
fn an_error_fails_the_turn_with_its_words() {
    let told = hears(|run| {
        run.started().tool("c", "pay", &json!({}), Some(json!("paid"))).error("backend exploded", Some("E42"))
    });
    let told = told.failed(AgentError, "the agent failed: backend exploded (E42)");
    assert_eq!(told.calls(), ["1 pay {} → paid"], "what came before is kept");
    let error = told.0.conversation.turns[0].run_error.clone().expect("it is recorded");
    assert_eq!((error.message.as_str(), error.code.as_deref()), ("backend exploded", Some("E42")));
    hears(|run| run.started().error("backend exploded", None))
        .failed(AgentError, "the agent failed: backend exploded");
}

/// Whatever a producer calls a code.
#[test]
fn a_code_may_be_a_number() {
    let coded = |code: Value| {
        hears(move |run| {
            run.started().raw_event(
                json!({"type": "RUN_ERROR", "message": "boom", "code": code, "threadId": "t", "runId": "r"}),
            )
        })
    };
    coded(json!(500)).failed(AgentError, "boom (500)");
    coded(json!(null)).failed(AgentError, "the agent failed: boom");
}

/// A422, A423
#[test]
fn an_expected_error_passes() {
    let boom = |run: Run| run.error("backend exploded", Some("E42"));
    expecting(json!("exploded$"), boom).passed();
    expecting(json!({"message": "^backend", "code": "^E4"}), boom).passed();
    expecting(json!({"code": "E42"}), boom).passed();
    expecting(json!("imploded"), boom)
        .failed(Assertion, "the agent failed with backend exploded (E42); expected was");
    expecting(json!({"message": "exploded", "code": "E7"}), boom).failed(Assertion, "expected was");
    expecting(json!({"code": "E42"}), |run| run.error("exploded", None)).failed(Assertion, "expected was");
}

/// Only an error of the run is one: no end in order, no cut, no broken protocol passes for it.
#[test]
fn nothing_else_passes_for_an_expected_error() {
    expecting(json!(".*"), Run::finished).failed(Assertion, "the agent ended in order");
    expecting(json!(".*"), Run::cut).failed(ProtocolError, "the connection broke");
    expecting(json!(".*"), |run| run).failed(ProtocolError, "without RUN_FINISHED or RUN_ERROR");
    expecting(json!(".*"), |run| run.raw_event(json!({"type": "TOOL_CALL_START"})))
        .failed(ProtocolError, "missing field");
}

/// A427
#[test]
fn an_error_ends_the_conversation_unless_it_is_expected() {
    let runs: Vec<Play> =
        vec![|run| run.started().error("boom", None), |run| run.started().text("Still here.").finished()];
    let agent = agent_of(runs.clone());
    Talk::with(&agent).says("crash").says("again").held().failed(AgentError, "boom");
    assert_eq!(agent.requests().len(), 1);

    let agent = agent_of(runs);
    let talk = Talk::with(&agent).turn(json!({"user": "crash", "expect_error": "boom"}));
    assert_eq!(talk.says("again").held().passed().texts(), ["2 Still here."]);
}

/// A425: a failing tool shows in many ways; the call is seen in all of them.
#[test]
fn a_failing_tool_is_seen_however_it_fails() {
    let ways: [(Play, &str); 4] = [
        (|run| run.error("tool exploded", None), "nothing"),
        (
            |run| {
                run.tool_result("c", &json!("Tool execution was interrupted by an error."))
                    .error("tool exploded", None)
            },
            "Tool execution was interrupted by an error.",
        ),
        (|run| run.tool_result("c", &json!("Error: exploded")).finished(), "Error: exploded"),
        (Run::finished, "nothing"),
    ];
    for (end, result) in ways {
        let told = hears(move |run| end(run.started().tool_call("c", "fail_tool", &json!({}))));
        assert_eq!(told.calls(), [format!("1 fail_tool {{}} → {result}")]);
    }
}
