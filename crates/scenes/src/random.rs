//! Numbers that look random, from a seed.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Not for secrets. Invariant: the same seed gives the same numbers on
//! every machine.

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Another source that depends on this one's state and on `label`, and does not advance it.
    pub(crate) fn fork(&self, label: u64) -> Self {
        Self::new(mix(self.state ^ mix(label.wrapping_add(STEP))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True once in `of` times.
    pub(crate) fn once_in(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// The items in an order of chance.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index as u32 + 1) as usize);
        }
    }
}

fn mix(state: u64) -> u64 {
    let first = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}

/// The golden ratio's fraction.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
