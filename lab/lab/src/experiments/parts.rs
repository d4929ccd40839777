//! Parts of machine files beside a server's topology: limits of kernels, ports of a one-processor machine, and a disk.

use super::topology::{TopologyNumber, TopologySource, definition, number};
use crate::catalogue::SettingDefinition;
use crate::experiment::{PointRunError, PointRunInputs};
use crate::machine::DiskProperties;
use crate::machine::single::SingleCpuSetup;
use crate::value::ParameterValue;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::MachineModel;
use sim::VirtualDuration;

const SOCKET: TopologyNumber =
    number("kernel.socket_packets", "", "datagrams that a guest program's socket holds", (1, 65_536));
const BUDGET: TopologyNumber =
    number("kernel.poll_budget", "", "packets that one poll of a guest's receive ring takes", (1, 4_096));
const TURN: TopologyNumber = number(
    "kernel.turn",
    "",
    "ring slots that a guest of a one-processor machine processes before it takes interrupts",
    (1, 256),
);
const PORTS: TopologyNumber = number("card.ports", "", "ports of a one-processor machine", (1, 4));
const SURFACE: TopologyNumber =
    number("disk.surface_mb_per_s", "MB/s", "rate of the disk's surface", (1, 100_000));
const CABLE: TopologyNumber = number("disk.cable_mb_per_s", "MB/s", "rate of the disk's cable", (1, 100_000));
const COMMAND: TopologyNumber =
    number("disk.command_us", "us", "overhead of a disk command and its completion", (0, 1_000_000));

const ALL: [TopologyNumber; 7] = [SOCKET, BUDGET, TURN, PORTS, SURFACE, CABLE, COMMAND];

/// Returns the settings of all parts.
pub(super) fn definitions() -> Vec<SettingDefinition> {
    ALL.iter().map(definition).collect()
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
    ALL.iter().filter_map(|number| value(number).transpose()).collect()
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

/// Gives a one-processor machine the ports and the turn of the settings, or of the file of the machine `own`.
pub(super) fn on_machine(
    setup: SingleCpuSetup,
    context: &PointRunInputs,
    own: MachineModel,
) -> Result<SingleCpuSetup, PointRunError> {
    let source = TopologySource::new(context, own)?;
    Ok(SingleCpuSetup { ports: source.number(&PORTS)?, turn: source.number(&TURN)?, ..setup })
}

/// Returns the disk of the settings, or of the file of the machine `own`.
pub(super) fn disk(context: &PointRunInputs, own: MachineModel) -> Result<DiskProperties, PointRunError> {
    let source = TopologySource::new(context, own)?;
    let (surface, cable): (u64, u64) = (source.number(&SURFACE)?, source.number(&CABLE)?);
    Ok(DiskProperties {
        surface: surface * 1_000_000,
        cable: cable * 1_000_000,
        command: VirtualDuration::from_micros(source.number(&COMMAND)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        DiskProperties, MachineModel, PointRunInputs, SingleCpuSetup, definitions, disk, on_machine,
    };
    use crate::experiment::RunSettings;
    use crate::machine::single::{CardDriver, PayloadDirection};
    use hypervisor::cost::CostTable;

    /// Checks that the papers' files have the machines that the tests of the machines use.
    #[test]
    fn papers_machine_files_have_the_parts_of_their_papers() {
        let settings = definitions().into_iter().map(|setting| (setting.name, setting.default)).collect();
        let context = PointRunInputs { seed: 1, settings: RunSettings::new(settings) };
        assert_eq!(disk(&context, MachineModel::Server2009).unwrap(), DiskProperties::SATA);
        let (drive, direction) = (CardDriver::Xen, PayloadDirection::Transmit);
        let [opteron, prestonia] = [MachineModel::Opteron, MachineModel::Prestonia].map(CostTable::of);
        for (machine, own) in [
            (MachineModel::Opteron, SingleCpuSetup::willmann(opteron, drive, direction, 1)),
            (MachineModel::Prestonia, SingleCpuSetup::menon(prestonia, drive, direction, 1)),
        ] {
            let file =
                on_machine(SingleCpuSetup { ports: 0, turn: 0, ..own.clone() }, &context, machine).unwrap();
            assert_eq!((file.ports, file.turn), (own.ports, own.turn));
        }
    }
}
