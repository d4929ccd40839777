//! Tests of clients that stall, send garbage, or truncate their memory: only their own connection suffers.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::ram::GuestRam;
use crate::support::raw::{RawVfioUserConnection, load, message, version};
use crate::support::{eventually, qemu};
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;
use vfio_user::wire::Command;

/// Host with guests on VFs 1 and 2, which must not be disturbed. VF 0 is free for a hostile client.
struct BystanderGuests {
    live: LiveHost,
    b: VfGuest<qemu::QemuClient>,
    c: VfGuest<qemu::QemuClient>,
}

impl BystanderGuests {
    fn new() -> Self {
        let live = LiveHost::start();
        let (b, c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
        Self { live, b, c }
    }

    fn raw(&self) -> RawVfioUserConnection {
        RawVfioUserConnection::greet(&self.live.socket(0))
    }

    #[track_caller]
    fn check_frames(&mut self) {
        exchange(&mut self.b, &mut self.c, 5);
    }

    /// Checks that the two guests still exchange frames, and that the next client of VF 0 finds a working VF.
    #[track_caller]
    fn check_frames_and_next_client(&mut self) {
        self.check_frames();
        let mut a = VfGuest::under_qemu(&self.live, 0);
        exchange(&mut a, &mut self.b, 5);
        assert!(self.live.is_whole());
    }
}

#[test]
fn client_that_sends_half_a_message_blocks_no_other_client() {
    let mut bystanders = BystanderGuests::new();
    let mut raw = bystanders.raw();
    let whole = load(1, 7, 0, 4);
    for cut in 1..whole.len() {
        raw.send(&whole[..cut]);
        if cut % 8 == 0 {
            bystanders.check_frames();
        }
        raw.send(&whole[cut..]);
        assert_eq!(raw.reply().map(|(error, body)| (error, body.len())), Some((0, 20)), "cut at {cut}");
    }
    raw.send(&whole[..9]);
    bystanders.check_frames();
    drop(raw);
    bystanders.check_frames_and_next_client();
}

#[test]
fn urgent_socket_bytes_are_read_in_order() {
    let mut bystanders = BystanderGuests::new();
    let mut raw = bystanders.raw();
    let whole = load(1, 7, 0, 4);
    for cut in 1..=whole.len() {
        if !raw.send_urgent(&whole[..cut]) {
            return;
        }
        raw.send(&[&whole[cut..], &whole].concat());
        for _ in 0..2 {
            assert_eq!(
                raw.reply().map(|(error, body)| (error, body.len())),
                Some((0, 20)),
                "urgent at {cut}"
            );
        }
    }
    for _ in 0..50 {
        raw.send_urgent(&whole);
        raw.send_urgent(&whole[..20]);
        raw.send_urgent(&whole[20..]);
    }
    for _ in 0..100 {
        assert_eq!(raw.reply().map(|(error, body)| (error, body.len())), Some((0, 20)));
    }
    bystanders.check_frames();
    drop(raw);
    bystanders.check_frames_and_next_client();
}

#[test]
fn invalid_message_size_ends_connection_after_pending_replies() {
    let mut bystanders = BystanderGuests::new();
    for size in [0u32, 1, 15] {
        let mut raw = bystanders.raw();
        let mut bad = message(9, Command::RegionRead, 0, &[0; 16]);
        bad[4..8].copy_from_slice(&size.to_le_bytes());
        raw.send(&[load(1, 7, 0, 4), load(2, 7, 0, 4), bad].concat());
        assert!(raw.reply().is_some() && raw.reply().is_some(), "size {size}: a pending reply is missing");
        assert_eq!(raw.reply(), None);
        eventually("the VF is free", || bystanders.live.show(0).peer.is_none());
    }
    bystanders.check_frames_and_next_client();
}

#[test]
fn client_of_another_vfio_user_version_is_disconnected() {
    let mut bystanders = BystanderGuests::new();
    let mut raw = RawVfioUserConnection::connect(&bystanders.live.socket(0));
    let mut other = version();
    other[16] = 1;
    raw.send(&other);
    assert_eq!(raw.reply().map(|(error, _)| error), Some(22));
    assert_eq!(raw.reply(), None);
    bystanders.check_frames_and_next_client();
}

#[test]
fn random_bytes_from_a_client_end_only_its_connection() {
    let mut bystanders = BystanderGuests::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..64 {
        let mut bytes: Vec<u8> = (0..1024).flat_map(|_| random().to_le_bytes()).collect();
        if round % 2 == 0 {
            // With a plausible size the host reads on and parses the rest.
            bytes[4..8].copy_from_slice(&u32::to_le_bytes(64));
        }
        let mut raw = RawVfioUserConnection::connect(&bystanders.live.socket(0));
        if round % 4 < 2 {
            raw.send(&version());
        }
        // The host may have hung up already.
        raw.try_send(&bytes);
        let _ = raw.stream().shutdown(Shutdown::Write);
        raw.wait_for_end();
    }
    bystanders.check_frames_and_next_client();
}

#[test]
fn client_that_ends_within_a_message_frees_its_vf() {
    let mut bystanders = BystanderGuests::new();
    let ram = GuestRam::new();
    let fd = ram.fd();
    for cut in [1, 15, 16, 17, 40] {
        let map = message(1, Command::DmaMap, 0, &[0; 32]);
        let mut raw = bystanders.raw();
        raw.send_with(&map[..cut], &[fd.as_fd(); 3]);
        drop(raw);
        eventually("the VF is free", || bystanders.live.show(0).peer.is_none());
    }
    bystanders.check_frames_and_next_client();
}

#[test]
fn too_many_descriptors_in_a_message_end_the_connection() {
    // The kernel does not report which descriptors it dropped, so no message with them can be carried out safely.
    let mut bystanders = BystanderGuests::new();
    let mut raw = bystanders.raw();
    let fd = GuestRam::new().fd();
    send_many(raw.stream(), &message(1, Command::DmaMap, 0, &[0; 32]), &[fd.as_fd(); 40]);
    raw.wait_for_end();
    bystanders.check_frames_and_next_client();
}

/// Sends a message with more file descriptors than SoftIOV's own socket type allows.
fn send_many(socket: impl AsFd, bytes: &[u8], fds: &[std::os::fd::BorrowedFd<'_>]) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = vec![std::mem::MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(fds).size()];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    sendmsg(socket, &[std::io::IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn replies_to_a_slow_reader_wait_and_all_arrive() {
    let mut bystanders = BystanderGuests::new();
    let mut raw = bystanders.raw();
    raw.stream().set_nonblocking(true).unwrap();
    let mut asked = 0;
    let mut quiet = 0;
    // Writes until the host has accepted no requests for a while.
    while quiet < 20 {
        match raw.stream().write(&load(asked, 7, 0, 4096)) {
            Ok(32) => (asked, quiet) = (asked + 1, 0),
            Ok(other) => panic!("the socket accepts {other} bytes of a request"),
            Err(_) => {
                quiet += 1;
                bystanders.check_frames();
            }
        }
        assert!(asked < 60_000, "the host accepts requests without a bound");
    }
    raw.stream().set_nonblocking(false).unwrap();
    for _ in 0..asked {
        assert_eq!(raw.reply().map(|(error, body)| (error, body.len())), Some((0, 16 + 4096)));
    }
    drop(raw);
    bystanders.check_frames_and_next_client();
}

#[test]
fn client_that_truncates_its_memory_is_cut_off_others_stay() {
    let mut bystanders = BystanderGuests::new();
    let mut a = VfGuest::under_qemu(&bystanders.live, 0);
    exchange(&mut a, &mut bystanders.b, 3);
    a.machine.ram.truncate();
    assert!(bystanders.c.send(a.vf.mac(), &[1; 60]));
    eventually("the hostile client is disconnected", || bystanders.live.show(0).peer.is_none());
    bystanders.check_frames();
    assert_eq!(driver::Hal::read(&mut a.machine, 8), u32::MAX, "the guest still has its card");
    drop(a);
    bystanders.check_frames_and_next_client();
}

#[test]
fn client_truncating_memory_during_transmit_is_cut_off() {
    let mut bystanders = BystanderGuests::new();
    for _ in 0..5 {
        let mut a = VfGuest::under_qemu(&bystanders.live, 0);
        let to = bystanders.b.vf.mac();
        a.send_many(to, 100);
        a.machine.ram.truncate();
        a.send_many(to, 100);
        eventually("the hostile client is disconnected", || bystanders.live.show(0).peer.is_none());
        bystanders.b.take();
        bystanders.check_frames();
    }
    bystanders.check_frames_and_next_client();
}
