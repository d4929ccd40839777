//! Translation of a port's DMA: IOTLB misses by page size, nested walks and number of VFs, and the rate that they permit.

use super::range::{EstimatedRange, price};
use crate::experiment::{
    AxisCombinations, Experiment, ExperimentAxis, ExperimentAxisValues, ExperimentPoint, FigureDefinition,
    FigureKind, FigureScale, PointOutcome, PointRunError, PointRunInputs,
};
use crate::experiments::point::{metric, untimed};
use crate::experiments::settings;
use crate::named::Metrics;
use crate::value::ParameterValue;
use hypervisor::cost::{CostConstant, MachineModel};
use hypervisor::domain::DomainId;
use hypervisor::iommu::{DmaRights, Iommu, IommuAccessKind, IommuPageSize, Iotlb};
use pcie::Rid;

pub(super) const TRANSLATE: Experiment = Experiment {
    name: "translate",
    title: "Translation of a port's DMA",
    shows: "Prediction: a port of 200 Gb/s receives frames of 1,514 bytes for its VFs in turn, a burst of eight each. A miss of \
            the IOTLB loads page-table entries, as many walks at a time as the table has. With nested translation each \
            load of the guest's table is translated by the host's. Not modelled: caches of paging structures, and queues, so a \
            miss costs its full walk, and delays nothing but its share of the walkers. Farshin et al. (PeerJ CS 2023) \
            measured losses up to 20 % at 200 Gb/s with pages of 4 KB, one function and the host's tables. The model does \
            not reproduce them: it has no loss there.",
    axes: &[
        ExperimentAxis {
            name: "page",
            what: "size of the pages of guest and host",
            values: ExperimentAxisValues::List(&[ParameterValue::name("4k"), ParameterValue::name("2m")]),
            labels: &[],
        },
        ExperimentAxis {
            name: "nested",
            what: "the guest has tables of its own, above the host's",
            values: ExperimentAxisValues::List(&[ParameterValue::Bool(false), ParameterValue::Bool(true)]),
            labels: &["host only", "nested"],
        },
        ExperimentAxis {
            name: "vfs",
            what: "VFs that receive in turn",
            values: ExperimentAxisValues::List(&[
                ParameterValue::Int(1),
                ParameterValue::Int(4),
                ParameterValue::Int(16),
                ParameterValue::Int(64),
            ]),
            labels: &[],
        },
    ],
    points: AxisCombinations::All,
    metrics: &[
        metric("misses_per_packet", "", "IOTLB misses for a packet"),
        metric("loads_per_packet", "", "page-table entries loaded for a packet"),
        metric("max_gbps", "Gb/s", "rate of frames that line and translation permit"),
        metric("max_gbps_least", "Gb/s", "least rate with the IOTLB and its walks anywhere in their ranges"),
        metric(
            "max_gbps_most",
            "Gb/s",
            "greatest rate with the IOTLB and its walks anywhere in their ranges",
        ),
    ],
    figures: &[FigureDefinition {
        title: "Rate that translation permits",
        kind: FigureKind::GroupedBars,
        x: &["page", "nested"],
        x_title: "Pages and tables",
        split: Some("vfs"),
        left: FigureScale { title: "Rate", unit: "Gb/s", series: &[("max_gbps", "rate")] },
        right: Some(FigureScale {
            title: "Misses of a packet",
            unit: "",
            series: &[("misses_per_packet", "misses")],
        }),
    }],
    run: translate,
};

/// Rate of the port's line, in Gb/s.
const LINE_GBPS: f64 = 200.0;
/// Bytes of a frame in memory, and on the wire with preamble, check sequence and gap.
const FRAME: (usize, u64) = (1_514, 1_538);
/// Receive buffers of a VF, of 2 KB each.
const BUFFERS: u64 = 512;
const BUFFER: u64 = 2_048;
/// Frames of a burst, and descriptors that the card fetches or writes back with one request.
const BURST: u64 = 8;
/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;
/// Address of a VF's buffers; its ring is in the 2 MB behind them. Each VF has as much host memory.
const MEMORY: u64 = 4 << 20;
const LARGE: u64 = 2 << 20;
const SMALL: u64 = 4 << 10;
/// Greatest number of VFs of a port.
const MOST_VFS: i64 = 64;

/// Work of translation for one packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TranslationWork {
    pub(super) misses: f64,
    pub(super) loads: f64,
}

/// Ports with a set-up of translation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TranslationSetup {
    pub(super) page: IommuPageSize,
    pub(super) is_nested: bool,
    pub(super) vfs: u16,
    /// Entries and ways of the IOTLB.
    pub(super) iotlb: (usize, usize),
}

