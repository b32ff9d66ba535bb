//! The end of an output that may be endless.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes that are kept.
const MAX_BYTES: usize = 16 * 1024;

/// The last output of a program. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LastOutput(Arc<Mutex<VecDeque<u8>>>);

impl LastOutput {
    /// Adds output, and drops the oldest beyond 16 KiB.
    pub fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(MAX_BYTES);
        kept.drain(..surplus);
    }

    /// Returns the output kept so far without white space at its end, after an ellipsis if there was more.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match bytes.len() < MAX_BYTES {
            true => text.trim_end().to_string(),
            // The first character may have lost its beginning.
            false => format!("…{}", text.trim_start_matches('\u{FFFD}').trim_end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end() {
        let output = LastOutput::default();
        output.push(b"started\n");
        assert_eq!(output.text(), "started");
        output.push("ä".repeat(MAX_BYTES).as_bytes());
        output.push(b"z\n");
        let text = output.text();
        assert!(text.starts_with("…ä") && text.ends_with("äz"), "{text}");
        assert!(text.len() <= MAX_BYTES + "…".len());
    }
}
