//! What can be asked of a running host, and what it answers. Left out: how that is said in HTTP (`route`), and what is
//! told of ports and VFs (`status`).

use super::functions::Functions;
use super::problem::Kind;
use super::status::{PortStatus, VfStatus};
use crate::events::Recent;
use crate::flight::recording::Recording;
use crate::settings::{PortSettings, VfSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to capture.
#[derive(Debug, Clone, Default)]
pub struct CaptureQuery {
    /// The port.
    pub port: String,
    /// Its functions, and `uplink`; none for all of them.
    pub at: Vec<String>,
    /// A filter in the language of pcap-filter(7).
    pub filter: String,
    /// Only frames that are dropped.
    pub drops: bool,
    /// Bytes of a frame.
    pub snaplen: Option<usize>,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Every port with its VFs, but for ports that were given up.
    PortList,
    /// One port by name.
    PortShow {
        /// The port, such as pf0.
        port: String,
    },
    /// A port's functions as PCI devices.
    PortFunctions {
        /// The port, such as pf0.
        port: String,
    },
    /// Changes a port.
    PortSet {
        /// The port, such as pf0.
        port: String,
        /// What to change.
        change: Change<PortSettings>,
    },
    /// Resets a port under its VFs; its policy stays.
    PortReset {
        /// The port, such as pf0.
        port: String,
    },
    /// One VF by name, or a port, as by `PortShow`.
    VfShow {
        /// The VF, such as pf0vf3.
        vf: String,
    },
    /// Changes a VF.
    VfSet {
        /// The VF, such as pf0vf3.
        vf: String,
        /// What to change.
        change: Change<VfSettings>,
    },
    /// Lets a VF's client go; its machine lives on without the VF.
    VfDisconnect {
        /// The VF, such as pf0vf3.
        vf: String,
    },
    /// What a VF and its client did last.
    VfFlight {
        /// The VF, such as pf0vf3.
        vf: String,
    },
    /// What has happened lately.
    Events {
        /// After the event of this number; 0: everything that is kept.
        after: u64,
    },
    /// Has a new process take over, with all clients.
    Upgrade,
    /// Makes the host what a configuration file says, or tells what that would change.
    Apply(Apply),
}

/// A change of settings by command. What is not named stays; if one part is refused, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Change_{S}")]
pub struct Change<S> {
    /// What to set.
    pub set: S,
    /// Settings to give back to the file or the default, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default: Vec<String>,
    /// The change ends with the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

impl<S> Change<S> {
    /// A change that is kept.
    #[must_use]
    pub fn kept(set: S) -> Self {
        Self { set, default: Vec::new(), volatile: false }
    }

    /// A change that ends with the host.
    #[must_use]
    pub fn volatile(set: S) -> Self {
        Self { volatile: true, ..Self::kept(set) }
    }
}

/// A configuration file to apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The file's name, for messages.
    pub name: PathBuf,
    /// Its text.
    pub text: String,
    /// The runtime directory that was named beside the file, and comes before what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_dir: Option<PathBuf>,
    /// The state directory, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// Tell what would change, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// It is the file that the host was started with: nothing is done if its text is what was loaded last.
    #[serde(default)]
    pub reload: bool,
}

/// A process that has taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Upgraded {
    /// Its number.
    pub pid: u32,
}

/// What an applied file changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Nothing was changed yet.
    pub dry_run: bool,
    /// What differs, in the order of the file; what is removed comes last.
    pub changes: Vec<Changed>,
}

/// A port or a VF that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// What happens to it.
    pub what: What,
    /// The settings that change, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Step>,
}

/// What happens to a port or a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// It comes to be.
    Added,
    /// Its settings change.
    Changed,
    /// It ends, and so does its client's connection.
    Removed,
}

/// A setting before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Before; null if it was not there.
    pub old: Value,
    /// After; null if it is not there any more.
    pub new: Value,
}

/// What is answered to a request that was served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// To `PortList`.
    Ports(Vec<PortStatus>),
    /// To `VfShow`, `VfSet` and `VfDisconnect`.
    Vf(Box<VfStatus>),
    /// To `PortShow`, `PortSet` and `PortReset`.
    Port(Box<PortStatus>),
    /// To `PortFunctions`.
    Functions(Functions),
    /// To `Apply`.
    Difference(Difference),
    /// To `Upgrade`.
    Upgraded(Upgraded),
    /// To `VfFlight`.
    Flight(Recording),
    /// To `Events`.
    Recent(Recent),
}

/// Why a request was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of problem it is.
    pub kind: Kind,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
