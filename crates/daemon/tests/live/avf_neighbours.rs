//! Floods of AVF guests, as `neighbours` has them for the 82576: round trips of two guests while one other guest, or six, flood the
//! port.

#[path = "../../src/port/run/tests/floods/flooder.rs"]
mod flooder;

use crate::round_trips::{FloodSchedule, FloodSlices, LOST, measure_beside, test_floods};
use crate::support::live::LiveHost;
use crate::support::machine::{CONFIG, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, QemuClient};
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use flooder::{AvfFlooder, RawPacket};
use i82576::MacAddress;
use std::time::Instant;

type Machine = VmWithPciFunction<QemuClient>;
/// Action of a flooding guest, which it repeats without a pause.
type GuestFloodAction = fn(&mut AvfFlooder, &mut Machine);

const UNKNOWN: MacAddress = MacAddress([2, 9, 9, 9, 9, 9]);

const FLOODS: [(&str, GuestFloodAction); 12] = [
    ("nothing, busily", |_, _| (0..1000).for_each(|_| std::hint::spin_loop())),
    ("admin queue commands", |flooder, machine| _ = flooder.send_commands(machine)),
    ("virtchnl requests", |flooder, machine| _ = flooder.send_requests(machine)),
    ("virtchnl lists of 100 addresses", |flooder, machine| _ = flooder.send_address_lists(machine)),
    ("queues disabled and enabled", |flooder, machine| _ = flooder.switch_queues(machine)),
    ("function-level resets", |_, machine| {
        let control = machine.capability(0x10) + 8;
        let word = machine.config_word(control) | 1 << 15;
        machine.vmm.store(CONFIG, control, &word.to_le_bytes());
    }),
    ("8 KB cut into segments of 128 B, 16 queue pairs", |flooder, machine| {
        flooder.send_segments(machine, UNKNOWN);
    }),
    ("8 KB with headers of 822 B cut into segments of 128 B", |flooder, machine| {
        flooder.send_raw(machine, RawPacket::LongHeaders);
    }),
    ("SCTP of 9.7 KB", |flooder, machine| flooder.send_raw(machine, RawPacket::Sctp)),
    ("context descriptors", |flooder, machine| flooder.send_raw(machine, RawPacket::Context)),
    ("interrupts of 17 vectors", |flooder, machine| flooder.trigger_interrupts(machine)),
    ("malformed packets", |flooder, machine| flooder.send_malformed(machine)),
];

const BROADCASTS: [(&str, GuestFloodAction); 1] =
    [("broadcast cut into segments of 128 B, 16 queue pairs", |flooder, machine| {
        flooder.send_segments(machine, MacAddress::BROADCAST);
    })];
/// Interrupt vector of the measured guests' queue pair.
const QUEUE_VECTOR: u8 = 1;

fn machine(live: &LiveHost, vf: u8) -> Machine {
    qemu::boot_as(&live.socket(vf), qemu::AVF, qemu::share)
}

/// Boots one of the two measured guests.
fn boot(live: &LiveHost, vf: u8) -> (Machine, AvfDriver) {
    let mut machine = machine(live, vf);
    let config = AvfDriverConfig { pairs: 1, descriptors: 64, interval_us: 0, ..AvfDriverConfig::default() };
    let mut driver = AvfDriver::probe_with(&mut machine, mac(vf), config).unwrap();
    driver.start(&mut machine).unwrap();
    (machine, driver)
}

/// Boots a flooding guest.
fn boot_flooder(live: &LiveHost, vf: u8) -> (Machine, AvfFlooder) {
    let mut machine = machine(live, vf);
    let flooder = AvfFlooder::start(&mut machine, vf, mac(vf));
    (machine, flooder)
}

fn mac(vf: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 9, vf])
}

/// Sends a frame between two guests, and returns true if it arrives.
fn arrives(from: &mut (Machine, AvfDriver), to: &mut (Machine, AvfDriver), number: usize) -> bool {
    let frame =
        [&to.1.mac().0[..], &from.1.mac().0, &[0x88, 0xb5], &number.to_le_bytes(), &[0xa5; 60]].concat();
    from.1.clean(&mut from.0);
    let sent = from.1.transmit(&mut from.0, 0, &frame);
    from.1.flush(&mut from.0);
    let (deadline, mut into) = (Instant::now() + LOST, [0; 2048]);
    while sent && Instant::now() < deadline {
        // Frames of a flood arrive too.
        while let Some(received) = to.1.receive(&mut to.0, 0, &mut into) {
            if received.length >= frame.len() && into[..frame.len()] == frame {
                return true;
            }
        }
        // The guest sleeps until an interrupt, as a kernel does, and leaves its processor to others.
        to.1.enable_interrupt(&mut to.0, QUEUE_VECTOR);
        to.0.wait_for(QUEUE_VECTOR.into(), deadline.saturating_duration_since(Instant::now()));
    }
    false
}

/// Measures pairs of slices of round trips between two guests, while `flooders` other guests repeat `flood` in each second slice.
fn round_trips(flood: GuestFloodAction, flooders: u8, schedule: FloodSchedule) -> FloodSlices {
    // No limit of requests for each second: only their cost counts.
    let live = LiveHost::with("[[port]]\nfamily = \"avf\"\nvfs = 8\nlimits = { mailbox = {} }\n");
    let (mut b, mut c) = (boot(&live, 6), boot(&live, 7));
    let others: Vec<_> = (0..flooders).map(|vf| boot_flooder(&live, vf)).collect();
    let mut exchange = |number| arrives(&mut b, &mut c, number) && arrives(&mut c, &mut b, number);
    (0..20).for_each(|number| assert!(exchange(number)));
    let flood = |(machine, flooder): &mut (Machine, AvfFlooder)| flood(flooder, machine);
    measure_beside(others, flood, schedule, &mut exchange)
}

#[test]
fn flood_by_other_avf_guests_does_not_starve_two_guests() {
    test_floods(&FLOODS, &BROADCASTS, round_trips);
}
