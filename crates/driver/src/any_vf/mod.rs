//! VF of an 82576 or an Adaptive Virtual Function (AVF) behind one interface, for owners that detect the family of a
//! function. The family's own driver has the operations that only one family supports.

mod frame;

pub use frame::AnyRxFrame;

use crate::avf::vf::{self as adaptive, AvfDriverConfig};
use crate::hal::DmaHal;
use crate::vf::{
    self, AccumulatedStatistics, RxCounters, TxCounters, TxError, TxOffload, VfInterruptCause, VfLinkStatus,
    local_mac,
};
use ::avf::register::VFGEN_RSTAT;
use ::avf::virtchnl::{self, VfCapabilities};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use i82576::MacAddress;

/// Maximum number of an Adaptive Virtual Function's queue pairs that its driver uses.
const MAX_QUEUE_PAIRS: u16 = 4;

/// Device family of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceFamily {
    /// Device family of the Intel 82576.
    I82576,
    /// Device family of Intel's Adaptive Virtual Function.
    Avf,
}

impl DeviceFamily {
    /// Returns the family of a vendor and device id, or `None` if no driver knows them.
    #[must_use]
    pub fn of(vendor: u16, device: u16) -> Option<Self> {
        match (vendor, device) {
            (i82576::ids::VENDOR, i82576::ids::DEVICE_VF) => Some(Self::I82576),
            (::avf::ids::VENDOR, ::avf::ids::DEVICE) => Some(Self::Avf),
            _ => None,
        }
    }

    /// Returns the name that reports give to the family's VF driver.
    #[must_use]
    pub fn driver(self) -> &'static str {
        match self {
            Self::I82576 => "softiov driver::vf",
            Self::Avf => "softiov driver::avf::vf",
        }
    }

    /// Returns the minimum size of a VF's BAR0 in bytes.
    #[must_use]
    pub fn bar0_size(self) -> u64 {
        match self {
            Self::I82576 => i82576::ids::VF_BAR0_SIZE as u64,
            Self::Avf => ::avf::ids::BAR0_SIZE as u64,
        }
    }

    /// Returns the minimum number of MSI-X vectors of a VF of this family, and the maximum that the driver uses.
    #[must_use]
    pub fn vectors(self) -> (usize, usize) {
        match self {
            Self::I82576 => (i82576::ids::VF_VECTORS, i82576::ids::VF_VECTORS),
            Self::Avf => (::avf::ids::MIN_VECTORS, usize::from(MAX_QUEUE_PAIRS) + 1),
        }
    }
}

/// Configuration of a VF driver whose device family (82576 or AVF) is not known yet. The driver uses the part for its
/// own family.
#[derive(Debug, Clone, Copy)]
pub struct AnyVfConfig {
    /// Configuration of an 82576's VF. Its seed also generates the address of an Adaptive Virtual Function to which the
    /// PF assigns none.
    pub i82576: vf::VfDriverConfig,
    /// Configuration of an Adaptive Virtual Function's driver.
    pub avf: AvfDriverConfig,
}

impl Default for AnyVfConfig {
    /// Returns a configuration for owners that wait for interrupts: rings of 256, 20,000 interrupts a second, every
    /// queue in use.
    fn default() -> Self {
        let avf = AvfDriverConfig {
            pairs: MAX_QUEUE_PAIRS,
            descriptors: 256,
            batch: 16,
            interval_us: 50,
            spread: true,
            ..AvfDriverConfig::default()
        };
        Self { i82576: vf::VfDriverConfig::default(), avf }
    }
}

impl AnyVfConfig {
    /// Changes the configuration so that an Adaptive Virtual Function uses flexible receive descriptors.
    #[must_use]
    pub fn flexible(mut self) -> Self {
        self.avf.capabilities = self.avf.capabilities.and(VfCapabilities::RX_FLEX_DESC);
        self.avf.form = ::avf::descriptor::rx::RxDescriptorFormat::FlexLate;
        self
    }
}

/// Error of a VF's driver, for an 82576 or an AVF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnyVfError {
    /// Error of an 82576 VF's driver.
    #[error(transparent)]
    I82576(#[from] vf::VfError),
    /// Error of an Adaptive Virtual Function's driver.
    #[error(transparent)]
    Avf(#[from] adaptive::AvfDriverError),
}

impl AnyVfError {
    /// Returns true if the error says that the PF's driver is absent or does not reply, so that a later attempt may
    /// succeed.
    #[must_use]
    pub fn is_pf_unavailable(&self) -> bool {
        matches!(
            self,
            Self::I82576(vf::VfError::PfInReset | vf::VfError::Mailbox(_))
                | Self::Avf(adaptive::AvfDriverError::NoReset | adaptive::AvfDriverError::NoAnswer(_))
        )
    }
}

/// State of the link that a VF's driver sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyVfLinkStatus {
    /// The VF's link is up: frames can be sent and received.
    Up,
    /// The VF's link is down.
    Down,
    /// The VF was reset: call [`AnyVf::restart`].
    ResetNeeded,
}

