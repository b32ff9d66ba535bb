//! OpenAI chat completions: each request contains the whole history and is answered with one message.
//!
//! A request continues the conversation whose history equals the messages up to the last answer. If there is
//! none, after a restart or for a history from elsewhere, a new conversation is opened and the history
//! becomes context for its model.

mod request;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

pub use request::{CompletionRequest, parse_request};

use super::client::{
    ClientExchange, ClientInput, ClientToolAnswer, ClientUpdate, ConversationLease, ExchangeEnd,
    ExchangeStep, PendingClientCall, RequestError, RequestErrorKind, ServedAgent, arguments_text,
    client_calls, host_error,
};
use crate::conversation::{ContextEntry, ConversationState, OperationAddress};
use crate::ids::ConversationId;
use request::{CompletionMessage, HistoryCall, ToolChoice};

/// Reason given to the agent when it asks for an approval.
const NO_APPROVAL_REASON: &str = "this client cannot ask for approvals";

/// Reason given to the agent when it calls a tool of a client that disables its tools.
const NO_CALL_REASON: &str = "the client does not run tools for this answer";

/// Answer in progress.
pub struct ChatAnswer {
    agent: ServedAgent,
    talk: ClientExchange,
    conversation: ConversationId,
    /// Messages of the request.
    messages: Vec<CompletionMessage>,
    tool_choice: ToolChoice,
    /// Length of the history, if the request continues a known conversation.
    history_len: Option<usize>,
    /// Text of the answer so far.
    text: String,
    /// True if the current message ended with the result of a shown call: what follows is another message.
    message_ended: bool,
    /// Byte offset in `text` at which the current message starts.
    message_start: usize,
    head: ChunkHead,
    started: bool,
    /// True if the last chunk was the result of a tool: the message of the agent that follows it begins with its role.
    after_result: bool,
    /// Calls of the agent's own tools that were sent, in order; `None` if the client did not request them.
    shown: Option<Vec<Arc<str>>>,
}

/// Members shared by all chunks of an answer.
struct ChunkHead {
    id: String,
    created: u64,
    model: String,
    stream: bool,
    include_usage: bool,
}

/// Next chunks of a streamed answer.
pub enum ChatBatch {
    /// More chunks will follow.
    Chunks(Vec<Value>),
    /// The last chunks of the answer.
    Last(Vec<Value>),
}

impl ChatAnswer {
    /// Starts an answer.
    ///
    /// # Errors
    /// If the request leaves calls unanswered, or the conversation rejects the input.
    pub async fn start(
        agent: &ServedAgent,
        asked: CompletionRequest,
    ) -> Result<(ChatAnswer, ConversationLease), RequestError> {
        let CompletionRequest {
            model,
            messages,
            context,
            tools,
            tool_choice,
            user,
            stream,
            include_usage,
            show_tools,
        } = asked;
        agent.check_offer(&tools)?;
        let answered = messages.iter().rposition(|said| matches!(said, CompletionMessage::Assistant { .. }));
        let before = answered.map_or(0, |last| last + 1);
        let (history, new) = messages.split_at(before);
        let mut brought = ClientInput { tools, context, ..ClientInput::default() };
        let continued = match agent.chat_histories.take(history).filter(|_| before > 0) {
            Some(id) => match agent.try_lease(&id, false) {
                Some(taken) => {
                    let found = continue_conversation(agent, &id, new, &mut brought).await;
                    if !matches!(found, Ok(Some(_))) {
                        agent.chat_histories.put(history, id.clone());
                    }
                    found?.map(|(handle, state)| (id, handle, state, taken))
                }
                // It belongs to another client, whose answer is being sent.
                None => {
                    agent.chat_histories.put(history, id);
                    None
                }
            },
            None => None,
        };
        let known = continued.is_some();
        let (id, handle, state, taken) = match continued {
            Some(going_on) => going_on,
            None => {
                let id = ConversationId::from(format!("chat-{}", uuid::Uuid::new_v4()));
                let handle = agent.conversation(&id).await?;
                let state = handle.state().await.map_err(host_error)?;
                start_conversation(&messages, before, &mut brought)?;
                let taken = agent.lease(&id)?;
                (id, handle, state, taken)
            }
        };
        if let Some((name, _)) = &mut brought.user {
            *name = user.as_str().into();
        }
        let talk = ClientExchange::start(handle, &state, brought).await?;
        let head = ChunkHead {
            id: format!("chatcmpl-{}", uuid::Uuid::new_v4()),
            created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            model,
            stream,
            include_usage,
        };
        let chat = ChatAnswer {
            agent: agent.clone(),
            talk,
            conversation: id,
            messages,
            tool_choice,
            history_len: known.then_some(before),
            text: String::new(),
            message_ended: false,
            message_start: 0,
            head,
            started: false,
            after_result: false,
            shown: show_tools.then(Vec::new),
        };
        Ok((chat, taken))
    }

