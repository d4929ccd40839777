//! Changes of a running port beside its policy: uplink, stages on the uplink, link, processors of its thread. The
//! control thread opens and closes uplinks, since both may block.

use super::engine::uplink::{PortUplink, UplinkStages};
use super::error::RefusedChange;
use crate::config::file::{LinkLocalPolicy, PortLinkRule};
use host::cpus::CpuList;

/// Change of a port's uplink, link or processors, or the former values that undo the change.
#[derive(Debug)]
pub struct PortReconfiguration {
    /// New uplink of the port. `None` keeps the present uplink.
    pub(crate) uplink: Option<PortUplink>,
    /// New stages before the present uplink. `None` keeps the present stages.
    pub(crate) stages: Option<UplinkStages>,
    /// Policy for the port's link.
    pub(crate) link: PortLinkRule,
    /// Policy for link-local frames of guests.
    pub(crate) link_local: LinkLocalPolicy,
    /// Processors that the port's thread may run on. An empty set means any.
    pub(crate) cpus: CpuList,
}

/// Result of a change: the former values, which undo it; or the reason for the refusal, and the change itself.
pub type ReconfigurationResult = Result<Box<PortReconfiguration>, (RefusedChange, Box<PortReconfiguration>)>;
