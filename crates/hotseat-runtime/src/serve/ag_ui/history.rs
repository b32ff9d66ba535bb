//! Compares a request with the stored history of its thread.
//!
//! A client sends the whole conversation with each request. The stored history is authoritative: the messages
//! of the request must begin with it, and the remaining messages are new.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::client::{ClientToolAnswer, RequestError, check_user_text, repeated_result};
use super::request::{MessageBody, ThreadCall, ThreadMessage};
use super::stored_thread::{CallAnswerer, CallDifference, ReplyIndex, StoredThread};
use crate::conversation::{ContextEntry, ConversationState, OperationAddress, TurnCaller, TurnState};

/// New input in a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewInput {
    /// Results of client tools.
    pub results: Vec<(OperationAddress, ClientToolAnswer)>,
    /// Message of the user.
    pub user: Option<NewUserMessage>,
    /// Messages from before the thread existed here; sent to the model with every offer.
    pub earlier: Option<ContextEntry>,
    /// True if the client leaves the history to the server and sends only what is new.
    pub is_without_history: bool,
}

/// New message of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct NewUserMessage {
    /// Text of the message; several messages are joined.
    pub text: String,
    /// The id that the client gave to the last of them.
    pub id: Option<Arc<str>>,
}

/// A turn of the user and the number of failed repetitions before it.
struct RepeatedUserTurn<'s> {
    /// Index of the turn among all of the thread.
    index: usize,
    turn: &'s TurnState,
    repeats: usize,
}

impl RepeatedUserTurn<'_> {
    /// Returns the message of the turn as a new one, if the turn failed: a repeated request asks a failed question again.
    fn repeated_message(&self, stored: &StoredThread<'_>) -> Option<NewUserMessage> {
        let message = NewUserMessage { text: self.turn.user_text.clone(), id: client_id(self.turn).cloned() };
        stored.turns[self.index].has_failed().then_some(message)
    }
}

/// Returns the new input in these messages for a thread in `state`. `is_resumed` is true if the request answers approvals.
///
/// # Errors
/// If the messages contradict the thread or lack a part of it, or if the new message of the user has no text.
pub fn new_input(
    state: &ConversationState,
    messages: &[ThreadMessage],
    is_resumed: bool,
) -> Result<NewInput, RequestError> {
    let stored = StoredThread::new(state);
    let kept = user_turns(&stored);
    let earlier = state.offer.context.iter().find(|entry| entry.is_earlier()).cloned();
    if kept.is_empty() {
        return start_thread(messages);
    }
    let mut comparison = HistoryComparison::new(&stored, &kept);
    // Clients that leave the history to the server send only the new message.
    if let [message @ ThreadMessage { body: MessageBody::User(text), .. }] = messages {
        let sent = comparison.sent_turn(&kept, message, text)?;
        let user = match sent {
            None => Some(new_user_message(&[(message, text)])?),
            Some(asked) => asked.repeated_message(&stored),
        };
        // The only message of a thread is its whole history.
        let is_without_history = sent.is_none() || kept.len() > 1 || earlier.is_some();
        return Ok(NewInput { user, earlier, is_without_history, ..NewInput::default() });
    }
    if messages.iter().all(|message| matches!(message.body, MessageBody::Tool { .. })) {
        for message in messages {
            comparison.read_result(message)?;
        }
        let results = comparison.results;
        return Ok(NewInput { results, earlier, is_without_history: true, ..NewInput::default() });
    }
    let mut rest = skip_earlier_messages(earlier.as_ref(), messages)?;
    // Greetings shown by the client are not part of the stored history.
    while let [ThreadMessage { body: MessageBody::Assistant { calls, .. }, .. }, others @ ..] = rest
        && calls.is_empty()
    {
        rest = others;
    }
    for (number, asked) in kept.iter().enumerate() {
        rest = comparison.read_turn(asked, rest, (number, kept.len()))?;
    }
    let mut said = Vec::new();
    for message in rest {
        match &message.body {
            MessageBody::User(text) => said.push((message, text.as_str())),
            MessageBody::Tool { .. } => comparison.read_result(message)?,
            MessageBody::Assistant { text, calls } if text.is_empty() && calls.is_empty() => {}
            MessageBody::Assistant { .. } => return Err(unknown_reply(message)),
        }
    }
    let HistoryComparison { results, received, .. } = comparison;
    let user = match kept.last() {
        _ if !said.is_empty() => Some(new_user_message(&said)?),
        Some(last) if results.is_empty() => last.repeated_message(&stored),
        _ => None,
    };
    let news = NewInput { results, user, earlier, is_without_history: false };
    // A request without anything new is answered with what it lacks.
    match is_resumed || news.user.is_some() || !news.results.is_empty() {
        true => received.check(&stored, &kept).map(|()| news),
        false => Ok(news),
    }
}

