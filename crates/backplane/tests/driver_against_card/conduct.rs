//! Tests the PF driver's measures against VFs that exceed thresholds of offences, and its bounds on a guest's
//! interrupts, with real drivers.

use crate::support::{DrivenCardFixture, between, index};
use core::time::Duration;
use driver::conduct::{OffenceCounts, VfConductVerdict};
use driver::moderation::ModerationPolicy;
use driver::vf::{MAILBOX_VECTOR, RECEIVE_VECTOR, Vf, VfDriverConfig, VfLinkStatus};
use i82576::bits::eitr;
use i82576::register as r;
use i82576::{Time, VectorIndex};
use pcie::Function;
use policy::{
    ConductLimits, InterruptBounds, Offence, OffenceAction, OffenceThresholds, PortPolicy, VfPolicy,
};

/// Changes VF `vf`'s policy by the function `change`.
fn allow(bench: &mut DrivenCardFixture, vf: u8, change: impl FnOnce(&mut VfPolicy)) {
    let mut policy = *bench.card.pf_driver().unwrap().policy(index(vf));
    change(&mut policy);
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(vf), policy)).unwrap().unwrap();
}

/// Sets the port's thresholds for offences of VFs.
fn limit(bench: &mut DrivenCardFixture, limits: ConductLimits) {
    let policy = PortPolicy { limits, ..PortPolicy::default() };
    bench.card.with_pf_driver(|pf, hal| pf.set_port_policy(hal, policy)).unwrap().unwrap();
}

/// Returns limits on the conduct of VFs with thresholds for one kind of offence, and none for the other
/// kinds.
fn only(offence: Offence, thresholds: OffenceThresholds) -> ConductLimits {
    let never = OffenceThresholds { warn: 0, throttle: 0, quarantine: 0 };
    let mut limits = [never; 6];
    limits[offence as usize] = thresholds;
    limits
}

fn watch(bench: &mut DrivenCardFixture, totals: OffenceCounts) -> Option<VfConductVerdict> {
    bench.card.with_pf_driver(|pf, hal| pf.watch(hal, index(0), totals)).unwrap()
}

/// Reports `events` offences of one kind by VF 0 within a second to the PF driver. Returns the driver's
/// verdict.
fn report_events(bench: &mut DrivenCardFixture, offence: Offence, events: u64) -> Option<VfConductVerdict> {
    watch(bench, [0; 6]);
    bench.advance_us(1_000_000);
    let mut totals = [0; 6];
    totals[offence as usize] = events;
    watch(bench, totals)
}

fn quarantine(bench: &mut DrivenCardFixture) {
    let thresholds = OffenceThresholds { warn: 1, throttle: 2, quarantine: 5 };
    limit(bench, only(Offence::Spoofing, thresholds));
    let verdict = report_events(bench, Offence::Spoofing, 5).unwrap();
    assert_eq!((verdict.offence, verdict.action), (Offence::Spoofing, OffenceAction::Quarantine));
}

fn link(bench: &mut DrivenCardFixture) -> VfLinkStatus {
    bench.advance_us(100_000);
    bench.on(0, |vf, hal| {
        vf.handle_interrupt(hal, MAILBOX_VECTOR);
        vf.check_link(hal)
    })
}

/// Sends a frame from VF 0 to VF 1, and another back. Returns the number of frames that each of the two
/// received.
fn exchange(bench: &mut DrivenCardFixture) -> [usize; 2] {
    bench.send(0, &between(0, 1, 60, 1));
    bench.send(1, &between(1, 0, 60, 2));
    [0, 1].map(|vf| bench.receive_all(vf).len())
}

#[test]
fn a_quarantined_vf_has_no_frames_and_no_link_until_release() {
    let mut bench = DrivenCardFixture::new(2);
    assert_eq!(exchange(&mut bench), [1, 1]);
    bench.advance_us(2_000_000);
    quarantine(&mut bench);
    assert_eq!(link(&mut bench), VfLinkStatus::Down);
    assert_eq!(exchange(&mut bench), [0, 0]);
    bench.card.with_pf_driver(|pf, hal| pf.release(hal, index(0))).unwrap();
    assert!(matches!(link(&mut bench), VfLinkStatus::Up(_)));
    assert_eq!(exchange(&mut bench), [1, 2], "frames that VF 0 sent meanwhile arrive too");
    let conduct = bench.card.pf_driver().unwrap().conduct(index(0));
    assert_eq!((conduct.quarantined(), conduct.offences()[1]), (None, 1));
}

