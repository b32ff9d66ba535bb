//! Workflows beyond a line: conditions, branches and where they come together, loops, workflows within workflows.

mod kit;

use hotseat_runtime::definition::{
    Join, Merging, Node, OnJoinTimeout, Task, Workflow, mock, node, persona, task, tool, transition, workflow,
};
use hotseat_runtime::sim::TestConversation;
use hotseat_trace::{TokenStatus, TokensSpec, verify_workflow};
use kit::{Test, at, completed};
use serde_json::{Value, json};

fn run(flow: &Workflow, input: Value) -> TestConversation {
    let agent = persona("P").tool(tool("flow").workflow(flow));
    let test = Test::new(agent, ["go"], [at("p", 1, 1).call_tool("flow", input), at("p", 1, 2).say("ok")]);
    let result = test.run();
    completed(&result);
    for seed in 1..10 {
        let other = test.held(test.options().seed(seed).crashing());
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

fn computing(name: &str, expression: &str) -> Task {
    task(name).step(mock().computes(expression))
}

fn start() -> Task {
    computing("Start", "{}")
}

/// A fan-out to so many branches that take ever longer, and where they come together.
fn fan(join: Join, merge: Merging) -> Workflow {
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
fn a_token_passes_through_its_states() {
    let flow = workflow("One").node(computing("Only", "{a: 1}"));
    let result = run(&flow, json!({}));
    let run = result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0];
    let tokens = result.trace.workflows().tokens(&run.run_id);
    let statuses = result.trace.workflows().token_statuses(&tokens[0].token_id);
    use TokenStatus::{Completed, Dispatched, Executing, Pending};
    assert_eq!(statuses, [Pending, Dispatched, Executing, Completed]);
}

#[test]
fn conditions_and_priorities_decide_the_way() {
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
fn branches_come_together_in_their_order() {
    let result = run(&fan(Join::All, Merging::Collect("output.all".into())), json!({}));
    assert_eq!(output(&result)["all"], json!([{"n": 0}, {"n": 1}, {"n": 2}]));
    let table = [
        (Merging::Append("output.all".into()), json!([{"n": 0}, {"n": 1}, {"n": 2}])),
        (Merging::MergeObject("output.all".into()), json!({"n": 2})),
        (Merging::KeyedByBranch("output.all".into()), json!({"0": {"n": 0}, "1": {"n": 1}, "2": {"n": 2}})),
        (Merging::LastWins("output.all".into()), json!({"n": 2})),
    ];
    for (merge, expected) in table {
        assert_eq!(output(&run(&fan(Join::All, merge), json!({})))["all"], expected);
    }
}

#[test]
fn the_first_or_so_many_are_enough_and_the_others_are_given_up() {
    for (join, count) in [(Join::Any, 1), (Join::Count(2), 2), (Join::Count(3), 3)] {
        let result = run(&fan(join, Merging::Collect("output.all".into())), json!({}));
        assert_eq!(output(&result)["all"].as_array().unwrap().len(), count, "{join:?}");
        let run = result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0];
        let ends = result
            .trace
            .workflows()
            .tokens(&run.run_id)
            .iter()
            .filter(|token| &*token.node_ref == "end")
            .count();
        assert_eq!(ends, 1, "what comes together goes on once");
    }
}

#[test]
fn each_item_of_a_list_has_its_branch() {
    let flow = workflow("Each")
        .node(node("start", &start()))
        .node(node("double", &computing("Double", "{n: input.n * 2}")).input("n", "item"))
        .node(node("end", &computing("End", "{}")).output("output.done", "true"))
        .transition(transition("start", "double").for_each("input.items", "item", "each"))
        .transition(transition("double", "end").fan_in(
            "each",
            Join::All,
            Merging::Collect("output.all".into()),
        ));
    let result = run(&flow, json!({"items": [1, 2, 3]}));
    assert_eq!(output(&result)["all"], json!([{"n": 2}, {"n": 4}, {"n": 6}]));
    assert_eq!(output(&run(&flow, json!({"items": []}))), json!({}));
}

#[test]
fn a_loop_ends_at_its_limit() {
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
fn branches_that_do_not_come_in_time_fail_or_are_left_out() {
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
                    .fan_in("g", Join::All, Merging::Collect("output.all".into()))
                    .fan_in_timeout(500, then),
            )
            .transition(
                transition("slow", "end")
                    .fan_in("g", Join::All, Merging::Collect("output.all".into()))
                    .fan_in_timeout(500, then),
            )
    };
    assert_eq!(output(&run(&uneven(OnJoinTimeout::Proceed), json!({})))["all"], json!([{"who": "fast"}]));
    let failed = run(&uneven(OnJoinTimeout::Fail), json!({}));
    assert_eq!(failure(&failed), "branches of g did not come together within 500 ms");
}

#[test]
fn a_workflow_within_a_workflow_returns_or_fails_with_its_words() {
    let inner = workflow("Inner").node(computing("Add", "{sum: input.a + input.b}"));
    let outer = workflow("Outer").node(
        Node::subworkflow("call", &inner)
            .input("a", "input.x")
            .input("b", "1")
            .output("output.total", "result.sum"),
    );
    let result = run(&outer, json!({"x": 41}));
    assert_eq!(output(&result), json!({"total": 42}));
    assert_eq!(result.trace.conversations_all().len(), 1, "its events belong to the conversation");
    let bad = workflow("Inner Bad").node(task("Bad").step(mock().fails("no luck")));
    let outer = workflow("Outer").node(Node::subworkflow("call", &bad));
    assert_eq!(failure(&run(&outer, json!({}))), "Subworkflow failed: no luck");
}

#[test]
fn a_failing_branch_fails_the_workflow_and_the_others_are_given_up() {
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
fn input_that_does_not_fit_is_refused_by_the_workflow() {
    let flow = workflow("Strict").input(hotseat_runtime::definition::schema::object([])).node(start());
    assert_eq!(failure(&run(&flow, json!({"_callback": 1}))), "`_callback` is not expected");
}

/// The run that the tool of the conversation started.
fn run_of(result: &TestConversation) -> String {
    result.trace.workflows().runs(hotseat_trace::WorkOrigin::Tool)[0].run_id.to_string()
}

#[test]
fn a_run_is_as_expected_or_every_check_says_what_is_not() {
    let result = run(&fan(Join::All, Merging::Collect("output.all".into())), json!({}));
    let run_id = run_of(&result);
    let right = TokensSpec {
        root: Some("start".into()),
        total: Some(8),
        at: vec![("start".into(), 1), ("end".into(), 1)],
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
        TokensSpec { at: vec![("end".into(), 2)], ..TokensSpec::default() },
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
    // Of a run that is not there nothing holds, whatever is expected of it.
    let nobody = verify_workflow(&result.trace, "nobody");
    assert_eq!(nobody.run().unwrap_err().mismatches.len(), 1);
    let any = run(&fan(Join::Any, Merging::Collect("output.all".into())), json!({}));
    let spec = TokensSpec { cancelled: Some(2), fan_in_continuations: Some(1), ..TokensSpec::default() };
    verify_workflow(&any.trace, &run_of(&any)).completed().with_tokens(spec).assert();
    let bad = run(&workflow("Bad").node(task("Bad").step(mock().fails("no luck"))), json!({}));
    verify_workflow(&bad.trace, &run_of(&bad)).failed("no luck").assert();
}
