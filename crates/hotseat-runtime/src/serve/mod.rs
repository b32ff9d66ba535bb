//! Agents over HTTP: AG-UI, and chat completions as OpenAI made them; and over the standard streams of a program.
//!
//! A [`Server`] listens, and answers each request with a part of a conversation that a [`live`](crate::live) driver
//! holds. What an agent is, which models speak for it and what is kept is all decided there; here is only what a
//! client sees of it.

mod accept;
mod ag_ui;
mod events;
mod http;
mod line_input;
mod lines;
mod openai;
mod refusal;
mod talk;
mod translate;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_model::Tool;

pub use http::{Options, ServeError, Server};
pub use line_input::{InputLine, read_lines};
pub use lines::{LONGEST_LINE, converse};

use crate::conversation::Turn;
use crate::definition::{Definitions, Target, schema};
use crate::ids::{AgentId, ConversationId};
use crate::live::{Handle, Host};
use refusal::Refusal;

/// An agent that is served.
#[derive(Clone)]
pub struct Agent {
    /// What it is called in addresses, and as a model.
    name: String,
    host: Host,
    id: AgentId,
    definitions: Arc<Definitions>,
    /// The conversations that a request is about.
    busy: Arc<Mutex<BTreeMap<ConversationId, usize>>>,
    /// What chat completions know of its conversations.
    known: Arc<openai::Known>,
}

impl Agent {
    /// The agent `id` of these definitions, whose conversations `host` holds.
    pub fn new(name: impl Into<String>, host: Host, definitions: Arc<Definitions>, id: AgentId) -> Agent {
        Agent { name: name.into(), host, id, definitions, busy: Arc::default(), known: Arc::default() }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A conversation with it, which is opened if it is not there.
    async fn conversation(&self, id: &ConversationId) -> Result<Handle, Refusal> {
        self.host.conversation(id, &self.id).await.map_err(talk::broken)
    }

    /// A conversation with it that is there already.
    async fn known_conversation(&self, id: &ConversationId) -> Result<Handle, Refusal> {
        self.host.known_conversation(id, &self.id).await.map_err(talk::broken)
    }

    /// Takes a conversation for one request.
    fn take(&self, id: &ConversationId) -> Result<Taken, Refusal> {
        self.taken(id, false).ok_or_else(|| {
            let message = format!("a run of the thread {id} goes on; run again when it has ended");
            Refusal::conflict(message)
        })
    }

    /// Takes a conversation for one request, also beside others whose turns wait for nothing but asynchronous tools.
    async fn take_or_join(&self, id: &ConversationId) -> Result<Taken, Refusal> {
        if let Some(taken) = self.taken(id, false) {
            return Ok(taken);
        }
        let state = self.conversation(id).await?.state().await.map_err(talk::broken)?;
        let mut turns = state.active_turns().filter(|turn| talk::is_the_clients(turn)).peekable();
        let beside = turns.peek().is_some() && turns.all(Turn::is_asynchronous);
        match beside.then(|| self.taken(id, true)).flatten() {
            Some(taken) => Ok(taken),
            None => self.take(id),
        }
    }

    fn taken(&self, id: &ConversationId, beside: bool) -> Option<Taken> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = busy.entry(id.clone()).or_default();
        if *requests > 0 && !beside {
            return None;
        }
        *requests += 1;
        Some(Taken { busy: self.busy.clone(), id: id.clone() })
    }

    /// Whether the agent can use these tools of a client.
    fn check_offer(&self, tools: &[Tool]) -> Result<(), Refusal> {
        let own = self.definitions.agent(&self.id).map(|agent| &agent.persona.tools[..]).unwrap_or_default();
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("tools[{index}]");
            // A tool that the agent leaves to its client is the client's own.
            let mut taken = own.iter().filter(|known| known.target != Some(Target::Client));
            let problem = if taken.any(|known| known.name == tool.name) {
                format!("the agent has a tool of its own called {:?}", tool.name)
            } else if tools[..index].iter().any(|earlier| earlier.name == tool.name) {
                format!("the name {:?} is there twice", tool.name)
            } else if let Err(problem) = schema::check_foreign(&tool.input_schema) {
                format!("the parameters of {:?} cannot be used: {problem}", tool.name)
            } else {
                continue;
            };
            return Err(Refusal::bad(at, problem));
        }
        Ok(())
    }
}

/// A conversation that a request has taken, until this is dropped.
struct Taken {
    busy: Arc<Mutex<BTreeMap<ConversationId, usize>>>,
    id: ConversationId,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = busy.get_mut(&self.id) {
            *requests -= 1;
            if *requests == 0 {
                busy.remove(&self.id);
            }
        }
    }
}
