//! Tests of the single-processor machine: its calibration targets, isolation, and relations between the
//! systems.

use super::{
    CardDriver, CdnaAttack, PacketChannelOptions, PayloadDirection, SingleCpuResults, SingleCpuSetup,
    SingleCpuSimulation, attack,
};
use hypervisor::cost::{CostTable, MachineModel};
use sim::VirtualDuration;

fn simulate(drive: CardDriver, direction: PayloadDirection, guests: u8) -> SingleCpuResults {
    let plan = SingleCpuSetup::willmann(CostTable::of(MachineModel::Opteron), drive, direction, guests);
    SingleCpuSimulation::new(&plan)
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(60))
        .unwrap()
}

#[test]
fn cdna_model_meets_its_calibration_targets_within_5_percent() {
    let xen = simulate(CardDriver::Xen, PayloadDirection::Transmit, 1);
    assert!((xen.throughput_mbps / 1_602.0 - 1.0).abs() < 0.03, "{xen:?}");
    let cdna = simulate(CardDriver::Cdna, PayloadDirection::Transmit, 1);
    assert!((cdna.hypervisor_pct / 10.2 - 1.0).abs() < 0.05, "{cdna:?}");
}

#[test]
fn cdna_contexts_fill_both_links_without_a_driver_domain() {
    for direction in [PayloadDirection::Transmit, PayloadDirection::Receive] {
        let [safe, bare] =
            [CardDriver::Cdna, CardDriver::Unprotected].map(|drive| simulate(drive, direction, 2));
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
fn sixteen_guests_fill_the_links_with_cdna_but_not_under_xen() {
    let of = |drive| simulate(drive, PayloadDirection::Transmit, 16).throughput_mbps;
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
        CdnaAttack::ForgedProducer,
        CdnaAttack::DuplicateSequence,
        CdnaAttack::Wrap,
        CdnaAttack::FreeWhileDma,
        CdnaAttack::CrossContextMailbox,
        CdnaAttack::InterruptRingFull,
        CdnaAttack::TeardownRace,
    ] {
        assert_eq!(attack(what), (true, 0), "{what:?}");
    }
}

const SMART: PacketChannelOptions = PacketChannelOptions { offloads: true, ..PacketChannelOptions::XEN };

fn menon(drive: CardDriver, direction: PayloadDirection, channel: PacketChannelOptions) -> SingleCpuResults {
    let plan = SingleCpuSetup::menon(CostTable::of(MachineModel::Prestonia), drive, direction, 1);
    let measured = SingleCpuSimulation::new(&SingleCpuSetup { channel, ..plan })
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100));
    measured.unwrap()
}

#[test]
fn smart_nic_throughput_matches_its_targets_within_2_percent() {
    let sends = menon(CardDriver::Native, PayloadDirection::Transmit, SMART);
    let receives = menon(CardDriver::Native, PayloadDirection::Receive, SMART);
    let guest = menon(CardDriver::Xen, PayloadDirection::Transmit, PacketChannelOptions::XEN);
    for (found, stated) in [(sends, 3_760.0), (receives, 2_508.0), (guest, 750.0)] {
        assert!((found.throughput_mbps / stated - 1.0).abs() < 0.02, "{stated}: {found:?}");
    }
    assert!(sends.idle_pct > 5.0, "the processor is full instead of the wires: {sends:?}");
}

#[test]
fn each_back_end_optimisation_raises_guest_transmit_rate() {
    let mut step = PacketChannelOptions::XEN;
    let mut rates = vec![menon(CardDriver::Xen, PayloadDirection::Transmit, step).throughput_mbps];
    for change in [
        |step: &mut PacketChannelOptions| step.offloads = true,
        |step: &mut PacketChannelOptions| step.by_address = true,
        |step: &mut PacketChannelOptions| step.large_pages = true,
    ] {
        change(&mut step);
        rates.push(menon(CardDriver::Xen, PayloadDirection::Transmit, step).throughput_mbps);
    }
    assert!(rates.is_sorted() && rates[3] > 3.0 * rates[0], "{rates:?}");
    let dumb = menon(
        CardDriver::Xen,
        PayloadDirection::Transmit,
        PacketChannelOptions { card_offloads: false, ..step },
    );
    assert!(
        (rates[0]..rates[3]).contains(&dumb.throughput_mbps),
        "software segmentation is not between base and card offload: {dumb:?}"
    );
}

#[test]
fn copying_received_frames_beats_exchanging_pages() {
    let receives = |drive, channel| menon(drive, PayloadDirection::Receive, channel).throughput_mbps;
    let exchanged = receives(CardDriver::Xen, SMART);
    let copied = receives(CardDriver::Xen, PacketChannelOptions { by_address: true, ..SMART });
    let own = receives(CardDriver::Own, SMART);
    let large = receives(CardDriver::Own, PacketChannelOptions { large_pages: true, ..SMART });
    let native = receives(CardDriver::Native, SMART);
    assert!([exchanged, copied, own, large, native].is_sorted_by(|one, two| one < two));
}