fn translate(at: &ExperimentPoint, context: &PointRunInputs) -> Result<PointOutcome, PointRunError> {
    let table = settings::table(context, MachineModel::Modern)?;
    let vfs = at.axes.int("vfs")?;
    let vfs = u16::try_from(vfs)
        .ok()
        .filter(|_| (1..=MOST_VFS).contains(&vfs))
        .ok_or_else(|| PointRunError::Refused(format!("vfs is {vfs}; it must be from 1 to {MOST_VFS}")))?;
    let page = if at.axes.text("page")? == "4k" { IommuPageSize::Small } else { IommuPageSize::Large };
    let is_nested = at.axes.bool("nested")?;
    let [entries, ways, load, walks] = [
        CostConstant::IotlbEntries,
        CostConstant::IotlbWays,
        CostConstant::IotlbLoad,
        CostConstant::IotlbWalks,
    ]
    .map(|constant| price(&table, constant));
    if ways.value > entries.value {
        let (ways, entries) = (ways.value, entries.value);
        let remedy = "a set cannot have more entries than the IOTLB; give fewer ways or more entries";
        return Err(PointRunError::Refused(format!(
            "cost.iotlb_ways is {ways} and cost.iotlb_entries is {entries}: {remedy}"
        )));
    }
    let work = |entries: f64, ways: f64| {
        work(&TranslationSetup { page, is_nested, vfs, iotlb: (entries as usize, ways as usize) })
            .map_err(PointRunError::Invariant)
    };
    let rate = |work: TranslationWork, load: f64, walks: f64| {
        let bits = (FRAME.1 * 8) as f64;
        bits / (bits / LINE_GBPS).max(work.loads * load / walks.max(1.0))
    };
    let found = work(entries.value, ways.value)?;
    let value = rate(found, load.value, walks.value);
    let mut max = EstimatedRange { least: value, value, most: value };
    // Neither more entries nor more ways need have fewer misses, since rings are used in a circle.
    for entries in [entries.least, entries.value, entries.most] {
        for ways in [ways.least, ways.value, ways.most] {
            let found = work(entries, ways)?;
            max.least = max.least.min(rate(found, load.most, walks.least));
            max.most = max.most.max(rate(found, load.least, walks.most));
        }
    }
    Ok(untimed(
        Metrics::default()
            .with("misses_per_packet", found.misses)
            .with("loads_per_packet", found.loads)
            .with("max_gbps", max.value)
            .with("max_gbps_least", max.least)
            .with("max_gbps_most", max.most),
    ))
}

/// Returns the work of translating a received packet, after all rings went round once.
pub(super) fn work(setup: &TranslationSetup) -> Result<TranslationWork, String> {
    let (entries, ways) = setup.iotlb;
    // Ends of ranges are combined: the most ways with the least entries, for example.
    let ways = ways.clamp(1, entries.max(1));
    // A power of two of sets, with at most as many entries as the table says.
    let sets = 1 << (entries / ways).max(1).ilog2();
    let mut iommu = Iommu::new(Iotlb::new(sets, ways));
    for vf in 0..setup.vfs {
        map(&mut iommu, vf, setup.page).map_err(|error| error.to_string())?;
    }
    turn(&mut iommu, setup)?;
    let (misses, loads) = turn(&mut iommu, setup)?;
    let packets = (u64::from(setup.vfs) * BUFFERS) as f64;
    Ok(TranslationWork { misses: misses as f64 / packets, loads: loads as f64 / packets })
}

fn function(vf: u16) -> (Rid, DomainId) {
    (Rid(0x100 + vf), DomainId::new(1 + vf))
}

fn map(iommu: &mut Iommu, vf: u16, size: IommuPageSize) -> Result<(), hypervisor::iommu::IommuMapError> {
    let (rid, domain) = function(vf);
    iommu.attach(rid, domain);
    let bytes = if size == IommuPageSize::Small { SMALL } else { LARGE };
    (MEMORY..MEMORY + 2 * LARGE)
        .step_by(bytes as usize)
        .try_for_each(|at| iommu.domain(domain).map(at, u64::from(vf) * MEMORY + at, size, DmaRights::ALL))
}

/// Receives as many packets as all rings have buffers. Returns misses and loads.
fn turn(iommu: &mut Iommu, setup: &TranslationSetup) -> Result<(u64, u64), String> {
    let (mut misses, mut loads) = (0, 0);
    let mut request = |vf: u16, at: u64, length: usize, access: IommuAccessKind| {
        let found = iommu.translate_range(function(vf).0, at, length, access, |_, _| ());
        let found = found.map_err(|fault| format!("a mapped page is not translated: {fault:?}"))?;
        misses += u64::from(found.misses);
        loads += u64::from(found.misses) * walk(found.loads.checked_div(found.misses), setup.is_nested);
        Ok::<_, String>(())
    };
    for burst in 0..BUFFERS / BURST {
        for vf in 0..setup.vfs {
            let first = burst * BURST;
            let (ring, length) = (MEMORY + LARGE + first * DESCRIPTOR, (BURST * DESCRIPTOR) as usize);
            request(vf, ring, length, IommuAccessKind::Read)?;
            for buffer in first..first + BURST {
                request(vf, MEMORY + buffer * BUFFER, FRAME.0, IommuAccessKind::Write)?;
            }
            request(vf, ring, length, IommuAccessKind::Write)?;
        }
    }
    Ok((misses, loads))
}

/// Returns the loads of a walk of `levels` levels, or of one with as many levels in either dimension: each load of the
/// guest's table, and the address it leads to, is translated by the host's.
fn walk(levels: Option<u32>, is_nested: bool) -> u64 {
    let levels = u64::from(levels.unwrap_or(0));
    if is_nested { levels * (levels + 1) + levels } else { levels }
}
