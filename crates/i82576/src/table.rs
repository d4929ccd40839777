//! The register map of the PF as a table: where each register is, how it resets, and what a read or a write
//! does to it. A register whose whole behaviour is its row needs no code anywhere.
//!
//! Left out: side effects on anything but the register itself; the card has those.

use crate::register as r;
use crate::units::{Queue, Vector, VfIndex};

/// What software's reads and writes do to the stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Written bits within the mask are kept.
    Rw(u32),
    /// Writes are ignored.
    Ro,
    /// Reading clears; writes are ignored.
    Rc,
    /// Writing a one clears the bit, within the mask.
    W1c(u32),
    /// Writing a one sets the bit, within the mask.
    W1s(u32),
    /// Reads as zero; what a write does is the card's business.
    Wo,
}

/// All bits.
const ALL: u32 = 0xffff_ffff;
/// Ring bases are 128-byte aligned.
const RING_BASE: u32 = 0xffff_ff80;
/// Ring lengths are multiples of 128 bytes, up to 64K descriptors.
const RING_LENGTH: u32 = 0x000f_ff80;
/// Heads and tails are descriptor indices.
const INDEX: u32 = 0xffff;
/// Thresholds, enable, flush and priority of RXDCTL and TXDCTL.
const DCTL: u32 = 0x0e1f_1f1f;

/// A second place where some of a register's elements appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// Where element 0 appears.
    pub offset: u32,
    /// Distance to the next element, bytes.
    pub stride: u32,
    /// How many elements appear there, from element 0 on.
    pub count: u32,
}

/// A row: a register, or an array of equal ones.
#[derive(Debug, Clone, Copy)]
pub struct Register {
    /// The datasheet's name.
    pub name: &'static str,
    /// Where element 0 is, bytes from the start of BAR0.
    pub offset: u32,
    /// Distance to the next element, bytes.
    pub stride: u32,
    /// Elements.
    pub count: u32,
    /// Reads and writes.
    pub access: Access,
    /// Value after reset.
    pub reset: u32,
    /// Whether a software reset (CTRL.RST) leaves the value alone.
    pub sticky: bool,
    /// The other place, if there is one.
    pub alias: Option<Alias>,
}

impl Register {
    const fn one(name: &'static str, offset: u32, access: Access) -> Self {
        Self { name, offset, stride: 4, count: 1, access, reset: 0, sticky: false, alias: None }
    }

    const fn many(name: &'static str, offset: u32, stride: u32, count: u32, access: Access) -> Self {
        Self { name, offset, stride, count, access, reset: 0, sticky: false, alias: None }
    }

    const fn reset(mut self, value: u32) -> Self {
        self.reset = value;
        self
    }

    const fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }

    const fn also_at(mut self, offset: u32, stride: u32, count: u32) -> Self {
        self.alias = Some(Alias { offset, stride, count });
        self
    }

    /// Offsets of the elements, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u32> {
        let (offset, stride) = (self.offset, self.stride);
        (0..self.count).map(move |i| offset + i * stride)
    }
}

const fn rx(name: &'static str, at: u32, access: Access) -> Register {
    Register::many(name, r::rx_block(Q0) + at, 0x40, 16, access).also_at(0x2800 + at, 0x100, 4)
}

const fn tx(name: &'static str, at: u32, access: Access) -> Register {
    Register::many(name, r::tx_block(Q0) + at, 0x40, 16, access).also_at(0x3800 + at, 0x100, 4)
}

const fn per_vf(name: &'static str, at: u32, access: Access) -> Register {
    Register::many(name, r::vf_block(VF0) + at, 0x100, 8, access)
}

const Q0: Queue = match Queue::new(0) {
    Some(q) => q,
    None => panic!(),
};
const VF0: VfIndex = match VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
};
const V0: Vector = match Vector::new(0) {
    Some(v) => v,
    None => panic!(),
};

use Access::{Rc, Ro, Rw, W1c, W1s, Wo};

