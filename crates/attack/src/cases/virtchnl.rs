//! Cases on virtchnl requests of Adaptive Virtual Functions: bodies and filters that no driver sends.

use super::remedies::{AVF_FILTERS, AVF_VLANS, VIRTCHNL};
use crate::case::AttackCase;
use crate::field::Field::{self, Bytes, Fill, Repeat, U8, U16, U32, U64, Vsi};
use crate::guest::PfAnswer::{Accepted, Refused, Reply};
use avf::virtchnl::VirtchnlOpcode as Op;

/// Row of a request and its answer.
macro_rules! request {
    ($name:literal, $rule:literal, $remedy:expr, $operation:expr, $body:expr, $answer:expr $(,)?) => {
        $crate::case::row(
            $name,
            $crate::family::AttackedFamily::Avf,
            $rule,
            $remedy,
            $crate::case::Attack::Guest(
                $crate::guest::GuestStart::Known,
                &[$crate::guest::GuestStep::Message($operation as u32, $body, $answer)],
            ),
        )
    };
}
pub(super) use request;

/// Address of a station with an index, as an element of a list.
const ADDRESS: &[Field] = &[Bytes(&[2, 0, 0, 9, 9, 9]), U16(0)];

pub(super) const CASES: &[AttackCase] = &[
    request!(
        "no-address",
        "An empty list of addresses is refused",
        AVF_FILTERS,
        Op::AddEthAddr,
        &[Vsi, U16(0)],
        Refused
    ),
    request!(
        "addresses-beyond-the-quota",
        "More addresses than a VF may have are refused before any is looked up",
        AVF_FILTERS,
        Op::AddEthAddr,
        &[Vsi, U16(400), Repeat(400, ADDRESS)],
        Refused
    ),
    request!(
        "addresses-of-another-vsi",
        "A VF may not add an address to a VSI that is not its own",
        AVF_FILTERS,
        Op::AddEthAddr,
        &[U16(0xffff), U16(1), Bytes(&[2, 0, 0, 9, 9, 9]), U16(0)],
        Refused
    ),
    request!(
        "delete-broadcast",
        "Broadcast is no address that a VF could give up",
        AVF_FILTERS,
        Op::DelEthAddr,
        &[Vsi, U16(1), Fill(0xff, 6), U16(0)],
        Refused
    ),
    request!(
        "delete-a-neighbours-address",
        "A request to delete an address that another VF has changes nothing of that VF",
        AVF_FILTERS,
        Op::DelEthAddr,
        &[Vsi, U16(1), Field::NeighbourMac, U16(0)],
        Reply
    ),
    request!(
        "promiscuity-of-another-vsi",
        "A VF may not make another VSI promiscuous",
        AVF_FILTERS,
        Op::ConfigPromiscuousMode,
        &[U16(0xffff), U16(3)],
        Refused
    ),
    request!(
        "promiscuity-of-every-bit",
        "A VF without permission gets no frame of others, though the request succeeds",
        AVF_FILTERS,
        Op::ConfigPromiscuousMode,
        &[Vsi, U16(0xffff)],
        Accepted
    ),
    request!(
        "vlans-of-another-vsi",
        "A VF may not add a VLAN to a VSI that is not its own",
        AVF_VLANS,
        Op::AddVlanV2,
        &[U16(0xffff), U16(1), U32(0), Fill(0, 32)],
        Refused
    ),
    request!(
        "vlan-filter-of-an-unknown-type",
        "A VLAN filter of an unknown Ethernet type is refused",
        AVF_VLANS,
        Op::AddVlanV2,
        &[Vsi, U16(1), U32(0), Fill(0, 8), U16(5), U16(0), U16(0x9999), U16(0), Fill(0, 16)],
        Refused
    ),
    request!(
        "vlan-filter-cut-off",
        "A VLAN filter that is cut off is refused",
        AVF_VLANS,
        Op::AddVlanV2,
        &[Vsi, U16(1), U32(0), Fill(0, 31)],
        Refused
    ),
    request!(
        "vlan-filter-with-a-byte-more",
        "A list of VLAN filters is as long as its count says",
        AVF_VLANS,
        Op::DelVlanV2,
        &[Vsi, U16(1), U32(0), Fill(0, 33)],
        Refused
    ),
    request!(
        "stripping-of-the-first-version",
        "Stripping by the first version is refused where the second is agreed",
        AVF_VLANS,
        Op::EnableVlanStripping,
        &[],
        Refused
    ),
    request!(
        "stripping-with-a-body",
        "A request without fields has no body",
        AVF_VLANS,
        Op::DisableVlanStripping,
        &[U8(0)],
        Refused
    ),
    request!(
        "insertion-of-an-unknown-type",
        "A tag of a type that was not offered is not inserted",
        AVF_VLANS,
        Op::EnableVlanInsertionV2,
        &[U32(u32::MAX), U32(0), Vsi, Fill(0, 6)],
        Refused
    ),
    request!(
        "stripping-of-another-vsi",
        "A VF may not strip the tags of another VSI",
        AVF_VLANS,
        Op::EnableVlanStrippingV2,
        &[U32(1), U32(0), U16(0xffff), Fill(0, 6)],
        Refused
    ),
    request!(
        "statistics-of-another-vsi",
        "A VF cannot read the counters of another VSI",
        VIRTCHNL,
        Op::GetStats,
        &[U16(0xffff), U16(0), U32(0), U32(0)],
        Refused
    ),
    request!(
        "hash-key-of-one-byte",
        "A hash key of another length than the card's is refused",
        VIRTCHNL,
        Op::ConfigRssKey,
        &[Vsi, U16(1), U8(1)],
        Refused
    ),
    request!(
        "hash-key-of-no-bytes",
        "A hash key of no bytes is refused",
        VIRTCHNL,
        Op::ConfigRssKey,
        &[Vsi, U16(0)],
        Refused
    ),
    request!(
        "hash-key-of-another-vsi",
        "A VF cannot set the hash key of another VSI",
        VIRTCHNL,
        Op::ConfigRssKey,
        &[U16(0xffff), U16(52), Fill(1, 52)],
        Refused
    ),
    request!(
        "hash-table-longer-than-the-card",
        "A hash table of another length than the card's is refused",
        VIRTCHNL,
        Op::ConfigRssLut,
        &[Vsi, U16(2048), Fill(0, 2048)],
        Refused
    ),
    request!(
        "hash-types-of-every-bit",
        "Packet types that cannot be hashed are ignored, and index no table",
        VIRTCHNL,
        Op::SetRssHena,
        &[U64(u64::MAX)],
        Accepted
    ),
    request!(
        "hash-function-99",
        "A hash function that does not exist is refused",
        VIRTCHNL,
        Op::ConfigRssHfunc,
        &[Vsi, U16(99), U32(0)],
        Refused
    ),
    request!(
        "no-queue-pairs-requested",
        "A request for no queue pairs is answered with the most the VF may have",
        VIRTCHNL,
        Op::RequestQueues,
        &[U16(0)],
        Reply
    ),
    request!(
        "event-from-a-vf",
        "Only the PF sends events: one of a VF is refused",
        VIRTCHNL,
        Op::Event,
        &[U32(1), Fill(0, 12)],
        Reply
    ),
    request!(
        "version-of-four-bytes",
        "A version without its second number is refused",
        VIRTCHNL,
        Op::Version,
        &[U32(1)],
        Refused
    ),
    request!(
        "version-of-the-future",
        "An unknown version is answered with the PF's own",
        VIRTCHNL,
        Op::Version,
        &[U32(u32::MAX), U32(u32::MAX)],
        Accepted
    ),
    request!(
        "resources-with-three-bytes",
        "Capabilities of three bytes are refused",
        VIRTCHNL,
        Op::GetVfResources,
        &[Fill(0xff, 3)],
        Refused
    ),
    request!(
        "resources-of-no-capability",
        "A VF without any capability gets its resources",
        VIRTCHNL,
        Op::GetVfResources,
        &[U32(0)],
        Accepted
    ),
    request!(
        "reset-with-a-body",
        "A reset request with a body resets nothing, and is refused",
        VIRTCHNL,
        Op::ResetVf,
        &[U32(1)],
        Refused
    ),
    request!(
        "hash-types-with-a-body",
        "A question without fields has no body",
        VIRTCHNL,
        Op::GetRssHenaCaps,
        &[U64(0)],
        Refused
    ),
];
