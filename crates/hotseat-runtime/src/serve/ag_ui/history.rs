//! What a request brings beyond what is kept of its thread.
//!
//! A client sends the whole conversation each time. What is kept decides: the messages of the request must begin with
//! it, and what follows is new.

use hotseat_model::Message as ModelMessage;
use serde_json::{Value, json};

use super::super::refusal::Refusal;
use super::super::translate::{arguments_of, content_of, message_id, result_id};
use super::request::{Body, Message};
use crate::conversation::{
    Caller, ContextEntry, OperationAddress, OperationStatus, State, Turn, TurnEnd, Work,
};

/// What is new in a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    /// What tools of the client have answered.
    pub results: Vec<(OperationAddress, Result<String, String>)>,
    /// What the user says.
    pub user: Option<String>,
    /// What was said before the thread was known here; told to the model with every offer.
    pub earlier: Option<ContextEntry>,
}

/// A turn of the user, with how often the same was asked again because it failed.
struct Asked<'s> {
    turn: &'s Turn,
    again: usize,
}

/// What of these messages is new to a thread that stands as in `state`.
///
/// # Errors
/// When the messages and the thread disagree.
pub fn news(state: &State, messages: &[Message]) -> Result<News, Refusal> {
    let kept = asked(state);
    let earlier =
        state.offer.context.iter().find(|entry| entry.description == ContextEntry::EARLIER).cloned();
    if kept.is_empty() {
        return begin(messages);
    }
    let mut news = News { earlier, ..News::default() };
    // Clients that leave the history to the server send what is new and nothing else.
    if let [Message { body: Body::User(text), .. }] = messages
        && !(kept.len() == 1 && kept[0].turn.user_text == *text)
    {
        news.user = Some(text.clone());
        return Ok(news);
    }
    if !messages.is_empty() && messages.iter().all(|message| matches!(message.body, Body::Tool { .. })) {
        for message in messages {
            tool(state, message, &mut news)?;
        }
        return Ok(news);
    }
    let before = news.earlier.as_ref().map_or(0, how_many);
    let mut rest = messages.get(before..).unwrap_or_default();
    if messages.is_empty() {
        return Ok(news);
    }
    // A greeting that the client shows is no part of what was said here.
    while let [Message { body: Body::Assistant { calls, .. }, .. }, others @ ..] = rest
        && calls.is_empty()
    {
        rest = others;
    }
    for (number, asked) in kept.iter().enumerate() {
        rest = user_of(asked, rest, number, kept.len())?;
        rest = replies(state, asked.turn, rest, &mut news)?;
    }
    let mut said = Vec::new();
    for message in rest {
        match &message.body {
            Body::User(text) => said.push(text.as_str()),
            Body::Tool { .. } => tool(state, message, &mut news)?,
            Body::Assistant { .. } => return Err(unknown_reply(message)),
        }
    }
    if !said.is_empty() {
        news.user = Some(said.join("\n\n"));
    } else if let (Some(last), true) = (kept.last(), news.results.is_empty())
        && last.turn.phase == crate::conversation::Phase::Ended(TurnEnd::Failed)
    {
        // The same is asked again, for it has failed.
        news.user = Some(last.turn.user_text.clone());
    }
    Ok(news)
}

/// A thread that is not known here: its last user message is what is new, and what stands before it is told to the
/// model as what was said earlier.
fn begin(messages: &[Message]) -> Result<News, Refusal> {
    let Some(last) = messages.last() else { return Ok(News::default()) };
    if !matches!(last.body, Body::User(_)) {
        let place = last.place;
        return Err(Refusal::conflict(format!(
            "this thread is not known here, and its history does not end with a message of the user (messages[{place}]): \
             there is nothing to answer"
        )));
    }
    let first =
        messages.iter().rposition(|message| !matches!(message.body, Body::User(_))).map_or(0, |at| at + 1);
    let (before, new) = messages.split_at(first);
    let said: Vec<&str> = new.iter().filter_map(user_text).collect();
    let spoken = before.iter().any(|message| matches!(message.body, Body::User(_)));
    let earlier = spoken.then(|| {
        let told: Vec<Value> = before.iter().map(told).collect();
        ContextEntry::earlier(told)
    });
    Ok(News { results: Vec::new(), user: Some(said.join("\n\n")), earlier })
}

