//! Tests of Adaptive Virtual Functions on a live port, with SoftIOV's own driver: delays of the PF's answers while
//! other guests send requests and frames. Prints the distribution of the delays:
//!
//! ```sh
//! cargo test -p daemon --test live avf -- --nocapture
//! ```
//!
//! There is no bound in time, because other tests run at the same time; `avf-nic` tests the bound in visits.

use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::machine::VmWithPciFunction;
use crate::support::qemu::{self, QemuClient};
use daemon::settings::{MirrorRule, PortSettings, StormControlSettings};
use driver::avf::vf::AvfDriver;
use i82576::MacAddress;
use std::iter::from_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const PORT: &str = "[[port]]\nfamily = \"avf\"\nvfs = 4\n";
/// Configuration of an AVF port whose VFs may send any number of mailbox requests: no threshold is set.
const UNLIMITED: &str = "[[port]]\nfamily = \"avf\"\nvfs = 4\nlimits = { mailbox = {} }\n";
/// Number of mailbox requests that the measured guest sends to the PF.
const REQUESTS: u64 = 100;

/// Boots a guest on VF `vf`, and starts its AVF driver. Returns the machine and the driver.
fn boot(live: &LiveHost, vf: u8) -> (VmWithPciFunction<QemuClient>, AvfDriver) {
    let mut machine = qemu::boot_as(&live.socket(vf), qemu::AVF, qemu::share);
    let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, vf])).unwrap();
    driver.start(&mut machine).unwrap();
    (machine, driver)
}

const BROADCAST: MacAddress = MacAddress([0xff; 6]);

/// Returns a frame of 1,020 bytes, which storm control counts as 16 blocks of 64 bytes.
fn frame(to: MacAddress, from: &AvfDriver) -> Vec<u8> {
    let mut frame = [to.0, from.mac().0].concat();
    frame.extend([0x88, 0xb5]);
    frame.resize(1020, 7);
    frame
}

#[test]
fn pf_answers_a_vf_while_other_vfs_send_requests_and_frames() {
    let live = LiveHost::with(UNLIMITED);
    let (mut machine, mut asking) = boot(&live, 0);
    let loud: Vec<_> = (1..4).map(|vf| boot(&live, vf)).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (mut machine, mut driver) in loud {
            let over = &over;
            scope.spawn(move || {
                let frame = frame(BROADCAST, &driver);
                while !over.load(Ordering::Acquire) {
                    for queue in 0..4 {
                        driver.transmit(&mut machine, queue, &frame);
                    }
                    driver.statistics(&mut machine).unwrap();
                }
            });
        }
        let answered = (0..REQUESTS).filter(|_| asking.statistics(&mut machine).is_ok()).count() as u64;
        over.store(true, Ordering::Release);
        assert_eq!(answered, REQUESTS);
    });
    let answers = live.port().answers.unwrap();
    let [p50, p99, max] = [answers.p50_ns, answers.p99_ns, answers.max_ns].map(|ns| ns / 1000);
    let (requests, visits) = (answers.requests, answers.visits);
    println!(
        "{requests} requests in {visits} visits, answered after: p50 {p50} us, p99 {p99} us, max {max} us"
    );
    assert!(requests > REQUESTS && visits <= requests, "{answers:?}");
}

/// Takes the frames that a guest has received in its four receive queues, and returns their number.
fn received(machine: &mut VmWithPciFunction<QemuClient>, driver: &mut AvfDriver) -> usize {
    let mut into = [0; 2048];
    (0..4).map(|queue| from_fn(|| driver.receive(machine, queue, &mut into)).count()).sum()
}

#[test]
fn avf_storm_control_and_mirror_rules_apply_immediately() {
    let live = LiveHost::with(PORT);
    let mut guests: Vec<_> = (0..3).map(|vf| boot(&live, vf)).collect();
    let watcher = MirrorRule { to: 2, vfs: vec![1], uplink: None, vlans: None };
    // 21 blocks of 64 bytes a second: one frame of 1,024 bytes and most of another.
    let storm =
        StormControlSettings { broadcast: Some(11), interval: Some(1000), ..StormControlSettings::default() };
    let mirror = [("0".to_owned(), Some(watcher))].into();
    let set = PortSettings { storm: Some(storm), mirror, ..PortSettings::default() };
    let now = live.change_port(set).unwrap().settings.unwrap();
    assert_eq!((now.storm.unwrap().broadcast, now.mirror.len()), (Some(11), 1), "the status differs");
    let one = guests[1].1.mac();
    let (machine, sender) = &mut guests[0];
    for to in [BROADCAST, one] {
        let frame = frame(to, sender);
        (0..10).for_each(|_| assert!(sender.transmit(machine, 0, &frame)));
    }
    let mut heard = [0; 2];
    eventually("VF 1 receives ten frames, and VF 2 copies", || {
        for (heard, (machine, driver)) in heard.iter_mut().zip(&mut guests[1..]) {
            *heard += received(machine, driver);
        }
        heard.iter().all(|heard| *heard > 10)
    });
    eventually("the storm is counted", || live.port().storms > 0);
    let kept = live.show(1).drops.rx_storm;
    assert!(
        kept > 0 && heard[0] < 20,
        "broadcasts beyond the threshold have arrived: {heard:?}, {kept} dropped"
    );
}