/// Control, status, NVM and PHY access.
const GENERAL: &[Register] = &[
    Register::one("CTRL", r::CTRL, Rw(!0x8400_0000)).reset(0x0010_0209),
    Register::one("STATUS", r::STATUS, Ro),
    Register::one("EECD", r::EECD, Rw(0x0000_004f)).reset(0x0000_5300),
    Register::one("EERD", r::EERD, Rw(0x0000_fffc)),
    Register::one("CTRL_EXT", r::CTRL_EXT, Rw(!0x8000_2000)),
    Register::one("MDIC", r::MDIC, Rw(0x2fff_ffff)).reset(0x1000_0000),
    Register::one("FCAL", 0x0028, Rw(ALL)),
    Register::one("FCAH", 0x002c, Rw(ALL)),
    Register::one("FCT", 0x0030, Rw(ALL)),
    Register::one("CONNSW", 0x0034, Rw(ALL)),
    Register::one("VET", r::VET, Rw(ALL)).reset(0x8100_8100),
    Register::one("FCTTV", 0x0170, Rw(ALL)),
    Register::one("LEDCTL", 0x0e00, Rw(ALL)).reset(0x0706_8302),
    Register::one("EEMNGCTL", 0x1010, Ro).reset(0x000c_0000),
    Register::one("PCS_CFG0", 0x4200, Rw(ALL)),
    Register::one("PCS_LCTL", 0x4208, Rw(ALL)),
    Register::one("PCS_LSTAT", 0x420c, Ro),
    Register::one("PCS_ANADV", 0x4218, Rw(ALL)),
    Register::one("WUC", 0x5800, Rw(ALL)),
    Register::one("WUFC", 0x5808, Rw(ALL)),
    Register::one("WUS", 0x5810, W1c(ALL)),
    Register::one("MANC", 0x5820, Rw(ALL)),
    Register::one("MANC2H", 0x5860, Rw(ALL)),
    Register::one("GCR", 0x5b00, Rw(0x0001_f000)).reset(0x0004_0000),
    Register::one("FACTPS", 0x5b30, Ro),
    Register::one("SWSM", r::SWSM, Rw(0x0000_0003)),
    Register::one("FWSM", 0x5b54, Ro),
    Register::one("SW_FW_SYNC", 0x5b5c, Rw(0x0000_ffff)),
    Register::one("PBACL", 0x5b68, Wo),
    Register::one("LEDMUX", 0x8130, Rw(ALL)),
];

/// Causes, masks, vectors and throttles.
const INTERRUPT: &[Register] = &[
    Register::one("ICR", r::ICR, W1c(ALL)).also_at(0x00c0, 4, 1),
    Register::one("ICS", r::ICS, Wo).also_at(0x00c8, 4, 1),
    Register::one("IMS", r::IMS, W1s(ALL)).also_at(0x00d0, 4, 1),
    Register::one("IMC", r::IMC, Wo).also_at(0x00d8, 4, 1),
    Register::one("IAM", r::IAM, Rw(ALL)).also_at(0x00e0, 4, 1),
    Register::one("GPIE", r::GPIE, Rw(ALL)),
    Register::one("EICS", r::EICS, Wo),
    Register::one("EIMS", r::EIMS, W1s(ALL)),
    Register::one("EIMC", r::EIMC, Wo),
    Register::one("EIAC", r::EIAC, Rw(0x01ff_ffff)),
    Register::one("EIAM", r::EIAM, Rw(ALL)),
    Register::one("EICR", r::EICR, W1c(ALL)),
    Register::many("EITR", r::eitr(V0), 4, 25, Rw(crate::bits::eitr::KEPT)).sticky(),
    Register::many("IVAR", r::ivar(0), 4, 8, Rw(0x9f9f_9f9f)),
    Register::one("IVAR_MISC", r::IVAR_MISC, Rw(0x0000_9f9f)),
    Register::many("VTIVAR", r::vtivar(VF0), 0x100, 8, Rw(crate::bits::ivar::VTIVAR_MASK)),
    Register::many("VTIVAR_MISC", r::vtivar_misc(VF0), 0x100, 8, Rw(crate::bits::ivar::VTIVAR_MISC_MASK)),
];

