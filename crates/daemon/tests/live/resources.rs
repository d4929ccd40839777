//! Tests of the resources that clients can make the host use: file descriptors, memory, processor time, log lines.

use crate::support::alone::{alone, assert_asleep, descriptors, resident};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::{self, QemuClient};
use crate::support::ram::{GuestRam, HIGH};
use crate::support::raw::{RawVfioUserConnection, load, message};
use crate::vhost;
use crate::vhost::guest::{RING, VirtioGuest};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;
use vfio_user::wire::Command;

/// Connects and disconnects a client in one of four ways, by `round`: silent, with mapped memory, with a
/// booted guest, in the middle of a message.
fn connect_and_disconnect(live: &LiveHost, ram: &GuestRam, round: usize) {
    let socket = live.socket((round % 7) as u8);
    match round % 4 {
        0 => drop(qemu::connect(&socket)),
        1 => {
            let mut qemu = QemuClient::greet(&socket);
            qemu.map(HIGH, 0x10_0000, Some(ram.fd())).unwrap();
        }
        2 => drop(qemu::boot(&socket)),
        _ => {
            let half = message(1, Command::DmaMap, 0, &[0; 32]);
            RawVfioUserConnection::greet(&socket).send_with(&half[..20], &[ram.fd().as_fd(); 4]);
        }
    }
}

#[test]
fn thousand_clients_leak_no_memory_or_descriptor() {
    alone("resources::thousand_clients_leak_no_memory_or_descriptor", || {
        let live = LiveHost::start();
        let ram = GuestRam::new();
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
        drop((a, b));
        (0..40).for_each(|round| connect_and_disconnect(&live, &ram, round));
        let all_gone = || live.port().vfs.iter().all(|vf| vf.peer.is_none());
        eventually("all clients are gone", all_gone);
        let (fds, bytes) = (descriptors(), resident());
        (0..1000).for_each(|round| connect_and_disconnect(&live, &ram, round));
        eventually("all clients are gone", all_gone);
        eventually("all descriptors are closed", || descriptors() <= fds);
        eventually("the host has unmapped the guest's memory", || ram.mapped_by_the_host() == 0);
        let grown = resident().saturating_sub(bytes);
        assert!(grown < 4 << 20, "{grown} bytes more than before");
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
    });
}

#[test]
fn client_that_never_reads_uses_bounded_memory() {
    alone("resources::client_that_never_reads_uses_bounded_memory", || {
        let live = LiveHost::start();
        let raws: Vec<RawVfioUserConnection> =
            (0..7).map(|vf| RawVfioUserConnection::greet(&live.socket(vf))).collect();
        let before = resident();
        for raw in &raws {
            raw.stream().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let requests = load(0, 0, 0, 1 << 20).repeat(1000);
            // Writes until the host accepts no more.
            while (&mut raw.stream()).write_all(&requests).is_ok() {}
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 7 * (4 << 20), "{grown} bytes for seven clients");
        assert_eq!(live.port().vfs.len(), 7, "the host does not answer");
    });
}

#[test]
fn idle_host_uses_no_processor_time() {
    alone("resources::idle_host_uses_no_processor_time", || {
        let live = LiveHost::start();
        let mut guests: Vec<_> = (0..7).map(|vf| VfGuest::under_qemu(&live, vf)).collect();
        let (a, b) = guests.split_at_mut(1);
        exchange(&mut a[0], &mut b[0], 20);
        assert_asleep("with seven idle guests");
        // The guest takes no frames: its rings are full, and its interrupts are masked.
        let to = a[0].vf.mac();
        b[0].send_many(to, 600);
        assert_asleep("with a guest that takes no frames");
        drop(guests);
        assert_asleep("without a client");
    });
}