/// Joins new messages of the user.
///
/// # Errors
/// If one of them has no text.
fn new_user_message(said: &[(&ThreadMessage, &str)]) -> Result<NewUserMessage, RequestError> {
    for (message, text) in said {
        check_user_text(&format!("messages[{}].content", message.place), text)?;
    }
    let texts: Vec<&str> = said.iter().map(|(_, text)| *text).collect();
    let id = said.last().map(|(message, _)| message.id.as_str()).filter(|id| !id.is_empty()).map(Arc::from);
    Ok(NewUserMessage { text: texts.join("\n\n"), id })
}

/// Skips the messages from before the thread existed here.
///
/// # Errors
/// If they are not the ones that the model has received.
fn skip_earlier_messages<'m>(
    entry: Option<&ContextEntry>,
    messages: &'m [ThreadMessage],
) -> Result<&'m [ThreadMessage], RequestError> {
    let told =
        entry.and_then(|entry| serde_json::from_str::<Vec<Value>>(&entry.value).ok()).unwrap_or_default();
    for (told, message) in told.iter().zip(messages) {
        if *told != context_message(message) {
            let at = format!("messages[{}]", message.place);
            return Err(changed_history(&at, "is not the message that this thread began with"));
        }
    }
    Ok(messages.get(told.len()..).unwrap_or_default())
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
    let said: Vec<_> = new.iter().filter_map(|message| Some((message, user_text(message)?))).collect();
    let spoken = before.iter().any(|message| matches!(message.body, MessageBody::User(_)));
    let earlier = spoken.then(|| {
        let told: Vec<Value> = before.iter().map(context_message).collect();
        ContextEntry::earlier(told)
    });
    Ok(NewInput { user: Some(new_user_message(&said)?), earlier, ..NewInput::default() })
}

