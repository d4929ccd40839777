//! Measurement of the round-trip times of two 82576 guests while one guest, or six, flood the port with the most expensive work. The
//! test of each run prints a table, without a tight bound: other tests run at the same time. `units::work`, the card's tests of shares
//! and the tests of the port's rounds count the cost of work that a neighbour waits for. With the number of round trips of a slice in
//! the environment, the test judges by the clock, on a machine without other load:
//!
//! ```sh
//! SOFTIOV_NEIGHBOUR_ROUNDS=1000 cargo test --release -p daemon --test live neighbours -- --nocapture --test-threads 1
//! ```

use crate::raw_ring::{FloodingGuest, context, sctp, with_long_headers};
use crate::round_trips::{FloodSchedule, FloodSlices, LOST, measure_beside, test_floods};
use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, CONFIG, Vmm};
use crate::support::qemu::QemuClient;
use driver::Hal;
use driver::vf::TxOffload;
use i82576::MacAddress;
use i82576::bits::ctrl;
use i82576::register::vf;
use std::time::Instant;

/// Action of a flooding guest that gives the port work once. The guest repeats it without a pause.
type GuestFloodAction = fn(&mut FloodingGuest);

/// Number of writes in the flooding guests' messages with several writes, the most that the host accepts.
const WRITES: usize = 1024;

/// Actions by which guests disturb the two measured guests, by name. The first action uses a processor but not the
/// port.
const FLOODS: [(&str, GuestFloodAction); 13] = [
    ("nothing, busily", |_| (0..1000).for_each(|_| std::hint::spin_loop())),
    ("frames of 64 B", |FloodingGuest { guest, .. }| send(guest, &frame(46), &TxOffload::default())),
    ("64 KB cut into segments of 48 B", |FloodingGuest { guest, .. }| {
        send(guest, &tcp(UNKNOWN, 60_000), &TxOffload { tso: Some(48), ..TxOffload::default() });
    }),
    ("64 KB cut into segments of 128 B", |FloodingGuest { guest, .. }| {
        send(guest, &tcp(UNKNOWN, 60_000), &TxOffload { tso: Some(128), ..TxOffload::default() });
    }),
    ("64 KB with headers of 893 B cut into segments of 128 B", |flooder| {
        flooder.send_raw(|guest, address| with_long_headers(guest, address, MacAddress(UNKNOWN)));
    }),
    ("SCTP of 9.7 KB", |flooder| {
        flooder.send_raw(|guest, address| sctp(guest, address, MacAddress(UNKNOWN)));
    }),
    ("context descriptors", |flooder| flooder.send_raw(|_, _| context())),
    ("register writes", |FloodingGuest { guest, .. }| {
        guest.machine.vmm.store_many(&[(BAR0, 0x3818, &[1, 0, 0, 0][..]); 64]);
    }),
    ("BAR writes of 16 KiB", |FloodingGuest { guest, .. }| guest.machine.vmm.store(BAR0, 0, &[0; 16 << 10])),
    ("mailbox messages", |FloodingGuest { guest, .. }| {
        for (register, value) in [(vf::V2PMAILBOX, 4), (vf::VMBMEM, 0x77), (vf::V2PMAILBOX, 1)] {
            guest.machine.write(register, value);
        }
    }),
    ("function-level resets", |FloodingGuest { guest, .. }| {
        let (control, word) = reset_by_config(guest);
        guest.machine.vmm.store(CONFIG, control, &word);
    }),
    ("1,024 CTRL.RST in a message", |FloodingGuest { guest, .. }| {
        guest.machine.vmm.store_many(&[(BAR0, u64::from(vf::CTRL), &ctrl::RST.to_le_bytes()[..]); WRITES]);
    }),
    ("1,024 function-level resets in a message", |FloodingGuest { guest, .. }| {
        let (control, word) = reset_by_config(guest);
        guest.machine.vmm.store_many(&[(CONFIG, control, &word[..]); WRITES]);
    }),
];

/// The same for frames that reach all guests.
const BROADCASTS: [(&str, GuestFloodAction); 1] =
    [("broadcast cut into segments of 128 B", |FloodingGuest { guest, .. }| {
        send(guest, &tcp([0xff; 6], 60_000), &TxOffload { tso: Some(128), ..TxOffload::default() });
    })];

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

/// Measures pairs of slices of round trips between two guests, while `flooders` other guests repeat `flood` in each second slice.
fn round_trips(flood: GuestFloodAction, flooders: u8, schedule: FloodSchedule) -> FloodSlices {
    let live = LiveHost::with("[[port]]\nvfs = 8\n");
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 6), VfGuest::under_qemu(&live, 7));
    let flooding = |vf| {
        let mut guest = VfGuest::under_qemu(&live, vf);
        guest.vf.set_max_frame(&mut guest.machine, 9_714).unwrap();
        FloodingGuest::new(guest)
    };
    let others: Vec<_> = (0..flooders).map(flooding).collect();
    let mut exchange = |number| arrives(&mut b, &mut c, number) && arrives(&mut c, &mut b, number);
    (0..20).for_each(|number| assert!(exchange(number)));
    measure_beside(others, flood, schedule, &mut exchange)
}

#[test]
fn flood_by_other_guests_does_not_starve_two_guests() {
    test_floods(&FLOODS, &BROADCASTS, round_trips);
}
