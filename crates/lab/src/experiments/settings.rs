//! What can be set in every experiment: which processor's cost table, each constant in it, and the few inputs that
//! the paper leaves open. Left out: values that belong to one experiment; those are its axes.

use crate::calibrate::stored;
use crate::catalogue::{Parameter, Residual, Sensitivity, Setting};
use crate::experiment::{Context, RunError};
use crate::value::Value;
use guest::Load;
use guest::packet::TCP_PAYLOAD;
use hypervisor::cost::CostTable;
use sim::Span;
use std::fmt::Display;
use std::num::NonZeroU64;

/// Names of the settings that are not constants of the table.
pub(crate) const TABLE: &str = "table";
pub(crate) const INTERRUPT_HZ: &str = "interrupt_hz";
const WINDOW: &str = "tcp_window";
const LOOPBACK: &str = "loopback_mbps";
const LOAD: &str = "inside";
const MTU: &str = "inside_mtu";
const MEASURE: &str = "measure_ms";
const WARM_UP: &str = "warm_up_ms";
const GROUP: &str = "cost.";

/// The table of the machine that an experiment's paper has.
const OWN_TABLE: &str = "paper";

/// What "as the table has it" is for a constant: no constant is negative.
const FROM_TABLE: i64 = -1;

/// All settings.
pub(crate) fn all() -> Vec<Setting> {
    let setting = |name: &str, default, unit, what: &str, choices| Setting {
        name: name.to_owned(),
        default,
        unit,
        what: what.to_owned(),
        choices,
    };
    let mut settings = vec![
        setting(
            TABLE,
            Value::name(OWN_TABLE),
            "",
            "the processor's cost table; paper: that of the experiment's paper",
            &[OWN_TABLE, "nehalem", "modern", "opteron", "skylake"],
        ),
        // 47 % of 139 M cycles/s at 8.4 K an EOI are 7.8 K interrupts/s, timer interrupts among them.
        setting(INTERRUPT_HZ, Value::Int(7_500), "Hz", "interrupts of a VF where no policy is varied", &[]),
        setting(
            WINDOW,
            Value::Int(92_672),
            "B",
            "bytes under way of a stream: 64 segments, as many as the socket holds",
            &[],
        ),
        setting(
            LOOPBACK,
            Value::Int(2_800),
            "Mb/s",
            "what a card's functions may send to each other; 0 is no limit",
            &[],
        ),
        setting(
            LOAD,
            Value::name("datagrams"),
            "",
            "what guests send to each other",
            &["datagrams", "stream"],
        ),
        setting(
            MTU,
            Value::Int(9_000),
            "B",
            "longest IP packet between functions; longer datagrams are cut",
            &[],
        ),
        setting(MEASURE, Value::Int(200), "ms", "virtual time that is measured", &[]),
        // The adaptive policy samples once a second, and a stream may take a few samples to speed up.
        setting(WARM_UP, Value::Int(5_050), "ms", "virtual time before that, for the adaptive policy", &[]),
    ];
    for row in CostTable::nehalem().iter() {
        let what = format!("constant of the cost table; {FROM_TABLE}: as the table has it");
        let name = format!("{GROUP}{}", row.name);
        let default = Value::Int(FROM_TABLE);
        settings.push(Setting { name, default, unit: row.unit.name(), what, choices: &[] });
    }
    settings
}

/// The constants of all tables, for the report.
pub(crate) fn parameters() -> Vec<Parameter> {
    let parameters = |seeds: CostTable| {
        // A table that does not take its fit is refused when something is run.
        let table = stored::fitted(seeds.clone()).unwrap_or(seeds);
        table.iter().map(|row| Parameter::of(table.name(), row)).collect::<Vec<_>>()
    };
    CostTable::all().into_iter().flat_map(parameters).collect()
}

