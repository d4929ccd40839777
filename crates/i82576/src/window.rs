//! Register file of a VF as a window onto the PF's: the PF register and bits behind each VF offset. There is one
//! backing store, so the two views cannot disagree.
//!
//! Plain registers need no other code than this table; the card implements side effects.

use crate::numbers::{PoolIndex, VectorIndex, VfIndex};
use crate::register::{self as r, vf, vf_stats};
use crate::table::queues::{DCTL, INDEX, RING_BASE, RING_LENGTH, SRRCTL, WRITE_BACK};
use crate::table::{ALL, RegisterAccessRule};
use pcie::low::{low_byte, low_word};

/// Location of a VF register's bits in the PF's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfRegisterBacking {
    /// Location in the PF register at this offset, which all VFs share.
    Shared(u32),
    /// Location in a PF register of which each VF has an element: the offset of VF 0's element, and the stride in
    /// bytes.
    PerVf(u32, u32),
    /// Location in three bits of the PF register at this offset, a bit per vector: for VF n, bits 22-3n to 24-3n.
    VectorBits(u32),
    /// Location in the EITR registers of the VF's three vectors.
    Throttle,
    /// Location in the block of one of the VF's receive queues (n and n + 8 for VF n), by the offset in the block.
    Receive(u32),
    /// Location in the block of one of the VF's transmit queues (n and n + 8 for VF n), by the offset in the block.
    Transmit(u32),
}

/// Row of the VF register table: a VF register, or an array of equal ones.
#[derive(Debug, Clone, Copy)]
pub struct VfRegister {
    /// Name of the VF register in the datasheet.
    pub name: &'static str,
    /// Offset in the VF's BAR0 of the register's element 0, in bytes.
    pub offset: u32,
    /// Distance to the VF register's next element in bytes.
    pub stride: u32,
    /// Number of elements of the VF register.
    pub count: u32,
    /// Effect of the VF's reads and writes on the register.
    pub access: RegisterAccessRule,
    /// Location of the VF register's bits in the port's registers.
    pub backing: VfRegisterBacking,
}

/// VF register resolved for one VF: bits `mask << shift` of the PF register at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedVfRegister {
    /// Main offset of the PF register that holds the VF register's bits.
    pub offset: u32,
    /// Position of the VF register's bits in the PF register.
    pub shift: u32,
    /// Mask of the VF register's bits, as the VF sees them.
    pub mask: u32,
    /// Effect of the VF's reads and writes on the resolved register.
    pub access: RegisterAccessRule,
}

/// Pages of a VF's BAR0 that its guest may access as memory: interrupts and rings. Writes there can be detected
/// later, and values to read can be published before; that is not true of the first page's registers (reset,
/// mailbox).
pub const MAPPED: core::ops::Range<u32> = 0x1000..0x4000;

/// Mask of the bits of a VF's three interrupt vectors.
pub const VECTOR_BITS: u32 = 0b111;

const fn row(
    name: &'static str,
    offset: u32,
    access: RegisterAccessRule,
    backing: VfRegisterBacking,
) -> VfRegister {
    VfRegister { name, offset, stride: 4, count: 1, access, backing }
}

const fn rx(name: &'static str, at: u32, access: RegisterAccessRule) -> VfRegister {
    VfRegister {
        name,
        offset: vf::RX_BLOCK + at,
        stride: vf::QUEUE_STRIDE,
        count: 2,
        access,
        backing: VfRegisterBacking::Receive(at),
    }
}

const fn tx(name: &'static str, at: u32, access: RegisterAccessRule) -> VfRegister {
    VfRegister {
        name,
        offset: vf::TX_BLOCK + at,
        stride: vf::QUEUE_STRIDE,
        count: 2,
        access,
        backing: VfRegisterBacking::Transmit(at),
    }
}

const fn stat(name: &'static str, at: u32) -> VfRegister {
    row(name, vf::STATISTICS + at, Ro, VfRegisterBacking::PerVf(0x1_0000 + at, 0x100))
}

use RegisterAccessRule::{Rc, Ro, Rw, W1c, W1s, Wo};

