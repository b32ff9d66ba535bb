//! Compares a request with the stored history of its thread.
//!
//! A client sends the whole conversation with each request. The stored history is authoritative: the messages
//! of the request must begin with it, and the remaining messages are new.

use std::collections::HashMap;

use hotseat_model::ModelMessage;
use hotseat_trace::plain_text;
use serde_json::{Value, json};

use super::super::client::{
    ClientToolAnswer, RequestError, arguments_text, is_within_call, message_id, result_id,
};
use super::request::{MessageBody, ThreadMessage};
use crate::conversation::{
    ContextEntry, ConversationState, OperationAddress, OperationStatus, OperationTarget, ToolOperation,
    TurnCaller, TurnEnd, TurnState,
};

/// New input in a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewInput {
    /// Results of client tools.
    pub results: Vec<(OperationAddress, ClientToolAnswer)>,
    /// Text of the user.
    pub user: Option<String>,
    /// Messages from before the thread existed here; sent to the model with every offer.
    pub earlier: Option<ContextEntry>,
}

/// A turn of the user and the number of failed repetitions before it.
struct RepeatedUserTurn<'s> {
    turn: &'s TurnState,
    repeats: usize,
}

/// Returns the new input in these messages for a thread in `state`.
///
/// # Errors
/// If the messages contradict the thread.
pub fn new_input(state: &ConversationState, messages: &[ThreadMessage]) -> Result<NewInput, RequestError> {
    let kept = user_turns(state);
    let earlier = state.offer.context.iter().find(|entry| entry.is_earlier()).cloned();
    if kept.is_empty() {
        return start_thread(messages);
    }
    let mut news = NewInput { earlier, ..NewInput::default() };
    // Clients that leave the history to the server send only the new message.
    if let [ThreadMessage { body: MessageBody::User(text), id, .. }] = messages
        && !(kept.len() == 1 && kept[0].turn.user_text == *text && !has_other_id(kept[0].turn, id))
    {
        news.user = Some(text.clone());
        return Ok(news);
    }
    if !messages.is_empty() && messages.iter().all(|message| matches!(message.body, MessageBody::Tool { .. }))
    {
        for message in messages {
            collect_tool_result(state, message, &mut news)?;
        }
        return Ok(news);
    }
    let before = news.earlier.as_ref().map_or(0, earlier_message_count);
    let mut rest = messages.get(before..).unwrap_or_default();
    if messages.is_empty() {
        return Ok(news);
    }
    // Greetings shown by the client are not part of the stored history.
    while let [ThreadMessage { body: MessageBody::Assistant { calls, .. }, .. }, others @ ..] = rest
        && calls.is_empty()
    {
        rest = others;
    }
    for (number, asked) in kept.iter().enumerate() {
        rest = skip_user_messages(asked, rest, number, kept.len())?;
        rest = skip_replies(state, asked.turn, rest, &mut news)?;
    }
    let mut said = Vec::new();
    for message in rest {
        match &message.body {
            MessageBody::User(text) => said.push(text.as_str()),
            MessageBody::Tool { .. } => collect_tool_result(state, message, &mut news)?,
            MessageBody::Assistant { .. } => return Err(unknown_reply(message)),
        }
    }
    if !said.is_empty() {
        news.user = Some(said.join("\n\n"));
    } else if let (Some(last), true) = (kept.last(), news.results.is_empty())
        && last.turn.phase == crate::conversation::TurnPhase::Ended(TurnEnd::Failed)
    {
        // A repeated request asks a failed question again.
        news.user = Some(last.turn.user_text.clone());
    }
    Ok(news)
}

/// Handles an unknown thread: its last user messages are new, and the messages before them become context for
/// the model.
fn start_thread(messages: &[ThreadMessage]) -> Result<NewInput, RequestError> {
    let Some(last) = messages.last() else { return Ok(NewInput::default()) };
    if !matches!(last.body, MessageBody::User(_)) {
        let place = last.place;
        return Err(RequestError::conflict(format!(
            "this thread is unknown, and its history does not end with a user message (messages[{place}]): \
             there is nothing to answer"
        )));
    }
    let first = messages
        .iter()
        .rposition(|message| !matches!(message.body, MessageBody::User(_)))
        .map_or(0, |at| at + 1);
    let (before, new) = messages.split_at(first);
    let said: Vec<&str> = new.iter().filter_map(user_text).collect();
    let spoken = before.iter().any(|message| matches!(message.body, MessageBody::User(_)));
    let earlier = spoken.then(|| {
        let told: Vec<Value> = before.iter().map(context_message).collect();
        ContextEntry::earlier(told)
    });
    Ok(NewInput { results: Vec::new(), user: Some(said.join("\n\n")), earlier })
}

