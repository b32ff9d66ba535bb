//! Selects the calls that get a fault.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// Text of an answer that is no JSON.
pub const GARBAGE: &str = "\u{1}}{ this is not JSON: 0x00ff <html>";

/// Selects calls among those that a rule counts. Counted for each conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultTrigger {
    /// The call with this number, from 1.
    Nth(u64),
    /// Each call whose number is a multiple of this one; 1 selects all calls.
    Every(u64),
    /// Calls selected at random with this probability. Equal calls are selected in the same way whenever the seed is the
    /// same, in any order of different calls.
    Rate {
        /// Seed of the selection.
        seed: u64,
        /// Probability between 0 and 1.
        rate: f64,
    },
}

/// Counters of the fault rules of one server in one conversation.
#[derive(Debug)]
pub struct FaultCounters(Mutex<Vec<RuleCounter>>);

#[derive(Debug, Default)]
struct RuleCounter {
    counted: u64,
    /// Numbers of equal calls, for selection at random. At most one entry for each call.
    equal_calls: HashMap<u64, u64>,
}

impl FaultCounters {
    /// Creates the counters of this number of rules.
    pub fn new(rules: usize) -> FaultCounters {
        FaultCounters(Mutex::new((0..rules).map(|_| RuleCounter::default()).collect()))
    }

    /// Counts a call for these rules, given by their indices, and returns the first one that selects it and is possible. `call`
    /// returns the same text for equal calls.
    pub fn select(
        &self,
        rules: impl IntoIterator<Item = (usize, FaultTrigger)>,
        is_possible: impl Fn(usize) -> bool,
        call: impl Fn() -> String,
    ) -> Option<usize> {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut selected = None;
        for (index, trigger) in rules {
            let Some(counter) = counters.get_mut(index) else { continue };
            if counter.is_due(trigger, &call) && selected.is_none() && is_possible(index) {
                selected = Some(index);
            }
        }
        selected
    }
}

impl RuleCounter {
    /// Counts a call, and returns true if the rule selects it. A selection at random depends on the seed, the call and the number of
    /// equal calls before it, and not on the order of different calls.
    fn is_due(&mut self, trigger: FaultTrigger, call: impl Fn() -> String) -> bool {
        self.counted += 1;
        match trigger {
            FaultTrigger::Nth(number) => self.counted == number,
            FaultTrigger::Every(every) => self.counted.is_multiple_of(every.max(1)),
            FaultTrigger::Rate { seed, rate } => {
                let call = draw(&format!("{seed}\0{}", call()));
                let number = self.equal_calls.entry(call).or_default();
                *number += 1;
                // 53 bits are exact in a float.
                let drawn = (draw(&format!("{call}\0{number}")) >> 11) as f64 / (1_u64 << 53) as f64;
                drawn < rate
            }
        }
    }
}

/// Returns a number that looks random, from a text.
fn draw(text: &str) -> u64 {
    let hash = Sha256::digest(text);
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
