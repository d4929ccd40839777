//! Degrees of freedom of the calibration: single cost constants, and groups of constants that no target can
//! distinguish. Published and stated constants stay fixed.

use std::borrow::Cow;

use hypervisor::cost::{CostConstant, CostTable};

/// Cost constants that the calibration scales together.
#[derive(Clone, Debug)]
pub struct ConstantGroup {
    /// Description of the group of cost constants for reports.
    pub name: &'static str,
    /// Cost constants of the group: all are multiplied by one factor, each within its own range.
    pub members: Cow<'static, [CostConstant]>,
    /// Name of the only target that this group of constants affects. That target does not test the model.
    pub alone: Option<&'static str>,
    /// Reason why the fit leaves the group at an end of its range, if it does.
    pub at_wall: Option<&'static str>,
}

/// All groups of cost constants that the calibration scales.
pub const KNOBS: &[ConstantGroup] = &[
    group("device model", &[CostConstant::DeviceModel], None, None),
    group("timer writes", &[CostConstant::TimerWrites], None, None),
    group("thread contention", &[CostConstant::SmtContention], None, None),
    group("domain switch", &[CostConstant::SwitchIndirect], None, None),
    group("service domain", &[CostConstant::ServiceTick], None, None),
    group("back end", &[CostConstant::Backend], Some("pv_one_backend"), Some(ONE_SEED)),
    group(
        "receive path",
        &[
            CostConstant::RxDriver,
            CostConstant::RxSkb,
            CostConstant::RxUdp,
            CostConstant::RxUdpAccounting,
            CostConstant::RxWake,
            CostConstant::RxCopy,
            CostConstant::CopyCold,
        ],
        None,
        None,
    ),
    group(
        "interrupt path",
        &[
            CostConstant::InterruptEntry,
            CostConstant::InterruptHandler,
            CostConstant::Softirq,
            CostConstant::NapiEntry,
            CostConstant::ContextSwitch,
        ],
        None,
        Some(CHEAP_MASKS),
    ),
];

/// Reason for the cheapest interrupt path.
const CHEAP_MASKS: &str = "ten 2.6.18 guests with masks in the hypervisor take 227 % in the paper, at 75,000 interrupts a \
    second on cores that dom0 shares; which mechanism makes them cheaper is unknown";

/// Reason for a back end at or near the cheapest.
const ONE_SEED: &str = "with seed 1 the range's lower end gives 3.57 of the paper's 3.6 Gb/s, and seeds differ by more: \
    3.56 (+- 0.04) over five";

/// Distance of a constant from an end of its range at which it counts as being there, as a part of the range.
const WALL: f64 = 0.02;

const fn group(
    name: &'static str,
    members: &'static [CostConstant],
    alone: Option<&'static str>,
    at_wall: Option<&'static str>,
) -> ConstantGroup {
    ConstantGroup { name, members: Cow::Borrowed(members), alone, at_wall }
}

impl ConstantGroup {
    /// Returns the smallest and the largest factor of a group of cost constants: they scale every constant of
    /// the group to the ends of its range or beyond.
    fn factors(&self, seeds: &CostTable) -> (f64, f64) {
        let rows = self.members.iter().map(|&cost| seeds.row(cost));
        rows.fold((1.0, 1.0), |(least, most): (f64, f64), row| {
            let of = |end: u64| end as f64 / row.value as f64;
            (least.min(of(row.range.0)), most.max(of(row.range.1)))
        })
    }

    /// Returns the position of a group's uncalibrated cost constants between its two factors, from 0 (all
    /// constants at their least) to 1 (all at their greatest).
    pub(super) fn start(&self, seeds: &CostTable) -> f64 {
        let (least, most) = self.factors(seeds);
        (1.0 - least) / (most - least)
    }

    /// Returns `true` if the values of the group's constants are those of one end of its range, or nearer to them than a
    /// fiftieth of their own ranges.
    #[must_use]
    pub fn is_at_wall(&self, seeds: &CostTable, value: impl Fn(CostConstant) -> Option<u64>) -> bool {
        [0.0, 1.0].into_iter().any(|end| {
            let ends = self.constants(seeds, end);
            self.members.iter().zip(ends).all(|(&cost, (_, at_end))| {
                let (least, most) = seeds.row(cost).range;
                let near = (most - least) as f64 * WALL;
                value(cost).is_some_and(|value| value.abs_diff(at_end) as f64 <= near)
            })
        })
    }

    /// Returns the value of each cost constant of a group, given the group's position in its range from 0 to
    /// 1.
    pub(super) fn constants(&self, seeds: &CostTable, place: f64) -> Vec<(&'static str, u64)> {
        let (least, most) = self.factors(seeds);
        let factor = least + (most - least) * place;
        let member = |cost: &CostConstant| {
            let row = seeds.row(*cost);
            let value = (row.value as f64 * factor).round() as u64;
            (row.name, value.clamp(row.range.0, row.range.1))
        };
        self.members.iter().map(member).collect()
    }
}
