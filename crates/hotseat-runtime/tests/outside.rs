//! What is answered from outside: tools of the client, approvals of a person, and the state that both sides share.

mod kit;

use std::sync::Arc;
use std::time::Duration;

use hotseat_model::{Message, Request, Timed};
use hotseat_runtime::conversation::{ApprovalVerdict, ContextEntry, Input, OperationAddress};
use hotseat_runtime::definition::schema::{integer, object, string};
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool, workflow};
use hotseat_runtime::failure::{ErrorCode, Failure};
use hotseat_runtime::sim::{Outside, Rest, RunStatus, Sim, SimSettings, TestConversation, TestOptions};
use hotseat_trace::{InvariantOptions, Payload, Trace, assert_conversation_invariants};
use kit::{Test, at, completed, subjects};
use serde_json::{Value, json};

/// Longer than anything here takes.
const A_DAY: u64 = 86_400_000;

fn offered(name: &str, schema: Value) -> hotseat_model::Tool {
    hotseat_model::Tool {
        name: name.into(),
        description: format!("The {name} of the client"),
        input_schema: schema,
    }
}

/// The types of the events about calls, in order; those of the hooks and of the model left out.
fn path(trace: &Trace) -> Vec<String> {
    let told = ["tool.", "interrupt.", "turn.", "move.", "state.", "agent.call", "runtime."];
    trace
        .root()
        .records()
        .map(|record| record.payload.type_name().to_string())
        .filter(|name| told.iter().any(|start| name.starts_with(start)))
        .collect()
}

/// What the model is told of its calls: the text, and whether it is an error.
fn told(request: &Request) -> Vec<(String, bool)> {
    request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some((result.text().into_owned(), result.is_error)),
            _ => None,
        })
        .collect()
}

fn codes(result: &TestConversation) -> Vec<String> {
    result.trace.tools().failures().iter().filter_map(|failure| failure.error.code.clone()).collect()
}

/// A client that answers after this time.
fn after(millis: u64, result: Result<Value, Failure>) -> impl Fn(TestOptions) -> TestOptions {
    move |options| {
        let result = result.clone();
        options.client(move |_| Some(Timed { delay: Duration::from_millis(millis), value: result.clone() }))
    }
}

/// A person who says this after a second.
fn says(verdict: ApprovalVerdict) -> impl Fn(TestOptions) -> TestOptions {
    move |options| {
        let verdict = verdict.clone();
        options.person(move |_| Some(Timed { delay: Duration::from_secs(1), value: verdict.clone() }))
    }
}

fn approved() -> ApprovalVerdict {
    ApprovalVerdict::Approved { input: None }
}

fn declined(reason: &str) -> ApprovalVerdict {
    ApprovalVerdict::Declined { reason: reason.into() }
}

fn screen() -> Test {
    let agent = persona("P").tool(tool("screen").input(object([("area", string())])).client());
    let script = [
        at("p", 1, 1).call_tool("screen", json!({"area": "top"})),
        at("p", 1, 2).expect(hotseat_model::script::Rule::new().tool_result("screen")).say("I see a menu."),
    ];
    Test::new(agent, ["What do you see?"], script)
}

#[test]
fn a_client_carries_out_a_tool_in_its_own_time() {
    // Two hours are longer than the usual limit of a tool.
    let test = screen().outside(after(7_200_000, Ok(json!({"seen": "menu"}))));
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
    assert_eq!(told(&result.requests[1]), [(json!({"seen": "menu"}).to_string(), false)]);
    test.sweep(100, completed);
}

#[test]
fn a_client_that_fails_is_told_to_the_model() {
    let failure = Failure::business(ErrorCode::ExecutionFailed, "the window is closed");
    let result = screen().outside(after(10, Err(failure))).run();
    completed(&result);
    assert!(told(&result.requests[1])[0].0.contains("the window is closed"));
}

#[test]
fn a_client_that_never_answers_is_named() {
    let test = screen();
    let result = test.held(test.options());
    assert_eq!(result.status, RunStatus::IdleTimeout);
    assert_eq!(result.waiting, ["turn c1-t1 waits for c1-t1-k1 (screen, which the client is to answer)"]);
}