/// Rings and packet buffers.
const QUEUES: &[Register] = &[
    Register::one("RXPBS", 0x2404, Rw(ALL)).reset(0x40).sticky(),
    Register::one("QDE", r::QDE, Rw(0xffff)),
    Register::one("SWPBS", 0x3004, Rw(ALL)).reset(0x14),
    Register::one("TXPBS", 0x3404, Rw(ALL)).reset(0x28).sticky(),
    Register::one("DTXTCPFLGL", r::DTXTCPFLGL, Rw(0x0fff_0fff)).reset(0x0f76_0ff6),
    Register::one("DTXTCPFLGH", r::DTXTCPFLGH, Rw(0x0fff)).reset(0x0f7f),
    rx("RDBAL", r::rx::RDBAL, Rw(RING_BASE)),
    rx("RDBAH", r::rx::RDBAH, Rw(ALL)),
    rx("RDLEN", r::rx::RDLEN, Rw(RING_LENGTH)),
    rx("SRRCTL", r::rx::SRRCTL, Rw(0xcff0_3f7f | 0x0e00_0000)).reset(0x400),
    rx("RDH", r::rx::RDH, Rw(INDEX)),
    rx("RXCTL", r::rx::RXCTL, Rw(ALL)).reset(0xa200),
    rx("RDT", r::rx::RDT, Rw(INDEX)),
    rx("RXDCTL", r::rx::RXDCTL, Rw(DCTL & !crate::bits::dctl::SWFLSH)).reset(0x0001_0000),
    rx("RQDPC", r::rx::RQDPC, Rc),
    tx("TDBAL", r::tx::TDBAL, Rw(RING_BASE)),
    tx("TDBAH", r::tx::TDBAH, Rw(ALL)),
    tx("TDLEN", r::tx::TDLEN, Rw(RING_LENGTH)),
    tx("TDH", r::tx::TDH, Rw(INDEX)),
    tx("TXCTL", r::tx::TXCTL, Rw(ALL)).reset(0x2a00),
    tx("TDT", r::tx::TDT, Rw(INDEX)),
    tx("TXDCTL", r::tx::TXDCTL, Rw(DCTL & !crate::bits::dctl::SWFLSH)),
    tx("TDWBAL", r::tx::TDWBAL, Rw(0xffff_fffd)),
    tx("TDWBAH", r::tx::TDWBAH, Rw(ALL)),
];

/// Receive and transmit control, filters and offloads.
const FILTER: &[Register] = &[
    Register::one("RCTL", r::RCTL, Rw(0x06ff_fffe)),
    Register::one("TCTL", r::TCTL, Rw(ALL)),
    Register::one("TCTL_EXT", 0x0404, Rw(ALL)),
    Register::one("FCRTL", 0x2160, Rw(ALL)),
    Register::one("FCRTH", 0x2168, Rw(ALL)),
    Register::one("FCRTV", 0x2460, Rw(ALL)),
    Register::one("RXCSUM", r::RXCSUM, Rw(0x0000_3fff)).reset(0x300),
    Register::one("RLPML", r::RLPML, Rw(0x3fff)).reset(0x2600),
    Register::one("RFCTL", r::RFCTL, Rw(ALL)),
    Register::many("MTA", r::mta(0), 4, 128, Rw(ALL)),
    Register::many("RAL", r::ral(0), 8, 16, Rw(ALL)),
    Register::many("RAH", r::rah(0), 8, 16, Rw(0x83ff_ffff)),
    Register::many("RAL16", r::ral(16), 8, 8, Rw(ALL)),
    Register::many("RAH16", r::rah(16), 8, 8, Rw(0x83ff_ffff)),
    Register::many("PSRTYPE", 0x5480, 4, 8, Rw(ALL)),
    Register::many("VFTA", r::vfta(0), 4, 128, Rw(ALL)),
    Register::many("RETA", r::reta(0), 4, 32, Rw(ALL)),
    Register::many("RSSRK", r::rssrk(0), 4, 10, Rw(ALL)),
    Register::one("MRQC", r::MRQC, Rw(0x01ff_0007)),
    Register::many("UTA", r::uta(0), 4, 128, Rw(ALL)),
];

