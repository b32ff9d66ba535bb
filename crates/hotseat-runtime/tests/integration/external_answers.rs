//! External answers: client tools, human approvals, and shared state.

use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Test, at, completed, subjects};
use hotseat_model::{ModelMessage, ModelRequest, TimedValue};
use hotseat_runtime::conversation::{ApprovalVerdict, ContextEntry, ConversationInput, OperationAddress};
use hotseat_runtime::definition::schema::{integer, object, string};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool, workflow};
use hotseat_runtime::failure::{ErrorCode, WorkFailure};
use hotseat_runtime::sim::{
    ExternalParties, SimDriver, SimSettings, SimulationEnd, TestConversation, TestOptions, TestStatus,
};
use hotseat_trace::{InvariantOptions, Payload, Trace, assert_conversation_invariants};
use serde_json::{Value, json};

/// Longer than any operation of these tests.
const ONE_DAY_MS: u64 = 86_400_000;

fn client_tool(name: &str, schema: Value) -> hotseat_model::ModelTool {
    hotseat_model::ModelTool {
        name: name.into(),
        description: format!("The {name} of the client"),
        input_schema: schema,
    }
}

/// Types of call events in order, without hook and model events.
fn path(trace: &Trace) -> Vec<String> {
    let told = ["tool.", "interrupt.", "turn.", "move.", "state.", "agent.call", "runtime."];
    trace
        .root()
        .records()
        .map(|record| record.payload.type_name().to_string())
        .filter(|name| told.iter().any(|start| name.starts_with(start)))
        .collect()
}

/// Call results in a model request: text, and whether it is an error.
fn call_results(request: &ModelRequest) -> Vec<(String, bool)> {
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

/// A client that answers after this time.
fn client_answers_after(
    millis: u64,
    result: Result<Value, WorkFailure>,
) -> impl Fn(TestOptions) -> TestOptions {
    move |options| {
        let result = result.clone();
        options
            .client(move |_| Some(TimedValue { delay: Duration::from_millis(millis), value: result.clone() }))
    }
}

/// A human who answers with this verdict after a second.
fn human_answers(verdict: ApprovalVerdict) -> impl Fn(TestOptions) -> TestOptions {
    move |options| {
        let verdict = verdict.clone();
        options.human(move |_| Some(TimedValue { delay: Duration::from_secs(1), value: verdict.clone() }))
    }
}

fn approved() -> ApprovalVerdict {
    ApprovalVerdict::Approved { input: None }
}

fn declined(reason: &str) -> ApprovalVerdict {
    ApprovalVerdict::Declined { reason: reason.into() }
}

fn screen_test() -> Test {
    let agent = persona("P").tool(tool("screen").input(object([("area", string())])).client());
    let script = [
        at("p", 1, 1).call_tool("screen", json!({"area": "top"})),
        at("p", 1, 2).expect(hotseat_model::script::Rule::new().tool_result("screen")).say("I see a menu."),
    ];
    Test::new(agent, ["What do you see?"], script)
}

#[test]
fn client_runs_tool_asynchronously() {
    // Two hours exceed the default time limit of a tool.
    let test = screen_test().with_externals(client_answers_after(7_200_000, Ok(json!({"seen": "menu"}))));
    let result = test.run();
    completed(&result);
    let calls = result.trace.tools().calls();
    assert_eq!(calls[0].invocation.target_type.as_deref(), Some("client"));
    assert_eq!(calls[0].output(), Some(&json!({"seen": "menu"})));
    assert_eq!(
        path(&result.trace),
        [
            "turn.started",
            "tool.invoked",
            "turn.waiting",
            "tool.completed",
            "move.recorded",
            "turn.resumed",
            "move.recorded",
            "turn.completed"
        ]
    );
    assert_eq!(call_results(&result.requests[1]), [(json!({"seen": "menu"}).to_string(), false)]);
    test.sweep(100, completed);
}

#[test]
fn model_learns_of_client_failure() {
    let failure = WorkFailure::business(ErrorCode::ExecutionFailed, "the window is closed");
    let result = screen_test().with_externals(client_answers_after(10, Err(failure))).run();
    completed(&result);
    assert!(call_results(&result.requests[1])[0].0.contains("the window is closed"));
}

#[test]
fn unresponsive_client_is_reported() {
    let test = screen_test();
    let result = test.run_with(test.options());
    assert_eq!(result.status, TestStatus::IdleTimeout);
    assert_eq!(result.waiting, ["turn c1-t1 waits for c1-t1-k1 (screen, waiting for the client)"]);
}

#[test]
fn client_tool_has_configured_time_limit() {
    let mut test = screen_test();
    test.persona.tools[0].retry.timeout_ms = Some(500);
    let result = test.with_externals(client_answers_after(501, Ok(json!({})))).run();
    assert_eq!(codes(&result), ["TIMEOUT"]);
    let ignored = result.trace.all().iter().filter(|r| r.payload.type_name() == "runtime.input_ignored");
    assert_eq!(ignored.count(), 1, "what the client says too late is of no use");
}

#[test]
fn async_client_tool_does_not_block() {
    let agent = persona("P").tool(tool("render").client().asynchronous());
    let script = [
        at("p", 1, 1).say("It is being drawn.").call_tool("render", json!({})),
        at("p", 1, 2).notice("drawn").say("It is drawn."),
    ];
    let test = Test::new(agent, ["Draw"], script)
        .with_externals(client_answers_after(5000, Ok(json!({"state": "drawn"}))));
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.turns().async_completions(None).len(), 1);
    test.sweep(50, completed);
}

