//! What clients can make the host use: descriptors, memory, processor time, lines in the log.

use crate::support::alone::{alone, assert_asleep, descriptors, resident};
use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use crate::support::qemu::{self, Qemu};
use crate::support::ram::{HIGH, Ram};
use crate::support::raw::{Raw, load, message};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;
use vfio_user::wire::Command;

/// One of the ways in which clients come and go.
fn come_and_go(live: &Live, ram: &Ram, round: usize) {
    let socket = live.socket((round % 7) as u8);
    match round % 4 {
        0 => drop(qemu::connect(&socket)),
        1 => {
            let mut qemu = Qemu::greet(&socket);
            qemu.map(HIGH, 0x10_0000, Some(ram.fd())).unwrap();
        }
        2 => drop(qemu::boot(&socket)),
        _ => {
            let half = message(1, Command::DmaMap, 0, &[0; 32]);
            Raw::greet(&socket).send_with(&half[..20], &[ram.fd().as_fd(); 4]);
        }
    }
}

#[test]
fn a_thousand_clients_leave_nothing_behind() {
    alone("resources::a_thousand_clients_leave_nothing_behind", || {
        let live = Live::start();
        let ram = Ram::new();
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
        drop((a, b));
        (0..40).for_each(|round| come_and_go(&live, &ram, round));
        let all_gone = || live.port().vfs.iter().all(|vf| vf.peer.is_none());
        eventually("all are gone", all_gone);
        let (fds, bytes) = (descriptors(), resident());
        (0..1000).for_each(|round| come_and_go(&live, &ram, round));
        eventually("all are gone", all_gone);
        eventually("no descriptor is left", || descriptors() <= fds);
        eventually("nothing is mapped", || ram.mapped_by_the_host() == 0);
        let grown = resident().saturating_sub(bytes);
        assert!(grown < 4 << 20, "{grown} bytes more than before");
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
    });
}

#[test]
fn a_client_that_never_reads_costs_a_bounded_amount_of_memory() {
    alone("resources::a_client_that_never_reads_costs_a_bounded_amount_of_memory", || {
        let live = Live::start();
        let raws: Vec<Raw> = (0..7).map(|vf| Raw::greet(&live.socket(vf))).collect();
        let before = resident();
        for raw in &raws {
            raw.stream().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let requests = load(0, 0, 0, 1 << 20).repeat(1000);
            // Until nothing more is taken.
            while (&mut raw.stream()).write_all(&requests).is_ok() {}
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 7 * (4 << 20), "{grown} bytes for seven clients");
        assert_eq!(live.port().vfs.len(), 7, "the host answers");
    });
}

#[test]
fn an_idle_host_sleeps() {
    alone("resources::an_idle_host_sleeps", || {
        let live = Live::start();
        let mut guests: Vec<_> = (0..7).map(|vf| Guest::under_qemu(&live, vf)).collect();
        let (a, b) = guests.split_at_mut(1);
        exchange(&mut a[0], &mut b[0], 20);
        assert_asleep("seven guests with nothing to say");
        // Frames that nobody takes: rings full, interrupts masked.
        let to = a[0].vf.mac();
        b[0].send_many(to, 600);
        assert_asleep("a guest that does not take its frames");
        drop(guests);
        assert_asleep("no client at all");
    });
}

#[test]
fn a_client_that_has_hung_up_and_does_not_read_is_not_waited_for_in_a_circle() {
    alone("resources::a_client_that_has_hung_up_and_does_not_read_is_not_waited_for_in_a_circle", || {
        let live = Live::start();
        let raw = Raw::greet(&live.socket(0));
        raw.stream().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let requests = load(0, 7, 0, 4096).repeat(1000);
        while (&mut raw.stream()).write_all(&requests).is_ok() {}
        raw.stream().shutdown(Shutdown::Write).unwrap();
        assert_asleep("half closed, its replies unread");
    });
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[test]
fn no_client_floods_the_log() {
    alone("resources::no_client_floods_the_log", || {
        let lines = Lines::default();
        tracing_subscriber::fmt().with_writer(lines.clone()).with_max_level(tracing::Level::TRACE).init();
        let live = Live::start();
        let held = Qemu::greet(&live.socket(1));
        for _ in 0..1000 {
            drop(Qemu::greet(&live.socket(0)));
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

#[test]
fn a_window_that_is_too_much_is_told_in_the_log_with_the_setting() {
    alone("resources::a_window_that_is_too_much_is_told_in_the_log_with_the_setting", || {
        let lines = Lines::default();
        tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).init();
        let live = Live::with("client_memory = \"8M\"");
        let ram = Ram::new();
        let mut qemu = Qemu::greet(&live.socket(0));
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
