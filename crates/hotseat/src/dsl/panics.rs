//! Captures panics of tests for the report, instead of printing them.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use hotseat_checks::Undecidable;

/// Payload that unwinds an example after its case has ended. Not a panic of the test.
pub(super) struct CaseEndedPanic;

/// Data of a panic, captured by the panic hook.
#[derive(Debug, Clone, Default, thiserror::Error)]
#[error("panicked: {message}{}", .place.as_ref().map_or_else(String::new, |place| format!(" ({place})")))]
pub(super) struct PanicReport {
    pub message: String,
    /// File, line and column of the panic.
    pub place: Option<String>,
    /// The backtrace, if `RUST_BACKTRACE` is set.
    pub backtrace: Option<String>,
}

thread_local! {
    /// Last panic of this thread; the outer option is none if the thread does not run an example.
    static LAST_PANIC: RefCell<Option<Option<PanicReport>>> = const { RefCell::new(None) };
}

/// Captures the panics of this thread from now on.
pub(super) fn capture_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A panic inside this hook is passed to the previous hook.
            let told = LAST_PANIC.with(|watched| match watched.try_borrow_mut() {
                Ok(mut watched) => {
                    watched.as_mut().map(|seen| *seen = Some(PanicReport::from_hook_info(info))).is_some()
                }
                Err(_) => false,
            });
            if !told {
                others(info);
            }
        }));
    });
    LAST_PANIC.with(|watched| *watched.borrow_mut() = Some(None));
}

/// Calls a test function on any thread. Returns its result, or its panic, which is not printed.
pub(super) fn catch<T>(function: impl FnOnce() -> T) -> Result<T, PanicReport> {
    let before = LAST_PANIC.with(|watched| watched.borrow().is_some());
    capture_panics();
    let result = panic::catch_unwind(AssertUnwindSafe(function)).map_err(|panic| report_for(&*panic));
    if !before {
        LAST_PANIC.with(|watched| *watched.borrow_mut() = None);
    }
    result
}

/// Returns the report of the panic with this payload.
pub(super) fn report_for(payload: &(dyn Any + Send)) -> PanicReport {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words");
    match take_last() {
        // The captured panic may be an earlier one that the test has caught.
        Some(seen) if seen.message == text => seen,
        Some(_) | None => PanicReport { message: text.to_string(), ..PanicReport::default() },
    }
}

/// Takes the last panic of this thread, if it was not reported yet.
pub(super) fn take_last() -> Option<PanicReport> {
    LAST_PANIC.with(|watched| watched.borrow_mut().as_mut().and_then(Option::take))
}

impl From<PanicReport> for Undecidable {
    fn from(report: PanicReport) -> Undecidable {
        Undecidable::new(report)
    }
}

impl PanicReport {
    fn from_hook_info(info: &PanicHookInfo<'_>) -> PanicReport {
        let backtrace = Backtrace::capture();
        PanicReport {
            message: info.payload_as_str().unwrap_or("no words").to_string(),
            place: info.location().map(ToString::to_string),
            backtrace: (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string()),
        }
    }
}