/// Driver's counters of a receive and a transmit ring, kept across resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePairCounters {
    /// Counters of the queue pair's receive ring.
    pub rx: RxCounters,
    /// Counters of the queue pair's transmit ring.
    pub tx: TxCounters,
}

/// VF of an 82576 or an AVF, with its driver's state.
#[derive(Debug)]
pub enum AnyVf {
    /// VF of an 82576 and its driver's state.
    I82576(Box<crate::Vf>),
    /// Adaptive Virtual Function and its driver's state.
    Avf(Box<adaptive::AvfDriver>),
}

impl From<crate::Vf> for AnyVf {
    fn from(vf: crate::Vf) -> Self {
        Self::I82576(Box::new(vf))
    }
}

impl AnyVf {
    /// Probes a VF of the given device family and creates its driver. No frame moves before [`AnyVf::start`].
    ///
    /// # Errors
    /// [`AnyVfError`].
    pub fn probe<H: DmaHal>(
        hal: &mut H,
        family: DeviceFamily,
        config: &AnyVfConfig,
    ) -> Result<Self, AnyVfError> {
        Ok(match family {
            DeviceFamily::I82576 => crate::Vf::probe(hal, &config.i82576)?.into(),
            DeviceFamily::Avf => {
                let mac = local_mac(config.i82576.seed);
                Self::Avf(Box::new(adaptive::AvfDriver::probe_with(hal, mac, config.avf)?))
            }
        })
    }

    /// Starts frame reception and transmission of the VF.
    ///
    /// # Errors
    /// [`AnyVfError`].
    pub fn start<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AnyVfError> {
        match self {
            Self::I82576(vf) => Ok(vf.start(hal)?),
            Self::Avf(vf) => Ok(vf.start(hal)?),
        }
    }

    /// Starts the VF again after a reset of its function. Pending frames are lost.
    ///
    /// # Errors
    /// [`AnyVfError`].
    pub fn restart<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AnyVfError> {
        match self {
            Self::I82576(vf) => Ok(vf.restart(hal)?),
            Self::Avf(vf) => Ok(vf.restart(hal)?),
        }
    }

