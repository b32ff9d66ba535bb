//! Workflow features: conditions, branches and joins, loops, nested workflows.

use crate::kit::{Test, at, completed};
use hotseat_runtime::definition::{
    BranchMerge, JoinRule, OnJoinTimeout, TaskDefinition, WorkflowDefinition, WorkflowNode, mock, node,
    persona, task, tool, transition, workflow,
};
use hotseat_runtime::sim::TestConversation;
use hotseat_trace::{TokenStatus, TokensSpec, verify_workflow};
use serde_json::{Value, json};

fn run(flow: &WorkflowDefinition, input: Value) -> TestConversation {
    let agent = persona("P").tool(tool("flow").workflow(flow));
    let test = Test::new(agent, ["go"], [at("p", 1, 1).call_tool("flow", input), at("p", 1, 2).say("ok")]);
    let result = test.run();
    completed(&result);
    for seed in 1..10 {
        let other = test.run_with(test.options().seed(seed).restart_every_step());
        test.check(&other);
        assert_eq!(output(&other), output(&result), "seed {seed}");
    }
    let run = result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0];
    for token in result.trace.workflows().tokens(&run.run_id) {
        let last = result.trace.workflows().token_statuses(&token.token_id).last().copied();
        assert!(last.is_some_and(TokenStatus::is_terminal), "token {} ends", token.token_id);
    }
    result
}

fn output(result: &TestConversation) -> Value {
    result.trace.tools().calls()[0].output().cloned().unwrap_or(Value::Null)
}

fn failure(result: &TestConversation) -> String {
    result.trace.tools().failures()[0].error.message.clone()
}

fn computing(name: &str, expression: &str) -> TaskDefinition {
    task(name).step(mock().computes(expression))
}

fn start() -> TaskDefinition {
    computing("Start", "{}")
}

/// A fan-out with branches of increasing duration, and their join.
fn fan_out(join: JoinRule, merge: BranchMerge) -> WorkflowDefinition {
    let work = task("Work").step(mock().computes("{n: input.n}"));
    let wait = task("Wait").step(mock().delay_between_ms(1, 50).computes("{n: input.n}"));
    workflow("Fan")
        .node(node("start", &start()))
        .node(node("wait", &wait).input("n", "branch.index").output("output.n", "result.n"))
        .node(node("work", &work).input("n", "output.n").output("output.n", "result.n"))
        .node(node("end", &computing("End", "{}")).output("output.end", "true"))
        .transition(transition("start", "wait").spawn(3, "g"))
        .transition(transition("wait", "work"))
        .transition(transition("work", "end").fan_in("g", join, merge))
}

#[test]
fn a_cycle_of_nodes_without_duration_fails() {
    let cycle = workflow("Cycle")
        .node(node("one", &computing("One", "{}")))
        .node(node("other", &computing("Other", "{}")))
        .transition(transition("one", "other"))
        .transition(transition("other", "one"));
    let agent = persona("P").tool(tool("flow").workflow(&cycle));
    let replies = [at("p", 1, 1).call_tool("flow", json!({})), at("p", 1, 2).say("ok")];
    let result = Test::new(agent, ["go"], replies).run();
    completed(&result);
    assert_eq!(failure(&result), "the workflow has created 10000 tokens without ending");
}

#[test]
fn token_passes_through_states() {
    let flow = workflow("One").node(computing("Only", "{a: 1}"));
    let result = run(&flow, json!({}));
    let run = result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0];
    let tokens = result.trace.workflows().tokens(&run.run_id);
    let statuses = result.trace.workflows().token_statuses(&tokens[0].token_id);
    use TokenStatus::{Completed, Dispatched, Executing, Pending};
    assert_eq!(statuses, [Pending, Dispatched, Executing, Completed]);
}

#[test]
fn conditions_and_priorities_select_edge() {
    let flow = workflow("Grade")
        .node(node("read", &computing("Read", "{score: input.score}")))
        .node(node("high", &computing("High", "{grade: 'high'}")))
        .node(node("middle", &computing("Middle", "{grade: 'middle'}")))
        .node(node("low", &computing("Low", "{grade: 'low'}")))
        .transition(transition("read", "low").priority(3))
        .transition(transition("read", "high").priority(1).when("output.score >= 80"))
        .transition(transition("read", "middle").priority(2).when("output.score >= 50"));
    for (score, grade) in [(80, "high"), (79, "middle"), (50, "middle"), (49, "low")] {
        assert_eq!(output(&run(&flow, json!({"score": score}))), json!({"grade": grade}), "{score}");
    }
}