/// How far the calibrated table leaves the model from what it was calibrated on, for the report.
pub(crate) fn residuals() -> Vec<Residual> {
    stored::stored().map(|stored| stored.residuals.clone()).unwrap_or_default()
}

/// Which constants predictions hang on, for the report.
pub(crate) fn sensitivity() -> Sensitivity {
    stored::sensitivity().cloned().unwrap_or_default()
}

/// The table that a run is to use, if not another that of Dong et al., HPCA 2010.
pub(crate) fn table(context: &Context) -> Result<CostTable, RunError> {
    table_or(context, CostTable::nehalem)
}

/// The table that a run is to use, if not another that of its paper's machine.
pub(crate) fn table_or(context: &Context, own: fn() -> CostTable) -> Result<CostTable, RunError> {
    let seeds = match context.settings.text(TABLE)? {
        OWN_TABLE => own(),
        name => {
            CostTable::named(name).ok_or_else(|| RunError::Refused(format!("there is no table {name}")))?
        }
    };
    let mut table = stored::fitted(seeds).map_err(RunError::Refused)?;
    let names: Vec<&'static str> = table.iter().map(|row| row.name).collect();
    for name in names {
        let value = context.settings.int(&format!("{GROUP}{name}"))?;
        if value != FROM_TABLE {
            let refused = |why: &dyn Display| RunError::Refused(format!("{GROUP}{name} is {value}: {why}"));
            let value = u64::try_from(value).map_err(|_| refused(&"no constant is negative"))?;
            table.set(name, value).map_err(|error| refused(&error))?;
        }
    }
    Ok(table)
}

/// A setting that is a positive amount.
pub(crate) fn amount(context: &Context, name: &str) -> Result<u32, RunError> {
    let value = context.settings.int(name)?;
    u32::try_from(value)
        .ok()
        .filter(|value| *value > 0)
        .ok_or_else(|| RunError::Refused(format!("{name} is {value}; it must be from 1 to {}", u32::MAX)))
}

/// A stream's window in whole segments, as far as a segment's window field goes.
pub(crate) fn window(context: &Context) -> Result<u16, RunError> {
    let segments = amount(context, WINDOW)? / TCP_PAYLOAD as u32;
    if segments == 0 {
        return Err(RunError::Refused(format!("{WINDOW} is less than a segment, {TCP_PAYLOAD} bytes")));
    }
    Ok(u16::try_from(segments).unwrap_or(u16::MAX))
}

/// The bandwidth inside a card: stated as 2.8 Gb/s (Dong et al., HPCA 2010).
pub(crate) fn loopback(context: &Context) -> Result<Option<NonZeroU64>, RunError> {
    let value = context.settings.int(LOOPBACK)?;
    let refused = |_| RunError::Refused(format!("{LOOPBACK} is {value}; it must be from 0 to {}", u32::MAX));
    let mbps = u32::try_from(value).map_err(refused)?;
    Ok(NonZeroU64::new(u64::from(mbps) * 1_000_000))
}

/// What guests send to each other.
pub(crate) fn load(context: &Context) -> Result<Load, RunError> {
    Ok(if context.settings.text(LOAD)? == "stream" { Load::Tcp } else { Load::Udp })
}

/// The longest IP packet between functions of a card, or over a bridge.
pub(crate) fn mtu(context: &Context) -> Result<u16, RunError> {
    let value = context.settings.int(MTU)?;
    u16::try_from(value)
        .ok()
        .filter(|mtu| (576..=9_216).contains(mtu))
        .ok_or_else(|| RunError::Refused(format!("{MTU} is {value}; it must be from 576 to 9216")))
}

/// How long is measured.
pub(crate) fn span(context: &Context) -> Result<Span, RunError> {
    Ok(Span::from_millis(amount(context, MEASURE)?.into()))
}

/// How long an adaptive policy may settle before.
pub(crate) fn warm_up(context: &Context) -> Result<Span, RunError> {
    Ok(Span::from_millis(amount(context, WARM_UP)?.into()))
}
