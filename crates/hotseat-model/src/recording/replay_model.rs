//! Replays a recording.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hotseat_trace::changes;

use super::exchange::{FORMAT_NAME, FORMAT_VERSION, RecordedExchange, RecordingHeader, canonical_json};
use crate::{CallPosition, ModelError, ModelErrorKind, ModelReply, ModelRequest, PureModel, TimedValue};

/// A model that replays a recording.
///
/// A call gets the answer recorded at its position, if the requests are equal. Several calls recorded at one
/// position, such as calls without a known position, are replayed in order. A conversation with a different
/// id than in the recording is recognised by its first request.
pub struct ReplayModel {
    name: String,
    file: String,
    exchanges: Vec<RecordedExchange>,
    by_position: BTreeMap<CallPosition, Vec<usize>>,
    played: Vec<bool>,
    /// Recorded conversation id for each live conversation id.
    conversation_ids: BTreeMap<String, String>,
    uses_recorded_timing: bool,
}

/// A recording that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct RecordingError {
    /// Errors, one line each, with file and line where known. Never empty.
    pub problems: Vec<String>,
}

impl ReplayModel {
    /// Reads a recording. `file` is the file name used in errors.
    ///
    /// # Errors
    /// If it is not a recording, has a newer version or contains invalid lines.
    pub fn parse(file: &str, text: &str) -> Result<ReplayModel, RecordingError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let name = parse_header(file, lines.next().map(|(_, line)| line))
            .map_err(|error| RecordingError { problems: vec![error.to_string()] })?;
        let (mut exchanges, mut mistakes) = (Vec::new(), Vec::new());
        for (index, line) in lines {
            match serde_json::from_str::<RecordedExchange>(line) {
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
            return Err(RecordingError { problems: mistakes });
        }
        let mut by_position: BTreeMap<CallPosition, Vec<usize>> = BTreeMap::new();
        for (index, exchange) in exchanges.iter().enumerate() {
            by_position.entry(exchange.request.position.clone()).or_default().push(index);
        }
        let played = vec![false; exchanges.len()];
        let (file, bound) = (file.to_owned(), BTreeMap::new());
        Ok(ReplayModel {
            name,
            file,
            exchanges,
            by_position,
            played,
            conversation_ids: bound,
            uses_recorded_timing: false,
        })
    }

    /// Replays the recorded durations. By default answers are immediate.
    pub fn with_recorded_timing(self) -> Self {
        ReplayModel { uses_recorded_timing: true, ..self }
    }

    /// Returns the exchanges that were not replayed, in order.
    pub fn unused_exchanges(&self) -> Vec<&RecordedExchange> {
        let exchanges = self.exchanges.iter().zip(&self.played);
        exchanges.filter(|(_, played)| !**played).map(|(exchange, _)| exchange).collect()
    }

    /// Finds the recorded exchange for a request.
    fn find(&mut self, request: &ModelRequest) -> Result<usize, ModelError> {
        let conversation = self.recorded_conversation(request);
        let position = CallPosition { conversation, ..request.position.clone() };
        let Some(here) = self.by_position.get(&position) else {
            return Err(self.not_recorded_error(request, &position.conversation));
        };
        let wanted = canonical_json(request);
        let equal = |index: &&usize| canonical_json(&self.exchanges[**index].request) == wanted;
        let next = here.iter().filter(equal).find(|index| !self.played[**index]);
        // A repeated call, for instance after a restart, gets the same answer again.
        if let Some(index) = next.or_else(|| here.iter().rfind(equal)) {
            return Ok(*index);
        }
        let nearest = here.iter().find(|index| !self.played[**index]).unwrap_or(&here[here.len() - 1]);
        Err(self.changed_request_error(request, *nearest))
    }