/// A message as the model is told of it.
fn told(message: &Message) -> Value {
    match &message.body {
        Body::User(text) => json!({"role": "user", "content": text}),
        Body::Assistant { text, .. } => json!({"role": "assistant", "content": text}),
        Body::Tool { result: Ok(text) | Err(text), .. } => json!({"role": "tool", "content": text}),
    }
}

/// How many messages an entry of earlier messages stands for.
fn how_many(entry: &ContextEntry) -> usize {
    serde_json::from_str::<Vec<Value>>(&entry.value).map_or(0, |told| told.len())
}

/// The user's turns. A failed one that was followed by the same words was asked again.
fn asked(state: &State) -> Vec<Asked<'_>> {
    let mut kept: Vec<Asked<'_>> = Vec::new();
    for turn in state.turns.iter().filter(|turn| matches!(turn.caller, Caller::User { .. })) {
        match kept.last_mut() {
            Some(last) if has_failed(last.turn) && last.turn.user_text == turn.user_text => {
                *last = Asked { turn, again: last.again + 1 };
            }
            _ => kept.push(Asked { turn, again: 0 }),
        }
    }
    kept
}

fn has_failed(turn: &Turn) -> bool {
    turn.phase == crate::conversation::Phase::Ended(TurnEnd::Failed)
}

fn user_text(message: &Message) -> Option<&str> {
    match &message.body {
        Body::User(text) => Some(text),
        Body::Assistant { .. } | Body::Tool { .. } => None,
    }
}

/// Passes over the user's words of a kept turn, which may stand in several messages.
fn user_of<'m>(
    asked: &Asked<'_>,
    messages: &'m [Message],
    number: usize,
    kept: usize,
) -> Result<&'m [Message], Refusal> {
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
        return Err(Refusal::conflict(format!(
            "the thread has {kept} messages of the user and the request {number}: a thread goes on where it is and \
             cannot be taken back; begin a new one with another threadId"
        )));
    }
    if whole != asked.turn.user_text {
        let place = messages[0].place;
        return Err(Refusal {
            member: Some(format!("messages[{place}]")),
            ..Refusal::conflict(format!(
                "messages[{place}] is not what the user said in turn {} of this thread: a thread goes on where it is \
                 and cannot be taken back; begin a new one with another threadId",
                number + 1
            ))
        });
    }
    // The same message may stand there once for each time it was asked.
    let mut rest = &messages[taken..];
    for _ in 0..asked.again {
        match rest {
            [Message { body: Body::User(text), .. }, others @ ..] if *text == whole => rest = others,
            _ => break,
        }
    }
    Ok(rest)
}

/// Passes over what was answered in a kept turn.
fn replies<'m>(
    state: &State,
    turn: &Turn,
    messages: &'m [Message],
    news: &mut News,
) -> Result<&'m [Message], Refusal> {
    for (index, message) in messages.iter().enumerate() {
        match &message.body {
            Body::User(_) => return Ok(&messages[index..]),
            Body::Tool { .. } => tool(state, message, news)?,
            Body::Assistant { text, calls } => {
                // What was told of a reply that failed is known by its id alone.
                let by_id = state.turns.iter().any(|turn| is_reply_of(turn, &message.id));
                let by_calls = !calls.is_empty() && calls.iter().all(|call| address(state, call).is_some());
                let by_text = text.is_empty() || said(turn).any(|known| known == text);
                if !(by_id || by_calls || (calls.is_empty() && by_text)) {
                    return Err(unknown_reply(message));
                }
            }
        }
    }
    Ok(&[])
}

