//! Panics of tests: what they say and where, kept for the report instead of being printed at once.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

/// What ends an example whose case has ended. It is no panic of the test's own.
pub(super) struct CaseEnded;

/// A panic, as far as it was seen when it began.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub message: String,
    /// File, line and column.
    pub place: Option<String>,
    /// How it came to that, where `RUST_BACKTRACE` asks for it.
    pub backtrace: Option<String>,
}

thread_local! {
    /// Whether this thread runs an example, and its last panic.
    static WATCHED: RefCell<Option<Option<Seen>>> = const { RefCell::new(None) };
}

/// Watches over the panics of this thread from now on.
pub(super) fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // What panics while it is being told of a panic is the others' again.
            let told = WATCHED.with(|watched| match watched.try_borrow_mut() {
                Ok(mut watched) => watched.as_mut().map(|seen| *seen = Some(Seen::of(info))).is_some(),
                Err(_) => false,
            });
            if !told {
                others(info);
            }
        }));
    });
    WATCHED.with(|watched| *watched.borrow_mut() = Some(None));
}

/// What a function of the test returns, on whatever thread it is called; its panic in words, which nobody prints.
pub(super) fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    let before = WATCHED.with(|watched| watched.borrow().is_some());
    watch();
    let result = panic::catch_unwind(AssertUnwindSafe(function)).map_err(|panic| seen(&*panic).words());
    if !before {
        WATCHED.with(|watched| *watched.borrow_mut() = None);
    }
    result
}

/// The panic of this thread whose payload was caught.
pub(super) fn seen(payload: &(dyn Any + Send)) -> Seen {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words");
    match untold() {
        // One that was caught before, and is not the one that is asked about, is another matter.
        Some(seen) if seen.message == text => seen,
        Some(_) | None => Seen { message: text.to_string(), ..Seen::default() },
    }
}

/// The last panic of this thread, if nobody has asked for it: it was caught somewhere on its way.
pub(super) fn untold() -> Option<Seen> {
    WATCHED.with(|watched| watched.borrow_mut().as_mut().and_then(Option::take))
}

impl Seen {
    /// What it says, and where.
    pub(super) fn words(&self) -> String {
        let place = self.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        format!("panicked: {}{place}", self.message)
    }

    fn of(info: &PanicHookInfo<'_>) -> Seen {
        let backtrace = Backtrace::capture();
        Seen {
            message: info.payload_as_str().unwrap_or("no words").to_string(),
            place: info.location().map(ToString::to_string),
            backtrace: (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string()),
        }
    }
}