    /// Waits for the next chunks of the answer.
    pub async fn next(&mut self) -> ChatBatch {
        let mut chunks = Vec::new();
        if !std::mem::replace(&mut self.started, true) {
            chunks.push(self.chunk(json!({"role": "assistant", "content": ""}), None));
            return ChatBatch::Chunks(chunks);
        }
        loop {
            match self.step().await {
                Ok(ChatStep::Pieces(pieces)) if pieces.is_empty() => {}
                Ok(ChatStep::Pieces(pieces)) => {
                    for piece in pieces {
                        let is_result = matches!(piece, ChatPiece::ToolAnswered { .. });
                        let mut delta = piece.delta();
                        if std::mem::replace(&mut self.after_result, is_result) && !is_result {
                            delta["role"] = json!("assistant");
                        }
                        chunks.push(self.chunk(delta, None));
                    }
                    return ChatBatch::Chunks(chunks);
                }
                Ok(ChatStep::Finished(ending)) => return ChatBatch::Last(self.last_chunks(&ending)),
                Err(refusal) => return ChatBatch::Last(vec![refusal.body()]),
            }
        }
    }

    /// Waits for the complete answer.
    ///
    /// # Errors
    /// If the agent fails.
    pub async fn complete(&mut self) -> Result<Value, RequestError> {
        let ending = loop {
            if let ChatStep::Finished(ending) = self.step().await? {
                break ending;
            }
        };
        let content = match (self.text.is_empty(), ending.calls.is_empty()) {
            (true, false) => Value::Null,
            _ => json!(self.text),
        };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !ending.calls.is_empty() {
            message["tool_calls"] = ending.calls.iter().map(|call| history_call(call).to_json()).collect();
        }
        let mut response = json!({
            "id": self.head.id,
            "object": "chat.completion",
            "created": self.head.created,
            "model": self.head.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": ending.finish_reason(),
            }],
        });
        if let Some(usage) = ending.usage.completion_usage() {
            response["usage"] = usage;
        }
        Ok(response)
    }

    /// Cancels the answer after the client disconnected. The conversation can be continued from its previous
    /// state.
    pub async fn cancel(self) {
        let ChatAnswer { agent, talk, conversation, messages, history_len: before, .. } = self;
        talk.cancel().await;
        if let Some(before) = before {
            agent.chat_histories.put(&messages[..before], conversation);
        }
    }

    /// Waits for the next step of the answer.
    async fn step(&mut self) -> Result<ChatStep, RequestError> {
        let told = match self.talk.next().await? {
            ExchangeStep::Updates(told) => told,
            ExchangeStep::Finished(ending) if !ending.approval_addresses.is_empty() => {
                for at in ending.approval_addresses {
                    self.talk.decline(at, NO_APPROVAL_REASON).await?;
                }
                return Ok(ChatStep::Pieces(Vec::new()));
            }
            ExchangeStep::Finished(ending)
                if self.tool_choice == ToolChoice::None && !ending.calls.is_empty() =>
            {
                for call in ending.calls {
                    self.talk.decline_call(call.at, NO_CALL_REASON).await?;
                }
                return Ok(ChatStep::Pieces(Vec::new()));
            }
            ExchangeStep::Finished(ending) => {
                if let Some(failure) = &ending.failure {
                    self.restore_history();
                    let refusal = RequestError::new(RequestErrorKind::Failed, failure.message.clone());
                    return Err(RequestError { code: failure.code.clone(), ..refusal });
                }
                let calls = ending.calls.iter().map(history_call).collect();
                self.messages.push(CompletionMessage::Assistant { text: self.text.clone(), calls });
                self.agent.chat_histories.put(&self.messages, self.conversation.clone());
                return Ok(ChatStep::Finished(ending));
            }
        };
        let mut pieces = Vec::new();
        for told in told {
            match told {
                // An agent that joins the conversation speaks in its turn.
                ClientUpdate::TextStarted { .. } => {
                    if !std::mem::take(&mut self.message_ended) && !self.text.is_empty() {
                        self.text.push_str("\n\n");
                        pieces.push(ChatPiece::Text("\n\n".to_string()));
                    }
                    self.message_start = self.text.len();
                }
                ClientUpdate::Text { text, .. } => {
                    self.text.push_str(&text);
                    pieces.push(ChatPiece::Text(text));
                }
                ClientUpdate::ToolCalled { call, tool, arguments, by_client: false, .. } => {
                    if let Some(shown) = &mut self.shown {
                        pieces.push(ChatPiece::ToolCalled {
                            index: shown.len(),
                            call: call.clone(),
                            tool,
                            arguments,
                        });
                        shown.push(call);
                    }
                }
                ClientUpdate::ToolAnswered { call, content, failed, .. }
                    if self.shown.as_ref().is_some_and(|shown| shown.contains(&call)) =>
                {
                    pieces.push(ChatPiece::ToolAnswered { call, content, failed });
                    self.message_ended = true;
                }
                ClientUpdate::MessageWithdrawn { .. } => {
                    if let Err(refusal) = self.withdraw(&mut pieces) {
                        self.talk.cancel_turns("a part of the answer could not be withdrawn").await;
                        self.restore_history();
                        return Err(refusal);
                    }
                }
                _ => {}
            }
        }
        Ok(ChatStep::Pieces(pieces))
    }

    /// Makes the conversation available with its previous history after a failed answer.
    fn restore_history(&self) {
        if let Some(before) = self.history_len {
            self.agent.chat_histories.put(&self.messages[..before], self.conversation.clone());
        }
    }

    /// Removes the text of the withdrawn message. Fails if a part of it was already streamed.
    fn withdraw(&mut self, pieces: &mut Vec<ChatPiece>) -> Result<(), RequestError> {
        let withdrawn = self.text.len() - self.message_start;
        let unsent: usize = pieces.iter().rev().map_while(ChatPiece::text).map(str::len).sum();
        if self.head.stream && withdrawn > unsent {
            let message =
                "the model's reply was interrupted after a part of it was sent, and its retry differs";
            return Err(RequestError::new(RequestErrorKind::Failed, message));
        }
        let mut said = self.text.split_off(self.message_start).len();
        while said > 0
            && let Some(text) = pieces.last().and_then(ChatPiece::text)
        {
            said = said.saturating_sub(text.len());
            pieces.pop();
        }
        Ok(())
    }

    fn last_chunks(&self, ending: &ExchangeEnd) -> Vec<Value> {
        let mut chunks = Vec::new();
        for (index, call) in ending.calls.iter().enumerate() {
            let mut call = history_call(call).to_json();
            call["index"] = json!(self.shown.as_ref().map_or(0, Vec::len) + index);
            chunks.push(self.chunk(json!({"tool_calls": [call]}), None));
        }
        chunks.push(self.chunk(json!({}), Some(ending.finish_reason())));
        if let Some(usage) = ending.usage.completion_usage().filter(|_| self.head.include_usage) {
            let mut chunk = self.chunk(json!({}), None);
            chunk["choices"] = json!([]);
            chunk["usage"] = usage;
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

/// Part of an answer.
enum ChatPiece {
    /// Text of the agent.
    Text(String),
    /// Call of one of the agent's own tools; `index` is the number of calls before it.
    ToolCalled { index: usize, call: Arc<str>, tool: Arc<str>, arguments: String },
    /// Result of such a call.
    ToolAnswered { call: Arc<str>, content: String, failed: bool },
}

impl ChatPiece {
    /// Returns the text of a text piece.
    fn text(&self) -> Option<&str> {
        match self {
            ChatPiece::Text(text) => Some(text),
            ChatPiece::ToolCalled { .. } | ChatPiece::ToolAnswered { .. } => None,
        }
    }

    /// Returns the delta of a chunk.
    fn delta(self) -> Value {
        match self {
            ChatPiece::Text(text) => json!({"content": text}),
            ChatPiece::ToolCalled { index, call, tool, arguments } => json!({"tool_calls": [{
                "index": index,
                "id": call,
                "type": "function",
                "function": {"name": tool, "arguments": arguments},
            }]}),
            ChatPiece::ToolAnswered { call, content, failed } => {
                let mut delta = json!({"role": "tool", "tool_call_id": call, "content": content});
                if failed {
                    delta["error"] = json!(content);
                }
                delta
            }
        }
    }
}

/// Step of an answer.
enum ChatStep {
    /// New pieces of the answer.
    Pieces(Vec<ChatPiece>),
    /// The answer is complete.
    Finished(ExchangeEnd),
}

/// Continues a known conversation. Returns `None` if its state no longer matches the request.
async fn continue_conversation(
    agent: &ServedAgent,
    id: &ConversationId,
    new: &[CompletionMessage],
    brought: &mut ClientInput,
) -> Result<Option<(crate::live::ConversationHandle, ConversationState)>, RequestError> {
    let handle = agent.conversation(id).await?;
    let state = handle.state().await.map_err(host_error)?;
    // The conversation was deleted in the meantime.
    if state.turns.is_empty() {
        return Ok(None);
    }
    let open: Vec<OperationAddress> = client_calls(&state).map(|(at, _)| at.clone()).collect();
    let mut results = Vec::new();
    for said in new {
        let CompletionMessage::Tool { call, content } = said else { continue };
        match open.iter().find(|at| at.call.as_str() == call) {
            Some(at) => results.push((at.clone(), ClientToolAnswer::Result(content.clone()))),
            None => return Ok(None),
        }
    }
    if let Some(at) = open.iter().find(|at| !results.iter().any(|(known, _)| known == *at)) {
        let message =
            format!("tool call {} is not answered: each call needs a message with role `tool`", at.call);
        return Err(RequestError::bad_request("messages", message));
    }
    brought.results = results;
    brought.user = user_text(new).map(|text| ("user".into(), text));
    // Messages from before the conversation existed here are sent again with every offer.
    let earlier = state.offer.context.iter().filter(|entry| entry.is_earlier());
    brought.context.extend(earlier.cloned());
    Ok(Some((handle, state)))
}

/// Starts a conversation with the history as context.
fn start_conversation(
    messages: &[CompletionMessage],
    before: usize,
    brought: &mut ClientInput,
) -> Result<(), RequestError> {
    let (history, new) = messages.split_at(before);
    let last_words = || {
        messages.iter().rev().find_map(|said| match said {
            CompletionMessage::User(text) => Some(text.clone()),
            CompletionMessage::Assistant { .. } | CompletionMessage::Tool { .. } => None,
        })
    };
    let (text, earlier) = match user_text(new) {
        Some(text) => (text, [history, &new[..new.len() - trailing_user_messages(new)]].concat()),
        // Results of unknown calls: the last question is asked again, with the results as context.
        None => match last_words() {
            Some(text) => (text, messages.to_vec()),
            None => {
                return Err(RequestError::bad_request("messages", "at least one user message is required"));
            }
        },
    };
    if !earlier.is_empty() {
        brought.context.push(ContextEntry::earlier(earlier.iter().map(context_message).collect()));
    }
    brought.user = Some(("user".into(), text));
    Ok(())
}

/// Returns the joined texts of the user in these messages.
fn user_text(messages: &[CompletionMessage]) -> Option<String> {
    let said: Vec<&str> = messages
        .iter()
        .filter_map(|said| match said {
            CompletionMessage::User(text) => Some(text.as_str()),
            CompletionMessage::Assistant { .. } | CompletionMessage::Tool { .. } => None,
        })
        .collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn trailing_user_messages(messages: &[CompletionMessage]) -> usize {
    messages.iter().rev().take_while(|said| matches!(said, CompletionMessage::User(_))).count()
}

fn context_message(said: &CompletionMessage) -> Value {
    match said {
        CompletionMessage::User(text) => json!({"role": "user", "content": text}),
        CompletionMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        CompletionMessage::Assistant { text, calls } => {
            let calls: Vec<Value> = calls.iter().map(HistoryCall::to_json).collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        CompletionMessage::Tool { call, content } => {
            json!({"role": "tool", "tool_call_id": call, "content": content})
        }
    }
}

fn history_call(call: &PendingClientCall) -> HistoryCall {
    let function = json!({"name": call.tool, "arguments": arguments_text(&call.input)});
    HistoryCall { id: call.at.call.to_string(), function }
}