/// The switch between pools.
const SWITCH: &[Register] = &[
    Register::one("DTXSWC", r::DTXSWC, Rw(0x80ff_ffff)),
    Register::one("LVMMC", r::LVMMC, Rc),
    Register::one("WVBR", r::WVBR, Rc),
    Register::one("MDFB", r::MDFB, W1c(0xffff)),
    Register::one("DTXCTL", r::DTXCTL, Rw(0x7f)).reset(0x44),
    Register::one("RTTDQSEL", r::RTTDQSEL, Rw(0xf)),
    Register::one("RTTBCNRM", r::RTTBCNRM, Rw(0x3ff)),
    Register::one("RTTBCNRC", r::RTTBCNRC, Rw(0x8fff_ffff)),
    Register::many("VMVIR", r::vmvir(0), 4, 8, Rw(0xc000_ffff)),
    Register::one("VT_CTL", r::VT_CTL, Rw(0x7000_0380)),
    Register::many("VMOLR", r::vmolr(0), 4, 8, Rw(0x5f03_3fff | 0x2080_0000)).reset(0x8000_2600),
    Register::one("RPLOLR", r::RPLOLR, Rw(0x4000_0000)).reset(0x8000_0000),
    Register::many("VLVF", r::vlvf(0), 4, 32, Rw(0x801f_ffff)),
    Register::many("VMRCTL", r::vmrctl(0), 4, 4, Rw(0x0000_070f)),
    Register::many("VMRVLAN", r::vmrvlan(0), 4, 4, Rw(ALL)),
    Register::many("VMRVM", r::vmrvm(0), 4, 4, Rw(0xff)),
    Register::one("SCCRL", r::SCCRL, Rw(0x0003_ff1f)),
    Register::one("SCSTS", r::SCSTS, Ro),
    Register::one("BSCTRH", r::BSCTRH, Rw(0x0007_ffff)),
    Register::one("MSCTRH", r::MSCTRH, Rw(0x0007_ffff)),
    Register::one("BSCCNT", r::BSCCNT, Ro),
    Register::one("MSCCNT", r::MSCCNT, Ro),
    Register::one("SCTC", r::SCTC, Ro),
    Register::one("SCBI", r::SCBI, Rw(0x01ff_ffff)).reset(crate::bits::sccrl::BASIC_INTERVAL_RESET),
];

/// Between PF and VFs.
const MAILBOX: &[Register] = &[
    // Memory, not a register: no reset clears what igbvf reads again to see whether it may send.
    Register::many("VMBMEM", r::vmbmem(VF0, 0), 4, 128, Rw(ALL)).sticky(),
    Register::many("P2VMAILBOX", r::p2v_mailbox(VF0), 4, 8, Rw(0)),
    Register::many("V2PMAILBOX", r::v2p_mailbox(VF0), 4, 8, Ro).reset(crate::bits::v2p::RSTI),
    Register::one("MBVFICR", r::MBVFICR, W1c(0x00ff_00ff)),
    Register::one("MBVFIMR", r::MBVFIMR, Rw(0xff)).reset(0xff),
    Register::one("VFLRE", r::VFLRE, W1c(0xff)),
    Register::one("VFRE", r::VFRE, Rw(0xff)).reset(0xff),
    Register::one("VFTE", r::VFTE, Rw(0xff)).reset(0xff),
    per_vf("VTCTRL", r::vf_stats::VTCTRL, Wo),
    per_vf("VFGPRC", r::vf_stats::VFGPRC, Ro),
    per_vf("VFGPTC", r::vf_stats::VFGPTC, Ro),
    per_vf("VFGORC", r::vf_stats::VFGORC, Ro),
    per_vf("VFGOTC", r::vf_stats::VFGOTC, Ro),
    per_vf("VFMPRC", r::vf_stats::VFMPRC, Ro),
    per_vf("VFGPRLBC", r::vf_stats::VFGPRLBC, Ro),
    per_vf("VFGPTLBC", r::vf_stats::VFGPTLBC, Ro),
    per_vf("VFGORLBC", r::vf_stats::VFGORLBC, Ro),
    per_vf("VFGOTLBC", r::vf_stats::VFGOTLBC, Ro),
];

