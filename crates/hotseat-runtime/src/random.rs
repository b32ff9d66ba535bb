//! Deterministic pseudo-random numbers.

/// Pseudo-random sequence determined by its seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeterministicRandom(u64);

impl DeterministicRandom {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        DeterministicRandom(seed)
    }

    /// Creates the sequence of a seed and a text, identical in every process.
    pub fn from_seed_and_text(seed: u64, text: &str) -> Self {
        // FNV-1a is short and platform-independent.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        DeterministicRandom(seed ^ hash)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        match u64::try_from(limit) {
            Ok(limit) if limit > 0 => usize::try_from(self.next_u64() % limit).unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns a number from `from` to `to`, both inclusive.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        match to.saturating_sub(from).checked_add(1) {
            Some(choices) => from + self.next_u64() % choices,
            None => self.next_u64(),
        }
    }
}
