//! Chat completions: each request holds everything that was said, and is answered with one message.
//!
//! The conversation that is gone on with is the one in which the messages up to the last answer were said. Where there
//! is none, after a restart or in a history from elsewhere, a new one is opened, whose model is told what was said.

mod known;
mod request;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

pub use known::Known;
pub use request::{Asked, read};

use super::refusal::{Reason, Refusal};
use super::talk::{Brought, ClientCall, Ending, Next, Talk, client_calls};
use super::translate::{Speaker, arguments_of};
use super::{Agent, Taken, translate};
use crate::conversation::{ContextEntry, OperationAddress, State};
use crate::ids::ConversationId;
use request::Said;

/// Why an agent that asks a person is told no.
const NOBODY_TO_ASK: &str = "this client cannot ask a person";

/// One answer that is on its way.
pub struct Chat {
    agent: Agent,
    talk: Talk,
    conversation: ConversationId,
    /// What the request says was said.
    messages: Vec<Said>,
    /// Whether it goes on with a conversation that was known, and with how many messages it was.
    before: Option<usize>,
    /// The answer so far.
    text: String,
    /// Where in it the message that is being told begins.
    message: usize,
    head: Head,
    begun: bool,
    /// The agent's own calls that were told, in this order; none are told to a client that did not ask for them.
    shown: Option<Vec<Arc<str>>>,
}

/// What all pieces of an answer share.
struct Head {
    id: String,
    created: u64,
    model: String,
    stream: bool,
    include_usage: bool,
}

/// What comes next of an answer in pieces.
pub enum Told {
    /// More pieces.
    Chunks(Vec<Value>),
    /// The last ones.
    Last(Vec<Value>),
}

impl Chat {
    /// Begins to answer.
    ///
    /// # Errors
    /// When the request leaves calls unanswered, or the conversation does not take it.
    pub async fn begin(agent: &Agent, asked: Asked) -> Result<(Chat, Taken), Refusal> {
        let Asked { model, messages, context, tools, user, stream, include_usage, show_tools } = asked;
        agent.check_offer(&tools)?;
        let answered = messages.iter().rposition(|said| matches!(said, Said::Assistant { .. }));
        let before = answered.map_or(0, |last| last + 1);
        let (history, new) = messages.split_at(before);
        let mut brought = Brought { tools, context, ..Brought::default() };
        let going_on = match agent.known.take(history).filter(|_| before > 0) {
            Some(id) => {
                let found = go_on(agent, &id, new, &mut brought).await;
                if !matches!(found, Ok(Some(_))) {
                    agent.known.put(history, id.clone());
                }
                found?.map(|(handle, state)| (id, handle, state))
            }
            None => None,
        };
        let known = going_on.is_some();
        let (id, handle, state) = match going_on {
            Some(going_on) => going_on,
            None => {
                let id = ConversationId::from(format!("chat-{}", uuid::Uuid::new_v4()));
                let handle = agent.conversation(&id).await?;
                let state = handle.state().await.map_err(super::talk::broken)?;
                begin_anew(&messages, before, &mut brought)?;
                (id, handle, state)
            }
        };
        if let Some((name, _)) = &mut brought.user {
            *name = user.as_str().into();
        }
        let taken = agent.take(&id)?;
        let talk = Talk::begin(handle, &state, brought).await?;
        let head = Head {
            id: format!("chatcmpl-{}", uuid::Uuid::new_v4()),
            created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            model,
            stream,
            include_usage,
        };
        let chat = Chat {
            agent: agent.clone(),
            talk,
            conversation: id,
            messages,
            before: known.then_some(before),
            text: String::new(),
            message: 0,
            head,
            begun: false,
            shown: show_tools.then(Vec::new),
        };
        Ok((chat, taken))
    }