/// The port's statistics, cleared by reading.
const STATISTICS: &[Register] = &[
    Register::many("CRCERRS..", 0x4000, 4, 22, Rc),
    Register::one("FCRUC", 0x4058, Rc),
    Register::many("PRC64..PRC1522", 0x405c, 4, 6, Rc),
    Register::one("GPRC", r::GPRC, Rc),
    Register::one("BPRC", r::BPRC, Rc),
    Register::one("MPRC", r::MPRC, Rc),
    Register::one("GPTC", r::GPTC, Rc),
    Register::one("GORCL", r::GORCL, Ro),
    Register::one("GORCH", r::GORCH, Rc),
    Register::one("GOTCL", r::GOTCL, Ro),
    Register::one("GOTCH", r::GOTCH, Rc),
    Register::one("RNBC", r::RNBC, Rc),
    Register::one("RUC", r::RUC, Rc),
    Register::one("RFC", 0x40a8, Rc),
    Register::one("ROC", r::ROC, Rc),
    Register::one("RJC", 0x40b0, Rc),
    Register::many("MGTPRC..", 0x40b4, 4, 3, Rc),
    Register::one("TORL", r::TORL, Ro),
    Register::one("TORH", r::TORH, Rc),
    Register::one("TOTL", r::TOTL, Ro),
    Register::one("TOTH", r::TOTH, Rc),
    Register::one("TPR", r::TPR, Rc),
    Register::one("TPT", r::TPT, Rc),
    Register::many("PTC64..PTC1522", 0x40d8, 4, 6, Rc),
    Register::one("MPTC", r::MPTC, Rc),
    Register::one("BPTC", r::BPTC, Rc),
    Register::one("TSCTC", r::TSCTC, Rc),
    Register::one("CBRMPC", 0x40fc, Rc),
    Register::one("IAC", 0x4100, Rc),
    Register::many("RPTHC..", 0x4104, 4, 15, Rc),
    Register::one("SSVPC", r::SSVPC, Rc),
    Register::one("SCVPC", 0x4228, Rc),
];

/// The whole table, by chapter.
pub const CHAPTERS: &[(&str, &[Register])] = &[
    ("general", GENERAL),
    ("interrupt", INTERRUPT),
    ("queues", QUEUES),
    ("filters and offloads", FILTER),
    ("switch", SWITCH),
    ("mailbox and VFs", MAILBOX),
    ("statistics", STATISTICS),
];

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Register> {
    CHAPTERS.iter().flat_map(|(_, rows)| rows.iter())
}

#[cfg(test)]
mod tests {
    use super::rows;
    use crate::ids::PF_BAR0_SIZE;
    extern crate std;
    use std::collections::HashMap;

    #[test]
    fn no_two_registers_share_an_offset() {
        let mut owner = HashMap::new();
        for row in rows() {
            let aliases = row.alias.iter().flat_map(|a| (0..a.count).map(|i| a.offset + i * a.stride));
            for offset in row.offsets().chain(aliases) {
                assert!(
                    offset.is_multiple_of(4) && (offset as usize) < PF_BAR0_SIZE,
                    "{} {offset:#x}",
                    row.name
                );
                if let Some(other) = owner.insert(offset, row.name) {
                    panic!("{} and {other} both claim {offset:#x}", row.name);
                }
            }
        }
    }

    #[test]
    fn an_alias_shows_the_first_elements_of_its_row() {
        for row in rows() {
            if let Some(alias) = row.alias {
                assert!(alias.count <= row.count, "{}", row.name);
            }
        }
    }
}
