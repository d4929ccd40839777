//! Measurement of the round-trip times of two guests while one guest, or six, flood the port with the most expensive
//! work. Prints a table with the times while the other guests are silent, for comparison:
//!
//! ```sh
//! SOFTIOV_NEIGHBOUR_ROUNDS=5000 cargo test --release -p daemon --test live neighbours -- --nocapture
//! ```
//!
//! There is no tight bound, because other tests run at the same time. `units::work` and the tests of the port's rounds
//! count the cost of work that a neighbour waits for.

use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, CONFIG, Vmm};
use crate::support::qemu::QemuClient;
use driver::Hal;
use driver::vf::TxOffload;
use i82576::bits::ctrl;
use i82576::register::vf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the number of round trips to measure that the environment requests; `None` without a request.
fn rounds() -> Option<usize> {
    std::env::var("SOFTIOV_NEIGHBOUR_ROUNDS").ok()?.parse().ok()
}

/// Action of a flooding guest that gives the port work once. The guest repeats it without a pause.
type GuestFloodAction = fn(&mut VfGuest<QemuClient>);

/// Number of writes in the flooding guests' messages with several writes, the most that the host accepts.
const WRITES: usize = 1024;

/// Actions by which guests disturb the two measured guests, by name. The first action uses a processor but not the
/// port.
const FLOODS: [(&str, GuestFloodAction); 11] = [
    ("nothing, busily", |_| (0..1000).for_each(|_| std::hint::spin_loop())),
    ("frames of 64 B", |guest| send(guest, &frame(46), &TxOffload::default())),
    ("64 KB cut into segments of 48 B", |guest| {
        send(guest, &tcp(UNKNOWN, 60_000), &TxOffload { tso: Some(48), ..TxOffload::default() });
    }),
    ("64 KB cut into segments of 128 B", |guest| {
        send(guest, &tcp(UNKNOWN, 60_000), &TxOffload { tso: Some(128), ..TxOffload::default() });
    }),
    ("broadcast cut into segments of 128 B", |guest| {
        send(guest, &tcp([0xff; 6], 60_000), &TxOffload { tso: Some(128), ..TxOffload::default() });
    }),
    ("register writes", |guest| {
        guest.machine.vmm.store_many(&[(BAR0, 0x3818, &[1, 0, 0, 0][..]); 64]);
    }),
    ("BAR writes of 16 KiB", |guest| guest.machine.vmm.store(BAR0, 0, &[0; 16 << 10])),
    ("mailbox messages", |guest| {
        for (register, value) in [(vf::V2PMAILBOX, 4), (vf::VMBMEM, 0x77), (vf::V2PMAILBOX, 1)] {
            guest.machine.write(register, value);
        }
    }),
    ("function-level resets", |guest| {
        let (control, word) = reset_by_config(guest);
        guest.machine.vmm.store(CONFIG, control, &word);
    }),
    ("1,024 CTRL.RST in a message", |guest| {
        guest.machine.vmm.store_many(&[(BAR0, u64::from(vf::CTRL), &ctrl::RST.to_le_bytes()[..]); WRITES]);
    }),
    ("1,024 function-level resets in a message", |guest| {
        let (control, word) = reset_by_config(guest);
        guest.machine.vmm.store_many(&[(CONFIG, control, &word[..]); WRITES]);
    }),
];

/// Returns the offset of Device Control in a guest's configuration space, and the value that resets the function.
fn reset_by_config(guest: &mut VfGuest<QemuClient>) -> (u64, [u8; 2]) {
    let control = guest.machine.capability(0x10) + 8;
    (control, (guest.machine.config_word(control) | 1 << 15).to_le_bytes())
}

/// Ethernet address that no function has.
const UNKNOWN: [u8; 6] = [2, 9, 9, 9, 9, 9];
const IPV4: [u8; 2] = [8, 0];

/// Returns a frame to the Ethernet address that no function has.
fn frame(payload: usize) -> Vec<u8> {
    [&UNKNOWN[..], &[0; 6], &[0x88, 0xb5], &vec![1; payload]].concat()
}

/// Returns a TCP packet to an Ethernet address, with headers that the card can copy to segments.
fn tcp(to: [u8; 6], payload: usize) -> Vec<u8> {
    let mut ip = [0; 20];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 6);
    ip[2..4].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    let mut header = [0; 20];
    header[12] = 0x50;
    [&to[..], &[0; 6], &IPV4, &ip, &header, &vec![1; payload]].concat()
}

