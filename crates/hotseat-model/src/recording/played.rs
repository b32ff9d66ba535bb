//! Answers from a recording.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::diff::changes;
use super::exchange::{Exchange, FORMAT, FORMAT_VERSION, Header, asked};
use crate::{ErrorKind, ModelError, Position, PureModel, Reply, Request, Timed};

/// A model that answers what was recorded.
///
/// A call gets what was recorded at its position, if it asks the same. Where several calls were recorded at one
/// position, as for calls whose position is not known, they are played in order. A conversation that has another id
/// than when it was recorded is recognised by its first request.
pub struct Played {
    name: String,
    file: String,
    exchanges: Vec<Exchange>,
    by_position: BTreeMap<Position, Vec<usize>>,
    played: Vec<bool>,
    /// The recorded conversation that each conversation goes on with.
    bound: BTreeMap<String, String>,
    in_recorded_time: bool,
}

/// A recording that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingError {
    /// What is wrong, a line each, with the line of the file where there is one. Never empty.
    pub mistakes: Vec<String>,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistakes.join("\n"))
    }
}

impl std::error::Error for RecordingError {}

impl Played {
    /// Reads a recording. `file` is what its mistakes are shown with.
    ///
    /// # Errors
    /// When it is not a recording, is of a newer version, or has lines that cannot be read.
    pub fn parse(file: &str, text: &str) -> Result<Played, RecordingError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let name = header(file, lines.next().map(|(_, line)| line))
            .map_err(|mistake| RecordingError { mistakes: vec![mistake] })?;
        let (mut exchanges, mut mistakes) = (Vec::new(), Vec::new());
        for (index, line) in lines {
            match serde_json::from_str::<Exchange>(line) {
                Ok(exchange) => exchanges.push(exchange),
                Err(error) => {
                    let place = format!(" at line {} column {}", error.line(), error.column());
                    let said = error.to_string();
                    let said = said.strip_suffix(&place).unwrap_or(&said);
                    mistakes.push(format!("{file}:{}:{}: {said}", index + 1, error.column()));
                }
            }
        }
        if !mistakes.is_empty() {
            return Err(RecordingError { mistakes });
        }
        let mut by_position: BTreeMap<Position, Vec<usize>> = BTreeMap::new();
        for (index, exchange) in exchanges.iter().enumerate() {
            by_position.entry(exchange.request.position.clone()).or_default().push(index);
        }
        let played = vec![false; exchanges.len()];
        let (file, bound) = (file.to_owned(), BTreeMap::new());
        Ok(Played { name, file, exchanges, by_position, played, bound, in_recorded_time: false })
    }

    /// The answers take as long as they took when they were recorded; otherwise they are there at once.
    pub fn in_recorded_time(self) -> Self {
        Played { in_recorded_time: true, ..self }
    }

    /// What was recorded and has not been played, in order.
    pub fn unplayed(&self) -> Vec<&Exchange> {
        let exchanges = self.exchanges.iter().zip(&self.played);
        exchanges.filter(|(_, played)| !**played).map(|(exchange, _)| exchange).collect()
    }

    /// The recorded exchange that answers a request.
    fn find(&mut self, request: &Request) -> Result<usize, ModelError> {
        let conversation = self.recorded_conversation(request);
        let position = Position { conversation, ..request.position.clone() };
        let Some(here) = self.by_position.get(&position) else {
            return Err(self.not_recorded(request, &position.conversation));
        };
        let wanted = asked(request);
        let equal = |index: &&usize| asked(&self.exchanges[**index].request) == wanted;
        let next = here.iter().filter(equal).find(|index| !self.played[**index]);
        // A call that is made again, for instance after a restart, gets the same answer again.
        if let Some(index) = next.or_else(|| here.iter().rfind(equal)) {
            return Ok(*index);
        }
        let nearest = here.iter().find(|index| !self.played[**index]).unwrap_or(&here[here.len() - 1]);
        Err(self.changed(request, *nearest))
    }

    /// The recorded id of the conversation of a request: the same, or that of a conversation which began alike and
    /// belongs to no other one.
    fn recorded_conversation(&mut self, request: &Request) -> String {
        let live = &request.position.conversation;
        if let Some(bound) = self.bound.get(live) {
            return bound.clone();
        }
        if self.by_position.keys().any(|recorded| recorded.conversation == *live) {
            return live.clone();
        }
        let wanted = asked(request);
        let alike = self.exchanges.iter().map(|exchange| &exchange.request).find(|recorded| {
            let is_free = !self.bound.values().any(|bound| *bound == recorded.position.conversation);
            is_free && same_step(&recorded.position, &request.position) && asked(recorded) == wanted
        });
        match alike {
            Some(recorded) => {
                let recorded = recorded.position.conversation.clone();
                self.bound.insert(live.clone(), recorded.clone());
                recorded
            }
            None => live.clone(),
        }
    }

    fn not_recorded(&self, request: &Request, conversation: &str) -> ModelError {
        let mut recorded =
            self.by_position.keys().filter(|position| position.conversation == conversation).peekable();
        let alike = |exchange: &Exchange| same_step(&exchange.request.position, &request.position);
        // An unknown conversation may be one that began otherwise: what differs says more than that it is unknown.
        if recorded.peek().is_none()
            && let Some(index) = self.exchanges.iter().position(alike)
        {
            return self.changed(request, index);
        }
        let mut message = format!("{} has no answer for {}", self.file, request.position);
        if recorded.peek().is_none() {
            message.push_str(&format!("; it holds {} calls of other conversations", self.exchanges.len()));
        }
        message.extend(recorded.map(|position| format!("\n  recorded: {position}")));
        ModelError::new(ErrorKind::Unanswered, message)
    }

    fn changed(&self, request: &Request, index: usize) -> ModelError {
        let recorded = &self.exchanges[index].request;
        let mut message =
            format!("the request of {} is not the one that {} holds", request.position, self.file);
        for change in changes(&asked(recorded), &asked(request)) {
            message.push_str("\n  ");
            message.push_str(&change);
        }
        ModelError::new(ErrorKind::Unanswered, message)
    }
}

/// Whether two positions differ in nothing but the conversation.
fn same_step(one: &Position, other: &Position) -> bool {
    let step = |position: &Position| (position.turn, position.call, position.attempt);
    one.agent == other.agent && step(one) == step(other)
}

/// The name of the recorded model.
fn header(file: &str, line: Option<&str>) -> Result<String, String> {
    let Some(line) = line else { return Err(format!("{file} is empty, and no recording")) };
    match serde_json::from_str::<Header>(line) {
        Ok(header) if header.format != FORMAT => {
            Err(format!("{file}:1: this is {:?}, and not a recording ({FORMAT:?})", header.format))
        }
        Ok(header) if header.version > FORMAT_VERSION => Err(format!(
            "{file}:1: the recording has version {}, and this program reads up to {FORMAT_VERSION}",
            header.version
        )),
        Ok(header) => Ok(header.model),
        Err(error) => Err(format!("{file}:1: this is not the first line of a recording: {error}")),
    }
}

impl PureModel for Played {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(&mut self, request: &Request) -> Timed<Result<Reply, ModelError>> {
        match self.find(request) {
            Ok(index) => {
                self.played[index] = true;
                let exchange = &self.exchanges[index];
                let took = if self.in_recorded_time { exchange.took_ms } else { 0 };
                Timed { delay: Duration::from_millis(took), value: exchange.outcome.clone().into() }
            }
            Err(error) => Timed::now(Err(error)),
        }
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played")
            .field("file", &self.file)
            .field("exchanges", &self.exchanges.len())
            .finish_non_exhaustive()
    }
}
