//! Further runtime tests: exact counts, variants, and known faults of agent runtimes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Test, at, completed, subjects};
use hotseat_model::script::Rule;
use hotseat_model::{ModelErrorKind, ModelMessage};
use hotseat_runtime::conversation::{
    ApprovalVerdict, ConversationInput, ConversationMachine, ConversationOrigin, OperationAddress,
};
use hotseat_runtime::definition::schema::{object, string};
use hotseat_runtime::definition::{
    ContextPolicy, Definitions, RuntimeLimits, StepFailurePolicy, mock, node, persona, step, task, tool,
    workflow,
};
use hotseat_runtime::sim::{TestConversation, TestMessage, TestStatus};
use hotseat_trace::{Payload, TurnStatus, WorkOrigin};
use serde_json::{Value, json};

fn offsets<T>(events: &[hotseat_trace::TypedRecord<'_, T>]) -> Vec<u64> {
    events.iter().map(|event| event.offset.0 / 1000).collect()
}

fn answers(request: &hotseat_model::ModelRequest) -> Vec<(String, bool)> {
    request
        .messages
        .iter()
        .filter_map(|message| match message {
            ModelMessage::Tool(result) => Some((result.text().into_owned(), result.is_error)),
            _ => None,
        })
        .collect()
}

fn codes(result: &TestConversation) -> Vec<String> {
    result.trace.tools().failures().iter().filter_map(|failure| failure.error.code.clone()).collect()
}

#[test]
fn sync_tool_receives_exact_model_arguments() {
    let result = subjects::sync_tool().run();
    let call = result.trace.tools().calls()[0];
    assert_eq!(call.output(), Some(&json!({"echoed": "hello world"})));
    assert_eq!(result.trace.llm().calls().len(), 2);
    assert_eq!(result.trace.context_assembly().starts().len(), 2);
    assert_eq!(
        result.trace.executor().all_origins().task_starts().len(),
        4,
        "two requests, one tool, one extraction"
    );
}

#[test]
fn async_tool_never_blocks() {
    let result = subjects::async_tool().run();
    let turn = result.trace.turns().ids()[0].to_string();
    assert!(result.trace.turns().waits(&turn).is_empty());
    assert_eq!(result.trace.llm().calls().len(), 2);
    assert!(offsets(&result.trace.turns().completions())[0] >= 2000);
    let results = result.trace.moves().results();
    assert_eq!(results.len(), 1);
    assert!(results[0].tool_result.is_success());
}

#[test]
fn silent_async_call_is_acknowledged_by_extra_model_call() {
    let mut test = subjects::async_tool();
    test.script = vec![
        at("researcher", 1, 1).call_tool("research", json!({"topic": "x"})),
        at("researcher", 1, 2).say("Research has started."),
        at("researcher", 1, 3).notice("OAuth").say("Done."),
    ];
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.llm().calls().len(), 3);
    let first = result.trace.messages().assistant()[0].sequence;
    assert!(first < result.trace.turns().async_completions(None)[0].sequence);
    assert!(answers(&result.requests[1])[0].0.contains("started"));
}

#[test]
fn turns_know_only_earlier_messages() {
    let result = subjects::multi_turn().run();
    let texts = |index: usize| {
        result.requests[index].messages.iter().map(|m| m.text().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(1), ["My name is Alice.", "Nice to meet you, Alice.", "What is my name?"]);
    assert_eq!(texts(2).len(), 5);
    assert!(result.trace.moves().all().iter().all(|entry| entry.payload.sequence == 0));
}

#[test]
fn number_of_earlier_turns_is_limited() {
    let agent = persona("P").recent_turns(2);
    let script: Vec<_> = (1..=4).map(|turn| at("p", turn, 1).say(format!("answer {turn}"))).collect();
    let result = Test::new(agent, ["1", "2", "3", "4"], script).sequential().run();
    assert_eq!(result.requests[3].messages.len(), 5);
}

#[test]
fn parallel_turns_know_of_each_other() {
    let mut test = subjects::parallel();
    test.persona = test.persona.context_assembly(&subjects::marking());
    let result = test.run();
    let turns = result.trace.turns().ids().into_iter().map(str::to_string).collect::<Vec<_>>();
    let inputs: Vec<Arc<Value>> = result
        .trace
        .root()
        .records()
        .filter_map(|record| match &record.payload {
            Payload::WorkflowStarted(p) if p.turn_id.as_deref() == Some(&turns[1]) => Some(p.input.clone()),
            _ => None,
        })
        .collect();
    let last = inputs.iter().rfind(|input| input.get("activeTurns").is_some()).unwrap();
    let active = last["activeTurns"].as_array().unwrap();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0]["id"], json!(turns[0]));
    assert_eq!(active[0]["pendingOperations"].as_array().unwrap().len(), 1);
}

