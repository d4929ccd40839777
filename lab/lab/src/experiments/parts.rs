//! Parts of machine files beside a server's topology: kernels, cards and wires of machines with one processor or an
//! assigned device, and a disk.

use super::topology::{
    FROM_PAPER_TEXT, MBPS, RECEIVE_RING, TURNAROUND, TopologyNumber, TopologySource, definition, number,
};
use crate::catalogue::SettingDefinition;
use crate::experiment::{PointRunError, PointRunInputs};
use crate::machine::DiskProperties;
use crate::machine::assigned::net::AssignedCardProperties;
use crate::machine::single::{PayloadDirection, SingleCpuSetup, SingleCpuWire};
use crate::machine::thin::ThinHypervisorProperties;
use crate::value::ParameterValue;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::{CostConstant, MachineModel};
use sim::VirtualDuration;

const ONE_WAY: TopologyNumber = number(
    "wire.one_way_us",
    "us",
    "time of a request from the client's program to the guest's card (thin hypervisor)",
    (0, 10_000),
);
const PAUSE: TopologyNumber = number(
    "wire.pause_us",
    "us",
    "least time from an answer to the client's next request (thin hypervisor)",
    (0, 1_000_000),
);
const SOCKET: TopologyNumber =
    number("kernel.socket_packets", "", "datagrams that a guest program's socket holds", (1, 65_536));
const BUDGET: TopologyNumber =
    number("kernel.poll_budget", "", "packets that one poll of a guest's receive ring takes", (1, 4_096));
const TURN: TopologyNumber = number(
    "kernel.turn",
    "",
    "ring slots that a guest of a one-processor machine, or frames that a domain beside an assigned card, processes \
     before it takes interrupts",
    (1, 256),
);
const DRIVER_TURN: TopologyNumber = number(
    "kernel.driver_turn",
    "",
    "frames of each direction that the driver domain of a one-processor machine processes before it takes interrupts",
    (2, 256),
);
const READ: TopologyNumber = number(
    "kernel.read_frames",
    "",
    "frames that a guest's program reads in a system call (thin hypervisor, assigned card)",
    (1, 4_096),
);
const SEND_WINDOW: TopologyNumber = number(
    "kernel.send_window",
    "",
    "segments that a guest of a one-processor machine sends before one is acknowledged",
    (2, 4_096),
);
const RECEIVE_WINDOW: TopologyNumber = number(
    "kernel.receive_window",
    "",
    "segments that a client sends before one is acknowledged (one processor) or read (thin hypervisor)",
    (2, 65_535),
);
const TICK: TopologyNumber =
    number("kernel.tick_us", "us", "period of a guest's timer tick (thin hypervisor)", (100, 1_000_000));
const EXITS_IDLE: TopologyNumber = number(
    "kernel.exits_idle_hz",
    "1/s",
    "exits of an idle guest for sensitive instructions (thin hypervisor)",
    (1, 1_000_000),
);
const EXITS_BUSY: TopologyNumber = number(
    "kernel.exits_busy_hz",
    "1/s",
    "exits of a busy guest for sensitive instructions (thin hypervisor)",
    (1, 1_000_000),
);
const PORTS: TopologyNumber = number("card.ports", "", "ports of a one-processor machine", (1, 4));
const INTERRUPT: TopologyNumber = number(
    "card.interrupt_us",
    "us",
    "least time between two interrupts of a card (one processor, thin hypervisor, assigned card)",
    (1, 8_191),
);
const REQUEST: TopologyNumber = number(
    "card.request_us",
    "us",
    "time between requests of a VF's driver to the PF (thin hypervisor)",
    (100, 10_000_000),
);
const SURFACE: TopologyNumber =
    number("disk.surface_mb_per_s", "MB/s", "rate of the disk's surface", (1, 100_000));
const CABLE: TopologyNumber = number("disk.cable_mb_per_s", "MB/s", "rate of the disk's cable", (1, 100_000));
const COMMAND: TopologyNumber =
    number("disk.command_us", "us", "overhead of a disk command and its completion", (0, 1_000_000));

/// Numbers of wires and kernels. Those of wires are declared after a server's.
const KERNELS: [TopologyNumber; 12] = [
    ONE_WAY,
    PAUSE,
    SOCKET,
    BUDGET,
    TURN,
    DRIVER_TURN,
    READ,
    SEND_WINDOW,
    RECEIVE_WINDOW,
    TICK,
    EXITS_IDLE,
    EXITS_BUSY,
];
/// Numbers of cards and of the disk.
const DEVICES: [TopologyNumber; 7] = [PORTS, RECEIVE_RING, INTERRUPT, REQUEST, SURFACE, CABLE, COMMAND];

