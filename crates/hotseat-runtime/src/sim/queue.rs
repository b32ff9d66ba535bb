//! What will happen, by time; what happens at the same time in an order that a seed decides.

use std::collections::BTreeMap;

use crate::conversation::Millis;
use crate::random::Random;
use crate::world::Delivery;

/// What will happen.
pub(super) struct Queue {
    random: Option<Random>,
    pushed: u64,
    entries: BTreeMap<(Millis, u64, u64), Delivery>,
}

impl Queue {
    pub(super) fn new(seed: u64) -> Self {
        Queue { random: (seed != 0).then(|| Random::new(seed)), pushed: 0, entries: BTreeMap::new() }
    }

    /// Among what happens at the same time, somewhere.
    pub(super) fn push(&mut self, at: Millis, delivery: Delivery) {
        let tie = self.random.as_mut().map_or(1, |random| random.number().max(1));
        self.put(at, tie, delivery);
    }

    /// Before everything else that happens at the same time, in the order of pushing.
    pub(super) fn push_first(&mut self, at: Millis, delivery: Delivery) {
        self.put(at, 0, delivery);
    }

    fn put(&mut self, at: Millis, tie: u64, delivery: Delivery) {
        self.pushed += 1;
        self.entries.insert((at, tie, self.pushed), delivery);
    }

    pub(super) fn next_at(&self) -> Option<Millis> {
        self.entries.first_key_value().map(|((at, _, _), _)| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(Millis, Delivery)> {
        self.entries.pop_first().map(|((at, _, _), delivery)| (at, delivery))
    }
}
