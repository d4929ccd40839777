//! Tests of the local APIC's rules by section of SDM volume 3, and property tests against a naive model.

use super::registers::{
    DFR, EOI, ESR, ICR, ICR_HIGH, ID, IRR, ISR, LDR, LVT_ERROR, LVT_TIMER, MSR_BASE, PPR, SELF_IPI, SVR,
    TDCR, TMCCT, TMICT, TMR, TPR, VERSION,
};
use super::{
    ApicWriteEffect, EoiEffect, GeneralProtectionFault, InterruptRequestOutcome, Ipi, IpiDestination, Lapic,
};
use proptest::prelude::*;
use sim::{VirtualDuration, VirtualInstant};
use std::vec::Vec;

/// Period of the APIC's bus clock of 100 MHz, as in Xen.
const BUS_TICK: VirtualDuration = VirtualDuration::from_picos(10_000);
/// Divide configuration of the APIC timer: divide by 1.
const BY_1: u32 = 0b1011;

const T0: VirtualInstant = VirtualInstant::ZERO;

/// Returns the instant `picos` picoseconds after time zero.
fn at(picos: u64) -> VirtualInstant {
    VirtualInstant::from_picos(picos)
}

fn enabled() -> Lapic {
    let mut lapic = Lapic::new(3, BUS_TICK);
    lapic.write(T0, SVR, 0x1ff);
    lapic
}

fn msr(offset: u16) -> u32 {
    MSR_BASE + u32::from(offset) / 16
}

#[test]
fn reset_disables_the_apic_and_masks_all_local_interrupts() {
    // 10.4.7.1.
    let mut lapic = Lapic::new(3, BUS_TICK);
    assert_eq!((lapic.read(T0, ID), lapic.read(T0, VERSION)), (3 << 24, 0x50014));
    assert_eq!((lapic.read(T0, SVR), lapic.read(T0, DFR), lapic.read(T0, TPR)), (0xff, u32::MAX, 0));
    assert!((LVT_TIMER..=LVT_ERROR).step_by(16).all(|lvt| lapic.read(T0, lvt) == 0x1_0000));
    assert_eq!((lapic.accept(0x40), lapic.deliverable()), (InterruptRequestOutcome::Disabled, None));
}

#[test]
fn disabled_apic_keeps_requests_and_masks_local_interrupts() {
    // 10.4.7.2.
    let mut lapic = enabled();
    lapic.accept(0x40);
    lapic.write(T0, LVT_TIMER, 0x50);
    lapic.write(T0, SVR, 0xff);
    assert_eq!((lapic.deliverable(), lapic.read(T0, LVT_TIMER)), (None, 0x1_0050));
    lapic.write(T0, LVT_TIMER, 0x50);
    assert_eq!(lapic.read(T0, LVT_TIMER), 0x1_0050, "the mask cannot be cleared while disabled");
    lapic.write(T0, SVR, 0x1ff);
    assert_eq!(lapic.deliverable(), Some(0x40));
}

#[test]
fn apic_drops_vectors_below_16_and_records_an_error() {
    // 10.5.2, 10.5.3: a write to the error register makes accumulated errors visible.
    let mut lapic = enabled();
    lapic.write(T0, LVT_ERROR, 0xfe);
    assert_eq!(lapic.accept(15), InterruptRequestOutcome::Illegal);
    assert_eq!(lapic.read(T0, ESR), 0);
    lapic.write(T0, ESR, 0);
    assert_eq!(lapic.read(T0, ESR), 1 << 6);
    assert_eq!(lapic.inject(), Some(0xfe), "the error interrupt is requested");
    lapic.write(T0, ICR, 0x0004_0005);
    lapic.read(T0, 0x40);
    lapic.write(T0, ESR, 0);
    assert_eq!(
        lapic.read(T0, ESR),
        1 << 5 | 1 << 7,
        "illegal vector sent, and nonexistent register accessed"
    );
}

#[test]
fn apic_holds_one_request_beside_the_interrupt_in_service() {
    // 10.8.4: two requests of a vector are queued, one in each register; further ones coalesce.
    let mut lapic = enabled();
    assert_eq!(
        (lapic.accept(0x41), lapic.accept(0x41)),
        (InterruptRequestOutcome::Requested, InterruptRequestOutcome::Coalesced)
    );
    assert_eq!(lapic.inject(), Some(0x41));
    assert_eq!(
        (lapic.accept(0x41), lapic.accept(0x41)),
        (InterruptRequestOutcome::Requested, InterruptRequestOutcome::Coalesced)
    );
    assert_eq!((lapic.read(T0, ISR + 0x20), lapic.read(T0, IRR + 0x20)), (2, 2));
    assert_eq!(lapic.inject(), None, "an interrupt of this class is in service");
    assert_eq!(lapic.eoi(), EoiEffect { ended: Some(0x41), level: false, next: Some(0x41) });
}

