//! Sharing of cores and threads among conversations.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Number of available cores. Determined once, since this reads system files.
pub(crate) static CORE_COUNT: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Runs a computation that may take long. The other conversations of its thread continue on another one meanwhile.
pub(crate) fn compute_aside<T>(compute: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(compute),
        // Nothing else runs on this thread.
        _ => compute(),
    }
}
