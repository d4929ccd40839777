//! Driver of an 82576's virtual function, like igbvf in Linux: probe, mailbox, one pair of rings, three vectors.
//!
//! A frame passes `transmit` or `receive`; `offload` parses its headers. `reset` and `requests` send messages to
//! the PF through `mailbox`; `interrupt`, `link` and `statistics` have the rest.
//!
//! # A VF's life
//! ```
//! # use driver::{DmaHal, vf::{TxOffload, Vf, VfDriverConfig, VfError, VfInterruptCause, VfRxFrame}};
//! # fn owner<H: DmaHal>(hal: &mut H, interrupts: &[u16], frame: &[u8]) -> Result<(), VfError> {
//! let mut vf = Vf::probe(hal, &VfDriverConfig::default())?; // reset, VF_RESET, an address
//! vf.start(hal)?; // requests to the PF, rings, interrupts
//! for vector in interrupts {
//!     match vf.handle_interrupt(hal, *vector) {
//!         VfInterruptCause::Received => {
//!             let mut buffer = [0; 2048];
//!             let mut burst = |frame: &mut VfRxFrame<'_, H>| drop(frame.copy_to(&mut buffer));
//!             while vf.receive_burst(hal, 32, &mut burst) > 0 {}
//!             vf.receive_done(hal); // unmasks the vector
//!         }
//!         VfInterruptCause::Mailbox => drop(vf.check_link(hal)), // ResetNeeded: vf.restart(hal)
//!         VfInterruptCause::Transmitted(_) | VfInterruptCause::Unknown => {}
//!     }
//! }
//! if vf.transmit_burst(hal, &[frame], &TxOffload::default()) > 0 {
//!     vf.flush(hal); // rings the doorbell; without it, each `VfDriverConfig::batch` frames
//! }
//! vf.watchdog(hal); // every two seconds
//! vf.stop(hal);
//! # Ok(())
//! # }
//! ```
//!
//! The second queue pair and header split are not used. The owner of the [`Vf`] receives the interrupts and calls
//! it.

mod interrupt;
mod link;
mod mailbox;
pub(crate) mod receive;
mod requests;
mod reset;
mod statistics;
#[cfg(test)]
mod tests;
pub(crate) mod transmit;

pub use crate::offload::TxOffload;
pub use crate::ring::MAX_BATCH;
pub use crate::ring::receive::{RxCounters, RxError};
pub use crate::ring::transmit::{TxCounters, TxError};
pub use interrupt::{MAILBOX_VECTOR, RECEIVE_VECTOR, TRANSMIT_VECTOR, VfInterruptCause};
pub use link::{PortSpeed, VfLinkStatus};
pub use mailbox::MailboxError;
pub use receive::{ChecksumStatus, RssHash, VfReceivedFrame, VfRxFrame};
pub use requests::multicast_hash;
pub use reset::local_mac;
pub use statistics::AccumulatedStatistics;

use crate::hal::{DmaHal, OutOfDmaMemory};
use crate::moderation::{InterruptModerator, ModerationPolicy};
use i82576::MacAddress;
use mailbox::VfMailbox;
use receive::VfRxRing;
use requests::GrantedVfRequests;
use transmit::VfTxRing;

/// Configuration of a VF driver.
#[derive(Debug, Clone, Copy)]
pub struct VfDriverConfig {
    /// Number of transmit descriptors, a multiple of 8 from 64 to 4096.
    pub tx_descriptors: u16,
    /// Number of receive descriptors, a multiple of 8 from 64 to 4096.
    pub rx_descriptors: u16,
    /// Number of frames sent, and of buffers returned, per doorbell: 1 to [`MAX_BATCH`]. A guest that polls for bursts
    /// sets it to the length of its bursts.
    pub batch: u16,
    /// Longest frame in bytes, without FCS and VLAN tag.
    pub max_frame: usize,
    /// Interrupt moderation of the receive and transmit vectors.
    pub moderation: ModerationPolicy,
    /// Transmit interrupt interval in microseconds, if it differs from the receive interval. A sender with a small
    /// socket buffer needs a short one, because it waits for completions.
    pub transmit_interval_us: Option<u32>,
    /// Seed of the MAC address that is used if the PF assigns none.
    pub seed: u64,
}

