//! Virtualization features of a machine's processor: settings, and those of the papers' machine files.

use super::topology::TopologySource;
use crate::catalogue::SettingDefinition;
use crate::experiment::{FEATURE, PointRunError, PointRunInputs};
use crate::value::ParameterValue;
use hypervisor::cost::{CostTable, MachineModel};
use hypervisor::exit::VirtualizationFeature;

/// Value of a feature's setting that leaves that of the cost table's machine.
const OF_TABLE: &str = "table";

fn what(feature: VirtualizationFeature) -> &'static str {
    match feature {
        VirtualizationFeature::ApicVirtualization => "an end of interrupt needs no VM exit",
        VirtualizationFeature::PostedInterrupts => {
            "a device's interrupt reaches a running guest without a VM exit"
        }
        VirtualizationFeature::X2apic => "a guest accesses APIC registers as model-specific registers",
    }
}

/// Returns the settings of all features.
pub(super) fn definitions() -> Vec<SettingDefinition> {
    let definition = |feature: VirtualizationFeature| SettingDefinition {
        name: format!("{FEATURE}{}", feature.name()),
        default: ParameterValue::name(OF_TABLE),
        unit: "",
        what: format!("{}; {OF_TABLE}: as on the machine of the cost table", what(feature)),
        choices: &[OF_TABLE, "true", "false"],
    };
    VirtualizationFeature::ALL.map(definition).into()
}

/// Gives a cost table the features of the settings, or of the file of the table's machine.
pub(super) fn with_features(context: &PointRunInputs, table: CostTable) -> Result<CostTable, PointRunError> {
    let own = MachineModel::ALL.into_iter().find(|machine| machine.name() == table.name());
    let source = TopologySource::new(context, own.unwrap_or(MachineModel::Nehalem))?;
    let mut features = table.features();
    for feature in VirtualizationFeature::ALL {
        let key = format!("{FEATURE}{}", feature.name());
        if let Some(text) = source.text_if_given(&key, OF_TABLE)? {
            features = features.with(feature, text == "true");
        }
    }
    Ok(table.with_features(features))
}

/// Returns the values of the features of a table's processor.
pub(crate) fn values(table: &CostTable) -> Vec<(String, bool)> {
    let value = |feature: VirtualizationFeature| {
        (format!("{FEATURE}{}", feature.name()), table.features().has(feature))
    };
    VirtualizationFeature::ALL.map(value).into()
}