#[test]
fn second_node_receives_first_output_and_mapping_sets_result() {
    let first = task("First").step(mock().returns(json!({"n": 20})));
    let second = task("Second").step(mock().computes("{sum: input.n + 1}"));
    let flow = workflow("Two")
        .node(node("first", &first).output("state.n", "result.n"))
        .node(node("second", &second).input("n", "state.n").output("state.sum", "result.sum"))
        .output("answer", "state.sum * 2");
    let agent = persona("P").tool(tool("two").workflow(&flow));
    let script = [at("p", 1, 1).call_tool("two", json!({})), at("p", 1, 2).say("42")];
    let result = Test::new(agent, ["?"], script).run();
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"answer": 42})));
}

#[test]
fn delegate_sees_only_its_input() {
    let result = subjects::delegate().run();
    let call = result.trace.agents().calls()[0];
    let child = result.trace.child(&call.call_id).unwrap();
    let starts = child.turns().starts();
    assert_eq!(starts.len(), 1);
    assert_eq!((&*starts[0].caller_type, &*starts[0].caller_id), ("agent", "manager"));
    assert_eq!(child.messages().user()[0].content, json!({"code": subjects::CODE}).to_string());
    assert_eq!(result.trace.messages().assistant().len(), 1, "what the child said is not said to the user");
    let request = result.requests.iter().find(|request| request.position.agent == "reviewer").unwrap();
    assert_eq!(request.system.as_deref(), Some("Review code and provide feedback."));
    assert_eq!(request.messages.len(), 1);
    let output = result.trace.tools().calls()[0].output().unwrap().clone();
    assert_eq!(output, json!({"response": "The code is fine."}));
    assert_eq!(child.conversations().closed().len(), 1);
    assert_eq!(result.trace.all_conversations().len(), 2);
}

#[test]
fn joined_agent_speaks_and_stays() {
    let mut test = subjects::loop_in().sequential();
    test.messages.push("And now?".into());
    test.messages.push("Ask again.".into());
    test.script.extend([
        at("manager", 2, 1).say("Now we build it."),
        at("manager", 3, 1).call_tool("loop_in_architect", json!({"context": "again"})),
        at("architect", 2, 1).say("Still OAuth."),
        at("manager", 3, 2).say("Still OAuth, says the architect."),
    ]);
    let result = test.run();
    completed(&result);
    let architect = result.requests.iter().find(|request| request.position.agent == "architect").unwrap();
    assert_eq!(architect.system.as_deref(), Some("ARCH"));
    let second =
        result.requests.iter().find(|r| r.position.agent == "manager" && r.position.turn == 2).unwrap();
    assert!(second.messages.iter().any(|message| message.text() == "architect: Use OAuth 2.1."));
    assert_eq!(result.trace.participants().added().len(), 1);
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"response": "Use OAuth 2.1."})));
}

#[test]
fn joined_agent_counts_toward_calling_turn() {
    let result = subjects::loop_in().run();
    let folded = result.trace.conversation();
    assert_eq!(folded.turns.len(), 1);
    let said: Vec<_> =
        folded.turns[0].messages.iter().map(|m| (&*m.content, m.subagent.as_deref())).collect();
    assert_eq!(said, [("Use OAuth 2.1.", Some("architect")), ("The architect suggests OAuth 2.1.", None)]);
    assert_eq!(folded.turns[0].user.as_deref(), Some("We need an auth system. Get the architect."));
    assert_eq!(folded.turns[0].tool_calls.len(), 1);
}