impl Default for VfDriverConfig {
    fn default() -> Self {
        let moderation = ModerationPolicy::default();
        Self {
            tx_descriptors: 256,
            rx_descriptors: 256,
            batch: 16,
            max_frame: 1514,
            moderation,
            transmit_interval_us: None,
            seed: 0,
        }
    }
}

/// Error of the VF driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfError {
    /// The PF's driver has not let its VFs start.
    #[error("the PF is still in reset: check that the PF driver runs")]
    PfInReset,
    /// A message to the PF failed.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// DMA memory for rings and buffers is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfDmaMemory),
    /// The number of a ring's descriptors is invalid.
    #[error("ring size {0} is invalid: descriptors must be a multiple of 8 from 64 to 4096")]
    RingSize(u16),
    /// The requested VLAN id is out of range.
    #[error("VLAN {0} is out of range (0-4095)")]
    Vlan(u16),
    /// The requested frame length exceeds the MAC's maximum.
    #[error("requested frame length {0} exceeds the card's maximum")]
    FrameLength(usize),
}

/// Virtual function of an 82576 and its driver's state.
#[derive(Debug)]
pub struct Vf {
    mac: MacAddress,
    /// MAC address that the PF has assigned in its reply to VF_RESET.
    permanent: MacAddress,
    mailbox: VfMailbox,
    wishes: GrantedVfRequests,
    tx: VfTxRing,
    rx: VfRxRing,
    throttle: InterruptModerator,
    transmit_interval_us: Option<u32>,
    link: link::LinkCheckState,
    statistics: statistics::StatisticsAccumulator,
    seed: u64,
    running: bool,
}

impl Vf {
    /// Resets the function, gets the VF's address and allocates memory. No frame moves before [`Vf::start`].
    ///
    /// # Errors
    /// [`VfError::PfInReset`] while the PF's driver is absent, [`VfError::Mailbox`] if it does not reply,
    /// [`VfError::RingSize`], [`VfError::Memory`].
    pub fn probe<H: DmaHal>(hal: &mut H, config: &VfDriverConfig) -> Result<Self, VfError> {
        let batch = config.batch.clamp(1, MAX_BATCH);
        let mut vf = Self {
            mac: MacAddress::ZERO,
            permanent: MacAddress::ZERO,
            mailbox: VfMailbox::default(),
            wishes: GrantedVfRequests::new(config.max_frame),
            tx: VfTxRing::new(hal, config.tx_descriptors, batch)?,
            rx: VfRxRing::new(hal, config.rx_descriptors, batch)?,
            throttle: InterruptModerator::new(config.moderation),
            transmit_interval_us: config.transmit_interval_us,
            link: link::LinkCheckState::default(),
            statistics: statistics::StatisticsAccumulator::default(),
            seed: config.seed,
            running: false,
        };
        vf.reset(hal)?;
        vf.mac = vf.permanent;
        Ok(vf)
    }

    /// Starts the function: repeats its requests to the PF, sets up rings and interrupts, enables the queues.
    ///
    /// # Errors
    /// [`VfError::Mailbox`].
    pub fn start<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.repeat_wishes(hal)?;
        self.tx.start(hal);
        self.rx.start(hal);
        self.start_interrupts(hal);
        self.link.forget();
        self.statistics.rebase(hal);
        self.running = true;
        Ok(())
    }

    /// Stops the function without the PF's help, so that a dead PF cannot prevent it: no interrupt and no DMA
    /// follow.
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) {
        if core::mem::take(&mut self.running) {
            self.statistics.update(hal);
        }
        self.rx.disable(hal);
        self.tx.disable(hal);
        hal.wait(reset::QUIESCE);
        self.stop_interrupts(hal);
        self.reset_function(hal);
        self.link.forget();
    }

    /// Stops the function and starts it again with all its earlier requests. Pending frames are lost. Resets the
    /// function only once, since the PF driver may still be handling that reset.
    ///
    /// # Errors
    /// Returns the errors of [`Vf::probe`] and [`Vf::start`].
    pub fn restart<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.stop(hal);
        self.introduce(hal)?;
        self.start(hal)
    }

    /// Returns the VF's current MAC address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Returns true if the function was started and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Returns the longest frame in bytes, without FCS and VLAN tag.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.wishes.max_frame
    }
}
