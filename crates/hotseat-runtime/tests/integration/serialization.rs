//! Serialization of definitions, inputs and decisions.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::{Test, at, subjects};
use hotseat_model::script::Rule;
use hotseat_model::{ModelErrorKind, TimedValue};
use hotseat_runtime::conversation::{
    ApprovalVerdict, ContextEntry, ConversationInput, ConversationMachine, ConversationOrigin, Decision,
    OperationAddress,
};
use hotseat_runtime::definition::schema::{integer, object, string};
use hotseat_runtime::definition::{
    BranchMerge, Definitions, JoinRule, MemoryAction, OnJoinTimeout, Persona, RuntimeLimits, StepBranch,
    StepFailurePolicy, WorkflowNode, ask, context, custom, echo, fail, memory, mock, node, persona, step,
    task, tool, transition, workflow,
};
use hotseat_runtime::sim::TestConversation;
use hotseat_runtime::world::WorldDelivery;
use hotseat_trace::Participant;
use serde_json::json;

/// An agent with every feature of a definition.
fn full_persona() -> Persona {
    let steps = task("Steps")
        .input(object([("n", integer())]))
        .output(object([("n", integer())]))
        .timeout_ms(5000)
        .step(step(mock().schema(object([("a", string())])).delay_between_ms(1, 9)).named("made up"))
        .step(
            step(mock().computes("input.n + 1").fails_infrastructure("down").first_attempts(1)).named("sum"),
        )
        .step(step(echo()).named("echo").input("*", "{n: state.n, ...input}").output("state.n", "result.n"))
        .step(step(fail("no")).named("fail").on_failure(StepFailurePolicy::Continue))
        .step(step(context()).named("if").when("input.n > 3", StepBranch::Continue, StepBranch::Skip))
        .step(
            step(memory(MemoryAction::Write)).named("keep").input("content", "'tea'").input("kind", "'fact'"),
        )
        .step(step(ask(&persona("Helper"))).named("ask"))
        .step(step(mock().returns(json!({"constant": ["a", 1, null]}))).named("constant"));
    let flow = workflow("Flow")
        .input(object([]))
        .node(node("start", &steps).input("n", "1").output("state.n", "result.n"))
        .node(WorkflowNode::agent("ask", &persona("Helper").system("HELP")))
        .node(WorkflowNode::subworkflow("in", &subjects::slow("Slow")))
        .transition(transition("start", "ask").for_each("input.all", "item", "g").priority(2).when("true"))
        .transition(
            transition("ask", "in")
                .fan_in("g", JoinRule::Count(2), BranchMerge::KeyedByBranch("output.x".into()))
                .fan_in_timeout(9, OnJoinTimeout::Proceed)
                .max_iterations(3),
        )
        .output("n", "state.n");
    persona("All")
        .system("SYSTEM")
        .recent_turns(3)
        .max_moves(9)
        .context_assembly(&subjects::marking())
        .memory_extraction(&subjects::remembering())
        .may_decline()
        .tool(tool("steps").task(&steps).asynchronous().attempts(2, 10).timeout_ms(None).map("n", "m"))
        .tool(
            tool("flow")
                .workflow(&flow)
                .approval("May {n} be?")
                .reads("n", "state.n")
                .writes("n", "result.n"),
        )
        .tool(tool("join").agent(&persona("Architect")).loop_in())
        .tool(tool("self").agent_id("all"))
        .tool(tool("screen").client())
}

#[test]
fn definitions_round_trip() {
    for persona in subjects::all().into_iter().map(|(_, test)| test.persona).chain([full_persona()]) {
        let text = serde_json::to_string(&persona).unwrap();
        let again: Persona = serde_json::from_str(&text).unwrap();
        assert_eq!(again, persona, "{text}");
    }
    let written = serde_json::to_value(full_persona()).unwrap();
    assert_eq!(written["systemPrompt"], "SYSTEM");
    assert_eq!(written["recentTurnsLimit"], 3);
    assert_eq!(written["tools"][3]["target"], json!({"agent": {"id": "all"}}));
    assert_eq!(written["tools"][1]["writes"], json!([["n", "result.n"]]));
}

