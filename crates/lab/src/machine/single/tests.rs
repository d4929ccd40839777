//! Tests of the machine: its calibration targets, isolation, and relations between the systems.

use super::{Attack, CardDriver, Channel, Direction, Plan, Results, Single, attack};
use hypervisor::cost::CostTable;
use sim::Span;

fn found(drive: CardDriver, direction: Direction, guests: u8) -> Results {
    let plan = Plan::willmann(CostTable::opteron(), drive, direction, guests);
    Single::new(&plan).measure(Span::from_millis(20), Span::from_millis(60)).unwrap()
}

#[test]
fn cdna_values_match_their_calibration() {
    let xen = found(CardDriver::Xen, Direction::Transmit, 1);
    assert!((xen.throughput_mbps / 1_602.0 - 1.0).abs() < 0.03, "{xen:?}");
    let cdna = found(CardDriver::Cdna, Direction::Transmit, 1);
    assert!((cdna.hypervisor_pct / 10.2 - 1.0).abs() < 0.05, "{cdna:?}");
}

#[test]
fn cdna_contexts_fill_both_links_without_a_driver_domain() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let [safe, bare] =
            [CardDriver::Cdna, CardDriver::Unprotected].map(|drive| found(drive, direction, 2));
        for it in [safe, bare] {
            assert!((1_850.0..1_885.0).contains(&it.throughput_mbps), "{it:?}");
            assert!(it.driver_pct < 1e-9, "{it:?}");
        }
        assert!(bare.hypervisor_pct < safe.hypervisor_pct);
        let parts = safe.hypervisor_pct + safe.driver_pct + safe.guest_pct + safe.idle_pct;
        assert!((99.0..101.0).contains(&parts), "{safe:?}");
    }
}

#[test]
fn sixteen_guests_fill_the_links_only_with_cdna_contexts() {
    let of = |drive| found(drive, Direction::Transmit, 16).throughput_mbps;
    assert!(
        of(CardDriver::Cdna) > 1_870.0 && of(CardDriver::Xen) < 1_700.0,
        "{} {}",
        of(CardDriver::Cdna),
        of(CardDriver::Xen)
    );
}

#[test]
fn no_attack_of_a_cdna_guest_affects_other_guests() {
    for what in [
        Attack::ForgedProducer,
        Attack::DuplicateSequence,
        Attack::Wrap,
        Attack::FreeWhileDma,
        Attack::CrossContextMailbox,
        Attack::InterruptRingFull,
        Attack::TeardownRace,
    ] {
        assert_eq!(attack(what), (true, 0), "{what:?}");
    }
}

const SMART: Channel = Channel { offloads: true, ..Channel::XEN };

fn menon(drive: CardDriver, direction: Direction, channel: Channel) -> Results {
    let plan = Plan::menon(CostTable::prestonia(), drive, direction, 1);
    let measured =
        Single::new(&Plan { channel, ..plan }).measure(Span::from_millis(20), Span::from_millis(100));
    measured.unwrap()
}

#[test]
fn smart_nic_values_match_their_calibration() {
    let sends = menon(CardDriver::Native, Direction::Transmit, SMART);
    let receives = menon(CardDriver::Native, Direction::Receive, SMART);
    let guest = menon(CardDriver::Xen, Direction::Transmit, Channel::XEN);
    for (found, stated) in [(sends, 3_760.0), (receives, 2_508.0), (guest, 750.0)] {
        assert!((found.throughput_mbps / stated - 1.0).abs() < 0.02, "{stated}: {found:?}");
    }
    assert!(sends.idle_pct > 5.0, "the wires are what is full: {sends:?}");
}

#[test]
fn each_back_end_optimisation_raises_guest_transmit_rate() {
    let mut step = Channel::XEN;
    let mut rates = vec![menon(CardDriver::Xen, Direction::Transmit, step).throughput_mbps];
    for change in [
        |step: &mut Channel| step.offloads = true,
        |step: &mut Channel| step.by_address = true,
        |step: &mut Channel| step.large_pages = true,
    ] {
        change(&mut step);
        rates.push(menon(CardDriver::Xen, Direction::Transmit, step).throughput_mbps);
    }
    assert!(rates.is_sorted() && rates[3] > 3.0 * rates[0], "{rates:?}");
    let dumb = menon(CardDriver::Xen, Direction::Transmit, Channel { card_offloads: false, ..step });
    assert!((rates[0]..rates[3]).contains(&dumb.throughput_mbps), "cutting late pays: {dumb:?}");
}

#[test]
fn copying_received_frames_beats_exchanging_pages() {
    let receives = |drive, channel| menon(drive, Direction::Receive, channel).throughput_mbps;
    let exchanged = receives(CardDriver::Xen, SMART);
    let copied = receives(CardDriver::Xen, Channel { by_address: true, ..SMART });
    let own = receives(CardDriver::Own, SMART);
    let large = receives(CardDriver::Own, Channel { large_pages: true, ..SMART });
    let native = receives(CardDriver::Native, SMART);
    assert!([exchanged, copied, own, large, native].is_sorted_by(|one, two| one < two));
}
