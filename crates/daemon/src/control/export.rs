//! Export of a VF: policy and counters, which another host imports before the VF's guest moves there.

use super::status::{DropCounts, TrafficCounts, VfStatus};
use crate::settings::VfSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format of exports that this version writes and reads.
pub const FORMAT: u32 = 1;

/// Exported VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VfExport {
    /// Format of the export: 1.
    pub format: u32,
    /// Name of the exported VF, for messages and readers. An import may name another VF.
    pub name: String,
    /// All settings of the VF.
    pub settings: VfSettings,
    /// Counters of the VF, from which the importing VF counts on.
    pub counters: ExportedCounters,
}

/// Counters of an exported VF. The importing host adds its own counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportedCounters {
    /// Numbers of frames that the exported VF's guest has received.
    pub rx: TrafficCounts,
    /// Numbers of frames that the exported VF's guest has sent.
    pub tx: TrafficCounts,
    /// Dropped frames of the exported VF, by reason.
    pub drops: DropCounts,
    /// Numbers of offences of the exported VF, by kind.
    #[serde(default)]
    pub offences: BTreeMap<String, u64>,
}

/// Request to import a VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VfImport {
    /// Export to import.
    pub export: VfExport,
    /// True if the settings end with the host; false, the default, if the host saves them for later starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

impl VfExport {
    /// Creates the export of a VF from its status.
    #[must_use]
    pub fn of(status: &VfStatus) -> Self {
        Self {
            format: FORMAT,
            name: status.name.clone(),
            settings: status.settings.clone(),
            counters: ExportedCounters {
                rx: status.function.rx,
                tx: status.function.tx,
                drops: status.function.drops,
                offences: status.conduct.offences.clone(),
            },
        }
    }
}
