//! The driver of a virtual function, what igbvf is in Linux: probe, mailbox, one pair of rings, three vectors.
//!
//! A frame's way is in `transmit` and `receive`; `offload` reads its headers. `reset` and `requests` talk to
//! the PF through `mailbox`; `interrupt`, `link` and `statistics` are what their names say.
//!
//! # A VF's life
//! ```
//! # use driver::{DmaHal, vf::{Config, Event, RxFrame, TxOffload, Vf, VfError}};
//! # fn owner<H: DmaHal>(hal: &mut H, interrupts: &[u16], frame: &[u8]) -> Result<(), VfError> {
//! let mut vf = Vf::probe(hal, &Config::default())?; // reset, VF_RESET, an address
//! vf.start(hal)?; // wishes to the PF, rings, interrupts
//! for vector in interrupts {
//!     match vf.handle_interrupt(hal, *vector) {
//!         Event::Received => {
//!             let mut buffer = [0; 2048];
//!             let mut burst = |frame: &mut RxFrame<'_, H>| drop(frame.copy_to(&mut buffer));
//!             while vf.receive_burst(hal, 32, &mut burst) > 0 {}
//!             vf.receive_done(hal); // unmasks the vector
//!         }
//!         Event::Mailbox => drop(vf.check_link(hal)), // ResetNeeded: vf.restart(hal)
//!         Event::Transmitted(_) | Event::Unknown => {}
//!     }
//! }
//! if vf.transmit_burst(hal, &[frame], &TxOffload::default()) > 0 {
//!     vf.flush(hal); // rings the doorbell; without it, each `Config::batch` frames
//! }
//! vf.watchdog(hal); // every two seconds
//! vf.stop(hal);
//! # Ok(())
//! # }
//! ```
//!
//! Left out: the second queue pair, header split, and the operating system: whoever owns the [`Vf`] hears the
//! interrupts and calls.

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
pub use interrupt::{Event, MAILBOX_VECTOR, RECEIVE_VECTOR, TRANSMIT_VECTOR};
pub use link::{LinkCheck, Speed};
pub use mailbox::MailboxError;
pub use receive::{Checksum, Received, RssHash, RxFrame};
pub use requests::multicast_hash;
pub use reset::local_mac;
pub use statistics::Statistics;

use crate::hal::{DmaHal, OutOfDmaMemory};
use crate::moderation::{Moderator, Policy};
use i82576::MacAddress;
use mailbox::Mailbox;
use receive::RxRing;
use requests::Wishes;
use transmit::TxRing;

/// What the owner of a VF decides.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Transmit descriptors, a multiple of 8 from 64 to 4096.
    pub tx_descriptors: u16,
    /// Receive descriptors, a multiple of 8 from 64 to 4096.
    pub rx_descriptors: u16,
    /// Frames that are sent, and buffers that are given back, for one doorbell: 1 to [`MAX_BATCH`]. A guest that polls
    /// bursts takes the length of its bursts.
    pub batch: u16,
    /// Longest frame, FCS and VLAN tag excluded, bytes.
    pub max_frame: usize,
    /// How often receive and transmit may interrupt.
    pub moderation: Policy,
    /// An interval of transmit's own, microseconds: who sends much through a small socket buffer cannot wait as long
    /// for completions as the policy may let frames wait.
    pub transmit_interval_us: Option<u32>,
    /// Where an address comes from if the PF gives none.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        let moderation = Policy::default();
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

/// Why a VF could not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfError {
    /// The PF's driver has not let its VFs start.
    #[error("the PF is still in reset")]
    PfInReset,
    /// The conversation with the PF failed.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// There is no memory for rings and buffers.
    #[error(transparent)]
    Memory(#[from] OutOfDmaMemory),
    /// Not a ring size.
    #[error("{0} descriptors: must be a multiple of 8 from 64 to 4096")]
    RingSize(u16),
    /// Not a VLAN id.
    #[error("VLAN {0} is above 4095")]
    Vlan(u16),
    /// Longer than the MAC takes.
    #[error("frames of {0} bytes are longer than the card takes")]
    FrameLength(usize),
}

/// A virtual function and its driver's state.
#[derive(Debug)]
pub struct Vf {
    mac: MacAddress,
    /// What VF_RESET gave.
    permanent: MacAddress,
    mailbox: Mailbox,
    wishes: Wishes,
    tx: TxRing,
    rx: RxRing,
    throttle: Moderator,
    transmit_interval_us: Option<u32>,
    link: link::Link,
    statistics: statistics::Accumulator,
    seed: u64,
    running: bool,
}

impl Vf {
    /// Resets the function, learns its address and sets memory aside. Nothing moves before [`Vf::start`].
    ///
    /// # Errors
    /// [`VfError::PfInReset`] while the PF's driver is away, [`VfError::Mailbox`] if it does not answer,
    /// [`VfError::RingSize`], [`VfError::Memory`].
    pub fn probe<H: DmaHal>(hal: &mut H, config: &Config) -> Result<Self, VfError> {
        let batch = config.batch.clamp(1, MAX_BATCH);
        let mut vf = Self {
            mac: MacAddress::ZERO,
            permanent: MacAddress::ZERO,
            mailbox: Mailbox::default(),
            wishes: Wishes::new(config.max_frame),
            tx: TxRing::new(hal, config.tx_descriptors, batch)?,
            rx: RxRing::new(hal, config.rx_descriptors, batch)?,
            throttle: Moderator::new(config.moderation),
            transmit_interval_us: config.transmit_interval_us,
            link: link::Link::default(),
            statistics: statistics::Accumulator::default(),
            seed: config.seed,
            running: false,
        };
        vf.reset(hal)?;
        vf.mac = vf.permanent;
        Ok(vf)
    }

    /// Brings the function up: tells the PF its wishes, sets up rings and interrupts, enables the queues.
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

    /// Takes the function down, without the PF's help, so that a dead PF cannot stop it: no interrupt, no DMA
    /// afterwards.
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

    /// Takes the function down and brings it up again with everything it had asked for. Frames that were
    /// under way are lost. One reset serves both, since a PF driver may still be at work on it.
    ///
    /// # Errors
    /// As [`Vf::probe`] and [`Vf::start`].
    pub fn restart<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.stop(hal);
        self.introduce(hal)?;
        self.start(hal)
    }

    /// The address in use.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Whether the function was started and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Longest frame, FCS and VLAN tag excluded, bytes.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.wishes.max_frame
    }
}
