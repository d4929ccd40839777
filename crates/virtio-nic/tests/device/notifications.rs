//! Tests interrupts and notifications: a driver that follows the card's requests, and sleeps until its interrupt,
//! misses no event.

use crate::exchange::datagram;
use crate::machine::{GuestDriverConfig, MODERN, TestMachine};
use virtio::VirtioFeatures;
use virtio::net::NetHeader;

/// Returns a card with two guests for each ring format, with event indexes and without.
fn machines() -> impl Iterator<Item = (TestMachine, bool)> {
    [(false, false, 16), (false, true, 16), (true, false, 16), (true, true, 16), (true, true, 7)]
        .into_iter()
        .map(|(packed, events, size)| {
            let features = if events { MODERN | VirtioFeatures::EVENT_IDX } else { MODERN };
            let kind = GuestDriverConfig { size, ..GuestDriverConfig::of(packed, features, 1) };
            (TestMachine::with(&[kind; 2]), events)
        })
}

impl TestMachine {
    fn ask(&mut self, vf: u8, ring: usize, on: bool, after: Option<u16>) {
        let memory = &mut self.bus.memories[usize::from(vf)];
        self.guests[usize::from(vf)].rings[ring].ask_interrupts(memory, on, after);
    }

    /// Sends some frames from the first guest to the second. Returns the number of interrupts for the receive ring.
    fn interrupts_of(&mut self, frames: u8) -> usize {
        (0..frames).for_each(|n| assert!(self.post_one(1, 0, &[1500]), "buffer {n}"));
        for n in 0..frames {
            assert!(self.send(0, NetHeader::default(), &datagram(0, 1, &[n; 60]), &[]));
        }
        self.bus.calls.clear();
        self.poll(0);
        assert_eq!(self.finished(0), usize::from(frames), "the notification of a sent packet is missed");
        self.bus.calls.iter().filter(|call| **call == (1, 0)).count()
    }
}

#[test]
fn driver_that_requests_interrupts_gets_one_per_frame_burst() {
    for (mut machine, events) in machines() {
        // More chains than a ring has entries, and than a running index has values.
        for round in 0..10_200_u32 {
            machine.ask(1, 0, true, events.then_some(0));
            let frames = 6 + (round % 2) as u8;
            assert_eq!(machine.interrupts_of(frames), 1, "round {round}");
            assert_eq!(machine.received(1).len(), usize::from(frames));
            if !events && round > 200 {
                break;
            }
        }
    }
}

#[test]
fn driver_that_disables_interrupts_is_not_interrupted() {
    for (mut machine, _) in machines() {
        // The first interrupt after a start says nothing, since the driver's wish is not known to be heeded before.
        machine.interrupts_of(1);
        machine.received(1);
        for round in 0..200 {
            machine.ask(1, 0, false, None);
            assert_eq!(machine.interrupts_of(3), 0, "round {round}");
            machine.received(1);
        }
    }
}

#[test]
fn interrupt_waits_until_the_drivers_event_index_is_passed() {
    for (mut machine, events) in machines().filter(|(_, events)| *events) {
        assert!(events);
        machine.interrupts_of(1);
        machine.received(1);
        for round in 0..300 {
            machine.ask(1, 0, true, Some(3));
            assert_eq!(machine.interrupts_of(3), 0, "round {round}");
            assert_eq!(machine.interrupts_of(2), 1, "round {round}");
            assert_eq!(machine.received(1).len(), 5);
        }
    }
}

impl TestMachine {
    /// Posts a buffer, and sends a frame to it. Returns the number of notifications that the card has requested for it.
    fn notifications_of_frame(&mut self) -> u64 {
        let kicks = |machine: &Self| machine.nic.counters(0).unwrap().kicks;
        let before = kicks(self);
        assert!(
            self.post_one(1, 0, &[1500]) && self.send(0, NetHeader::default(), &datagram(0, 1, b"x"), &[])
        );
        kicks(self) - before
    }
}

#[test]
fn driver_notifies_once_until_the_card_sleeps() {
    for (mut machine, _) in machines() {
        machine.poll(0);
        assert_eq!(machine.notifications_of_frame(), 1, "of a sleeping card");
        for _ in 0..200 {
            while machine.poll_awake(0, 64) {}
            assert_eq!((machine.finished(0), machine.received(1).len()), (1, 1));
            assert!(machine.nic.polls_rings() && !machine.nic.look_at_rings(&mut machine.bus));
            assert_eq!(machine.notifications_of_frame(), 0, "of a card that is awake");
            assert!(machine.nic.look_at_rings(&mut machine.bus));
        }
        assert!(
            machine.nic.arm_rings(&mut machine.bus),
            "a packet came before the card asked for notifications"
        );
        machine.poll(0);
        assert_eq!((machine.finished(0), machine.received(1).len()), (1, 1));
        assert!(!machine.nic.polls_rings());
        assert_eq!(machine.notifications_of_frame(), 1, "of a card that sleeps again");
    }
}

#[test]
fn ring_that_stays_empty_is_polled_no_more() {
    for (mut machine, _) in machines() {
        machine.poll(0);
        machine.notifications_of_frame();
        let polls = (0..100)
            .take_while(|_| {
                machine.poll_awake(0, 64);
                machine.nic.polls_rings()
            })
            .count();
        assert_eq!(polls, 64);
        assert_eq!((machine.finished(0), machine.received(1).len()), (1, 1));
        assert_eq!(machine.notifications_of_frame(), 1);
    }
}

#[test]
fn stopped_ring_is_polled_no_more() {
    for (mut machine, _) in machines() {
        machine.poll(0);
        machine.notifications_of_frame();
        machine.poll_awake(0, 64);
        assert!(machine.nic.polls_rings());
        machine.nic.pause_ring(0, 1);
        assert!(!machine.nic.polls_rings());
    }
}
