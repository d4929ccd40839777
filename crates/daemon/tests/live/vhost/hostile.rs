//! Tests of hostile front ends: only their own connection suffers.

use super::PORT;
use super::front_end::{BackendReplyKind, VhostTestFrontEnd, copy, region};
use super::guest::{RECEIVE, RING, TRANSMIT, VirtioGuest, exchange};
use crate::support::alone::{alone, descriptors};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::ram::SIZE;
use host::eventfd::EventFd;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};
use vhost_user::message::{FrontendRequest, RingEventfdMessage};

/// Host with guests on VFs 1 and 2, which must not be disturbed. VF 0 is free for a hostile front end.
struct BystanderGuests {
    live: LiveHost,
    a: VirtioGuest,
    b: VirtioGuest,
}

impl BystanderGuests {
    fn new() -> Self {
        let live = LiveHost::with(PORT);
        let (a, b) = (VirtioGuest::boot(&live, 1), VirtioGuest::boot(&live, 2));
        Self { live, a, b }
    }

    fn greet(&self) -> VhostTestFrontEnd {
        VhostTestFrontEnd::greet(&self.live.socket(0))
    }

    /// Checks that the two guests still exchange frames.
    #[track_caller]
    fn check_frames(&mut self) {
        exchange(&mut self.a, &mut self.b);
    }

    /// Checks that the host disconnects the front end, and that the next client of VF 0 finds a working VF.
    #[track_caller]
    fn check_end_and_next_client(&mut self, mut hostile: VhostTestFrontEnd) {
        hostile.wait_for_end();
        eventually("the VF is free", || self.live.show(0).peer.is_none());
        self.check_frames();
        let mut next = VirtioGuest::boot(&self.live, 0);
        exchange(&mut next, &mut self.b);
        assert!(self.live.is_whole());
    }
}

/// Returns the header of a message of version 1 that asks for an acknowledgement, with a body of `size` bytes.
fn header(number: u32, size: u32) -> Vec<u8> {
    [number, 1 | 1 << 3, size].map(u32::to_le_bytes).concat()
}

#[test]
fn kick_or_call_that_is_a_pipe_disconnects_its_client() {
    let mut bystanders = BystanderGuests::new();
    let ring = RingEventfdMessage { ring: 0, attached: true };
    for request in [FrontendRequest::SetVringKick(ring), FrontendRequest::SetVringCall(ring)] {
        let mut hostile = bystanders.greet();
        let (_reader, writer) = std::io::pipe().unwrap();
        assert_eq!(hostile.acknowledged(&request, vec![writer.into()]), None, "{request:?}");
        bystanders.check_end_and_next_client(hostile);
        eventually("the VF is free", || bystanders.live.show(0).peer.is_none());
    }
}

#[test]
fn ring_keeps_working_while_its_kick_eventfd_is_not_read() {
    let mut bystanders = BystanderGuests::new();
    bystanders.check_frames();
    let count = u64::MAX - 1000;
    rustix::io::write(&bystanders.a.transmit.kick, &count.to_ne_bytes()).unwrap();
    bystanders.check_frames();
}

