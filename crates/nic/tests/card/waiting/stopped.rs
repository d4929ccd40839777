//! What becomes of frames that wait when their queue, their function or the port is stopped or reset: they are dropped, and
//! nobody later gets them. A card that is set aside keeps them.

use super::{bench, burst, got, missed, waiting};
use crate::common::Bench;
use i82576::bits::{ctrl, dctl, rctl};
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, vf};
use nic::Nic;
use pcie::Function::{self, Pf, Vf};
use pcie::capability::express;
use pcie::config::offset;

/// Three frames wait for each of VF 0 and VF 1.
fn three_wait() -> Bench {
    let mut bench = bench(8);
    burst(&mut bench, 0, 0..10, 100);
    burst(&mut bench, 1, 0..10, 100);
    assert_eq!([0, 1].map(|n| waiting(&bench, n).0), [3, 3]);
    bench
}

fn function_level_reset(bench: &mut Bench, function: Function) {
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, control, express::DEVICE_CONTROL_FLR.into());
}

/// So many wait for VF 0 and VF 1 after that; what was dropped is counted as such, and not as missed.
fn after(what: &str, act: impl Fn(&mut Bench), expected: [usize; 2]) {
    let mut bench = three_wait();
    let before = missed(&mut bench, 0);
    assert_eq!(before, [6, 0, 0]);
    act(&mut bench);
    assert_eq!([0, 1].map(|n| waiting(&bench, n).0), expected, "{what}");
    let dropped = [0, 1].map(|n| bench.nic.counters()[n].rx_disabled as usize);
    assert_eq!(dropped, expected.map(|kept| 3 - kept), "{what}");
    let none = [0, 1].map(|n| bench.nic.counters()[n].rx_no_descriptors);
    assert_eq!(([r::RNBC, r::MPC].map(|at| bench.pf().read(at)), none), ([0; 2], [0; 2]), "{what}");
}

#[test]
fn a_queue_that_is_disabled_or_moved_drops_what_waits_for_it() {
    for (register, value) in [(rx::RXDCTL, 0), (rx::RDLEN, 256), (rx::RDBAL, 0x8000), (rx::RDH, 1)] {
        after("ring", |bench| bench.vf(0).write(vf::RX_BLOCK + register, value), [0, 3]);
    }
    after("enabled anew", |bench| bench.vf(0).write(vf::RX_BLOCK + rx::RXDCTL, dctl::ENABLE), [0, 3]);
}

#[test]
fn resets_drop_what_waits_for_those_who_are_reset() {
    after("the VF's own", |bench| bench.vf(0).write(vf::CTRL, ctrl::RST), [0, 3]);
    after("VF FLR", |bench| function_level_reset(bench, Vf(0)), [0, 3]);
    after("the port's", |bench| bench.pf().write(r::CTRL, ctrl::RST), [0, 0]);
    after("PF FLR", |bench| function_level_reset(bench, Pf), [0, 0]);
    after("conventional", |bench| bench.nic.conventional_reset(), [0, 0]);
}

#[test]
fn a_function_that_loses_the_bus_loses_what_waits_for_it() {
    after("VF", |bench| bench.config(Vf(0), offset::COMMAND, 0), [0, 3]);
    after("host", |bench| bench.nic.set_bus_master(Vf(1), false), [3, 0]);
}

#[test]
fn the_next_owner_of_a_vf_finds_nothing_of_the_last_ones() {
    let mut bench = three_wait();
    function_level_reset(&mut bench, Vf(0));
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.vf(0).start();
    bench.poll();
    bench.vf(0).expect_no_frame();
}

#[test]
fn without_a_receiver_frames_wait_until_it_is_on_again() {
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
fn a_frame_for_a_queue_that_has_stopped_does_not_wait_behind_others() {
    let mut bench = three_wait();
    // A tail beyond the ring makes no ring.
    bench.vf(0).write(vf::RX_BLOCK + rx::RDT, 100);
    burst(&mut bench, 0, 10..11, 100);
    assert_eq!((waiting(&bench, 0).0, bench.nic.counters()[0].rx_disabled), (3, 1));
}

#[test]
fn a_ring_that_faults_ends_the_wait() {
    let mut bench = three_wait();
    bench.vf(0).write(vf::RX_BLOCK + rx::RDT, 6);
    // The ring goes out of the function's memory, with no register written.
    bench.world.bus.range(Vf(0), crate::common::RX_RING, 128).unwrap().fill(0);
    bench.poll();
    let counters = bench.nic.counters()[0];
    assert_eq!(waiting(&bench, 0).0, 0);
    assert_eq!(counters.dma_faults + counters.rx_disabled, 3, "buffers at address 0 are not the function's");
}

#[test]
fn what_waits_is_handed_over() {
    let mut bench = three_wait();
    got(&mut bench, 0);
    let bytes = postcard::to_allocvec(&bench.nic.save()).unwrap();
    bench.nic = Nic::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!([0, 1].map(|n| waiting(&bench, n)), [(3, 300); 2]);
    bench.vf(0).post(7);
    // What arrives after the hand-over does not overtake.
    burst(&mut bench, 0, 10..11, 100);
    assert_eq!(got(&mut bench, 0), [7, 8, 9, 10]);
    assert_eq!(bench.nic.counters()[0].rx_packets, 11);
}

#[test]
fn a_state_that_says_something_else_of_what_waits_is_refused_or_harmless() {
    let mut bench = three_wait();
    let bytes = postcard::to_allocvec(&bench.nic.save()).unwrap();
    for cut in [1, 50, 150, 700] {
        let state = postcard::from_bytes::<nic::State>(&bytes[..bytes.len() - cut]);
        assert!(state.is_err(), "{cut} bytes less");
    }
    // What waits is the end of a state.
    for at in bytes.len() - 750..bytes.len() {
        for bits in [1, 0x40, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bits;
            let restored = postcard::from_bytes::<nic::State>(&damaged).ok().map(Nic::restore);
            let Some(Ok(nic)) = restored else { continue };
            bench.nic = nic;
            (0..3).for_each(|n| bench.vf(n).write(vf::RX_BLOCK + rx::RDT, 6));
            bench.poll();
        }
    }
}