#[test]
fn a_client_tool_has_the_time_limit_that_it_is_given() {
    let mut test = screen();
    test.persona.tools[0].retry.timeout_ms = Some(500);
    let result = test.outside(after(501, Ok(json!({})))).run();
    assert_eq!(codes(&result), ["TIMEOUT"]);
    let ignored = result.trace.all().iter().filter(|r| r.payload.type_name() == "runtime.input_ignored");
    assert_eq!(ignored.count(), 1, "what the client says too late is of no use");
}

#[test]
fn an_asynchronous_client_tool_is_not_waited_for() {
    let agent = persona("P").tool(tool("render").client().asynchronous());
    let script = [
        at("p", 1, 1).say("It is being drawn.").call_tool("render", json!({})),
        at("p", 1, 2).notice("drawn").say("It is drawn."),
    ];
    let test = Test::new(agent, ["Draw"], script).outside(after(5000, Ok(json!({"state": "drawn"}))));
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.turns().async_completions(None).len(), 1);
    test.sweep(50, completed);
}

#[test]
fn what_a_client_offers_is_a_tool_of_the_root_agent_only() {
    let helper = persona("Helper");
    let agent = persona("P").system("BE P").tool(tool("ask").agent(&helper).loop_in());
    let script = [
        at("p", 1, 1).offered("pick").call_tool("ask", json!({})),
        at("helper", 1, 1).say("I help."),
        at("p", 1, 2).call_tool("pick", json!({"n": 2})),
        at("p", 1, 3).say("Two it is."),
    ];
    let test = Test::new(agent, ["Choose"], script).outside(|options| {
        let context = vec![ContextEntry { description: "page".into(), value: "the shop".into() }];
        options
            .offer(vec![offered("pick", object([("n", integer())]))], context, Some(json!({"cart": []})))
            .client(|call| Some(Timed::now(Ok(json!({"picked": call.input["n"]})))))
    });
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.tools().calls()[1].output(), Some(&json!({"picked": 2})));
    let of = |agent: &str| result.requests.iter().find(|request| request.position.agent == agent).unwrap();
    assert!(of("helper").tools.is_empty());
    assert_eq!(
        of("p").system.as_deref(),
        Some(
            "BE P\n\nContext given by the client:\n- page: the shop\n\n\
             State shared with the client:\n{\"cart\":[]}"
        )
    );
    let situation = of("helper").system.clone().unwrap();
    assert!(situation.starts_with("Context given by the client:\n- page: the shop"), "{situation}");
    test.sweep(50, completed);
}

#[test]
fn an_offer_that_cannot_be_used_is_left_out_and_noted() {
    let own = task("Own").step(mock().returns(json!({"who": "own"})));
    let agent = persona("P").tool(tool("pick").task(&own));
    let script = [at("p", 1, 1).call_tool("pick", json!({})), at("p", 1, 2).say("Own.")];
    let result = Test::new(agent, ["go"], script)
        .outside(|options| {
            let broken = offered("broken", json!({"typ": 1}));
            let (one, other) = (offered("twice", json!({})), offered("twice", json!({})));
            let own = offered("pick", json!({}));
            options.offer(vec![own, one, other, broken, offered("", json!({}))], Vec::new(), None)
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
            "the tool \"pick\" that the client offers: the agent has a tool of this name, which is used",
            "the tool \"twice\" that the client offers: the name is there twice; the first is used",
            "the tool \"broken\" that the client offers: its input schema cannot be used: the keyword `typ` is not understood",
            "the tool \"\" that the client offers: it has no name",
        ]
    );
}

/// A world that a test drives step by step.
fn world(test: &Test, outside: Outside) -> (Sim, hotseat_runtime::ids::ConversationId) {
    let (definitions, agent) = Definitions::of(&test.persona).unwrap();
    let settings = SimSettings { crash: true, ..SimSettings::default() };
    let mut sim = Sim::new(Arc::new(definitions), Box::new(test.model()), settings).with(outside);
    let id = sim.open("c1", &agent);
    (sim, id)
}

fn said(content: &str) -> Input {
    Input::UserMessage { user: "ann".into(), content: content.into(), reply_to: None }
}

fn first_call() -> OperationAddress {
    OperationAddress { turn: "c1-t1".into(), call: "c1-t1-k1".into(), attempt: 1 }
}

