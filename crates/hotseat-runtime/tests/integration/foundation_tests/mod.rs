// The fourteen foundation tests as specified, one module each. `foundation_details.rs` contains further
// tests. Two test programs include this file, one per driver.

use hotseat_runtime::sim::TestStatus;
use hotseat_trace::{InvocationMode, TurnStatus};
use crate::kit::{ConversationRun, completed, subjects};

const ACTIVE_COMPLETED: [TurnStatus; 2] = [TurnStatus::Active, TurnStatus::Completed];

fn only_turn(result: &ConversationRun) -> String {
    let ids = result.trace.turns().ids();
    assert_eq!(ids.len(), 1);
    ids[0].to_string()
}

mod t01_single_turn_no_tools {
    use super::*;

    #[test]
    fn executes_single_turn_with_correct_lifecycle() {
        let result = subjects::greeter().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let starts = trace.turns().starts();
        let turn = only_turn(&result);
        assert_eq!(trace.turns().status_transitions(&turn), ACTIVE_COMPLETED);
        let user = trace.messages().user();
        assert_eq!(user.len(), 1);
        assert_eq!(user[0].content, "Hello!");
        let assistant = trace.messages().assistant();
        assert_eq!(assistant.len(), 1);
        let assembly = trace.context_assembly().starts();
        assert_eq!(assembly.len(), 1);
        assert_eq!(*assembly[0].turn_id, *turn);
        let calls = trace.llm().calls();
        assert_eq!(calls.len(), 1);
        assert_eq!(trace.memory_extraction().starts().len(), 1);
        assert!(trace.tools().invocations().is_empty());
        let moves = trace.moves().for_turn(&turn);
        assert_eq!(moves.len(), 1);
        assert!(moves[0].reasoning.is_some() && moves[0].tool_call.is_none());
        assert!(starts[0].sequence < assembly[0].sequence);
        assert!(assembly[0].sequence < calls[0].sequence);
        assert!(calls[0].sequence < assistant[0].sequence);
    }
}

mod t02_single_turn_sync_tool {
    use super::*;

    #[test]
    fn dispatches_sync_tool_waits_resumes_with_result() {
        let result = subjects::sync_tool().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let turn = only_turn(&result);
        let invocations = trace.tools().invocations();
        assert_eq!(invocations.len(), 1);
        assert_eq!(&*invocations[0].tool_name, "echo");
        assert!(!invocations[0].r#async);
        assert_eq!(trace.turns().waits(&turn).len(), 1);
        assert_eq!(trace.turns().resumes(&turn).len(), 1);
        assert_eq!(trace.tools().completions().len(), 1);
        assert_eq!(trace.executor().task_starts().len(), 1);
        assert_eq!(trace.executor().task_completions().len(), 1);
        assert!(trace.llm().calls().len() >= 2);
        let moves = trace.moves().for_turn(&turn);
        assert!(moves.len() >= 2);
        assert!(moves.iter().any(|m| m.tool_call.as_ref().is_some_and(|call| &*call.tool_id == "echo")));
        assert!(moves.iter().any(|m| m.tool_result.is_some()));
    }
}

mod t03_single_turn_async_tool {
    use super::*;

    #[test]
    fn dispatches_async_tool_responds_immediately_continues_on_completion() {
        let result = subjects::async_tool().run_with_driver(DRIVER);
        let trace = &result.trace;
        let turn = only_turn(&result);
        let invocations = trace.tools().invocations();
        assert_eq!(invocations.len(), 1);
        assert!(invocations[0].r#async);
        assert_eq!(trace.turns().async_operations(turn.as_str()).len(), 1);
        let assistant = trace.messages().assistant();
        let first = assistant[0].content.to_lowercase();
        assert!(["working", "started", "research"].iter().any(|word| first.contains(word)), "{first}");
        assert_eq!(trace.turns().async_completions(turn.as_str()).len(), 1);
        assert!(assistant.len() >= 2);
        assert_eq!(trace.turns().status_transitions(&turn), ACTIVE_COMPLETED);
    }
}

mod t04_multi_turn_sequential {
    use super::*;

    #[test]
    fn sequential_turns_are_separate() {
        let result = subjects::multi_turn().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let ids = trace.turns().ids();
        assert_eq!(ids.len(), 3);
        assert_eq!(result.turn_ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ids);
        assert_eq!(trace.turns().completions().len(), 3);
        for pair in ids.windows(2) {
            let (end, start) =
                (trace.turns().completion(pair[0]).unwrap(), trace.turns().start(pair[1]).unwrap());
            assert!(end.sequence < start.sequence);
        }
        assert_eq!(trace.messages().user().len(), 3);
        for turn in ids {
            assert_eq!(trace.turns().status_transitions(turn), ACTIVE_COMPLETED);
            let said = trace.messages().for_turn(turn);
            assert!(said.len() >= 2);
            assert!(!trace.llm().for_turn(turn).is_empty());
            assert!(!trace.context_assembly().for_turn(turn).is_empty());
            let moves = trace.moves().for_turn(turn);
            assert!(!moves.is_empty() && moves.iter().all(|m| m.reasoning.is_some()));
        }
        assert!(trace.tools().invocations().is_empty());
    }
}

mod t05_parallel_turns {
    use super::*;

