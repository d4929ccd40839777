//! Memory type of a guest's page: the effective type of the guest's MTRR and PAT, and the entry of the host's
//! PAT that gives the same under the host's unchanged MTRR. If there is none, the page is uncached and
//! counted. A page has one MTRR type and one PAT type.

/// Memory type of a page, of an MTRR or of a PAT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryType {
    /// Memory type: uncached.
    Uc,
    /// Memory type: write combining.
    Wc,
    /// Memory type: write through.
    Wt,
    /// Memory type: write protected.
    Wp,
    /// Memory type: write back.
    Wb,
    /// Memory type: uncached, except that an MTRR of type write combining takes precedence. Only a PAT entry has this
    /// type.
    UcMinus,
}

use MemoryType::{Uc, UcMinus, Wb, Wc, Wp, Wt};

impl MemoryType {
    /// All memory types, in the order of the columns of the table `EFFECTIVE`.
    pub const ALL: [MemoryType; 6] = [Uc, Wc, Wt, Wp, Wb, UcMinus];

    /// Returns the processor's encoding of the memory type.
    #[must_use]
    pub const fn encoding(self) -> u8 {
        match self {
            Uc => 0,
            Wc => 1,
            Wt => 4,
            Wp => 5,
            Wb => 6,
            UcMinus => 7,
        }
    }

    /// Decodes a PAT entry. Returns `None` for reserved encodings, whose write faults.
    #[must_use]
    pub fn of_pat(encoding: u8) -> Option<MemoryType> {
        MemoryType::ALL.into_iter().find(|kind| kind.encoding() == encoding)
    }

    /// Decodes an MTRR type, which cannot be "uncached minus".
    #[must_use]
    pub fn of_mtrr(encoding: u8) -> Option<MemoryType> {
        MemoryType::of_pat(encoding).filter(|kind| *kind != UcMinus)
    }
}

/// Effective type by MTRR (row) and PAT entry (column, in the order of [`MemoryType::ALL`]).
const EFFECTIVE: [[MemoryType; 6]; 5] = [
    [Uc, Wc, Uc, Uc, Uc, Uc],
    [Uc, Wc, Uc, Uc, Wc, Wc],
    [Uc, Wc, Wt, Wp, Wt, Uc],
    [Uc, Wc, Wt, Wp, Wp, Wc],
    [Uc, Wc, Wt, Wp, Wb, Uc],
];

/// Effective memory type of a page, by the type of its MTRR (row) and of its PAT entry (column, in the order of
/// [`MemoryType::ALL`]).
#[must_use]
pub fn effective(mtrr: MemoryType, pat: MemoryType) -> Option<MemoryType> {
    EFFECTIVE.get(mtrr as usize).map(|row| row[pat as usize])
}

/// PAT of the host, as Linux programs the register.
pub const HOST_PAT: [MemoryType; 8] = [Wb, Wc, UcMinus, Uc, Wb, Wp, UcMinus, Wt];

/// Entry of the host's PAT that a shadow or nested page-table entry selects for a guest's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatEntry {
    /// Index of the entry in the host's page attribute table (PAT).
    pub index: usize,
    /// Memory type that a page gets from this entry of the host's PAT.
    pub gets: MemoryType,
    /// The memory type differs from the type that the guest requested.
    pub is_fallback: bool,
}

/// Returns the host's PAT entry for a page whose guest requests the memory type `wanted`. Returns `None` if `host_mtrr`
/// is not a valid MTRR type.
#[must_use]
pub fn entry(wanted: MemoryType, host_mtrr: MemoryType, host_pat: &[MemoryType; 8]) -> Option<PatEntry> {
    effective(host_mtrr, Uc)?;
    let gives = |index: usize| effective(host_mtrr, host_pat[index]);
    if let Some(index) = (0..8).find(|index| gives(*index) == Some(wanted)) {
        return Some(PatEntry { index, gets: wanted, is_fallback: false });
    }
    let index = (0..8).find(|index| gives(*index) == Some(Uc)).unwrap_or_default();
    Some(PatEntry { index, gets: gives(index)?, is_fallback: true })
}

#[cfg(test)]
mod tests {
    use super::{HOST_PAT, MemoryType, effective, entry};

    #[test]
    fn reserved_memory_type_encodings_are_rejected() {
        let pat: Vec<u8> = (0..=255).filter(|bits| MemoryType::of_pat(*bits).is_some()).collect();
        let mtrr: Vec<u8> = (0..=255).filter(|bits| MemoryType::of_mtrr(*bits).is_some()).collect();
        assert_eq!((pat, mtrr), (vec![0, 1, 4, 5, 6, 7], vec![0, 1, 4, 5, 6]));
    }

    /// Checks that for every combination of types a guest gets its memory type or no caching, and never another kind of
    /// caching.
    #[test]
    fn guest_memory_has_the_requested_type_or_is_uncached() {
        let (mut all, mut fallbacks) = (0, 0);
        for host in &MemoryType::ALL[..5] {
            for guest in &MemoryType::ALL[..5] {
                for pat in MemoryType::ALL {
                    let wanted = effective(*guest, pat).unwrap();
                    let entry = entry(wanted, *host, &HOST_PAT).unwrap();
                    assert_eq!(effective(*host, HOST_PAT[entry.index]), Some(entry.gets));
                    assert_eq!(entry.is_fallback, entry.gets != wanted);
                    assert!(!entry.is_fallback || entry.gets == MemoryType::Uc);
                    (all, fallbacks) = (all + 1, fallbacks + u32::from(entry.is_fallback));
                }
            }
        }
        assert_eq!(all, 150);
        assert!((1..all / 2).contains(&fallbacks), "{fallbacks}");
    }

    #[test]
    fn every_memory_type_is_available_under_a_write_back_mtrr() {
        for pat in MemoryType::ALL {
            let wanted = effective(MemoryType::Wb, pat).unwrap();
            assert!(!entry(wanted, MemoryType::Wb, &HOST_PAT).unwrap().is_fallback);
        }
        assert_eq!(effective(MemoryType::UcMinus, MemoryType::Wb), None);
        assert_eq!(entry(MemoryType::Wb, MemoryType::UcMinus, &HOST_PAT), None);
    }
}
