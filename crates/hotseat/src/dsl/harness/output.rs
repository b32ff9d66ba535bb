//! Output of a test file.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_report::reporters::CommandGuard;

/// Destination of results and remarks.
#[derive(Debug, Clone, Default)]
pub enum HarnessOutput {
    /// Standard output and standard error.
    #[default]
    Standard,
    /// A buffer that receives both, in the order in which they are written.
    Captured(CapturedOutput),
}

/// Captured output.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl HarnessOutput {
    /// Creates an empty buffer.
    pub fn captured() -> HarnessOutput {
        HarnessOutput::Captured(CapturedOutput::default())
    }

    pub(super) fn results(&self) -> Box<dyn Write + Send> {
        match self {
            HarnessOutput::Standard => Box::new(CommandGuard::text(io::stdout())),
            HarnessOutput::Captured(kept) => Box::new(CommandGuard::text(kept.clone())),
        }
    }

    pub(super) fn remarks(&self) -> Box<dyn Write + Send> {
        match self {
            HarnessOutput::Standard => Box::new(CommandGuard::text(io::stderr())),
            HarnessOutput::Captured(kept) => Box::new(CommandGuard::text(kept.clone())),
        }
    }

    /// Prints the captured output with `print!`, so that the test harness shows it if the test fails.
    #[expect(
        clippy::print_stdout,
        reason = "the test harness captures only output of `print!`, not direct writes to standard output"
    )]
    pub(in crate::dsl) fn print_captured(&self) {
        if let HarnessOutput::Captured(kept) = self {
            print!("{}", kept.text());
        }
    }
}

impl CapturedOutput {
    /// Returns the text written so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