    /// Returns the recorded conversation id for a request: the same id, or that of an unassigned conversation
    /// with the same first request.
    fn recorded_conversation(&mut self, request: &ModelRequest) -> String {
        let live = &request.position.conversation;
        if let Some(bound) = self.conversation_ids.get(live) {
            return bound.clone();
        }
        if self.by_position.keys().any(|recorded| recorded.conversation == *live) {
            return live.clone();
        }
        let wanted = canonical_json(request);
        let alike = self.exchanges.iter().map(|exchange| &exchange.request).find(|recorded| {
            let is_free =
                !self.conversation_ids.values().any(|bound| *bound == recorded.position.conversation);
            is_free && same_step(&recorded.position, &request.position) && canonical_json(recorded) == wanted
        });
        match alike {
            Some(recorded) => {
                let recorded = recorded.position.conversation.clone();
                self.conversation_ids.insert(live.clone(), recorded.clone());
                recorded
            }
            None => live.clone(),
        }
    }

    fn not_recorded_error(&self, request: &ModelRequest, conversation: &str) -> ModelError {
        let mut recorded =
            self.by_position.keys().filter(|position| position.conversation == conversation).peekable();
        let alike = |exchange: &RecordedExchange| same_step(&exchange.request.position, &request.position);
        // An unknown conversation may be a known one with a different start; the difference is more
        // informative.
        if recorded.peek().is_none()
            && let Some(index) = self.exchanges.iter().position(alike)
        {
            return self.changed_request_error(request, index);
        }
        let mut message = format!("{} has no answer for {}", self.file, request.position);
        if recorded.peek().is_none() {
            message.push_str(&format!("; it holds {} calls of other conversations", self.exchanges.len()));
        }
        message.extend(recorded.map(|position| format!("\n  recorded: {position}")));
        ModelError::new(ModelErrorKind::Unanswered, message)
    }

    fn changed_request_error(&self, request: &ModelRequest, index: usize) -> ModelError {
        let recorded = &self.exchanges[index].request;
        let mut message =
            format!("the request of {} differs from the one recorded in {}", request.position, self.file);
        for change in changes(&canonical_json(recorded), &canonical_json(request)) {
            message.push_str("\n  ");
            message.push_str(&change);
        }
        ModelError::new(ModelErrorKind::Unanswered, message)
    }
}

/// Returns true if two positions differ at most in the conversation.
fn same_step(one: &CallPosition, other: &CallPosition) -> bool {
    let step = |position: &CallPosition| (position.turn, position.call, position.attempt);
    one.agent == other.agent && step(one) == step(other)
}

/// Error of the first line of a recording; each has the name of the file.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("{0} is empty and not a recording")]
    Empty(String),
    #[error("{0}:1: this is not the first line of a recording: {1}")]
    NoHeader(String, #[source] serde_json::Error),
    #[error("{0}:1: this is {1:?}, not a recording ({FORMAT_NAME:?})")]
    Format(String, String),
    #[error(
        "{0}:1: the recording has version {1}, but this program supports versions up to {FORMAT_VERSION}"
    )]
    Version(String, u32),
}

/// Parses the header and returns the name of the recorded model.
fn parse_header(file: &str, line: Option<&str>) -> Result<String, HeaderError> {
    let file = file.to_owned();
    let Some(line) = line else { return Err(HeaderError::Empty(file)) };
    match serde_json::from_str::<RecordingHeader>(line) {
        Ok(header) if header.format != FORMAT_NAME => Err(HeaderError::Format(file, header.format)),
        Ok(header) if header.version > FORMAT_VERSION => Err(HeaderError::Version(file, header.version)),
        Ok(header) => Ok(header.model),
        Err(error) => Err(HeaderError::NoHeader(file, error)),
    }
}

impl PureModel for ReplayModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(&mut self, request: &ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> {
        match self.find(request) {
            Ok(index) => {
                self.played[index] = true;
                let exchange = &self.exchanges[index];
                let took = if self.uses_recorded_timing { exchange.took_ms } else { 0 };
                TimedValue { delay: Duration::from_millis(took), value: exchange.outcome.clone().into() }
            }
            Err(error) => TimedValue::now(Err(error)),
        }
    }
}

impl fmt::Debug for ReplayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayModel")
            .field("file", &self.file)
            .field("exchanges", &self.exchanges.len())
            .finish_non_exhaustive()
    }
}
