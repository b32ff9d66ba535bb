//! Client-side tools: offered to the agent, answered from the script, all within the turn that called them.

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use hotseat_trace::FailureKind::{AgentError, ProtocolError, TestError};
use serde_json::{Value, json};

use super::talk::{Play, Talk, agent_of, messages, roles};

/// A tool `confirm` with these answers.
fn confirm(answers: Value) -> Value {
    json!([{"name": "confirm", "answers": answers}])
}

/// An agent that calls client-side tools in its first run and says what it was answered in the next.
fn asking(calls: Vec<(&'static str, &'static str, Value)>) -> FakeAgent {
    FakeAgent::start(move |request: &Request| {
        let run = Run::of(request).started();
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
fn a_call_is_answered_in_another_run_of_the_same_turn() {
    let agent = asking(vec![("c1", "confirm", json!({"action": "pay"}))]);
    let tools = confirm(json!([{"content": "approved"}]));
    let turn = json!({"user": "hi", "assert": {"tools": {"require": [{"name": "confirm", "count": {"exact": 1}, "result_match": "^approved$"}]}, "text": {"must_match": "confirm=approved"}}});
    let told = Talk::with(&agent).case("tools", tools).turn(turn).held().passed().quietly();
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

/// A392: what a test writes as JSON is sent as text; an error is both content and error.
#[test]
fn answers_may_be_text_json_or_an_error() {
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
        let agent = asking(vec![("c1", "confirm", json!({}))]);
        let told = Talk::with(&agent).case("tools", confirm(json!([answer]))).says("hi").held().passed();
        assert_eq!(told.calls(), [format!("1 confirm {{}} → {shown}")]);
        let sent = &messages(&agent.requests()[1])[2];
        assert_eq!((&sent["content"], &sent["error"]), (&content, &error));
    }
}

/// A393: several calls are answered together, in their order.
#[test]
fn all_calls_of_a_run_are_answered_at_once() {
    let agent = asking(vec![
        ("c2", "confirm", json!({"n": 1})),
        ("c1", "pick", json!({})),
        ("c3", "confirm", json!({"n": 2})),
    ]);
    let tools = json!([
        {"name": "confirm", "answers": [{"args_match": {"n": "^1$"}, "content": "one"}, {"content": "other"}]},
        {"name": "pick", "answers": [{"content": "red"}]},
    ]);
    let told = Talk::with(&agent).case("tools", tools).says("hi").held().passed();
    assert_eq!(told.texts(), ["1 confirm=one, pick=red, confirm=other"]);
    assert_eq!(agent.requests().len(), 2);
}

/// A394: an answer that is used up or does not fit is no answer, and the case fails saying so.
#[test]
fn a_call_that_no_answer_fits_fails_the_case() {
    for answers in [
        json!([{"args_match": {"action": "refund"}, "content": "x"}]),
        json!([{"once": true, "content": "x", "args_match": {"action": "nothing"}}]),
    ] {
        let agent = asking(vec![("c1", "confirm", json!({"action": "pay"}))]);
        let told = Talk::with(&agent).case("tools", confirm(answers)).says("hi").held();
        told.failed(
            TestError,
            r#"client tool confirm was called with {"action":"pay"} and no scripted answer fits"#,
        );
        assert_eq!(agent.requests().len(), 1);
    }
    let agent = asking(vec![("c1", "confirm", json!({})), ("c2", "confirm", json!({}))]);
    let told =
        Talk::with(&agent).case("tools", confirm(json!([{"content": "x", "once": true}]))).says("hi").held();
    told.failed(TestError, "no scripted answer fits");
}

/// A389, A390, A391: only declared tools are answered, and only where the agent has no result of its own.
#[test]
fn calls_of_the_server_are_not_answered() {
    let agent = agent_of(vec![|run| {
        run.started()
            .tool("c1", "confirm", &json!({}), Some(json!("by the server")))
            .tool_call("c2", "server_tool", &json!({}))
            .finished()
    }]);
    let told = Talk::with(&agent)
        .case("tools", confirm(json!([{"content": "by the client"}])))
        .says("hi")
        .held()
        .passed();
    assert_eq!(told.quietly().calls(), ["1 confirm {} → by the server", "1 server_tool {} → nothing"]);
}

/// A389: where the agent says which calls it waits for, those are meant.
#[test]
fn the_calls_that_an_agent_waits_for_are_those_it_names() {
    let agent = agent_of(vec![
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
    let told =
        Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held().passed();
    assert_eq!(told.calls(), [r#"1 confirm {"n":1} → nothing"#, r#"1 confirm {"n":2} → yes"#]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "assistant(c2)", "tool:c2"]);

    // A producer that always writes the list and leaves it empty says nothing by it.
    let agent =
        agent_of(vec![|run| run.started().tool_call("c1", "confirm", &json!({})).pending(&[]), |run| {
            run.started().finished()
        }]);
    let told =
        Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held().passed();
    assert_eq!(told.calls(), ["1 confirm {} → yes"]);
}

/// A400: an agent that waits for a tool that nobody offers will wait for ever, which is no pass.
#[test]
fn waiting_for_a_tool_that_is_not_offered_is_no_pass() {
    let agent = agent_of(vec![|run| {
        run.started().tool_call("c1", "confirm_changes", &json!({})).pending(&["c1".to_string()])
    }]);
    let told = Talk::with(&agent).says("hi").held();
    let told = told.failed(TestError, "the agent called tool confirm_changes and waits for its result");
    assert_eq!(told.calls(), ["1 confirm_changes {} → nothing"]);
}

/// A395
#[test]
fn an_agent_that_asks_for_ever_is_stopped() {
    let agent = FakeAgent::start(|request: &Request| {
        Run::of(request).started().tool_call(&format!("c{}", request.index), "confirm", &json!({})).finished()
    });
    let told = Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held();
    told.failed(AgentError, "25 times in one turn; given up");
    assert_eq!(agent.requests().len(), 25);
}

/// A366: the arguments are looked at when they are complete, which may be in the snapshot at the end.
#[test]
fn answers_are_chosen_by_the_completed_arguments() {
    let agent = FakeAgent::start(|request: &Request| {
        let mut all = messages(request);
        let run = Run::of(request).started();
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
    let tools = confirm(json!([{"args_match": {"action": "^pay 42"}, "content": "yes"}]));
    let told = Talk::with(&agent).case("tools", tools).says("hi").held().passed();
    assert_eq!(told.calls(), [r#"1 confirm {"action":"pay 42.50"} → yes"#]);
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c1)", "tool:c1"]);
}

/// A call that exists in a snapshot only is answered too, under the id by which the snapshot knows it.
#[test]
fn a_call_is_answered_under_the_id_that_the_history_has_for_it() {
    for streamed in [false, true] {
        let agent = FakeAgent::start(move |request: &Request| {
            let mut all = messages(request);
            let run = Run::of(request).started();
            if request.index > 0 {
                let content = request.tool_results_since_last_user()[0].content.clone();
                return run.text(&content).messages_snapshot(all).finished();
            }
            all.push(json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [{"id": "of-snapshot", "type": "function", "function": {"name": "confirm", "arguments": "{\"n\":1}"}}]}));
            let run = if streamed { run.tool_call("of-stream", "confirm", &json!({"n": 1})) } else { run };
            run.messages_snapshot(all).finished()
        });
        let told =
            Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held().passed();
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

/// A result of the server for a call that the client has answered does not take the answer back.
#[test]
fn the_answer_of_the_client_stays_the_result() {
    let agent =
        agent_of(vec![|run| run.started().tool_call("c1", "confirm", &json!({})).finished(), |run| {
            run.started()
                .tool("c1", "confirm", &json!({}), Some(json!({"success": true, "result": "yes"})))
                .finished()
        }]);
    let told =
        Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held().passed();
    assert_eq!(told.noting("the client's counts").calls(), ["1 confirm {} → yes"]);
    assert_eq!(agent.requests().len(), 2, "and it is not answered again");
}

/// A run that fails or is cut after a call is not answered.
#[test]
fn nothing_is_answered_after_a_failure() {
    for (end, kind) in
        [(Run::cut as Play, ProtocolError), ((|run| run.error("boom", None)) as Play, AgentError)]
    {
        let agent = super::talk::agent(move |run| end(run.started().tool_call("c1", "confirm", &json!({}))));
        let told = Talk::with(&agent).case("tools", confirm(json!([{"content": "yes"}]))).says("hi").held();
        assert_eq!(told.failed(kind, "").calls(), ["1 confirm {} → nothing"]);
        assert_eq!(agent.requests().len(), 1);
    }
}