#[test]
fn checks_ignore_delegate_conversation() {
    let folded = subjects::delegate().run().trace.conversation();
    assert_eq!(folded.turns.len(), 1);
    assert_eq!(folded.turns[0].messages.len(), 1);
    assert_eq!(folded.turns[0].tool_calls[0].result.as_ref().unwrap().value["response"], "The code is fine.");
}

#[test]
fn context_assembly_receives_required_input() {
    let result = subjects::context_assembly().run();
    let inputs: Vec<_> =
        result.trace.workflows().runs(WorkOrigin::ContextAssembly).iter().map(|r| r.input.clone()).collect();
    for key in
        ["conversationId", "userMessage", "recentTurns", "modelProfileId", "toolIds", "toolDefinitions"]
    {
        assert!(inputs[0].get(key).is_some(), "{key}");
    }
    let recent = inputs[1]["recentTurns"].as_array().unwrap();
    assert_eq!(recent.len(), 1);
    assert_eq!(recent[0]["moves"][0]["reasoning"], "one");
}

#[test]
fn requests_can_be_built_once_per_turn() {
    for (policy, assemblies) in [(ContextPolicy::PerModelCall, 2), (ContextPolicy::PerTurn, 1)] {
        let mut test = subjects::sync_tool();
        test.persona = test.persona.context_policy(policy);
        let result = test.run();
        assert_eq!(result.trace.context_assembly().starts().len(), assemblies);
        assert_eq!(answers(&result.requests[1]), [(json!({"echoed": "hello world"}).to_string(), false)]);
        assert!(result.requests[1].system.is_some());
    }
}

#[test]
fn assembly_without_request_fails_immediately() {
    let empty = workflow("Empty").node(task("Empty").step(mock().returns(json!({}))));
    let test = Test::new(persona("P").context_assembly(&empty), ["hi"], [at("p", 9, 9).say("never")]);
    let result = test.allow_failed_turns().unused_steps().run();
    assert_eq!(result.status, TestStatus::Failed);
    assert_eq!(result.trace.context_assembly().failures().len(), 1);
}

#[test]
fn extraction_reads_moves_and_changes_no_messages() {
    let result = subjects::memory_extraction().run();
    let run = result.trace.workflows().runs(WorkOrigin::MemoryExtraction)[0];
    assert_eq!(run.input["agentId"], "p");
    let moves: Vec<_> =
        result.trace.moves().all().iter().map(|entry| serde_json::to_value(entry.payload).unwrap()).collect();
    assert_eq!(run.input["transcript"], Value::Array(moves));
    assert_eq!(result.trace.messages().assistant().len(), 1);
    assert_eq!(result.trace.memory().written().len(), 1);
}