#[test]
fn an_offer_holds_until_the_next_one() {
    let script = [
        at("p", 1, 1).call_tool("one", json!({})),
        at("p", 1, 2).say("ok"),
        at("p", 2, 1).call_tool("one", json!({})),
        at("p", 2, 2).say("gone"),
    ];
    let test = Test::new(persona("P"), ["x"], script);
    let (mut sim, id) = world(&test, Outside::default());
    let offer = |name: &str, state: Option<Value>| Input::ClientOffer {
        tools: vec![offered(name, json!({"type": "object"}))],
        context: Vec::new(),
        state,
    };
    sim.send(&id, 0, offer("one", Some(json!({"n": 1}))));
    sim.send(&id, 0, said("go"));
    assert!(matches!(sim.run(A_DAY), Rest::Stalled(_)));
    // The client may answer the call of a tool that it offers no more.
    sim.send(&id, 0, offer("two", None));
    sim.send(&id, 0, Input::OperationDone { at: first_call(), result: Ok(json!({})) });
    sim.run(A_DAY);
    sim.send(&id, 0, said("again"));
    assert_eq!(sim.run(A_DAY), Rest::Quiet);
    let trace = sim.trace();
    assert_eq!(trace.tools().failures().len(), 1);
    assert_eq!(trace.tools().failures()[0].error.message, "there is no tool one");
    assert_eq!(sim.requests()[2].tools[0].name, "two");
    assert!(sim.requests()[2].system.as_deref().is_some_and(|text| text.contains("{\"n\":1}")));
    assert_conversation_invariants(&trace, InvariantOptions::default());
}

fn charge() -> Test {
    subjects::approval(approved()).outside(|options| options)
}

#[test]
fn a_call_is_made_when_a_person_agrees() {
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
fn a_person_may_change_what_a_tool_is_called_with() {
    let test = subjects::approval(ApprovalVerdict::Approved { input: Some(json!({"amount": 3})) });
    let result = test.run();
    completed(&result);
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"charged": 3})));
    assert_eq!(result.trace.conversation().turns[0].tool_calls[0].arguments, json!({"amount": 3}));
    assert_eq!(result.trace.moves().all()[0].tool_call.as_ref().unwrap().input, json!({"amount": 3}));
    let notices: Vec<_> =
        result.requests[1].messages.iter().map(|message| message.text().into_owned()).collect();
    assert!(
        notices.iter().any(|text| text.contains("approved with another input: {\"amount\":3}")),
        "{notices:?}"
    );
    test.sweep(20, completed);
}

#[test]
fn what_a_person_gives_instead_must_fit() {
    let test = subjects::approval(ApprovalVerdict::Approved { input: Some(json!({"amount": "much"})) });
    let result = test.run();
    completed(&result);
    assert_eq!(codes(&result), ["INVALID_INPUT"]);
    assert!(result.trace.executor().task_starts().is_empty());
    assert!(told(&result.requests[1])[0].1);
}

#[test]
fn a_call_that_a_person_declines_is_a_failure_that_the_model_is_told() {
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
    let answer = told(&result.requests[1]);
    assert!(answer[0].1 && answer[0].0.contains("a person declined the call: too expensive"), "{answer:?}");
    assert!(result.trace.executor().task_starts().is_empty());
    test.sweep(100, completed);
}

#[test]
fn a_person_who_never_answers_is_named() {
    let test = charge();
    let result = test.held(test.options());
    assert_eq!(result.status, RunStatus::IdleTimeout);
    assert_eq!(result.waiting, ["turn c1-t1 waits for c1-t1-k1 (charge, which a person is to approve)"]);
}

