//! Numbers that look like chance and come from a seed.

/// A sequence of numbers that its seed decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The sequence of this seed and a text, the same in every process.
    pub fn of(seed: u64, text: &str) -> Self {
        // FNV-1a, which is short and the same everywhere.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Random(seed ^ hash)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 where there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        match u64::try_from(limit) {
            Ok(limit) if limit > 0 => usize::try_from(self.number() % limit).unwrap_or(0),
            _ => 0,
        }
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        match to.saturating_sub(from).checked_add(1) {
            Some(choices) => from + self.number() % choices,
            None => self.number(),
        }
    }
}
