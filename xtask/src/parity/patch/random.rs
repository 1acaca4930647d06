//! Generates numbers that look random and are the same for the same seed on every machine.

/// The SplitMix64 generator.
pub(super) struct PatchRng(u64);

impl PatchRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if that is 0.
    pub(super) fn random_below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }

    /// Returns true in `times` of a hundred cases.
    pub(super) fn random_bool_with_percent(&mut self, times: usize) -> bool {
        self.random_below(100) < times
    }

    pub(super) fn pick_item<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.random_below(of.len()))
    }
}
