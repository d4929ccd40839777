//! The mailbox: who holds the shared memory, the doorbells of both sides, and the reset notices.
//! Left out: what messages mean.

use crate::common::{Bench, index};
use i82576::bits::{ctrl, ctrl_ext, icr, mbvficr, p2v, v2p};
use i82576::register::{self as r, vf::CTRL, vf::V2PMAILBOX, vf::VMBMEM};
use pcie::Function::Vf;

const P2V0: u32 = r::p2v_mailbox(match i82576::VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
});

/// A card with 3 VFs whose reset notices have been read.
fn bench() -> Bench {
    let mut bench = Bench::new(3);
    for vf in 0..3 {
        bench.vf(vf).read(V2PMAILBOX);
    }
    bench.pf().write(r::VFLRE, 0xff);
    bench
}

#[test]
fn the_buffer_belongs_to_the_side_that_asked_first() {
    let mut bench = bench();
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::VFU);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::VFU, "the PF sees who has it");
    bench.vf(0).write(V2PMAILBOX, 0);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::PFU, "and so does the VF");
}

#[test]
fn ringing_without_holding_on_drops_the_buffer() {
    let mut bench = bench();
    bench.vf(0).write(V2PMAILBOX, v2p::VFU);
    bench.vf(0).write(V2PMAILBOX, v2p::REQ);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
    bench.pf().write(P2V0, p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
}

#[test]
fn the_pf_can_take_the_buffer_from_a_vf_that_keeps_it() {
    let mut bench = bench();
    for vf in [0, 1] {
        bench.vf(vf).write(V2PMAILBOX, v2p::VFU | v2p::REQ | v2p::ACK);
    }
    bench.pf().write(P2V0, p2v::RVFU | p2v::PFU);
    assert_eq!(bench.pf().read(P2V0), p2v::PFU);
    let neighbours = 2 << mbvficr::VFREQ_SHIFT | 2 << mbvficr::VFACK_SHIFT;
    assert_eq!(bench.pf().read(r::MBVFICR), neighbours, "its doorbells are silent, its neighbour's are not");
}

#[test]
fn the_memory_is_one_for_both_sides_and_keeps_what_was_written() {
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
    assert_eq!(bench.vf(1).read(VMBMEM), 0xa000_0002, "a VF's reset does not clear it");
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(bench.vf(1).read(VMBMEM), 0xa000_0002, "nor does the PF's");
}

#[test]
fn a_request_or_acknowledgement_is_an_event_at_the_pf() {
    let mut bench = bench();
    bench.vf(2).write(V2PMAILBOX, v2p::REQ);
    assert_eq!(bench.pf().read(r::MBVFICR), 4 << mbvficr::VFREQ_SHIFT);
    bench.vf(0).write(V2PMAILBOX, v2p::ACK);
    assert_eq!(bench.pf().read(r::MBVFICR), 4 << mbvficr::VFREQ_SHIFT | 1 << mbvficr::VFACK_SHIFT);
    assert_ne!(bench.pf().read(r::ICR) & icr::VMMB, 0);
}

#[test]
fn an_event_interrupts_the_pf_unless_that_vf_is_masked() {
    let mut bench = bench();
    bench.pf().write(r::IVAR_MISC, 0x8000);
    bench.pf().write(r::EIAC, 1);
    bench.pf().write(r::EIMS, 1);
    bench.pf().read(r::ICR);
    bench.pf().write(r::IMS, icr::VMMB);
    bench.pf().write(r::MBVFIMR, 1);
    bench.vf(1).write(V2PMAILBOX, v2p::REQ);
    bench.expect_nothing();
    assert_eq!(bench.pf().read(r::MBVFICR), 2, "the event is noted all the same");
    bench.vf(0).write(V2PMAILBOX, v2p::REQ);
    bench.poll();
    bench.expect_msix(pcie::Function::Pf, 0);
}

#[test]
fn the_vf_sees_status_once() {
    let mut bench = bench();
    bench.pf().write(P2V0, p2v::STS | p2v::ACK);
    assert_eq!(bench.pf().read(r::v2p_mailbox(index(0))), v2p::PFSTS | v2p::PFACK, "the PF may look");
    assert_eq!(bench.vf(0).read(V2PMAILBOX), v2p::PFSTS | v2p::PFACK);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn a_message_interrupts_the_vf_on_its_mailbox_vector() {
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
fn vfs_see_reset_from_power_on_until_the_pf_says_that_it_is_done() {
    let mut bench = Bench::bare();
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
fn a_pf_that_writes_ctrl_ext_again_does_not_reset_its_vfs_again() {
    let mut bench = bench();
    bench.pf().set(r::CTRL_EXT, ctrl_ext::DRV_LOAD);
    assert_ne!(bench.pf().read(r::CTRL_EXT) & ctrl_ext::PFRSTD, 0);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn a_vf_that_resets_itself_is_told_when_that_is_done_and_so_is_the_pf() {
    let mut bench = bench();
    bench.vf(1).write(V2PMAILBOX, v2p::VFU | v2p::REQ | v2p::ACK);
    bench.vf(1).write(CTRL, ctrl::RST);
    assert_eq!(bench.pf().read(r::VFLRE), 2);
    assert_eq!(bench.pf().read(r::MBVFICR), 0, "what it had asked for is forgotten");
    assert_eq!(bench.vf(1).read(V2PMAILBOX), v2p::RSTD);
    assert_eq!(bench.vf(1).read(V2PMAILBOX), 0);
    assert_eq!(bench.vf(0).read(V2PMAILBOX), 0);
}

#[test]
fn a_flood_of_requests_is_one_event() {
    let mut bench = bench();
    for _ in 0..100_000 {
        bench.vf(0).write(V2PMAILBOX, u32::MAX);
        bench.vf(0).write(V2PMAILBOX, v2p::REQ | v2p::ACK);
    }
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0001_0001);
    bench.vf(1).write(V2PMAILBOX, v2p::VFU);
    assert_eq!(bench.vf(1).read(V2PMAILBOX), v2p::VFU, "its neighbour's mailbox is its own");
}