/// Whether this is the id of a message that a turn has brought.
fn is_reply_of(turn: &Turn, id: &str) -> bool {
    id.strip_prefix(turn.id.as_str()).is_some_and(|rest| rest.starts_with("-r"))
}

/// What the agent said in a turn.
fn said(turn: &Turn) -> impl Iterator<Item = &String> {
    turn.transcript.iter().filter_map(|message| match message {
        ModelMessage::Assistant { text, .. } => Some(text),
        ModelMessage::User { .. } | ModelMessage::Tool(_) | ModelMessage::Notice { .. } => None,
    })
}

fn unknown_reply(message: &Message) -> Refusal {
    let place = message.place;
    Refusal {
        member: Some(format!("messages[{place}]")),
        ..Refusal::conflict(format!(
            "messages[{place}] is an answer that the agent did not give in this thread: what is kept of a thread \
             cannot be changed; begin a new one with another threadId"
        ))
    }
}

/// A result in the messages: new if its call waits for the client.
fn tool(state: &State, message: &Message, news: &mut News) -> Result<(), Refusal> {
    let Body::Tool { call, result } = &message.body else { return Ok(()) };
    match address(state, call) {
        Some((at, true)) => {
            if !news.results.iter().any(|(known, _)| *known == at) {
                news.results.push((at, result.clone()));
            }
            Ok(())
        }
        Some((_, false)) => Ok(()),
        None => {
            let place = message.place;
            Err(Refusal {
                member: Some(format!("messages[{place}].toolCallId")),
                ..Refusal::conflict(format!("messages[{place}]: this thread has no tool call {call:?}"))
            })
        }
    }
}

/// Where the answer of a call goes, and whether the client owes it.
fn address(state: &State, call: &str) -> Option<(OperationAddress, bool)> {
    for turn in &state.turns {
        if let Some(operation) = turn.operations.iter().find(|operation| operation.call.as_str() == call) {
            let at = OperationAddress {
                turn: turn.id.clone(),
                call: operation.call.clone(),
                attempt: operation.attempt,
            };
            let owed = operation.work == Work::Client
                && operation.status.is_open()
                && operation.status != OperationStatus::AwaitingApproval
                && turn.is_active();
            return Some((at, owed));
        }
        // Calls that were refused are no operations.
        let made = turn.moves.iter().filter_map(|made| made.tool_call.as_ref());
        if made.into_iter().any(|made| *made.tool_call_id == *call) {
            let at = OperationAddress { turn: turn.id.clone(), call: call.into(), attempt: 1 };
            return Some((at, false));
        }
    }
    None
}

/// What is kept of a thread, as messages: for clients that do not send it.
pub fn messages(state: &State) -> Vec<Value> {
    let mut messages = Vec::new();
    for asked in asked(state) {
        let turn = asked.turn;
        messages.push(json!({"id": format!("{}-user", turn.id), "role": "user", "content": turn.user_text}));
        let mut reply = 0;
        for message in &turn.transcript {
            match message {
                ModelMessage::Assistant { text, tool_calls } => {
                    reply += 1;
                    let mut entry = json!({"id": message_id(turn.id.as_str(), reply), "role": "assistant"});
                    if !text.is_empty() {
                        entry["content"] = json!(text);
                    }
                    if !tool_calls.is_empty() {
                        entry["toolCalls"] = tool_calls
                            .iter()
                            .map(|call| {
                                json!({
                                    "id": call.id,
                                    "type": "function",
                                    "function": {"name": call.name, "arguments": arguments_of(&call.arguments)},
                                })
                            })
                            .collect();
                    }
                    messages.push(entry);
                }
                ModelMessage::Tool(result) => messages.push(json!({
                    "id": result_id(&result.call_id),
                    "role": "tool",
                    "toolCallId": result.call_id,
                    "content": content_of(&result.content),
                })),
                ModelMessage::User { .. } | ModelMessage::Notice { .. } => {}
            }
        }
    }
    messages
}
