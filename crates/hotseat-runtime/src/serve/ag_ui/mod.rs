//! AG-UI 1.0: a POST of a run input is answered by the events of one run.
//!
//! The thread is the conversation. What is kept of it decides: a request's messages must begin with what is kept, and
//! what they hold beyond is what the client says.

mod events;
mod history;
mod request;

use std::sync::Arc;

use serde_json::Value;

pub use events::Writer;
pub use request::{RunInput, check_id, member, offered, read, text};

use super::Agent;
use super::refusal::Refusal;
use super::talk::{Brought, Ending, Next, Talk, client_calls, is_the_clients, questions, waits};
use crate::conversation::{OperationAddress, State};
use crate::ids::ConversationId;

/// One run that goes on.
pub struct Run {
    talk: Talk,
    writer: Writer,
}

/// What comes next.
pub enum Told {
    /// More events.
    Events(Vec<Value>),
    /// The last ones.
    Last(Vec<Value>),
}

impl Run {
    /// Begins a run; its first events are what it returns.
    ///
    /// # Errors
    /// When the thread is busy, or is not as the request takes it to be.
    pub async fn begin(agent: &Agent, input: RunInput) -> Result<(Run, Vec<Value>), Refusal> {
        let id = ConversationId::from(input.thread.as_str());
        let handle = agent.conversation(&id).await?;
        let state = handle.state().await.map_err(super::talk::broken)?;
        let news = history::news(&state, &input.messages)?;
        let mut brought = Brought {
            tools: input.tools,
            context: input.context,
            state: input.state.clone(),
            verdicts: verdicts(&state, input.answers)?,
            results: news.results,
            user: news.user.map(|text| ("user".into(), text)),
            given_up: Vec::new(),
        };
        agent.check_offer(&brought.tools)?;
        brought.context.extend(news.earlier);
        check(&state, &mut brought)?;
        let known = match input.raw.len() > 1 || state.turns.is_empty() {
            true => input.raw,
            false => history::messages(&state).into_iter().chain(input.raw).collect(),
        };
        let shared = input.state.clone().unwrap_or_else(|| state.shared.clone());
        let talk = Talk::begin(handle, &state, brought).await?;
        let writer = Writer::new(&input.thread, &input.run, known);
        let mut events = vec![writer.started()];
        // A client that says nothing of the state is told of it.
        if input.state.is_none() && !shared.is_null() {
            events.push(serde_json::json!({"type": "STATE_SNAPSHOT", "snapshot": shared}));
        }
        Ok((Run { talk, writer }, events))
    }

    /// What comes next.
    pub async fn next(&mut self) -> Told {
        loop {
            match self.talk.next().await {
                Ok(Next::Told(told)) => {
                    let events: Vec<Value> = told.iter().flat_map(|told| self.writer.write(told)).collect();
                    if !events.is_empty() {
                        return Told::Events(events);
                    }
                }
                Ok(Next::Over(ending)) => return Told::Last(self.last(&ending)),
                Err(refusal) => {
                    let failure = super::translate::Failed {
                        code: Some("INTERNAL_ERROR".to_string()),
                        message: refusal.message,
                    };
                    return Told::Last(vec![
                        self.writer.failed(&failure, &super::translate::Spent::default()),
                    ]);
                }
            }
        }
    }

    fn last(&mut self, ending: &Ending) -> Vec<Value> {
        match &ending.failure {
            Some(failure) => vec![self.writer.failed(failure, &ending.spent)],
            None => {
                let calls: Vec<Arc<str>> = ending.calls.iter().map(|call| call.call.clone()).collect();
                self.writer.finished(&ending.questions, &calls, &ending.spent)
            }
        }
    }

    /// Nobody listens any more: the run is given up, but for asynchronous tools that go on.
    pub async fn cancel(self) {
        self.talk.leave().await;
    }
}

/// What is kept of a thread, for a client that fetches it.
pub fn thread(state: &State) -> Value {
    serde_json::json!({
        "threadId": state.conversation,
        "messages": history::messages(state),
        "state": state.shared,
        "running": state.active_turns().next().is_some(),
    })
}

/// Whether the thread can take what the request brings.
fn check(state: &State, brought: &mut Brought) -> Result<(), Refusal> {
    let unanswered: Vec<&OperationAddress> =
        questions(state).filter(|at| !brought.verdicts.iter().any(|(known, _)| known == *at)).collect();
    if let Some(at) = unanswered.first() {
        return Err(Refusal::conflict(format!(
            "the thread waits for a person to approve the call {}: answer it with an entry of `resume`",
            at.call
        )));
    }
    let busy = state
        .active_turns()
        .find(|turn| is_the_clients(turn) && !waits(state, &turn.id) && !turn.is_asynchronous());
    if let Some(turn) = busy {
        return Err(Refusal::conflict(format!(
            "turn {} of the thread goes on; run again when it has ended",
            turn.number
        )));
    }
    if brought.user.is_none() && brought.results.is_empty() && brought.verdicts.is_empty() {
        let waiting =
            client_calls(state).map(|(at, tool)| format!("{} of {tool}", at.call)).collect::<Vec<_>>();
        let message = match waiting.is_empty() {
            true => "the request says nothing new: all of its messages have been answered".to_string(),
            false => format!(
                "the request answers none of the calls that wait for the client: {}",
                waiting.join(", ")
            ),
        };
        return Err(Refusal { member: Some("messages".to_string()), ..Refusal::conflict(message) });
    }
    if brought.user.is_some() {
        // A user who says something else does not answer: what waits for an answer is given up.
        let answered = |turn| {
            brought.results.iter().any(|(at, _)| at.turn == turn)
                || brought.verdicts.iter().any(|(at, _)| at.turn == turn)
        };
        let left = client_calls(state).map(|(at, _)| at.turn.clone()).filter(|turn| !answered(turn.clone()));
        let mut given_up: Vec<_> = left.collect();
        given_up.dedup();
        brought.given_up = given_up;
    }
    Ok(())
}

/// Where the answers of a person go.
fn verdicts(
    state: &State,
    answers: Vec<(String, crate::conversation::ApprovalVerdict)>,
) -> Result<Vec<(OperationAddress, crate::conversation::ApprovalVerdict)>, Refusal> {
    let mut verdicts = Vec::new();
    for (index, (id, verdict)) in answers.into_iter().enumerate() {
        let Some(at) = questions(state).find(|at| at.call.as_str() == id) else {
            let open: Vec<_> = questions(state).map(|at| at.call.as_str()).collect();
            let open = if open.is_empty() { "none".to_string() } else { open.join(", ") };
            return Err(Refusal {
                member: Some(format!("resume[{index}].interruptId")),
                ..Refusal::conflict(format!("no interrupt {id:?} is open on this thread; open are: {open}"))
            });
        };
        verdicts.push((at.clone(), verdict));
    }
    Ok(verdicts)
}
