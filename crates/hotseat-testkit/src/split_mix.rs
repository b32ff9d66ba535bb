//! Reproducible random numbers for tests.

/// Pseudorandom number generator (splitmix64).
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns a uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with probability `rate`.
    pub fn happens(&mut self, rate: f64) -> bool {
        self.uniform() < rate
    }

    /// Returns the number of successes in `tries` tries.
    pub fn count(&mut self, tries: usize, rate: f64) -> usize {
        (0..tries).filter(|_| self.happens(rate)).count()
    }
}
