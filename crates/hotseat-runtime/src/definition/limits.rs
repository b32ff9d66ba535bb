//! Limits on attempts and time for all work of a conversation.

/// Limits of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// Attempts at context assembly.
    pub context: AttemptLimits,
    /// Attempts at a model call.
    pub model: AttemptLimits,
    /// Attempts at memory extraction.
    pub extraction: AttemptLimits,
    /// Maximum depth of nested agent calls.
    pub depth: u32,
    /// Maximum number of decisions that one input may cause; more count as a bug.
    pub decisions: usize,
}

/// Limits on the attempts at one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Maximum number of attempts.
    pub attempts: u32,
    /// Delay after the first failed attempt, in milliseconds; it doubles after each further one.
    pub backoff_ms: u64,
    /// Time limit of one attempt, in milliseconds.
    pub timeout_ms: u64,
}

impl AttemptLimits {
    /// Returns the delay after failed attempt `attempt` (from 1), in milliseconds, or `None` if it was the
    /// last one.
    pub fn delay(&self, attempt: u32) -> Option<u64> {
        let doublings = attempt.saturating_sub(1);
        (attempt < self.attempts)
            .then(|| self.backoff_ms.saturating_mul(1_u64.checked_shl(doublings).unwrap_or(u64::MAX)))
    }
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        RuntimeLimits {
            context: AttemptLimits { attempts: 3, backoff_ms: 100, timeout_ms: 30_000 },
            model: AttemptLimits { attempts: 3, backoff_ms: 500, timeout_ms: 120_000 },
            extraction: AttemptLimits { attempts: 3, backoff_ms: 100, timeout_ms: 30_000 },
            depth: 8,
            decisions: 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_attempts_have_two_delays() {
        let retry = RuntimeLimits::default().context;
        assert_eq!([1, 2, 3, 4].map(|attempt| retry.delay(attempt)), [Some(100), Some(200), None, None]);
    }
}
