//! Captures panics of tests for the report, instead of printing them.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

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
    /// Log of the panics of this thread. Gone if the thread does not run an example, or its example has ended.
    static PANICS: RefCell<Weak<PanicLog>> = const { RefCell::new(Weak::new()) };
}

/// Panics of an example that were not reported yet, on its thread and on those of its runtime.
#[derive(Default)]
pub(super) struct PanicLog(Mutex<UnreportedPanics>);

#[derive(Default)]
struct UnreportedPanics {
    last: Option<PanicReport>,
    /// Those in tasks that the test has spawned: nothing else reports them.
    in_tasks: Vec<PanicReport>,
}

impl PanicLog {
    /// Captures the panics of this thread, as long as the log exists.
    pub fn capture(self: &Arc<Self>) {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let others = panic::take_hook();
            panic::set_hook(Box::new(move |info| match PanicLog::of_thread() {
                Some(log) => log.add(PanicReport::from_hook_info(info)),
                None => others(info),
            }));
        });
        PANICS.set(Arc::downgrade(self));
    }

    /// Takes the first panic in a task that was not reported yet.
    pub fn take_first_in_task(&self) -> Option<PanicReport> {
        let in_tasks = std::mem::take(&mut self.lock().in_tasks);
        in_tasks.into_iter().next()
    }

    fn of_thread() -> Option<Arc<PanicLog>> {
        PANICS.with_borrow(Weak::upgrade)
    }

    fn add(&self, report: PanicReport) {
        let mut seen = self.lock();
        if tokio::task::try_id().is_some() {
            seen.in_tasks.push(report.clone());
        }
        seen.last = Some(report);
    }

    fn lock(&self) -> MutexGuard<'_, UnreportedPanics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a test function on any thread. Returns its result, or its panic, which is not printed.
pub(super) fn catch<T>(function: impl FnOnce() -> T) -> Result<T, PanicReport> {
    let log = PanicLog::of_thread().unwrap_or_else(|| {
        let log = Arc::new(PanicLog::default());
        log.capture();
        log
    });
    let result = panic::catch_unwind(AssertUnwindSafe(function)).map_err(|panic| report_for(&*panic));
    drop(log);
    result
}

/// Returns the report of the panic with this payload.
pub(super) fn report_for(payload: &(dyn Any + Send)) -> PanicReport {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words");
    let seen = PanicLog::of_thread().and_then(|log| {
        let mut seen = log.lock();
        let in_task = seen.in_tasks.pop_if(|seen| seen.message == text);
        // The last panic may be one that the test has caught, or one of another thread.
        seen.last.take().filter(|last| last.message == text).or(in_task)
    });
    seen.unwrap_or_else(|| PanicReport { message: text.to_string(), ..PanicReport::default() })
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
