//! Tests waiting frames whose queue, function or port is stopped or reset: the card drops them, and no later owner gets
//! them. A saved card keeps them.

use super::{bench, burst, got, missed, waiting};
use crate::common::CardFixture;
use i82576::bits::{ctrl, dctl, rctl};
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, vf};
use nic::Nic;
use pcie::Function::{self, Pf, Vf};
use pcie::capability::express;
use pcie::config::offset;

/// Returns a card in which three frames wait for each of VF 0 and VF 1.
fn three_wait() -> CardFixture {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..10, 100);
    burst(&mut bench, 1, 0..10, 100);
    assert_eq!([0, 1].map(|n| waiting(&bench, n).0), [3, 3]);
    bench
}

fn function_level_reset(bench: &mut CardFixture, function: Function) {
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, control, express::DEVICE_CONTROL_FLR.into());
}

/// Asserts the numbers of frames that still wait for VF 0 and VF 1 after `act`. All other frames must count as dropped
/// and not as missed.
fn after(event: &str, act: impl Fn(&mut CardFixture), expected: [usize; 2]) {
    let mut bench = three_wait();
    let before = missed(&mut bench, 0);
    assert_eq!(before, [6, 0, 0]);
    act(&mut bench);
    assert_eq!([0, 1].map(|n| waiting(&bench, n).0), expected, "{event}");
    let dropped = [0, 1].map(|n| bench.nic.counters()[n].rx_disabled as usize);
    assert_eq!(dropped, expected.map(|kept| 3 - kept), "{event}");
    let none = [0, 1].map(|n| bench.nic.counters()[n].rx_no_descriptors);
    assert_eq!(([r::RNBC, r::MPC].map(|at| bench.pf().read(at)), none), ([0; 2], [0; 2]), "{event}");
}

#[test]
fn queue_disabled_or_set_up_again_drops_its_waiting_frames() {
    for (register, value) in [(rx::RXDCTL, 0), (rx::RDLEN, 256), (rx::RDBAL, 0x8000), (rx::RDH, 1)] {
        after("ring", |bench| bench.vf(0).write(vf::RX_BLOCK + register, value), [0, 3]);
    }
    after("enabled anew", |bench| bench.vf(0).write(vf::RX_BLOCK + rx::RXDCTL, dctl::ENABLE), [0, 3]);
}

#[test]
fn reset_drops_the_waiting_frames_of_its_functions() {
    after("the VF's own", |bench| bench.vf(0).write(vf::CTRL, ctrl::RST), [0, 3]);
    after("VF FLR", |bench| function_level_reset(bench, Vf(0)), [0, 3]);
    after("the port's", |bench| bench.pf().write(r::CTRL, ctrl::RST), [0, 0]);
    after("PF FLR", |bench| function_level_reset(bench, Pf), [0, 0]);
    after("conventional", |bench| bench.nic.conventional_reset(), [0, 0]);
}

#[test]
fn cleared_bus_mastering_drops_waiting_frames() {
    after("VF", |bench| bench.config(Vf(0), offset::COMMAND, 0), [0, 3]);
    after("host", |bench| bench.nic.set_bus_master(Vf(1), false), [3, 0]);
}

#[test]
fn next_owner_of_a_vf_gets_no_waiting_frame_of_the_last() {
    let mut bench = three_wait();
    function_level_reset(&mut bench, Vf(0));
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.vf(0).start();
    bench.poll();
    bench.vf(0).expect_no_frame();
}

#[test]
fn received_frames_wait_while_reception_is_disabled() {
    let mut bench = three_wait();
    got(&mut bench, 0);
    bench.pf().clear(r::RCTL, rctl::EN);
    bench.vf(0).post(7);
    bench.poll();
    bench.vf(0).expect_no_frame();
    bench.pf().set(r::RCTL, rctl::EN);
    bench.poll();
    assert_eq!(got(&mut bench, 0), [7, 8, 9]);
}

#[test]
fn frame_for_a_stopped_queue_is_dropped_without_waiting() {
    let mut bench = three_wait();
    // A tail beyond the ring stops the queue.
    bench.vf(0).write(vf::RX_BLOCK + rx::RDT, 100);
    burst(&mut bench, 0, 10..11, 100);
    assert_eq!((waiting(&bench, 0).0, bench.nic.counters()[0].rx_disabled), (3, 1));
}

#[test]
fn faulting_ring_drops_waiting_frames() {
    let mut bench = three_wait();
    bench.vf(0).write(vf::RX_BLOCK + rx::RDT, 6);
    // The descriptors become invalid without a write of a register.
    bench.world.bus.range(Vf(0), crate::common::RX_RING, 128).unwrap().fill(0);
    bench.poll();
    let counters = bench.nic.counters()[0];
    assert_eq!(waiting(&bench, 0).0, 0);
    assert_eq!(counters.dma_faults + counters.rx_disabled, 3, "address 0 is not in the function's memory");
}

#[test]
fn frames_waiting_for_descriptors_are_kept_in_a_saved_card() {
    let mut bench = three_wait();
    got(&mut bench, 0);
    let bytes = postcard::to_allocvec(&bench.nic.save()).unwrap();
    bench.nic = Nic::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!([0, 1].map(|n| waiting(&bench, n)), [(3, 300); 2]);
    bench.vf(0).post(7);
    // A frame that arrives after the hand-over does not overtake the waiting ones.
    burst(&mut bench, 0, 10..11, 100);
    assert_eq!(got(&mut bench, 0), [7, 8, 9, 10]);
    assert_eq!(bench.nic.counters()[0].rx_packets, 11);
}

#[test]
fn damaged_saved_waiting_frames_are_refused_or_harmless() {
    let mut bench = three_wait();
    let bytes = postcard::to_allocvec(&bench.nic.save()).unwrap();
    for cut in [1, 50, 150, 700] {
        let state = postcard::from_bytes::<nic::NicState>(&bytes[..bytes.len() - cut]);
        assert!(state.is_err(), "{cut} bytes less");
    }
    // The waiting frames are at the end of a state.
    for at in bytes.len() - 750..bytes.len() {
        for bits in [1, 0x40, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bits;
            let restored = postcard::from_bytes::<nic::NicState>(&damaged).ok().map(Nic::restore);
            let Some(Ok(nic)) = restored else { continue };
            bench.nic = nic;
            (0..3).for_each(|n| bench.vf(n).write(vf::RX_BLOCK + rx::RDT, 6));
            bench.poll();
        }
    }
}
