//! What answers the requests of a served model in one conversation.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_serve::TextCleaner;

use super::cassette::{CassetteFile, RecordTarget, RelayedExchange, ReplayTable};
use super::relay::ModelRelay;
use super::served_model::ServedSource;
use crate::{Model, ModelError};

/// What answers the requests of a served model in one conversation.
pub(super) enum AnswerSource {
    Model(Arc<dyn Model>),
    /// A provider, and a recording of its answers.
    Relay(Arc<ModelRelay>, Option<LaneRecorder>),
    /// A recording.
    Replay(Mutex<ReplayTable>),
}

impl AnswerSource {
    /// Opens a source for a conversation.
    pub(super) fn new(source: ServedSource, model: &str) -> AnswerSource {
        match source {
            ServedSource::Model(model) => AnswerSource::Model(model),
            ServedSource::Relay(relay, target) => AnswerSource::Relay(relay, target.map(LaneRecorder::new)),
            ServedSource::Replay(replay) => AnswerSource::Replay(Mutex::new(ReplayTable::new(replay, model))),
        }
    }

    /// Returns the names of the answers that no call has used.
    pub(super) fn unused(&self) -> Vec<String> {
        match self {
            AnswerSource::Model(model) => model.unused(),
            AnswerSource::Relay(..) => Vec::new(),
            AnswerSource::Replay(table) => table.lock().unwrap_or_else(PoisonError::into_inner).unused(),
        }
    }

    /// Writes the recording of a relay.
    pub(super) fn save_recording(&self, model: &str) -> Result<(), RecordError> {
        match self {
            AnswerSource::Relay(_, Some(recorder)) => recorder.save(model),
            AnswerSource::Relay(_, None) | AnswerSource::Model(_) | AnswerSource::Replay(_) => Ok(()),
        }
    }
}

/// Error of the recording of a relay.
#[derive(Debug, thiserror::Error)]
#[error("cannot record to {}: {problem}", .path.display())]
pub struct RecordError {
    path: PathBuf,
    #[source]
    problem: RecordProblem,
}

/// Why a recording is incomplete, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordProblem {
    #[error("{0}")]
    Incomplete(String),
    #[error("an answer that is no text cannot be recorded")]
    NoText,
    #[error("the exchanges of the conversation are longer than {0} bytes")]
    TooLarge(usize),
    #[error("the agent ended the conversation before all its requests were answered")]
    Unanswered,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Collects the exchanges of a conversation for a recording.
pub(super) struct LaneRecorder {
    file: Arc<CassetteFile>,
    pub(super) lane: String,
    pub(super) cleaner: TextCleaner,
    collected: Mutex<CollectedExchanges>,
}

/// Exchanges that are not yet in their file.
#[derive(Default)]
struct CollectedExchanges {
    /// Exchanges with the numbers of their requests.
    exchanges: Vec<(u64, RelayedExchange)>,
    bytes: usize,
    /// Number of requests that the provider has not answered yet.
    open: usize,
    /// Why the recording is incomplete.
    failure: Option<String>,
}

/// A relayed request until its answer is recorded.
pub(super) struct OpenExchange<'a> {
    recorder: &'a LaneRecorder,
    path: String,
    is_awaited: bool,
    is_added: bool,
}

impl OpenExchange<'_> {
    /// Adds the exchange, unless the recording is too large.
    pub(super) fn add(
        mut self,
        number: u64,
        exchange: RelayedExchange,
        max_bytes: usize,
    ) -> Result<(), RecordProblem> {
        self.is_added = true;
        self.recorder.add(number, exchange, max_bytes)
    }

    /// Notes why the request has no answer.
    pub(super) fn fail(&self, error: &ModelError) {
        self.recorder.fail(format!("a request to `{}` has no answer: {}", self.path, error.message));
    }
}

impl Drop for OpenExchange<'_> {
    /// A request without an answer cannot be replayed. Unless it failed, the agent has left.
    fn drop(&mut self) {
        self.recorder.collected().open -= usize::from(self.is_awaited);
        if !self.is_added {
            let path = &self.path;
            self.recorder.fail(format!("the agent cancelled a request to `{path}`"));
        }
    }
}

impl LaneRecorder {
    pub(super) fn new(target: RecordTarget) -> LaneRecorder {
        let RecordTarget { file, lane, cleaner } = target;
        LaneRecorder { file, lane, cleaner, collected: Mutex::default() }
    }

    fn collected(&self) -> MutexGuard<'_, CollectedExchanges> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an exchange, unless the recording is too large.
    fn add(&self, number: u64, exchange: RelayedExchange, max_bytes: usize) -> Result<(), RecordProblem> {
        let mut collected = self.collected();
        collected.bytes += exchange.request.to_string().len() + exchange.response.to_string().len();
        if collected.bytes > max_bytes {
            return Err(RecordProblem::TooLarge(max_bytes));
        }
        collected.exchanges.push((number, exchange));
        Ok(())
    }

    /// Begins an exchange. The recording is incomplete if it is never added. `is_awaited` says whether the session waits for
    /// the end of the exchange: then the recording is incomplete until it is added, too.
    pub(super) fn begin(&self, path: &str, is_awaited: bool) -> OpenExchange<'_> {
        self.collected().open += usize::from(is_awaited);
        OpenExchange { recorder: self, path: path.to_owned(), is_awaited, is_added: false }
    }

    pub(super) fn fail(&self, message: String) {
        self.collected().failure.get_or_insert(message);
    }

    /// Writes the exchanges to the file.
    ///
    /// # Errors
    /// Why the recording is incomplete, or cannot be written.
    pub(super) fn save(&self, model: &str) -> Result<(), RecordError> {
        let collected = self.collected();
        let unwritable = |problem| RecordError { path: self.file.path().to_owned(), problem };
        if let Some(reason) = &collected.failure {
            return Err(unwritable(RecordProblem::Incomplete(reason.clone())));
        }
        if collected.open > 0 {
            return Err(unwritable(RecordProblem::Unanswered));
        }
        let mut exchanges = collected.exchanges.clone();
        exchanges.sort_by_key(|(number, _)| *number);
        let exchanges = exchanges.into_iter().map(|(_, exchange)| exchange).collect();
        self.file.save(&self.lane, model, exchanges).map_err(|error| unwritable(error.into()))
    }
}
