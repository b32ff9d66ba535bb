//! The reporters of a run.

use std::io;

use hotseat_engine::run::RunEvent;

use crate::reporters::Reporter;

/// All reporters of a run. A reporter that fails to write is dropped; the run continues and ends with an
/// error status.
#[derive(Default)]
pub struct ReporterSet {
    /// Reporters by the name of their output. Those that ignore a closed pipe come last, because they report the
    /// failures of the others.
    pub reporters: Vec<(String, Box<dyn Reporter>)>,
    /// Problems that do not affect the result.
    pub warnings: Vec<String>,
    /// Console output of hook scripts around the run.
    pub logs: Vec<String>,
    /// Write errors.
    pub errors: Vec<String>,
    /// Id of the saved run, if it was saved.
    pub saved_run: Option<String>,
}

impl ReporterSet {
    /// Adds a reporter that writes to the output of this name.
    pub fn add(&mut self, output: impl Into<String>, reporter: impl Reporter + 'static) {
        self.reporters.push((output.into(), Box::new(reporter)));
    }

    /// Passes an event to all reporters.
    pub(super) fn report(&mut self, event: &RunEvent) {
        self.write(|reporter| reporter.report(event));
    }

    /// Lets all reporters write what is unwritten.
    pub(super) fn flush(&mut self) {
        self.write(|reporter| reporter.flush());
    }

    /// Drops the reporters for which `write` fails.
    fn write(&mut self, mut write: impl FnMut(&mut dyn Reporter) -> io::Result<()>) {
        let mut lost: Vec<String> = Vec::new();
        let errors = &mut self.errors;
        self.reporters.retain_mut(|(name, reporter)| {
            lost.iter().for_each(|output| reporter.output_failed(output));
            match write(&mut **reporter) {
                Ok(()) => true,
                // A closed pipe is not an error: `hotseat test | head`.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                Err(error) => {
                    errors.push(format!("cannot write {name}: {error}"));
                    lost.push(name.clone());
                    false
                }
            }
        });
    }

    /// Lets reporters that display times update them. A failure to write is reported with the next event.
    pub(super) fn tick(&mut self) {
        for (_, reporter) in &mut self.reporters {
            let _ = reporter.tick();
        }
    }
}
