//! A value that one thread changes while another waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub fn get(&self) -> MutexGuard<'_, T> {
        // A test that panicked while it looked has broken nothing.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.get());
        self.changed.notify_all();
    }

    /// Returns when `enough` holds or the time is over; the caller looks which.
    pub fn wait(&self, timeout: Duration, enough: impl Fn(&T) -> bool) -> MutexGuard<'_, T> {
        let waited = self.changed.wait_timeout_while(self.get(), timeout, |value| !enough(value));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
