//! Measurement of the round-trip times of two guests while a third guest floods the port with the most expensive work.
//! Also prints the times while the third guest keeps a processor as busy without the port:
//!
//! ```sh
//! SOFTIOV_NEIGHBOUR_ROUNDS=5000 cargo test --release -p daemon --test live neighbours -- --nocapture
//! ```
//!
//! There is no tight bound, because other tests run at the same time; `fairness` counts that no guest starves.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, CONFIG, Vmm};
use crate::support::qemu::QemuClient;
use driver::Hal;
use driver::vf::TxOffload;
use i82576::register::vf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the number of round trips to measure that the environment requests; `None` without a request.
fn rounds() -> Option<usize> {
    std::env::var("SOFTIOV_NEIGHBOUR_ROUNDS").ok()?.parse().ok()
}

/// Action of the third guest that gives the port work once. The test repeats it without a pause while two other guests
/// are measured.
type GuestFloodAction = fn(&mut VfGuest<QemuClient>);

/// Actions by which the third guest disturbs the two measured guests, by name. The first action uses a processor but
/// not the port.
const FLOODS: [(&str, GuestFloodAction); 6] = [
    ("nothing, busily", |_| (0..1000).for_each(|_| std::hint::spin_loop())),
    ("frames of 64 B", |guest| send(guest, &frame(46), &TxOffload::default())),
    ("64 KB cut into segments of 48 B", |guest| {
        send(guest, &tcp(60_000), &TxOffload { tso: Some(48), ..TxOffload::default() });
    }),
    ("register writes", |guest| {
        guest.machine.vmm.store_many(&[(BAR0, 0x3818, &[1, 0, 0, 0][..]); 64]);
    }),
    ("mailbox messages", |guest| {
        for (register, value) in [(vf::V2PMAILBOX, 4), (vf::VMBMEM, 0x77), (vf::V2PMAILBOX, 1)] {
            guest.machine.write(register, value);
        }
    }),
    ("function-level resets", |guest| {
        let control = guest.machine.capability(0x10) + 8;
        let word = guest.machine.config_word(control) | 1 << 15;
        guest.machine.vmm.store(CONFIG, control, &word.to_le_bytes());
    }),
];

/// Ethernet address that no function has.
const UNKNOWN: [u8; 6] = [2, 9, 9, 9, 9, 9];
const IPV4: [u8; 2] = [8, 0];

/// Returns a frame to the Ethernet address that no function has.
fn frame(payload: usize) -> Vec<u8> {
    [&UNKNOWN[..], &[0; 6], &[0x88, 0xb5], &vec![1; payload]].concat()
}

/// Returns a TCP packet to an Ethernet address that no function has, with headers that the card can copy to segments.
fn tcp(payload: usize) -> Vec<u8> {
    let mut ip = [0; 20];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 6);
    ip[2..4].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    let mut header = [0; 20];
    header[12] = 0x50;
    [&UNKNOWN[..], &[0; 6], &IPV4, &ip, &header, &vec![1; payload]].concat()
}

/// Fills the guest's transmit ring with copies of a frame, and rings the doorbell once.
fn send(guest: &mut VfGuest<QemuClient>, frame: &[u8], offload: &TxOffload) {
    let mut frame = frame.to_vec();
    frame[6..12].copy_from_slice(&guest.vf.mac().0);
    while guest.vf.transmit(&mut guest.machine, &frame, offload).is_ok() {}
    guest.vf.flush(&mut guest.machine);
    guest.vf.clean(&mut guest.machine);
}

/// Measures `count` round trips between two guests while a third repeats `flood`. Returns the times, shortest first.
fn round_trips(flood: GuestFloodAction, count: usize) -> Vec<Duration> {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    let mut a = VfGuest::under_qemu(&live, 0);
    exchange(&mut b, &mut c, 20);
    let over = AtomicBool::new(false);
    let mut times: Vec<Duration> = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                flood(&mut a);
            }
        });
        let times = (0..count).map(|_| {
            let begun = Instant::now();
            exchange(&mut b, &mut c, 1);
            begun.elapsed()
        });
        let times = times.collect();
        over.store(true, Ordering::Relaxed);
        times
    });
    times.sort();
    times
}

#[test]
fn flood_by_a_third_guest_does_not_starve_two_other_guests() {
    let count = rounds().unwrap_or(40);
    for (what, flood) in FLOODS {
        let times = round_trips(flood, count);
        let at = |percent: usize| times[(count * percent / 100).min(count - 1)];
        println!("{what}: round trip p50 {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
        assert!(at(50) < Duration::from_secs(1), "{what} starves the pair");
    }
}