/// Returns a message as JSON for the model's context.
fn context_message(message: &ThreadMessage) -> Value {
    match &message.body {
        MessageBody::User(text) => json!({"role": "user", "content": text}),
        MessageBody::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        MessageBody::Assistant { text, calls } => {
            let call = |call: &ThreadCall| {
                let function = json!({"name": call.tool, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        MessageBody::Tool {
            call,
            result: ClientToolAnswer::Result(text) | ClientToolAnswer::Error(text),
        } => json!({"role": "tool", "tool_call_id": call, "content": text}),
    }
}

/// Returns the user's turns. A failed turn followed by a turn with the same text counts as one repeated turn.
fn user_turns<'s>(stored: &StoredThread<'s>) -> Vec<RepeatedUserTurn<'s>> {
    let mut kept: Vec<RepeatedUserTurn<'_>> = Vec::new();
    for (index, entry) in stored.turns.iter().enumerate().filter(|(_, entry)| entry.is_user_turn()) {
        let turn = entry.turn;
        match kept.last_mut() {
            Some(last) if stored.turns[last.index].has_failed() && last.turn.user_text == turn.user_text => {
                *last = RepeatedUserTurn { index, turn, repeats: last.repeats + 1 };
            }
            _ => kept.push(RepeatedUserTurn { index, turn, repeats: 0 }),
        }
    }
    kept
}

/// Returns the id that the client gave to the message of a turn.
fn client_id(turn: &TurnState) -> Option<&Arc<str>> {
    match &turn.caller {
        TurnCaller::User { message_id, .. } => message_id.as_ref(),
        TurnCaller::Agent { .. } | TurnCaller::Workflow { .. } => None,
    }
}

fn user_text(message: &ThreadMessage) -> Option<&str> {
    match &message.body {
        MessageBody::User(text) => Some(text),
        MessageBody::Assistant { .. } | MessageBody::Tool { .. } => None,
    }
}

/// Compares the messages of a request with the thread and collects results of client tools.
struct HistoryComparison<'s, 't> {
    stored: &'t StoredThread<'s>,
    /// Index of the user's turn, with its repetitions as one, by index of the turn.
    numbers: HashMap<usize, usize>,
    results: Vec<(OperationAddress, ClientToolAnswer)>,
    /// Calls that the results answer, with the index of the result.
    answered: HashMap<&'s str, usize>,
    received: ReceivedMessages<'s>,
}

/// What the client has of the thread.
#[derive(Default)]
struct ReceivedMessages<'s> {
    replies: HashSet<ReplyIndex>,
    /// Replies whose text the client has.
    texts: HashSet<ReplyIndex>,
    calls: HashSet<&'s str>,
    results: HashSet<&'s str>,
}

impl<'s, 't> HistoryComparison<'s, 't> {
    fn new(stored: &'t StoredThread<'s>, kept: &[RepeatedUserTurn<'s>]) -> Self {
        let mut numbers = HashMap::new();
        let mut number = 0;
        for (index, _) in stored.turns.iter().enumerate().filter(|(_, entry)| entry.is_user_turn()) {
            while kept.get(number).is_some_and(|kept| kept.index < index) {
                number += 1;
            }
            numbers.insert(index, number);
        }
        let (results, answered, received) = (Vec::new(), HashMap::new(), ReceivedMessages::default());
        HistoryComparison { stored, numbers, results, answered, received }
    }

    /// Returns the turn in which a message of the user was sent before: the one with its id. The message of a thread's only turn may
    /// have no id; then the text counts.
    ///
    /// # Errors
    /// If the message had another text.
    fn sent_turn<'k>(
        &self,
        kept: &'k [RepeatedUserTurn<'s>],
        message: &ThreadMessage,
        text: &str,
    ) -> Result<Option<&'k RepeatedUserTurn<'s>>, RequestError> {
        let has_id = |turn: &TurnState| client_id(turn).is_some_and(|id| **id == *message.id);
        let Some(index) = self.stored.turns.iter().rposition(|entry| has_id(entry.turn)) else {
            let only = kept.first().filter(|only| kept.len() == 1 && client_id(only.turn).is_none());
            return Ok(only.filter(|only| only.turn.user_text == text));
        };
        let number = self.numbers.get(&index).copied().unwrap_or_default();
        let sent = kept.get(number).filter(|sent| sent.turn.user_text == text);
        sent.map(Some).ok_or_else(|| {
            let at = format!("messages[{}]", message.place);
            let problem = format!(
                "{at} has the id {:?} of the message of the user in turn {} of this thread and another text: the history of a thread \
                 cannot be changed; give a new message an id of its own, or start a new thread with another threadId",
                message.id,
                number + 1
            );
            RequestError::conflict(problem).with_member(at)
        })
    }

    /// Skips the messages of a stored turn, which is the one with this number among all of the user.
    fn read_turn<'m>(
        &mut self,
        asked: &RepeatedUserTurn<'s>,
        messages: &'m [ThreadMessage],
        (number, kept): (usize, usize),
    ) -> Result<&'m [ThreadMessage], RequestError> {
        let mut rest = skip_user_messages(asked.turn, messages, number, kept)?;
        // The message may occur once for each repetition, with the parts of a failed reply in between.
        for _ in 0..asked.repeats {
            let (others, is_answered) = self.read_replies(asked.index, number, rest)?;
            rest = others;
            match rest {
                [again, others @ ..] if !is_answered && user_text(again) == Some(&asked.turn.user_text) => {
                    rest = others;
                }
                _ => return Ok(rest),
            }
        }
        Ok(self.read_replies(asked.index, number, rest)?.0)
    }

    /// Skips the answers of a stored turn. Also returns true if one of them is more than a part of a failed turn.
    fn read_replies<'m>(
        &mut self,
        turn: usize,
        number: usize,
        messages: &'m [ThreadMessage],
    ) -> Result<(&'m [ThreadMessage], bool), RequestError> {
        let mut is_answered = false;
        // Index of the first reply that a message without a known id may be.
        let mut next = 0;
        for (index, message) in messages.iter().enumerate() {
            match &message.body {
                MessageBody::User(_) => return Ok((&messages[index..], is_answered)),
                MessageBody::Tool { .. } => self.read_result(message)?,
                MessageBody::Assistant { text, calls } => {
                    let place = match self.find_reply(message, calls)? {
                        Some(place) => Some(place),
                        None if text.trim().is_empty() => None,
                        None if self.stored.is_unfinished_reply(&message.id) => None,
                        None => {
                            let replies = self.stored.turns[turn].replies.iter().skip(next);
                            let found =
                                replies.map(|reply| reply.text.trim()).position(|known| known == text.trim());
                            let reply = next + found.ok_or_else(|| unknown_reply(message))?;
                            next = reply + 1;
                            Some(ReplyIndex { turn, reply })
                        }
                    };
                    if let Some(place) = place {
                        self.compare_reply(place, number, message, text)?;
                        self.received.replies.insert(place);
                        if !text.trim().is_empty() {
                            self.received.texts.insert(place);
                        }
                        is_answered |= !self.stored.turns[place.turn].has_failed();
                    }
                }
            }
        }
        Ok((&[], is_answered))
    }

    /// Compares the calls of a message, and returns the reply that has its id or one of its calls.
    fn find_reply(
        &mut self,
        message: &ThreadMessage,
        calls: &[ThreadCall],
    ) -> Result<Option<ReplyIndex>, RequestError> {
        let mut place = self.stored.place_of(&message.id);
        for (index, said) in calls.iter().enumerate() {
            let at = format!("messages[{}].toolCalls[{index}]", message.place);
            match self.stored.call(&said.id) {
                Some((id, call)) => match call.difference(said) {
                    None => {
                        self.received.calls.insert(id);
                        place = place.or(call.reply);
                    }
                    Some(CallDifference::Tool) => {
                        return Err(changed_history(&at, "names another tool than this call in this thread"));
                    }
                    Some(CallDifference::Arguments) => {
                        return Err(changed_history(
                            &at,
                            "has other arguments than this call in this thread",
                        ));
                    }
                },
                // Clients may send the calls of called agents back.
                None if self.stored.is_nested_call(&said.id) => {}
                None => return Err(changed_history(&at, "is not a call of the agent in this thread")),
            }
        }
        Ok(place)
    }

    /// Compares the position and the text of a message with a reply. Clients may separate the text from the calls.
    fn compare_reply(
        &self,
        place: ReplyIndex,
        number: usize,
        message: &ThreadMessage,
        text: &str,
    ) -> Result<(), RequestError> {
        let turn = &self.stored.turns[place.turn];
        let known = self.stored.reply(place).map_or("", |reply| reply.text.trim());
        let in_part = turn.may_be_received_in_part();
        let is_said =
            known == text.trim() || text.trim().is_empty() || in_part && known.starts_with(text.trim());
        // Messages of asynchronous tools arrive after later messages of the user.
        let is_in_place =
            self.numbers.get(&place.turn).is_none_or(|own| *own == number || in_part && *own < number);
        match is_said && is_in_place {
            true => Ok(()),
            false => Err(unknown_reply(message)),
        }
    }

    /// Collects a result if its call waits for the client; other results must be those of the thread.
    fn read_result(&mut self, message: &ThreadMessage) -> Result<(), RequestError> {
        let MessageBody::Tool { call: id, result } = &message.body else { return Ok(()) };
        let at = format!("messages[{}]", message.place);
        let Some((id, call)) = self.stored.call(id) else {
            return match self.stored.is_nested_call(id) {
                true => Ok(()),
                false => {
                    let problem = format!("{at}: this thread has no tool call {id:?}");
                    Err(RequestError::conflict(problem).with_member(format!("{at}.toolCallId")))
                }
            };
        };
        match (call.answered_by, call.result.is_some()) {
            (CallAnswerer::WaitingClient, _) => {
                let index = *self.answered.entry(id).or_insert(self.results.len());
                match self.results.get(index) {
                    None => self.results.push((call.at.clone(), result.clone())),
                    Some((_, known)) if known == result => {}
                    Some(_) => {
                        let problem = repeated_result(&at, id);
                        return Err(RequestError::bad_request(format!("{at}.toolCallId"), problem));
                    }
                }
                Ok(())
            }
            (CallAnswerer::Approver, _) => {
                let problem = format!(
                    "{at}: call {id} waits for the approval of a human; answer it with an entry in `resume`"
                );
                Err(RequestError::conflict(problem).with_member(at))
            }
            // The call was cancelled.
            (CallAnswerer::Client, false) => Ok(()),
            (CallAnswerer::Server, false) => {
                Err(changed_history(&at, "is the result of a call that has none in this thread"))
            }
            (CallAnswerer::Client | CallAnswerer::Server, true) => match call.has_result(result) {
                true => {
                    self.received.results.insert(id);
                    Ok(())
                }
                false => Err(changed_history(&at, "is not the result of its call in this thread")),
            },
        }
    }
}