    #[test]
    fn handles_multiple_active_turns_with_async_operations() {
        let result = subjects::parallel().run_with_driver(DRIVER);
        let trace = &result.trace;
        let ids = trace.turns().ids();
        assert_eq!(ids.len(), 2);
        let (a, b) = (trace.turns().completion(ids[0]).unwrap(), trace.turns().completion(ids[1]).unwrap());
        assert!(b.sequence < a.sequence);
        assert_eq!(trace.turns().status_transitions(ids[0]), ACTIVE_COMPLETED);
        assert_eq!(trace.turns().status_transitions(ids[1]), ACTIVE_COMPLETED);
    }
}

mod t06_tool_dispatch_workflow {
    use super::*;

    #[test]
    fn dispatches_to_workflow_and_resumes_with_output() {
        let result = subjects::workflow_tool().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let turn = only_turn(&result);
        let invocations = trace.tools().invocations();
        assert_eq!(invocations.len(), 1);
        assert_eq!(&*invocations[0].tool_name, "lookup");
        assert_eq!(invocations[0].target_type.as_deref(), Some("workflow"));
        assert!(!invocations[0].r#async);
        let runs = trace.workflows().runs(hotseat_trace::WorkOrigin::Tool);
        assert_eq!(runs.len(), 1);
        assert_eq!(Some(&runs[0].workflow_id), invocations[0].target_id.as_ref());
        let counts = (trace.turns().waits(&turn).len(), trace.turns().resumes(&turn).len());
        assert_eq!(counts, (1, 1));
        assert!(trace.turns().async_operations(None).is_empty());
        let call = trace.tools().calls()[0];
        assert_eq!(call.output(), Some(&serde_json::json!({"answer": "Paris", "confidence": 0.9})));
        let moves = trace.moves().for_turn(&turn);
        assert_eq!(moves[0].tool_result.as_ref().unwrap().value().unwrap()["answer"], "Paris");
        assert!(trace.llm().calls().len() >= 2);
        assert_eq!(trace.messages().assistant().len(), 1);
    }
}

mod t07_tool_dispatch_agent_delegate {
    use super::*;

    #[test]
    fn dispatches_to_agent_with_clean_context_receives_result() {
        let result = subjects::delegate().run_with_driver(DRIVER);
        let trace = &result.trace;
        let invocations = trace.tools().invocations();
        assert_eq!(invocations.len(), 1);
        assert_eq!(invocations[0].target_type.as_deref(), Some("agent"));
        assert_eq!(invocations[0].invocation_mode, Some(InvocationMode::Delegate));
        let calls = trace.agents().calls();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].mode, InvocationMode::Delegate);
        let context = trace.agents().context_for(&calls[0].call_id).unwrap();
        assert!(context.conversation_history.is_none());
        assert_eq!(trace.tools().completions().len(), 1);
    }
}

mod t08_tool_dispatch_agent_loopin {
    use super::*;

    #[test]
    fn joined_agent_answers_in_conversation() {
        let result = subjects::loop_in().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let invocations = trace.tools().invocations();
        assert_eq!(invocations.len(), 1);
        assert_eq!(invocations[0].target_type.as_deref(), Some("agent"));
        assert_eq!(invocations[0].invocation_mode, Some(InvocationMode::LoopIn));
        assert!(!invocations[0].r#async);
        let call = trace.agents().calls()[0];
        assert_eq!(call.mode, InvocationMode::LoopIn);
        let added = trace.participants().added();
        assert_eq!(added.len(), 1);
        assert_eq!(added[0].participant, hotseat_trace::Participant::Agent { agent_id: "architect".into() });
        let turns = trace.turns().ids();
        assert_eq!(*added[0].added_by_turn_id, *turns[0]);
        let context = trace.agents().context_for(&call.call_id).unwrap();
        let history = context.conversation_history.as_ref().unwrap();
        assert!(history.iter().any(|said| said.content.contains("auth system")));
        assert_eq!(turns.len(), 2);
        assert_eq!(trace.turns().user_initiated().len(), 1);
        assert_eq!(&*trace.turns().starts()[1].caller_type, "agent");
        assert_eq!(&*trace.messages().by_agent("architect")[0].content, "Use OAuth 2.1.");
        assert_eq!(trace.conversations().created().len(), 1);
        assert_eq!(trace.all_conversations().len(), 1);
        assert_eq!((trace.turns().waits(turns[0]).len(), trace.turns().resumes(turns[0]).len()), (1, 1));
        assert_eq!(trace.tools().completions().len(), 1);
    }
}

mod t09_context_assembly_workflow {
    use super::*;

