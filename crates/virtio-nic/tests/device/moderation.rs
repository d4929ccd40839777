//! Tests how often the card interrupts a driver: at most once for each ring and poll, and at most once in a configured time.

use crate::address;
use crate::exchange::datagram;
use crate::machine::{MODERN, TestMachine};
use core::time::Duration;
use units::Time;
use virtio::VirtioFeatures;
use virtio::net::NetHeader;
use virtio_nic::InterruptIntervals;

/// Least times between two interrupts in this file.
const INTERVALS: InterruptIntervals =
    InterruptIntervals { receive: Duration::from_micros(50), transmit: Duration::from_micros(20) };

fn machines() -> impl Iterator<Item = TestMachine> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter().map(|(packed, events)| {
        let features = if events { MODERN | VirtioFeatures::EVENT_IDX } else { MODERN };
        TestMachine::new(&[(packed, features), (packed, features)])
    })
}

impl TestMachine {
    /// Asks for an interrupt at the next returned chain of a ring.
    fn wait_for_interrupt(&mut self, vf: u8, ring: usize) {
        let events = self.guests[usize::from(vf)].features.contains(VirtioFeatures::EVENT_IDX);
        let memory = &mut self.bus.memories[usize::from(vf)];
        self.guests[usize::from(vf)].rings[ring].ask_interrupts(memory, true, events.then_some(0));
    }

    /// Sends a frame from VF 0 to VF 1, and one from the uplink to VF 1. Polls once at a time, and returns the interrupts.
    fn two_frames(&mut self, micros: u64) -> Vec<(u8, u16)> {
        assert!(self.post_one(1, 0, &[1500]) && self.post_one(1, 0, &[1500]));
        assert!(self.send(0, NetHeader::default(), &datagram(0, 1, &[1; 60]), &[]));
        self.wire.arriving.push_back([&address(1)[..], &address(9), &[0x88, 0xb5], &[2; 60]].concat());
        self.poll_at(micros)
    }

    fn poll_at(&mut self, micros: u64) -> Vec<(u8, u16)> {
        self.bus.calls.clear();
        self.poll_once(micros * 1000, 64);
        self.bus.calls.clone()
    }

    /// Takes all chains that the card has returned, and asks for the next interrupts.
    fn sleep(&mut self) -> usize {
        let taken = self.received(1).len();
        self.finished(0);
        self.wait_for_interrupt(1, 0);
        self.wait_for_interrupt(0, 1);
        taken
    }
}

#[test]
fn ring_interrupts_once_per_poll_for_frames_of_all_sources() {
    for mut machine in machines() {
        for round in 0..300 {
            let mut calls = machine.two_frames(round);
            calls.sort_unstable();
            assert_eq!(calls, [(0, 1), (1, 0)], "round {round}");
            assert_eq!(machine.sleep(), 2);
        }
    }
}

#[test]
fn interrupts_of_a_ring_keep_their_interval() {
    for mut machine in machines() {
        machine.nic.moderate_interrupts(INTERVALS);
        assert_eq!(machine.two_frames(1).len(), 2, "the first interrupts are not delayed");
        machine.sleep();
        assert_eq!(machine.two_frames(11), []);
        assert_eq!(machine.nic.due(), Some(Time::from_micros(21)));
        machine.sleep();
        // More chains delay no further.
        assert_eq!(machine.two_frames(20), []);
        machine.sleep();
        assert_eq!(machine.poll_at(21), [(0, 1)]);
        assert_eq!(machine.nic.due(), Some(Time::from_micros(51)));
        assert_eq!(machine.poll_at(50), []);
        assert_eq!(machine.poll_at(51), [(1, 0)]);
        assert_eq!((machine.nic.due(), machine.poll_at(200)), (None, vec![]));
        assert_eq!(machine.two_frames(201).len(), 2, "a pause ends the delay");
        assert_eq!(machine.nic.counters(1).unwrap().calls, 3);
    }
}

#[test]
fn sleeping_driver_gets_every_last_interrupt_in_time() {
    for mut machine in machines() {
        machine.nic.moderate_interrupts(INTERVALS);
        // Polls at irregular times; a driver looks at its ring only when it is interrupted.
        let (mut now, mut random, mut waiting, mut calls) = (1_u64, 12_345_u32, None, 0);
        for round in 0..2_000 {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            now += u64::from(random >> 16) % 30;
            let sends = round < 1_900 && random >> 28 < 9 && waiting.is_none();
            let found = if sends { machine.two_frames(now) } else { machine.poll_at(now) };
            waiting = waiting.or(sends.then_some(now));
            if found.contains(&(1, 0)) {
                calls += 1;
                assert!(machine.sleep() > 0 || waiting.is_none());
                waiting = None;
            } else {
                machine.finished(0);
                machine.wait_for_interrupt(0, 1);
            }
            if let Some(due) = machine.nic.due() {
                assert!(due > Time::from_micros(now));
            }
            // Two polls may be 30 us apart, beside the interval of 50 us.
            assert!(waiting.is_none_or(|since| now - since <= 50 + 30), "round {round}");
        }
        assert_eq!(waiting, None);
        assert!(calls > 200, "{calls}");
    }
}

#[test]
fn delayed_interrupt_moves_with_its_device() {
    let mut machine = machines().next().unwrap();
    machine.nic.moderate_interrupts(INTERVALS);
    machine.two_frames(1);
    machine.sleep();
    machine.two_frames(2);
    let device = machine.nic.detach(1).unwrap();
    machine.nic.attach(device);
    machine.poll_at(3);
    assert_eq!(machine.poll_at(60).len(), 2);
}
