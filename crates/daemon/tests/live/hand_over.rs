//! Tests of a host's hand-over while guests with Adaptive Virtual Functions send frames and requests: no VF is reset,
//! no link changes, and no counter falls. Doorbells are messages, or stores into mapped memory. `softiov` tests
//! hand-overs to another process, and crashes, after which drivers restart.

use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, ExpectedPciFunction, QemuClient};
use daemon::control::status::VfStatus;
use driver::avf::vf::{AvfDriver, AvfDriverError};
use host::memory::{MappedFile, MemoryProtection};
use i82576::MacAddress;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use vfio_user::client::{Client, ReplyContents};

/// Number of hand-overs of the host in each test.
const TIMES: usize = 3;
/// Speed of an AVF's link, Mb/s.
const SPEED: Option<u32> = Some(25_000);

/// QEMU client that has mapped the mappable areas of BAR 0 into the test, as QEMU maps doorbell pages.
struct BarMappingVmm {
    qemu: QemuClient,
    /// Offset, length and mapped memory of each mappable area of BAR 0.
    areas: Vec<(u64, u64, MappedFile)>,
}

impl BarMappingVmm {
    fn new(mut qemu: QemuClient) -> Self {
        let ask = |client: &mut Client<OwnedFd>, out: &mut _| client.region_info(out, BAR0, 128);
        let answered = qemu.ask_for_file(ask, |answer, fds| match answer {
            Ok(ReplyContents::Region(layout)) => (layout, fds),
            other => panic!("unexpected answer {other:?}"),
        });
        let (layout, fds) = answered.unwrap();
        let map = |offset, size| {
            MappedFile::map(&fds[0], layout.offset + offset, size, MemoryProtection::ReadWrite)
        };
        let areas =
            layout.sparse.iter().map(|area| (area.offset, area.size, map(area.offset, area.size).unwrap()));
        let areas = areas.collect();
        Self { qemu, areas }
    }

    /// Returns the mapped area that holds a register, and the register's offset in the area; `None` if the register is
    /// not mapped.
    fn area(&self, region: u32, offset: u64) -> Option<(&MappedFile, u64)> {
        let within = |(start, size, _): &&(u64, u64, MappedFile)| (*start..start + size).contains(&offset);
        let (start, _, memory) = self.areas.iter().find(within).filter(|_| region == BAR0)?;
        Some((memory, offset - start))
    }
}

impl Vmm for BarMappingVmm {
    fn load(&mut self, region: u32, offset: u64, into: &mut [u8]) {
        match self.area(region, offset) {
            Some((memory, at)) => into.copy_from_slice(&memory.load_dword(at).unwrap().to_le_bytes()),
            None => self.qemu.load(region, offset, into),
        }
    }

    fn store(&mut self, region: u32, offset: u64, from: &[u8]) {
        match self.area(region, offset) {
            Some((memory, at)) => {
                memory.store_dword(at, u32::from_le_bytes(from.try_into().unwrap())).unwrap();
            }
            None => self.qemu.store(region, offset, from),
        }
    }
}

/// Guest with mapped doorbells, and its AVF driver, which has enabled the VF and sees its link.
struct BarMappingGuest {
    machine: VmWithPciFunction<BarMappingVmm>,
    driver: AvfDriver,
}

impl BarMappingGuest {
    fn boot(live: &LiveHost, vf: u8, shape: ExpectedPciFunction) -> Self {
        let VmWithPciFunction { vmm, ram, eventfds } = qemu::boot_as(&live.socket(vf), shape, qemu::share);
        let mut machine = VmWithPciFunction { vmm: BarMappingVmm::new(vmm), ram, eventfds };
        let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, vf])).unwrap();
        driver.start(&mut machine).unwrap();
        eventually("the link is up", || driver.look(&mut machine) == SPEED);
        Self { machine, driver }
    }

    /// Sends a frame to `to` if the transmit ring has room, and returns the number of frames received since the last
    /// call.
    fn exchange(&mut self, to: MacAddress) -> usize {
        let mut frame = [to.0, self.driver.mac().0].concat();
        frame.extend([0x88, 0xb5]);
        frame.resize(600, 7);
        self.driver.transmit(&mut self.machine, 1, &frame);
        let (driver, machine, mut into) = (&mut self.driver, &mut self.machine, [0; 2048]);
        (0..4).map(|queue| std::iter::from_fn(|| driver.receive(machine, queue, &mut into)).count()).sum()
    }

    /// Checks that the driver has seen no reset and no change of its link.
    fn has_noticed_nothing(&mut self) {
        assert_eq!(self.driver.look(&mut self.machine), SPEED);
        assert!(!self.driver.was_reset(&mut self.machine) && !self.driver.is_reset_impending());
    }
}

/// Returns the properties of a VF of which its driver would notice a change: resets, notices, enabled, link.
fn noticed(status: &VfStatus) -> (u64, u64, bool, bool) {
    (status.mailbox.resets, status.mailbox.notices, status.active, status.link)
}

fn hands_over_unnoticed(wait: &str, shape: ExpectedPciFunction) {
    let text = format!("[[port]]\nfamily = \"avf\"\nvfs = 2\nwait = \"{wait}\"\n");
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
    hands_over_unnoticed("sleep", qemu::AVF);
}

#[test]
fn host_hand_over_with_mapped_doorbells_resets_no_vf() {
    hands_over_unnoticed("mapped", qemu::MAPPABLE_AVF);
}