/// Register file of a VF. All other offsets read zero and ignore writes.
pub const TABLE: &[VfRegister] = &[
    row("VTCTRL", vf::CTRL, Wo, VfRegisterBacking::PerVf(0x1_0000, 0x100)),
    row("STATUS", vf::STATUS, Ro, VfRegisterBacking::Shared(r::STATUS)),
    VfRegister {
        name: "VMBMEM",
        offset: vf::VMBMEM,
        stride: 4,
        count: 16,
        access: Rw(ALL),
        backing: VfRegisterBacking::PerVf(0x0800, 0x40),
    },
    row("V2PMAILBOX", vf::V2PMAILBOX, Wo, VfRegisterBacking::PerVf(0x0c40, 4)),
    row("VTPBACL", vf::VTPBACL, Wo, VfRegisterBacking::Shared(r::PBACL)),
    row("PSRTYPE", vf::PSRTYPE, Rw(ALL), VfRegisterBacking::PerVf(r::psrtype(PoolIndex::FIRST), 4)),
    stat("VFGPRC", vf_stats::VFGPRC),
    stat("VFGPTC", vf_stats::VFGPTC),
    stat("VFGORC", vf_stats::VFGORC),
    stat("VFGOTC", vf_stats::VFGOTC),
    // Intel's header has VFMPRC at 0xf38, QEMU's model at 0xf3c: both are served from one counter.
    row("VFMPRC", 0x0f38, Ro, VfRegisterBacking::PerVf(0x1_003c, 0x100)),
    stat("VFMPRC", vf_stats::VFMPRC),
    stat("VFGPRLBC", vf_stats::VFGPRLBC),
    stat("VFGPTLBC", vf_stats::VFGPTLBC),
    stat("VFGORLBC", vf_stats::VFGORLBC),
    stat("VFGOTLBC", vf_stats::VFGOTLBC),
    row("FRTIMER", vf::FRTIMER, Ro, VfRegisterBacking::Shared(r::FRTIMER)),
    row("VTEICS", vf::VTEICS, Wo, VfRegisterBacking::VectorBits(r::EICS)),
    row("VTEIMS", vf::VTEIMS, W1s(VECTOR_BITS), VfRegisterBacking::VectorBits(r::EIMS)),
    row("VTEIMC", vf::VTEIMC, Wo, VfRegisterBacking::VectorBits(r::EIMC)),
    row("VTEIAC", vf::VTEIAC, Rw(VECTOR_BITS), VfRegisterBacking::VectorBits(r::EIAC)),
    row("VTEIAM", vf::VTEIAM, Rw(VECTOR_BITS), VfRegisterBacking::VectorBits(r::EIAM)),
    row("VTEICR", vf::VTEICR, W1c(VECTOR_BITS), VfRegisterBacking::VectorBits(r::EICR)),
    VfRegister {
        name: "VTEITR",
        offset: vf::VTEITR,
        stride: 4,
        count: 3,
        access: Rw(crate::bits::eitr::KEPT),
        backing: VfRegisterBacking::Throttle,
    },
    row("VTIVAR", vf::VTIVAR, Rw(crate::bits::ivar::VTIVAR_MASK), VfRegisterBacking::PerVf(0x1_1700, 0x100)),
    row(
        "VTIVAR_MISC",
        vf::VTIVAR_MISC,
        Rw(crate::bits::ivar::VTIVAR_MISC_MASK),
        VfRegisterBacking::PerVf(0x1_1720, 0x100),
    ),
    row("PBRWAC", vf::PBRWAC, Ro, VfRegisterBacking::Shared(0x24e8)),
    row("PBTWAC", vf::PBTWAC, Ro, VfRegisterBacking::Shared(0x34e8)),
    rx("RDBAL", r::rx::RDBAL, Rw(RING_BASE)),
    rx("RDBAH", r::rx::RDBAH, Rw(ALL)),
    rx("RDLEN", r::rx::RDLEN, Rw(RING_LENGTH)),
    rx("SRRCTL", r::rx::SRRCTL, Rw(SRRCTL)),
    rx("RDH", r::rx::RDH, Rw(INDEX)),
    rx("RXCTL", r::rx::RXCTL, Rw(ALL)),
    rx("RDT", r::rx::RDT, Rw(INDEX)),
    rx("RXDCTL", r::rx::RXDCTL, Rw(DCTL)),
    rx("RQDPC", r::rx::RQDPC, Rc),
    tx("TDBAL", r::tx::TDBAL, Rw(RING_BASE)),
    tx("TDBAH", r::tx::TDBAH, Rw(ALL)),
    tx("TDLEN", r::tx::TDLEN, Rw(RING_LENGTH)),
    tx("TDH", r::tx::TDH, Rw(INDEX)),
    tx("TXCTL", r::tx::TXCTL, Rw(ALL)),
    tx("TDT", r::tx::TDT, Rw(INDEX)),
    tx("TXDCTL", r::tx::TXDCTL, Rw(DCTL)),
    tx("TDWBAL", r::tx::TDWBAL, Rw(WRITE_BACK)),
    tx("TDWBAH", r::tx::TDWBAH, Rw(ALL)),
];

impl VfRegister {
    /// Returns the location of a VF register's element `element` for `vf`.
    #[must_use]
    pub const fn slot(&self, vf: VfIndex, element: u32) -> ResolvedVfRegister {
        let n = vf.get() as u32;
        let (offset, shift, mask) = match self.backing {
            VfRegisterBacking::Shared(offset) => (offset, 0, ALL),
            VfRegisterBacking::PerVf(base, stride) => (base + n * stride + 4 * element, 0, ALL),
            VfRegisterBacking::VectorBits(offset) => (offset, vf.first_vector() as u32, VECTOR_BITS),
            VfRegisterBacking::Throttle => (r::eitr(first_throttle(vf)) + 4 * element, 0, ALL),
            VfRegisterBacking::Receive(at) => (r::rx_block(vf.queue(low_byte(element))) + at, 0, ALL),
            VfRegisterBacking::Transmit(at) => (r::tx_block(vf.queue(low_byte(element))) + at, 0, ALL),
        };
        ResolvedVfRegister { offset, shift, mask, access: self.access }
    }
}

