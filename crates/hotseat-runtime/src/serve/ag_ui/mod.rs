//! AG-UI 1.0: a POST with a run input is answered with the events of one run.
//!
//! The thread is the conversation. The stored history is authoritative: the messages of a request must begin
//! with it, and the remaining messages are new input.

mod events;
mod history;
mod request;
mod stored_thread;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

pub use events::AgUiWriter;
pub use request::{AgUiRequest, parse_request};
use request::{MessageBody, ThreadMessage};

use super::client::{
    ClientExchange, ClientInput, ClientUpdate, ExchangeEnd, ExchangeStep, RequestError, ServedAgent,
    TurnFailure, UsageByModel, client_calls, host_error, is_user_turn, open_approvals, open_questions,
};
use crate::conversation::{ConversationState, OperationAddress, TurnState};
use crate::ids::{ConversationId, TurnId};

/// Run in progress.
pub struct AgUiRun {
    talk: ClientExchange,
    writer: AgUiWriter,
    /// Turns that had ended before the run: the client has their messages.
    earlier_turns: BTreeSet<TurnId>,
}

/// Next events of a run.
pub enum AgUiBatch {
    /// More events will follow.
    Events(Vec<Value>),
    /// The last events of the run.
    Last(Vec<Value>),
}

impl AgUiRun {
    /// Starts a run and returns its first events.
    ///
    /// # Errors
    /// If the thread is busy or does not match the request.
    pub async fn start(
        agent: &ServedAgent,
        input: AgUiRequest,
    ) -> Result<(AgUiRun, Vec<Value>), RequestError> {
        let id = ConversationId::from(input.thread.as_str());
        let handle = agent.conversation(&id).await?;
        let state = handle.state().await.map_err(host_error)?;
        check_at_rest(&state)?;
        let news = history::new_input(&state, &input.messages, !input.answers.is_empty())?;
        let mut brought = ClientInput {
            tools: input.tools,
            context: input.context,
            state: input.state.clone(),
            verdicts: verdicts(agent, &state, input.answers)?,
            results: news.results,
            message_id: news.user.as_ref().and_then(|user| user.id.clone()),
            user: news.user.map(|user| ("user".into(), user.text)),
            abandoned_turns: Vec::new(),
        };
        agent.check_offer(&brought.tools)?;
        brought.context.extend(news.earlier);
        check_thread(&state, &input.messages, &mut brought)?;
        let shared = input.state.clone().unwrap_or_else(|| state.shared.clone());
        let talk = ClientExchange::start(handle, &state, brought).await?;
        let ended = state.turns.iter().filter(|turn| !turn.is_active());
        let earlier_turns = ended.map(|turn| turn.id.clone()).collect();
        let earlier = news.is_without_history.then(|| Box::new(state));
        let writer = AgUiWriter::new(&input.thread, &input.run, earlier, input.raw);
        let mut events = vec![writer.started()];
        // A client that sends no state receives it.
        if input.state.is_none() && !shared.is_null() {
            events.push(serde_json::json!({"type": "STATE_SNAPSHOT", "snapshot": shared}));
        }
        Ok((AgUiRun { talk, writer, earlier_turns }, events))
    }

    /// Waits for the next events.
    pub async fn next(&mut self) -> AgUiBatch {
        loop {
            match self.talk.next().await {
                Ok(ExchangeStep::Updates(told)) => {
                    if told.iter().any(ClientUpdate::replaces_messages) {
                        self.add_turns_beside().await;
                    }
                    let events: Vec<Value> = told.iter().flat_map(|told| self.writer.write(told)).collect();
                    if !events.is_empty() {
                        return AgUiBatch::Events(events);
                    }
                }
                Ok(ExchangeStep::Finished(ending)) => return AgUiBatch::Last(self.last_events(&ending)),
                Err(refusal) => {
                    let failure =
                        TurnFailure { code: Some("INTERNAL_ERROR".to_string()), message: refusal.message };
                    return AgUiBatch::Last(vec![self.writer.failed(&failure, &UsageByModel::default())]);
                }
            }
        }
    }

    /// Adds the messages of turns that run beside this one, before a snapshot replaces the messages of the client.
    async fn add_turns_beside(&mut self) {
        // A closed conversation ends the run.
        let Ok(state) = self.talk.state().await else { return };
        let is_beside =
            |turn: &TurnState| !self.talk.follows(&turn.id) && !self.earlier_turns.contains(&turn.id);
        for turn in history::messages_of_turns(&state, is_beside) {
            self.writer.add_turn_beside(turn);
        }
    }

    fn last_events(&mut self, ending: &ExchangeEnd) -> Vec<Value> {
        match &ending.failure {
            Some(failure) => vec![self.writer.failed(failure, &ending.usage)],
            None => {
                let calls: Vec<Arc<str>> = ending.calls.iter().map(|call| call.at.call.0.clone()).collect();
                self.writer.finished(&ending.questions, &calls, &ending.usage)
            }
        }
    }

    /// Handles the disconnect of the client: cancels the run unless only asynchronous tools are running.
    pub async fn cancel(self) {
        self.talk.detach().await;
    }
}

/// Returns the stored thread as JSON for a client that fetches it.
pub fn thread_json(state: &ConversationState) -> Value {
    serde_json::json!({
        "threadId": state.conversation,
        "messages": history::messages(state),
        "state": state.shared,
        "running": state.active_turns().any(|turn| !state.is_waiting_for_client(&turn.id)),
        "interrupts": open_questions(state).map(|question| events::interrupt(&question)).collect::<Vec<_>>(),
        "pendingToolCallIds": client_calls(state).map(|(at, _)| &at.call).collect::<Vec<_>>(),
    })
}

