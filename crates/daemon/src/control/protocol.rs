//! The control socket's protocol: JSON-RPC 2.0, one request and one response, each a line. Left out: batches
//! and notifications.

use super::status::{PortStatus, VfStatus};
use crate::settings::{PortSettings, VfSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The longest line either side accepts, bytes.
pub const MAX_LINE: u64 = 1 << 20;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub enum Request {
    /// Every port with its VFs.
    #[serde(rename = "port.list")]
    PortList,
    /// One port by name.
    #[serde(rename = "port.show")]
    PortShow {
        /// The port, such as pf0.
        port: String,
    },
    /// Changes a port.
    #[serde(rename = "port.set")]
    PortSet {
        /// The port, such as pf0.
        port: String,
        /// What to change.
        #[serde(flatten)]
        change: Change<PortSettings>,
    },
    /// Resets a port under its VFs; its policy stays.
    #[serde(rename = "port.reset")]
    PortReset {
        /// The port, such as pf0.
        port: String,
    },
    /// One VF by name, or a port, as by port.show.
    #[serde(rename = "vf.show")]
    VfShow {
        /// The VF, such as pf0vf3.
        vf: String,
    },
    /// Changes a VF.
    #[serde(rename = "vf.set")]
    VfSet {
        /// The VF, such as pf0vf3.
        vf: String,
        /// What to change.
        #[serde(flatten)]
        change: Change<VfSettings>,
    },
    /// Lets a VF's client go; its machine lives on without the VF.
    #[serde(rename = "vf.disconnect")]
    VfDisconnect {
        /// The VF, such as pf0vf3.
        vf: String,
    },
    /// Has a new process take over, with all clients.
    #[serde(rename = "upgrade")]
    Upgrade,
    /// Makes the host what a configuration file says, or tells what that would change.
    #[serde(rename = "apply")]
    Apply(Apply),
}

/// A change of settings by command. What is not named stays; if one part is refused, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// Its number.
    pub pid: u32,
}

/// What an applied file changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Nothing was changed yet.
    pub dry_run: bool,
    /// What differs, in the order of the file; what is removed comes last.
    pub changes: Vec<Changed>,
}

/// A port or a VF that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Before; null if it was not there.
    pub old: Value,
    /// After; null if it is not there any more.
    pub new: Value,
}

/// A request as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// "2.0".
    pub jsonrpc: String,
    /// Repeated in the answer.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// What is answered to a request that was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// To port.list.
    Ports(Vec<PortStatus>),
    /// To vf.show, vf.set and vf.disconnect.
    Vf(Box<VfStatus>),
    /// To port.show, port.set and port.reset.
    Port(Box<PortStatus>),
    /// To apply.
    Difference(Difference),
    /// To upgrade.
    Upgraded(Upgraded),
}

/// A request that was not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// JSON-RPC's number.
    pub code: i32,
    /// What is wrong, and the remedy.
    pub message: String,
}

/// JSON-RPC: the request is not understood.
pub const INVALID_REQUEST: i32 = -32600;
/// The named VF or port does not exist.
pub const NO_SUCH_NAME: i32 = 1;
/// The host is ending, or too busy to answer.
pub const UNAVAILABLE: i32 = 2;
/// The change makes no sense, or not now.
pub const REFUSED: i32 = 3;

/// A response as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// "2.0".
    pub jsonrpc: String,
    /// The request's.
    pub id: u64,
    /// Served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Answer>,
    /// Not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Response {
    /// The response to request `id`.
    #[must_use]
    pub fn new(id: u64, outcome: Result<Answer, Failure>) -> Self {
        let (result, error) = match outcome {
            Ok(answer) => (Some(answer), None),
            Err(failure) => (None, Some(failure)),
        };
        Self { jsonrpc: "2.0".into(), id, result, error }
    }
}
