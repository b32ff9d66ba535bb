//! Queue of future deliveries, ordered by time. A seed determines the order of simultaneous deliveries.

use std::collections::BTreeMap;

use crate::conversation::Millis;
use crate::random::DeterministicRandom;
use crate::world::WorldDelivery;

/// Future deliveries, ordered by time.
pub(super) struct DeliveryQueue {
    random: Option<DeterministicRandom>,
    pushed: u64,
    /// Boxed, because the map moves its entries.
    entries: BTreeMap<(Millis, u64, u64), Box<WorldDelivery>>,
}

impl DeliveryQueue {
    pub(super) fn new(seed: u64) -> Self {
        DeliveryQueue {
            random: (seed != 0).then(|| DeterministicRandom::new(seed)),
            pushed: 0,
            entries: BTreeMap::new(),
        }
    }

    /// Adds a delivery at a random position among simultaneous ones.
    pub(super) fn push(&mut self, at: Millis, delivery: WorldDelivery) {
        let tie = self.random.as_mut().map_or(1, |random| random.next_u64().max(1));
        self.put(at, tie, delivery);
    }

    /// Adds a delivery before other simultaneous ones, in insertion order.
    pub(super) fn push_first(&mut self, at: Millis, delivery: WorldDelivery) {
        self.put(at, 0, delivery);
    }

    fn put(&mut self, at: Millis, tie: u64, delivery: WorldDelivery) {
        self.pushed += 1;
        self.entries.insert((at, tie, self.pushed), Box::new(delivery));
    }

    pub(super) fn next_at(&self) -> Option<Millis> {
        self.entries.first_key_value().map(|((at, _, _), _)| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(Millis, WorldDelivery)> {
        self.entries.pop_first().map(|((at, _, _), delivery)| (at, *delivery))
    }
}