/// Checks that no turn is at work. The history of such a turn is not complete, so this is checked before it is compared.
fn check_at_rest(state: &ConversationState) -> Result<(), RequestError> {
    let busy = state.active_turns().find(|turn| {
        is_user_turn(turn) && !state.is_waiting_for_client(&turn.id) && !turn.has_async_operations()
    });
    match busy {
        None => Ok(()),
        Some(turn) => Err(RequestError::conflict(format!(
            "turn {} of the thread runs without its client, because the server was restarted or the client disconnected: its answer \
             is not sent again; fetch it with GET /threads/THREAD, and send a new message when `running` is false there",
            turn.number
        ))),
    }
}

/// Checks that the thread can accept the input of the request.
fn check_thread(
    state: &ConversationState,
    messages: &[ThreadMessage],
    brought: &mut ClientInput,
) -> Result<(), RequestError> {
    let mut unanswered =
        open_approvals(state).filter(|at| !brought.verdicts.iter().any(|(known, _)| known == *at)).peekable();
    if unanswered.peek().is_some() {
        let calls: Vec<&str> = unanswered.map(|at| at.call.as_str()).collect();
        let mut message = format!(
            "the thread is waiting for approval of call {}: answer all open interrupts with entries in `resume`",
            calls.join(", ")
        );
        if let Some((at, _)) = client_calls(state).next() {
            let more =
                format!("; the result of call {} can be sent in the same request or after it", at.call);
            message.push_str(&more);
        }
        return Err(RequestError::conflict(message).with_member("resume"));
    }
    if brought.user.is_none() && brought.results.is_empty() && brought.verdicts.is_empty() {
        let waiting =
            client_calls(state).map(|(at, tool)| format!("{} of {tool}", at.call)).collect::<Vec<_>>();
        let message = match waiting.is_empty() {
            true => no_new_message(state, messages),
            false => format!(
                "the request answers none of the calls that are waiting for the client: {}",
                waiting.join(", ")
            ),
        };
        return Err(RequestError::conflict(message).with_member("messages"));
    }
    if brought.user.is_some() {
        // A new user message abandons turns that wait for answers.
        let answered = |turn| {
            brought.results.iter().any(|(at, _)| at.turn == turn)
                || brought.verdicts.iter().any(|(at, _)| at.turn == turn)
        };
        let left = client_calls(state).map(|(at, _)| at.turn.clone()).filter(|turn| !answered(turn.clone()));
        let mut given_up: Vec<_> = left.collect();
        given_up.dedup();
        brought.abandoned_turns = given_up;
    }
    Ok(())
}

/// Says why a request has nothing to answer, and what to do.
fn no_new_message(state: &ConversationState, messages: &[ThreadMessage]) -> String {
    let has = |is_wanted: fn(&MessageBody) -> bool| messages.iter().any(|message| is_wanted(&message.body));
    let running = state.active_turns().find(|turn| is_user_turn(turn));
    let (problem, next) = if has(|body| matches!(body, MessageBody::User(_))) {
        let fetch = "fetch the thread with GET /threads/THREAD, or add a message with the role `user`";
        match running {
            Some(turn) => {
                let problem = format!("turn {} still waits for asynchronous tools", turn.number);
                (problem, fetch)
            }
            None => ("the agent has answered all of its messages".to_string(), fetch),
        }
    } else if has(|body| matches!(body, MessageBody::Tool { .. })) {
        let problem = "no call waits for one of its results any more".to_string();
        (problem, "add a message with the role `user`")
    } else {
        let problem = "it has no message of the user and no result of a call".to_string();
        (problem, "add a message with the role `user`")
    };
    format!("the request contains no new message: {problem}; {next}")
}

/// Maps the decisions of a human to the addresses of their approvals.
fn verdicts(
    agent: &ServedAgent,
    state: &ConversationState,
    answers: Vec<(String, crate::conversation::ApprovalVerdict)>,
) -> Result<Vec<(OperationAddress, crate::conversation::ApprovalVerdict)>, RequestError> {
    let mut verdicts: Vec<(OperationAddress, crate::conversation::ApprovalVerdict)> = Vec::new();
    for (index, (id, verdict)) in answers.into_iter().enumerate() {
        if verdicts.iter().any(|(known, _)| known.call.as_str() == id) {
            let member = format!("resume[{index}].interruptId");
            let problem = format!("{member}: interrupt {id:?} is answered twice");
            return Err(RequestError::bad_request(member, problem));
        }
        let Some(at) = open_approvals(state).find(|at| at.call.as_str() == id) else {
            let open: Vec<_> = open_approvals(state).map(|at| at.call.as_str()).collect();
            let open = if open.is_empty() { "none".to_string() } else { open.join(", ") };
            let message = format!("interrupt {id:?} is not open on this thread; open interrupts: {open}");
            return Err(RequestError::conflict(message).with_member(format!("resume[{index}].interruptId")));
        };
        if let crate::conversation::ApprovalVerdict::Approved { input: Some(edited) } = &verdict
            && !edited.is_null()
        {
            let member = format!("resume[{index}].payload.editedArgs");
            agent
                .check_edited_arguments(state, at, edited)
                .map_err(|problem| RequestError::bad_request(&member, format!("{member}: {problem}")))?;
        }
        verdicts.push((at.clone(), verdict));
    }
    Ok(verdicts)
}
