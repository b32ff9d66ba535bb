//! Members of events about the runtime itself.

use super::members::members;
use std::sync::Arc;

members! {
    loose {
        /// `runtime.error`
        RuntimeError {
            /// The part that has the fault.
            place: String,
            /// What is wrong.
            message: String,
        }
        /// `runtime.input_ignored`
        InputIgnored {
            /// Why nothing came of it.
            reason: String,
        }
    }
}
