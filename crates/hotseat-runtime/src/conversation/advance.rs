//! Decisions that follow from the state alone.

use std::sync::Arc;

use serde_json::json;

use super::{
    Decision, DecisionBasis, HookKind, ModelAddress, TimerKey, TimerKind, TurnPhase, TurnState, context,
};
use crate::definition::{ContextPolicy, Persona};

/// Returns the next decisions for one turn, or none if it is waiting.
pub(super) fn advance(basis: DecisionBasis<'_>, turn: &TurnState) -> Vec<Decision> {
    let Some(agent) = basis.definitions.agent(&turn.agent) else { return Vec::new() };
    let persona = &agent.persona;
    let paused = |kind| basis.state.timers.contains_key(&TimerKey { turn: turn.id.clone(), kind });
    match &turn.phase {
        TurnPhase::Ready => vec![prepare_call(basis, turn, persona)],
        TurnPhase::Assembling { attempt, run: None } if !paused(TimerKind::ContextRetry) => {
            vec![assemble(basis, turn, persona, attempt + 1)]
        }
        TurnPhase::Assembled { request } => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls + 1, attempt: 1 };
            let last = context::is_last(turn, persona);
            vec![Decision::CallLlm { at, request: request.clone(), last }]
        }
        TurnPhase::Calling { attempt, request, open: false, last } if !paused(TimerKind::ModelRetry) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls, attempt: attempt + 1 };
            let mut request = request.clone();
            Arc::make_mut(&mut request).position.attempt = at.attempt;
            vec![Decision::CallLlm { at, request, last: *last }]
        }
        TurnPhase::Idle if !turn.notices.is_empty() => vec![prepare_call(basis, turn, persona)],
        TurnPhase::Idle if turn.open_operations().next().is_none() => {
            vec![extract(basis, turn, persona, 1)]
        }
        TurnPhase::Extracting { attempt, run: None } if !paused(TimerKind::ExtractionRetry) => {
            vec![extract(basis, turn, persona, attempt + 1)]
        }
        TurnPhase::Closing => complete_turn(basis, turn),
        TurnPhase::Assembling { .. }
        | TurnPhase::Calling { .. }
        | TurnPhase::Waiting { .. }
        | TurnPhase::Idle
        | TurnPhase::Extracting { .. }
        | TurnPhase::Ended(_) => Vec::new(),
    }
}

/// Prepares the next model call, either by running the workflow that builds requests or by extending the
/// turn's first request.
fn prepare_call(basis: DecisionBasis<'_>, turn: &TurnState, persona: &Persona) -> Decision {
    match (&turn.prefix, persona.context_policy) {
        (Some(prefix), ContextPolicy::PerTurn) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls + 1, attempt: 1 };
            let last = context::is_last(turn, persona);
            let mut request = (**prefix).clone();
            // The transcript starts with the user message, which the first request already contains.
            request.messages.extend(context::transcript(turn).into_iter().skip(1));
            let request = Arc::new(context::final_request(basis.state, turn, persona, request));
            Decision::CallLlm { at, request, last }
        }
        _ => assemble(basis, turn, persona, 1),
    }
}

fn assemble(basis: DecisionBasis<'_>, turn: &TurnState, persona: &Persona, attempt: u32) -> Decision {
    let at = turn.hook_address(HookKind::ContextAssembly, turn.next_run("context"), attempt);
    let workflow = basis.definitions.context_workflow(persona);
    let input = context::assembly_input(basis.state, basis.definitions, turn, persona);
    Decision::DispatchContextAssembly { at, workflow, input }
}

fn extract(basis: DecisionBasis<'_>, turn: &TurnState, persona: &Persona, attempt: u32) -> Decision {
    let at = turn.hook_address(HookKind::MemoryExtraction, turn.next_run("memory"), attempt);
    let workflow = basis.definitions.extraction_workflow(persona);
    Decision::DispatchMemoryExtraction { at, workflow, input: context::extraction_input(turn) }
}

fn complete_turn(basis: DecisionBasis<'_>, turn: &TurnState) -> Vec<Decision> {
    let mut decisions = vec![Decision::CompleteTurn { turn: turn.id.clone(), issues: turn.issues.clone() }];
    if let Some(to) = &turn.reply_to {
        let outcome = Ok(Arc::new(json!({"response": turn.last_text.as_deref().unwrap_or_default()})));
        decisions.push(Decision::ReplyToCaller { turn: turn.id.clone(), to: to.clone(), outcome });
    }
    // A conversation that was opened for a single call ends with it.
    if basis.state.parent.is_some() {
        decisions.push(Decision::CloseConversation);
    }
    decisions
}
