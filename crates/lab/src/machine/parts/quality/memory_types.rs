//! The memory type of a guest's page: what its MTRR and its PAT say together, and which entry of the host's PAT gives the
//! same under the host's MTRR, which nobody changes for a guest. Where none does, the page is uncached, and counted.
//! Left out: ranges; one page has one type of each.

/// A memory type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Uncached.
    Uc,
    /// Write combining.
    Wc,
    /// Write through.
    Wt,
    /// Write protected.
    Wp,
    /// Write back.
    Wb,
    /// Uncached, unless an MTRR says write combining. A PAT's alone.
    UcMinus,
}

use Type::{Uc, UcMinus, Wb, Wc, Wp, Wt};

impl Type {
    /// All, in the order of the table's columns.
    pub const ALL: [Type; 6] = [Uc, Wc, Wt, Wp, Wb, UcMinus];

    /// As processors encode it.
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

    /// From a PAT's entry; reserved encodings are refused, as the processor refuses the write.
    #[must_use]
    pub fn of_pat(encoding: u8) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| kind.encoding() == encoding)
    }

    /// From an MTRR, which cannot say "uncached minus".
    #[must_use]
    pub fn of_mtrr(encoding: u8) -> Option<Type> {
        Type::of_pat(encoding).filter(|kind| *kind != UcMinus)
    }
}

/// What an MTRR (a row) and a PAT's entry (a column, in the order of [`Type::ALL`]) make of a page.
const EFFECTIVE: [[Type; 6]; 5] = [
    [Uc, Wc, Uc, Uc, Uc, Uc],
    [Uc, Wc, Uc, Uc, Wc, Wc],
    [Uc, Wc, Wt, Wp, Wt, Uc],
    [Uc, Wc, Wt, Wp, Wp, Wc],
    [Uc, Wc, Wt, Wp, Wb, Uc],
];

/// The effective type; `None` if the MTRR's is none that an MTRR can have.
#[must_use]
pub fn effective(mtrr: Type, pat: Type) -> Option<Type> {
    EFFECTIVE.get(mtrr as usize).map(|row| row[pat as usize])
}

/// The host's PAT, as Linux programs it.
pub const HOST_PAT: [Type; 8] = [Wb, Wc, UcMinus, Uc, Wb, Wp, UcMinus, Wt];

/// What a shadow or nested entry is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Index of the host's PAT.
    pub index: usize,
    /// The type that the guest then gets.
    pub gets: Type,
    /// It is not what the guest wants.
    pub is_fallback: bool,
}

/// The entry for a page of which a guest wants `wanted`, under the host's MTRR. `None` if that is no MTRR's type.
#[must_use]
pub fn entry(wanted: Type, host_mtrr: Type, host_pat: &[Type; 8]) -> Option<Entry> {
    effective(host_mtrr, Uc)?;
    let gives = |index: usize| effective(host_mtrr, host_pat[index]);
    if let Some(index) = (0..8).find(|index| gives(*index) == Some(wanted)) {
        return Some(Entry { index, gets: wanted, is_fallback: false });
    }
    let index = (0..8).find(|index| gives(*index) == Some(Uc)).unwrap_or_default();
    Some(Entry { index, gets: gives(index)?, is_fallback: true })
}

#[cfg(test)]
mod tests {
    use super::{HOST_PAT, Type, effective, entry};

    #[test]
    fn encodings_two_and_three_are_reserved_and_seven_is_no_mtrrs() {
        let pat: Vec<u8> = (0..=255).filter(|bits| Type::of_pat(*bits).is_some()).collect();
        let mtrr: Vec<u8> = (0..=255).filter(|bits| Type::of_mtrr(*bits).is_some()).collect();
        assert_eq!((pat, mtrr), (vec![0, 1, 4, 5, 6, 7], vec![0, 1, 4, 5, 6]));
    }

    /// Every combination: a guest gets what it wants, or no caching at all, and never another kind of caching.
    #[test]
    fn a_guest_gets_its_type_or_none_and_the_host_keeps_its_mtrrs() {
        let (mut all, mut fallbacks) = (0, 0);
        for host in &Type::ALL[..5] {
            for guest in &Type::ALL[..5] {
                for pat in Type::ALL {
                    let wanted = effective(*guest, pat).unwrap();
                    let entry = entry(wanted, *host, &HOST_PAT).unwrap();
                    assert_eq!(effective(*host, HOST_PAT[entry.index]), Some(entry.gets));
                    assert_eq!(entry.is_fallback, entry.gets != wanted);
                    assert!(!entry.is_fallback || entry.gets == Type::Uc);
                    (all, fallbacks) = (all + 1, fallbacks + u32::from(entry.is_fallback));
                }
            }
        }
        assert_eq!(all, 150);
        assert!((1..all / 2).contains(&fallbacks), "{fallbacks}");
    }

    #[test]
    fn under_a_write_back_mtrr_every_type_can_be_had() {
        for pat in Type::ALL {
            let wanted = effective(Type::Wb, pat).unwrap();
            assert!(!entry(wanted, Type::Wb, &HOST_PAT).unwrap().is_fallback);
        }
        assert_eq!(effective(Type::UcMinus, Type::Wb), None);
        assert_eq!(entry(Type::Wb, Type::UcMinus, &HOST_PAT), None);
    }
}
