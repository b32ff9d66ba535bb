//! Writes down what goes through a model.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::exchange::{Exchange, FORMAT, FORMAT_VERSION, Header, digest};
use crate::{Answering, ErrorKind, Model, ModelError, Request, Sink};

/// A model whose traffic is written down, a line for each call, before the caller gets the answer. Calls that are
/// given up are not in the recording.
///
/// ```
/// use hotseat_model::recording::Recorded;
/// use hotseat_model::script::{Rule, Script, Scripted};
/// use hotseat_model::{Live, Model};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = Script::builder("greeter").rule(Rule::new().say("Hello.")).build()?;
/// let file = Vec::new(); // or a file
/// let model = Recorded::new(Live::new(Scripted::new(script)), file)?;
/// assert_eq!(model.name(), "greeter");
/// # Ok(())
/// # }
/// ```
pub struct Recorded<M> {
    model: M,
    out: Mutex<Box<dyn Write + Send>>,
}

impl<M: Model> Recorded<M> {
    /// Begins a recording.
    ///
    /// # Errors
    /// When the first line cannot be written.
    pub fn new(model: M, out: impl Write + Send + 'static) -> io::Result<Self> {
        let header =
            Header { format: FORMAT.to_owned(), version: FORMAT_VERSION, model: model.name().to_owned() };
        let mut out: Box<dyn Write + Send> = Box::new(out);
        write_line(&mut *out, &header)?;
        Ok(Recorded { model, out: Mutex::new(out) })
    }

    fn write(&self, exchange: &Exchange) -> io::Result<()> {
        write_line(&mut **self.out.lock().unwrap_or_else(PoisonError::into_inner), exchange)
    }
}

/// Writes one line in one piece, so that a file that is cut short ends between two lines or within one.
fn write_line(out: &mut dyn Write, line: &impl serde::Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    out.write_all(&bytes)?;
    out.flush()
}

impl<M: Model> Model for Recorded<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let answer = self.model.call(request, sink).await;
            let exchange = Exchange {
                digest: digest(request),
                request: request.clone(),
                took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                outcome: answer.clone().into(),
            };
            match self.write(&exchange) {
                Ok(()) => answer,
                Err(error) => {
                    let message = format!("the recording cannot be written: {error}");
                    Err(ModelError::new(ErrorKind::Configuration, message))
                }
            }
        })
    }
}

impl<M: fmt::Debug> fmt::Debug for Recorded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("model", &self.model).finish_non_exhaustive()
    }
}
