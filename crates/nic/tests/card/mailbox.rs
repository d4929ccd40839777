//! Tests the mailbox: the lock of the shared memory, the doorbells of PF and VF, and the reset notices.

use crate::common::{CardFixture, index};
use i82576::bits::{ctrl, ctrl_ext, icr, mbvficr, p2v, v2p};
use i82576::register::{self as r, vf::CTRL, vf::V2PMAILBOX, vf::VMBMEM};
use pcie::Function::Vf;

const P2V0: u32 = r::p2v_mailbox(match i82576::VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
});

/// Returns a card with three VFs, after VFs and PF have read their reset notices.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).read(V2PMAILBOX);
    }
    bench.pf().write(r::VFLRE, 0xff);
    bench
}

#[test]
fn mailbox_lock_goes_to_the_first_side_that_asks() {
    let mut bench = bench();
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::VFU);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::VFU, "the PF reads VFU");
    bench.vf(0).write(V2PMAILBOX, 0);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::PFU, "the VF reads PFU");
}

#[test]
fn mailbox_write_without_the_lock_bit_releases_the_lock() {
    let mut bench = bench();
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    bench.vf(0).write(V2PMAILBOX, v2p::REQ);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
}

#[test]
fn pf_revokes_a_vfs_mailbox_lock_by_rvfu() {
    let mut bench = bench();
    for vf in [0, 1] {
        bench.vf(vf).write(V2PMAILBOX, v2p::VFU | v2p::REQ | v2p::ACK);
    }
    bench.pf().write(P2V0, p2v::RVFU | p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
    let neighbours = 2 << mbvficr::VFREQ_SHIFT | 2 << mbvficr::VFACK_SHIFT;
    assert_eq!(
        bench.pf().read(r::MBVFICR),
        neighbours,
        "RVFU clears the VF's notices and not its neighbour's"
    );
}

#[test]
fn mailbox_memory_is_shared_and_survives_resets() {
    let mut bench = bench();
    for word in 0..16 {
        bench.vf(1).write(VMBMEM + 4 * word, 0x1000 + word);
    }
    for word in 0..16 {
        assert_eq!(bench.pf().read(r::vmbmem(index(1), word)), 0x1000 + word);
        assert_eq!(bench.vf(0).read(VMBMEM + 4 * word), 0);
    }
    bench.pf().write(r::vmbmem(index(1), 0), 0xa000_0002);
    bench.vf(1).write(CTRL, ctrl::RST);
    assert_eq!(bench.vf(1).read(VMBMEM), 0xa000_0002, "a VF's reset keeps the memory");
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(bench.vf(1).read(VMBMEM), 0xa000_0002, "a PF reset keeps the memory");
}

#[test]
fn vf_request_and_acknowledgement_set_mailbox_event_bits() {
    let mut bench = bench();
    bench.vf(2).write(V2PMAILBOX, v2p::REQ);
    assert_eq!(bench.pf().read(r::MBVFICR), 4 << mbvficr::VFREQ_SHIFT);
    bench.vf(0).write(V2PMAILBOX, v2p::ACK);
    assert_eq!(bench.pf().read(r::MBVFICR), 4 << mbvficr::VFREQ_SHIFT | 1 << mbvficr::VFACK_SHIFT);
    assert_ne!(bench.pf().read(r::ICR) & icr::VMMB, 0);
}

#[test]
fn vf_mailbox_event_interrupts_the_pf_unless_mbvfimr_masks() {
    let mut bench = bench();
    bench.pf().write(r::IVAR_MISC, 0x8000);
    bench.pf().write(r::EIAC, 1);
    bench.pf().write(r::EIMS, 1);
    bench.pf().read(r::ICR);
    bench.pf().write(r::IMS, icr::VMMB);
    bench.pf().write(r::MBVFIMR, 1);
    bench.vf(1).write(V2PMAILBOX, v2p::REQ);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::MBVFICR), 2, "MBVFICR records the event");
    bench.vf(0).write(V2PMAILBOX, v2p::REQ);
    bench.poll();
    bench.expect_msix(pcie::Function::Pf, 0);
}

#[test]
fn mailbox_status_bits_clear_when_the_vf_reads_them() {
    let mut bench = bench();
    bench.pf().write(P2V0, p2v::STS | p2v::ACK);
    assert_eq!(
        bench.pf().read(r::v2p_mailbox(index(0))),
        v2p::PFSTS | v2p::PFACK,
        "the PF's read clears nothing"
    );
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::PFSTS | v2p::PFACK);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn pf_mailbox_message_interrupts_the_vfs_mailbox_vector() {
    let mut bench = bench();
    bench.vf(0).start();
    bench.pf().write(P2V0, p2v::STS);
    bench.poll();
    bench.expect_msix(Vf(0), 2);
    bench.pf().write(P2V0, p2v::ACK);
    bench.poll();
    bench.expect_msix(Vf(0), 2);
    bench.vf(0).write(r::vf::VTIVAR_MISC, 0x02);
    bench.pf().write(P2V0, p2v::STS);
    bench.expect_nothing();
    bench.vf(0).write(r::vf::VTIVAR_MISC, 0x83);
    bench.pf().write(P2V0, p2v::STS);
    bench.expect_nothing();
}

#[test]
fn vfs_read_pf_in_reset_from_power_on_until_pfrstd() {
    let mut bench = CardFixture::bare();
    bench.enable_vfs(3);
    for vf in 0..3 {
        bench.vf(vf).read(V2PMAILBOX);
        assert_eq!(bench.vf(vf).read(V2PMAILBOX), v2p::RSTI);
        assert_eq!(bench.vf(vf).read(V2PMAILBOX), v2p::RSTI, "a level, not an event");
    }
    bench.pf().set(r::CTRL_EXT, ctrl_ext::PFRSTD);
    for vf in 0..3 {
        assert_eq!(bench.vf(vf).read(V2PMAILBOX), v2p::RSTD);
        assert_eq!(bench.vf(vf).read(V2PMAILBOX), 0, "an event, not a level");
    }
}

#[test]
fn repeated_reset_done_write_notifies_no_vf_again() {
    let mut bench = bench();
    bench.pf().set(r::CTRL_EXT, ctrl_ext::DRV_LOAD);
    assert_ne!(bench.pf().read(r::CTRL_EXT) & ctrl_ext::PFRSTD, 0);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn vf_reset_sets_reset_done_for_the_vf_and_a_pf_event() {
    let mut bench = bench();
    bench.vf(1).write(V2PMAILBOX, v2p::VFU | v2p::REQ | v2p::ACK);
    bench.vf(1).write(CTRL, ctrl::RST);
    assert_eq!(bench.pf().read(r::VFLRE), 2);
    assert_eq!(bench.pf().read(r::MBVFICR), 0, "the reset clears the VF's pending notices");
    assert_eq!(bench.vf(1).read(V2PMAILBOX), v2p::RSTD);
    assert_eq!(bench.vf(1).read(V2PMAILBOX), 0);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn flood_of_mailbox_requests_raises_one_event() {
    let mut bench = bench();
    for _ in 0..100_000 {
        bench.vf(0).write(V2PMAILBOX, u32::MAX);
        bench.vf(0).write(V2PMAILBOX, v2p::REQ | v2p::ACK);
    }
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0001_0001);
    bench.vf(1).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(1).read(V2PMAILBOX), v2p::VFU, "the neighbour's mailbox works");
}