/// Payload that programs of a one-processor machine send.
const SEND_BUFFER: &str = "kernel.send_buffer";
/// The payload is in the cache: a program writes the same buffer again and again.
const CACHED: &str = "cached";
/// The payload is in memory: a program sends files that the cache does not hold.
const UNCACHED: &str = "uncached";

/// Returns the settings of all parts.
pub(super) fn definitions() -> Vec<SettingDefinition> {
    let send_buffer = SettingDefinition {
        name: SEND_BUFFER.to_owned(),
        default: ParameterValue::name(FROM_PAPER_TEXT),
        unit: "",
        what: format!(
            "payload that programs of a one-processor machine send; {FROM_PAPER_TEXT}: as in the paper's machine"
        ),
        choices: &[FROM_PAPER_TEXT, CACHED, UNCACHED],
    };
    let kernels = KERNELS.iter().map(definition).chain([send_buffer]);
    kernels.chain(DEVICES.iter().map(definition)).collect()
}

/// Returns `true` for the setting of a limit that each kernel's version has, so that no machine file needs it.
pub(crate) fn is_of_kernel(key: &str) -> bool {
    [SOCKET.key, BUDGET.key].contains(&key)
}

/// Returns the values of the parts that settings, or the file of the machine `own`, give.
pub(crate) fn values(
    context: &PointRunInputs,
    own: MachineModel,
) -> Result<Vec<(&'static str, ParameterValue)>, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let value = |number: &TopologyNumber| {
        let value = source.number_if_given(number)?;
        Ok(value.map(|value| (number.key, ParameterValue::Int(value))))
    };
    let numbers = KERNELS.iter().chain(&DEVICES).chain(&[MBPS, TURNAROUND]);
    let mut values: Vec<_> =
        numbers.filter_map(|number| value(number).transpose()).collect::<Result<_, PointRunError>>()?;
    if let Some(text) = source.text_if_given(SEND_BUFFER, FROM_PAPER_TEXT)? {
        values.push((SEND_BUFFER, ParameterValue::Text(text.into_owned().into())));
    }
    Ok(values)
}

/// Gives a guest's kernel the limits of the settings. Without a setting, they are those of the kernel's version.
pub(super) fn limit_kernel(context: &PointRunInputs, spec: &mut KernelConfig) -> Result<(), PointRunError> {
    let source = TopologySource::new(context, MachineModel::Nehalem)?;
    if spec.load != ProgramWorkload::Tcp {
        spec.socket_packets = source.number_if_given(&SOCKET)?.unwrap_or(spec.socket_packets);
    }
    spec.budget = source.number_if_given(&BUDGET)?.unwrap_or(spec.budget);
    Ok(())
}

/// Gives a one-processor machine the card, the kernels and the wire of the settings, or of the file of the machine
/// `own`. A machine that receives reads no setting of a sender.
pub(super) fn on_machine(
    setup: SingleCpuSetup,
    context: &PointRunInputs,
    own: MachineModel,
) -> Result<SingleCpuSetup, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let mbps: u64 = source.number(&MBPS)?;
    let (window, send_copy) = match setup.direction {
        PayloadDirection::Transmit => (source.number(&SEND_WINDOW)?, send_copy(&source)?),
        PayloadDirection::Receive => (source.number(&RECEIVE_WINDOW)?, setup.send_copy),
    };
    Ok(SingleCpuSetup {
        ports: source.number(&PORTS)?,
        turn: source.number(&TURN)?,
        driver_turn: source.number(&DRIVER_TURN)?,
        interval: source.micros(&INTERRUPT)?,
        wire: SingleCpuWire { bits_per_second: mbps * 1_000_000, turnaround: source.micros(&TURNAROUND)? },
        window,
        send_copy,
        ..setup
    })
}

fn send_copy(source: &TopologySource<'_>) -> Result<CostConstant, PointRunError> {
    let text = source.text_if_given(SEND_BUFFER, FROM_PAPER_TEXT)?;
    let text = text.ok_or_else(|| source.missing(SEND_BUFFER))?;
    Ok(if text == CACHED { CostConstant::CopyWarm } else { CostConstant::CopyCold })
}