#[test]
fn vf_reset_does_not_end_its_quarantine() {
    let mut bench = DrivenCardFixture::new(2);
    quarantine(&mut bench);
    bench.vfs[0] = Vf::probe(&mut bench.card.vf(0), &VfDriverConfig::default()).unwrap();
    bench.on(0, |vf, hal| vf.start(hal)).unwrap();
    assert_eq!(exchange(&mut bench), [0, 0]);
}

#[test]
fn flood_of_mailbox_requests_is_counted_and_throttled() {
    let mut bench = DrivenCardFixture::new(1);
    let thresholds = OffenceThresholds { warn: 10, throttle: 20, quarantine: 0 };
    limit(&mut bench, only(Offence::Mailbox, thresholds));
    watch(&mut bench, [0; 6]);
    let began = bench.card.now();
    for _ in 0..100 {
        bench.on(0, |vf, hal| vf.set_vlan(hal, 5, true)).unwrap();
    }
    let rest = Duration::from_secs(1).saturating_sub(bench.card.now().since(began));
    bench.card.advance(rest);
    let verdict = watch(&mut bench, [0; 6]).unwrap();
    assert_eq!(
        (verdict.offence, verdict.rate, verdict.action),
        (Offence::Mailbox, 100, OffenceAction::Throttle)
    );
    let began = bench.card.now();
    for _ in 0..5 {
        bench.on(0, |vf, hal| vf.set_vlan(hal, 5, true)).unwrap();
    }
    let took = bench.card.now().since(began);
    assert!(took >= Duration::from_millis(400), "five requests took {took:?}");
}

#[test]
fn throttle_of_a_vf_ends_10_s_after_the_last_exceeded_limit() {
    let mut bench = DrivenCardFixture::new(1);
    let thresholds = OffenceThresholds { warn: 0, throttle: 10, quarantine: 0 };
    limit(&mut bench, only(Offence::Storm, thresholds));
    report_events(&mut bench, Offence::Storm, 10).unwrap();
    let throttled = |bench: &DrivenCardFixture| bench.card.pf_driver().unwrap().conduct(index(0)).throttled();
    bench.advance_us(9_900_000);
    assert!(throttled(&bench));
    bench.advance_us(200_000);
    assert!(!throttled(&bench));
}

#[test]
fn throttled_vf_sends_at_ten_megabits_per_second() {
    let mut bench = DrivenCardFixture::new(2);
    let thresholds = OffenceThresholds { warn: 0, throttle: 1, quarantine: 0 };
    limit(&mut bench, only(Offence::Invalid, thresholds));
    report_events(&mut bench, Offence::Invalid, 1).unwrap();
    let mut bits = 0;
    for _ in 0..1_000 {
        // The sender keeps its ring full, the receiver its ring empty.
        while bench.on(0, |vf, hal| vf.transmit(hal, &between(0, 1, 1_000, 3), &Default::default())).is_ok() {
        }
        bench.on(0, |vf, hal| vf.flush(hal));
        bench.advance_us(1_000);
        bench.on(0, |vf, hal| vf.clean(hal));
        bits += bench.receive_all(1).iter().map(|frame| frame.len() * 8).sum::<usize>();
    }
    assert!((9_000_000..10_500_000).contains(&bits), "{bits} bits in a second");
}

/// Checks the interrupt limit of a quarantined VF. Without the limit the VF could continue the interrupts
/// that it was quarantined for.
#[test]
fn quarantine_limits_a_vf_to_a_thousand_interrupts_a_second() {
    let mut bench = DrivenCardFixture::with_config(
        2,
        &VfDriverConfig { moderation: ModerationPolicy::Fixed(50), ..VfDriverConfig::default() },
    );
    quarantine(&mut bench);
    bench.advance_us(1);
    assert_eq!([0, 1, 2].map(|local| interval(&mut bench, local)), [1_000; 3]);
    bench.card.with_pf_driver(|pf, hal| pf.release(hal, index(0))).unwrap();
    let eitr = r::vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR);
    driver::Hal::write(&mut bench.card.vf(0), eitr, 50 << eitr::INTERVAL_SHIFT);
    bench.advance_us(1);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 50, "the guest's choice again");
}