#[test]
fn client_tools_belong_to_root_agent_only() {
    let helper = persona("Helper");
    let agent = persona("P").system("BE P").tool(tool("ask").agent(&helper).loop_in());
    let script = [
        at("p", 1, 1).offered("pick").call_tool("ask", json!({})),
        at("helper", 1, 1).say("I help."),
        at("p", 1, 2).call_tool("pick", json!({"n": 2})),
        at("p", 1, 3).say("Two it is."),
    ];
    let test = Test::new(agent, ["Choose"], script).with_externals(|options| {
        let context = vec![ContextEntry { description: "page".into(), value: "the shop".into() }];
        options
            .offer(vec![client_tool("pick", object([("n", integer())]))], context, Some(json!({"cart": []})))
            .client(|call| Some(TimedValue::now(Ok(json!({"picked": call.input["n"]})))))
    });
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.tools().calls()[1].output(), Some(&json!({"picked": 2})));
    let of = |agent: &str| result.requests.iter().find(|request| request.position.agent == agent).unwrap();
    assert!(of("helper").tools.is_empty());
    assert_eq!(
        of("p").system.as_deref(),
        Some(
            "BE P\n\nContext from the client:\n- page: the shop\n\n\
             State shared with the client:\n{\"cart\":[]}"
        )
    );
    let situation = of("helper").system.clone().unwrap();
    assert!(situation.starts_with("Context from the client:\n- page: the shop"), "{situation}");
    test.sweep(50, completed);
}