#[test]
fn idle_virtio_port_with_two_workers_uses_no_processor_time() {
    alone("resources::idle_virtio_port_with_two_workers_uses_no_processor_time", || {
        let live =
            LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 4\nworkers = 2\ndispatcher = \"spread\"\n");
        let mut guests: Vec<_> = (0..4).map(|vf| VirtioGuest::boot(&live, vf)).collect();
        guests.iter_mut().for_each(|guest| guest.send(b"hello"));
        eventually("two VFs move to the second worker", || live.show_port("pf0").workers[1].vfs == [1, 3]);
        let (a, b) = guests.split_at_mut(1);
        vhost::guest::exchange(&mut a[0], &mut b[0]);
        assert_asleep("with two idle guests on each worker");
        // The guests take no frames: their receive rings are full.
        (0..RING)
            .for_each(|_| guests.iter_mut().for_each(|guest| guest.if_room(1, |guest| guest.send(b"flood"))));
        assert_asleep("with guests that take no frames");
        assert!(live.show(0).function.rx.dropped > 0, "the receive rings are not full");
        drop(guests);
        assert_asleep("without a client");
    });
}

#[test]
fn half_closed_client_uses_no_processor_time() {
    alone("resources::half_closed_client_uses_no_processor_time", || {
        let live = LiveHost::start();
        let raw = RawVfioUserConnection::greet(&live.socket(0));
        raw.stream().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let requests = load(0, 7, 0, 4096).repeat(1000);
        while (&mut raw.stream()).write_all(&requests).is_ok() {}
        raw.stream().shutdown(Shutdown::Write).unwrap();
        assert_asleep("with a half-closed client that does not read");
    });
}

#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[test]
fn log_lines_about_reconnecting_clients_are_limited() {
    alone("resources::log_lines_about_reconnecting_clients_are_limited", || {
        let lines = CapturedLog::default();
        tracing_subscriber::fmt().with_writer(lines.clone()).with_max_level(tracing::Level::TRACE).init();
        let live = LiveHost::start();
        let held = QemuClient::greet(&live.socket(1));
        for _ in 0..1000 {
            drop(QemuClient::greet(&live.socket(0)));
            drop(qemu::connect(&live.socket(1)));
        }
        for _ in 0..100 {
            drop(qemu::boot_as(&live.socket(2), qemu::VF, qemu::announce_only));
        }
        drop(held);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let count = text.lines().count();
        assert!((1..=3 * 20 + 20).contains(&count), "{count} lines\n{text}");
    });
}

/// Tests that a VF whose clients connect without end causes at most 40 log lines a minute, and suppresses none about another.
#[test]
fn log_lines_of_one_vf_leave_those_of_another() {
    alone("resources::log_lines_of_one_vf_leave_those_of_another", || {
        let lines = CapturedLog::default();
        tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).init();
        let (live, started) = (LiveHost::start(), Instant::now());
        let boot = |vf| drop(qemu::boot_as(&live.socket(vf), qemu::VF, qemu::announce_only));
        (0..100).for_each(|_| boot(0));
        (0..5).for_each(|_| boot(1));
        drop(live);
        let minutes = started.elapsed().as_secs() as usize / 60 + 1;
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert!((20..=40 * minutes).contains(&count("function=\"pf0vf0\"")), "{text}");
        let connections = |line: &&str| line.contains("pf0vf1") && line.contains("a client has connected");
        assert_eq!(text.lines().filter(connections).count(), 5, "{text}");
    });
}

#[test]
fn refused_dma_window_is_logged_with_the_limiting_setting() {
    alone("resources::refused_dma_window_is_logged_with_the_limiting_setting", || {
        let lines = CapturedLog::default();
        tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).init();
        let live = LiveHost::with("client_memory = \"8M\"");
        let ram = GuestRam::new();
        let mut qemu = QemuClient::greet(&live.socket(0));
        for _ in 0..100 {
            assert!(qemu.map(0, 9 << 20, Some(ram.fd())).is_err());
        }
        drop(live);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let told =
            text.lines().filter(|line| line.contains("pf0vf0") && line.contains("client_memory")).count();
        assert!((1..=20).contains(&told), "{text}");
    });
}