#[test]
fn apic_trigger_mode_is_that_of_the_last_request() {
    // 10.8.4, 10.8.5: the I/O APIC is notified of the end of a level-triggered interrupt.
    let mut lapic = enabled();
    lapic.accept_level(0x60);
    assert_eq!(lapic.read(T0, TMR + 0x30), 1);
    lapic.inject();
    assert!(lapic.eoi().level);
    lapic.accept(0x60);
    assert_eq!(lapic.read(T0, TMR + 0x30), 0);
}

#[test]
fn interrupt_of_higher_class_nests_and_eoi_ends_the_highest() {
    // 10.8.3, 10.8.5.
    let mut lapic = enabled();
    lapic.accept(0x31);
    assert_eq!(lapic.inject(), Some(0x31));
    lapic.accept(0x3f);
    assert_eq!(lapic.deliverable(), None, "a higher vector of the same class waits");
    lapic.accept(0x82);
    assert_eq!((lapic.inject(), lapic.in_service().count()), (Some(0x82), 2));
    assert_eq!(lapic.eoi(), EoiEffect { ended: Some(0x82), level: false, next: None });
    assert_eq!(lapic.eoi(), EoiEffect { ended: Some(0x31), level: false, next: Some(0x3f) });
    assert_eq!(lapic.inject(), Some(0x3f));
    lapic.eoi();
    assert_eq!(
        lapic.eoi(),
        EoiEffect { ended: None, level: false, next: None },
        "an EOI without an interrupt in service ends none"
    );
}

#[test]
fn processor_priority_is_the_higher_of_task_and_interrupt() {
    // 10.8.3.1, figure 10-18.
    let mut lapic = enabled();
    lapic.accept(0x54);
    lapic.inject();
    for (tpr, ppr) in [(0, 0x50), (0x4f, 0x50), (0x5a, 0x5a), (0x63, 0x63)] {
        lapic.write(T0, TPR, tpr);
        assert_eq!(lapic.read(T0, PPR), ppr);
    }
}

#[test]
fn task_priority_blocks_interrupts_of_its_class_and_below() {
    let mut lapic = enabled();
    lapic.accept(0x4f);
    lapic.set_tpr(0x40);
    assert_eq!(lapic.deliverable(), None);
    lapic.set_tpr(0x3f);
    assert_eq!(lapic.deliverable(), Some(0x4f));
}

#[test]
fn interrupt_masked_before_acknowledge_becomes_spurious() {
    // 10.9: the spurious vector does not enter service; the request stays.
    let mut lapic = enabled();
    lapic.accept(0x4f);
    lapic.write(T0, TPR, 0x40);
    assert_eq!((lapic.acknowledge(), lapic.in_service().highest()), (0xff, None));
    lapic.write(T0, TPR, 0);
    assert_eq!(lapic.acknowledge(), 0x4f);
}

#[test]
fn one_shot_apic_timer_fires_once() {
    // 10.5.4: divided by 16, 100 counts of 160 ns.
    let mut lapic = enabled();
    lapic.write(T0, TDCR, 0b0011);
    lapic.write(T0, LVT_TIMER, 0x50);
    assert_eq!(lapic.write(T0, TMICT, 100), ApicWriteEffect::Timer);
    assert_eq!(lapic.deadline(), Some(at(16_000_000)));
    assert_eq!((lapic.read(at(15_900_000), TMCCT), lapic.run_timer(at(15_999_999))), (1, None));
    assert_eq!(lapic.run_timer(at(16_000_000)), Some(InterruptRequestOutcome::Requested));
    assert_eq!((lapic.deadline(), lapic.read(at(17_000_000), TMCCT)), (None, 0));
}

#[test]
fn missed_apic_timer_periods_give_one_interrupt() {
    let mut lapic = enabled();
    lapic.write(T0, TDCR, BY_1);
    lapic.write(T0, LVT_TIMER, 0x2_0050);
    lapic.write(T0, TMICT, 10);
    assert_eq!(lapic.run_timer(at(100_000)), Some(InterruptRequestOutcome::Requested));
    assert_eq!(lapic.deadline(), Some(at(200_000)));
    assert_eq!(lapic.run_timer(at(555_000)), Some(InterruptRequestOutcome::Coalesced));
    assert_eq!((lapic.deadline(), lapic.read(at(555_000), TMCCT)), (Some(at(600_000)), 5));
    lapic.write(at(555_000), TMICT, 0);
    assert_eq!(lapic.deadline(), None, "an initial count of zero stops the timer");
}