const fn first_throttle(vf: VfIndex) -> VectorIndex {
    match VectorIndex::new(vf.first_vector()) {
        Some(vector) => vector,
        None => panic!(),
    }
}

/// Row index in [`TABLE`] plus 1 and element of the register at each dword-aligned offset, packed for [`resolve`]: 0
/// for no register.
const DECODE: [u16; crate::ids::VF_BAR0_SIZE / 4] = {
    let mut map = [0; crate::ids::VF_BAR0_SIZE / 4];
    let mut i = 0_u16;
    while (i as usize) < TABLE.len() {
        let row = &TABLE[i as usize];
        let mut element = 0;
        while element < row.count {
            let word = (row.offset + element * row.stride) / 4;
            map[word as usize] = ((i + 1) << 4) | low_word(element);
            element += 1;
        }
        i += 1;
    }
    map
};

/// Returns the register at a dword-aligned `offset` of VF `vf`'s BAR0, or `None`.
#[must_use]
pub fn resolve(vf: VfIndex, offset: u32) -> Option<ResolvedVfRegister> {
    let code = *DECODE.get(offset as usize / 4)?;
    let row = TABLE.get(usize::from(code >> 4).checked_sub(1)?)?;
    Some(row.slot(vf, u32::from(code & 0xf)))
}

/// Returns name, element and number of elements of the register at a dword-aligned `offset` of a VF's BAR0.
#[must_use]
pub fn name(offset: u32) -> Option<(&'static str, u32, u32)> {
    let code = *DECODE.get(offset as usize / 4)?;
    let row = TABLE.get(usize::from(code >> 4).checked_sub(1)?)?;
    Some((row.name, u32::from(code & 0xf), row.count))
}

#[cfg(test)]
mod tests {
    use super::{RegisterAccessRule, TABLE, name, resolve};
    use crate::numbers::{QueueIndex, VfIndex};
    use crate::register as r;

    fn vf(n: u8) -> VfIndex {
        VfIndex::new(n).unwrap()
    }

    #[test]
    fn vf_interrupt_vectors_are_three_bits_of_the_ports_register() {
        let slot = resolve(vf(0), r::vf::VTEIMS).unwrap();
        assert_eq!((slot.offset, slot.shift), (r::EIMS, 22));
        assert_eq!(resolve(vf(7), r::vf::VTEIMS).unwrap().shift, 1);
    }

    #[test]
    fn queue_1_of_vf_n_is_card_queue_n_plus_8() {
        let slot = resolve(vf(3), r::vf::RX_BLOCK + 0x100 + r::rx::RDT).unwrap();
        assert_eq!(slot.offset, r::rx_block(QueueIndex::new(11).unwrap()) + r::rx::RDT);
    }

    #[test]
    fn interrupt_throttle_of_vector_2_of_vf_1_is_eitr_21() {
        assert_eq!(resolve(vf(1), r::vf::VTEITR + 8).unwrap().offset, 0x1680 + 4 * 21);
    }

    #[test]
    fn vf_register_offset_is_named_as_in_the_datasheet() {
        assert_eq!(name(r::vf::VMBMEM + 8), Some(("VMBMEM", 2, 16)));
        assert_eq!(name(r::vf::TX_BLOCK + r::tx::TDT), Some(("TDT", 0, 2)));
        assert_eq!(name(0x0018), None);
    }

    #[test]
    fn unknown_vf_offsets_have_no_register() {
        assert_eq!(resolve(vf(0), 0x0018), None);
        assert_eq!(resolve(vf(0), 0x4000), None);
        assert_eq!(resolve(vf(0), 0xffff_fffc), None);
    }

    #[test]
    fn every_vf_register_offset_resolves_to_its_table_entry() {
        for row in TABLE {
            for element in 0..row.count {
                let slot = resolve(vf(5), row.offset + element * row.stride).unwrap();
                assert_eq!(slot, row.slot(vf(5), element), "{}", row.name);
            }
        }
    }

    #[test]
    fn writable_registers_of_two_vfs_have_no_common_bit() {
        let mut owners = std::collections::BTreeMap::new();
        for (vf, offset) in VfIndex::all().flat_map(|vf| (0..0x4000).step_by(4).map(move |at| (vf, at))) {
            let Some(slot) =
                resolve(vf, offset).filter(|slot| !matches!(slot.access, RegisterAccessRule::Ro))
            else {
                continue;
            };
            // A write of the packet buffer's arbiter changes nothing (VTPBACL).
            if slot.offset == r::PBACL {
                continue;
            }
            for bit in (0..32).filter(|bit| (u64::from(slot.mask) << slot.shift) >> bit & 1 == 1) {
                let owner = *owners.entry((slot.offset, bit)).or_insert(vf);
                assert_eq!(owner, vf, "{:?} has bit {bit} of {:#x}", name(offset), slot.offset);
            }
        }
    }
}
