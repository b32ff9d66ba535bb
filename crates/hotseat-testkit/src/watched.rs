//! A value that one thread changes while another waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct SharedState<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> SharedState<T> {
    pub fn get(&self) -> MutexGuard<'_, T> {
        // A panic while reading leaves the value intact.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.get());
        self.changed.notify_all();
    }

    /// Waits until `enough` returns true or the time is over; the caller checks which.
    pub fn wait(&self, timeout: Duration, enough: impl Fn(&T) -> bool) -> MutexGuard<'_, T> {
        let waited = self.changed.wait_timeout_while(self.get(), timeout, |value| !enough(value));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
