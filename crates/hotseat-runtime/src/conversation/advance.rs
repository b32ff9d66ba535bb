//! What follows from the state alone.

use serde_json::json;

use super::{
    Decision, HookAddress, HookKind, ModelAddress, Phase, State, TimerKey, TimerKind, Turn, context,
};
use crate::definition::{ContextPolicy, Definitions, Persona};

/// The next decisions for one turn; none when it waits for something.
pub(super) fn advance(state: &State, definitions: &Definitions, turn: &Turn) -> Vec<Decision> {
    let Some(agent) = definitions.agent(&turn.agent) else { return Vec::new() };
    let persona = &agent.persona;
    let paused = |kind| state.timers.contains_key(&TimerKey { turn: turn.id.clone(), kind });
    match &turn.phase {
        Phase::Ready => vec![ask(state, definitions, turn, persona)],
        Phase::Assembling { attempt, run: None } if !paused(TimerKind::ContextRetry) => {
            vec![assemble(state, definitions, turn, persona, attempt + 1)]
        }
        Phase::Assembled { request } => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls + 1, attempt: 1 };
            let last = context::is_last(turn, persona);
            let request = context::finished(state, turn, persona, request, &at, last);
            vec![Decision::CallLlm { at, request: Box::new(request), last }]
        }
        Phase::Calling { attempt, request, open: false, last } if !paused(TimerKind::ModelRetry) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls, attempt: attempt + 1 };
            let mut request = request.clone();
            request.position.attempt = at.attempt;
            vec![Decision::CallLlm { at, request, last: *last }]
        }
        Phase::Idle if !turn.notices.is_empty() => vec![ask(state, definitions, turn, persona)],
        Phase::Idle if turn.open_operations().next().is_none() => {
            vec![extract(definitions, turn, persona, 1)]
        }
        Phase::Extracting { attempt, run: None } if !paused(TimerKind::ExtractionRetry) => {
            vec![extract(definitions, turn, persona, attempt + 1)]
        }
        Phase::Closing => close(state, turn),
        Phase::Assembling { .. }
        | Phase::Calling { .. }
        | Phase::Waiting { .. }
        | Phase::Idle
        | Phase::Extracting { .. }
        | Phase::Ended(_) => Vec::new(),
    }
}

/// The way to the next model call: over the workflow that builds requests, or by adding to the first request.
fn ask(state: &State, definitions: &Definitions, turn: &Turn, persona: &Persona) -> Decision {
    match (&turn.prefix, persona.context_policy) {
        (Some(prefix), ContextPolicy::PerTurn) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls + 1, attempt: 1 };
            let last = context::is_last(turn, persona);
            let mut request = (**prefix).clone();
            // The transcript begins with what the user said, which the first request holds.
            request.messages.extend(context::transcript(turn).into_iter().skip(1));
            let request = context::finished(state, turn, persona, &request, &at, last);
            Decision::CallLlm { at, request: Box::new(request), last }
        }
        _ => assemble(state, definitions, turn, persona, 1),
    }
}

fn assemble(
    state: &State,
    definitions: &Definitions,
    turn: &Turn,
    persona: &Persona,
    attempt: u32,
) -> Decision {
    let at = HookAddress {
        turn: turn.id.clone(),
        kind: HookKind::ContextAssembly,
        run: turn.next_run("context"),
        attempt,
    };
    let workflow = definitions.context_workflow(persona);
    Decision::DispatchContextAssembly {
        at,
        workflow,
        input: context::assembly_input(state, definitions, turn, persona),
    }
}

fn extract(definitions: &Definitions, turn: &Turn, persona: &Persona, attempt: u32) -> Decision {
    let at = HookAddress {
        turn: turn.id.clone(),
        kind: HookKind::MemoryExtraction,
        run: turn.next_run("memory"),
        attempt,
    };
    let workflow = definitions.extraction_workflow(persona);
    Decision::DispatchMemoryExtraction { at, workflow, input: context::extraction_input(turn) }
}

fn close(state: &State, turn: &Turn) -> Vec<Decision> {
    let mut decisions = vec![Decision::CompleteTurn { turn: turn.id.clone(), issues: turn.issues.clone() }];
    if let Some(to) = &turn.reply_to {
        let outcome = Ok(json!({"response": turn.last_text.as_deref().unwrap_or_default()}));
        decisions.push(Decision::ReplyToCaller { turn: turn.id.clone(), to: to.clone(), outcome });
    }
    // A conversation that was opened for one call has served its purpose.
    if state.parent.is_some() {
        decisions.push(Decision::CloseConversation);
    }
    decisions
}