/// Returns the interrupt interval that the card uses for interrupt vector `local` of VF 0, in microseconds.
fn interval(bench: &mut DrivenCardFixture, local: u8) -> u32 {
    let vector = VectorIndex::new(index(0).first_vector() + local).unwrap();
    let mut pf = bench.card.pf();
    eitr::interval_us(driver::Hal::read(&mut pf, r::eitr(vector)))
}

fn bound(min_interrupts: u32, max_interrupts: u32, adaptive: bool) -> InterruptBounds {
    InterruptBounds { min_interrupts, max_interrupts, adaptive }
}

#[test]
fn guests_interrupt_interval_is_kept_within_policy_bounds() {
    let mut bench = DrivenCardFixture::with_config(
        1,
        &VfDriverConfig { moderation: ModerationPolicy::Fixed(50), ..VfDriverConfig::default() },
    );
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 50, "the guest's choice");
    allow(&mut bench, 0, |policy| policy.interrupts = bound(0, 4_000, false));
    bench.advance_us(1);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 250, "the policy's maximum interrupt rate");
    let eitr = r::vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR);
    driver::Hal::write(&mut bench.card.vf(0), eitr, 8_000 << eitr::INTERVAL_SHIFT);
    bench.advance_us(1);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 8_000, "within bounds it is the guest's");
    allow(&mut bench, 0, |policy| policy.interrupts = bound(500, 4_000, false));
    bench.advance_us(1);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 2_000, "the policy's minimum interrupt rate");
}

#[test]
fn interrupt_rate_limit_holds_against_any_guest_write() {
    let mut bench = DrivenCardFixture::new(2);
    allow(&mut bench, 0, |policy| policy.interrupts = bound(0, 1_000, false));
    bench.advance_us(20_000);
    bench.card.world().take_interrupts(Function::Vf(0));
    let eitr = r::vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR);
    let mut interrupts = 0;
    for _ in 0..1_000 {
        bench.send(1, &between(1, 0, 60, 1));
        bench.advance_us(20);
        for _ in bench.card.world().take_interrupts(Function::Vf(0)) {
            interrupts += 1;
            driver::Hal::write(&mut bench.card.vf(0), eitr, 0);
            bench.receive_all(0);
            bench.on(0, |vf, hal| vf.receive_done(hal));
        }
    }
    assert!((18..=21).contains(&interrupts), "{interrupts} interrupts in 20 ms");
}

#[test]
fn adaptive_interrupt_moderation_is_enforced_on_any_guest() {
    let config = VfDriverConfig {
        moderation: ModerationPolicy::Fixed(50),
        rx_descriptors: 64,
        ..VfDriverConfig::default()
    };
    let mut bench = DrivenCardFixture::with_config(2, &config);
    allow(&mut bench, 0, |policy| policy.interrupts = bound(200, 0, true));
    let transmit = interval(&mut bench, 0);
    let end = bench.card.now() + Duration::from_millis(2_100);
    while bench.card.now() < end {
        for _ in 0..2 {
            bench.send(1, &between(1, 0, 60, 1));
        }
        bench.receive_all(0);
        bench.advance_us(100);
    }
    // 20,000 packets a second times 1.2 over 64 buffers are 375 interrupts a second.
    let busy = interval(&mut bench, RECEIVE_VECTOR as u8);
    assert!((2_600..2_750).contains(&busy), "{busy} us");
    bench.advance_us(1_000_000);
    bench.advance_us(1_000_000);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 5_000, "a quiet VF has the lowest frequency");
    assert_eq!(interval(&mut bench, MAILBOX_VECTOR as u8), 0, "the mailbox is no receive queue");
    assert_eq!(interval(&mut bench, 0), transmit, "nor is the vector of an invalid entry");
    allow(&mut bench, 0, |policy| policy.interrupts = bound(0, 0, true));
    bench.advance_us(1_000_000);
    assert_eq!(interval(&mut bench, RECEIVE_VECTOR as u8), 1_000, "the default frequency without a floor");
    assert!(bench.card.now() > Time::ZERO);
}
