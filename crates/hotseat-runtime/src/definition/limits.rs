//! How often and how long, for everything that a conversation waits for.

/// The limits of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Attempts at context assembly.
    pub context: Retry,
    /// Attempts at a model call.
    pub model: Retry,
    /// Attempts at memory extraction.
    pub extraction: Retry,
    /// How deep agents may call agents.
    pub depth: u32,
    /// How many decisions one input may cause before the machine takes itself for broken.
    pub decisions: usize,
}

/// Attempts at one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts there are in all.
    pub attempts: u32,
    /// The wait after the first failed attempt, in milliseconds; it doubles with each further one.
    pub backoff_ms: u64,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Retry {
    /// How long to wait after attempt `attempt` (from 1) failed, in milliseconds; none when it was the last.
    pub fn delay(&self, attempt: u32) -> Option<u64> {
        let doublings = attempt.saturating_sub(1);
        (attempt < self.attempts)
            .then(|| self.backoff_ms.saturating_mul(1_u64.checked_shl(doublings).unwrap_or(u64::MAX)))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            context: Retry { attempts: 3, backoff_ms: 100, timeout_ms: 30_000 },
            model: Retry { attempts: 3, backoff_ms: 500, timeout_ms: 120_000 },
            extraction: Retry { attempts: 3, backoff_ms: 100, timeout_ms: 30_000 },
            depth: 8,
            decisions: 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_attempts_wait_twice() {
        let retry = Limits::default().context;
        assert_eq!([1, 2, 3, 4].map(|attempt| retry.delay(attempt)), [Some(100), Some(200), None, None]);
    }
}
