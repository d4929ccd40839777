//! Bounds of PCIe numbers: routing ids, BAR sizes, sets of VFs.

use crate::bound;
use pcie::config::{Bar, BarKind};
use pcie::sriov::VfRoutingIds;
use pcie::{Rid, VfIndex, VfSet};

/// Returns true if a VF's routing id is the PF's plus offset and strides, or if there is none and the sum is beyond the last bus.
fn is_routed(pf: u16, first_offset: u16, stride: u16, n: u8) -> bool {
    let rid = VfRoutingIds { first_offset, stride }.rid(Rid(pf), n);
    let sum = u32::from(pf) + u32::from(first_offset) + u32::from(n) * u32::from(stride);
    match rid {
        Some(Rid(rid)) => u32::from(rid) == sum,
        None => sum > u32::from(u16::MAX),
    }
}

bound! {
    /// With strides of 1 and 2, a VF's routing id is the PF's plus offset and strides, or there is none beyond the last bus.
    fn vf_routing_id(pf: u16, first_offset: u16, n: u8) if true; {
        let routed = is_routed(pf, first_offset, 1, n) && is_routed(pf, first_offset, 2, n);
        [routed, routed && pf.checked_add(first_offset).is_some()]
    }
}

bound! {
    /// A BAR's size from sizing is a power of two that its low bits allow, at most 2 GiB.
    fn bar_sizing(low: u32, high: u32) if true; {
        let Some(bar) = Bar::from_sizing(low, high) else { return 3 };
        let least = if bar.kind == BarKind::Io { 4 } else { 16 };
        let power = bar.size & (bar.size - 1) == 0;
        let masked = low & (bar.size - 1) & !(least - 1) == 0 && low & bar.size != 0;
        [power && masked && bar.size >= least, power && bar.size > 16]
    }
}

bound! {
    /// Operations on sets of VFs agree for each VF.
    fn vf_sets(one: u64, two: u64, n: u8) if n < 64; {
        let (first, second) = (VfSet::new(one), VfSet::new(two));
        let Some(vf) = VfIndex::new(n) else { return 0 };
        let (a, b) = (first.has(vf), second.has(vf));
        let or = first.or(second).has(vf) == (a || b);
        let and = first.and(second).has(vf) == (a && b);
        let without = first.without(second).has(vf) == (a && !b);
        [or && and && without, or && first.without(second).has(vf) == a]
    }
}

bound! {
    /// A VF's index is below 64, and from a register field the low six bits.
    fn vf_index(n: u8, field: u32) if true; {
        let vf = VfIndex::new(n);
        let of_field = VfIndex::of_field(field);
        let exact = vf.map(VfIndex::get) == (n < 64).then_some(n);
        [exact && u32::from(of_field.get()) == field & 63, exact && u32::from(of_field.get()) == field & 127]
    }
}
