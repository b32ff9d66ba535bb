//! Where the output of a test file goes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::report::CommandGuard;

/// Where output goes: results, and remarks beside them.
#[derive(Debug, Clone, Default)]
pub enum Output {
    /// Standard output and standard error.
    #[default]
    Standard,
    /// Into memory, in the order in which it is written.
    Kept(Kept),
}

/// Output that is kept.
#[derive(Debug, Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

impl Output {
    /// Output that is kept, with nothing in it so far.
    pub fn kept() -> Output {
        Output::Kept(Kept::default())
    }

    pub(super) fn results(&self) -> Box<dyn Write + Send> {
        match self {
            Output::Standard => Box::new(CommandGuard::text(io::stdout())),
            Output::Kept(kept) => Box::new(CommandGuard::text(kept.clone())),
        }
    }

    pub(super) fn remarks(&self) -> Box<dyn Write + Send> {
        match self {
            Output::Standard => Box::new(CommandGuard::text(io::stderr())),
            Output::Kept(kept) => Box::new(CommandGuard::text(kept.clone())),
        }
    }

    /// Prints what was kept in the way of test functions, so that it is shown with the test if it fails.
    #[expect(
        clippy::print_stdout,
        reason = "what is written to standard output directly, nobody keeps for the test"
    )]
    pub(in crate::dsl) fn pass_on(&self) {
        if let Output::Kept(kept) = self {
            print!("{}", kept.text());
        }
    }
}

impl Kept {
    /// What has been written so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
