//! The VF of either family, as a guest or a poller drives it. Which family it is, the function's own ids say. Left out: what
//! only one family has, for which there are the drivers themselves.

use crate::GuestError;
use crate::hal::Bus;
use avf::virtchnl::{self, Capabilities};
use driver::avf::vf::{self as adaptive, Wishes};
use driver::vf::{Checksum, Event, LinkCheck, Received, RxCounters, Statistics, TxCounters, TxError};
use driver::vf::{TxOffload, local_mac};
use i82576::MacAddress;

/// Queue pairs of an Adaptive Virtual Function that are used at most.
pub(crate) const MOST_PAIRS: u16 = 4;

/// Frames that are passed over at a time.
const LOOKS: usize = 64;

/// Which VF a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Intel's 82576.
    I82576,
    /// Intel's Adaptive Virtual Function.
    Avf,
}

impl Family {
    /// The family of a vendor and a device id, if it is one.
    #[must_use]
    pub fn of(vendor: u16, device: u16) -> Option<Self> {
        match (vendor, device) {
            (i82576::ids::VENDOR, i82576::ids::DEVICE_VF) => Some(Self::I82576),
            (avf::ids::VENDOR, avf::ids::DEVICE) => Some(Self::Avf),
            _ => None,
        }
    }

    /// The driver, for people.
    #[must_use]
    pub fn driver(self) -> &'static str {
        match self {
            Self::I82576 => "softiov driver::vf",
            Self::Avf => "softiov driver::avf::vf",
        }
    }

    /// Bytes that BAR0 must have.
    pub(crate) fn bar0_size(self) -> u64 {
        match self {
            Self::I82576 => i82576::ids::VF_BAR0_SIZE as u64,
            Self::Avf => avf::ids::BAR0_SIZE as u64,
        }
    }

    /// Vectors that a function must have, and those that are used at most.
    pub(crate) fn vectors(self) -> (usize, usize) {
        match self {
            Self::I82576 => (i82576::ids::VF_VECTORS, i82576::ids::VF_VECTORS),
            Self::Avf => (avf::ids::MIN_VECTORS, usize::from(MOST_PAIRS) + 1),
        }
    }
}

/// What the owner of a VF wants, whichever it turns out to be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Of an 82576, and where an address comes from if the PF gives none.
    pub i82576: driver::vf::Config,
    /// Of an Adaptive Virtual Function. More than four queue pairs have no vector.
    pub avf: Wishes,
}

impl Default for Wanted {
    /// As a guest wants it that hears interrupts: rings of 256, 20,000 interrupts a second, every queue in use.
    fn default() -> Self {
        let avf = Wishes {
            pairs: MOST_PAIRS,
            descriptors: 256,
            batch: 16,
            interval_us: 50,
            spread: true,
            ..Wishes::default()
        };
        Self { i82576: driver::vf::Config::default(), avf }
    }
}

impl Wanted {
    /// The same, with receive descriptors of a flexible form in an Adaptive Virtual Function.
    #[must_use]
    pub fn flexible(mut self) -> Self {
        self.avf.capabilities = self.avf.capabilities.and(Capabilities::RX_FLEX_DESC);
        self.avf.form = avf::descriptor::rx::Form::FlexLate;
        self
    }
}

/// What a look at the link found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Frames can move.
    Up,
    /// They cannot, for now.
    Down,
    /// The function was reset: [`Vf::restart`].
    ResetNeeded,
}

/// What the driver has counted of a pair of rings, across resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCounters {
    /// Of the receive ring.
    pub rx: RxCounters,
    /// Of the transmit ring.
    pub tx: TxCounters,
}

/// A VF and its driver.
#[derive(Debug)]
pub enum Vf {
    /// Of an 82576.
    I82576(Box<driver::Vf>),
    /// An Adaptive Virtual Function.
    Avf(Box<adaptive::Vf>),
}

impl From<driver::Vf> for Vf {
    fn from(vf: driver::Vf) -> Self {
        Self::I82576(Box::new(vf))
    }
}

