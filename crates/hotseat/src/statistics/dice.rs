//! Chance that is the same in every run of a test.

/// A generator of numbers that look random (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number from 0 up to 1.
    pub fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// What happens in a part `rate` of all cases.
    pub fn happens(&mut self, rate: f64) -> bool {
        self.part() < rate
    }

    /// How often it happens in so many tries.
    pub fn count(&mut self, tries: usize, rate: f64) -> usize {
        (0..tries).filter(|_| self.happens(rate)).count()
    }
}