#[test]
fn next_request_contains_each_result_once_and_context() {
    let result = subjects::moves().run();
    let third = &result.requests[2];
    assert_eq!(third.system.as_deref(), Some("Step by step."));
    let done: Vec<_> = answers(third).into_iter().map(|(text, _)| text).collect();
    assert_eq!(done, [r#"{"done":1}"#, r#"{"done":2}"#]);
    let assistant =
        third.messages.iter().filter(|message| matches!(message, ModelMessage::Assistant { .. })).count();
    assert_eq!(assistant, 2);
}

#[test]
fn two_calls_in_one_reply_are_one_iteration() {
    let mut test = subjects::moves();
    test.script = vec![
        at("stepper", 1, 1)
            .say("Both")
            .call_tool("step_one", json!({"n": 1}))
            .call_tool("step_two", json!({"n": 2})),
        at("stepper", 1, 2).say("Done."),
    ];
    let result = test.run();
    let moves = result.trace.moves().all();
    assert_eq!(moves.iter().map(|entry| entry.iteration).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(moves.iter().filter(|entry| entry.reasoning.is_some()).count(), 2);
    assert_eq!(result.trace.llm().calls().len(), 2);
    assert_eq!(answers(&result.requests[1]).len(), 2);
}

#[test]
fn mixed_calls_wait_only_for_sync_one() {
    let mut test = subjects::parallel();
    test.messages.truncate(1);
    test.script = vec![
        at("multi-tasker", 1, 1)
            .say("Both.")
            .call_tool("slow_task", json!({}))
            .call_tool("fast_task", json!({})),
        at("multi-tasker", 1, 2).say("Fast is there."),
        at("multi-tasker", 1, 3).notice("OAuth").say("Slow is there."),
    ];
    let result = test.run();
    completed(&result);
    let told = answers(&result.requests[1]);
    assert!(told[0].0.contains("started") && told[1].0.contains("8080"));
}

#[test]
fn simultaneous_async_results_are_delivered_together() {
    let agent = persona("P")
        .tool(tool("a").workflow(&subjects::slow("A")).asynchronous())
        .tool(tool("b").workflow(&subjects::slow("B")).asynchronous());
    let script = [
        at("p", 1, 1).say("Both.").call_tool("a", json!({})).call_tool("b", json!({})),
        at("p", 1, 2).delay(Duration::from_millis(10)).say("One or both."),
        at("p", 1, 3).say("The other."),
    ];
    let test = Test::new(agent, ["go"], script);
    for seed in 0..50 {
        let result = test.run_with(test.options().seed(seed));
        test.check(&result);
        completed(&result);
        assert_eq!(result.trace.memory_extraction().starts().len(), 1);
        assert_eq!(result.trace.turns().async_completions(None).len(), 2);
    }
}

#[test]
fn model_learns_of_every_failure_kind() {
    let slow = task("Slow").step(mock().delay_ms(300_000).returns(json!({})));
    let failing = task("Failing").step(mock().fails("Connection refused"));
    let input = object([("text", string())]);
    let agent = persona("P")
        .tool(tool("strict").input(input).task(&failing))
        .tool(tool("slow").task(&slow))
        .tool(tool("later").task(&failing).asynchronous())
        .tool(tool("gone").agent_id("nobody"));
    let table = [
        ("strict", json!({"txt": 1}), "INVALID_INPUT", "`text` is missing; `txt` is not expected"),
        ("unheard_of", json!({}), "NOT_FOUND", "unknown tool unheard_of"),
        ("gone", json!({}), "NOT_FOUND", "unknown agent nobody"),
        ("slow", json!({}), "TIMEOUT", "60000 ms"),
    ];
    for (name, arguments, code, message) in table {
        let script = [at("p", 1, 1).call_tool(name, arguments), at("p", 1, 2).say("It failed.")];
        let result = Test::new(agent.clone(), ["go"], script).run();
        completed(&result);
        assert_eq!(codes(&result), [code]);
        let told = answers(&result.requests[1]);
        assert!(told[0].1 && told[0].0.contains(message), "{told:?}");
        let end = result.trace.turns().completions()[0].payload.issues.clone().unwrap();
        assert_eq!(end.tool_failures, 1);
        let dispatched = usize::from(code == "TIMEOUT");
        assert_eq!(result.trace.tools().invocations().len(), dispatched, "{name}");
    }
    let script = [
        at("p", 1, 1).say("Started.").call_tool("later", json!({})),
        at("p", 1, 2).notice("Connection refused").say("It failed."),
    ];
    let result = Test::new(agent, ["go"], script).run();
    completed(&result);
    assert_eq!(result.trace.messages().assistant().len(), 2);
    assert!(!result.trace.turns().async_completions(None)[0].result.is_success());
}

#[test]
fn late_result_changes_nothing() {
    let slow = task("Slow").step(mock().delay_ms(60_001).returns(json!({})));
    let script = [at("p", 1, 1).call_tool("slow", json!({})), at("p", 1, 2).say("Too late.")];
    let result = Test::new(persona("P").tool(tool("slow").task(&slow)), ["go"], script).run();
    assert_eq!(codes(&result), ["TIMEOUT"]);
    assert!(result.trace.tools().completions().is_empty());
    assert_eq!(offsets(&result.trace.tools().failures()), [60_000]);
}

#[test]
fn tool_with_transient_failure_retries_after_backoff() {
    let flaky = task("Flaky")
        .step(mock().returns(json!({"ok": true})).fails_infrastructure("down").first_attempts(1));
    let agent = persona("P").tool(tool("flaky").task(&flaky).attempts(2, 1000));
    let script = [at("p", 1, 1).call_tool("flaky", json!({})), at("p", 1, 2).say("Fine.")];
    let result = Test::new(agent, ["go"], script).run();
    completed(&result);
    let tools = result.trace.tools();
    assert_eq!((tools.invocations().len(), tools.completions().len(), tools.retries().len()), (1, 1, 1));
    assert_eq!(offsets(&tools.completions()), [1000]);
    assert!(tools.failures().is_empty());
}

#[test]
fn context_assembly_retries_after_100_and_200_ms() {
    let result = subjects::context_failure().run();
    assert_eq!(offsets(&result.trace.context_assembly().starts()), [0, 100, 300]);
    let script = [at("p", 1, 1).say("fine")];
    let build = task("Build")
        .step(mock().computes("{llmRequest: {messages: []}}").fails_infrastructure("down").first_attempts(2));
    let result =
        Test::new(persona("P").context_assembly(&workflow("Flaky").node(build)), ["hi"], script).run();
    completed(&result);
    assert_eq!(result.trace.errors().count(), 0);
}

#[test]
fn permanent_context_assembly_failure_is_not_retried() {
    let bad = workflow("Bad").node(task("Fail").step(mock().fails("no rights")));
    let mut test = subjects::context_failure();
    test.persona = persona("P").context_assembly(&bad);
    let result = test.run();
    assert_eq!(result.trace.context_assembly().starts().len(), 1);
    assert!(result.trace.context_assembly().failures()[0].retries_exhausted);
}

#[test]
fn recovered_extraction_leaves_no_flag() {
    let flaky = mock().returns(json!({})).fails_infrastructure("down").first_attempts(1);
    let agent = persona("P").memory_extraction(&workflow("Flaky").node(task("Flaky").step(flaky)));
    let result = Test::new(agent, ["hi"], [at("p", 1, 1).say("ok")]).run();
    assert!(result.trace.turns().completions()[0].issues.is_none());
    assert_eq!(
        offsets(&subjects::extraction_failure().run().trace.memory_extraction().starts()),
        [0, 100, 300]
    );
}

#[test]
fn unavailable_model_is_retried_silently() {
    let script = [
        at("p", 1, 1).attempt(1).fail(ModelErrorKind::Server),
        at("p", 1, 1).attempt(2).fail_rate_limit(Duration::from_millis(2500)),
        at("p", 1, 1).attempt(3).say("Here I am."),
    ];
    let result = Test::new(persona("P"), ["hi"], script).run();
    completed(&result);
    assert_eq!(offsets(&result.trace.llm().calls()), [0, 500, 3000]);
    assert_eq!(result.trace.llm().completions().len(), 1);
}

#[test]
fn permanent_model_error_fails_turn_immediately() {
    let script = [at("p", 1, 1).fail(ModelErrorKind::Auth)];
    let result = Test::new(persona("P"), ["hi"], script).allow_failed_turns().run();
    assert_eq!(result.status, TestStatus::Failed);
    assert_eq!(result.trace.llm().calls().len(), 1);
    assert_eq!(result.trace.turns().failures()[0].error.code.as_deref(), Some("LLM_FAILED"));
}

#[test]
fn failed_child_answers_its_parent() {
    let reviewer = persona("Reviewer").context_assembly(&subjects::failing_workflow());
    let agent = persona("Manager").tool(tool("ask").agent(&reviewer));
    let script =
        [at("manager", 1, 1).call_tool("ask", json!({})), at("manager", 1, 2).say("The reviewer failed.")];
    let result = Test::new(agent, ["go"], script).allow_failed_turns().run();
    completed(&result);
    assert_eq!(codes(&result), ["EXECUTION_FAILED"]);
    assert_eq!(result.trace.agents().failures().len(), 1);
}

#[test]
fn agent_may_decline() {
    let reviewer = persona("Reviewer").may_decline();
    let agent = persona("Manager").tool(tool("ask").agent(&reviewer));
    let script = [
        at("manager", 1, 1).call_tool("ask", json!({})),
        at("reviewer", 1, 1).offered("decline").call_tool("decline", json!({"reason": "not my field"})),
        at("manager", 1, 2).say("Declined."),
    ];
    let result = Test::new(agent, ["go"], script).allow_failed_turns().run();
    assert_eq!(codes(&result), ["AGENT_DECLINED"]);
    assert_eq!(result.trace.tools().failures()[0].error.message, "not my field");
}

#[test]
fn nested_agent_calls_are_limited_to_eight() {
    let agent = persona("Mirror").tool(tool("again").agent_id("mirror"));
    let script = [
        Rule::new().tool_result("again").say("That is that.").always(),
        Rule::new().call_tool("again", json!({})).always(),
    ];
    let result = Test::new(agent, ["go"], script).run();
    completed(&result);
    assert_eq!(result.trace.all_conversations().len(), 9);
}

#[test]
fn exhausted_turn_answers_without_tools() {
    let again = task("Again").step(mock().returns(json!({})));
    let agent = persona("P").tool(tool("again").task(&again)).max_moves(3);
    let script = [
        Rule::new().offered("again").call_tool("again", json!({})).always(),
        Rule::new().say("I give up.").always(),
    ];
    let result = Test::new(agent, ["go"], script).run();
    completed(&result);
    assert_eq!(result.trace.moves().all().len(), 3);
    assert!(result.requests.last().unwrap().tools.is_empty());
    assert!(result.trace.turns().completions()[0].issues.as_ref().unwrap().move_limit_reached);
}

#[test]
fn call_at_the_last_move_is_refused() {
    let again = task("Again").step(mock().returns(json!({})));
    let agent = persona("P").tool(tool("again").task(&again)).max_moves(2);
    let script = [Rule::new().call_tool("again", json!({})).always()];
    let result = Test::new(agent, ["go"], script).run();
    completed(&result);
    let moves = result.trace.moves().all();
    assert_eq!(moves.len(), 2);
    let refused = moves[1].tool_call.as_ref().map(|call| &*call.tool_id);
    assert_eq!(refused, Some("again"), "{moves:?}");
    assert!(moves[1].tool_result.as_ref().is_some_and(|outcome| outcome.result.is_err()), "{moves:?}");
    assert!(result.trace.turns().completions()[0].issues.as_ref().unwrap().move_limit_reached);
}

#[test]
fn empty_reply_is_a_move_without_message() {
    let result = Test::new(persona("P"), ["hi"], [at("p", 1, 1).say("")]).run();
    completed(&result);
    assert_eq!(result.trace.moves().all()[0].reasoning.as_deref(), Some(""));
    assert!(result.trace.messages().assistant().is_empty());
    assert_eq!(result.trace.memory_extraction().completions().len(), 1);
}

#[test]
fn message_after_failed_turn_is_answered() {
    let build =
        task("Build").step(mock().computes("input.userMessage == 'bad' ? {} : {llmRequest: {messages: []}}"));
    let agent = persona("P").context_assembly(&workflow("Picky").node(build));
    let result = Test::new(agent, ["bad", "good"], [at("p", 2, 1).say("fine")])
        .sequential()
        .allow_failed_turns()
        .run();
    let statuses: Vec<_> =
        result.trace.turns().ids().iter().map(|id| result.trace.turns().status_transitions(id)[1]).collect();
    assert_eq!(statuses, [TurnStatus::Failed, TurnStatus::Completed]);
}

#[test]
fn deadlocked_run_is_reported() {
    let never = task("Never").step(mock().delay_ms(u64::MAX / 2).returns(json!({})));
    let agent = persona("P").tool(tool("never").task(&never).timeout_ms(None));
    let test = Test::new(agent, ["go"], [at("p", 1, 1).call_tool("never", json!({}))]);
    let result = test.run_with(test.options());
    assert_eq!(result.status, TestStatus::Timeout);
    assert_eq!(result.waiting, ["turn c1-t1 waits for c1-t1-k1 (never)"]);
}

#[test]
fn cancelled_turn_stops_its_work() {
    let test = subjects::loop_in();
    let (definitions, agent) = Definitions::from_persona(&test.persona).unwrap();
    let settings = hotseat_runtime::sim::SimSettings::default();
    let script = [
        at("manager", 1, 1).call_tool("loop_in_architect", json!({"context": "auth"})),
        at("architect", 1, 1).delay(Duration::from_secs(10)).say("Too late."),
    ];
    let model = Test::new(test.persona.clone(), ["x"], script).model();
    let mut sim =
        hotseat_runtime::sim::SimDriver::new(std::sync::Arc::new(definitions), Box::new(model), settings);
    let id = sim.open("c1", &agent);
    sim.send(
        &id,
        0,
        ConversationInput::UserMessage {
            user: "ann".into(),
            content: "go".into(),
            reply_to: None,
            client_id: None,
        },
    );
    sim.send(&id, 5000, ConversationInput::CancelTurn { turn: "c1-t1".into(), reason: "enough".into() });
    sim.run(60_000);
    let trace = sim.trace();
    let failures = trace.turns().failures();
    assert_eq!(failures.len(), 2, "the turn and the one it called");
    assert_eq!(trace.turns().cancellations().len(), 1);
    let options = hotseat_trace::InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    hotseat_trace::assert_conversation_invariants(&trace, options);
}

#[test]
fn invalid_inputs_only_appear_in_trace() {
    let (definitions, agent) = Definitions::from_persona(&persona("P")).unwrap();
    let opening = ConversationOrigin { conversation: "c1".into(), agent, parent: None };
    let mut machine =
        ConversationMachine::new(std::sync::Arc::new(definitions), RuntimeLimits::default(), opening);
    machine.handle(0, &ConversationInput::Open);
    let before = machine.state().clone();
    let at = OperationAddress { turn: "c1-t9".into(), call: "c1-t9-k1".into(), attempt: 1 };
    let step = machine.handle(1, &ConversationInput::OperationDone { at, result: Ok(Arc::new(json!({}))) });
    assert!(matches!(&step.events[..], [Payload::InputIgnored(_)]));
    assert!(step.effects.is_empty());
    assert_eq!(*machine.state(), before);
    machine.handle(2, &ConversationInput::Close);
    let step = machine.handle(
        3,
        &ConversationInput::UserMessage {
            user: "ann".into(),
            content: "hi".into(),
            reply_to: None,
            client_id: None,
        },
    );
    assert!(matches!(&step.events[..], [Payload::InputIgnored(_)]));
}

#[test]
fn invalid_definitions_report_location_and_reason() {
    let work = task("T").step(mock().returns(json!({})));
    let table = [
        (
            persona("P").tool(tool("a").task(&work)).tool(tool("a").task(&work)),
            "persona P, tool a: the tool name is used twice",
        ),
        (
            persona("P").tool(tool("a")),
            "persona P, tool a: the tool has no target: set a task, a workflow, an agent or the client",
        ),
        (
            persona("P").tool(tool("a").task(&work).loop_in()),
            "persona P, tool a: only an agent can be looped in",
        ),
        (
            persona("P").tool(tool("a").input(json!({"typ": 1})).task(&work)),
            "persona P, tool a, input: the keyword `typ` is not supported",
        ),
        (persona("!"), "persona \"!\": the name contains no letter or digit"),
    ];
    for (persona, expected) in table {
        assert_eq!(Definitions::from_persona(&persona).unwrap_err().to_string(), expected);
    }
}

#[test]
fn task_failure_policy_is_followed() {
    let careful = task("Careful")
        .step(step(mock().fails("first")).named("first").on_failure(StepFailurePolicy::Continue))
        .step(step(mock().computes("{n: 1}")).named("second").output("output.errors", "state._errors"));
    let agent = persona("P").tool(tool("careful").task(&careful));
    let script = [at("p", 1, 1).call_tool("careful", json!({})), at("p", 1, 2).say("ok")];
    let result = Test::new(agent, ["go"], script).run();
    let output = result.trace.tools().calls()[0].output().unwrap().clone();
    assert_eq!(output, json!({"errors": [{"step": "first", "message": "first"}]}));
}

#[test]
fn every_turn_table_row_is_used() {
    let mut seen = BTreeSet::new();
    let slow_model = |kind: &str| match kind {
        "model" => vec![
            at("p", 1, 1).attempt(1).delay(Duration::from_secs(121)).say("late"),
            at("p", 1, 1).attempt(2).say("ok"),
        ],
        _ => vec![at("p", 1, 1).say("ok")],
    };
    let mut tests: Vec<Test> = subjects::all().into_iter().map(|(_, test)| test).collect();
    tests.push(Test::new(persona("P"), ["hi"], slow_model("model")));
    let late = |name: &str| workflow(name).node(task(name).step(mock().delay_ms(31_000).returns(json!({}))));
    tests.push(
        Test::new(persona("P").context_assembly(&late("Late")), ["hi"], [at("p", 1, 1).say("never")])
            .allow_failed_turns(),
    );
    tests.push(Test::new(persona("P").memory_extraction(&late("Late")), ["hi"], slow_model("")));
    tests.push(Test::new(
        persona("P").memory_extraction(&workflow("No").node(task("No").step(mock().fails("no")))),
        ["hi"],
        slow_model(""),
    ));
    tests.push(
        Test::new(
            persona("P").context_assembly(&workflow("No").node(task("No").step(mock().fails("no")))),
            ["hi"],
            slow_model(""),
        )
        .allow_failed_turns(),
    );
    let down = [
        at("p", 1, 1).attempt(1).fail(ModelErrorKind::Server),
        at("p", 1, 1).attempt(2).fail(ModelErrorKind::Auth),
    ];
    tests.push(Test::new(persona("P"), ["hi"], down).allow_failed_turns());
    let slow_task = task("Slow")
        .step(mock().delay_ms(70_000).returns(json!({})).fails_infrastructure("x").first_attempts(0));
    let agent = persona("P").tool(tool("slow").task(&slow_task).attempts(2, 10));
    tests.push(Test::new(
        agent,
        ["hi"],
        [at("p", 1, 1).call_tool("slow", json!({})), at("p", 1, 2).say("slow")],
    ));
    // An asynchronous result while the turn waits, while its request is built, and while the model is
    // running.
    let quick = |name: &str, millis: u64| task(name).step(mock().delay_ms(millis).returns(json!({})));
    let build = workflow("Build")
        .node(task("Build").step(mock().delay_ms(100).computes("{llmRequest: {messages: []}}")));
    for millis in [20, 105, 250] {
        let agent = persona("P")
            .context_assembly(&build)
            .tool(tool("a").task(&quick("A", millis)).asynchronous())
            .tool(tool("s").task(&quick("S", 50)));
        let script = [
            at("p", 1, 1).say("x").call_tool("a", json!({})).call_tool("s", json!({})),
            at("p", 1, 2).delay(Duration::from_millis(200)).say("y"),
            at("p", 1, 3).say("z"),
        ];
        tests.push(Test::new(agent, ["hi"], script));
    }
    tests.push(subjects::approval(ApprovalVerdict::Approved { input: None }));
    tests.push(subjects::approval(ApprovalVerdict::Declined { reason: String::new() }));
    for test in &tests {
        let result = test.run_with(test.options());
        test.check(&result);
        seen.extend(result.sim.coverage());
    }
    let table = [
        ("none", "user message"),
        ("none", "agent call"),
        ("assembling", "assembled"),
        ("assembling", "assembly infrastructure failure"),
        ("assembling", "assembly business failure"),
        ("assembling", "context deadline"),
        ("assembly backoff", "context retry"),
        ("calling", "text reply"),
        ("calling", "calls"),
        ("calling", "model infrastructure failure"),
        ("calling", "model failure"),
        ("calling", "model deadline"),
        ("call backoff", "model retry"),
        ("waiting", "sync result"),
        ("waiting", "async result"),
        ("waiting", "approval"),
        ("waiting", "refusal"),
        ("assembling", "async result"),
        ("calling", "async result"),
        ("idle", "async result"),
        ("waiting", "operation deadline"),
        ("waiting", "operation retry"),
        ("extracting", "extracted"),
        ("extracting", "extraction infrastructure failure"),
        ("extracting", "extraction business failure"),
        ("extracting", "extraction deadline"),
        ("extraction backoff", "extraction retry"),
    ];
    let missing: Vec<_> = table.iter().filter(|row| !seen.contains(*row)).collect();
    assert!(missing.is_empty(), "not used: {missing:?}");
}

#[test]
fn messages_can_arrive_later() {
    let script = [at("p", 1, 1).say("one"), at("p", 2, 1).say("two")];
    let messages = [TestMessage::from("a"), TestMessage::from("b").after_ms(1500)];
    let result = Test::new(persona("P"), messages, script).run();
    assert_eq!(offsets(&result.trace.turns().starts()), [0, 1500]);
}