/// Returns card, wire and kernels of the thin hypervisor's machine: those of the settings, or of the file of `own`. The
/// clients either send a stream or requests, and a guest is idle or busy; settings of the other kind are not read.
pub(super) fn thin(
    (is_stream, is_busy): (bool, bool),
    context: &PointRunInputs,
    own: MachineModel,
) -> Result<ThinHypervisorProperties, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let mut properties = ThinHypervisorProperties {
        bits_per_second: 1,
        one_way: VirtualDuration::ZERO,
        pause: VirtualDuration::ZERO,
        interval: VirtualDuration::ZERO,
        request_interval: source.micros(&REQUEST)?,
        window: 1,
        poll: source.number(&BUDGET)?,
        read: source.number(&READ)?,
        tick: source.micros(&TICK)?,
        exits: source.number(if is_busy { &EXITS_BUSY } else { &EXITS_IDLE })?,
    };
    if is_stream {
        properties.bits_per_second = source.number::<u64>(&MBPS)? * 1_000_000;
        properties.interval = source.micros(&INTERRUPT)?;
        properties.window = source.number(&RECEIVE_WINDOW)?;
    } else {
        properties.one_way = source.micros(&ONE_WAY)?;
        properties.pause = source.micros(&PAUSE)?;
    }
    Ok(properties)
}

/// Returns the 10 Gb/s card of the settings, or of the file of the machine `own`.
pub(super) fn assigned_card(
    context: &PointRunInputs,
    own: MachineModel,
) -> Result<AssignedCardProperties, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let mbps: u64 = source.number(&MBPS)?;
    Ok(AssignedCardProperties {
        bits_per_second: mbps * 1_000_000,
        interval: source.micros(&INTERRUPT)?,
        receive_ring: source.number(&RECEIVE_RING)?,
        turn: source.number(&TURN)?,
        read: source.number(&READ)?,
    })
}

/// Returns the disk of the settings, or of the file of the machine `own`.
pub(super) fn disk(context: &PointRunInputs, own: MachineModel) -> Result<DiskProperties, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let (surface, cable): (u64, u64) = (source.number(&SURFACE)?, source.number(&CABLE)?);
    Ok(DiskProperties {
        surface: surface * 1_000_000,
        cable: cable * 1_000_000,
        command: source.micros(&COMMAND)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        AssignedCardProperties, DiskProperties, MachineModel, PointRunInputs, SingleCpuSetup,
        ThinHypervisorProperties, assigned_card, disk, on_machine, thin,
    };
    use crate::experiment::RunSettings;
    use crate::experiments::settings;
    use crate::machine::single::{CardDriver, PayloadDirection};
    use hypervisor::cost::CostTable;

    /// Checks that the papers' files have the machines that the tests of the machines use.
    #[test]
    fn papers_machine_files_have_the_parts_of_their_papers() {
        let settings = settings::all().into_iter().map(|setting| (setting.name, setting.default)).collect();
        let context = PointRunInputs { seed: 1, settings: RunSettings::new(settings) };
        assert_eq!(disk(&context, MachineModel::Server2009).unwrap(), DiskProperties::SATA);
        let card = assigned_card(&context, MachineModel::Server2009).unwrap();
        assert_eq!(card, AssignedCardProperties::TEN_GIGABIT);
        for direction in [PayloadDirection::Transmit, PayloadDirection::Receive] {
            let [opteron, prestonia] = [MachineModel::Opteron, MachineModel::Prestonia].map(CostTable::of);
            for (machine, own) in [
                (MachineModel::Opteron, SingleCpuSetup::willmann(opteron, CardDriver::Xen, direction, 1)),
                (MachineModel::Prestonia, SingleCpuSetup::menon(prestonia, CardDriver::Xen, direction, 1)),
            ] {
                let blank = SingleCpuSetup { ports: 0, turn: 0, driver_turn: 0, window: 0, ..own.clone() };
                let file = on_machine(blank, &context, machine).unwrap();
                let parts = |it: &SingleCpuSetup| {
                    (it.ports, it.turn, it.driver_turn, it.window, it.send_copy, it.interval, it.wire)
                };
                assert_eq!(parts(&file), parts(&own));
            }
        }
        for is_busy in [false, true] {
            let [stream, requests] = [true, false]
                .map(|is_stream| thin((is_stream, is_busy), &context, MachineModel::Skylake).unwrap());
            let own = ThinHypervisorProperties::iida(is_busy);
            let both =
                ThinHypervisorProperties { one_way: requests.one_way, pause: requests.pause, ..stream };
            assert_eq!(both, own);
        }
    }
}