/// Returns a message as JSON for the model's context.
fn context_message(message: &ThreadMessage) -> Value {
    match &message.body {
        MessageBody::User(text) => json!({"role": "user", "content": text}),
        MessageBody::Assistant { text, .. } => json!({"role": "assistant", "content": text}),
        MessageBody::Tool {
            result: ClientToolAnswer::Result(text) | ClientToolAnswer::Error(text), ..
        } => json!({"role": "tool", "content": text}),
    }
}

/// Returns the number of messages in an entry of earlier messages.
fn earlier_message_count(entry: &ContextEntry) -> usize {
    serde_json::from_str::<Vec<Value>>(&entry.value).map_or(0, |told| told.len())
}

/// Returns the user's turns. A failed turn followed by a turn with the same text counts as one repeated turn.
fn user_turns(state: &ConversationState) -> Vec<RepeatedUserTurn<'_>> {
    let mut kept: Vec<RepeatedUserTurn<'_>> = Vec::new();
    for turn in state.turns.iter().filter(|turn| matches!(turn.caller, TurnCaller::User { .. })) {
        match kept.last_mut() {
            Some(last) if has_failed(last.turn) && last.turn.user_text == turn.user_text => {
                *last = RepeatedUserTurn { turn, repeats: last.repeats + 1 };
            }
            _ => kept.push(RepeatedUserTurn { turn, repeats: 0 }),
        }
    }
    kept
}

/// True if the client gave another id to the message of a turn.
fn has_other_id(turn: &TurnState, id: &str) -> bool {
    let TurnCaller::User { message_id, .. } = &turn.caller else { return false };
    message_id.as_ref().is_some_and(|known| **known != *id)
}

fn has_failed(turn: &TurnState) -> bool {
    turn.phase == crate::conversation::TurnPhase::Ended(TurnEnd::Failed)
}

fn user_text(message: &ThreadMessage) -> Option<&str> {
    match &message.body {
        MessageBody::User(text) => Some(text),
        MessageBody::Assistant { .. } | MessageBody::Tool { .. } => None,
    }
}

/// Skips the user messages of a stored turn, which may be split into several messages.
fn skip_user_messages<'m>(
    asked: &RepeatedUserTurn<'_>,
    messages: &'m [ThreadMessage],
    number: usize,
    kept: usize,
) -> Result<&'m [ThreadMessage], RequestError> {
    let mut whole = String::new();
    let mut taken = 0;
    for message in messages {
        let Some(text) = user_text(message) else { break };
        if taken > 0 {
            whole.push_str("\n\n");
        }
        whole.push_str(text);
        taken += 1;
        if whole.len() >= asked.turn.user_text.len() {
            break;
        }
    }
    if taken == 0 {
        return Err(RequestError::conflict(format!(
            "the thread has {kept} messages of the user and the request {number}: a thread continues from its last message and \
             cannot be rolled back; start a new thread with another threadId"
        )));
    }
    if whole != asked.turn.user_text {
        let place = messages[0].place;
        let message = format!(
            "messages[{place}] is not what the user said in turn {} of this thread: a thread continues from its last message \
             and cannot be rolled back; start a new thread with another threadId",
            number + 1
        );
        return Err(RequestError::conflict(message).with_member(format!("messages[{place}]")));
    }
    // The message may occur once for each repetition.
    let mut rest = &messages[taken..];
    for _ in 0..asked.repeats {
        match rest {
            [ThreadMessage { body: MessageBody::User(text), .. }, others @ ..] if *text == whole => {
                rest = others
            }
            _ => break,
        }
    }
    Ok(rest)
}

/// Skips the answers of a stored turn and collects results of client tools.
fn skip_replies<'m>(
    state: &ConversationState,
    turn: &TurnState,
    messages: &'m [ThreadMessage],
    news: &mut NewInput,
) -> Result<&'m [ThreadMessage], RequestError> {
    for (index, message) in messages.iter().enumerate() {
        match &message.body {
            MessageBody::User(_) => return Ok(&messages[index..]),
            MessageBody::Tool { .. } => collect_tool_result(state, message, news)?,
            MessageBody::Assistant { text, calls } => {
                // Parts of a failed reply are known only by their id.
                let by_id = state.turns.iter().any(|turn| {
                    message.id.strip_prefix(turn.id.as_str()).is_some_and(|rest| rest.starts_with("-r"))
                });
                let by_calls =
                    !calls.is_empty() && calls.iter().all(|call| find_operation(state, call).is_some());
                let by_text = text.is_empty() || assistant_texts(turn).any(|known| known == text);
                if !(by_id || by_calls || (calls.is_empty() && by_text)) {
                    return Err(unknown_reply(message));
                }
            }
        }
    }
    Ok(&[])
}

