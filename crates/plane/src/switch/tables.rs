//! The switch's tables as the frame path wants them: plain values, one mask or one load per question. Whoever owns the
//! ports makes them from what its own software has asked for, and makes them anew when that changes.
//!
//! Left out: where the values come from.

use super::addresses::{Exact, Inexact};
use super::mirror::Mirrors;
use super::vlans::Vlans;
use crate::tag::{self, TAG};
use crate::{Port, Ports};
use units::FCS;

/// The longest frame, check sequence included, where long ones are not accepted; a tag comes on top.
const STANDARD_FRAME: usize = 1518;

/// The longest frame that fits a port, check sequence included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fit {
    untagged: usize,
    tagged: usize,
}

impl Fit {
    /// What Ethernet says.
    pub const STANDARD: Self = Self { untagged: STANDARD_FRAME, tagged: STANDARD_FRAME + TAG };
    /// The same, where every frame has an outer tag.
    pub const WITH_OUTER: Self = Self { untagged: STANDARD_FRAME + TAG, tagged: STANDARD_FRAME + 2 * TAG };

    /// Whether a frame of `length` bytes, check sequence excluded, tag included, fits.
    #[inline]
    fn takes(self, length: usize, tagged: bool) -> bool {
        length + FCS <= if tagged { self.tagged } else { self.untagged }
    }

    /// So many bytes, a tag included.
    #[must_use]
    pub const fn whole(bytes: usize) -> Self {
        Self { untagged: bytes, tagged: bytes }
    }
}

/// The tag of frames that a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortTag {
    /// What the sender asks for.
    #[default]
    Asked,
    /// None, whatever the sender asks for.
    Never,
    /// Always this one, in the place of what the sender asks for.
    Always(u16),
}

/// The tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables<const N: usize> {
    /// Exact addresses.
    pub exact: Exact,
    /// Hashed multicast addresses.
    pub multicast: Inexact,
    /// Hashed unicast addresses.
    pub unicast: Inexact,
    /// Where the twelve bits that are hashed start in an address.
    pub hash_shift: u32,
    /// VLANs.
    pub vlans: Vlans,
    /// Frames are filtered by VLAN.
    pub filter_vlans: bool,
    /// Bits of a tag that must have a value, and that value.
    pub canonical: (u16, u16),
    /// Ports that accept frames without a tag.
    pub untagged: Ports,
    /// Ports that accept broadcasts.
    pub broadcast: Ports,
    /// Ports that accept hashed multicast addresses.
    pub multicast_hits: Ports,
    /// Ports that accept hashed unicast addresses.
    pub unicast_hits: Ports,
    /// Ports that accept every multicast.
    pub every_multicast: Ports,
    /// Addresses are not looked at: every port accepts every frame.
    pub ignore_address: bool,
    /// Ports of a unicast frame from the uplink that no filter knows.
    pub default_ports: Ports,
    /// Ports that may receive.
    pub enabled: Ports,
    /// Ports there are.
    pub all: Ports,
    /// Ports of guests, whose link-local frames are dropped.
    pub guests: Ports,
    /// Link-local frames of guests are switched as others, pause frames excepted. The administrator sets this for the plane,
    /// not for a family's registers.
    pub(crate) forwards_link_local: bool,
    /// A frame goes to everybody who accepts it.
    pub replicate: bool,
    /// A frame goes to one port at most, and only an exact filter finds one for a group.
    pub alone: bool,
    /// Mirror rules: which frames are copied to which ports.
    pub mirrors: Mirrors,
    /// Ports may send to each other.
    pub loopback: bool,
    /// Ports that may send to themselves.
    pub own_loopback: Ports,
    /// Ports that may send from their own addresses only.
    pub check_source: Ports,
    /// Ports that may send into their own VLANs only.
    pub check_vlan: Ports,
    /// Several ports share the switch, and what a port may do is looked at.
    pub shared: bool,
    /// The type of tags.
    pub inner: u16,
    /// The type of outer tags, if they are in use; the tables then are about the inner ones.
    pub outer: Option<u16>,
    /// Ports that get a frame and its tag apart.
    pub strips: Ports,
    /// Everybody gets a replicated frame and its tag apart.
    pub strips_replicated: bool,
    /// The tag of what a port sends.
    pub tags: [PortTag; N],
    /// Bytes of the longest frame that ports send, check sequence excluded, tags included.
    longest: usize,
    fits: [Fit; N],
    /// Bytes of the longest frame that fits every port, check sequence excluded: without a tag, and with one.
    fits_everybody: [usize; 2],
}

impl<const N: usize> Tables<N> {
    /// Tables by which no port receives anything, with room for that many exact addresses.
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

    /// Sets the longest frame that ports send: `bytes`, check sequence excluded, tags included. A port's tag
    /// ([`PortTag::Always`]) may make a longer one of what its sender has handed over.
    pub fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
        self.find_usual();
    }

    /// Finds the frames whose length decides nothing.
    fn find_usual(&mut self) {
        let smallest =
            |of: fn(&Fit) -> usize| self.fits.iter().map(of).min().unwrap_or(0).saturating_sub(FCS);
        self.fits_everybody =
            [smallest(|fit| fit.untagged), smallest(|fit| fit.tagged)].map(|bytes| bytes.min(self.longest));
    }

    /// Checks a frame of `length` bytes, check sequence excluded, tags included, against the longest that ports send.
    pub(super) fn is_too_long(&self, length: usize) -> bool {
        length > self.longest
    }

    /// The tag that is put into a frame of a port whose sender asked for `requested`.
    #[must_use]
    #[inline]
    pub fn transmit_tag(&self, port: Port, requested: Option<u16>) -> Option<u16> {
        match self.tags[port.index::<N>()] {
            PortTag::Asked => requested,
            PortTag::Never => None,
            PortTag::Always(tag) => Some(tag),
        }
    }

    /// Whether a port gets a frame and its tag apart. Replicated frames ([`super::Decision::replicated`]) share one
    /// setting.
    #[must_use]
    #[inline]
    pub fn strips(&self, port: Port, replicated: bool) -> bool {
        if replicated { self.strips_replicated } else { self.strips.has(port) }
    }

    /// Whether no port finds a frame of `length` bytes, check sequence excluded, tag included, too long.
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

    /// Those of `ports` that take a frame of `length` bytes, check sequence excluded, tag included.
    pub(super) fn fitting(&self, ports: Ports, length: usize, tagged: bool) -> Ports {
        if self.fits_everybody(length, tagged) {
            return ports;
        }
        let fitting =
            self.fits.iter().rev().fold(0, |set, fit| set << 1 | u64::from(fit.takes(length, tagged)));
        ports & Ports::new(fitting)
    }
}
