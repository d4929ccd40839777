//! The control socket's protocol: JSON-RPC 2.0, one request and one response, each a line. Left out: batches
//! and notifications.

use super::status::{PortStatus, VfStatus};
pub use crate::policy::{Change, PortChange};
use serde::{Deserialize, Serialize};

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
        change: PortChange,
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
        change: Change,
    },
    /// Lets a VF's client go; its machine lives on without the VF.
    #[serde(rename = "vf.disconnect")]
    VfDisconnect {
        /// The VF, such as pf0vf3.
        vf: String,
    },
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
/// The change makes no sense, or not now.
pub const REFUSED: i32 = 3;
/// The host is ending, or too busy to answer.
pub const UNAVAILABLE: i32 = 2;

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
