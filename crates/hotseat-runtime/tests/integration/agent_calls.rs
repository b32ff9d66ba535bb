//! Workflows and tasks that call agents.

use std::time::Duration;

use crate::kit::{Test, at, completed};
use hotseat_model::script::Rule;
use hotseat_runtime::definition::{
    BranchMerge, JoinRule, Persona, TaskRetry, WorkflowNode, ask, echo, node, persona, step, task, tool,
    transition, workflow,
};
use hotseat_runtime::sim::{TestConversation, TestStatus};
use hotseat_trace::{Payload, TokenStatus, WorkOrigin};
use serde_json::{Value, json};

fn output(result: &TestConversation) -> Value {
    result.trace.tools().calls()[0].output().cloned().unwrap_or(Value::Null)
}

fn message(result: &TestConversation) -> String {
    result.trace.tools().failures()[0].error.message.clone()
}

/// Turns of all agents, by agent, with their success.
fn turns(result: &TestConversation) -> Vec<(String, bool)> {
    let views = result.trace.all_conversations();
    views
        .iter()
        .flat_map(|view| {
            let of = |start: hotseat_trace::TypedRecord<'_, hotseat_trace::TurnStart>| {
                let agent = start.agent_id.as_deref().unwrap_or_default().to_string();
                (agent, view.turns().failure(&start.turn_id).is_none())
            };
            view.turns().starts().into_iter().map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// An agent whose tool is a workflow with a single node that asks an expert.
fn consulting_test() -> Test {
    let expert = persona("Expert").system("KNOW");
    let flow = workflow("Consult")
        .node(
            WorkflowNode::agent("expert", &expert)
                .input("question", "input.topic")
                .output("output.advice", "result.response"),
        )
        .node(node("last", &task("Last").step(echo())).output("output.done", "true"));
    let agent = persona("P").tool(tool("consult").workflow(&flow));
    let script = [
        at("p", 1, 1).call_tool("consult", json!({"topic": "tea"})),
        at("expert", 1, 1).delay(Duration::from_secs(3)).say("Green."),
        at("p", 1, 2).say("Green, says the expert."),
    ];
    Test::new(agent, ["Which tea?"], script)
}

#[test]
fn node_asks_agent_and_uses_its_answer() {
    let test = consulting_test();
    let result = test.run();
    completed(&result);
    assert_eq!(output(&result), json!({"advice": "Green.", "done": true}));
    let run = result.trace.workflows().runs(WorkOrigin::Tool)[0].run_id.to_string();
    let token = result.trace.workflows().tokens(&run)[0].token_id.to_string();
    use TokenStatus::{Completed, Dispatched, Pending, WaitingForAgent};
    assert_eq!(
        result.trace.workflows().token_statuses(&token),
        [Pending, Dispatched, WaitingForAgent, Completed]
    );
    let child = result.trace.child(&token).unwrap();
    let start = child.turns().starts()[0];
    assert_eq!((&*start.caller_type, &*start.caller_id), ("workflow", run.as_str()));
    assert_eq!(child.messages().user()[0].content, r#"{"question":"tea"}"#);
    assert_eq!(child.conversations().closed().len(), 1);
    let request = result.requests.iter().find(|request| request.position.agent == "expert").unwrap();
    assert_eq!(request.system.as_deref(), Some("KNOW"));
    assert_eq!(result.trace.messages().assistant().len(), 1, "the expert speaks to the workflow only");
    test.sweep(100, completed);
}

#[test]
fn step_asks_agent_alone_and_in_workflow() {
    let expert = persona("Expert");
    let asking = task("Ask").step(
        step(ask(&expert))
            .named("ask")
            .input("*", "'What about ' + input.topic + '?'")
            .output("output.advice", "result.response"),
    );
    for made in [
        tool("consult").task(&asking),
        tool("consult").workflow(&workflow("Consult").node(asking.clone())),
        tool("consult").workflow(
            &workflow("Outer").node(WorkflowNode::subworkflow("in", &workflow("In").node(asking.clone()))),
        ),
        tool("consult").task(&asking).asynchronous(),
    ] {
        let script = [
            at("p", 1, 1).say("I ask.").call_tool("consult", json!({"topic": "tea"})),
            at("expert", 1, 1).delay(Duration::from_secs(3)).say("Green."),
            at("p", 1, 2).say("Green."),
        ];
        let test = Test::new(persona("P").tool(made), ["Which tea?"], script);
        let result = test.run();
        completed(&result);
        assert_eq!(output(&result), json!({"advice": "Green."}));
        let views = result.trace.all_conversations();
        assert_eq!(views[1].messages().user()[0].content, "What about tea?");
        assert_eq!(&*views[1].turns().starts()[0].caller_type, "workflow");
        test.sweep(20, completed);
    }
}

#[test]
fn branches_ask_concurrently() {
    let expert = persona("Expert");
    let flow = workflow("Poll")
        .node(node("start", &task("Start").step(echo())))
        .node(WorkflowNode::agent("ask", &expert).input("*", "who").output("output.said", "result.response"))
        .node(node("end", &task("End").step(echo())).output("output.end", "true"))
        .transition(transition("start", "ask").for_each("input.who", "who", "polled"))
        .transition(transition("ask", "end").fan_in(
            "polled",
            JoinRule::All,
            BranchMerge::Collect("output.all".into()),
        ));
    let agent = persona("P").tool(tool("poll").workflow(&flow));
    let slow = |who: &str, seconds: u64| {
        Rule::new()
            .agent("expert")
            .user(who)
            .delay(Duration::from_secs(seconds))
            .say(format!("I am {who}"))
            .always()
    };
    let script = [
        at("p", 1, 1).call_tool("poll", json!({"who": ["ann", "bob"]})),
        slow("ann", 2),
        slow("bob", 1),
        at("p", 1, 2).say("Both answered."),
    ];
    let test = Test::new(agent, ["Ask them"], script);
    let result = test.run();
    completed(&result);
    assert_eq!(output(&result)["all"], json!([{"said": "I am ann"}, {"said": "I am bob"}]));
    assert_eq!(result.trace.tools().completions()[0].offset.0, 2_000_000, "the longer of both");
    test.sweep(50, completed);
}

#[test]
fn unneeded_agent_is_stopped() {
    let expert = persona("Expert");
    let flow = workflow("First")
        .node(node("start", &task("Start").step(echo())))
        .node(WorkflowNode::agent("ask", &expert).input("*", "who").output("output.said", "result.response"))
        .node(node("end", &task("End").step(echo())).output("output.end", "true"))
        .transition(transition("start", "ask").for_each("input.who", "who", "polled"))
        .transition(transition("ask", "end").fan_in(
            "polled",
            JoinRule::Any,
            BranchMerge::Collect("output.all".into()),
        ));
    let agent = persona("P").tool(tool("poll").workflow(&flow));
    let script = [
        at("p", 1, 1).call_tool("poll", json!({"who": ["ann", "bob"]})),
        Rule::new().agent("expert").user("ann").delay(Duration::from_secs(20)).say("late").always(),
        Rule::new().agent("expert").user("bob").say("I am bob").always(),
        at("p", 1, 2).say("Bob answered."),
    ];
    let test = Test::new(agent, ["Ask them"], script).allow_failed_turns();
    let result = test.run();
    completed(&result);
    assert_eq!(output(&result)["all"], json!([{"said": "I am bob"}]));
    assert!(result.sim.now() < 20_000, "the run does not wait for ann");
    let ended: Vec<bool> =
        turns(&result).into_iter().filter(|(agent, _)| agent == "expert").map(|(_, ok)| ok).collect();
    assert_eq!(ended, [false, true]);
    test.sweep(50, completed);
}

#[test]
fn tool_timeout_stops_called_agents() {
    let expert = persona("Expert");
    let steps = task("Ask").step(ask(&expert));
    for flow in [
        workflow("Node").node(WorkflowNode::agent("expert", &expert)),
        workflow("Step").node(steps.clone()),
        workflow("Deep").node(WorkflowNode::subworkflow(
            "in",
            &workflow("In").node(WorkflowNode::agent("expert", &expert)),
        )),
    ] {
        let agent = persona("P").tool(tool("consult").workflow(&flow).timeout_ms(1000));
        let script = [
            at("p", 1, 1).call_tool("consult", json!({})),
            at("expert", 1, 1).delay(Duration::from_secs(3)).say("Too late."),
            at("p", 1, 2).say("No answer."),
        ];
        let test = Test::new(agent, ["Which tea?"], script).allow_failed_turns();
        let result = test.run();
        completed(&result);
        assert_eq!(result.trace.tools().failures()[0].error.code.as_deref(), Some("TIMEOUT"));
        assert_eq!(turns(&result), [("p".to_string(), true), ("expert".to_string(), false)], "{}", flow.name);
        assert!(result.sim.now() < 3000);
        test.sweep(20, completed);
    }
}

#[test]
fn failing_agent_fails_node_and_task_retries() {
    let broken = persona("Expert").context_assembly(&crate::kit::subjects::failing_workflow());
    let node = workflow("Node").node(WorkflowNode::agent("expert", &broken));
    let again = task("Again").step(ask(&broken)).retry(TaskRetry { max_attempts: 2, ..TaskRetry::default() });
    for (made, conversations) in [(tool("consult").workflow(&node), 2), (tool("consult").task(&again), 3)] {
        let script = [at("p", 1, 1).call_tool("consult", json!({})), at("p", 1, 2).say("It failed.")];
        let result = Test::new(persona("P").tool(made), ["go"], script).allow_failed_turns().run();
        completed(&result);
        assert!(message(&result).starts_with("the turn of the agent failed"), "{}", message(&result));
        assert_eq!(result.trace.all_conversations().len(), conversations);
    }
}

/// An agent with a workflow that asks the agent with this id.
fn agent_calling(id: &str) -> Persona {
    persona("Mirror")
        .tool(tool("again").workflow(&workflow("Again").node(WorkflowNode::agent_id("again", id))))
}

#[test]
fn missing_agent_is_a_failure() {
    let script = [at("mirror", 1, 1).call_tool("again", json!({})), at("mirror", 1, 2).say("Nobody.")];
    let result = Test::new(agent_calling("nobody"), ["go"], script).run();
    completed(&result);
    assert_eq!(message(&result), "unknown agent nobody");
}

#[test]
fn nested_agent_calls_are_limited_to_eight() {
    let script = [
        Rule::new().tool_result("again").say("That is that.").always(),
        Rule::new().call_tool("again", json!({})).always(),
    ];
    let test = Test::new(agent_calling("mirror"), ["go"], script);
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.all_conversations().len(), 9);
    // The same limit applies if a context workflow calls the agent.
    let flow = workflow("Ctx").node(WorkflowNode::agent_id("ask", "endless"));
    let agent = persona("Endless").context_assembly(&flow);
    let result = Test::new(agent, ["go"], [at("endless", 9, 9).say("never")]);
    let result = result.allow_failed_turns().unused_steps().run();
    assert_eq!(result.status, TestStatus::Failed);
    assert_eq!(
        result.trace.all_conversations().len(),
        9,
        "what fails for good is not tried again on the way back"
    );
}

#[test]
fn cancelled_turn_stops_its_workers() {
    let mut test = consulting_test().allow_failed_turns();
    test.persona.tools[0].retry.timeout_ms = None;
    // The caller's model fails while the expert is working: the call is asynchronous.
    test.persona.tools[0].is_async = true;
    test.script = vec![
        at("p", 1, 1).call_tool("consult", json!({"topic": "tea"})),
        at("expert", 1, 1).delay(Duration::from_secs(30)).say("Green."),
        at("p", 1, 2).delay(Duration::from_secs(1)).fail(hotseat_model::ModelErrorKind::Auth),
    ];
    let result = test.run();
    assert_eq!(result.status, TestStatus::Failed);
    assert_eq!(turns(&result), [("p".to_string(), false), ("expert".to_string(), false)]);
    assert!(result.sim.now() < 30_000);
    assert!(result.trace.all().iter().any(|record| matches!(&record.payload, Payload::TurnFailed(end)
        if end.error.message == "the calling turn has ended")));
}