/// Fills the guest's transmit ring with copies of a frame, and rings the doorbell once.
fn send(guest: &mut VfGuest<QemuClient>, frame: &[u8], offload: &TxOffload) {
    let mut frame = frame.to_vec();
    frame[6..12].copy_from_slice(&guest.vf.mac().0);
    while guest.vf.transmit(&mut guest.machine, &frame, offload).is_ok() {}
    guest.vf.flush(&mut guest.machine);
    guest.vf.clean(&mut guest.machine);
}

/// Time after which a frame of the two measured guests counts as lost.
pub(crate) const LOST: Duration = Duration::from_secs(1);

/// Sends a frame between two guests, and returns true if it arrives.
fn arrives(from: &mut VfGuest<QemuClient>, to: &mut VfGuest<QemuClient>, number: usize) -> bool {
    let payload = [&number.to_le_bytes()[..], &[0xa5; 60]].concat();
    let sent = from.send(to.vf.mac(), &payload);
    let deadline = Instant::now() + LOST;
    while sent && Instant::now() < deadline {
        // Frames of a flood arrive too.
        if to.receive_within(LOST).contains(&payload) {
            return true;
        }
    }
    false
}

/// Round trips of two guests beside a flood.
pub(crate) struct MeasuredRoundTrips {
    /// Times of the round trips, shortest first.
    times: Vec<Duration>,
    lost: usize,
}

impl MeasuredRoundTrips {
    /// Measures `count` round trips. `exchange` makes one, and returns false if a frame is lost.
    pub(crate) fn measure(count: usize, mut exchange: impl FnMut(usize) -> bool) -> Self {
        let mut measured = Self { times: Vec::with_capacity(count), lost: 0 };
        for number in 0..count {
            let begun = Instant::now();
            match exchange(number) {
                true => measured.times.push(begun.elapsed()),
                false => measured.lost += 1,
            }
        }
        measured.times.sort();
        measured
    }

    fn at(&self, permille: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get((self.times.len() * permille / 1000).min(last)).copied().unwrap_or(LOST)
    }
}

/// Measures `count` round trips between two guests while `flooders` other guests repeat `flood`.
fn round_trips(flood: GuestFloodAction, flooders: u8, count: usize) -> MeasuredRoundTrips {
    let live = LiveHost::with("[[port]]\nvfs = 8\n");
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 6), VfGuest::under_qemu(&live, 7));
    let mut others: Vec<_> = (0..flooders).map(|vf| VfGuest::under_qemu(&live, vf)).collect();
    (0..20).for_each(|number| assert!(arrives(&mut b, &mut c, number) && arrives(&mut c, &mut b, number)));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for guest in &mut others {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    flood(guest);
                }
            });
        }
        let measured = MeasuredRoundTrips::measure(count, |number| {
            arrives(&mut b, &mut c, number) && arrives(&mut c, &mut b, number)
        });
        over.store(true, Ordering::Relaxed);
        measured
    })
}

/// Measures the round trips of two guests during each flood and prints them. `round_trips` measures a number of them beside
/// a number of flooding guests.
pub(crate) fn print_floods<F: Copy>(
    floods: &[(&str, F)],
    round_trips: impl Fn(F, u8, usize) -> MeasuredRoundTrips,
) {
    let count = rounds();
    // Six guests beside the two are more threads than a test may use that runs beside others.
    let flooders: &[u8] = if count.is_some() { &[1, 6] } else { &[1] };
    let count = count.unwrap_or(40);
    println!("| flood | VFs | p50, us | p99 | lost | p50 and p99 as a multiple of quiet |");
    println!("|---|--:|--:|--:|--:|--:|");
    for &flooders in flooders {
        let mut quiet = None;
        for &(what, flood) in floods {
            let measured = round_trips(flood, flooders, count);
            let found = [500, 990].map(|permille| measured.at(permille));
            let [p50, p99] = found.map(|time| time.as_micros());
            let before = *quiet.get_or_insert(found);
            let [by50, by99] = [0, 1].map(|at| found[at].as_secs_f64() / before[at].as_secs_f64());
            println!("| {what} | {flooders} | {p50} | {p99} | {} | {by50:.1}, {by99:.1} |", measured.lost);
            assert!(found[0] < LOST, "{what} starves the pair");
        }
    }
}

#[test]
fn flood_by_other_guests_does_not_starve_two_guests() {
    print_floods(&FLOODS, round_trips);
}
