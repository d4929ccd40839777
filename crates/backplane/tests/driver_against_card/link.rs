//! Tests the link state that a VF sees: that of the port, unless the PF overrides the state.

use crate::support::{DrivenCardFixture, index};
use core::time::Duration;
use driver::Hal;
use driver::vf::{MAILBOX_VECTOR, PortSpeed, VfLinkStatus};
use i82576::bits::{mdic, status};
use i82576::phy::{self, control};
use i82576::register as r;
use i82576::register::vf::{STATUS, V2PMAILBOX, VMBMEM};
use pcie::Function;
use policy::VfLinkPolicy;

const UP: VfLinkStatus = VfLinkStatus::Up(PortSpeed::Thousand);

/// Handles the mailbox interrupt of a VF, which must be pending, and returns the VF's link.
fn look(bench: &mut DrivenCardFixture, vf: u8) -> VfLinkStatus {
    bench.advance_us(100_000);
    let interrupts = bench.card.world().take_interrupts(Function::Vf(vf));
    assert!(interrupts.contains(&MAILBOX_VECTOR), "vf{vf} got no notice: {interrupts:?}");
    bench.on(vf, |driver, hal| {
        driver.handle_interrupt(hal, MAILBOX_VECTOR);
        driver.check_link(hal)
    })
}

fn look_without_notice(bench: &mut DrivenCardFixture, vf: u8) -> VfLinkStatus {
    assert!(!bench.card.world().take_interrupts(Function::Vf(vf)).contains(&MAILBOX_VECTOR));
    bench.on(vf, |driver, hal| driver.check_link(hal))
}

fn clear(bench: &mut DrivenCardFixture) {
    bench.advance_us(100_000);
    for vf in 0..bench.vfs.len() as u8 {
        bench.card.world().take_interrupts(Function::Vf(vf));
        bench.on(vf, |driver, hal| driver.handle_interrupt(hal, MAILBOX_VECTOR));
        assert_eq!(bench.on(vf, |driver, hal| driver.check_link(hal)), UP);
    }
    bench.advance_us(100_000);
    for vf in 0..bench.vfs.len() as u8 {
        bench.card.world().take_interrupts(Function::Vf(vf));
    }
}

#[test]
fn vf_link_follows_the_link_of_the_port() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    for up in [false, true, false, true] {
        bench.card.nic().set_link(up);
        for vf in [0, 1] {
            assert_eq!(look(&mut bench, vf), if up { UP } else { VfLinkStatus::Down });
        }
    }
}

#[test]
fn pf_driver_wakes_a_phy_in_power_down() {
    let mut bench = DrivenCardFixture::new(1);
    bench
        .card
        .with_pf_driver(|pf, hal| {
            let asleep = u32::from(control::POWER_DOWN);
            hal.write(r::MDIC, mdic::WRITE | phy::ADDRESS << mdic::PHY_SHIFT | asleep);
            assert_eq!(hal.read(r::STATUS) & status::LU, 0);
            pf.reset(hal).unwrap();
        })
        .unwrap();
    // The PHY negotiates for two seconds.
    bench.advance_us(1_900_000);
    assert!(!bench.card.nic().link());
    bench.advance_us(100_000);
    assert!(bench.card.nic().link());
}

#[test]
fn pf_waits_longer_before_each_retry_to_a_locked_mailbox() {
    const VFU: u32 = 4;
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.vf(1).write(V2PMAILBOX, VFU);
    bench.card.with_pf_driver(|pf, hal| pf.set_vf_link(hal, index(1), VfLinkPolicy::Disable)).unwrap();
    let mut visits = 0;
    let end = bench.card.now() + Duration::from_secs(60);
    while bench.card.now() < end {
        bench.card.settle();
        let next = bench.card.last_visit().deadline.expect("the PF driver must retry the mailbox notice");
        bench.card.advance(next.since(bench.card.now()));
        visits += 1;
    }
    assert!(visits < 100, "the PF driver ran {visits} times in a minute");

    bench.card.vf(1).write(V2PMAILBOX, 0);
    bench.advance_us(2_000_000);
    assert_eq!(look(&mut bench, 1), VfLinkStatus::Down);
    assert_eq!(bench.card.last_visit().deadline, None);
}

#[test]
fn administrators_link_setting_changes_one_vf_only() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.set_vf_link(hal, index(1), VfLinkPolicy::Disable)).unwrap();
    assert_eq!(look(&mut bench, 1), VfLinkStatus::Down);
    assert_eq!(look_without_notice(&mut bench, 0), UP);
    bench.card.with_pf_driver(|pf, hal| pf.set_vf_link(hal, index(1), VfLinkPolicy::Auto)).unwrap();
    assert_eq!(look(&mut bench, 1), UP);
}