#[test]
fn branches_join_in_order() {
    let result = run(&fan_out(JoinRule::All, BranchMerge::Collect("output.all".into())), json!({}));
    assert_eq!(output(&result)["all"], json!([{"n": 0}, {"n": 1}, {"n": 2}]));
    let table = [
        (BranchMerge::Append("output.all".into()), json!([{"n": 0}, {"n": 1}, {"n": 2}])),
        (BranchMerge::MergeObject("output.all".into()), json!({"n": 2})),
        (
            BranchMerge::KeyedByBranch("output.all".into()),
            json!({"0": {"n": 0}, "1": {"n": 1}, "2": {"n": 2}}),
        ),
        (BranchMerge::LastWins("output.all".into()), json!({"n": 2})),
    ];
    for (merge, expected) in table {
        assert_eq!(output(&run(&fan_out(JoinRule::All, merge), json!({})))["all"], expected);
    }
}

#[test]
fn first_n_branches_suffice_and_rest_is_cancelled() {
    for (join, count) in [(JoinRule::Any, 1), (JoinRule::Count(2), 2), (JoinRule::Count(3), 3)] {
        let result = run(&fan_out(join, BranchMerge::Collect("output.all".into())), json!({}));
        assert_eq!(output(&result)["all"].as_array().unwrap().len(), count, "{join:?}");
        let run = result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0];
        let ends = result
            .trace
            .workflows()
            .tokens(&run.run_id)
            .iter()
            .filter(|token| &*token.node_ref == "end")
            .count();
        assert_eq!(ends, 1, "the join continues once");
    }
}

#[test]
fn each_list_item_has_a_branch() {
    let flow = workflow("Each")
        .node(node("start", &start()))
        .node(node("double", &computing("Double", "{n: input.n * 2}")).input("n", "item"))
        .node(node("end", &computing("End", "{}")).output("output.done", "true"))
        .transition(transition("start", "double").for_each("input.items", "item", "each"))
        .transition(transition("double", "end").fan_in(
            "each",
            JoinRule::All,
            BranchMerge::Collect("output.all".into()),
        ));
    let result = run(&flow, json!({"items": [1, 2, 3]}));
    assert_eq!(output(&result)["all"], json!([{"n": 2}, {"n": 4}, {"n": 6}]));
    assert_eq!(output(&run(&flow, json!({"items": []}))), json!({}));
}

#[test]
fn loop_ends_at_its_limit() {
    let flow = workflow("Loop")
        .node(
            node("count", &computing("Count", "{n: (input.n || 0) + 1}"))
                .input("n", "state.n")
                .output("state.n", "result.n"),
        )
        .transition(transition("count", "count").max_iterations(4))
        .output("n", "state.n");
    assert_eq!(output(&run(&flow, json!({}))), json!({"n": 5}));
}

#[test]
fn late_branches_fail_or_are_dropped() {
    let uneven = |then| {
        let slow = task("Slow").step(mock().delay_ms(10_000).returns(json!({"who": "slow"})));
        workflow("Uneven")
            .node(node("start", &start()))
            .node(node("fast", &computing("Fast", "{who: 'fast'}")))
            .node(node("slow", &slow))
            .node(node("end", &computing("End", "{}")).output("output.done", "true"))
            .transition(transition("start", "fast").group("g"))
            .transition(transition("start", "slow").group("g"))
            .transition(
                transition("fast", "end")
                    .fan_in("g", JoinRule::All, BranchMerge::Collect("output.all".into()))
                    .fan_in_timeout(500, then),
            )
            .transition(
                transition("slow", "end")
                    .fan_in("g", JoinRule::All, BranchMerge::Collect("output.all".into()))
                    .fan_in_timeout(500, then),
            )
    };
    assert_eq!(output(&run(&uneven(OnJoinTimeout::Proceed), json!({})))["all"], json!([{"who": "fast"}]));
    let failed = run(&uneven(OnJoinTimeout::Fail), json!({}));
    assert_eq!(failure(&failed), "the branches of g were not joined within 500 ms");
}

