//! Tests low-latency interrupts: a frame that a filter marks as urgent ends the throttle of its vector (I210 datasheet
//! 7.3.6), and credits bound the rate of such interrupts. `receive` tests the filters.

use crate::common::{CardFixture, PORT, mac, plain, tagged, tcp};
use i82576::PoolIndex;
use i82576::VectorIndex;
use i82576::bits::{eitr, etqf, ftqf, gpie, icr, imir, imirext, imirvp, rctl, srrctl, vmolr};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, vf};
use pcie::Function::Vf;

/// Offset of VTEITR of VF 0's receive vector.
const RX: u32 = vf::VTEITR + 4;
/// EITR value for a throttling interval of 1 ms.
const INTERVAL: u32 = 1000 << eitr::INTERVAL_SHIFT;

/// Returns a card whose VF 0 has a throttled receive vector that has just fired; the ether type of `plain` frames is urgent.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.wait_us(10_000);
    bench.pf().write(r::etqf(0), 0x88b5 | etqf::ENABLE | etqf::IMMEDIATE);
    bench.vf(0).start();
    bench.vf(0).write(RX, INTERVAL);
    bench.wire_sends(&tcp(mac(0), mac(9), &[1; 50]));
    bench.expect_msix(Vf(0), 1);
    bench.vf(0).received();
    bench
}

fn credits(bench: &mut CardFixture) -> u32 {
    bench.vf(0).read(RX) >> eitr::CREDITS_SHIFT & eitr::MOST_CREDITS
}

#[test]
fn urgent_frame_interrupts_at_once_and_sets_dynint() {
    let mut bench = bench();
    bench.wire_sends(&tcp(mac(0), mac(9), &[1; 50]));
    bench.expect_no_msix();
    assert_eq!(bench.vf(0).expect_frame().last().status & status::DYNINT, 0);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_msix(Vf(0), 1);
    assert_eq!(bench.vf(0).expect_frame().last().status & status::DYNINT, status::DYNINT);
    bench.wire_sends(&tcp(mac(0), mac(9), &[1; 50]));
    bench.expect_no_msix();
    bench.wait_us(1000);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn five_tuple_filter_or_vlan_priority_makes_a_frame_urgent() {
    let mut bench = bench();
    bench.pf().write(r::ftqf(0), 0xf000_0000 | ftqf::ANY_POOL);
    bench.pf().write(r::imir(0), imir::ANY_PORT | imir::IMMEDIATE);
    bench.pf().write(r::imirext(0), imirext::ANY_SIZE | imirext::ANY_FLAGS);
    bench.wire_sends(&tcp(mac(0), mac(9), &[1; 50]));
    bench.expect_msix(Vf(0), 1);
    bench.pf().write(r::imir(0), imir::ANY_PORT);
    bench.pf().write(r::IMIRVP, imirvp::ENABLE | 5);
    for (priority, urgent) in [(4, false), (5, true), (7, true)] {
        bench.wire_sends(&tagged(priority << 13 | 5, &tcp(mac(0), mac(9), &[1; 50])));
        assert_eq!(!bench.msix().is_empty(), urgent, "priority {priority}");
    }
    bench.pf().set(r::vmolr(PoolIndex::FIRST), vmolr::STRVLAN);
    bench.wire_sends(&tagged(5 << 13 | 5, &tcp(mac(0), mac(9), &[1; 50])));
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn urgent_frame_uses_an_interrupt_credit_if_lli_en_is_set() {
    let mut bench = bench();
    bench.vf(0).write(RX, INTERVAL | eitr::LLI_EN | 2 << eitr::CREDITS_SHIFT | 250 << eitr::COUNTER_SHIFT);
    for left in [1, 0] {
        bench.wire_sends(&plain(mac(0), mac(9), 60));
        bench.expect_msix(Vf(0), 1);
        assert_eq!(credits(&mut bench), left);
    }
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_no_msix();
    bench.wait_us(1000);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn urgent_interrupt_credits_accrue_at_gpies_rate_up_to_31() {
    let mut bench = bench();
    bench.pf().set(r::GPIE, 3 << gpie::CREDIT_SHIFT);
    bench.vf(0).write(RX, INTERVAL | eitr::LLI_EN);
    for (us, expected) in [(0, 0), (11, 0), (1, 1), (12, 2), (348, 31), (10_000, 31)] {
        bench.wait_us(us);
        assert_eq!(credits(&mut bench), expected);
    }
    assert_eq!(bench.vf(0).read(RX) & (eitr::LLI_EN | eitr::INTERVAL_MASK), eitr::LLI_EN | INTERVAL);
}

#[test]
fn unthrottled_interrupt_costs_no_urgent_interrupt_credit() {
    let mut bench = bench();
    bench.vf(0).write(RX, INTERVAL | eitr::LLI_EN | 1 << eitr::CREDITS_SHIFT);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_msix(Vf(0), 1);
    assert_eq!(credits(&mut bench), 1);
}

#[test]
fn dropped_or_legacy_descriptor_frames_send_no_urgent_interrupt() {
    let mut bench = bench();
    let control = vf::RX_BLOCK + rx::SRRCTL;
    bench.vf(0).write(control, srrctl::DROP_EN | srrctl::LEGACY << srrctl::DESCTYPE_SHIFT | 2);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_no_msix();
    bench.vf(0).start_sized(8, 8);
    (0..7).for_each(|_| bench.wire_sends(&tcp(mac(0), mac(9), &[1; 50])));
    bench.msix();
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.expect_no_msix();
    assert_eq!(bench.vf(0).received().len(), 7, "the eighth frame finds no descriptor");
}

#[test]
fn urgent_frame_bypasses_throttling_of_the_single_interrupt() {
    let mut bench = CardFixture::bare();
    bench.wait_us(10_000);
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM);
    bench.pf().start();
    bench.pf().write(r::etqf(0), 0x88b5 | etqf::ENABLE | etqf::IMMEDIATE);
    bench.pf().write(r::IMS, icr::RXDW);
    bench.pf().write(r::eitr(VectorIndex::new(0).unwrap()), INTERVAL);
    let segment = tcp(PORT, mac(9), &[1; 50]);
    for (frame, interrupts) in [(&segment, true), (&segment, false), (&plain(PORT, mac(9), 60), true)] {
        bench.wire_sends(frame);
        assert_eq!(bench.world.bus.pin.contains(&true), interrupts);
        bench.pf().read(r::ICR);
        bench.poll();
        bench.world.bus.pin.clear();
    }
}
