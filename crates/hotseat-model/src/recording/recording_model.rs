//! Records the traffic of a model.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::exchange::{FORMAT_NAME, FORMAT_VERSION, RecordedExchange, RecordingHeader, digest};
use crate::{Model, ModelError, ModelErrorKind, ModelRequest, ReplyFuture, ReplySink};

/// A model that records its traffic, one line per call, before it returns the answer. Cancelled calls are not
/// recorded.
///
/// ```
/// use hotseat_model::recording::RecordingModel;
/// use hotseat_model::script::{Rule, ModelScript, ScriptedModel};
/// use hotseat_model::{LiveModel, Model};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = ModelScript::builder("greeter").rule(Rule::new().say("Hello.")).build()?;
/// let file = Vec::new(); // or a file
/// let model = RecordingModel::new(LiveModel::new(ScriptedModel::new(script)), file)?;
/// assert_eq!(model.name(), "greeter");
/// # Ok(())
/// # }
/// ```
pub struct RecordingModel<M> {
    model: M,
    out: Mutex<Box<dyn Write + Send>>,
}

impl<M: Model> RecordingModel<M> {
    /// Starts a recording.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(model: M, out: impl Write + Send + 'static) -> io::Result<Self> {
        let header = RecordingHeader {
            format: FORMAT_NAME.to_owned(),
            version: FORMAT_VERSION,
            model: model.name().to_owned(),
        };
        let mut out: Box<dyn Write + Send> = Box::new(out);
        write_line(&mut *out, &header)?;
        Ok(RecordingModel { model, out: Mutex::new(out) })
    }

    fn write(&self, exchange: &RecordedExchange) -> io::Result<()> {
        write_line(&mut **self.out.lock().unwrap_or_else(PoisonError::into_inner), exchange)
    }
}

/// Writes a line with a single write call, so that a truncated file ends between or within lines.
fn write_line(out: &mut dyn Write, line: &impl serde::Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    out.write_all(&bytes)?;
    out.flush()
}

impl<M: Model> Model for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let answer = self.model.call(request, sink).await;
            let exchange = RecordedExchange {
                digest: digest(request),
                request: request.clone(),
                took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                outcome: answer.clone().into(),
            };
            match self.write(&exchange) {
                Ok(()) => answer,
                Err(error) => {
                    let message = format!("the recording cannot be written: {error}");
                    Err(ModelError::new(ModelErrorKind::Configuration, message))
                }
            }
        })
    }
}

impl<M: fmt::Debug> fmt::Debug for RecordingModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingModel").field("model", &self.model).finish_non_exhaustive()
    }
}