    /// Stops frame reception and transmission of the VF. A removed function is left alone.
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) {
        match self {
            Self::I82576(vf) => vf.stop(hal),
            // A mailbox that reads as all ones never replies.
            Self::Avf(vf) if hal.read(VFGEN_RSTAT) != u32::MAX => drop(vf.stop(hal)),
            Self::Avf(_) => {}
        }
    }

    /// Returns the device family of the VF.
    #[must_use]
    pub fn family(&self) -> DeviceFamily {
        match self {
            Self::I82576(_) => DeviceFamily::I82576,
            Self::Avf(_) => DeviceFamily::Avf,
        }
    }

    /// Returns the VF's current MAC address. A reset may change it.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        match self {
            Self::I82576(vf) => vf.mac(),
            Self::Avf(vf) => vf.mac(),
        }
    }

    /// Returns true if every transmit queue has `wanted` free descriptors. Reclaims completed ones if necessary.
    pub fn has_room<H: DmaHal>(&mut self, hal: &mut H, wanted: usize) -> bool {
        let free = |vf: &Self| match vf {
            Self::I82576(vf) => vf.tx_free(),
            Self::Avf(vf) => vf.tx_free(),
        };
        if free(self) < wanted {
            // The card completes only descriptors whose doorbell was rung.
            self.flush(hal);
            match self {
                Self::I82576(vf) => vf.clean(hal),
                Self::Avf(vf) => vf.clean(hal),
            };
        }
        free(self) >= wanted
    }

    /// Returns the number of transmit descriptors, over all queues, that the driver has not reclaimed.
    #[must_use]
    pub fn tx_pending(&self) -> usize {
        match self {
            Self::I82576(vf) => vf.tx_pending(),
            Self::Avf(vf) => (0..vf.pairs() as u8).map(|queue| vf.tx_pending(queue)).sum(),
        }
    }

    /// Queues a packet: a burst of one. [`AnyVf::flush`] rings its doorbell at the latest.
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packet: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        match self {
            Self::I82576(vf) => vf.transmit(hal, packet, offload),
            Self::Avf(vf) => vf.transmit_flow(hal, packet, offload),
        }
    }

    /// Queues packets up to the first refused one. Returns their number. [`AnyVf::flush`] rings their doorbell at
    /// the latest.
    #[inline]
    pub fn transmit_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        packets: &[&[u8]],
        offload: &TxOffload,
    ) -> usize {
        match self {
            Self::I82576(vf) => vf.transmit_burst(hal, packets, offload),
            Self::Avf(vf) => vf.transmit_burst(hal, packets, offload),
        }
    }

    /// Rings the transmit doorbells for queued packets.
    pub fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        match self {
            Self::I82576(vf) => vf.flush(hal),
            Self::Avf(vf) => vf.flush(hal),
        }
    }

    /// Passes received frames to `take`, at most `most`. Each frame is in a ring's buffers until `take` returns, and is
    /// lost unless `take` copies it. Returns the number of frames.
    #[inline]
    pub fn receive_burst<H: DmaHal>(
        &mut self,
        hal: &mut H,
        most: usize,
        mut take: impl FnMut(AnyRxFrame<'_, '_, H>),
    ) -> usize {
        match self {
            Self::I82576(vf) => vf.receive_burst(hal, most, |frame| take(AnyRxFrame::I82576(frame))),
            Self::Avf(vf) => vf.receive_burst(hal, most, |frame| take(AnyRxFrame::Avf(frame))),
        }
    }

    /// Handles the interrupt message of an MSI-X vector.
    pub fn handle_interrupt<H: DmaHal>(&mut self, hal: &mut H, vector: u16) -> VfInterruptCause {
        match self {
            Self::I82576(vf) => vf.handle_interrupt(hal, vector),
            Self::Avf(vf) => vf.handle_interrupt(hal, vector),
        }
    }

    /// Posts free buffers and unmasks the receive vectors. Call it when every received frame is taken.
    pub fn receive_done<H: DmaHal>(&mut self, hal: &mut H) {
        match self {
            Self::I82576(vf) => vf.receive_done(hal),
            Self::Avf(vf) => vf.receive_done(hal),
        }
    }

    /// Returns the state of the VF's link. A stopped function reports [`AnyVfLinkStatus::ResetNeeded`], as after a
    /// reset.
    pub fn check_link<H: DmaHal>(&mut self, hal: &mut H) -> AnyVfLinkStatus {
        match self {
            Self::I82576(vf) => link(vf.check_link(hal), vf.is_running()),
            Self::Avf(vf) => adaptive_link(vf.check_link(hal), vf.is_running()),
        }
    }

    /// Does the driver's periodic work (every two seconds) and returns the state of the link.
    pub fn watchdog<H: DmaHal>(&mut self, hal: &mut H) -> AnyVfLinkStatus {
        match self {
            Self::I82576(vf) => link(vf.watchdog(hal), vf.is_running()),
            Self::Avf(vf) => adaptive_link(vf.watchdog(hal), vf.is_running()),
        }
    }

    /// Returns the card's counters of this VF. An Adaptive Virtual Function does not count loopback frames or check
    /// sequences; its counters are zero if the PF does not reply.
    pub fn statistics<H: DmaHal>(&mut self, hal: &mut H) -> AccumulatedStatistics {
        match self {
            Self::I82576(vf) => vf.statistics(hal),
            Self::Avf(vf) => counted(&vf.statistics(hal).unwrap_or_default()),
        }
    }

    /// Returns the driver's counters of each pair of rings.
    #[must_use]
    pub fn queue_counters(&self) -> Vec<QueuePairCounters> {
        match self {
            Self::I82576(vf) => vec![QueuePairCounters { rx: vf.rx_counters(), tx: vf.tx_counters() }],
            Self::Avf(vf) => vf.queue_counters().map(|(rx, tx)| QueuePairCounters { rx, tx }).collect(),
        }
    }
}

fn link(check: VfLinkStatus, running: bool) -> AnyVfLinkStatus {
    match check {
        VfLinkStatus::ResetNeeded => AnyVfLinkStatus::ResetNeeded,
        VfLinkStatus::Up(_) => AnyVfLinkStatus::Up,
        VfLinkStatus::Down if !running => AnyVfLinkStatus::ResetNeeded,
        VfLinkStatus::Down | VfLinkStatus::Gone => AnyVfLinkStatus::Down,
    }
}

fn adaptive_link(check: adaptive::AvfLinkStatus, running: bool) -> AnyVfLinkStatus {
    match check {
        adaptive::AvfLinkStatus::ResetNeeded => AnyVfLinkStatus::ResetNeeded,
        adaptive::AvfLinkStatus::Up(_) => AnyVfLinkStatus::Up,
        adaptive::AvfLinkStatus::Down if !running => AnyVfLinkStatus::ResetNeeded,
        adaptive::AvfLinkStatus::Down => AnyVfLinkStatus::Down,
    }
}

fn counted(of: &virtchnl::VfTrafficStatistics) -> AccumulatedStatistics {
    AccumulatedStatistics {
        rx_packets: of.rx_unicast.saturating_add(of.rx_multicast).saturating_add(of.rx_broadcast),
        tx_packets: of.tx_unicast.saturating_add(of.tx_multicast).saturating_add(of.tx_broadcast),
        rx_octets: of.rx_bytes,
        tx_octets: of.tx_bytes,
        rx_multicast: of.rx_multicast,
        ..AccumulatedStatistics::default()
    }
}
