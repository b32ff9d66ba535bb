//! Every foundation conversation with a thousand schedules and a crash after every step, and random
//! conversations.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::kit::subjects;
use hotseat_model::{
    FunctionModel, ModelReply, ModelRequest, ModelTool, ModelToolCall, StopReason, TimedValue,
};
use hotseat_runtime::conversation::{ApprovalVerdict, ContextEntry};
use hotseat_runtime::definition::{Persona, WorkflowNode, mock, persona, task, tool, workflow};
use hotseat_runtime::failure::{ErrorCode, InfrastructureKind, WorkFailure};
use hotseat_runtime::random::DeterministicRandom;
use hotseat_runtime::sim::{TestOptions, TestStatus, run_test_conversation};
use hotseat_trace::{InvariantOptions, Trace, check_invariants};
use proptest::prelude::*;
use serde_json::json;

/// One test per foundation conversation, so that they run in parallel.
macro_rules! sweeps {
    ($($name:ident),+ $(,)?) => {
        mod a_thousand_seeds_and_crashes {
            use super::subjects;
            $(#[test]
            fn $name() {
                subjects::$name().sweep(1000, |result| assert!(!result.trace.all().is_empty()));
            })+
        }
    };
}

sweeps! {
    greeter, sync_tool, async_tool, multi_turn, parallel, workflow_tool, delegate, loop_in, context_assembly,
    memory_extraction, moves, tool_failure, context_failure, extraction_failure,
}

#[test]
fn same_seed_gives_identical_trace_that_round_trips() {
    for (name, test) in subjects::all() {
        for seed in [0, 7] {
            let held = || test.run_with(test.options().seed(seed)).trace.to_jsonl().unwrap();
            let text = held();
            assert_eq!(text, held(), "{name}");
            let again = Trace::from_jsonl(&text).unwrap();
            assert_eq!(again.to_jsonl().unwrap(), text, "{name}");
        }
    }
}

#[test]
fn events_of_one_step_are_adjacent() {
    for (name, test) in subjects::all() {
        let result = test.run_with(test.options().seed(11));
        let batches = result.sim.batches();
        let whole = batches.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0);
        assert!(
            whole && batches.last().is_some_and(|last| last.1 == result.trace.all().len() as u64),
            "{name}"
        );
    }
}

#[test]
fn fifty_simultaneous_messages_are_fifty_turns() {
    let model = FunctionModel::new("echo", |request: &ModelRequest| TimedValue {
        delay: Duration::from_millis(5),
        value: Ok(ModelReply::text(request.last_user_text().unwrap_or_default())),
    });
    let messages: Vec<String> = (0..50).map(|n| format!("message {n}")).collect();
    let options = TestOptions::new(model).seed(3);
    let result =
        run_test_conversation(&persona("Echo"), messages.iter().map(String::as_str), options).unwrap();
    assert_eq!(result.status, TestStatus::Completed);
    assert_eq!(result.trace.turns().completions().len(), 50);
    let said: BTreeSet<_> = result.trace.messages().user().iter().map(|said| said.content.clone()).collect();
    assert_eq!(said, messages.into_iter().collect());
}

/// A random agent with every kind of tool.
fn random_persona(seed: u64) -> Persona {
    let mut random = DeterministicRandom::new(seed);
    let mut agent = persona("Any").system("ANY");
    let helper = {
        let task = task("Help").step(mock().delay_between_ms(0, 40).returns(json!({"help": true})));
        persona("Helper").tool(tool("help").task(&task))
    };
    for index in 0..1 + random.below(5) {
        let name = format!("tool_{index}");
        let mut work = mock().delay_between_ms(0, 300).returns(json!({"n": index}));
        match random.below(5) {
            0 => work = work.fails("no"),
            1 => work = work.fails_infrastructure("down").first_attempts(1),
            _ => {}
        }
        let task = task(&format!("Task {index}")).step(work);
        let mut made = match random.below(5) {
            0 => tool(&name).task(&task),
            1 => {
                let flow = workflow(&format!("Flow {index}")).node(task);
                let asks = random.below(2) == 0;
                tool(&name).workflow(&if asks {
                    flow.node(WorkflowNode::agent("ask", &helper))
                } else {
                    flow
                })
            }
            2 => tool(&name).agent(&helper),
            3 => tool(&name).client(),
            _ => tool(&name).agent(&helper).loop_in(),
        };
        let loops = made.mode == hotseat_trace::InvocationMode::LoopIn;
        if !loops && random.below(2) == 0 {
            made = made.asynchronous();
        }
        if random.below(4) == 0 {
            made = made.timeout_ms(100);
        }
        if random.below(3) == 0 {
            made = made.approval("May {index} be?");
        }
        if random.below(3) == 0 {
            made = made.writes("n", "state.n + 1").writes(&name, "result");
        }
        agent = agent.tool(made.attempts(1 + u32::try_from(random.below(2)).unwrap(), 50));
    }
    if random.below(4) == 0 {
        agent = agent.max_moves(1 + u32::try_from(random.below(4)).unwrap());
    }
    if random.below(5) == 0 {
        agent = agent.memory_extraction(&subjects::failing_workflow());
    }
    agent
}

