//! Compares a request with the stored history of its thread.
//!
//! A client sends the whole conversation with each request. The stored history is authoritative: the messages
//! of the request must begin with it, and the remaining messages are new.

use std::collections::HashMap;

use hotseat_model::{ModelMessage, ModelToolResult};
use hotseat_trace::plain_text;
use serde_json::{Value, json};

use super::super::client::{ClientToolAnswer, RequestError, arguments_text, message_id, result_id};
use super::request::{MessageBody, ThreadMessage};
use super::stored_thread::{KnownReply, ReplyDifference, StoredThread};
use crate::conversation::{
    ContextEntry, ConversationState, OperationAddress, ToolOperation, TurnCaller, TurnEnd, TurnPhase,
    TurnState,
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
/// If the messages contradict the thread, or the new message of the user has no text.
pub fn new_input(state: &ConversationState, messages: &[ThreadMessage]) -> Result<NewInput, RequestError> {
    let news = compared_input(state, messages)?;
    if news.user.as_ref().is_some_and(|text| text.trim().is_empty()) {
        let place = messages.last().map_or(0, |message| message.place);
        let member = format!("messages[{place}].content");
        let problem = format!("{member}: the message of the user has no text");
        return Err(RequestError::bad_request(member, problem));
    }
    Ok(news)
}

/// Returns the messages that the thread does not have.
fn compared_input(state: &ConversationState, messages: &[ThreadMessage]) -> Result<NewInput, RequestError> {
    let kept = user_turns(state);
    let earlier = state.offer.context.iter().find(|entry| entry.is_earlier()).cloned();
    if kept.is_empty() {
        return start_thread(messages);
    }
    let stored = StoredThread::new(state);
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
            collect_tool_result(&stored, message, &mut news)?;
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
        rest = skip_turn(&stored, asked, rest, (number, kept.len()), &mut news)?;
    }
    let mut said = Vec::new();
    for message in rest {
        match &message.body {
            MessageBody::User(text) => said.push(text.as_str()),
            MessageBody::Tool { .. } => collect_tool_result(&stored, message, &mut news)?,
            MessageBody::Assistant { .. } => return Err(unknown_reply(message)),
        }
    }
    if !said.is_empty() {
        news.user = Some(said.join("\n\n"));
    } else if let (Some(last), true) = (kept.last(), news.results.is_empty())
        && has_failed(last.turn)
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

/// True if a turn has no whole answer: it failed or was cancelled.
pub(super) fn has_failed(turn: &TurnState) -> bool {
    turn.phase == TurnPhase::Ended(TurnEnd::Failed)
}

fn user_text(message: &ThreadMessage) -> Option<&str> {
    match &message.body {
        MessageBody::User(text) => Some(text),
        MessageBody::Assistant { .. } | MessageBody::Tool { .. } => None,
    }
}

/// Skips the messages of a stored turn, which is the one with this index among all of the thread, and collects results of client
/// tools.
fn skip_turn<'m>(
    stored: &StoredThread<'_>,
    asked: &RepeatedUserTurn<'_>,
    messages: &'m [ThreadMessage],
    (number, kept): (usize, usize),
    news: &mut NewInput,
) -> Result<&'m [ThreadMessage], RequestError> {
    let mut rest = skip_user_messages(asked.turn, messages, number, kept)?;
    // The message may occur once for each repetition, with the parts of a failed reply in between.
    for _ in 0..asked.repeats {
        let (others, is_answered) = skip_replies(stored, asked.turn, rest, news)?;
        rest = others;
        match rest {
            [again, others @ ..] if !is_answered && user_text(again) == Some(&asked.turn.user_text) => {
                rest = others;
            }
            _ => return Ok(rest),
        }
    }
    Ok(skip_replies(stored, asked.turn, rest, news)?.0)
}

/// Skips the user messages of a stored turn, which may be split into several messages.
fn skip_user_messages<'m>(
    turn: &TurnState,
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
        if whole.len() >= turn.user_text.len() {
            break;
        }
    }
    if taken == 0 {
        return Err(RequestError::conflict(format!(
            "the thread has {kept} messages of the user and the request {number}: a thread continues from its last message and \
             cannot be rolled back; start a new thread with another threadId"
        )));
    }
    if whole != turn.user_text {
        let place = messages[0].place;
        let message = format!(
            "messages[{place}] is not what the user said in turn {} of this thread: a thread continues from its last message \
             and cannot be rolled back; start a new thread with another threadId",
            number + 1
        );
        return Err(RequestError::conflict(message).with_member(format!("messages[{place}]")));
    }
    Ok(&messages[taken..])
}

