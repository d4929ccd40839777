//! Rows of the registers between PF and VFs: mailboxes, enables, and the window in the PF's BAR onto each VF's own
//! registers. `window` has a VF's own BAR.

use super::CardPart::Vf;
use super::RegisterAccessRule::{Ro, Rw, W1c, W1s, Wo};
use super::{ALL, DecodedRegisterSet, PfRegister, RegisterAccessRule};
use crate::bits::v2p;
use crate::numbers::VfIndex;
use crate::register::{self as r, vf_stats};

const VF0: VfIndex = match VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
};
/// Mask of the bits of a VF's three interrupt vectors.
const VECTORS: u32 = 0b111;
const THE_VFS: &str = "access to the VF's register of this name; no effect if the VF does not exist";

const fn per_vf(name: &'static str, at: u32, access: RegisterAccessRule) -> PfRegister {
    PfRegister::many(name, r::vf_block(VF0) + at, 0x100, 8, access)
}

/// Returns the row of a VF's statistic. No reset of the port or of the VF clears it, since drivers compare it with
/// their last read. A VF that changes its owner starts from zero.
const fn counter(name: &'static str, at: u32) -> PfRegister {
    per_vf(name, at, Ro).sticky()
}

pub(super) const ROWS: &[PfRegister] = &[
    // Memory, not a register: a driver's reset must not clear the word that igbvf reads again to check CTS. A VF
    // that changes its owner starts with zeros.
    PfRegister::many("VMBMEM", r::vmbmem(VF0, 0), 4, 128, Rw(ALL)).sticky(),
    PfRegister::many("P2VMAILBOX", r::p2v_mailbox(VF0), 4, 8, Rw(0)).acts(Vf).more(
        "PFU takes the buffer unless the VF has it; STS and ACK interrupt the VF; RVFU frees the buffer; no \
         effect if the VF does not exist",
    ),
    PfRegister::many("V2PMAILBOX", r::v2p_mailbox(VF0), 4, 8, Ro)
        .reset(v2p::RSTI)
        .more("value of the VF's register of this name; reads and writes have no side effects"),
    PfRegister::one("MBVFICR", r::MBVFICR, W1c(0x00ff_00ff)),
    PfRegister::one("MBVFIMR", r::MBVFIMR, Rw(0xff)).reset(0xff),
    PfRegister::one("VFLRE", r::VFLRE, W1c(0xff)),
    PfRegister::one("VFRE", r::VFRE, Rw(0xff)).decoded(DecodedRegisterSet::SWITCH).reset(0xff),
    PfRegister::one("VFTE", r::VFTE, Rw(0xff)).reset(0xff),
    per_vf("VTCTRL", vf_stats::VTCTRL, Wo).acts(Vf).more("RST resets the VF, if the VF exists"),
    per_vf("VTEICS", vf_stats::VTEICS, Wo).acts(Vf).more(THE_VFS),
    per_vf("VTEIMS", vf_stats::VTEIMS, W1s(VECTORS)).acts(Vf).more(THE_VFS),
    per_vf("VTEIMC", vf_stats::VTEIMC, Wo).acts(Vf).more(THE_VFS),
    per_vf("VTEIAC", vf_stats::VTEIAC, Rw(VECTORS)).acts(Vf).more(THE_VFS),
    per_vf("VTEIAM", vf_stats::VTEIAM, Rw(VECTORS)).acts(Vf).more(THE_VFS),
    per_vf("VTEICR", vf_stats::VTEICR, W1c(VECTORS)).acts(Vf).more(THE_VFS),
    counter("VFGPRC", vf_stats::VFGPRC),
    counter("VFGPTC", vf_stats::VFGPTC),
    counter("VFGORC", vf_stats::VFGORC),
    counter("VFGOTC", vf_stats::VFGOTC),
    // Intel's header has it at 0x38, QEMU's model at 0x3c: both are the same counter.
    counter("VFMPRC", vf_stats::VFMPRC).also_at(0x1_0038, 0x100, 8),
    counter("VFGPRLBC", vf_stats::VFGPRLBC),
    counter("VFGPTLBC", vf_stats::VFGPTLBC),
    counter("VFGORLBC", vf_stats::VFGORLBC),
    counter("VFGOTLBC", vf_stats::VFGOTLBC),
];
