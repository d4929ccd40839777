//! Tests resets of every kind during traffic: settings return, and neighbours do not notice.

use crate::support::{DrivenCardFixture, between, index};
use backplane::BackplaneVfHal;
use core::time::Duration;
use driver::vf::{TxOffload, VfLinkStatus};
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::bits::ctrl;
use i82576::register::vf::CTRL;
use i82576::{MacAddress, Time};
use pcie::{ConfigAccess, Function, Iova};

/// Registers and memory of a VF that count the resets by the VF's driver.
struct ResetCountingHal<'a, 'b> {
    hal: &'a mut BackplaneVfHal<'b>,
    count: u32,
}

impl Hal for ResetCountingHal<'_, '_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.hal.read(offset)
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.count += u32::from(offset == CTRL && value & ctrl::RST != 0);
        self.hal.write(offset, value);
    }
    fn now(&self) -> Time {
        self.hal.now()
    }
    fn wait(&mut self, time: Duration) {
        self.hal.wait(time);
    }
}

impl DmaHal for ResetCountingHal<'_, '_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.hal.dma_alloc(length, align)
    }
    fn dma_read(&self, iova: Iova, into: &mut [u8]) {
        self.hal.dma_read(iova, into);
    }
    fn dma_write(&mut self, iova: Iova, from: &[u8]) {
        self.hal.dma_write(iova, from);
    }
}

fn flood(bench: &mut DrivenCardFixture, from: u8, to: u8, count: u8) {
    for seed in 0..count {
        let frame = between(from, to, 200, seed);
        let _ = bench.on(from, |vf, hal| vf.transmit(hal, &frame, &TxOffload::default()));
    }
}

#[test]
fn vf_traffic_recovers_from_a_hundred_resets() {
    let mut bench = DrivenCardFixture::new(3);
    for round in 0..100 {
        flood(&mut bench, 0, 1, 20);
        flood(&mut bench, 1, 0, 20);
        bench.on(1, |vf, hal| vf.restart(hal)).unwrap();
        bench.send(2, &between(2, 0, 100, round));
        let got = bench.receive_all(0);
        assert!(got.contains(&between(2, 0, 100, round)), "round {round}: a neighbour's frame is missing");
        bench.send(0, &between(0, 1, 300, round));
        let got = bench.receive_all(1);
        assert_eq!(got.last(), Some(&between(0, 1, 300, round)), "round {round}");
    }
    let counters = *bench.card.pf_driver().unwrap().counters(index(1));
    assert_eq!(counters.resets, 1 + 100, "the probe, and each restart");
    for vf in 0..3 {
        assert_eq!(bench.card.world().faults(Function::Vf(vf)), 0);
    }
}

/// Covers a defect of Linux igb. If a VF is reset again while igb handles the first reset, igb takes the VF_RESET after
/// the second reset as the end of both, and then ignores the VF. So our VF driver resets the VF only once.
#[test]
fn vf_driver_restart_resets_the_vf_once() {
    let mut bench = DrivenCardFixture::new(2);
    let count = bench.on(1, |vf, hal| {
        let mut resets = ResetCountingHal { hal, count: 0 };
        vf.restart(&mut resets).unwrap();
        resets.count
    });
    assert_eq!(count, 1);
    bench.send(0, &between(0, 1, 64, 1));
    assert_eq!(bench.receive_all(1), [between(0, 1, 64, 1)]);
}

#[test]
fn vf_driver_restart_keeps_mac_vlans_groups_and_frame_limit() {
    let mut bench = DrivenCardFixture::new(2);
    let group = MacAddress([1, 0, 0x5e, 1, 2, 3]);
    let mac = MacAddress([2, 7, 7, 7, 7, 7]);
    bench.on(1, |vf, hal| {
        vf.set_mac(hal, mac).unwrap();
        vf.set_vlan(hal, 7, true).unwrap();
        vf.set_multicast(hal, &[group]).unwrap();
        vf.set_max_frame(hal, 4000).unwrap();
        vf.restart(hal).unwrap();
    });
    bench.on(0, |vf, hal| vf.set_vlan(hal, 7, true)).unwrap();
    let to_group = crate::support::frame(group, backplane::vf_mac(0), 64, 1);
    let to_mac = crate::support::frame(mac, backplane::vf_mac(0), 64, 1);
    bench.send(0, &to_group);
    bench.send_with(0, &to_mac, &TxOffload { vlan: Some(7), ..TxOffload::default() });
    assert_eq!(bench.receive_all(1), [to_group, to_mac]);
    assert_eq!(bench.vfs[1].max_frame(), 4000);
}

#[test]
fn function_level_reset_of_a_vf_stops_its_traffic() {
    let mut bench = DrivenCardFixture::new(2);
    flood(&mut bench, 0, 1, 100);
    bench.card.nic().reset_function(Function::Vf(0));
    bench.advance_us(1_000);
    let before = bench.receive_all(1).len();
    bench.card.world().take_interrupts(Function::Vf(0));
    bench.advance_us(100_000);
    assert_eq!(bench.receive_all(1).len(), 0, "no frame leaves a reset function ({before} did before)");
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), []);

    bench.card.nic().config_write(Function::Vf(0), 4, 2, 4);
    assert_eq!(bench.on(0, |vf, hal| vf.check_link(hal)), VfLinkStatus::ResetNeeded);
    bench.on(0, |vf, hal| vf.restart(hal)).unwrap();
    bench.send(0, &between(0, 1, 64, 1));
    assert_eq!(bench.receive_all(1), [between(0, 1, 64, 1)]);
}

#[test]
fn vfs_recover_from_a_reset_of_the_pf() {
    let mut bench = DrivenCardFixture::new(2);
    flood(&mut bench, 0, 1, 10);
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    bench.advance_us(100_000);
    bench.receive_all(1);
    for vf in [0, 1] {
        let check = bench.on(vf, |driver, hal| driver.check_link(hal));
        assert_eq!(check, VfLinkStatus::ResetNeeded);
        bench.on(vf, |driver, hal| driver.restart(hal)).unwrap();
    }
    bench.send(0, &between(0, 1, 64, 1));
    assert_eq!(bench.receive_all(1), [between(0, 1, 64, 1)]);
}

#[test]
fn stopped_vf_sends_no_frame_and_no_interrupt() {
    let mut bench = DrivenCardFixture::new(2);
    bench.on(1, |vf, hal| vf.stop(hal));
    bench.card.settle();
    bench.card.world().take_interrupts(Function::Vf(1));
    bench.send(0, &between(0, 1, 64, 1));
    bench.advance_us(100_000);
    assert_eq!(bench.receive_all(1).len(), 0);
    assert_eq!(bench.card.world().take_interrupts(Function::Vf(1)), []);
    bench.on(1, |vf, hal| vf.restart(hal)).unwrap();
    bench.send(0, &between(0, 1, 64, 2));
    assert_eq!(bench.receive_all(1), [between(0, 1, 64, 2)]);
}
