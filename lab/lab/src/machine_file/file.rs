//! Machine of a file, and the check that it can be built.

use hypervisor::cost::{CostRow, CostTable, MachineModel};

use crate::catalogue::SettingDefinition;
use crate::experiment::{CONSTANT, PointRunError, PointRunInputs, RunSettings};
use crate::experiments::{parts, settings, topology};
use crate::machine::ServerTopology;
use crate::runner::plan::SettingAssignment;
use crate::value::ParameterValue;

/// Machine of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFile {
    /// Name of the machine in messages.
    pub name: String,
    /// Description of the machine, possibly empty.
    pub description: String,
    /// Values of the file, as assignments to settings.
    pub values: Vec<SettingAssignment>,
}

/// Cost table and topology of a machine, complete.
#[derive(Clone, Debug)]
pub struct DescribedMachine {
    /// Cost table with the file's constants.
    pub table: CostTable,
    /// Topology with the file's values. Those that the file lacks are of the paper's machine whose table the file
    /// names, or of the SR-IOV paper's server. `None` for a machine with one processor, or one for each domain, since its
    /// experiments read no topology.
    pub topology: Option<ServerTopology>,
    /// Values of wires, kernels, cards and disk that the file, or that of the paper's machine whose table it names, has.
    pub parts: Vec<(&'static str, ParameterValue)>,
}

impl MachineFile {
    /// Checks that the machine can be built: all constants and numbers are in range, and all placements exist.
    ///
    /// # Errors
    /// [`PointRunError::Refused`] with the value and the permitted ones.
    pub fn check(&self, definitions: &[SettingDefinition]) -> Result<DescribedMachine, PointRunError> {
        let context = PointRunInputs { seed: 1, settings: self.settings(definitions) };
        let table = settings::table(&context, MachineModel::Nehalem)?;
        let own = MachineModel::ALL.into_iter().find(|machine| machine.name() == table.name());
        let parts = parts::values(&context, own.unwrap_or(MachineModel::Nehalem))?;
        let keys = self.values.iter().map(|value| value.key.as_str());
        let server = topology::server(own.unwrap_or(MachineModel::Nehalem), keys);
        let topology = server.map(|server| topology::topology(&context, server)).transpose()?;
        Ok(DescribedMachine { table, topology, parts })
    }

    /// Returns a note for each constant of the file that lies outside the plausible range of its cost table. Constants
    /// that the table knows exactly have no range.
    ///
    /// # Errors
    /// [`PointRunError::Refused`] if the machine cannot be built.
    pub fn outside_ranges(&self, definitions: &[SettingDefinition]) -> Result<Vec<String>, PointRunError> {
        let table = self.check(definitions)?.table;
        let is_given =
            |name: &str| self.values.iter().any(|value| value.key.strip_prefix(CONSTANT) == Some(name));
        let outside = table.iter().filter(|row| {
            let (least, most) = row.range;
            least < most && is_given(row.name) && !(least..=most).contains(&row.value)
        });
        let note = |row: &CostRow| {
            let (least, most) = row.range;
            let stated = format!("the table {} has {least} to {most} as plausible", table.name());
            format!("{CONSTANT}{} is {}; {stated}", row.name, row.value)
        };
        Ok(outside.map(note).collect())
    }

    /// Returns all settings, with the file's values.
    fn settings(&self, definitions: &[SettingDefinition]) -> RunSettings {
        let value = |setting: &SettingDefinition| {
            let own = self.values.iter().find(|value| value.key == setting.name);
            let own = own.and_then(|own| setting.default.parse_alike(&own.value));
            (setting.name.clone(), own.unwrap_or_else(|| setting.default.clone()))
        };
        RunSettings::new(definitions.iter().map(value).collect())
    }
}