#[test]
fn unusable_client_tool_is_ignored_with_warning() {
    let own = task("Own").step(mock().returns(json!({"who": "own"})));
    let agent = persona("P").tool(tool("pick").task(&own));
    let script = [at("p", 1, 1).call_tool("pick", json!({})), at("p", 1, 2).say("Own.")];
    let result = Test::new(agent, ["go"], script)
        .with_externals(|options| {
            let broken = client_tool("broken", json!({"typ": 1}));
            let (one, other) = (client_tool("twice", json!({})), client_tool("twice", json!({})));
            let own = client_tool("pick", json!({}));
            options.offer(vec![own, one, other, broken, client_tool("", json!({}))], Vec::new(), None)
        })
        .run();
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"who": "own"})));
    let names: Vec<_> = result.requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["pick", "twice"]);
    let ignored: Vec<_> = result
        .trace
        .all()
        .iter()
        .filter_map(|record| match &record.payload {
            Payload::InputIgnored(ignored) => Some(ignored.reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        ignored,
        [
            "skipped the client's tool \"pick\": the agent already has a tool with this name; that one is used",
            "skipped the client's tool \"twice\": the name is used twice; the first tool is used",
            "skipped the client's tool \"broken\": its input schema is not supported: the keyword `typ` is not supported",
            "skipped the client's tool \"\": it has no name",
        ]
    );
}

/// A simulation advanced step by step.
fn simulation(test: &Test, outside: ExternalParties) -> (SimDriver, hotseat_runtime::ids::ConversationId) {
    let (definitions, agent) = Definitions::from_persona(&test.persona).unwrap();
    let settings = SimSettings { restart_every_step: true, ..SimSettings::default() };
    let mut sim =
        SimDriver::new(Arc::new(definitions), Box::new(test.model()), settings).with_external(outside);
    let id = sim.open("c1", &agent);
    (sim, id)
}

fn user_message(content: &str) -> ConversationInput {
    ConversationInput::UserMessage {
        user: "ann".into(),
        content: content.into(),
        reply_to: None,
        client_id: None,
    }
}

fn first_call() -> OperationAddress {
    OperationAddress { turn: "c1-t1".into(), call: "c1-t1-k1".into(), attempt: 1 }
}

#[test]
fn client_tools_apply_until_replaced() {
    let script = [
        at("p", 1, 1).call_tool("one", json!({})),
        at("p", 1, 2).say("ok"),
        at("p", 2, 1).call_tool("one", json!({})),
        at("p", 2, 2).say("gone"),
    ];
    let test = Test::new(persona("P"), ["x"], script);
    let (mut sim, id) = simulation(&test, ExternalParties::default());
    let offer = |name: &str, state: Option<Value>| ConversationInput::ClientOffer {
        tools: vec![client_tool(name, json!({"type": "object"}))],
        context: Vec::new(),
        state,
    };
    sim.send(&id, 0, offer("one", Some(json!({"n": 1}))));
    sim.send(&id, 0, user_message("go"));
    assert!(matches!(sim.run(ONE_DAY_MS), SimulationEnd::Stalled(_)));
    // The client may answer a call of a tool that it no longer offers.
    sim.send(&id, 0, offer("two", None));
    sim.send(&id, 0, ConversationInput::OperationDone { at: first_call(), result: Ok(Arc::new(json!({}))) });
    sim.run(ONE_DAY_MS);
    sim.send(&id, 0, user_message("again"));
    assert_eq!(sim.run(ONE_DAY_MS), SimulationEnd::Idle);
    let trace = sim.trace();
    assert_eq!(trace.tools().failures().len(), 1);
    assert_eq!(trace.tools().failures()[0].error.message, "unknown tool one");
    assert_eq!(sim.requests()[2].tools[0].name, "two");
    assert!(sim.requests()[2].system.as_deref().is_some_and(|text| text.contains("{\"n\":1}")));
    assert_conversation_invariants(&trace, InvariantOptions::default());
}

fn charge_test() -> Test {
    subjects::approval(approved()).with_externals(|options| options)
}

#[test]
fn approved_call_runs() {
    let test = subjects::approval(approved());
    let result = test.run();
    completed(&result);
    assert_eq!(
        path(&result.trace),
        [
            "turn.started",
            "tool.invoked",
            "interrupt.raised",
            "interrupt.answered",
            "turn.waiting",
            "tool.completed",
            "move.recorded",
            "turn.resumed",
            "move.recorded",
            "turn.completed"
        ]
    );
    let folded = result.trace.conversation();
    let asked = &folded.turns[0].interrupts[0];
    assert_eq!(asked.message.as_deref(), Some("Charge 5 to {card}?"));
    assert_eq!(asked.reason.as_deref(), Some("tool_approval"));
    assert_eq!(
        result.trace.interrupts().raised()[0].value,
        json!({"toolName": "charge", "input": {"amount": 5}})
    );
    assert_eq!(asked.answer, Some(("resolved".into(), Some(json!({"approved": true})))));
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"charged": 5})));
    assert_eq!(
        result.trace.executor().task_starts()[0].offset.0,
        1_000_000,
        "nothing runs before the answer"
    );
    test.sweep(100, completed);
}

