//! Tests of a host's hand-over while guests with Adaptive Virtual Functions send frames and requests: no VF is reset,
//! no link changes, and no counter falls. Doorbells are messages, or stores into mapped memory. `softiov` tests
//! hand-overs to another process, and crashes, after which drivers restart.

use crate::support::bar_mapping::BarMappingGuest;
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::qemu::{self, ExpectedPciFunction};
use daemon::control::status::VfStatus;
use driver::avf::vf::AvfDriverError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Number of hand-overs of the host in each test.
const TIMES: usize = 3;
/// Returns the properties of a VF of which its driver would notice a change: resets, notices, enabled, link.
fn noticed(status: &VfStatus) -> (u64, u64, bool, bool) {
    (status.mailbox.resets, status.mailbox.notices, status.active, status.link)
}

/// Hands the host over under traffic, with these further lines of the port's configuration.
fn hands_over_unnoticed(lines: &str, shape: ExpectedPciFunction) {
    let text = format!("[[port]]\nfamily = \"avf\"\nvfs = 2\n{lines}\n");
    let mut live = LiveHost::with(&text);
    let mut guests = [0, 1].map(|vf| BarMappingGuest::boot(&live, vf, shape));
    let macs = [1, 0].map(|other: usize| guests[other].driver.mac());
    let before = [0, 1].map(|vf| live.show(vf));
    let (over, heard) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 2]);
    thread::scope(|scope| {
        for ((guest, to), heard) in guests.iter_mut().zip(macs).zip(&heard) {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    heard.fetch_add(guest.exchange(to), Ordering::AcqRel);
                    match guest.driver.statistics(&mut guest.machine) {
                        // On a busy machine a hand-over may take longer than the driver's two seconds.
                        Ok(_) | Err(AvfDriverError::NoAnswer(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for _ in 0..TIMES {
            live.hand_over(&text);
            let so_far = heard.each_ref().map(|heard| heard.load(Ordering::Acquire));
            eventually("both guests receive frames again", || {
                heard.iter().zip(so_far).all(|(heard, so_far)| heard.load(Ordering::Acquire) > so_far + 5)
            });
        }
        over.store(true, Ordering::Release);
    });
    for ((guest, before), vf) in guests.iter_mut().zip(&before).zip(0..) {
        guest.has_noticed_nothing();
        let after = live.show(vf);
        assert_eq!(noticed(&after), noticed(before));
        let heard = heard[usize::from(vf)].load(Ordering::Acquire) as u64;
        assert!(after.rx.packets >= before.rx.packets + heard, "a counter has fallen: {:?}", after.rx);
        let asked = |status: &VfStatus| status.mailbox.requests.values().sum::<u64>();
        assert!(asked(&after) > asked(before), "{:?}", after.mailbox);
    }
}

#[test]
fn host_hand_over_under_traffic_resets_no_avf() {
    hands_over_unnoticed("", qemu::AVF);
}

#[test]
fn host_hand_over_with_mapped_doorbells_resets_no_vf() {
    hands_over_unnoticed("wait = \"mapped\"", qemu::MAPPABLE_AVF);
}

#[test]
fn host_hand_over_of_a_port_with_workers_resets_no_vf() {
    let lines = "wait = \"mapped\"\nworkers = 2\ndispatcher = \"spread\"";
    hands_over_unnoticed(lines, qemu::MAPPABLE_AVF);
}
