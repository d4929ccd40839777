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
            assert!((1_850.0..1_890.0).contains(&it.throughput_mbps), "{it:?}");
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

/// Returns the throughput with free reloads of working sets, and with those of the table.
fn without_and_with_reload(drive: CardDriver, direction: PayloadDirection, guests: u8) -> [f64; 2] {
    [Some(0), None].map(|reload: Option<u64>| {
        let mut table = CostTable::of(MachineModel::Opteron);
        reload.into_iter().for_each(|reload| table.set("switch_reload", reload).unwrap());
        let plan = SingleCpuSetup::willmann(table, drive, direction, guests);
        let mut machine = SingleCpuSimulation::new(&plan);
        let found = machine.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100));
        found.unwrap().throughput_mbps
    })
}

/// Checks the displacement of working sets: a cache of 1 MB holds those of the driver domain and two guests, but not of
/// 24. Contexts serve long windows at each switch, so their wires stay full.
#[test]
fn displaced_working_sets_slow_many_guests_under_xen_only() {
    for direction in [PayloadDirection::Transmit, PayloadDirection::Receive] {
        let [without, with] = without_and_with_reload(CardDriver::Xen, direction, 2);
        assert!((with / without - 1.0).abs() < 0.01, "{direction:?}: {without} {with}");
        let [without, with] = without_and_with_reload(CardDriver::Xen, direction, 24);
        assert!(with < 0.8 * without, "{direction:?}: {without} {with}");
        let [_, contexts] = without_and_with_reload(CardDriver::Cdna, direction, 24);
        assert!(contexts > 1_850.0, "{direction:?}: {contexts}");
    }
}

/// Checks that a program's buffer that is sent again and again is copied from the cache, and that received payload comes
/// from memory.
#[test]
fn transmit_copies_are_warm_and_receive_copies_are_cold() {
    let guest = |direction, constant: &str| {
        let mut table = CostTable::of(MachineModel::Opteron);
        table.set(constant, 0).unwrap();
        let plan = SingleCpuSetup::willmann(table, CardDriver::Cdna, direction, 1);
        let mut machine = SingleCpuSimulation::new(&plan);
        let free =
            machine.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(60)).unwrap();
        simulate(CardDriver::Cdna, direction, 1).guest_pct - free.guest_pct
    };
    // 161 K segments a second of 1,448 bytes on both wires, at 0.4 and 2.4 cycles a byte.
    let alone = 161e3 * 1_448.0 / 2.4e9 * 100.0;
    let sends = guest(PayloadDirection::Transmit, "copy_warm");
    assert!((sends / (0.4 * alone) - 1.0).abs() < 0.1, "{sends} {alone}");
    let receives = guest(PayloadDirection::Receive, "copy_cold");
    assert!((receives / (2.4 * alone) - 1.0).abs() < 0.1, "{receives} {alone}");
    assert!(guest(PayloadDirection::Transmit, "copy_cold").abs() < 0.1);
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

/// Returns the throughput of a machine with a constant of its table set to 0, beside the unchanged throughput.
fn without_cost(name: &str, plan: &SingleCpuSetup) -> [f64; 2] {
    [true, false].map(|is_free| {
        let mut table = plan.table.clone();
        if is_free {
            table.set(name, 0).unwrap();
        }
        let mut machine = SingleCpuSimulation::new(&SingleCpuSetup { table, ..plan.clone() });
        let found = machine.measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100));
        found.unwrap().throughput_mbps
    })
}

/// Checks that pages are exchanged in batches: most pages of a busy driver domain are not the first of their multicall.
/// Where no page is exchanged, their cost has no effect.
#[test]
fn batched_page_exchange_moves_only_drivers_that_exchange_pages() {
    let of = |drive, channel| {
        let table = CostTable::of(MachineModel::Prestonia);
        let plan = SingleCpuSetup::menon(table, drive, PayloadDirection::Receive, 1);
        SingleCpuSetup { channel, ..plan }
    };
    let exchanged = of(CardDriver::Xen, SMART);
    let [[free, with], [free_alone, with_alone]] =
        ["page_flip_batched", "page_flip"].map(|name| without_cost(name, &exchanged));
    assert!(free > 1.02 * with, "{free} {with}");
    // Alone, each page would pay five times as much as in a batch.
    assert!(free_alone < 1.4 * with_alone, "{free_alone} {with_alone}");
    let by_address = PacketChannelOptions { by_address: true, ..SMART };
    for (drive, channel) in
        [(CardDriver::Xen, by_address), (CardDriver::Own, SMART), (CardDriver::Native, SMART)]
    {
        let [free, with] = without_cost("page_flip_batched", &of(drive, channel));
        assert!((free - with).abs() < 1e-9, "{drive:?}: {free} {with}");
    }
}

/// Checks that a program reads a frame from the cache after the driver domain has copied it, and from memory after a page
/// exchange.
#[test]
fn received_payload_is_warm_after_the_channels_copy_only() {
    let has_effect = |drive, by_address| {
        let channel = PacketChannelOptions { by_address, ..SMART };
        let table = CostTable::of(MachineModel::Prestonia);
        let plan = SingleCpuSetup::menon(table, drive, PayloadDirection::Receive, 1);
        let [free, with] = without_cost("copy_warm", &SingleCpuSetup { channel, ..plan });
        free > with + 1.0
    };
    assert!(has_effect(CardDriver::Xen, true));
    assert!(!has_effect(CardDriver::Xen, false));
    assert!(!has_effect(CardDriver::Own, true));
}

/// Checks that superpages remove the misses of a driver domain that receives, and that nothing else does: with free walks
/// both kernels are equal. A bare machine's kernel has large pages.
#[test]
fn superpages_remove_tlb_misses_of_the_driver_domain() {
    let of = |drive, large_pages| {
        let plan = SingleCpuSetup::menon(
            CostTable::of(MachineModel::Prestonia),
            drive,
            PayloadDirection::Receive,
            1,
        );
        let channel = PacketChannelOptions { large_pages, ..SMART };
        without_cost("tlb_walk", &SingleCpuSetup { channel, ..plan })
    };
    let ([free, small], [free_large, large]) = (of(CardDriver::Own, false), of(CardDriver::Own, true));
    assert!((1.2..1.4).contains(&(large / small)), "{large} {small}");
    assert!((free - large).abs() < 1e-9 && (free_large - large).abs() < 1e-9, "{free} {free_large} {large}");
    let [free, native] = of(CardDriver::Native, false);
    assert!((free - native).abs() < 1e-9, "{free} {native}");
}