#[test]
fn full_blocking_call_eventfd_delays_no_port() {
    let mut bystanders = BystanderGuests::new();
    let mut hostile = VirtioGuest::boot(&bystanders.live, 0);
    for call in [&hostile.receive.call, &hostile.transmit.call] {
        call.drain();
        rustix::io::write(call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let flags = rustix::fs::fcntl_getfl(call).unwrap();
        rustix::fs::fcntl_setfl(call, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
    }
    hostile.send(b"with a full eventfd");
    bystanders.a.wait_for(b"with a full eventfd");
    bystanders.check_frames();
}

#[test]
fn message_with_33_descriptors_disconnects_its_client() {
    let mut bystanders = BystanderGuests::new();
    let hostile = bystanders.greet();
    let memory = hostile.ram.fd();
    // One send takes 32 descriptors, so that they come with two parts of the message.
    assert!(hostile.send_raw(&header(5, 8)[..6], &[memory.as_fd(); 32]));
    assert!(hostile.send_raw(&header(5, 8)[6..], &[memory.as_fd(); 1]));
    bystanders.check_end_and_next_client(hostile);
}

#[test]
fn cve_2019_14818_descriptors_of_repeated_messages_are_closed() {
    alone("vhost::hostile::cve_2019_14818_descriptors_of_repeated_messages_are_closed", || {
        let live = LiveHost::with(PORT);
        let mut front = VirtioGuest::boot(&live, 0).front;
        let eventfd = EventFd::new().unwrap();
        let ring = RingEventfdMessage { ring: 3, attached: true };
        let requests = [
            FrontendRequest::SetVringKick(ring),
            FrontendRequest::SetVringCall(ring),
            FrontendRequest::SetVringErr(ring),
        ];
        let everything = |front: &mut VhostTestFrontEnd| {
            for request in &requests {
                front.accept(request, vec![copy(&eventfd)]);
            }
            front.accept(&FrontendRequest::SetVringNum { ring: 3, size: 64 }, vec![]);
            // Descriptors with messages that take none, or fewer.
            let fds = |count: usize| -> Vec<OwnedFd> { (0..count).map(|_| copy(&eventfd)).collect() };
            front.refuse(&FrontendRequest::SetVringNum { ring: 3, size: 64 }, fds(2));
            front.refuse(&requests[0], fds(3));
            let memory = front.ram.fd();
            front.accept(&FrontendRequest::SetMemTable(vec![region(0, SIZE)]), vec![memory]);
        };
        everything(&mut front);
        let before = descriptors();
        (0..100).for_each(|_| everything(&mut front));
        eventually("all descriptors are closed", || descriptors() <= before);
        drop(front);
        eventually("the client's descriptors are closed", || descriptors() < before);
    });
}

#[test]
fn size_or_features_of_a_running_ring_cannot_change() {
    let mut bystanders = BystanderGuests::new();
    let mut hostile = VirtioGuest::boot(&bystanders.live, 0);
    let front = &mut hostile.front;
    for size in [128, 32_768, 0] {
        front.refuse(&FrontendRequest::SetVringNum { ring: TRANSMIT, size }, vec![]);
    }
    front.refuse(&FrontendRequest::SetVringNum { ring: 32, size: 64 }, vec![]);
    front.refuse(&FrontendRequest::SetFeatures(1 << 32), vec![]);
    front.refuse(&FrontendRequest::SetFeatures(u64::MAX), vec![]);
    hostile.send(b"still running");
    bystanders.a.wait_for(b"still running");
    bystanders.check_frames();
}

#[test]
fn storm_of_enable_messages_delays_no_other_guest() {
    let mut bystanders = BystanderGuests::new();
    let mut hostile = VirtioGuest::boot(&bystanders.live, 0);
    let storm = thread::spawn(move || {
        for number in 0..20_000 {
            let enabled = number % 2 == 0;
            hostile.front.post(&FrontendRequest::SetVringEnable { ring: RECEIVE, enabled }, vec![]);
        }
        hostile
    });
    while !storm.is_finished() {
        bystanders.check_frames();
    }
    let mut hostile = storm.join().unwrap();
    hostile.front.accept(&FrontendRequest::SetVringEnable { ring: RECEIVE, enabled: true }, vec![]);
    exchange(&mut hostile, &mut bystanders.a);
}

#[test]
fn cve_2020_10725_unaligned_or_unmapped_ring_is_never_used() {
    let mut bystanders = BystanderGuests::new();
    let mut hostile = bystanders.greet();
    hostile.share_memory();
    let (kick, call) = (EventFd::new().unwrap(), EventFd::new().unwrap());
    let at = |descriptors, driver, device| virtio::layout::RingAddresses { descriptors, driver, device };
    for addresses in [
        at(0x10_0008, 0x11_0000, 0x12_0000),
        at(SIZE - 16, 0x11_0000, 0x12_0000),
        at(0x10_0000, SIZE - 8, 0x12_0000),
        at(0x10_0000, 0x11_0000, SIZE - 4),
        at(0x10_0000, 0x11_0000, SIZE),
    ] {
        hostile.start_ring(TRANSMIT, (RING.into(), 0), addresses, (&kick, &call));
        kick.signal();
    }
    bystanders.check_frames();
    assert_eq!(bystanders.live.show(0).function.tx.packets, 0);
    assert!(!bystanders.live.show(0).active);
}

#[test]
fn second_front_end_of_a_vf_is_refused() {
    let mut bystanders = BystanderGuests::new();
    let mut second = VhostTestFrontEnd::connect(&bystanders.live.socket(1));
    let reply = second.acknowledged(&FrontendRequest::SetOwner, vec![]);
    assert!(!matches!(reply, Some(BackendReplyKind::Accepted)), "{reply:?}");
    second.wait_for_end();
    bystanders.check_frames();
}

#[test]
fn unknown_version_or_huge_body_disconnects_its_client() {
    let mut bystanders = BystanderGuests::new();
    let mut version = header(1, 0);
    version[4] = 2;
    for bytes in [version, header(5, 4097), header(5, u32::MAX), header(0xffff, 0)] {
        let hostile = VhostTestFrontEnd::connect(&bystanders.live.socket(0));
        assert!(hostile.send_raw(&bytes, &[]));
        bystanders.check_end_and_next_client(hostile);
        eventually("the VF is free", || bystanders.live.show(0).peer.is_none());
    }
}

#[test]
fn front_ends_that_stall_are_disconnected_after_the_timeout() {
    let live = LiveHost::with(PORT);
    let began = Instant::now();
    let header_only = VhostTestFrontEnd::greet(&live.socket(0));
    assert!(header_only.send_raw(&header(5, 40), &[]));
    // A byte a second: the message is not whole within the timeout.
    let slow = VhostTestFrontEnd::greet(&live.socket(1));
    // Replies are never read. The host stops reading when the socket is full of them.
    let deaf = VhostTestFrontEnd::greet(&live.socket(2));
    let question = header(1, 0);
    let mut stalled = [Some(header_only), Some(slow), Some(deaf)];
    let mut byte = 0;
    while stalled.iter().any(Option::is_some) {
        assert!(began.elapsed() < Duration::from_secs(120), "a front end that stalls stays connected");
        if let Some(slow) = &stalled[1] {
            slow.send_raw(&header(5, 4000)[byte.min(11)..][..1], &[]);
            byte += 1;
        }
        if let Some(deaf) = &stalled[2] {
            while deaf.stream.send(&question, &[]).unwrap() == host::socket::SocketSendResult::Bytes(12) {}
        }
        thread::sleep(Duration::from_secs(1));
        for (vf, place) in (0..).zip(&mut stalled) {
            if live.show(vf).peer.is_none() {
                let after = began.elapsed();
                assert!(after >= Duration::from_secs(29), "VF {vf} after {after:?}");
                *place = None;
            }
        }
    }
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
}