    #[test]
    fn persona_workflow_builds_every_request() {
        let result = subjects::context_assembly().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let (starts, calls) = (trace.context_assembly().starts(), trace.llm().calls());
        assert_eq!(starts.len(), calls.len());
        assert!(starts.iter().all(|start| &*start.workflow_id == "ctx"));
        assert!(trace.context_assembly().completions().iter().all(|end| end.token_count > 0));
        assert_eq!(trace.workflows().runs(hotseat_trace::WorkOrigin::ContextAssembly).len(), 2);
        for turn in trace.turns().ids() {
            let counts = trace.context_assembly().for_turn(turn);
            assert_eq!(counts.len(), 2, "started and completed");
        }
        assert!(
            result.requests.iter().all(|request| request.system.as_deref() == Some("SYSTEM\n\nCTX-MARK"))
        );
    }
}

mod t10_memory_extraction_workflow {
    use super::*;

    #[test]
    fn persona_workflow_stores_turn_results() {
        let result = subjects::memory_extraction().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let starts = trace.memory_extraction().starts();
        assert_eq!(starts.len(), 1);
        assert_eq!(&*starts[0].workflow_id, "mem");
        assert_eq!(trace.memory_extraction().completions().len(), 1);
        assert!(trace.memory_extraction().failures().is_empty());
        let found = result.memory("p", "tea");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].content, "Noted: Alice likes tea");
        assert!(result.memory("other", "tea").is_empty());
    }
}

mod t11_move_accumulation {
    use super::*;

    #[test]
    fn moves_accumulate_in_causal_order() {
        let result = subjects::moves().run_with_driver(DRIVER);
        completed(&result);
        let turn = only_turn(&result);
        let moves = result.trace.moves().for_turn(&turn);
        assert_eq!(moves.iter().map(|m| m.payload.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(moves.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
        let tools: Vec<_> = moves.iter().map(|m| m.tool_call.as_ref().map(|call| &*call.tool_id)).collect();
        assert_eq!(tools, [Some("step_one"), Some("step_two"), None]);
        let results: Vec<_> = moves.iter().map(|m| m.tool_result.as_ref().map(|r| r.is_success())).collect();
        assert_eq!(results, [Some(true), Some(true), None]);
        let reasoning: Vec<_> = moves.iter().map(|m| m.reasoning.as_deref()).collect();
        assert_eq!(reasoning, [Some("First step"), None, Some("Done.")]);
        assert_eq!(result.trace.llm().calls().len(), 3);
    }
}

mod t12_tool_failure_handling {
    use super::*;

    #[test]
    fn surfaces_tool_errors_to_llm_agent_reasons_about_failure() {
        let result = subjects::tool_failure().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let failures = trace.tools().failures();
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].error.code.as_deref(), Some("EXECUTION_FAILED"));
        let moves = trace.moves().for_turn(&only_turn(&result));
        let failed =
            moves.iter().find_map(|m| m.tool_result.as_ref().filter(|result| !result.is_success())).unwrap();
        assert!(failed.error().unwrap().message.contains("Connection refused"));
        assert!(trace.llm().calls().len() >= 2);
        let last = trace.messages().assistant().last().unwrap().content.to_lowercase();
        assert!(["fail", "error", "couldn't", "unable"].iter().any(|word| last.contains(word)));
    }
}

mod t13_context_assembly_failure {
    use super::*;

    #[test]
    fn unbuildable_request_fails_turn() {
        let result = subjects::context_failure().run_with_driver(DRIVER);
        assert_eq!(result.status, TestStatus::Failed);
        let trace = &result.trace;
        let turn = only_turn(&result);
        assert_eq!(trace.turns().status_transitions(&turn), [TurnStatus::Active, TurnStatus::Failed]);
        let failures = trace.context_assembly().failures();
        assert_eq!(failures.iter().map(|f| f.retries_exhausted).collect::<Vec<_>>(), [false, false, true]);
        let error = &trace.turns().failures()[0].payload.error;
        assert_eq!(error.code.as_deref(), Some("CONTEXT_ASSEMBLY_FAILED"));
        assert!(error.message.contains("store down"));
        assert!(trace.llm().calls().is_empty() && trace.moves().all().is_empty());
        assert!(trace.memory_extraction().starts().is_empty() && trace.messages().assistant().is_empty());
        assert_eq!(trace.messages().user().len(), 1);
    }
}

mod t14_memory_extraction_failure {
    use super::*;

    #[test]
    fn failed_extraction_completes_turn_with_flag() {
        let result = subjects::extraction_failure().run_with_driver(DRIVER);
        completed(&result);
        let trace = &result.trace;
        let turn = only_turn(&result);
        assert_eq!(trace.turns().status_transitions(&turn), ACTIVE_COMPLETED);
        let end = trace.turns().completion(&turn).unwrap();
        assert!(end.issues.as_ref().unwrap().memory_extraction_failed);
        assert_eq!(trace.turns().completions().len(), 1);
        let failures = trace.memory_extraction().failures();
        assert_eq!(failures.len(), 3);
        assert!(failures.last().unwrap().sequence < end.sequence);
        assert!(trace.memory_extraction().completions().is_empty());
        let assistant = trace.messages().assistant();
        assert_eq!(assistant.len(), 1);
        assert!(assistant[0].sequence < trace.memory_extraction().starts()[0].sequence);
    }
}