#[test]
fn function_cannot_be_serialized() {
    let work = task("T").step(custom("double", |input| Ok(json!({"twice": input["n"]}))));
    let error = serde_json::to_string(&persona("P").tool(tool("t").task(&work))).unwrap_err().to_string();
    assert_eq!(error, "the function `double` is code and cannot be serialised");
}

#[test]
fn invalid_expression_reports_location() {
    let mut written = serde_json::to_value(full_persona()).unwrap();
    written["tools"][1]["writes"] = json!([["n", "result."]]);
    let error = serde_json::from_value::<Persona>(written).unwrap_err().to_string();
    assert!(error.starts_with("invalid expression `result.`: "), "{error}");
}

/// Decisions of each conversation of a run, recomputed from its events.
fn decisions(persona: &Persona, result: &TestConversation) -> Vec<Decision> {
    let (definitions, _) = Definitions::from_persona(persona).unwrap();
    let definitions = std::sync::Arc::new(definitions);
    let mut machines = BTreeMap::new();
    let mut decided = Vec::new();
    for (stamp, delivery) in &result.journal {
        let (id, inputs) = match delivery {
            WorldDelivery::Open { opening, call } => {
                let machine =
                    ConversationMachine::new(definitions.clone(), RuntimeLimits::default(), opening.clone());
                machines.insert(opening.conversation.clone(), machine);
                (
                    &opening.conversation,
                    std::iter::once(ConversationInput::Open).chain(call.clone()).collect(),
                )
            }
            WorldDelivery::Input { conversation, input } => (conversation, vec![input.clone()]),
            WorldDelivery::Wake { conversation } => (conversation, vec![ConversationInput::Wake]),
            WorldDelivery::Run { .. } | WorldDelivery::Remembered { .. } => continue,
        };
        let machine = machines.get_mut(id).unwrap();
        decided.extend(inputs.iter().flat_map(|input| machine.handle(stamp.now(), input).decisions));
    }
    decided
}

