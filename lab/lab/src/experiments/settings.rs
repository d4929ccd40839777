//! Settings of every experiment: the cost table, each constant in it, and the few inputs that the papers
//! leave open. Values specific to one experiment are its axes.

use crate::calibrate::stored;
use crate::catalogue::{ModelConstant, ModelSensitivity, Residual, SettingDefinition};
use crate::experiment::{CONSTANT, PointRunError, PointRunInputs};
use crate::experiments::{features, parts, topology};
use crate::machine::quality::audio::PERIODS;
use crate::machine::{ClientTraffic, ServerSetup, VcpuScheduling};
use crate::value::ParameterValue;
use driver::moderation::{AdaptiveModeration, BufferRedundancy, ModerationPolicy, interval_us};
use guest::ProgramWorkload;
use guest::packet::TCP_PAYLOAD;
use hypervisor::cost::{CostRow, CostTable, MachineModel};
use hypervisor::exit::EoiPath;
use sim::VirtualDuration;
use std::fmt::Display;
use std::num::NonZeroU64;

/// Name of the setting that selects the cost table.
pub(crate) const TABLE: &str = "table";
const INTERRUPT_HZ: &str = "interrupt_hz";
const DRIVER_HZ: &str = "driver_hz";
const LEAST_HZ: u32 = 123;
const MOST_HZ: u32 = 1_000_000;
const WINDOW: &str = "tcp_window";
const LOOPBACK: &str = "loopback_mbps";
const LOAD: &str = "inside";
const MTU: &str = "inside_mtu";
const CLIENTS: &str = "clients";
const EOI: &str = "eoi";
const AIC_REDUNDANCY: &str = "aic_r_permille";
const AIC_LOWEST: &str = "aic_lif_hz";
const AIC_BUFFERS: &str = "aic_bufs";
const SCHEDULING: &str = "scheduling";
const AUDIO_PERIODS: &str = "audio_periods";
const MEASURE: &str = "measure_ms";
const WARM_UP: &str = "warm_up_ms";

/// Name of the default cost table: that of the experiment's paper.
const OWN_TABLE: &str = "paper";

/// Value of a constant's setting that leaves the table's value; no constant is negative.
const FROM_TABLE: i64 = -1;

/// Returns all settings that experiments accept.
pub(crate) fn all() -> Vec<SettingDefinition> {
    let mut settings = vec![
        setting(
            TABLE,
            ParameterValue::name(OWN_TABLE),
            "",
            "the processor's cost table; paper: that of the experiment's paper",
            &[OWN_TABLE, "nehalem", "modern", "opteron", "skylake", "harpertown", "prestonia", "server-2009"],
        ),
        // 47 % of 139 M cycles/s at 8.4 K per EOI are 7.8 K interrupts/s, including timer interrupts.
        setting(
            INTERRUPT_HZ,
            ParameterValue::Int(7_500),
            "Hz",
            "interrupt rate of a VF where no policy is varied",
            &[],
        ),
        setting(
            WINDOW,
            ParameterValue::Int(120_832),
            "B",
            "receive buffer of a stream's socket, which bounds the bytes in flight",
            &[],
        ),
        setting(
            LOOPBACK,
            ParameterValue::Int(2_800),
            "Mb/s",
            "bandwidth between the functions of a card; 0: unlimited",
            &[],
        ),
        setting(
            LOAD,
            ParameterValue::name("datagrams"),
            "",
            "traffic between guests",
            &["datagrams", "stream"],
        ),
        setting(
            MTU,
            ParameterValue::Int(9_000),
            "B",
            "longest IP packet between functions; longer datagrams are fragmented",
            &[],
        ),
    ];
    settings.extend(runs());
    settings.extend(rates());
    settings.extend(topology::definitions());
    settings.extend(parts::definitions());
    settings.extend(features::definitions());
    settings.extend(constants());
    settings
}

