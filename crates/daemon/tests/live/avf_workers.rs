//! Tests of an AVF port whose VFs are shared by several workers. Guests ring by memory, so that their VFs may leave the port's
//! own thread.

use crate::support::bar_mapping::BarMappingGuest;
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::numbers::{FRAMES, NumberedGuest, exchange_numbers};
use crate::support::qemu;
use daemon::settings::{PortSettings, StormControlSettings, VfSettings};
use driver::Hal;
use driver::avf::vf::AvfDriver;
use i82576::MacAddress;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Configuration of a port whose VFs are spread over two workers: the VFs with odd numbers are the second worker's.
const SPREAD: &str =
    "[[port]]\nfamily = \"avf\"\nvfs = 4\nwait = \"mapped\"\nworkers = 2\ndispatcher = \"spread\"\n";

fn boot(live: &LiveHost, vf: u8) -> BarMappingGuest {
    BarMappingGuest::boot(live, vf, qemu::MAPPABLE_AVF)
}

/// Returns the VFs of the second worker.
fn second_worker(live: &LiveHost) -> Vec<u8> {
    live.show_port("pf0").workers[1].vfs.clone()
}

/// Returns the settings of a limit of broadcasts in kbit/s; 0 for none.
fn storm_limit(broadcast: u32) -> PortSettings {
    let storm = StormControlSettings { broadcast: Some(broadcast), ..StormControlSettings::default() };
    PortSettings { storm: Some(storm), ..PortSettings::default() }
}

#[test]
fn avf_frames_keep_their_order_while_the_policy_changes() {
    let live = LiveHost::with(SPREAD);
    let mut guests: Vec<_> = (0..4).map(|vf| boot(&live, vf)).collect();
    eventually("two VFs move to the second worker", || second_worker(&live) == [1, 3]);
    thread::scope(|scope| {
        let traffic = scope.spawn(|| exchange_numbers(&mut guests));
        let rates =
            [10_000, 20_000].map(|rate| VfSettings { max_tx_rate: Some(rate), ..VfSettings::default() });
        for rate in rates.iter().cycle() {
            if traffic.is_finished() {
                break;
            }
            // Each change and each status gathers the card.
            live.change(1, rate.clone());
            assert_eq!(second_worker(&live), [1, 3]);
        }
    });
    guests.iter_mut().for_each(BarMappingGuest::has_noticed_nothing);
    let status = live.show(1);
    assert_eq!(status.function.tx.packets, u64::from(FRAMES));
    assert_eq!((status.function.rx.packets, status.function.rx.dropped), (3 * u64::from(FRAMES), 0));
    let workers = live.show_port("pf0").workers;
    assert!(workers[1].frames > 0 && workers[1].busy_ns > 0, "{workers:?}");
    let BarMappingGuest { machine, driver } = &mut guests[1];
    driver.statistics(machine).unwrap();
}

#[test]
fn worker_sends_the_interrupts_of_its_avf() {
    let live = LiveHost::with(SPREAD);
    let (mut a, mut b) = (boot(&live, 0), boot(&live, 1));
    eventually("a VF moves to the second worker", || second_worker(&live) == [1]);
    for number in 0..20 {
        b.driver.enable_interrupt(&mut b.machine, 1);
        a.send(&[number]);
        assert!(b.machine.wait_for(1, crate::support::PATIENCE), "frame {number}");
        assert_eq!(b.take().len(), 1);
    }
}

#[test]
fn storm_limit_folds_the_vfs_of_an_avf_port() {
    let live = LiveHost::with(SPREAD);
    let mut guests = [boot(&live, 0), boot(&live, 1)];
    eventually("a VF moves to the second worker", || second_worker(&live) == [1]);
    live.change_port(storm_limit(1_000_000)).unwrap();
    eventually("the VF returns", || second_worker(&live).is_empty());
    live.change_port(storm_limit(0)).unwrap();
    eventually("the VF moves again", || second_worker(&live) == [1]);
    exchange_numbers(&mut guests);
}

#[test]
fn guest_that_rings_by_message_stays_on_the_first_worker() {
    let live = LiveHost::with(SPREAD);
    let mut mapped = [boot(&live, 0), boot(&live, 2)];
    let mut machine = qemu::boot_as(&live.socket(1), qemu::IGNORANT_AVF, qemu::share);
    let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, 1])).unwrap();
    driver.start(&mut machine).unwrap();
    eventually("a VF moves to the second worker", || second_worker(&live) == [2]);
    let frame = [&[0xff; 6][..], &driver.mac().0, &[0x88, 0xb5], &[7; 46]].concat();
    let mut into = [0; 2048];
    for _ in 0..20 {
        assert!(driver.transmit(&mut machine, 0, &frame));
        mapped.iter_mut().for_each(|guest| eventually("its frame arrives", || !guest.take().is_empty()));
        mapped[1].send(b"back");
        eventually("the frame of a worker arrives", || driver.receive(&mut machine, 0, &mut into).is_some());
        mapped[0].take();
    }
    assert_eq!(second_worker(&live), [2]);
}

#[test]
fn disconnected_avf_returns_to_the_first_worker() {
    let live = LiveHost::with(SPREAD);
    let (a, b) = (boot(&live, 0), boot(&live, 1));
    eventually("a VF moves to the second worker", || second_worker(&live) == [1]);
    drop(b);
    eventually("the VF returns", || second_worker(&live).is_empty());
    let b = boot(&live, 1);
    eventually("the VF moves again", || second_worker(&live) == [1]);
    exchange_numbers(&mut [a, b]);
}

#[test]
fn hostile_guest_on_a_worker_stops_no_other_guest() {
    let live = LiveHost::with(SPREAD);
    let mut guests = [boot(&live, 0), boot(&live, 2)];
    let mut hostile = boot(&live, 1);
    eventually("the hostile guest moves to the second worker", || second_worker(&live) == [1]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let noise = scope.spawn(|| {
            let mut number = 1_u32;
            while !over.load(Ordering::Relaxed) {
                // Knuth's generator: any values of tails, intervals and vectors.
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let offset = avf_nic::doorbell::REGISTERS[number as usize % avf_nic::doorbell::COUNT];
                hostile.machine.write(offset, number);
            }
        });
        exchange_numbers(&mut guests);
        over.store(true, Ordering::Relaxed);
        noise.join().unwrap();
    });
    guests.iter_mut().for_each(BarMappingGuest::has_noticed_nothing);
}