#[test]
fn human_may_change_tool_arguments() {
    let test = subjects::approval(ApprovalVerdict::Approved { input: Some(json!({"amount": 3})) });
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"charged": 3})));
    assert_eq!(result.trace.conversation().turns[0].tool_calls[0].arguments, json!({"amount": 3}));
    assert_eq!(result.trace.moves().all()[0].tool_call.as_ref().unwrap().input, json!({"amount": 3}));
    let notices: Vec<_> =
        result.requests[1].messages.iter().map(|message| message.text().into_owned()).collect();
    assert!(
        notices.iter().any(|text| text.contains("approved with a changed input: {\"amount\":3}")),
        "{notices:?}"
    );
    test.sweep(20, completed);
}

#[test]
fn changed_arguments_must_match_schema() {
    let test = subjects::approval(ApprovalVerdict::Approved { input: Some(json!({"amount": "much"})) });
    let result = test.run();
    completed(&result);
    assert_eq!(codes(&result), ["INVALID_INPUT"]);
    assert!(result.trace.executor().task_starts().is_empty());
    assert!(call_results(&result.requests[1])[0].1);
}

#[test]
fn model_learns_of_declined_call() {
    let test = subjects::approval(declined("too expensive"));
    let result = test.run();
    completed(&result);
    assert_eq!(codes(&result), ["PERMISSION_DENIED"]);
    assert_eq!(
        path(&result.trace),
        [
            "turn.started",
            "tool.invoked",
            "interrupt.raised",
            "interrupt.answered",
            "tool.failed",
            "move.recorded",
            "move.recorded",
            "turn.completed"
        ]
    );
    let answer = call_results(&result.requests[1]);
    assert!(answer[0].1 && answer[0].0.contains("a human declined the call: too expensive"), "{answer:?}");
    assert!(result.trace.executor().task_starts().is_empty());
    test.sweep(100, completed);
}

#[test]
fn unanswered_approval_is_reported() {
    let test = charge_test();
    let result = test.run_with(test.options());
    assert_eq!(result.status, TestStatus::IdleTimeout);
    assert_eq!(result.waiting, ["turn c1-t1 waits for c1-t1-k1 (charge, waiting for approval)"]);
}

#[test]
fn every_tool_kind_supports_approval() {
    let work = task("Work").step(mock().delay_ms(50).returns(json!({"by": "task"})));
    let helper = persona("Helper");
    let kinds = [
        ("task", tool("x").task(&work)),
        ("workflow", tool("x").workflow(&workflow("Flow").node(work.clone()))),
        ("agent", tool("x").agent(&helper)),
        ("agent", tool("x").agent(&helper).loop_in()),
        ("client", tool("x").client()),
        ("task", tool("x").task(&work).asynchronous()),
        ("agent", tool("x").agent(&helper).asynchronous()),
        ("client", tool("x").client().asynchronous()),
    ];
    for (kind, made) in kinds {
        for verdict in
            [approved(), declined("no"), ApprovalVerdict::Approved { input: Some(json!({"n": 2})) }]
        {
            let (is_async, agrees) = (made.is_async, matches!(verdict, ApprovalVerdict::Approved { .. }));
            let agent = persona("P").tool(made.clone().approval("May I?"));
            let script = [
                at("p", 1, 1).say("One moment.").call_tool("x", json!({"n": 1})),
                at("helper", 1, 1).say("Helped."),
                at("p", 1, 2).say("Second."),
                at("p", 1, 3).say("Third."),
            ];
            let test = Test::new(agent, ["go"], script).with_externals(move |options| {
                let options = human_answers(verdict.clone())(options);
                options.client(|_| {
                    Some(TimedValue { delay: Duration::from_millis(40), value: Ok(json!({"by": "client"})) })
                })
            });
            let test = test.unused_steps();
            let result = test.run();
            completed(&result);
            let calls = result.trace.tools().calls();
            assert_eq!(calls[0].invocation.target_type.as_deref(), Some(kind));
            assert_eq!(result.trace.agents().calls().len(), usize::from(kind == "agent" && agrees), "{kind}");
            let tracked = result.trace.turns().async_operations(None).len();
            assert_eq!(tracked, usize::from(is_async && agrees), "{kind}");
            assert_eq!(codes(&result).len(), usize::from(!agrees), "{kind}");
            test.sweep(10, completed);
        }
    }
}