/// Returns the settings of the scheduler, and of the times of measurement and warm-up.
fn runs() -> Vec<SettingDefinition> {
    vec![
        setting(
            SCHEDULING,
            ParameterValue::name("round-robin"),
            "",
            "scheduler of guests that share a thread",
            &["round-robin", "credit"],
        ),
        setting(
            AUDIO_PERIODS,
            ParameterValue::Int(PERIODS.into()),
            "",
            "sample periods that the buffer of an audio device holds",
            &[],
        ),
        setting(MEASURE, ParameterValue::Int(200), "ms", "measured virtual time", &[]),
        // The adaptive policy samples once a second, and a stream may need a few samples to reach its rate.
        setting(
            WARM_UP,
            ParameterValue::Int(5_050),
            "ms",
            "longest warm-up: with the adaptive policy all of it for a stream, else 1,050 ms; 500 ms with net_dim and hybrids; else 20 ms",
            &[],
        ),
    ]
}

/// Returns the settings of interrupt rates, EOI handling and the load on ten ports.
fn rates() -> Vec<SettingDefinition> {
    vec![
        setting(
            CLIENTS,
            ParameterValue::name("datagrams"),
            "",
            "traffic of the clients of ten ports",
            &["datagrams", "stream"],
        ),
        // igbvf of the time of the paper starts with IGBVF_START_ITR 648, in units of 256 ns.
        setting(
            DRIVER_HZ,
            ParameterValue::Int(6_028),
            "Hz",
            "interrupt rate of a VF set by its driver at start: the bare machine and the 2.6.28 guests of fig11",
            &[],
        ),
        setting(
            EOI,
            ParameterValue::name("believed"),
            "",
            "ends of interrupt that are not emulated: trusted by exit qualification (believed), or with the instruction fetched and checked",
            &["believed", "checked"],
        ),
        setting(
            AIC_REDUNDANCY,
            ParameterValue::Int(1_200),
            "permille",
            "redundancy r of the adaptive policy, in steps of 100",
            &[],
        ),
        setting(
            AIC_LOWEST,
            ParameterValue::Int(1_000),
            "Hz",
            "lowest interrupt frequency (lif) of the adaptive policy",
            &[],
        ),
        setting(
            AIC_BUFFERS,
            ParameterValue::Int(64),
            "",
            "number of buffers (bufs) in the formula of the adaptive policy",
            &[],
        ),
    ]
}

fn setting(
    name: &str,
    default: ParameterValue,
    unit: &'static str,
    what: &str,
    choices: &'static [&'static str],
) -> SettingDefinition {
    SettingDefinition { name: name.to_owned(), default, unit, what: what.to_owned(), choices }
}

/// Returns a setting for each constant of the cost tables.
fn constants() -> Vec<SettingDefinition> {
    let constant = |row: &CostRow| SettingDefinition {
        name: format!("{CONSTANT}{}", row.name),
        default: ParameterValue::Int(FROM_TABLE),
        unit: row.unit.name(),
        what: format!("constant of the cost table; {FROM_TABLE}: the table's value"),
        choices: &[],
    };
    CostTable::nehalem().iter().map(constant).collect()
}

/// Returns the constants of all cost tables, for the report.
pub(crate) fn parameters() -> Vec<ModelConstant> {
    let parameters = |seeds: CostTable| {
        // A table that rejects its fit is reported when a point is run.
        let table = stored::fitted(seeds.clone()).unwrap_or(seeds);
        table.iter().map(|row| ModelConstant::of(table.name(), row)).collect::<Vec<_>>()
    };
    CostTable::all().into_iter().flat_map(parameters).collect()
}

/// Returns the residuals of the stored calibration, for the report.
pub(crate) fn residuals() -> Vec<Residual> {
    stored::stored().map(|stored| stored.residuals.clone()).unwrap_or_default()
}

/// Returns, for the report, how much each cost constant affects the model's predictions.
pub(crate) fn sensitivity() -> ModelSensitivity {
    stored::sensitivity().cloned().unwrap_or_default()
}

