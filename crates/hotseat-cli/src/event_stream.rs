//! The event stream of `--json`.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_engine::run::{RunEvent, RunSettings};
use hotseat_report::reporters::{EventsReporter, Reporter};

/// The event stream on standard output, which still needs its summary line when the run has ended. `None` if it could
/// not be written.
#[derive(Clone)]
pub struct EventStream(Arc<Mutex<Option<EventsReporter<io::Stdout>>>>);

impl EventStream {
    /// Creates a stream without events.
    pub fn new(setting: Arc<RunSettings>) -> EventStream {
        EventStream(Arc::new(Mutex::new(Some(EventsReporter::new(io::stdout(), setting)))))
    }

    /// Writes the summary line. Returns `None` if the stream has failed before.
    pub fn end(&self, exit_code: u8) -> Option<io::Result<()>> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.as_mut().map(|events| events.end(exit_code))
    }
}

impl Reporter for EventStream {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = stream.as_mut().map_or(Ok(()), |events| events.report(event));
        match &written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => *stream = None,
            Ok(()) | Err(_) => {}
        }
        written
    }
}