impl Vf {
    /// Finds out what the function has. Nothing moves before [`Vf::start`].
    ///
    /// # Errors
    /// [`GuestError::Vf`], [`GuestError::Avf`].
    pub fn probe<B: Bus>(bus: &mut B, family: Family, wanted: &Wanted) -> Result<Self, GuestError> {
        Ok(match family {
            Family::I82576 => driver::Vf::probe(bus, &wanted.i82576)?.into(),
            Family::Avf => {
                let mac = local_mac(wanted.i82576.seed);
                Self::Avf(Box::new(adaptive::Vf::probe_with(bus, mac, wanted.avf)?))
            }
        })
    }

    /// Brings the function up.
    ///
    /// # Errors
    /// [`GuestError::Vf`], [`GuestError::Avf`].
    pub fn start<B: Bus>(&mut self, bus: &mut B) -> Result<(), GuestError> {
        match self {
            Self::I82576(vf) => Ok(vf.start(bus)?),
            Self::Avf(vf) => Ok(vf.start(bus)?),
        }
    }

    /// Brings the function up again after a reset. Frames that were under way are lost.
    ///
    /// # Errors
    /// [`GuestError::Vf`], [`GuestError::Avf`].
    pub fn restart<B: Bus>(&mut self, bus: &mut B) -> Result<(), GuestError> {
        match self {
            Self::I82576(vf) => Ok(vf.restart(bus)?),
            Self::Avf(vf) => Ok(vf.restart(bus)?),
        }
    }

    /// Takes the function down, as far as it is still there.
    pub fn stop<B: Bus>(&mut self, bus: &mut B) {
        match self {
            Self::I82576(vf) => vf.stop(bus),
            Self::Avf(vf) if !bus.is_gone() => drop(vf.stop(bus)),
            Self::Avf(_) => {}
        }
    }