/// Returns the cost table of an experiment run, by default `own`, that of the paper's machine.
pub(crate) fn table(context: &PointRunInputs, own: MachineModel) -> Result<CostTable, PointRunError> {
    let seeds = match context.settings.text(TABLE)? {
        OWN_TABLE => CostTable::of(own),
        name => CostTable::named(name)
            .ok_or_else(|| PointRunError::Refused(format!("unknown cost table {name}")))?,
    };
    let mut table = stored::fitted(seeds).map_err(PointRunError::Refused)?;
    table = features::with_features(context, table)?;
    let names: Vec<&'static str> = table.iter().map(|row| row.name).collect();
    for name in names {
        let value = context.settings.int(&format!("{CONSTANT}{name}"))?;
        if value != FROM_TABLE {
            let refused =
                |why: &dyn Display| PointRunError::Refused(format!("{CONSTANT}{name} is {value}: {why}"));
            let value = u64::try_from(value).map_err(|_| refused(&"a constant must not be negative"))?;
            table.set(name, value).map_err(|error| refused(&error))?;
        }
    }
    context.settings.hand_out(&table);
    Ok(table)
}

/// Returns the value of the integer setting called `name`, which must be positive.
pub(crate) fn amount(context: &PointRunInputs, name: &str) -> Result<u32, PointRunError> {
    let value = context.settings.int(name)?;
    u32::try_from(value).ok().filter(|value| *value > 0).ok_or_else(|| {
        PointRunError::Refused(format!("{name} is {value}; it must be from 1 to {}", u32::MAX))
    })
}

/// Returns the interrupt interval of a VF in microseconds, for experiments that vary no interrupt policy.
pub(crate) fn interval(context: &PointRunInputs) -> Result<u32, PointRunError> {
    interval_of(INTERRUPT_HZ, context.settings.int(INTERRUPT_HZ)?)
}

/// Returns the fixed interrupt policy whose interval a setting gives.
pub(crate) fn fixed(context: &PointRunInputs) -> Result<ModerationPolicy, PointRunError> {
    Ok(ModerationPolicy::Fixed(interval(context)?))
}

/// Returns the fixed interrupt policy with which the VF driver starts.
pub(crate) fn of_driver(context: &PointRunInputs) -> Result<ModerationPolicy, PointRunError> {
    fixed_at(DRIVER_HZ, context.settings.int(DRIVER_HZ)?)
}

/// Returns the fixed interrupt policy of a rate, which the parameter called `name` gives.
pub(crate) fn fixed_at(name: &str, hertz: i64) -> Result<ModerationPolicy, PointRunError> {
    Ok(ModerationPolicy::Fixed(interval_of(name, hertz)?))
}

/// Returns the interrupt interval in microseconds of a rate, which the parameter called `name` gives.
fn interval_of(name: &str, hertz: i64) -> Result<u32, PointRunError> {
    // The card's interval register holds at most 8,191 us.
    let rate = u32::try_from(hertz).ok().filter(|rate| (LEAST_HZ..=MOST_HZ).contains(rate));
    rate.map(|rate| interval_us(rate.into())).ok_or_else(|| {
        let range = format!("it must be from {LEAST_HZ} to {MOST_HZ}, an interval of 1 to 8191 microseconds");
        PointRunError::Refused(format!("{name} is {hertz}; {range}"))
    })
}

/// Sets the traffic of a server's clients to a stream, if the settings require a stream.
pub(crate) fn with_clients(
    mut setup: ServerSetup,
    context: &PointRunInputs,
) -> Result<ServerSetup, PointRunError> {
    if context.settings.text(CLIENTS)? == "stream" {
        let window = window(context)?;
        (setup.traffic, setup.spec.load) = (ClientTraffic::Tcp { window }, ProgramWorkload::Tcp);
        setup.spec.stream_segments = window.into();
    }
    Ok(setup)
}

/// Returns the path of an end-of-interrupt write without emulation: with a check of the instruction, if the settings
/// say so, or without. If an EOI causes no VM exit, that setting is not read.
pub(crate) fn fast_eoi(context: &PointRunInputs, table: &CostTable) -> Result<EoiPath, PointRunError> {
    if table.features().on_eoi().is_none() {
        return Ok(EoiPath::Fast);
    }
    let is_checked = context.settings.text(EOI)? == "checked";
    Ok(if is_checked { EoiPath::FastChecked } else { EoiPath::Fast })
}

