//! Changes of a running port beside its policy: uplink, impairment and recording, link, processors of its thread. The
//! control thread opens and closes uplinks, since both may block.

use super::engine::uplink::{PortUplink, UplinkPipelineStages};
use super::error::PortChangeRefusal;
use crate::config::file::PortLinkRule;
use crate::settings::LinkLocalPolicy;
use host::cpus::CpuList;

/// Change of a port's uplink, link or processors, or the values before a change, which undo the change.
#[derive(Debug)]
pub struct PortReconfiguration {
    /// New uplink of the port, or `None` to keep the present uplink.
    pub(crate) uplink: Option<PortUplink>,
    /// New impairment and recording of the present uplink, or `None` to keep the present ones.
    pub(crate) stages: Option<UplinkPipelineStages>,
    /// Rule by which the port has a link: that of its uplink, or always.
    pub(crate) link: PortLinkRule,
    /// Policy for link-local frames of guests.
    pub(crate) link_local: LinkLocalPolicy,
    /// Processors that the port's thread may run on. An empty set means any.
    pub(crate) cpus: CpuList,
}

/// Result of a port's reconfiguration: the values before the change, or the reason for the refusal together with the
/// refused change.
pub type ReconfigurationResult =
    Result<Box<PortReconfiguration>, (PortChangeRefusal, Box<PortReconfiguration>)>;