#[test]
fn calls_of_one_reply_wait_for_each_other() {
    let slow = task("Slow").step(mock().delay_ms(3000).returns(json!({"slow": true})));
    let agent = {
        let mut agent = charge_test().persona;
        agent.tools.push(tool("slow").task(&slow));
        agent
    };
    let script = [
        at("p", 1, 1)
            .call_tool("charge", json!({"amount": 1}))
            .call_tool("slow", json!({}))
            .call_tool("charge", json!({"amount": 2})),
        at("p", 1, 2).say("All is answered."),
    ];
    let test = Test::new(agent, ["go"], script).with_externals(|options| {
        // The second approval is answered first, and declined.
        options.human(|question| {
            let first = question.input["amount"] == 1;
            let verdict = if first { approved() } else { declined("") };
            Some(TimedValue { delay: Duration::from_millis(if first { 4000 } else { 1000 }), value: verdict })
        })
    });
    let result = test.run();
    completed(&result);
    let answers = call_results(&result.requests[1]);
    assert_eq!(answers.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, false, true]);
    assert!(answers[2].0.contains("a human declined the call"));
    assert_eq!(result.requests.len(), 2, "the model is asked when the last of them is settled");
    test.sweep(100, completed);
}

#[test]
fn cancelled_turn_withdraws_approvals() {
    let mut test = charge_test();
    test.persona.tools.push(tool("screen").client());
    test.script =
        vec![at("p", 1, 1).call_tool("charge", json!({"amount": 5})).call_tool("screen", json!({}))];
    let (mut sim, id) = simulation(&test, ExternalParties::default());
    sim.send(&id, 0, user_message("go"));
    assert!(matches!(sim.run(ONE_DAY_MS), SimulationEnd::Stalled(_)));
    assert_eq!(sim.conversation(&id).unwrap().outstanding().count(), 2);
    sim.send(&id, 0, ConversationInput::CancelTurn { turn: "c1-t1".into(), reason: "enough".into() });
    assert_eq!(sim.run(ONE_DAY_MS), SimulationEnd::Idle);
    assert_eq!(sim.conversation(&id).unwrap().outstanding().count(), 0);
    let interrupts = sim.trace().conversation().turns[0].interrupts.clone();
    assert_eq!(interrupts[0].answer, Some(("cancelled".into(), None)));
    let before = sim.conversation(&id).unwrap().state().clone();
    sim.send(&id, 0, ConversationInput::Approval { at: first_call(), verdict: approved() });
    sim.send(&id, 0, ConversationInput::OperationDone { at: first_call(), result: Ok(Arc::new(json!({}))) });
    sim.run(ONE_DAY_MS);
    assert_eq!(*sim.conversation(&id).unwrap().state(), before);
    assert_eq!(path(&sim.trace()).iter().filter(|name| *name == "runtime.input_ignored").count(), 2);
    let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    assert_conversation_invariants(&sim.trace(), options);
}

