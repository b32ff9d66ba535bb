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
    /// Panics of this thread; none if the thread does not run an example.
    static PANICS: RefCell<Option<ThreadPanics>> = const { RefCell::new(None) };
}

/// Panics of a thread that were not reported yet.
#[derive(Default)]
struct ThreadPanics {
    last: Option<PanicReport>,
    /// Those in tasks that the test has spawned: nothing else reports them.
    in_tasks: Vec<PanicReport>,
}

impl ThreadPanics {
    fn add(&mut self, report: PanicReport) {
        if tokio::task::try_id().is_some() {
            self.in_tasks.push(report.clone());
        }
        self.last = Some(report);
    }
}

/// Captures the panics of this thread from now on.
pub(super) fn capture_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A panic inside this hook is passed to the previous hook.
            let told = PANICS.with(|watched| match watched.try_borrow_mut() {
                Ok(mut watched) => {
                    watched.as_mut().map(|seen| seen.add(PanicReport::from_hook_info(info))).is_some()
                }
                Err(_) => false,
            });
            if !told {
                others(info);
            }
        }));
    });
    PANICS.with(|watched| {
        watched.borrow_mut().get_or_insert_default();
    });
}

/// Calls a test function on any thread. Returns its result, or its panic, which is not printed.
pub(super) fn catch<T>(function: impl FnOnce() -> T) -> Result<T, PanicReport> {
    let before = PANICS.with(|watched| watched.borrow().is_some());
    capture_panics();
    let result = panic::catch_unwind(AssertUnwindSafe(function)).map_err(|panic| report_for(&*panic));
    if !before {
        PANICS.with(|watched| *watched.borrow_mut() = None);
    }
    result
}

/// Returns the report of the panic with this payload.
pub(super) fn report_for(payload: &(dyn Any + Send)) -> PanicReport {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words");
    let seen = PANICS.with(|watched| {
        let mut watched = watched.borrow_mut();
        let seen = watched.as_mut()?;
        seen.in_tasks.pop_if(|seen| seen.message == text);
        seen.last.take()
    });
    match seen {
        // The captured panic may be an earlier one that the test has caught.
        Some(seen) if seen.message == text => seen,
        Some(_) | None => PanicReport { message: text.to_string(), ..PanicReport::default() },
    }
}

/// Takes the first panic in a task of this thread that was not reported yet.
pub(super) fn take_first_in_task() -> Option<PanicReport> {
    PANICS.with(|watched| {
        let in_tasks = std::mem::take(&mut watched.borrow_mut().as_mut()?.in_tasks);
        in_tasks.into_iter().next()
    })
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
