//! The switch's tables in a form that answers each question of the frame path by one mask or one load. Each family
//! makes them from its registers or orders, and makes them again when these change.

use super::addresses::{ExactFilter, HashFilter};
use super::guards::PortGuards;
use super::kept::ResetCounts;
use super::mirror::PortMirrorRules;
use super::vlans::VlanTable;
use crate::tag::{self, TAG};
use crate::{PortIndex, PortSet};
use units::FCS;

/// Longest untagged frame without jumbo frames, bytes, check sequence included (IEEE 802.3, 3.2.7).
const STANDARD_FRAME: usize = 1518;

/// Lengths of the longest frames that a port receives, without and with a VLAN tag, in bytes, check sequence included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaxFrameLength {
    untagged: usize,
    tagged: usize,
}

impl MaxFrameLength {
    /// Ethernet's limit on a frame's length: 1518 bytes, and 4 more with a tag.
    pub const STANDARD: Self = Self { untagged: STANDARD_FRAME, tagged: STANDARD_FRAME + TAG };
    /// Ethernet's limit on a frame's length where every frame has an outer tag.
    pub const WITH_OUTER: Self = Self { untagged: STANDARD_FRAME + TAG, tagged: STANDARD_FRAME + 2 * TAG };

    /// Returns `true` if a frame of `length` bytes is within the length limit, check sequence excluded, tag included.
    #[inline]
    fn takes(self, length: usize, tagged: bool) -> bool {
        length + FCS <= if tagged { self.tagged } else { self.untagged }
    }

    /// Returns the limit of `bytes` bytes on a frame's length, whether the frame has a tag or not.
    #[must_use]
    pub const fn whole(bytes: usize) -> Self {
        Self { untagged: bytes, tagged: bytes }
    }
}

/// Choice of the VLAN tag in frames that a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagInsertion {
    /// Every frame of the port gets the tag that its descriptor requests, if any.
    #[default]
    Asked,
    /// Every frame of the port gets no tag, even if its descriptor requests one.
    Never,
    /// Every frame of the port gets this tag (the port VLAN), instead of one that its descriptor requests.
    Always(u16),
}

/// Tables by which the switch decides on frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchTables<const N: usize> {
    /// Filter of exact MAC addresses.
    pub exact: ExactFilter,
    /// Hash filter of multicast addresses.
    pub multicast: HashFilter,
    /// Hash filter of unicast addresses.
    pub unicast: HashFilter,
    /// Lowest of the twelve address bits that the hash filters use.
    pub hash_shift: u32,
    /// Member ports of the VLANs.
    pub vlans: VlanTable,
    /// True if the VLAN filter is on.
    pub filter_vlans: bool,
    /// Mask of tag bits, and the value that these bits must have in a received frame (82576: RCTL.CFIEN and CFI).
    pub canonical: (u16, u16),
    /// Ports that accept frames without a tag.
    pub untagged: PortSet,
    /// Ports that accept broadcasts.
    pub broadcast: PortSet,
    /// Ports that accept multicast addresses that match by hash.
    pub multicast_hits: PortSet,
    /// Ports that accept unicast addresses that match by hash.
    pub unicast_hits: PortSet,
    /// Ports that accept every multicast.
    pub every_multicast: PortSet,
    /// True if the address filter is off: every port accepts every frame.
    pub ignore_address: bool,
    /// Ports that get a unicast frame from the uplink that no filter matches.
    pub default_ports: PortSet,
    /// Ports that may receive frames.
    pub enabled: PortSet,
    /// All ports of the switch.
    pub all: PortSet,
    /// Ports of guests, whose link-local frames are dropped.
    pub guests: PortSet,
    /// True if link-local frames of guests, except pause and MAC control frames, are forwarded. The administrator sets this on the
    /// plane, so new tables of a family keep it.
    pub(crate) forwards_link_local: bool,
    /// Guards of the ports' frames, which the administrator sets too.
    pub(crate) guards: PortGuards,
    /// Resets of the ports' functions. The addresses that a port loses by a reset stay its own for a while. The plane takes the
    /// counts out of the tables, so a reset that changes no table keeps the remembered flows.
    pub resets: ResetCounts<N>,
    /// True to send a group frame to all ports that accept it, false to send it to the first of them.
    pub replicate: bool,
    /// True if broadcasts and multicasts go to the default port, unless an exact filter matches.
    pub alone: bool,
    /// Mirror rules of the switch.
    pub mirrors: PortMirrorRules,
    /// True if ports may send to each other.
    pub loopback: bool,
    /// Ports that may send to themselves.
    pub own_loopback: PortSet,
    /// Ports that may send from their own addresses only (MAC spoof check).
    pub check_source: PortSet,
    /// Ports that may send into their own VLANs only (VLAN spoof check).
    pub check_vlan: PortSet,
    /// True if several ports share the switch, and the checks of senders apply.
    pub shared: bool,
    /// Ether type of (inner) VLAN tags.
    pub inner: u16,
    /// Ether type of outer tags, if they are in use. The tables then apply to inner tags.
    pub outer: Option<u16>,
    /// Ports that get frames without their VLAN tag, and the tag beside the frame.
    pub strips: PortSet,
    /// True to strip the VLAN tag from replicated frames.
    pub strips_replicated: bool,
    /// Choice of the VLAN tag in the frames that each port sends.
    pub tags: [TagInsertion; N],
    /// Length of the longest frame that ports send, in bytes, check sequence excluded, tags included.
    longest: usize,
    /// Length of the longest frame that each port receives.
    fits: [MaxFrameLength; N],
    /// Length of the longest frame that every port receives, in bytes, check sequence excluded: without a tag, and with
    /// one.
    fits_everybody: [usize; 2],
}

