//! Sets of VLAN ids: memberships of VFs, and the VLANs of policies. An operation on one id costs the same for every set.

use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Last VLAN id of cards and policies. IEEE 802.1Q reserves 4095; Linux's drivers accept it (`igb_ndo_set_vf_vlan`,
/// `I40E_MAX_VLANID`), and so does iproute2.
pub const LAST_VLAN: u16 = 4095;
const WORDS: usize = (LAST_VLAN as usize + 1) / 64;

/// Set of VLAN ids, 0 to [`LAST_VLAN`]. The serialized form is a list of ids, which may have any order and repeat ids.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u16>", try_from = "Vec<u16>")]
pub struct VlanIds {
    words: [u64; WORDS],
    len: u16,
}

/// Error for a VLAN id beyond [`LAST_VLAN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanIdError(pub u16);

impl fmt::Display for VlanIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VLAN {} is out of range (0-{LAST_VLAN})", self.0)
    }
}

impl core::error::Error for VlanIdError {}

impl VlanIds {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: [0; WORDS], len: 0 }
    }

    /// Creates the set of id 0 alone, which stands for untagged frames.
    #[must_use]
    pub const fn untagged() -> Self {
        let mut set = Self::new();
        (set.words[0], set.len) = (1, 1);
        set
    }

    /// Creates the set of all ids.
    #[must_use]
    pub const fn all() -> Self {
        Self { words: [u64::MAX; WORDS], len: LAST_VLAN + 1 }
    }

    /// Creates the set whose ids are the numbers of the set bits in a bitmap of 32-bit words. `word(n)` has the bits of the
    /// ids from `32 n` on.
    #[must_use]
    pub fn from_bitmap(word: impl Fn(u32) -> u32) -> Self {
        let mut words = [0; WORDS];
        for (low, place) in (0..).step_by(2).zip(&mut words) {
            *place = u64::from(word(low)) | u64::from(word(low + 1)) << 32;
        }
        let len: u32 = words.iter().map(|word| word.count_ones()).sum();
        Self { words, len: u16::try_from(len).unwrap_or(LAST_VLAN + 1) }
    }

    /// Adds an id. Returns true if the set changes: it does not for an id beyond [`LAST_VLAN`].
    pub fn insert(&mut self, vlan: u16) -> bool {
        let changes = vlan <= LAST_VLAN && !self.contains(vlan);
        if changes {
            self.words[usize::from(vlan / 64)] |= 1 << (vlan % 64);
            self.len += 1;
        }
        changes
    }

    /// Removes an id. Returns true if the set had it.
    pub fn remove(&mut self, vlan: u16) -> bool {
        let changes = self.contains(vlan);
        if changes {
            self.words[usize::from(vlan / 64)] &= !(1 << (vlan % 64));
            self.len -= 1;
        }
        changes
    }

    /// Returns true if an id is in the set.
    #[must_use]
    pub fn contains(&self, vlan: u16) -> bool {
        self.words.get(usize::from(vlan / 64)).is_some_and(|word| word >> (vlan % 64) & 1 == 1)
    }

    /// Returns the number of ids in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns true if the set has no id.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ids of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + Clone + use<> {
        (0..).step_by(64).zip(self.words).flat_map(|(first, word)| ids_of_word(first, word))
    }
}

/// Returns `first` plus the number of each set bit of a word, in order. Clear bits cost nothing.
fn ids_of_word(first: u16, word: u64) -> impl Iterator<Item = u16> + Clone {
    let next = |word: u64| (word != 0).then_some(word);
    let rests = core::iter::successors(next(word), move |word| next(word & (word - 1)));
    rests.map(move |word| {
        let [id, ..] = word.trailing_zeros().to_le_bytes();
        first + u16::from(id)
    })
}

impl Default for VlanIds {
    fn default() -> Self {
        Self::new()
    }
}

impl From<VlanIds> for Vec<u16> {
    fn from(set: VlanIds) -> Self {
        set.iter().collect()
    }
}

impl TryFrom<Vec<u16>> for VlanIds {
    type Error = VlanIdError;

    fn try_from(ids: Vec<u16>) -> Result<Self, VlanIdError> {
        let mut set = Self::new();
        for vlan in ids {
            if vlan > LAST_VLAN {
                return Err(VlanIdError(vlan));
            }
            set.insert(vlan);
        }
        Ok(set)
    }
}

impl fmt::Debug for VlanIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST_VLAN, VlanIdError, VlanIds};
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use serde::Deserialize;
    use serde::de::value::{Error, SeqDeserializer};

    #[test]
    fn bitmap_of_32_bit_words_gives_the_ids_of_its_bits() {
        let set = VlanIds::from_bitmap(|word| match word {
            0 => 1 << 1 | 1 << 31,
            3 => 1 << 4,
            127 => 1 << 31,
            _ => 0,
        });
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 31, 100, 4095]);
        assert_eq!(set.len(), 4);
        assert_eq!(VlanIds::all(), VlanIds::from_bitmap(|_| u32::MAX));
        assert_eq!(VlanIds::all().iter().count(), VlanIds::all().len());
    }

    /// Applies the same changes to a set of VLAN ids and to an ordered set, and compares both.
    #[test]
    fn vlan_ids_behave_as_an_ordered_set() {
        let (mut set, mut model) = (VlanIds::new(), BTreeSet::new());
        let mut seed = 1_u32;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (vlan, adds) = ((seed >> 8) as u16 % (LAST_VLAN + 1), seed >> 30 != 0);
            let changed = if adds { set.insert(vlan) } else { set.remove(vlan) };
            assert_eq!(changed, if adds { model.insert(vlan) } else { model.remove(&vlan) });
            assert_eq!(
                (set.contains(vlan), set.len(), set.is_empty()),
                (adds, model.len(), model.is_empty())
            );
        }
        assert!(set.iter().eq(model.iter().copied()));
    }

    #[test]
    fn vlan_ids_beyond_4095_are_not_added() {
        let mut set = VlanIds::untagged();
        assert!(set.insert(LAST_VLAN) && !set.insert(LAST_VLAN + 1) && !set.insert(u16::MAX));
        assert!(!set.contains(u16::MAX) && !set.remove(u16::MAX));
        assert_eq!(Vec::from(set), [0, LAST_VLAN]);
    }

    #[test]
    fn saved_list_of_vlan_ids_may_be_unsorted_and_repeat() {
        let decode = |ids: &[u16]| {
            VlanIds::deserialize(SeqDeserializer::<_, Error>::new(ids.iter().copied())).map(Vec::from)
        };
        assert_eq!(decode(&[7, 0, 4095, 7, 64]), Ok([0, 7, 64, 4095].into()));
        assert_eq!(decode(&[]), Ok(Vec::new()));
        let refused = decode(&[5, 4096]).unwrap_err().to_string();
        assert_eq!(refused, VlanIdError(4096).to_string());
    }
}