    /// Which it is.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::I82576(_) => Family::I82576,
            Self::Avf(_) => Family::Avf,
        }
    }

    /// The address in use. A reset may bring another.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        match self {
            Self::I82576(vf) => vf.mac(),
            Self::Avf(vf) => vf.mac(),
        }
    }

    /// Whether every transmit queue has that many free descriptors.
    pub fn has_room<B: Bus>(&mut self, bus: &mut B, wanted: usize) -> bool {
        let free = |vf: &Self| match vf {
            Self::I82576(vf) => vf.tx_free(),
            Self::Avf(vf) => vf.tx_free(),
        };
        if free(self) < wanted {
            // What is queued must be told of before it can come back.
            self.flush(bus);
            match self {
                Self::I82576(vf) => vf.clean(bus),
                Self::Avf(vf) => vf.clean(bus),
            };
        }
        free(self) >= wanted
    }

    /// Queues a packet. The card hears of it at the latest with [`Vf::flush`].
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit<B: Bus>(
        &mut self,
        bus: &mut B,
        packet: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        match self {
            Self::I82576(vf) => vf.transmit(bus, packet, offload),
            Self::Avf(vf) => vf.transmit_flow(bus, packet, offload),
        }
    }

    /// Rings the doorbell for what is queued.
    pub fn flush<B: Bus>(&mut self, bus: &mut B) {
        match self {
            Self::I82576(vf) => vf.flush(bus),
            Self::Avf(vf) => vf.flush(bus),
        }
    }

    /// The next received frame, copied to the front of `into`; `None` if there is none. One that cannot be had is passed over
    /// and counted. Hashes are not told.
    pub fn receive<B: Bus>(&mut self, bus: &mut B, into: &mut [u8]) -> Option<Received> {
        match self {
            Self::I82576(vf) => {
                for _ in 0..LOOKS {
                    if let Ok(received) = vf.receive(bus, into) {
                        return received;
                    }
                }
                None
            }
            Self::Avf(vf) => vf.receive_any(bus, into).as_ref().map(told),
        }
    }

    /// To be called when a vector's message arrives.
    pub fn handle_interrupt<B: Bus>(&mut self, bus: &mut B, vector: u16) -> Event {
        match self {
            Self::I82576(vf) => vf.handle_interrupt(bus, vector),
            Self::Avf(vf) => vf.handle_interrupt(bus, vector),
        }
    }

    /// Every received frame was taken: buffers go back to the card, and the next frame may interrupt.
    pub fn receive_done<B: Bus>(&mut self, bus: &mut B) {
        match self {
            Self::I82576(vf) => vf.receive_done(bus),
            Self::Avf(vf) => vf.receive_done(bus),
        }
    }

    /// Looks at the link. A function that was taken down needs what one needs that was reset.
    pub fn check_link<B: Bus>(&mut self, bus: &mut B) -> Link {
        match self {
            Self::I82576(vf) => link(vf.check_link(bus), vf.is_running()),
            Self::Avf(vf) => adaptive_link(vf.check_link(bus), vf.is_running()),
        }
    }

    /// The same with the driver's periodic work.
    pub fn watchdog<B: Bus>(&mut self, bus: &mut B) -> Link {
        match self {
            Self::I82576(vf) => link(vf.watchdog(bus), vf.is_running()),
            Self::Avf(vf) => adaptive_link(vf.watchdog(bus), vf.is_running()),
        }
    }

    /// What the card has counted. An Adaptive Virtual Function does not tell frames of other VFs apart, nor count check
    /// sequences; zero if the PF does not answer.
    pub fn statistics<B: Bus>(&mut self, bus: &mut B) -> Statistics {
        match self {
            Self::I82576(vf) => vf.statistics(bus),
            Self::Avf(vf) => counted(&vf.statistics(bus).unwrap_or_default()),
        }
    }

    /// What the driver has counted, of each pair of rings.
    #[must_use]
    pub fn queue_counters(&self) -> Vec<QueueCounters> {
        match self {
            Self::I82576(vf) => vec![QueueCounters { rx: vf.rx_counters(), tx: vf.tx_counters() }],
            Self::Avf(vf) => vf.queue_counters().map(|(rx, tx)| QueueCounters { rx, tx }).collect(),
        }
    }
}

fn link(check: LinkCheck, running: bool) -> Link {
    match check {
        LinkCheck::ResetNeeded => Link::ResetNeeded,
        LinkCheck::Up(_) => Link::Up,
        LinkCheck::Down if !running => Link::ResetNeeded,
        LinkCheck::Down | LinkCheck::Gone => Link::Down,
    }
}

fn adaptive_link(check: adaptive::Link, running: bool) -> Link {
    match check {
        adaptive::Link::ResetNeeded => Link::ResetNeeded,
        adaptive::Link::Up(_) => Link::Up,
        adaptive::Link::Down if !running => Link::ResetNeeded,
        adaptive::Link::Down => Link::Down,
    }
}

/// What an Adaptive Virtual Function says of a frame.
fn told(received: &adaptive::Received) -> Received {
    let checksum = |wrong: Option<bool>| match wrong {
        None => Checksum::Unknown,
        Some(false) => Checksum::Good,
        Some(true) => Checksum::Bad,
    };
    Received {
        length: received.length,
        ip_checksum: checksum(received.said.checksums.map(|found| found.ip_wrong)),
        l4_checksum: checksum(received.said.checksums.map(|found| found.l4_wrong)),
        vlan: received.said.tag,
        rss: None,
    }
}

fn counted(of: &virtchnl::Statistics) -> Statistics {
    Statistics {
        rx_packets: of.rx_unicast.saturating_add(of.rx_multicast).saturating_add(of.rx_broadcast),
        tx_packets: of.tx_unicast.saturating_add(of.tx_multicast).saturating_add(of.tx_broadcast),
        rx_octets: of.rx_bytes,
        tx_octets: of.tx_bytes,
        rx_multicast: of.rx_multicast,
        ..Statistics::default()
    }
}
