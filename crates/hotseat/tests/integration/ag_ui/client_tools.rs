//! Client tools: offered to the agent and answered by the script within the same turn.

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{AgentError, Limit, ProtocolError, TestError};
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, RunScript, TestConversation, messages, roles, scripted_agent};

/// A tool `confirm` with these answers.
fn confirm_tool(answers: Value) -> Value {
    json!([{"name": "confirm", "answers": answers}])
}

/// An agent that calls client tools in its first run and repeats the answers in the next.
fn calling_agent(calls: Vec<(&'static str, &'static str, Value)>) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let answers = request.tool_results_since_last_user();
        if answers.is_empty() {
            return calls.iter().fold(run, |run, (id, name, args)| run.tool_call(id, name, args)).finished();
        }
        let said: Vec<String> =
            answers.iter().map(|answer| format!("{}={}", answer.name, answer.content)).collect();
        run.text(&said.join(", ")).finished()
    })
}

/// A387, A388, A396, A397, A245
#[test]
fn call_is_answered_in_another_run_of_same_turn() {
    let agent = calling_agent(vec![("c1", "confirm", json!({"action": "pay"}))]);
    let tools = confirm_tool(json!([{"content": "approved"}]));
    let turn = json!({"user": "hi", "assert": {"tools": {"require": [{"name": "confirm", "count": {"exact": 1}, "result_match": "^approved$"}]}, "text": {"must_match": "confirm=approved"}}});
    let told = TestConversation::new(&agent).case("tools", tools).turn(turn).run().passed().assert_no_notes();
    assert_eq!(told.calls(), [r#"1 confirm {"action":"pay"} → approved"#]);
    assert_eq!(told.0.conversation.turns.len(), 1);

    let requests = agent.requests();
    let (first, second) = (requests[0].input(), requests[1].input());
    assert_eq!(requests.len(), 2);
    assert_eq!(first.thread_id, second.thread_id);
    assert_ne!(first.run_id, second.run_id);
    assert_eq!(second.client_tools(), ["confirm"], "the tools are offered again");
    let sent = messages(&requests[1]);
    assert_eq!(roles(&sent), ["user", "assistant(c1)", "tool:c1"]);
    assert_eq!(sent[2]["content"], "approved");
    assert!(sent[2]["id"].is_string() && sent[2].get("error").is_none());
    assert!(requests[1].json().get("resume").is_none());
}

/// A392: JSON answers are sent as text; an error is both content and error.
#[test]
fn answers_may_be_text_json_or_error() {
    for (answer, content, error, shown) in [
        (json!({"content": "yes"}), json!("yes"), Value::Null, "yes"),
        (
            json!({"content": {"ok": [1, null]}}),
            json!(r#"{"ok":[1,null]}"#),
            Value::Null,
            r#"{"ok":[1,null]}"#,
        ),
        (json!({"content": ""}), json!(""), Value::Null, ""),
        (json!({"error": "refused"}), json!("refused"), json!("refused"), "failed: refused"),
    ] {
        let agent = calling_agent(vec![("c1", "confirm", json!({}))]);
        let told = TestConversation::new(&agent)
            .case("tools", confirm_tool(json!([answer])))
            .user_says("hi")
            .run()
            .passed();
        assert_eq!(told.calls(), [format!("1 confirm {{}} → {shown}")]);
        let sent = &messages(&agent.requests()[1])[2];
        assert_eq!((&sent["content"], &sent["error"]), (&content, &error));
    }
}

/// A393: several calls are answered together in order.
#[test]
fn all_calls_of_a_run_are_answered_together() {
    let agent = calling_agent(vec![
        ("c2", "confirm", json!({"n": 1})),
        ("c1", "pick", json!({})),
        ("c3", "confirm", json!({"n": 2})),
    ]);
    let tools = json!([
        {"name": "confirm", "answers": [{"args_match": {"n": "^1$"}, "content": "one"}, {"content": "other"}]},
        {"name": "pick", "answers": [{"content": "red"}]},
    ]);
    let told = TestConversation::new(&agent).case("tools", tools).user_says("hi").run().passed();
    assert_eq!(told.texts(), ["1 confirm=one, pick=red, confirm=other"]);
    assert_eq!(agent.requests().len(), 2);
}

/// A394: without a matching unused answer the case fails and says so.
#[test]
fn unmatched_client_call_fails_case() {
    for answers in [
        json!([{"args_match": {"action": "refund"}, "content": "x"}]),
        json!([{"once": true, "content": "x", "args_match": {"action": "nothing"}}]),
    ] {
        let agent = calling_agent(vec![("c1", "confirm", json!({"action": "pay"}))]);
        let told = TestConversation::new(&agent).case("tools", confirm_tool(answers)).user_says("hi").run();
        told.failed(
            TestError,
            r#"client tool confirm was called with {"action":"pay"}, but no scripted answer matches"#,
        );
        assert_eq!(agent.requests().len(), 1);
    }
    let agent = calling_agent(vec![("c1", "confirm", json!({})), ("c2", "confirm", json!({}))]);
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": "x", "once": true}])))
        .user_says("hi")
        .run();
    told.failed(TestError, "but no scripted answer matches");
}

/// A389, A390, A391: only declared tools without a result of the agent are answered.
#[test]
fn server_calls_are_not_answered() {
    let agent = scripted_agent(vec![|run| {
        run.started()
            .tool("c1", "confirm", &json!({}), Some(json!("by the server")))
            .tool_call("c2", "server_tool", &json!({}))
            .finished()
    }]);
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": "by the client"}])))
        .user_says("hi")
        .run()
        .passed();
    assert_eq!(
        told.assert_no_notes().calls(),
        ["1 confirm {} → by the server", "1 server_tool {} → nothing"]
    );
}

/// A389: if the agent lists its pending calls, only those are answered.
#[test]
fn agent_names_its_pending_calls() {
    let agent = scripted_agent(vec![
        |run| {
            let run = run.started().tool_call("c1", "confirm", &json!({"n": 1})).tool_call(
                "c2",
                "confirm",
                &json!({"n": 2}),
            );
            run.pending(&["c2".to_string()])
        },
        |run| run.started().finished(),
    ]);
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": "yes"}])))
        .user_says("hi")
        .run()
        .passed();
    assert_eq!(told.calls(), [r#"1 confirm {"n":1} → nothing"#, r#"1 confirm {"n":2} → yes"#]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "assistant(c2)", "tool:c2"]);

    // An empty list has no meaning, since some producers always send one.
    let agent = scripted_agent(vec![
        |run| run.started().tool_call("c1", "confirm", &json!({})).pending(&[]),
        |run| run.started().finished(),
    ]);
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": "yes"}])))
        .user_says("hi")
        .run()
        .passed();
    assert_eq!(told.calls(), ["1 confirm {} → yes"]);
}

/// A400: waiting for a tool that is not offered fails.
#[test]
fn waiting_for_unoffered_tool_never_passes() {
    let agent = scripted_agent(vec![|run| {
        run.started().tool_call("c1", "confirm_changes", &json!({})).pending(&["c1".to_string()])
    }]);
    let told = TestConversation::new(&agent).user_says("hi").run();
    let told = told.failed(TestError, "the agent called tool confirm_changes and awaits its result");
    assert_eq!(told.calls(), ["1 confirm_changes {} → nothing"]);
}

/// A395
#[test]
fn endless_tool_calls_are_stopped() {
    let agent = FakeAgent::with_run(|run, request| {
        run.tool_call(&format!("c{}", request.index), "confirm", &json!({})).finished()
    });
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": "yes"}])))
        .user_says("hi")
        .run();
    told.failed(
        Limit,
        "the agent made more than 25 requests to the client in one turn, the maximum that Hotseat answers",
    );
    assert_eq!(agent.requests().len(), 26);
}

/// A366: answers are selected by the complete arguments, which may arrive in the final snapshot.
#[test]
fn answers_match_completed_arguments() {
    let agent = FakeAgent::with_run(|run, request| {
        let mut all = messages(request);
        if request.index > 0 {
            return run.finished();
        }
        all.push(json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "confirm", "arguments": "{\"action\": \"pay 42.50\"}"}}]}));
        run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "confirm"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "2.50\"}"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .messages_snapshot(all)
            .finished()
    });
    let tools = confirm_tool(json!([{"args_match": {"action": "^pay 42"}, "content": "yes"}]));
    let told = TestConversation::new(&agent).case("tools", tools).user_says("hi").run().passed();
    assert_eq!(told.calls(), [r#"1 confirm {"action":"pay 42.50"} → yes"#]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "tool:c1"]);
}

/// A call that exists only in a snapshot is answered under its snapshot id.
#[test]
fn call_is_answered_under_its_history_id() {
    for streamed in [false, true] {
        let agent = FakeAgent::with_run(move |run, request| {
            let mut all = messages(request);
            if request.index > 0 {
                let content = request.tool_results_since_last_user()[0].content.clone();
                return run.text(&content).messages_snapshot(all).finished();
            }
            all.push(json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [{"id": "of-snapshot", "type": "function", "function": {"name": "confirm", "arguments": "{\"n\":1}"}}]}));
            let run = if streamed { run.tool_call("of-stream", "confirm", &json!({"n": 1})) } else { run };
            run.messages_snapshot(all).finished()
        });
        let told = TestConversation::new(&agent)
            .case("tools", confirm_tool(json!([{"content": "yes"}])))
            .user_says("hi")
            .run()
            .passed();
        assert_eq!(
            (told.calls(), told.texts()),
            (vec![r#"1 confirm {"n":1} → yes"#.into()], vec!["1 yes".into()])
        );
        assert_eq!(
            roles(&messages(&agent.requests()[1])),
            ["user", "assistant(of-snapshot)", "tool:of-snapshot"]
        );
    }
}

/// Runs a conversation whose second run sends `result` for the call that the client answered with `answer`.
fn answered_with_result(answer: Value, result: Value) -> ConversationOutcome {
    let agent = FakeAgent::with_run(move |run, request| {
        let result = (request.index > 0).then(|| result.clone());
        match result {
            None => run.tool_call("c1", "confirm", &json!({})).finished(),
            Some(result) => run.tool("c1", "confirm", &json!({}), Some(result)).finished(),
        }
    });
    let told = TestConversation::new(&agent)
        .case("tools", confirm_tool(json!([{"content": answer}])))
        .user_says("hi")
        .run()
        .passed();
    assert_eq!(agent.requests().len(), 2, "and it is not answered again");
    told
}

/// A server that repeats the client's answer, as it is or wrapped, does not replace it.
#[test]
fn repeated_client_answer_remains_the_result() {
    let accepted = json!({"accepted": true});
    for (answer, result, expected) in [
        (json!("yes"), json!({"success": true, "result": "yes"}), "yes"),
        (json!("yes"), json!({"tool": "confirm", "status": "completed", "data": {"result": "yes"}}), "yes"),
        (accepted.clone(), json!({"result": accepted, "error": null}), r#"{"accepted":true}"#),
        (accepted.clone(), json!({"result": accepted.to_string()}), r#"{"accepted":true}"#),
        (json!(5), json!({"result": 5}), "5"),
    ] {
        let told = answered_with_result(answer, result);
        assert_eq!(
            told.assert_note("the client's result is used").calls(),
            [format!("1 confirm {{}} → {expected}")]
        );
    }
}

/// The server asks for approval and then sends what the tool did: that is the result.
#[test]
fn server_result_replaces_a_different_client_answer() {
    for (answer, result) in [
        (json!({"accepted": true}), json!({"status": "declined", "reason": "insufficient funds"})),
        (json!({"accepted": true}), json!({"accepted": true, "status": "declined"})),
        (json!("yes"), json!({"success": false, "result": "yes"})),
        (json!("approved"), json!({"answer": "approved", "charge": {"status": "declined"}})),
    ] {
        let expected = format!("1 confirm {{}} → {result}");
        let told = answered_with_result(answer, result);
        assert_eq!(told.assert_note("the result of the agent is used").calls(), [expected]);
    }
}

/// After a failed or truncated run no call is answered.
#[test]
fn nothing_is_answered_after_failure() {
    for (end, kind) in [
        (FakeRun::cut as RunScript, ProtocolError),
        ((|run| run.error("boom", None)) as RunScript, AgentError),
    ] {
        let agent =
            super::fixture::agent(move |run| end(run.started().tool_call("c1", "confirm", &json!({}))));
        let told = TestConversation::new(&agent)
            .case("tools", confirm_tool(json!([{"content": "yes"}])))
            .user_says("hi")
            .run();
        assert_eq!(told.failed(kind, "").calls(), ["1 confirm {} → nothing"]);
        assert_eq!(agent.requests().len(), 1);
    }
}

/// An agent may restart its ids and call a client tool again with the same arguments. It waits for a result unless it goes on.
#[test]
fn a_call_repeated_at_the_end_of_a_run_is_answered_again() {
    let call = |run: FakeRun| run.tool_call("call_0", "confirm", &json!({"q": "sure?"}));
    for (waits, calls) in [(true, 2), (false, 1)] {
        let agent = FakeAgent::with_run(move |run, request| match request.index {
            0 => call(run).finished(),
            1 if waits => call(run).finished(),
            1 => call(run).text("Done.").finished(),
            _ => run.text("Done.").finished(),
        });
        let tools = confirm_tool(json!([{"content": "yes"}]));
        let told = TestConversation::new(&agent).case("tools", tools).user_says("hi").run().passed();
        assert_eq!(told.calls(), vec![r#"1 confirm {"q":"sure?"} → yes"#; calls]);
        assert_eq!(told.texts(), ["1 Done."]);
    }
}
