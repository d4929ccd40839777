//! Tests the probe of a VF register by register, in the order in which a stock igbvf driver probes real silicon.

use crate::support::index;
use backplane::{Backplane, BackplaneVfHal, PORT_MAC, vf_mac};
use core::time::Duration;
use driver::pf::MailboxMessageKind;
use driver::vf::{MailboxError, Vf, VfDriverConfig, VfError, local_mac};
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::Time;
use i82576::register::vf::{CTRL, V2PMAILBOX, VMBMEM};
use policy::VfPolicy;

/// Register access that a driver has made, with offset and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedRegisterAccess {
    Read(u32, u32),
    Wrote(u32, u32),
}
use RecordedRegisterAccess::{Read, Wrote};

/// Registers and memory of a VF that record every register access of the VF driver.
struct AccessRecorder<'a> {
    hal: BackplaneVfHal<'a>,
    log: Vec<RecordedRegisterAccess>,
}

impl Hal for AccessRecorder<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        let value = self.hal.read(offset);
        // Repeated reads with the same value are recorded once: their number depends on the PF's response time.
        if self.log.last() != Some(&Read(offset, value)) {
            self.log.push(Read(offset, value));
        }
        value
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.log.push(Wrote(offset, value));
        self.hal.write(offset, value);
    }
    fn now(&self) -> Time {
        self.hal.now()
    }
    fn wait(&mut self, time: Duration) {
        self.hal.wait(time);
    }
}

impl DmaHal for AccessRecorder<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.hal.dma_alloc(length, align)
    }
    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.hal.dma_read(iova, into);
    }
    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.hal.dma_write(iova, from);
    }
}

#[test]
fn vf_driver_probe_makes_the_recorded_register_accesses() {
    let mut card = Backplane::with_pf(1).unwrap();
    let mut recorder = AccessRecorder { hal: card.vf(0), log: Vec::new() };
    let vf = Vf::probe(&mut recorder, &VfDriverConfig::default()).unwrap();
    assert_eq!(vf.mac(), vf_mac(0));
    let expected = [
        Wrote(CTRL, 1 << 26),
        Read(V2PMAILBOX, 0x80),
        Read(V2PMAILBOX, 0),
        Wrote(V2PMAILBOX, 4),
        Read(V2PMAILBOX, 4),
        Wrote(VMBMEM, 1),
        Wrote(V2PMAILBOX, 1),
        Read(V2PMAILBOX, 0),
        Read(V2PMAILBOX, 0x30),
        Read(V2PMAILBOX, 0),
        Wrote(V2PMAILBOX, 4),
        Read(V2PMAILBOX, 4),
        Read(VMBMEM, 0x8000_0001),
        Read(VMBMEM + 4, 0x0000_0002),
        Read(VMBMEM + 8, 0),
        // The VF still has the buffer: no reset has cleared a part of the reply.
        Read(V2PMAILBOX, 4),
        Wrote(V2PMAILBOX, 2),
    ];
    assert_eq!(recorder.log, expected);
}

#[test]
fn pf_replies_repeat_the_vfs_message_with_clear_to_send() {
    let mut card = Backplane::with_pf(1).unwrap();
    let mut vf = Vf::probe(&mut card.vf(0), &VfDriverConfig::default()).unwrap();
    vf.set_mac(&mut card.vf(0), vf_mac(0)).unwrap();
    assert_eq!(card.vf(0).read(VMBMEM), 0xa000_0002);
    let groups = [1, 2, 3].map(|n| i82576::MacAddress([1, 0, 0x5e, 0, 0, n]));
    vf.set_multicast(&mut card.vf(0), &groups).unwrap();
    assert_eq!(card.vf(0).read(VMBMEM), 0xa003_0003);
    vf.set_max_frame(&mut card.vf(0), 1514).unwrap();
    assert_eq!(card.vf(0).read(VMBMEM), 0xa000_0005);
    let counters = *card.pf_driver().unwrap().counters(index(0));
    assert_eq!((counters.messages(MailboxMessageKind::Reset), counters.granted), (1, 4));
}

#[test]
fn vf_without_a_mac_address_generates_one() {
    let mut card = Backplane::with_pf(1).unwrap();
    let policy = VfPolicy::default();
    card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(0), policy)).unwrap().unwrap();
    let vf = Vf::probe(&mut card.vf(0), &VfDriverConfig { seed: 7, ..VfDriverConfig::default() }).unwrap();
    assert_eq!(card.vf(0).read(VMBMEM), 0x4000_0001);
    assert_eq!(vf.mac(), local_mac(7));
    assert!(vf.mac().is_valid_unicast() && vf.mac().0[0] & 2 != 0);
    assert_ne!(local_mac(7), local_mac(8));
}

#[test]
fn vf_driver_cannot_start_before_the_pf_driver() {
    let mut card = Backplane::new(PORT_MAC, 1);
    let refused = Vf::probe(&mut card.vf(0), &VfDriverConfig::default()).unwrap_err();
    assert_eq!(refused, VfError::PfInReset);
    card.attach_pf(1).unwrap();
    Vf::probe(&mut card.vf(0), &VfDriverConfig::default()).unwrap();
}

#[test]
fn vf_request_that_the_pf_never_answers_fails_within_1_1_s() {
    let mut card = Backplane::with_pf(1).unwrap();
    let mut vf = Vf::probe(&mut card.vf(0), &VfDriverConfig::default()).unwrap();
    let pf = card.detach_pf();
    let before = card.now();
    let lost = vf.set_vlan(&mut card.vf(0), 5, true).unwrap_err();
    assert_eq!(lost, VfError::Mailbox(MailboxError::NotAcknowledged(0x1_0004)));
    assert!(card.now() - before < Duration::from_millis(1_100));
    let refused = vf.set_vlan(&mut card.vf(0), 5, true).unwrap_err();
    assert_eq!(refused, VfError::Mailbox(MailboxError::Lost));
    assert!(pf.is_some());
}
