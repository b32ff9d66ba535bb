//! Ids of conversations, runs and messages.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Bits of an id that count; the others are random and the same for all ids of the process.
const COUNTER_BITS: u32 = 48;

/// Returns a new id: a UUID that no other process uses. Ids of one process differ only at their end, so that saved runs
/// stay small. They are not secret.
pub fn unique_id() -> String {
    static BASE: LazyLock<u128> = LazyLock::new(|| Uuid::new_v4().as_u128() >> COUNTER_BITS << COUNTER_BITS);
    static COUNT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(*BASE | u128::from(COUNT.fetch_add(1, Ordering::Relaxed))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_different_uuids_with_the_same_start() {
        let [first, second] = [unique_id(), unique_id()].map(|id| Uuid::parse_str(&id).unwrap());
        assert_ne!(first, second);
        assert_eq!(first.as_u128() >> COUNTER_BITS, second.as_u128() >> COUNTER_BITS);
        assert_eq!(first.get_version_num(), 4);
    }
}
