//! The mailbox between PF and VFs: who holds the shared memory, and the doorbells. The words themselves are
//! plain registers. Left out: what the messages mean.

use crate::file::RegisterFile;
use crate::interrupt::Interrupts;
use i82576::VfIndex;
use i82576::bits::{icr, mbvficr, p2v, v2p};
use i82576::register as r;

/// The VF writes V2PMAILBOX: takes or drops the buffer, rings the PF.
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

/// The VF reads V2PMAILBOX: the status bits it sees are gone afterwards.
pub fn vf_reads(file: &mut RegisterFile, vf: VfIndex) -> u32 {
    let at = r::v2p_mailbox(vf);
    let value = file.get(at);
    file.update(at, v2p::READ_CLEARS, 0);
    value
}

/// The PF writes P2VMAILBOX: takes or drops the buffer, rings the VF, or takes the buffer away from it.
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

/// The PF reads P2VMAILBOX: who holds the buffer.
#[must_use]
pub fn pf_reads(file: &RegisterFile, vf: VfIndex) -> u32 {
    file.get(r::v2p_mailbox(vf)) & (p2v::VFU | p2v::PFU)
}

/// The VF was reset: its locks and unread status go, the PF is told, and the VF sees that its reset is done.
pub fn vf_reset(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex) {
    file.update(r::v2p_mailbox(vf), !v2p::RSTI, v2p::RSTD);
    file.update(r::MBVFICR, vf.bit() << mbvficr::VFREQ_SHIFT | vf.bit() << mbvficr::VFACK_SHIFT, 0);
    file.update(r::VFLRE, 0, vf.bit());
    ring_pf(file, interrupts, vf);
}

/// The PF is done with its own reset (CTRL_EXT.PFRSTD): VFs may start. A PF that writes the register again
/// for another of its bits has not been reset again.
pub fn pf_reset_done(file: &mut RegisterFile) {
    for at in VfIndex::all().map(r::v2p_mailbox) {
        if file.get(at) & v2p::RSTI != 0 {
            file.update(at, v2p::RSTI, v2p::RSTD);
        }
    }
}

/// The lock rule: a side gets the buffer only while the other does not hold it, and drops it by any write
/// that does not ask for it.
fn take_or_drop(file: &mut RegisterFile, vf: VfIndex, wants: bool, own: u32, other: u32) {
    let at = r::v2p_mailbox(vf);
    if !wants {
        file.update(at, own, 0);
    } else if file.get(at) & other == 0 {
        file.update(at, 0, own);
    }
}

fn ring_pf(file: &mut RegisterFile, interrupts: &mut Interrupts, vf: VfIndex) {
    if file.get(r::MBVFIMR) & vf.bit() != 0 {
        interrupts.raise_other(file, icr::VMMB);
    }
}
