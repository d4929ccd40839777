//! The switch's tables in the form of the frame path: one mask or one load per question. Each family makes them from its registers
//! or orders, and makes them again when these change.

use super::addresses::{Exact, Inexact};
use super::mirror::Mirrors;
use super::vlans::Vlans;
use crate::tag::{self, TAG};
use crate::{Port, Ports};
use units::FCS;

/// Longest untagged frame without jumbo frames, bytes, check sequence included (IEEE 802.3, 3.2.7).
const STANDARD_FRAME: usize = 1518;

/// Longest frame that a port receives, bytes, check sequence included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fit {
    untagged: usize,
    tagged: usize,
}

impl Fit {
    /// Ethernet's limit: 1518 bytes, and 4 more with a tag.
    pub const STANDARD: Self = Self { untagged: STANDARD_FRAME, tagged: STANDARD_FRAME + TAG };
    /// Ethernet's limit where every frame has an outer tag.
    pub const WITH_OUTER: Self = Self { untagged: STANDARD_FRAME + TAG, tagged: STANDARD_FRAME + 2 * TAG };

    /// Returns `true` if a frame of `length` bytes, check sequence excluded, tag included, fits.
    #[inline]
    fn takes(self, length: usize, tagged: bool) -> bool {
        length + FCS <= if tagged { self.tagged } else { self.untagged }
    }

    /// Returns a limit of `bytes`, a tag included.
    #[must_use]
    pub const fn whole(bytes: usize) -> Self {
        Self { untagged: bytes, tagged: bytes }
    }
}

/// Tag of the frames that a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortTag {
    /// The tag that the descriptor requests, if any.
    #[default]
    Asked,
    /// No tag, even if the descriptor requests one.
    Never,
    /// This tag (the port VLAN), instead of one that the descriptor requests.
    Always(u16),
}

/// Tables of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables<const N: usize> {
    /// Exact addresses.
    pub exact: Exact,
    /// Hashed multicast addresses.
    pub multicast: Inexact,
    /// Hashed unicast addresses.
    pub unicast: Inexact,
    /// First of the twelve address bits that are the hash.
    pub hash_shift: u32,
    /// Members of the VLANs.
    pub vlans: Vlans,
    /// The VLAN filter is on.
    pub filter_vlans: bool,
    /// Mask of tag bits, and the value that they must have (82576: RCTL.CFIEN and CFI).
    pub canonical: (u16, u16),
    /// Ports that accept frames without a tag.
    pub untagged: Ports,
    /// Ports that accept broadcasts.
    pub broadcast: Ports,
    /// Ports that accept multicast addresses that match by hash.
    pub multicast_hits: Ports,
    /// Ports that accept unicast addresses that match by hash.
    pub unicast_hits: Ports,
    /// Ports that accept every multicast.
    pub every_multicast: Ports,
    /// The address filter is off: every port accepts every frame.
    pub ignore_address: bool,
    /// Ports of a unicast frame from the uplink that no filter matches.
    pub default_ports: Ports,
    /// Ports that may receive.
    pub enabled: Ports,
    /// All ports of the switch.
    pub all: Ports,
    /// Ports of guests, whose link-local frames are dropped.
    pub guests: Ports,
    /// Link-local frames of guests, except pause frames, are forwarded. The administrator sets this on the plane, so new tables
    /// of a family keep it.
    pub(crate) forwards_link_local: bool,
    /// A frame goes to all ports that accept it; otherwise to the first.
    pub replicate: bool,
    /// Broadcasts and multicasts go to the default port, unless an exact filter matches.
    pub alone: bool,
    /// Mirror rules.
    pub mirrors: Mirrors,
    /// Ports may send to each other.
    pub loopback: bool,
    /// Ports that may send to themselves.
    pub own_loopback: Ports,
    /// Ports that may send from their own addresses only (MAC spoof check).
    pub check_source: Ports,
    /// Ports that may send into their own VLANs only (VLAN spoof check).
    pub check_vlan: Ports,
    /// Several ports share the switch, and the checks of senders apply.
    pub shared: bool,
    /// Ether type of tags.
    pub inner: u16,
    /// Ether type of outer tags, if they are in use. The tables then apply to inner tags.
    pub outer: Option<u16>,
    /// Ports that get frames without their tag, and the tag beside them.
    pub strips: Ports,
    /// Strip the VLAN tag from replicated frames.
    pub strips_replicated: bool,
    /// Tags of sent frames, by port.
    pub tags: [PortTag; N],
    /// Longest frame that ports send, bytes, check sequence excluded, tags included.
    longest: usize,
    /// Longest frame that each port receives.
    fits: [Fit; N],
    /// Longest frame that fits every port, bytes, check sequence excluded: without a tag, and with one.
    fits_everybody: [usize; 2],
}

