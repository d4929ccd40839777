//! What the calibration may move: single constants, and paths whose constants move together because no target
//! tells them apart. Left out: constants that are published or stated.

use super::target::TARGETS;
use hypervisor::cost::{Cost, CostTable};

/// Constants that are moved together.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// What they are.
    pub name: &'static str,
    /// Which: all are multiplied by one factor, and each stays in its own range.
    pub members: &'static [Cost],
    /// The only value that feels it, if there is only one. That value is no test of the model then.
    pub alone: Option<&'static str>,
}

/// All of them.
pub const KNOBS: &[Knob] = &[
    Knob { name: "device model", members: &[Cost::DeviceModel], alone: None },
    Knob { name: "timer writes", members: &[Cost::TimerWrites], alone: None },
    Knob { name: "thread contention", members: &[Cost::SmtContention], alone: None },
    Knob { name: "domain switch", members: &[Cost::SwitchIndirect], alone: None },
    Knob { name: "service domain", members: &[Cost::ServiceTick], alone: None },
    Knob { name: "back end", members: &[Cost::Backend], alone: Some("pv_one_backend") },
    Knob {
        name: "receive path",
        members: &[
            Cost::RxDriver,
            Cost::RxSkb,
            Cost::RxUdp,
            Cost::RxUdpAccounting,
            Cost::RxWake,
            Cost::RxCopy,
            Cost::CopyCold,
        ],
        alone: None,
    },
    Knob {
        name: "interrupt path",
        members: &[
            Cost::InterruptEntry,
            Cost::InterruptHandler,
            Cost::Softirq,
            Cost::NapiEntry,
            Cost::ContextSwitch,
        ],
        alone: None,
    },
];

/// How many more values are fitted to than there are knobs.
#[must_use]
pub fn degrees_of_freedom() -> usize {
    TARGETS.iter().filter(|target| target.weight > 0.0).count().saturating_sub(KNOBS.len())
}

impl Knob {
    /// The factors at which the first and the last member reach the end of their ranges.
    fn factors(&self, seeds: &CostTable) -> (f64, f64) {
        let rows = self.members.iter().map(|&cost| seeds.row(cost));
        rows.fold((1.0, 1.0), |(least, most): (f64, f64), row| {
            let of = |end: u64| end as f64 / row.value as f64;
            (least.min(of(row.range.0)), most.max(of(row.range.1)))
        })
    }

    /// The place of the seeds: 0 is where all members are least, 1 where all are most.
    pub(super) fn start(&self, seeds: &CostTable) -> f64 {
        let (least, most) = self.factors(seeds);
        (1.0 - least) / (most - least)
    }

    /// The members at a place from 0 to 1, as integers.
    pub(super) fn constants(&self, seeds: &CostTable, place: f64) -> Vec<(&'static str, u64)> {
        let (least, most) = self.factors(seeds);
        let factor = least + (most - least) * place;
        let member = |cost: &Cost| {
            let row = seeds.row(*cost);
            let value = (row.value as f64 * factor).round() as u64;
            (row.name, value.clamp(row.range.0, row.range.1))
        };
        self.members.iter().map(member).collect()
    }
}