#[test]
fn masked_apic_timer_counts_without_interrupts() {
    let mut lapic = enabled();
    lapic.write(T0, TDCR, BY_1);
    lapic.write(T0, TMICT, 10);
    assert_eq!((lapic.deadline(), lapic.read(at(30_000), TMCCT)), (None, 7));
    lapic.write(at(150_000), LVT_TIMER, 0x50);
    assert_eq!(
        (lapic.deadline(), lapic.deliverable()),
        (None, None),
        "an expiry while masked gives no interrupt"
    );
}

#[test]
fn apic_timer_mode_change_disarms_the_tsc_deadline() {
    // 10.5.4.1.
    let mut lapic = enabled();
    lapic.write(T0, LVT_TIMER, 0x4_0050);
    lapic.write(T0, TMICT, 100);
    lapic.arm_deadline(Some(at(777)));
    assert_eq!((lapic.deadline(), lapic.read(T0, TMICT), lapic.read(T0, TMCCT)), (Some(at(777)), 0, 0));
    lapic.write(T0, LVT_TIMER, 0x2_0050);
    assert_eq!(lapic.deadline(), None);
    lapic.write(T0, LVT_TIMER, 0x4_0050);
    lapic.arm_deadline(Some(at(777)));
    assert_eq!(
        (lapic.run_timer(at(777)), lapic.deadline()),
        (Some(InterruptRequestOutcome::Requested), None)
    );
}

#[test]
fn write_of_the_low_interrupt_command_word_sends_interrupt() {
    // 10.6.1.
    let mut lapic = enabled();
    assert_eq!(lapic.write(T0, ICR_HIGH, 0x0700_0000), ApicWriteEffect::Stored);
    let ipi = Ipi { vector: 0xfd, mode: 0, to: IpiDestination::Physical(7) };
    assert_eq!(lapic.write(T0, ICR, 0xfd), ApicWriteEffect::Ipi(ipi));
    assert_eq!(
        lapic.write(T0, ICR, 0x000c_08fd),
        ApicWriteEffect::Ipi(Ipi { vector: 0xfd, mode: 0, to: IpiDestination::Others })
    );
    assert_eq!(
        lapic.write(T0, ICR, 0x0004_00f0),
        ApicWriteEffect::SelfIpi(InterruptRequestOutcome::Requested)
    );
    let mut other = Lapic::new(7, BUS_TICK);
    other.write(T0, SVR, 0x1ff);
    assert!(other.is_destination(ipi.to, false) && !lapic.is_destination(ipi.to, false));
    assert_eq!((other.receive(ipi), other.inject()), (Some(InterruptRequestOutcome::Requested), Some(0xfd)));
    assert_eq!(other.receive(Ipi { mode: 4, ..ipi }), None, "an NMI has no vector");
}

#[test]
fn apic_logical_destinations_match_flat_or_by_cluster() {
    // 10.6.2.2; x2APIC: 10.12.10.2.
    let mut lapic = enabled();
    lapic.write(T0, LDR, 0x2400_0000);
    assert!(
        lapic.is_destination(IpiDestination::Logical(0x04), false)
            && lapic.is_destination(IpiDestination::Logical(0x20), false)
    );
    lapic.write(T0, DFR, 0);
    assert!(
        lapic.is_destination(IpiDestination::Logical(0x24), false)
            && lapic.is_destination(IpiDestination::Logical(0xf4), false)
    );
    assert!(
        !lapic.is_destination(IpiDestination::Logical(0x14), false)
            && !lapic.is_destination(IpiDestination::Logical(0x21), false)
    );
    assert!(lapic.is_destination(IpiDestination::Logical(0x0000_0008), true));
    assert!(!lapic.is_destination(IpiDestination::Logical(0x0001_0008), true));
}