/// Skips the answers of a stored turn and collects results of client tools. Also returns true if one of them is more than a part of
/// a failed reply.
fn skip_replies<'m>(
    stored: &StoredThread<'_>,
    turn: &TurnState,
    messages: &'m [ThreadMessage],
    news: &mut NewInput,
) -> Result<(&'m [ThreadMessage], bool), RequestError> {
    let mut is_answered = false;
    for (index, message) in messages.iter().enumerate() {
        match &message.body {
            MessageBody::User(_) => return Ok((&messages[index..], is_answered)),
            MessageBody::Tool { .. } => collect_tool_result(stored, message, news)?,
            MessageBody::Assistant { text, calls } => {
                match stored.find_reply(turn, &message.id, text, calls) {
                    Ok(KnownReply::Failed) => {}
                    Ok(KnownReply::Answer) => is_answered = true,
                    Err(ReplyDifference::Message) => return Err(unknown_reply(message)),
                    Err(ReplyDifference::Arguments(place)) => {
                        let at = format!("messages[{}].toolCalls[{place}]", message.place);
                        return Err(changed_history(
                            &at,
                            "has other arguments than this call in this thread",
                        ));
                    }
                }
            }
        }
    }
    Ok((&[], is_answered))
}

fn unknown_reply(message: &ThreadMessage) -> RequestError {
    let at = format!("messages[{}]", message.place);
    changed_history(&at, "is not an answer of the agent in this thread")
}

fn changed_history(at: &str, problem: &str) -> RequestError {
    let message = format!(
        "{at} {problem}: the history of a thread cannot be changed; start a new thread with another threadId"
    );
    RequestError::conflict(message).with_member(at)
}

/// Collects a tool result if its call waits for the client.
fn collect_tool_result(
    stored: &StoredThread<'_>,
    message: &ThreadMessage,
    news: &mut NewInput,
) -> Result<(), RequestError> {
    let MessageBody::Tool { call, result } = &message.body else { return Ok(()) };
    let place = message.place;
    match stored.address(call) {
        Some((at, true)) => {
            if !news.results.iter().any(|(known, _)| known == at) {
                news.results.push((at.clone(), result.clone()));
            }
            Ok(())
        }
        Some((_, false)) if stored.has_result(call, result) => Ok(()),
        Some((_, false)) => Err(changed_history(
            &format!("messages[{place}]"),
            "is not the result of its call in this thread",
        )),
        None => {
            let message = format!("messages[{place}]: this thread has no tool call {call:?}");
            Err(RequestError::conflict(message).with_member(format!("messages[{place}].toolCallId")))
        }
    }
}

/// Returns the stored history of a thread as messages, for clients that do not send it.
pub fn messages(state: &ConversationState) -> Vec<Value> {
    let mut messages = Vec::new();
    for asked in user_turns(state) {
        let turn = asked.turn;
        messages.push(json!({"id": format!("{}-user", turn.id), "role": "user", "content": turn.user_text}));
        let mut reply = 0;
        let operations: HashMap<&str, &ToolOperation> =
            turn.operations.iter().map(|operation| (operation.call.as_str(), operation)).collect();
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
                                // A human may have changed the arguments that the model wrote.
                                let operation = operations.get(call.id.as_str());
                                let input = operation.map_or(&call.arguments, |operation| &operation.input);
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
                    let operation = operations.get(result.call_id.as_str());
                    let Some((content, is_error)) = shown_result(operation.copied(), result) else {
                        continue;
                    };
                    let mut entry = json!({
                        "id": result_id(&result.call_id),
                        "role": "tool",
                        "toolCallId": result.call_id,
                        "content": content,
                    });
                    if is_error {
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

/// Returns a result as the event of the result has it, and true if the call failed. The model reads the code of an error too, and of
/// an asynchronous call only that it has started; its result follows at the end of the call.
fn shown_result(operation: Option<&ToolOperation>, told: &ModelToolResult) -> Option<(String, bool)> {
    match operation {
        Some(operation) if operation.is_async => match &operation.outcome.as_ref()?.result {
            Ok(value) => Some((plain_text(value), false)),
            Err(error) => Some((error.message.clone(), true)),
        },
        _ => match &told.content["message"] {
            Value::String(message) if told.is_error => Some((message.clone(), true)),
            _ => Some((plain_text(&told.content), told.is_error)),
        },
    }
}
