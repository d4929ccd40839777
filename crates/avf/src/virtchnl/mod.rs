//! The messages that a VF and its PF exchange (virtchnl 1.1), as types. A message is an operation, a status and a body;
//! the operation and the status travel in the descriptor ([`crate::admin`]), the body in its buffer. Everything is little
//! endian.
//!
//! | module | messages about |
//! |---|---|
//! | [`op`], [`status`] | the operation and its result |
//! | [`request`] | all requests of a VF: decoded with their length rules, and encoded |
//! | [`resources`] | version, capabilities, resources of a VF |
//! | [`queues`] | rings, vectors, switching on and off |
//! | [`filters`] | addresses, VLANs, promiscuity |
//! | [`vlan_offload`] | stripping and inserting tags (VLAN V2) |
//! | [`reply`] | bodies of replies, statistics, and events that the PF sends unasked |
//! | [`list`] | lists of elements |
//!
//! The PF decides which requests it grants.

pub mod filters;
pub mod list;
pub mod op;
pub mod queues;
pub mod reply;
pub mod request;
pub mod resources;
pub mod status;
#[cfg(test)]
mod tests;
pub mod vlan_offload;

pub use filters::{EtherAddress, EtherAddressType, VlanFilter, VlanFilterTag};
pub use list::{EncodedMessageList, MessageList, MessageListElement};
pub use op::VirtchnlOpcode;
pub use queues::{QueueChunk, QueuePairInfo, QueueSet, QueueType, RxQueueInfo, TxQueueInfo, VectorMap};
pub use reply::{LinkSpeed, VfTrafficStatistics, VirtchnlEvent};
pub use request::{MalformedRequest, VirtchnlRequest};
pub use resources::{VfCapabilities, VfResources, VirtchnlVersion};
pub use status::VirtchnlStatus;
pub use vlan_offload::{VlanCapabilities, VlanOffloadKind, VlanSetting};