#[test]
fn x2apic_eoi_write_of_a_value_other_than_zero_faults() {
    // 10.12.1.2, 10.12.1.3, table 10-6.
    let mut lapic = enabled();
    lapic.accept(0x40);
    lapic.inject();
    assert_eq!(lapic.write_msr(T0, msr(EOI), 1), Err(GeneralProtectionFault));
    let ended = EoiEffect { ended: Some(0x40), level: false, next: None };
    assert_eq!(lapic.write_msr(T0, msr(EOI), 0), Ok(ApicWriteEffect::Eoi(ended)));
    assert_eq!(lapic.read_msr(T0, msr(EOI)), Err(GeneralProtectionFault));
    assert_eq!((lapic.read_msr(T0, msr(ID)), lapic.read_msr(T0, msr(LDR))), (Ok(3), Ok(8)));
    assert_eq!(
        (lapic.read_msr(T0, msr(DFR)), lapic.read_msr(T0, msr(ICR_HIGH))),
        (Err(GeneralProtectionFault), Err(GeneralProtectionFault))
    );
    assert_eq!(
        lapic.write_msr(T0, msr(SELF_IPI), 0x44),
        Ok(ApicWriteEffect::SelfIpi(InterruptRequestOutcome::Requested))
    );
    let ipi = Ipi { vector: 0x44, mode: 0, to: IpiDestination::Physical(0x1234) };
    assert_eq!(lapic.write_msr(T0, msr(ICR), 0x1234 << 32 | 0x44), Ok(ApicWriteEffect::Ipi(ipi)));
}

/// Naive model of a local APIC: its requested and in-service vectors as lists, searched linearly, and its task
/// priority.
#[derive(Default)]
struct NaiveLapic {
    requested: Vec<u8>,
    in_service: Vec<u8>,
    tpr: u8,
}

impl NaiveLapic {
    fn deliverable(&self) -> Option<u8> {
        let service = self.in_service.iter().max().map_or(0, |v| v / 16);
        self.requested.iter().copied().max().filter(|v| v / 16 > service.max(self.tpr / 16))
    }

    fn inject(&mut self) -> Option<u8> {
        let vector = self.deliverable()?;
        self.requested.retain(|&v| v != vector);
        self.in_service.push(vector);
        Some(vector)
    }

    fn eoi(&mut self) -> Option<u8> {
        let vector = self.in_service.iter().copied().max()?;
        self.in_service.retain(|&v| v != vector);
        Some(vector)
    }
}

proptest! {
    #[test]
    fn local_apic_agrees_with_a_naive_model(steps in prop::collection::vec((0u8..4, any::<u8>()), 0..200)) {
        let (mut lapic, mut naive) = (enabled(), NaiveLapic::default());
        for (what, value) in steps {
            match what {
                0 => {
                    lapic.accept(value);
                    if value >= 16 && !naive.requested.contains(&value) {
                        naive.requested.push(value);
                    }
                }
                1 => prop_assert_eq!(lapic.inject(), naive.inject()),
                2 => {
                    let eoi = lapic.eoi();
                    prop_assert_eq!((eoi.ended, eoi.next), (naive.eoi(), naive.deliverable()));
                }
                _ => {
                    lapic.set_tpr(value);
                    naive.tpr = value;
                }
            }
            prop_assert_eq!(lapic.deliverable(), naive.deliverable());
            prop_assert_eq!(lapic.in_service().count() as usize, naive.in_service.len());
        }
    }

    #[test]
    fn arbitrary_apic_register_accesses_do_not_panic(steps in prop::collection::vec((any::<bool>(), 0u16..0x400, any::<u32>()), 0..100)) {
        let mut lapic = enabled();
        let mut now = T0;
        for (reads, offset, value) in steps {
            now += VirtualDuration::from_picos(value.into());
            if reads {
                lapic.read(now, offset);
                let _ = lapic.read_msr(now, value % 0x1000);
            } else {
                lapic.write(now, offset, value);
                let _ = lapic.write_msr(now, msr(offset), value.into());
            }
            lapic.run_timer(now);
            prop_assert!(lapic.deadline().is_none_or(|deadline| deadline > now));
        }
    }

    #[test]
    fn periodic_apic_timer_never_drifts_or_skips(
        count in 1u32..1000, divide in 0u32..16, steps in prop::collection::vec(0u64..100_000_000, 1..50),
    ) {
        let mut timer = super::ApicTimer::new(BUS_TICK);
        timer.set_mode(super::ApicTimerMode::Periodic);
        timer.set_divide(T0, divide);
        timer.start(T0, count);
        let period = timer.zero_at().unwrap().picos();
        let (mut now, mut fired) = (0, 0);
        for step in steps {
            now += step;
            fired += timer.advance(at(now));
            prop_assert_eq!(fired, now / period);
        }
    }
}