/// Returns the adaptive interrupt policy with parameters from the settings. The driver counts its redundancy r in
/// tenths.
pub(crate) fn adaptive(context: &PointRunInputs) -> Result<ModerationPolicy, PointRunError> {
    let permille = amount(context, AIC_REDUNDANCY)?;
    if permille % 100 != 0 || permille > 100_000 {
        let range = "it must be from 100 to 100000 in steps of 100";
        return Err(PointRunError::Refused(format!("{AIC_REDUNDANCY} is {permille}; {range}")));
    }
    Ok(ModerationPolicy::Adaptive(AdaptiveModeration {
        redundancy: BufferRedundancy(permille / 100),
        buffers: amount(context, AIC_BUFFERS)?,
        lowest_hz: amount(context, AIC_LOWEST)?,
    }))
}

/// Returns a stream's window in whole segments. The window must be from 1 to 65,535 segments.
pub(crate) fn window(context: &PointRunInputs) -> Result<u16, PointRunError> {
    let bytes = amount(context, WINDOW)?;
    let segments = bytes / TCP_PAYLOAD as u32;
    if segments == 0 {
        let least = format!("it must be at least a segment, {TCP_PAYLOAD} bytes");
        return Err(PointRunError::Refused(format!("{WINDOW} is {bytes}; {least}")));
    }
    let most = format!("it must be at most {} segments of {TCP_PAYLOAD} bytes", u16::MAX);
    u16::try_from(segments).map_err(|_| PointRunError::Refused(format!("{WINDOW} is {bytes}; {most}")))
}

/// Returns the bandwidth between functions inside a card: stated as 2.8 Gb/s (Dong et al., HPCA 2010).
pub(crate) fn loopback(context: &PointRunInputs) -> Result<Option<NonZeroU64>, PointRunError> {
    let value = context.settings.int(LOOPBACK)?;
    let refused =
        |_| PointRunError::Refused(format!("{LOOPBACK} is {value}; it must be from 0 to {}", u32::MAX));
    let mbps = u32::try_from(value).map_err(refused)?;
    Ok(NonZeroU64::new(u64::from(mbps) * 1_000_000))
}

/// Returns the kind of traffic between guests: a stream or datagrams.
pub(crate) fn internal_workload(context: &PointRunInputs) -> Result<ProgramWorkload, PointRunError> {
    Ok(if context.settings.text(LOAD)? == "stream" { ProgramWorkload::Tcp } else { ProgramWorkload::Udp })
}

/// Returns the length of the longest IP packet between functions of a card or over a bridge.
pub(crate) fn mtu(context: &PointRunInputs) -> Result<u16, PointRunError> {
    let value = context.settings.int(MTU)?;
    u16::try_from(value)
        .ok()
        .filter(|mtu| (576..=9_216).contains(mtu))
        .ok_or_else(|| PointRunError::Refused(format!("{MTU} is {value}; it must be from 576 to 9216")))
}

/// Returns the scheduler of guests that share a thread.
pub(crate) fn scheduling(context: &PointRunInputs) -> Result<VcpuScheduling, PointRunError> {
    let is_credit = context.settings.text(SCHEDULING)? == "credit";
    Ok(if is_credit { VcpuScheduling::Credit } else { VcpuScheduling::RoundRobin })
}

/// Returns the number of sample periods that the buffer of an audio device holds.
pub(crate) fn audio_periods(context: &PointRunInputs) -> Result<u32, PointRunError> {
    let value = context.settings.int(AUDIO_PERIODS)?;
    u32::try_from(value)
        .ok()
        .filter(|periods| (2..=64).contains(periods))
        .ok_or_else(|| PointRunError::Refused(format!("{AUDIO_PERIODS} is {value}; it must be from 2 to 64")))
}

/// Returns the length of the measured interval of a run.
pub(crate) fn span(context: &PointRunInputs) -> Result<VirtualDuration, PointRunError> {
    Ok(VirtualDuration::from_millis(amount(context, MEASURE)?.into()))
}

/// Returns the warm-up time of a run with an adaptive interrupt policy.
pub(crate) fn warm_up(context: &PointRunInputs) -> Result<VirtualDuration, PointRunError> {
    Ok(VirtualDuration::from_millis(amount(context, WARM_UP)?.into()))
}