impl ReceivedMessages<'_> {
    /// Checks that no message of the agent is missing. Of a turn that clients may receive in part, those before the last one that
    /// the client has are needed.
    fn check(&self, stored: &StoredThread<'_>, kept: &[RepeatedUserTurn<'_>]) -> Result<(), RequestError> {
        for (number, asked) in kept.iter().enumerate() {
            let turn = &stored.turns[asked.index];
            let has = |reply: usize| self.replies.contains(&ReplyIndex { turn: asked.index, reply });
            let in_part = turn.may_be_received_in_part();
            let needed = match in_part {
                true => (0..turn.replies.len()).rev().find(|reply| has(*reply)).unwrap_or(0),
                false => turn.replies.len(),
            };
            for (index, reply) in turn.replies[..needed].iter().enumerate() {
                let place = ReplyIndex { turn: asked.index, reply: index };
                let has_text = reply.text.trim().is_empty() || self.texts.contains(&place);
                if !has_text || !reply.calls.iter().all(|call| self.calls.contains(call)) {
                    return Err(incomplete_history(&format!("message {} of the agent", reply.id), number));
                }
                let has_result = |id: &&&str| {
                    let call = stored.call(id).filter(|(_, call)| call.result.is_some());
                    call.is_none() || self.results.contains(**id)
                };
                if let Some(call) = reply.calls.iter().find(|call| !in_part && !has_result(call)) {
                    return Err(incomplete_history(&format!("the result of call {call}"), number));
                }
            }
        }
        Ok(())
    }
}

fn incomplete_history(missing: &str, number: usize) -> RequestError {
    let message = format!(
        "the history lacks {missing} in turn {}: send all messages of the thread, which GET /threads/THREAD returns, or only the \
         new one",
        number + 1
    );
    RequestError::conflict(message).with_member("messages")
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

/// Returns the messages of each selected turn of the user, with the ids that the client gave to those of the user.
pub fn messages_of_turns(
    state: &ConversationState,
    is_selected: impl Fn(&TurnState) -> bool,
) -> Vec<Vec<Value>> {
    let stored = StoredThread::new(state);
    let selected = user_turns(&stored).into_iter().filter(|asked| is_selected(asked.turn));
    let messages = selected.map(|asked| {
        let mut messages = stored.messages_of_turn(asked.index);
        if let (Some(said), Some(id)) = (messages.first_mut(), client_id(asked.turn)) {
            said["id"] = json!(id);
        }
        messages
    });
    messages.collect()
}

/// Returns the stored history of a thread as messages, for clients that do not send it.
pub fn messages(state: &ConversationState) -> Vec<Value> {
    let stored = StoredThread::new(state);
    user_turns(&stored).iter().flat_map(|asked| stored.messages_of_turn(asked.index)).collect()
}
