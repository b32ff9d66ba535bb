//! Payloads of events about the runtime itself.

use super::members::members;
use std::sync::Arc;

members! {
    loose {
        /// `runtime.error`
        RuntimeError {
            /// Component with the fault.
            place: String,
            /// Description of the fault.
            message: String,
        }
        /// `runtime.input_ignored`
        InputIgnored {
            /// Reason why the input was ignored.
            reason: String,
        }
    }
}