#[test]
fn result_requires_approval_and_answer_counts_once() {
    let test = charge_test();
    let (mut sim, id) = simulation(&test, ExternalParties::default());
    sim.send(&id, 0, user_message("go"));
    sim.run(ONE_DAY_MS);
    sim.send(
        &id,
        0,
        ConversationInput::OperationDone {
            at: first_call(),
            result: Ok(Arc::new(json!({"charged": 1_000_000}))),
        },
    );
    sim.send(&id, 0, ConversationInput::Approval { at: first_call(), verdict: approved() });
    sim.send(&id, 0, ConversationInput::Approval { at: first_call(), verdict: declined("changed my mind") });
    assert_eq!(sim.run(ONE_DAY_MS), SimulationEnd::Idle);
    assert_eq!(sim.trace().tools().calls()[0].output(), Some(&json!({"charged": 5})));
    assert_eq!(path(&sim.trace()).iter().filter(|name| *name == "runtime.input_ignored").count(), 2);
    assert_conversation_invariants(&sim.trace(), InvariantOptions::default());
}

fn shopping(writes: &str) -> Persona {
    let add = task("Add").step(mock().computes("{total: input.price, known: input.cart}"));
    persona("P").tool(
        tool("add")
            .input(object([("price", integer())]))
            .task(&add)
            .reads("cart", "state.cart")
            .writes("cart.total", writes)
            .writes("last", "input.price"),
    )
}

#[test]
fn tool_reads_and_writes_shared_state() {
    let script = [
        at("p", 1, 1).call_tool("add", json!({"price": 3})),
        at("p", 1, 2).call_tool("add", json!({"price": 4})),
        at("p", 1, 3).say("Seven."),
    ];
    let test = Test::new(shopping("(state.cart.total || 0) + result.total"), ["Add"], script);
    let result = test.run();
    completed(&result);
    let states: Vec<_> = result
        .trace
        .all()
        .iter()
        .filter_map(|record| match &record.payload {
            Payload::StateSnapshot(snapshot) => Some(snapshot.state.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(states, [json!({"cart": {"total": 3}, "last": 3}), json!({"cart": {"total": 7}, "last": 4})]);
    assert_eq!(result.trace.conversation().state.as_deref(), states.last());
    assert_eq!(result.requests[0].system, None, "there is no state yet");
    assert_eq!(
        result.requests[2].system.as_deref(),
        Some("State shared with the client:\n{\"cart\":{\"total\":7},\"last\":4}")
    );
    let known: Vec<_> =
        result.trace.tools().calls().iter().map(|call| call.output().unwrap()["known"].clone()).collect();
    assert_eq!(known, [Value::Null, json!({"total": 3})], "mapped state is passed");
    test.sweep(50, completed);
}

#[test]
fn state_computation_error_fails_call_not_turn() {
    let script = [at("p", 1, 1).call_tool("add", json!({"price": 3})), at("p", 1, 2).say("It failed.")];
    let result = Test::new(shopping("result.total - 'three'"), ["Add"], script).run();
    completed(&result);
    assert_eq!(codes(&result), ["EXECUTION_FAILED"]);
    assert!(result.trace.tools().failures()[0].error.message.starts_with("state after add: "));
    assert!(result.trace.conversation().state.is_none());
}

#[test]
fn failed_tool_writes_no_state() {
    let bad = task("Bad").step(mock().fails("no"));
    let agent = persona("P").tool(tool("bad").task(&bad).writes("x", "1"));
    let script = [at("p", 1, 1).call_tool("bad", json!({})), at("p", 1, 2).say("It failed.")];
    let result = Test::new(agent, ["go"], script).run();
    assert!(result.trace.conversation().state.is_none());
}

#[test]
fn target_receives_state_only_on_request() {
    let look = task("Look").step(mock().computes("{seen: input.state}"));
    let agent = persona("P").tool(tool("look").task(&look));
    let script = [at("p", 1, 1).call_tool("look", json!({"n": 1})), at("p", 1, 2).say("Nothing.")];
    let result = Test::new(agent, ["go"], script)
        .with_externals(|options| options.offer(Vec::new(), Vec::new(), Some(json!({"secret": true}))))
        .run();
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"seen": null})));
}
