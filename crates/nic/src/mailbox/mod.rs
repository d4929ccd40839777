//! The mailbox between PF and VFs: the lock of the shared memory, and the doorbells. The memory's words are plain
//! registers. The card does not interpret messages.

use crate::file::RegisterFile;
use crate::interrupt::Interrupts;
use i82576::VfIndex;
use i82576::bits::{icr, mbvficr, p2v, v2p};
use i82576::register as r;

/// Applies a VF's write of V2PMAILBOX: locks or unlocks the memory (VFU), and notifies the PF (REQ, ACK).
pub fn vf_writes(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex, value: u32) {
    take_or_drop(file, vf, value & v2p::VFU != 0, v2p::VFU, v2p::PFU);
    let mut events = 0;
    if value & v2p::REQ != 0 {
        events |= vf.bit() << mbvficr::VFREQ_SHIFT;
    }
    if value & v2p::ACK != 0 {
        events |= vf.bit() << mbvficr::VFACK_SHIFT;
    }
    if events != 0 {
        file.update(r::MBVFICR, 0, events);
        ring_pf(file, interrupts, vf);
    }
}

/// Reads the VF's mailbox register V2PMAILBOX, and clears its read-clear bits (PFSTS, PFACK, RSTD).
pub fn vf_reads(file: &mut RegisterFile, vf: VfIndex) -> u32 {
    let at = r::v2p_mailbox(vf);
    let value = file.get(at);
    file.update(at, v2p::READ_CLEARS, 0);
    value
}

/// Applies the PF's write of P2VMAILBOX: locks or unlocks the memory (PFU), notifies the VF (STS, ACK), or revokes the VF's
/// lock and its pending notices (RVFU).
pub fn pf_writes(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex, value: u32) {
    if value & p2v::RVFU != 0 {
        file.update(r::v2p_mailbox(vf), v2p::VFU, 0);
        file.update(r::MBVFICR, vf.bit() << mbvficr::VFREQ_SHIFT | vf.bit() << mbvficr::VFACK_SHIFT, 0);
    }
    take_or_drop(file, vf, value & p2v::PFU != 0, v2p::PFU, v2p::VFU);
    let mut events = 0;
    if value & p2v::STS != 0 {
        events |= v2p::PFSTS;
    }
    if value & p2v::ACK != 0 {
        events |= v2p::PFACK;
    }
    if events != 0 {
        file.update(r::v2p_mailbox(vf), 0, events);
        interrupts.raise_mailbox(file, vf);
    }
}

/// Reads P2VMAILBOX for the PF: the bits by which PF and VF lock the mailbox.
#[must_use]
pub fn pf_reads(file: &RegisterFile, vf: VfIndex) -> u32 {
    file.get(r::v2p_mailbox(vf)) & (p2v::VFU | p2v::PFU)
}

/// Resets a VF's mailbox: clears locks and unread status, notifies the PF (VFLRE), and sets RSTD for the VF.
pub fn vf_reset(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex) {
    file.update(r::v2p_mailbox(vf), !v2p::RSTI, v2p::RSTD);
    file.update(r::MBVFICR, vf.bit() << mbvficr::VFREQ_SHIFT | vf.bit() << mbvficr::VFACK_SHIFT, 0);
    file.update(r::VFLRE, 0, vf.bit());
    ring_pf(file, interrupts, vf);
}

/// Applies CTRL_EXT.PFRSTD, the end of the PF's reset: VFs read RSTD in place of RSTI and may start. Only VFs that read
/// RSTI change, because a driver writes the register again for its other bits.
pub fn pf_reset_done(file: &mut RegisterFile) {
    for at in VfIndex::all().map(r::v2p_mailbox) {
        if file.get(at) & v2p::RSTI != 0 {
            file.update(at, v2p::RSTI, v2p::RSTD);
        }
    }
}

/// Locks the mailbox memory for the owner of lock bit `own` if the owner of bit `other` does not hold it. A write that
/// does not request the lock releases it.
fn take_or_drop(file: &mut RegisterFile, vf: VfIndex, wants: bool, own: u32, other: u32) {
    let at = r::v2p_mailbox(vf);
    if !wants {
        file.update(at, own, 0);
    } else if file.get(at) & other == 0 {
        file.update(at, 0, own);
    }
}

/// Notifies the PF of a VF's event, unless MBVFIMR masks the VF.
fn ring_pf(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex) {
    if file.get(r::MBVFIMR) & vf.bit() != 0 {
        interrupts.raise_other(file, icr::VMMB);
    }
}