#[test]
fn every_kind_of_tool_can_need_approval() {
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
            let test = Test::new(agent, ["go"], script).outside(move |options| {
                let options = says(verdict.clone())(options);
                options.client(|_| {
                    Some(Timed { delay: Duration::from_millis(40), value: Ok(json!({"by": "client"})) })
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
fn several_calls_of_one_reply_wait_for_each_other() {
    let slow = task("Slow").step(mock().delay_ms(3000).returns(json!({"slow": true})));
    let agent = {
        let mut agent = charge().persona;
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
    let test = Test::new(agent, ["go"], script).outside(|options| {
        // The second question is answered before the first, and declined.
        options.person(|question| {
            let first = question.input["amount"] == 1;
            let verdict = if first { approved() } else { declined("") };
            Some(Timed { delay: Duration::from_millis(if first { 4000 } else { 1000 }), value: verdict })
        })
    });
    let result = test.run();
    completed(&result);
    let answers = told(&result.requests[1]);
    assert_eq!(answers.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, false, true]);
    assert!(answers[2].0.contains("a person declined the call"));
    assert_eq!(result.requests.len(), 2, "the model is asked when the last of them is settled");
    test.sweep(100, completed);
}

#[test]
fn a_cancelled_turn_takes_its_questions_back() {
    let mut test = charge();
    test.persona.tools.push(tool("screen").client());
    test.script =
        vec![at("p", 1, 1).call_tool("charge", json!({"amount": 5})).call_tool("screen", json!({}))];
    let (mut sim, id) = world(&test, Outside::default());
    sim.send(&id, 0, said("go"));
    assert!(matches!(sim.run(A_DAY), Rest::Stalled(_)));
    assert_eq!(sim.conversation(&id).unwrap().outstanding().count(), 2);
    sim.send(&id, 0, Input::CancelTurn { turn: "c1-t1".into(), reason: "enough".into() });
    assert_eq!(sim.run(A_DAY), Rest::Quiet);
    assert_eq!(sim.conversation(&id).unwrap().outstanding().count(), 0);
    let interrupts = sim.trace().conversation().turns[0].interrupts.clone();
    assert_eq!(interrupts[0].answer, Some(("cancelled".into(), None)));
    let before = sim.conversation(&id).unwrap().state().clone();
    sim.send(&id, 0, Input::Approval { at: first_call(), verdict: approved() });
    sim.send(&id, 0, Input::OperationDone { at: first_call(), result: Ok(json!({})) });
    sim.run(A_DAY);
    assert_eq!(*sim.conversation(&id).unwrap().state(), before);
    assert_eq!(path(&sim.trace()).iter().filter(|name| *name == "runtime.input_ignored").count(), 2);
    let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
    assert_conversation_invariants(&sim.trace(), options);
}

#[test]
fn a_result_cannot_come_before_the_approval_and_an_answer_counts_once() {
    let test = charge();
    let (mut sim, id) = world(&test, Outside::default());
    sim.send(&id, 0, said("go"));
    sim.run(A_DAY);
    sim.send(&id, 0, Input::OperationDone { at: first_call(), result: Ok(json!({"charged": 1_000_000})) });
    sim.send(&id, 0, Input::Approval { at: first_call(), verdict: approved() });
    sim.send(&id, 0, Input::Approval { at: first_call(), verdict: declined("changed my mind") });
    assert_eq!(sim.run(A_DAY), Rest::Quiet);
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
fn a_tool_reads_and_writes_the_shared_state() {
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
    assert_eq!(known, [Value::Null, json!({"total": 3})], "what is mapped is given");
    test.sweep(50, completed);
}

#[test]
fn a_state_that_cannot_be_computed_fails_the_call_and_not_the_turn() {
    let script = [at("p", 1, 1).call_tool("add", json!({"price": 3})), at("p", 1, 2).say("It failed.")];
    let result = Test::new(shopping("result.total - 'three'"), ["Add"], script).run();
    completed(&result);
    assert_eq!(codes(&result), ["EXECUTION_FAILED"]);
    assert!(result.trace.tools().failures()[0].error.message.starts_with("the state after add: "));
    assert!(result.trace.conversation().state.is_none());
}

#[test]
fn a_tool_that_fails_writes_nothing() {
    let bad = task("Bad").step(mock().fails("no"));
    let agent = persona("P").tool(tool("bad").task(&bad).writes("x", "1"));
    let script = [at("p", 1, 1).call_tool("bad", json!({})), at("p", 1, 2).say("It failed.")];
    let result = Test::new(agent, ["go"], script).run();
    assert!(result.trace.conversation().state.is_none());
}

#[test]
fn a_target_is_not_given_the_state_unasked() {
    let look = task("Look").step(mock().computes("{seen: input.state}"));
    let agent = persona("P").tool(tool("look").task(&look));
    let script = [at("p", 1, 1).call_tool("look", json!({"n": 1})), at("p", 1, 2).say("Nothing.")];
    let result = Test::new(agent, ["go"], script)
        .outside(|options| options.offer(Vec::new(), Vec::new(), Some(json!({"secret": true}))))
        .run();
    assert_eq!(result.trace.tools().calls()[0].output(), Some(&json!({"seen": null})));
}