#[test]
fn nested_workflow_returns_or_fails_with_message() {
    let inner = workflow("Inner").node(computing("Add", "{sum: input.a + input.b}"));
    let outer = workflow("Outer").node(
        WorkflowNode::subworkflow("call", &inner)
            .input("a", "input.x")
            .input("b", "1")
            .output("output.total", "result.sum"),
    );
    let result = run(&outer, json!({"x": 41}));
    assert_eq!(output(&result), json!({"total": 42}));
    assert_eq!(result.trace.all_conversations().len(), 1, "its events belong to the conversation");
    let bad = workflow("Inner Bad").node(task("Bad").step(mock().fails("no luck")));
    let outer = workflow("Outer").node(WorkflowNode::subworkflow("call", &bad));
    assert_eq!(failure(&run(&outer, json!({}))), "Subworkflow failed: no luck");
}

#[test]
fn failing_branch_fails_workflow_and_cancels_others() {
    let flow = workflow("Fails")
        .node(node("start", &start()))
        .node(node("bad", &task("Bad").step(mock().delay_ms(5).fails("broken"))))
        .node(node("slow", &task("Slow").step(mock().delay_ms(1000).returns(json!({})))))
        .transition(transition("start", "bad").group("g"))
        .transition(transition("start", "slow").group("g"));
    let result = run(&flow, json!({}));
    assert_eq!(failure(&result), "broken");
    assert!(result.trace.tools().failures()[0].offset.0 <= 5000);
}

#[test]
fn workflow_rejects_invalid_input() {
    let flow = workflow("Strict").input(hotseat_runtime::definition::schema::object([])).node(start());
    assert_eq!(failure(&run(&flow, json!({"_callback": 1}))), "`_callback` is not expected");
}

/// The run started by the tool of the conversation.
fn run_of(result: &TestConversation) -> String {
    result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0].run_id.to_string()
}

#[test]
fn workflow_checks_pass_and_each_can_fail() {
    let result = run(&fan_out(JoinRule::All, BranchMerge::Collect("output.all".into())), json!({}));
    let run_id = run_of(&result);
    let right = TokensSpec {
        root: Some("start".into()),
        total: Some(8),
        tokens_at_node: vec![("start".into(), 1), ("end".into(), 1)],
        fan_outs: Some(vec![("g".into(), 3)]),
        fan_in_arrivals: Some(3),
        fan_in_continuations: Some(1),
        cancelled: Some(0),
    };
    verify_workflow(&result.trace, &run_id)
        .completed()
        .with_output(output(&result))
        .with_tokens(right.clone())
        .with_custom("nothing", |_| Ok(()))
        .assert();
    let wrong: [TokensSpec; 7] = [
        TokensSpec { root: Some("end".into()), ..TokensSpec::default() },
        TokensSpec { total: Some(4), ..TokensSpec::default() },
        TokensSpec { tokens_at_node: vec![("end".into(), 2)], ..TokensSpec::default() },
        TokensSpec { fan_outs: Some(vec![("g".into(), 2)]), ..TokensSpec::default() },
        TokensSpec { fan_in_arrivals: Some(2), ..TokensSpec::default() },
        TokensSpec { fan_in_continuations: Some(2), ..TokensSpec::default() },
        TokensSpec { cancelled: Some(1), ..TokensSpec::default() },
    ];
    for spec in wrong {
        let error = verify_workflow(&result.trace, &run_id).with_tokens(spec.clone()).run().unwrap_err();
        assert_eq!(error.mismatches.len(), 1, "{spec:?}: {error}");
    }
    for broken in [
        verify_workflow(&result.trace, &run_id).failed("no"),
        verify_workflow(&result.trace, &run_id).with_output(json!({})),
        verify_workflow(&result.trace, &run_id).with_custom("mine", |_| Err("not mine".into())),
    ] {
        assert_eq!(broken.run().unwrap_err().mismatches.len(), 1);
    }
    // Every expectation on a missing run fails.
    let nobody = verify_workflow(&result.trace, "nobody");
    assert_eq!(nobody.run().unwrap_err().mismatches.len(), 1);
    let any = run(&fan_out(JoinRule::Any, BranchMerge::Collect("output.all".into())), json!({}));
    let spec = TokensSpec { cancelled: Some(2), fan_in_continuations: Some(1), ..TokensSpec::default() };
    verify_workflow(&any.trace, &run_of(&any)).completed().with_tokens(spec).assert();
    let bad = run(&workflow("Bad").node(task("Bad").step(mock().fails("no luck"))), json!({}));
    verify_workflow(&bad.trace, &run_of(&bad)).failed("no luck").assert();
}