/// A model with random behaviour per position.
fn random_model(
    seed: u64,
) -> FunctionModel<
    impl FnMut(&ModelRequest) -> TimedValue<Result<ModelReply, hotseat_model::ModelError>> + Send,
> {
    FunctionModel::new("any", move |request: &ModelRequest| {
        let mut random = DeterministicRandom::from_seed_and_text(seed, &request.position.to_string());
        let delay = Duration::from_millis(random.between(0, 60));
        if random.below(12) == 0 {
            let error = hotseat_model::ModelError::new(hotseat_model::ModelErrorKind::Server, "busy");
            return TimedValue { delay, value: Err(error) };
        }
        let text = if random.below(3) > 0 { format!("said at {}", request.position) } else { String::new() };
        let more = request.position.call < 5 && !request.tools.is_empty();
        let calls = if more { random.below(3) } else { 0 };
        let tool_calls: Vec<ModelToolCall> = (0..calls)
            .map(|index| {
                let known = random.below(8) > 0;
                let name = &request.tools[random.below(request.tools.len())].name;
                let name = if known { name.clone() } else { "unknown".to_string() };
                let arguments =
                    if random.below(10) > 0 { json!({"index": index}) } else { json!("no object") };
                ModelToolCall { id: format!("call-{index}"), name, arguments, ..ModelToolCall::default() }
            })
            .collect();
        let stop = if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        TimedValue { delay, value: Ok(ModelReply { text, tool_calls, stop, ..ModelReply::default() }) }
    })
}

/// A client that offers a tool, and people with random answers per question.
fn random_outside(options: TestOptions, seed: u64) -> TestOptions {
    let schema = json!({"type": "object"});
    let offered = ModelTool { name: "offered".into(), description: String::new(), input_schema: schema };
    let context = vec![ContextEntry { description: "seed".into(), value: seed.to_string() }];
    options
        .offer(vec![offered], context, Some(json!({"n": 0})))
        .client(move |call| {
            let mut random = DeterministicRandom::from_seed_and_text(seed, &format!("client {:?}", call.at));
            let value = match random.below(4) {
                0 => Err(WorkFailure::business(ErrorCode::ExecutionFailed, "the client cannot")),
                1 => Err(WorkFailure::infrastructure(InfrastructureKind::Network, "the client is away")),
                _ => Ok(json!({"by": "client"})),
            };
            Some(TimedValue { delay: Duration::from_millis(random.between(0, 200)), value })
        })
        .human(move |question| {
            let mut random =
                DeterministicRandom::from_seed_and_text(seed, &format!("person {:?}", question.at));
            let value = match random.below(4) {
                0 => ApprovalVerdict::Declined { reason: "no".into() },
                1 => ApprovalVerdict::Approved { input: Some(json!({"index": 7})) },
                2 if random.below(3) == 0 => ApprovalVerdict::Approved { input: Some(json!("unfit")) },
                _ => ApprovalVerdict::Approved { input: None },
            };
            Some(TimedValue { delay: Duration::from_millis(random.between(0, 500)), value })
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_tools_and_scripts_keep_every_invariant(shape in any::<u64>(), script in any::<u64>(), seed in any::<u64>()) {
        let agent = random_persona(shape);
        let held = |crash: bool| {
            let options = random_outside(TestOptions::new(random_model(script)).seed(seed), script);
            let options = if crash { options.restart_every_step() } else { options };
            run_test_conversation(&agent, ["one", "two", "three"], options).unwrap()
        };
        let result = held(false);
        prop_assert!(matches!(result.status, TestStatus::Completed | TestStatus::Failed), "{:?}", result.waiting);
        let options = InvariantOptions { allow_failed_turns: true, deny_tool_failures: false };
        let found: Vec<String> = check_invariants(&result.trace, options).iter().map(|violation| {
            format!("{violation}\n{}", hotseat_trace::excerpt_around(&result.trace, violation.sequences.last().copied().unwrap_or(1)))
        }).collect();
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
        for request in &result.requests {
            // Every call of an assistant message has exactly one result in the following messages.
            for (index, message) in request.messages.iter().enumerate() {
                let hotseat_model::ModelMessage::Assistant { tool_calls, .. } = message else { continue };
                let answers: Vec<&str> = request.messages[index + 1..].iter().map_while(|next| match next {
                    hotseat_model::ModelMessage::Tool(result) => Some(result.call_id.as_str()),
                    _ => None,
                }).collect();
                let asked: Vec<&str> = tool_calls.iter().map(|call| call.id.as_str()).collect();
                prop_assert_eq!(answers, asked);
            }
        }
        if seed % 8 == 0 {
            prop_assert_eq!(result.trace.to_jsonl().unwrap(), held(true).trace.to_jsonl().unwrap());
        }
    }
}
