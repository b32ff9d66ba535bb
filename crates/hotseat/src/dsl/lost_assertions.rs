//! Assertions that were made on threads after their examples had ended.

use std::sync::{Mutex, PoisonError};

/// Messages of the lost assertions of a run.
#[derive(Debug, Default)]
pub(super) struct LostAssertions(Mutex<Vec<String>>);

/// Those on values made when no example was running, so that their run is unknown.
pub(super) static UNATTRIBUTED: LostAssertions = LostAssertions(Mutex::new(Vec::new()));

impl LostAssertions {
    /// Takes the messages so far. Each is returned once.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an assertion. Panics, because its run may have ended, too: then only the panic shows it.
    pub fn add(&self, words: String) -> ! {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(words.clone());
        panic!("{words}");
    }
}