impl<const N: usize> Tables<N> {
    /// Creates tables by which no port receives anything, with room for this number of exact addresses.
    #[must_use]
    pub fn closed(addresses: usize) -> Self {
        Self {
            exact: Exact::with_room(addresses),
            multicast: Inexact::from_words(|_| 0),
            unicast: Inexact::from_words(|_| 0),
            hash_shift: 0,
            vlans: Vlans::new(),
            filter_vlans: false,
            canonical: (0, 0),
            untagged: Ports::NONE,
            broadcast: Ports::NONE,
            multicast_hits: Ports::NONE,
            unicast_hits: Ports::NONE,
            every_multicast: Ports::NONE,
            ignore_address: false,
            default_ports: Ports::NONE,
            enabled: Ports::NONE,
            all: Ports::NONE,
            guests: Ports::NONE,
            forwards_link_local: false,
            replicate: false,
            alone: false,
            mirrors: Mirrors::NONE,
            loopback: false,
            own_loopback: Ports::NONE,
            check_source: Ports::NONE,
            check_vlan: Ports::NONE,
            shared: false,
            inner: tag::TYPE,
            outer: None,
            strips: Ports::NONE,
            strips_replicated: false,
            tags: [PortTag::Asked; N],
            longest: usize::MAX,
            fits: [Fit::STANDARD; N],
            fits_everybody: [STANDARD_FRAME - FCS, STANDARD_FRAME + TAG - FCS],
        }
    }

    /// Sets the longest frame that each port receives.
    pub fn set_fits(&mut self, fits: [Fit; N]) {
        self.fits = fits;
        self.find_usual();
    }

    /// Sets the longest frame that ports send: `bytes`, check sequence excluded, tags included. A port VLAN ([`PortTag::Always`])
    /// may lengthen the guest's frame beyond it.
    pub fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
        self.find_usual();
    }

    /// Finds the length up to which the length decides nothing.
    fn find_usual(&mut self) {
        let smallest =
            |of: fn(&Fit) -> usize| self.fits.iter().map(of).min().unwrap_or(0).saturating_sub(FCS);
        self.fits_everybody =
            [smallest(|fit| fit.untagged), smallest(|fit| fit.tagged)].map(|bytes| bytes.min(self.longest));
    }

    /// Returns `true` if a frame of `length` bytes, check sequence excluded, tags included, exceeds the longest that ports send.
    pub(super) fn is_too_long(&self, length: usize) -> bool {
        length > self.longest
    }

    /// Returns the tag of a frame of a port whose descriptor requests `requested`.
    #[must_use]
    #[inline]
    pub fn transmit_tag(&self, port: Port, requested: Option<u16>) -> Option<u16> {
        match self.tags[port.index::<N>()] {
            PortTag::Asked => requested,
            PortTag::Never => None,
            PortTag::Always(tag) => Some(tag),
        }
    }

    /// Returns `true` if a port gets frames without their tag. Replicated frames ([`super::Decision::replicated`]) have a setting
    /// of their own.
    #[must_use]
    #[inline]
    pub fn strips(&self, port: Port, replicated: bool) -> bool {
        if replicated { self.strips_replicated } else { self.strips.has(port) }
    }

    /// Returns `true` if a frame of `length` bytes, check sequence excluded, tag included, fits every port.
    #[inline]
    pub(super) fn fits_everybody(&self, length: usize, tagged: bool) -> bool {
        length <= self.fits_everybody[usize::from(tagged)]
    }

    /// Returns the bytes of the longest frame that ports send, check sequence excluded, tag included.
    pub(crate) fn longest_sent(&self) -> usize {
        self.longest
    }

    /// Returns the bytes of the longest frame that a port takes, check sequence excluded, tag included.
    #[inline]
    pub(crate) fn longest_taken(&self, port: Port, tagged: bool) -> usize {
        let fit = &self.fits[port.index::<N>()];
        (if tagged { fit.tagged } else { fit.untagged }).saturating_sub(FCS)
    }

    /// Returns those of `ports` that take a frame of `length` bytes, check sequence excluded, tag included.
    pub(super) fn fitting(&self, ports: Ports, length: usize, tagged: bool) -> Ports {
        if self.fits_everybody(length, tagged) {
            return ports;
        }
        let fitting =
            self.fits.iter().rev().fold(0, |set, fit| set << 1 | u64::from(fit.takes(length, tagged)));
        ports & Ports::new(fitting)
    }
}
