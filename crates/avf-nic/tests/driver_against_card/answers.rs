//! Measures the delay of an answer to a VF's request, in runs of the PF driver, while every other VF fills its mailbox.
//! Linux's probe looks for an answer once, so a host must make these runs within 3 ms. Prints the distribution:
//!
//! ```sh
//! cargo test -p softiov-avf-nic --test driver_against_card answers -- --nocapture
//! ```

use crate::world::{CardFixture, mac};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::register as r;
use driver::Hal;
use driver::avf::vf::AvfDriver;
use pcie::Function;
use std::time::{Duration, Instant};

/// Number of descriptors in the longest mailbox ring.
const RING: u32 = 1023;
/// Number of messages that the PF driver serves in one run.
const A_VISIT: u64 = 16;
/// Number of messages that fit into the PF's admin receive queue.
const QUEUE: u64 = 31;

/// Fills a VF's send mailbox with unknown requests, as a guest that reads no answer does.
fn flood(world: &mut CardFixture, vf: u8) {
    let message = AdminQueueDescriptor {
        flags: flag::SI,
        opcode: opcode::SEND_TO_PF,
        cookie_high: 999,
        ..AdminQueueDescriptor::default()
    };
    for slot in 0..RING as usize {
        world.memories.of(Function::Vf(vf))[slot * SIZE..][..SIZE].copy_from_slice(&message.emit());
    }
    let mut side = world.vf(vf);
    side.write(r::VF_ATQLEN, RING | aqlen::ENABLE);
    refill(world, vf);
}

/// Moves the tail of a VF's mailbox ring so that all descriptors but one are pending messages again.
fn refill(world: &mut CardFixture, vf: u8) {
    let mut side = world.vf(vf);
    let head = side.read(r::VF_ATQH);
    side.write(r::VF_ATQT, (head + RING - 1) % RING);
}

/// Sends 200 requests of VF 0 while the other VFs flood the PF's queue. Returns, for each answer, the number of the PF
/// driver's runs and the time until the answer arrived.
fn waits(vfs: u8) -> Vec<(u64, Duration)> {
    let mut world = CardFixture::new(vfs);
    let mut victim = AvfDriver::probe(&mut world.vf(0), mac(0)).unwrap();
    (1..vfs).for_each(|vf| flood(&mut world, vf));
    let mut measure = |_| {
        (1..vfs).for_each(|vf| refill(&mut world, vf));
        let (visits, began) = (world.visits, Instant::now());
        victim.statistics(&mut world.vf(0)).unwrap();
        (world.visits - visits, began.elapsed())
    };
    (0..200).map(&mut measure).collect()
}

#[test]
fn vf_request_is_answered_within_bounded_pf_driver_polls() {
    for vfs in [1, 8, 16, 64] {
        let mut waits = waits(vfs);
        let vfs = u64::from(vfs);
        waits.sort_unstable();
        let at = |percent: usize| waits[(waits.len() - 1) * percent / 100];
        let slowest = waits.iter().map(|(_, time)| time).max();
        println!("{vfs} VFs: p50 {:?}, p99 {:?}, max {:?} visits, {slowest:?}", at(50), at(99), at(100).0);
        // A visit serves the messages of two polls. With more VFs the PF's queue is full, and every other VF has its turn before.
        let bound = if 2 * vfs <= A_VISIT { 1 } else { (vfs + QUEUE).div_ceil(A_VISIT) };
        assert!(at(100).0 <= bound, "{vfs} VFs: {} visits, more than {bound}", at(100).0);
    }
}