impl<const N: usize> SwitchTables<N> {
    /// Creates tables by which no port receives anything, with room for this number of exact addresses.
    #[must_use]
    pub fn closed(addresses: usize) -> Self {
        Self {
            exact: ExactFilter::with_room(addresses),
            multicast: HashFilter::from_words(|_| 0),
            unicast: HashFilter::from_words(|_| 0),
            hash_shift: 0,
            vlans: VlanTable::new(),
            filter_vlans: false,
            canonical: (0, 0),
            untagged: PortSet::NONE,
            broadcast: PortSet::NONE,
            multicast_hits: PortSet::NONE,
            unicast_hits: PortSet::NONE,
            every_multicast: PortSet::NONE,
            ignore_address: false,
            default_ports: PortSet::NONE,
            enabled: PortSet::NONE,
            all: PortSet::NONE,
            guests: PortSet::NONE,
            forwards_link_local: false,
            guards: PortGuards::default(),
            resets: ResetCounts::default(),
            replicate: false,
            alone: false,
            mirrors: PortMirrorRules::NONE,
            loopback: false,
            own_loopback: PortSet::NONE,
            check_source: PortSet::NONE,
            check_vlan: PortSet::NONE,
            shared: false,
            inner: tag::TYPE,
            outer: None,
            strips: PortSet::NONE,
            strips_replicated: false,
            tags: [TagInsertion::Asked; N],
            longest: usize::MAX,
            fits: [MaxFrameLength::STANDARD; N],
            fits_everybody: [STANDARD_FRAME - FCS, STANDARD_FRAME + TAG - FCS],
        }
    }

    /// Sets the length of the longest frame that each port receives.
    pub fn set_fits(&mut self, fits: [MaxFrameLength; N]) {
        self.fits = fits;
        self.find_usual();
    }

    /// Sets the length of the longest frame that one port receives.
    pub fn set_fit(&mut self, port: PortIndex, fit: MaxFrameLength) {
        self.fits[port.index::<N>()] = fit;
        self.find_usual();
    }

    /// Sets the length of the longest frame that ports send: `bytes`, check sequence excluded, tags included. A port
    /// VLAN ([`TagInsertion::Always`]) may lengthen the guest's frame beyond it.
    pub fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
        self.find_usual();
    }

    /// Finds the length up to which a frame fits every port, so that the length need not be checked.
    fn find_usual(&mut self) {
        let smallest = |of: fn(&MaxFrameLength) -> usize| {
            self.fits.iter().map(of).min().unwrap_or(0).saturating_sub(FCS)
        };
        self.fits_everybody =
            [smallest(|fit| fit.untagged), smallest(|fit| fit.tagged)].map(|bytes| bytes.min(self.longest));
    }

    /// Returns `true` if a frame of `length` bytes, check sequence excluded, tags included, exceeds the longest that ports send.
    pub(super) fn is_too_long(&self, length: usize) -> bool {
        length > self.longest
    }

    /// Returns the VLAN tag of a frame that a port sends. `requested` is the tag that the frame's descriptor requests.
    #[must_use]
    #[inline]
    pub fn transmit_tag(&self, port: PortIndex, requested: Option<u16>) -> Option<u16> {
        match self.tags[port.index::<N>()] {
            TagInsertion::Asked => requested,
            TagInsertion::Never => None,
            TagInsertion::Always(tag) => Some(tag),
        }
    }

    /// Returns `true` if a port gets frames without their tag. Replicated frames
    /// ([`super::SwitchDecision::replicated`]) have a setting of their own.
    #[must_use]
    #[inline]
    pub fn strips(&self, port: PortIndex, replicated: bool) -> bool {
        if replicated { self.strips_replicated } else { self.strips.has(port) }
    }

    /// Returns `true` if a frame of `length` bytes, check sequence excluded, tag included, fits every port.
    #[inline]
    pub(super) fn fits_everybody(&self, length: usize, tagged: bool) -> bool {
        length <= self.fits_everybody[usize::from(tagged)]
    }

    /// Returns the number of bytes in the longest frame that ports send, check sequence excluded, tag included.
    pub(crate) fn longest_sent(&self) -> usize {
        self.longest
    }

    /// Returns the number of bytes in the longest frame that a port receives, check sequence excluded, tag included.
    #[inline]
    pub(crate) fn longest_taken(&self, port: PortIndex, tagged: bool) -> usize {
        let fit = &self.fits[port.index::<N>()];
        (if tagged { fit.tagged } else { fit.untagged }).saturating_sub(FCS)
    }

    /// Returns those of `ports` that receive frames of `length` bytes, check sequence excluded, tag included.
    pub(super) fn fitting(&self, ports: PortSet, length: usize, tagged: bool) -> PortSet {
        if self.fits_everybody(length, tagged) {
            return ports;
        }
        let fitting =
            self.fits.iter().rev().fold(0, |set, fit| set << 1 | u64::from(fit.takes(length, tagged)));
        ports & PortSet::new(fitting)
    }
}
