//! Regression tests for known faults of agent runtimes that no other test covers.

use std::sync::Arc;

use crate::kit::{Test, at, completed, subjects};
use hotseat_model::ModelMessage;
use hotseat_runtime::conversation::OperationStatus;
use hotseat_runtime::definition::schema::{integer, object};
use hotseat_runtime::definition::{
    DefinitionRef, ToolTarget, WorkflowNode, mock, node, persona, task, tool, workflow,
};
use serde_json::json;

#[test]
fn model_text_appears_once_in_next_request() {
    let mut test = subjects::moves();
    test.script = vec![
        at("stepper", 1, 1)
            .say("Both")
            .call_tool("step_one", json!({"n": 1}))
            .call_tool("step_two", json!({"n": 2})),
        at("stepper", 1, 2).say("Done."),
    ];
    let result = test.run();
    let said: Vec<_> = result.requests[1]
        .messages
        .iter()
        .filter_map(|message| match message {
            ModelMessage::Assistant { text, tool_calls, .. } => Some((text.as_str(), tool_calls.len())),
            _ => None,
        })
        .collect();
    assert_eq!(said, [("Both", 2)]);
}

#[test]
fn targets_receive_only_requested_data() {
    // Schemas without additional properties would reject a hidden member.
    let strict = object([("n", integer())]);
    let inner = task("Inner").input(strict.clone()).step(mock().returns(json!({"ok": true})));
    let flow = workflow("Flow").input(strict.clone()).node(node("inner", &inner));
    let outer = workflow("Outer").input(strict.clone()).node(WorkflowNode::subworkflow("in", &flow));
    for made in [tool("t").task(&inner), tool("t").workflow(&flow), tool("t").workflow(&outer)] {
        for made in [made.clone(), made.asynchronous()] {
            let script =
                [at("p", 1, 1).say("Wait.").call_tool("t", json!({"n": 1})), at("p", 1, 2).say("Fine.")];
            let result = Test::new(persona("P").tool(made.input(strict.clone())), ["go"], script).run();
            completed(&result);
            assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"ok": true})));
        }
    }
}

#[test]
fn async_call_timeout_reaches_model() {
    let slow = task("Slow").step(mock().delay_ms(90_000).returns(json!({})));
    let agent = persona("P").tool(tool("slow").task(&slow).asynchronous().timeout_ms(1000));
    let script = [
        at("p", 1, 1).say("Started.").call_tool("slow", json!({})),
        at("p", 1, 2).notice("within 1000 ms").say("It took too long."),
    ];
    let test = Test::new(agent, ["go"], script);
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.tools().failures()[0].error.code.as_deref(), Some("TIMEOUT"));
    assert_eq!(result.trace.turns().completions()[0].offset.0, 1_000_000);
    test.sweep(20, completed);
}

#[test]
fn failed_operation_is_marked_failed() {
    let result = subjects::tool_failure().run();
    let state = result.sim.conversation(&result.conversation_id).unwrap().state();
    let operation = &state.turns[0].operations[0];
    assert_eq!(operation.status, OperationStatus::Failed);
    assert!(operation.outcome.as_ref().is_some_and(|outcome| !outcome.is_success()));
    let moves = result.trace.moves().all();
    assert!(moves[0].tool_result.as_ref().is_some_and(|result| !result.is_success()));
}

#[test]
fn model_learns_of_missing_tool_target() {
    let id = |id: &str| Arc::<str>::from(id);
    for (target, message) in [
        (ToolTarget::Task(DefinitionRef::Id(id("gone"))), "unknown task gone"),
        (ToolTarget::Workflow(DefinitionRef::Id(id("gone"))), "unknown workflow gone"),
        (ToolTarget::Agent(DefinitionRef::Id(id("gone"))), "unknown agent gone"),
    ] {
        for is_async in [false, true] {
            let mut made = tool("t").target(target.clone());
            made.is_async = is_async;
            let script =
                [at("p", 1, 1).say("Wait.").call_tool("t", json!({})), at("p", 1, 2).say("It is gone.")];
            let result = Test::new(persona("P").tool(made), ["go"], script).run();
            completed(&result);
            let failure = result.trace.tools().failures()[0];
            assert_eq!(
                (failure.error.code.as_deref(), &*failure.error.message),
                (Some("NOT_FOUND"), message)
            );
            assert_eq!(result.requests.len(), 2);
        }
    }
    // Inside a workflow the error appears only when the node is reached.
    let flow = workflow("Flow").node(WorkflowNode::agent_id("ask", "gone"));
    let script = [at("p", 1, 1).call_tool("t", json!({})), at("p", 1, 2).say("It is gone.")];
    let result = Test::new(persona("P").tool(tool("t").workflow(&flow)), ["go"], script).run();
    assert_eq!(result.trace.tools().failures()[0].error.message, "unknown agent gone");
}