    /// The next pieces of the answer.
    pub async fn next(&mut self) -> Told {
        let mut chunks = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            chunks.push(self.chunk(json!({"role": "assistant", "content": ""}), None));
            return Told::Chunks(chunks);
        }
        loop {
            match self.step().await {
                Ok(Step::Said(pieces)) if pieces.is_empty() => {}
                Ok(Step::Said(pieces)) => {
                    chunks.extend(pieces.into_iter().map(|piece| self.chunk(piece.delta(), None)));
                    return Told::Chunks(chunks);
                }
                Ok(Step::Over(ending)) => return Told::Last(self.last_chunks(&ending)),
                Err(refusal) => return Told::Last(vec![refusal.body()]),
            }
        }
    }

    /// The whole answer.
    ///
    /// # Errors
    /// When the agent fails.
    pub async fn whole(&mut self) -> Result<Value, Refusal> {
        let ending = loop {
            if let Step::Over(ending) = self.step().await? {
                break ending;
            }
        };
        let content = match (self.text.is_empty(), ending.calls.is_empty()) {
            (true, false) => Value::Null,
            _ => json!(self.text),
        };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !ending.calls.is_empty() {
            message["tool_calls"] = ending.calls.iter().map(called).collect();
        }
        Ok(json!({
            "id": self.head.id,
            "object": "chat.completion",
            "created": self.head.created,
            "model": self.head.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": finish_reason(&ending),
            }],
            "usage": usage(&ending),
        }))
    }

    /// Gives the answer up, for nobody listens any more. The conversation can be gone on with from where it was.
    pub async fn cancel(self) {
        let Chat { agent, talk, conversation, messages, before, .. } = self;
        talk.cancel().await;
        if let Some(before) = before {
            agent.known.put(&messages[..before], conversation);
        }
    }

    /// What comes next, and what can be said of it.
    async fn step(&mut self) -> Result<Step, Refusal> {
        let told = match self.talk.next().await? {
            Next::Told(told) => told,
            Next::Over(ending) if !ending.asked.is_empty() => {
                for at in ending.asked {
                    self.talk.decline(at, NOBODY_TO_ASK).await?;
                }
                return Ok(Step::Said(Vec::new()));
            }
            Next::Over(ending) => {
                if let Some(failure) = &ending.failure {
                    self.go_back();
                    let refusal = Refusal::of(Reason::Failed, failure.message.clone());
                    return Err(Refusal { code: failure.code.clone(), ..refusal });
                }
                let calls = ending.calls.iter().map(|call| call.call.to_string()).collect();
                self.messages.push(Said::Assistant { text: self.text.clone(), calls });
                self.agent.known.put(&self.messages, self.conversation.clone());
                return Ok(Step::Over(ending));
            }
        };
        let mut pieces = Vec::new();
        for told in told {
            match told {
                translate::Told::TextStarted { speaker: Speaker::Agent, .. } => {
                    if !self.text.is_empty() {
                        self.text.push_str("\n\n");
                        pieces.push(Piece::Text("\n\n".to_string()));
                    }
                    self.message = self.text.len();
                }
                translate::Told::Text { speaker: Speaker::Agent, text, .. } => {
                    self.text.push_str(&text);
                    pieces.push(Piece::Text(text));
                }
                translate::Told::Called {
                    call,
                    tool,
                    arguments,
                    speaker: Speaker::Agent,
                    by_client: false,
                    ..
                } => {
                    if let Some(shown) = &mut self.shown {
                        pieces.push(Piece::Called {
                            index: shown.len(),
                            call: call.clone(),
                            tool,
                            arguments,
                        });
                        shown.push(call);
                    }
                }
                translate::Told::Answered { call, content, speaker: Speaker::Agent, .. }
                    if self.shown.as_ref().is_some_and(|shown| shown.contains(&call)) =>
                {
                    pieces.push(Piece::Answered { call, content });
                }
                translate::Told::Withdrawn { .. } => {
                    if let Err(refusal) = self.withdraw(&mut pieces) {
                        self.talk.give_up("a part of the answer could not be taken back").await;
                        self.go_back();
                        return Err(refusal);
                    }
                }
                _ => {}
            }
        }
        Ok(Step::Said(pieces))
    }

    /// The answer came to nothing: the conversation can be gone on with from where it was.
    fn go_back(&self) {
        if let Some(before) = self.before {
            self.agent.known.put(&self.messages[..before], self.conversation.clone());
        }
    }

    /// What was told of the last message was never said. In pieces, it can no longer be taken back.
    fn withdraw(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Refusal> {
        let withdrawn = self.text.len() - self.message;
        let unsent: usize = pieces.iter().rev().map_while(Piece::text).map(str::len).sum();
        if self.head.stream && withdrawn > unsent {
            let message =
                "the model's reply broke off after a part of it was sent, and its next one is another";
            return Err(Refusal::of(Reason::Failed, message));
        }
        let mut said = self.text.split_off(self.message).len();
        while said > 0
            && let Some(text) = pieces.last().and_then(Piece::text)
        {
            said = said.saturating_sub(text.len());
            pieces.pop();
        }
        Ok(())
    }

    fn last_chunks(&self, ending: &Ending) -> Vec<Value> {
        let mut chunks = Vec::new();
        for (index, call) in ending.calls.iter().enumerate() {
            let mut call = called(call);
            call["index"] = json!(self.shown.as_ref().map_or(0, Vec::len) + index);
            chunks.push(self.chunk(json!({"tool_calls": [call]}), None));
        }
        chunks.push(self.chunk(json!({}), Some(finish_reason(ending))));
        if self.head.include_usage {
            let mut chunk = self.chunk(json!({}), None);
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(ending);
            chunks.push(chunk);
        }
        chunks
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        let mut chunk = json!({
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
        });
        if self.head.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// A piece of an answer.
enum Piece {
    /// Words.
    Text(String),
    /// A tool of the agent's own is called, after `index` others.
    Called { index: usize, call: Arc<str>, tool: Arc<str>, arguments: String },
    /// It has answered.
    Answered { call: Arc<str>, content: String },
}

impl Piece {
    /// Its words, if it has some.
    fn text(&self) -> Option<&str> {
        match self {
            Piece::Text(text) => Some(text),
            Piece::Called { .. } | Piece::Answered { .. } => None,
        }
    }

    /// What it adds to the answer.
    fn delta(self) -> Value {
        match self {
            Piece::Text(text) => json!({"content": text}),
            Piece::Called { index, call, tool, arguments } => json!({"tool_calls": [{
                "index": index,
                "id": call,
                "type": "function",
                "function": {"name": tool, "arguments": arguments},
            }]}),
            Piece::Answered { call, content } => {
                json!({"role": "tool", "tool_call_id": call, "content": content})
            }
        }
    }
}

/// What has become of an answer.
enum Step {
    /// More was said.
    Said(Vec<Piece>),
    /// It is whole.
    Over(Ending),
}

/// Goes on with a known conversation; none if it is no longer where the request takes it to be.
async fn go_on(
    agent: &Agent,
    id: &ConversationId,
    new: &[Said],
    brought: &mut Brought,
) -> Result<Option<(crate::live::Handle, State)>, Refusal> {
    let handle = agent.conversation(id).await?;
    let state = handle.state().await.map_err(super::talk::broken)?;
    // It was forgotten meanwhile.
    if state.turns.is_empty() {
        return Ok(None);
    }
    let open: Vec<OperationAddress> = client_calls(&state).map(|(at, _)| at.clone()).collect();
    let mut results = Vec::new();
    for said in new {
        let Said::Tool { call, content } = said else { continue };
        match open.iter().find(|at| at.call.as_str() == call) {
            Some(at) => results.push((at.clone(), Ok(content.clone()))),
            None => return Ok(None),
        }
    }
    if let Some(at) = open.iter().find(|at| !results.iter().any(|(known, _)| known == *at)) {
        let message =
            format!("the tool call {} is not answered: each one needs a message of role `tool`", at.call);
        return Err(Refusal::bad("messages", message));
    }
    brought.results = results;
    brought.user = words(new).map(|text| ("user".into(), text));
    // What was said before the conversation came here is told again with every offer.
    let earlier = state.offer.context.iter().filter(|entry| entry.description == ContextEntry::EARLIER);
    brought.context.extend(earlier.cloned());
    Ok(Some((handle, state)))
}

/// Begins a conversation with everything that was said before told as context.
fn begin_anew(messages: &[Said], before: usize, brought: &mut Brought) -> Result<(), Refusal> {
    let (history, new) = messages.split_at(before);
    let last_words = || {
        messages.iter().rev().find_map(|said| match said {
            Said::User(text) => Some(text.clone()),
            Said::Assistant { .. } | Said::Tool { .. } => None,
        })
    };
    let (text, earlier) = match words(new) {
        Some(text) => (text, [history, &new[..new.len() - users_at_end(new)]].concat()),
        // The results of calls that are not known here: the question is asked again, with what was found out.
        None => match last_words() {
            Some(text) => (text, messages.to_vec()),
            None => return Err(Refusal::bad("messages", "there must be a message of the user")),
        },
    };
    if !earlier.is_empty() {
        brought.context.push(ContextEntry::earlier(earlier.iter().map(told).collect()));
    }
    brought.user = Some(("user".into(), text));
    Ok(())
}

/// What the user says in these messages.
fn words(messages: &[Said]) -> Option<String> {
    let said: Vec<&str> = messages
        .iter()
        .filter_map(|said| match said {
            Said::User(text) => Some(text.as_str()),
            Said::Assistant { .. } | Said::Tool { .. } => None,
        })
        .collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn users_at_end(messages: &[Said]) -> usize {
    messages.iter().rev().take_while(|said| matches!(said, Said::User(_))).count()
}

fn told(said: &Said) -> Value {
    match said {
        Said::User(text) => json!({"role": "user", "content": text}),
        Said::Assistant { text, .. } => json!({"role": "assistant", "content": text}),
        Said::Tool { content, .. } => json!({"role": "tool", "content": content}),
    }
}

fn called(call: &ClientCall) -> Value {
    json!({
        "id": call.call,
        "type": "function",
        "function": {"name": call.tool, "arguments": arguments_of(&call.input)},
    })
}

fn finish_reason(ending: &Ending) -> &'static str {
    match (ending.calls.is_empty(), ending.stop.as_deref()) {
        (false, _) => "tool_calls",
        (true, Some("max_tokens")) => "length",
        (true, Some("refusal")) => "content_filter",
        (true, _) => "stop",
    }
}

fn usage(ending: &Ending) -> Value {
    let (input, output) = ending
        .spent
        .by_model
        .values()
        .fold((0, 0), |(input, output), spent| (input + spent.0, output + spent.1));
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
