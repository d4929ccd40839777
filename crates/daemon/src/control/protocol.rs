//! Control requests to a running host, and its answers. `route` maps them to HTTP, and `status` has the reports on
//! ports and VFs.

use super::export::VfImport;
use super::functions::PortFunctions;
use super::problem::ProblemKind;
use super::status::{PortStatus, VfStatus};
use crate::events::RecentEvents;
use crate::flight::recording::FlightRecording;
use crate::settings::{PortSettings, VfSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Parameters of a request for a packet capture.
#[derive(Debug, Clone, Default)]
pub struct CaptureQuery {
    /// Name of the port whose frames are captured.
    pub port: String,
    /// Names of the port's functions to capture at, and `uplink`; all if empty.
    pub at: Vec<String>,
    /// Capture filter in the language of pcap-filter(7).
    pub filter: String,
    /// True if only dropped frames are captured.
    pub drops: bool,
    /// Maximum captured bytes of each frame.
    pub snaplen: Option<usize>,
}

/// Request of a client to the running host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    /// Return the status of every port with its VFs, except ports that were given up.
    PortList,
    /// Return the status of a port.
    PortShow {
        /// Name of the port, such as pf0.
        port: String,
    },
    /// Return a port's functions as PCI devices.
    PortFunctions {
        /// Name of the port, such as pf0.
        port: String,
    },
    /// Change the settings of a port.
    PortSet {
        /// Name of the port, such as pf0.
        port: String,
        /// Changes of the port's settings.
        change: SettingsCommand<PortSettings>,
    },
    /// Reset a port and its VFs. The policy stays.
    PortReset {
        /// Name of the port, such as pf0.
        port: String,
    },
    /// Return the status of a VF, or of the port of this name whose PF a guest drives.
    VfShow {
        /// Name of the VF, such as pf0vf3.
        vf: String,
    },
    /// Change the settings of a VF.
    VfSet {
        /// Name of the VF, such as pf0vf3.
        vf: String,
        /// Changes of the VF's settings.
        change: SettingsCommand<VfSettings>,
    },
    /// Import the policy and the counters of a VF of another host.
    VfImport {
        /// Name of the VF that imports, such as pf0vf3.
        vf: String,
        /// Export to import, and whether the settings end with the host.
        import: VfImport,
    },
    /// Disconnect a VF's client. The client's virtual machine survives without the VF.
    VfDisconnect {
        /// Name of the VF, such as pf0vf3.
        vf: String,
    },
    /// Return the flight recording of a VF: the last actions of the VF and its client.
    VfFlight {
        /// Name of the VF, such as pf0vf3.
        vf: String,
    },
    /// Return recent events of the host.
    Events {
        /// Number of the event after which to begin; 0 for all kept events.
        after: u64,
    },
    /// Hand over the host, with all its clients, to a new process.
    Upgrade,
    /// Apply a configuration file, or return the difference.
    Apply(ApplyRequest),
}

/// Change of a port's or a VF's settings by command. Settings that it does not name stay. If the host refuses one
/// setting, nothing changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Change_{S}")]
pub struct SettingsCommand<S> {
    /// New values of settings, by the setting's name; {} for none.
    pub set: S,
    /// Names of settings to reset to the configuration file's value, or to the default. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default: Vec<String>,
    /// True if the change ends with the host; false, the default, if the host saves the change for later starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

impl<S> SettingsCommand<S> {
    /// Creates a change of settings that outlives the host.
    #[must_use]
    pub fn kept(set: S) -> Self {
        Self { set, default: Vec::new(), volatile: false }
    }

    /// Creates a change of settings that ends with the host.
    #[must_use]
    pub fn volatile(set: S) -> Self {
        Self { volatile: true, ..Self::kept(set) }
    }
}

/// Request to apply a configuration file to the running host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Name of the configuration file, for messages.
    pub name: PathBuf,
    /// Text of the configuration file (TOML).
    pub text: String,
    /// Runtime directory that overrides the file's `runtime_dir`; missing to use the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_dir: Option<PathBuf>,
    /// State directory that overrides the file's `state_dir`; missing to use the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// True to return the difference and change nothing; false by default.
    #[serde(default)]
    pub dry_run: bool,
    /// True if the file is the host's own: then nothing is done if its text has not changed since it was last loaded.
    /// False by default.
    #[serde(default)]
    pub reload: bool,
}

/// Process that has taken over from the host in an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeResult {
    /// Process id of the new host process.
    pub pid: u32,
}

/// Changes that the application of a configuration file makes to the running host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigDifference {
    /// True if the request was a dry run, which changes nothing.
    pub dry_run: bool,
    /// Changes of ports and VFs in the order of the file; removed ports and VFs come last.
    pub changes: Vec<ConfigChange>,
}

/// Change of one port or VF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChange {
    /// Name of the port or VF.
    pub name: String,
    /// Kind of the change: "added", "changed" or "removed".
    pub what: ConfigChangeKind,
    /// Old and new value of each setting that changes, by the setting's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, SettingChange>,
}

/// Kind of change that an applied configuration file makes to a port or a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigChangeKind {
    /// The file adds the port or VF.
    Added,
    /// The file changes settings of the port or VF.
    Changed,
    /// The file removes the port or VF, and a connected client loses the VF.
    Removed,
}

/// Old and new value of a changed setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingChange {
    /// Value before the change; null if the setting had none.
    pub old: Value,
    /// Value after the change; null if the setting has none.
    pub new: Value,
}

/// Answer of the host to a control request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ControlAnswer {
    /// Status of the ports, in answer to `PortList`.
    Ports(Vec<PortStatus>),
    /// Status of a VF, in answer to `VfShow`, `VfSet`, `VfImport` and `VfDisconnect`.
    Vf(Box<VfStatus>),
    /// Status of a port, in answer to `PortShow`, `PortSet` and `PortReset`.
    Port(Box<PortStatus>),
    /// PCI functions of a port, in answer to `PortFunctions`.
    Functions(PortFunctions),
    /// Difference between the configurations, in answer to `Apply`.
    Difference(ConfigDifference),
    /// Id of the process that has taken over, in answer to `Upgrade`.
    Upgraded(UpgradeResult),
    /// Flight recording of a VF, in answer to `VfFlight`.
    Flight(FlightRecording),
    /// Recent events of the host, in answer to `Events`.
    Recent(RecentEvents),
}

/// Reason why a control request was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRequestFailure {
    /// Kind of problem that made the request fail.
    pub kind: ProblemKind,
    /// Description of the problem, and its remedy.
    pub message: String,
}

impl ControlRequestFailure {
    /// Creates a failure of a control request.
    #[must_use]
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