/// Returns the texts of the agent in a turn.
fn assistant_texts(turn: &TurnState) -> impl Iterator<Item = &String> {
    turn.transcript.iter().filter_map(|message| match message {
        ModelMessage::Assistant { text, .. } => Some(text),
        ModelMessage::User { .. } | ModelMessage::Tool(_) | ModelMessage::Notice { .. } => None,
    })
}

fn unknown_reply(message: &ThreadMessage) -> RequestError {
    let place = message.place;
    let error = RequestError::conflict(format!(
        "messages[{place}] is not an answer of the agent in this thread: the history of a thread \
         cannot be changed; start a new thread with another threadId"
    ));
    error.with_member(format!("messages[{place}]"))
}

/// Collects a tool result if its call waits for the client.
fn collect_tool_result(
    state: &ConversationState,
    message: &ThreadMessage,
    news: &mut NewInput,
) -> Result<(), RequestError> {
    let MessageBody::Tool { call, result } = &message.body else { return Ok(()) };
    match find_operation(state, call) {
        Some((at, true)) => {
            if !news.results.iter().any(|(known, _)| *known == at) {
                news.results.push((at, result.clone()));
            }
            Ok(())
        }
        Some((_, false)) => Ok(()),
        None => {
            let place = message.place;
            let message = format!("messages[{place}]: this thread has no tool call {call:?}");
            Err(RequestError::conflict(message).with_member(format!("messages[{place}].toolCallId")))
        }
    }
}

/// Returns the address of a call, and true if the client must answer it.
fn find_operation(state: &ConversationState, call: &str) -> Option<(OperationAddress, bool)> {
    for turn in &state.turns {
        if let Some(operation) = turn.operations.iter().find(|operation| operation.call.as_str() == call) {
            let owed = operation.work == OperationTarget::Client
                && operation.status.is_open()
                && operation.status != OperationStatus::AwaitingApproval
                && turn.is_active();
            return Some((turn.address(operation), owed));
        }
        // Clients may send the calls of called agents back.
        let is_within = |operation: &&ToolOperation| is_within_call(call, operation.call.as_str());
        if let Some(operation) = turn.operations.iter().find(is_within) {
            return Some((turn.address(operation), false));
        }
        // Refused calls are not operations.
        let made = turn.moves.iter().filter_map(|made| made.tool_call.as_ref());
        if made.into_iter().any(|made| *made.tool_call_id == *call) {
            let at = OperationAddress { turn: turn.id.clone(), call: call.into(), attempt: 1 };
            return Some((at, false));
        }
    }
    None
}

/// Returns the stored history of a thread as messages, for clients that do not send it.
pub fn messages(state: &ConversationState) -> Vec<Value> {
    let mut messages = Vec::new();
    for asked in user_turns(state) {
        let turn = asked.turn;
        messages.push(json!({"id": format!("{}-user", turn.id), "role": "user", "content": turn.user_text}));
        let mut reply = 0;
        // A human may have changed the arguments that the model wrote.
        let inputs: HashMap<&str, &Value> =
            turn.operations.iter().map(|operation| (operation.call.as_str(), &operation.input)).collect();
        for message in &turn.transcript {
            match message {
                ModelMessage::Assistant { text, tool_calls, .. } => {
                    reply += 1;
                    let mut entry = json!({"id": message_id(turn.id.as_str(), reply), "role": "assistant"});
                    if !text.is_empty() {
                        entry["content"] = json!(text);
                    }
                    if !tool_calls.is_empty() {
                        entry["toolCalls"] = tool_calls
                            .iter()
                            .map(|call| {
                                let input = inputs.get(call.id.as_str()).copied().unwrap_or(&call.arguments);
                                json!({
                                    "id": call.id,
                                    "type": "function",
                                    "function": {"name": call.name, "arguments": arguments_text(input)},
                                })
                            })
                            .collect();
                    }
                    messages.push(entry);
                }
                ModelMessage::Tool(result) => {
                    // The model reads the code of an error too; clients get its message, as in the event of the result.
                    let content = match &result.content["message"] {
                        Value::String(message) if result.is_error => message.clone(),
                        _ => plain_text(&result.content),
                    };
                    let mut entry = json!({
                        "id": result_id(&result.call_id),
                        "role": "tool",
                        "toolCallId": result.call_id,
                        "content": content,
                    });
                    if result.is_error {
                        entry["error"] = json!(content);
                    }
                    messages.push(entry);
                }
                ModelMessage::User { .. } | ModelMessage::Notice { .. } => {}
            }
        }
    }
    messages
}