#[test]
fn every_decision_round_trips() {
    let mut tests: Vec<Test> = subjects::all().into_iter().map(|(_, test)| test).collect();
    tests.push(subjects::approval(ApprovalVerdict::Approved { input: Some(json!({"amount": 2})) }));
    tests.push(subjects::approval(ApprovalVerdict::Declined { reason: "no".into() }));
    let flaky = task("Flaky").step(mock().returns(json!({})).fails_infrastructure("x").first_attempts(1));
    let agent = persona("P")
        .tool(tool("flaky").task(&flaky).attempts(2, 10).writes("n", "1"))
        .tool(tool("screen").client().timeout_ms(5))
        .tool(
            tool("slow").task(&task("Slow").step(mock().delay_ms(90_000).returns(json!({})))).asynchronous(),
        );
    let script = [
        Rule::new().agent("p").turn(1).call(1).call_tool("flaky", json!({})).call_tool("gone", json!({})),
        at("p", 1, 2).call_tool("screen", json!({})),
        at("p", 1, 3).call_tool("slow", json!({})),
        at("p", 1, 4).attempt(1).fail(ModelErrorKind::Server),
        at("p", 1, 4).attempt(2).fail(ModelErrorKind::Auth),
    ];
    tests.push(Test::new(agent, ["go"], script).with_externals(|options| {
        let context = vec![ContextEntry { description: "page".into(), value: "shop".into() }];
        let offered =
            hotseat_model::ModelTool { name: "x".into(), description: "X".into(), input_schema: json!({}) };
        options.offer(vec![offered], context, Some(json!(1))).client(|_| Some(TimedValue::now(Ok(json!({})))))
    }));
    let mut names = BTreeSet::new();
    let mut check = |decision: &Decision| {
        let written = serde_json::to_value(decision).unwrap();
        assert_eq!(written["type"], decision.name());
        assert_eq!(serde_json::from_value::<Decision>(written).unwrap(), *decision);
        names.insert(decision.name());
    };
    for test in &tests {
        decisions(&test.persona, &test.run_with(test.options())).iter().for_each(&mut check);
    }
    // Decisions that no agent makes by itself.
    let (definitions, agent) = Definitions::from_persona(&persona("P")).unwrap();
    let opening = ConversationOrigin { conversation: "c1".into(), agent, parent: None };
    let mut machine =
        ConversationMachine::new(std::sync::Arc::new(definitions), RuntimeLimits::default(), opening);
    let participant = Participant::Agent { agent_id: "p".into() };
    for input in [
        ConversationInput::RemoveParticipant { participant },
        ConversationInput::Close,
        ConversationInput::Close,
    ] {
        machine.handle(0, &input).decisions.iter().for_each(&mut check);
    }
    let late = Test::new(
        persona("P")
            .tool(tool("t").task(&task("T").step(mock().delay_ms(99).returns(json!({})))).timeout_ms(9)),
        ["go"],
        [at("p", 1, 1).call_tool("t", json!({})), at("p", 1, 2).say("late")],
    );
    decisions(&late.persona, &late.run_with(late.options())).iter().for_each(&mut check);
    let known = [
        "ACCEPT_CONTEXT",
        "ACCEPT_EXTRACTION",
        "ACCEPT_OFFER",
        "ACCEPT_REPLY",
        "ADD_PARTICIPANT",
        "ANSWER_APPROVAL",
        "APPEND_MESSAGE",
        "ASK_APPROVAL",
        "ASYNC_OPERATION_COMPLETED",
        "CALL_LLM",
        "CANCEL_OPERATION",
        "CANCEL_TIMER",
        "CHANGE_STATE",
        "CLOSE_CONVERSATION",
        "COMPLETE_OPERATION",
        "COMPLETE_TURN",
        "DISPATCH_AGENT",
        "DISPATCH_CLIENT",
        "DISPATCH_CONTEXT_ASSEMBLY",
        "DISPATCH_MEMORY_EXTRACTION",
        "DISPATCH_TASK",
        "DISPATCH_WORKFLOW",
        "FAIL_CONTEXT",
        "FAIL_EXTRACTION",
        "FAIL_LLM",
        "FAIL_TURN",
        "IGNORE_INPUT",
        "LEAVE_APPROVAL",
        "MARK_WAITING",
        "OPEN_CONVERSATION",
        "RECORD_MOVE",
        "RECORD_RESULT",
        "REDISPATCH_OPERATION",
        "REFUSE_CALL",
        "REMOVE_PARTICIPANT",
        "REPLY_TO_CALLER",
        "RESUME_FROM_TOOL",
        "RETRY_OPERATION",
        "SCHEDULE_TIMER",
        "SHARE_CONTEXT",
        "START_TURN",
        "STOP_OPERATION",
        "TRACK_ASYNC_OPERATION",
    ];
    assert_eq!(names, BTreeSet::from(known));
}

#[test]
fn missing_and_null_inputs_are_equivalent() {
    // A stored and reloaded input must lead to the same state.
    let at = OperationAddress { turn: "c1-t1".into(), call: "c1-t1-k1".into(), attempt: 1 };
    for verdict in
        [ApprovalVerdict::Approved { input: Some(json!(null)) }, ApprovalVerdict::Approved { input: None }]
    {
        let test = subjects::approval(verdict.clone());
        let result = test.run();
        assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"charged": 5})));
        let input = ConversationInput::Approval { at: at.clone(), verdict };
        let again: ConversationInput = serde_json::from_value(serde_json::to_value(&input).unwrap()).unwrap();
        let ConversationInput::Approval { verdict: ApprovalVerdict::Approved { input }, .. } = again else {
            panic!()
        };
        assert_eq!(input, None);
    }
    for state in [Some(json!(null)), None] {
        let test = Test::new(persona("P"), ["hi"], [first_rule()])
            .with_externals(move |options| options.offer(Vec::new(), Vec::new(), state.clone()));
        assert_eq!(test.run().requests[0].system, None);
    }
}

fn first_rule() -> Rule {
    at("p", 1, 1).say("hi")
}