#[test]
fn vf_with_link_policy_enable_is_up_while_the_port_is_down() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.set_vf_link(hal, index(1), VfLinkPolicy::Enable)).unwrap();
    bench.card.nic().set_link(false);
    assert_eq!(look(&mut bench, 0), VfLinkStatus::Down);
    assert_eq!(look(&mut bench, 1), UP);
}

#[test]
fn vfs_get_a_mailbox_message_when_the_pf_driver_is_removed() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.remove(hal)).unwrap();
    assert_eq!(look(&mut bench, 0), VfLinkStatus::Down);
    assert_eq!(look(&mut bench, 1), VfLinkStatus::Down);
    bench.card.vf(0).write(V2PMAILBOX, 4);
    assert_eq!(bench.card.vf(0).read(VMBMEM), 0x100, "control, and nothing is clear to send");
}

#[test]
fn vfs_get_a_mailbox_message_before_a_pf_reset() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    for vf in 0..2 {
        assert!(bench.card.world().take_interrupts(Function::Vf(vf)).contains(&MAILBOX_VECTOR), "vf{vf}");
    }
}

#[test]
fn pf_notifies_only_active_vfs_when_vfs_are_enabled_again() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.on(1, |vf, hal| vf.stop(hal));
    bench.advance_us(100_000);
    let notices = |bench: &DrivenCardFixture| {
        [0, 1].map(|vf| bench.card.pf_driver().unwrap().counters(index(vf)).notices)
    };
    let before = notices(&bench);
    bench.card.with_pf_driver(|pf, hal| pf.enable_vfs(hal, 2)).unwrap().unwrap();
    bench.advance_us(100_000);
    assert_eq!(notices(&bench), [before[0] + 1, before[1]], "the other VF has no driver any more");
}

#[test]
fn vfs_lose_their_link_when_the_port_is_taken_down() {
    let mut bench = DrivenCardFixture::new(2);
    clear(&mut bench);
    bench.card.with_pf_driver(|pf, hal| pf.set_port_link(hal, false)).unwrap();
    assert_eq!(look(&mut bench, 0), VfLinkStatus::Down);
    assert_eq!(look(&mut bench, 1), VfLinkStatus::Down);
}

#[test]
fn pf_mailbox_notice_never_overwrites_a_pf_reply() {
    let mut bench = DrivenCardFixture::new(1);
    // The PF gets requests to notify while the VF waits for its answers, again and again.
    for vlan in 1..20 {
        bench.card.with_pf_driver(|pf, hal| pf.notify_all(hal)).unwrap();
        bench.on(0, |vf, hal| vf.set_vlan(hal, vlan, true)).unwrap();
        bench.card.with_pf_driver(|pf, hal| pf.notify_all(hal)).unwrap();
    }
    assert_eq!(bench.card.pf_driver().unwrap().vf_vlans(index(0)).count(), 20);
}

/// Returns the two values that igbvf's link check reads: STATUS.LU, and the mailbox's first dword, read under
/// the lock and acknowledged.
fn as_igbvf_looks(bench: &mut DrivenCardFixture) -> (bool, u32) {
    let mut hal = bench.card.vf(0);
    let up = hal.read(STATUS) & 2 != 0;
    hal.write(V2PMAILBOX, 4);
    assert_eq!(hal.read(V2PMAILBOX) & 4, 4);
    let word = hal.read(VMBMEM);
    hal.write(V2PMAILBOX, 2);
    (up, word)
}

#[test]
fn igbvf_driver_sees_its_vfs_link_go_down_and_up() {
    let mut bench = DrivenCardFixture::new(1);
    clear(&mut bench);
    for (link, up) in [(VfLinkPolicy::Disable, false), (VfLinkPolicy::Auto, true)] {
        bench.card.with_pf_driver(|pf, hal| pf.set_vf_link(hal, index(0), link)).unwrap();
        bench.advance_us(1);
        assert_eq!(bench.card.world().take_interrupts(Function::Vf(0)), [MAILBOX_VECTOR]);
        assert_eq!(as_igbvf_looks(&mut bench), (up, 0x2000_0100));
        bench.on(0, |vf, hal| vf.handle_interrupt(hal, MAILBOX_VECTOR));
        bench.advance_us(1);
    }
}

#[test]
fn igbvf_driver_notices_a_reset_of_the_pf() {
    let mut bench = DrivenCardFixture::new(1);
    bench.advance_us(3_000_000);
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    bench.advance_us(2_000_000);
    let (up, word) = as_igbvf_looks(&mut bench);
    assert!(up && word & 0xe000_0000 == 0, "{word:#x}: neither CTS nor NACK, so it waits");
    bench.advance_us(2_000_000);
    let (_, word) = as_igbvf_looks(&mut bench);
    assert_eq!(word, 0x4000_0000, "NACK without CTS makes it reset");
}
