//! Driver of an Adaptive Virtual Function: mailbox, rings configured by messages, frames by polling or interrupts.
//! It has several queue pairs, each with its vector.
//!
//! | module | contents |
//! |---|---|
//! | `mailbox` | requests and their replies, events |
//! | `rings` | frame fields of descriptors |
//! | `frames` | sending and receiving frames, by queue or by flow |
//! | `events` | interrupts, link, resets by the PF |
//!
//! Not supported: tunnels, segmentation of UDP, adaptive moderation. [`AvfDriver::ask`] can select the hashed fields.

mod events;
mod frames;
mod mailbox;
mod rings;

pub use crate::offload::TxOffload;
pub use events::AvfLinkStatus;
pub use rings::{AvfReceivedFrame, AvfRxFrame};

use crate::hal::{DmaHal, OutOfDmaMemory};
use crate::ring::MAX_BATCH;
use crate::ring::{receive::RxRing, transmit::TxRing};
use ::avf::bits::VfResetState;
use ::avf::descriptor::rx::RxDescriptorFormat;
use ::avf::descriptor::tx;
use ::avf::ids::{HASH_KEY, LOOKUP_TABLE, MAX_PAIRS, RING};
use ::avf::register as r;
use ::avf::virtchnl::reply::decode;
use ::avf::virtchnl::{
    EncodedMessageList, EtherAddress, EtherAddressType, QueuePairInfo, QueueSet, VectorMap, VfCapabilities,
    VfResources, VfTrafficStatistics, VirtchnlRequest, VirtchnlStatus, VirtchnlVersion,
};
use alloc::vec::Vec;
use core::time::Duration;
use i82576::MacAddress;
use mailbox::AvfMailbox;

/// Error of an AVF's VF driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AvfDriverError {
    /// The VF's reset does not end: VFGEN_RSTAT does not become active.
    #[error("the VF stays in reset; check that the PF driver runs")]
    NoReset,
    /// The PF has sent no reply to a request in time.
    #[error("the PF did not reply to virtchnl request {0} in time: check that the PF driver runs")]
    NoAnswer(u32),
    /// The PF refuses a request, with this status.
    #[error("the PF refused virtchnl request {0} with status {1}")]
    Refused(u32, i32),
    /// The PF's reply to a request is malformed.
    #[error("malformed PF reply to virtchnl request {0}")]
    Malformed(u32),
    /// DMA memory for the VF's rings is exhausted.
    #[error(transparent)]
    Memory(#[from] OutOfDmaMemory),
}

/// Configuration of an AVF's driver, chosen by its owner. The PF may grant less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvfDriverConfig {
    /// Virtchnl capabilities that the VF requests. The PF grants those that it offers.
    pub capabilities: VfCapabilities,
    /// Format of the VF's receive descriptors. Flexible formats need [`VfCapabilities::RX_FLEX_DESC`].
    pub form: RxDescriptorFormat,
    /// True if received frames keep their check sequence. Needs [`VfCapabilities::CRC`].
    pub keep_fcs: bool,
    /// Maximum number of queue pairs that the driver uses, even if the PF grants more.
    pub pairs: u16,
    /// Number of descriptors of each ring: a multiple of 32 up to 4096 (others are rounded).
    pub descriptors: u16,
    /// Number of frames sent, and of buffers returned, per doorbell: 1 to [`MAX_BATCH`].
    pub batch: u16,
    /// Minimum interval between two interrupts of a queue's vector, in microseconds.
    pub interval_us: u16,
    /// True if received flows are spread over the queues. Needs [`VfCapabilities::RSS_PF`]. Otherwise all go to the
    /// first queue, and the card computes no hash.
    pub spread: bool,
}

impl AvfDriverConfig {
    /// Returns the configuration with rings, batch and queue pairs rounded to valid values.
    fn rounded(self) -> Self {
        let (least, most) = (*RING.start() as u16, *RING.end() as u16);
        Self {
            pairs: self.pairs.clamp(1, MAX_PAIRS as u16),
            descriptors: self.descriptors.clamp(least, most).next_multiple_of(least),
            batch: self.batch.clamp(1, MAX_BATCH),
            ..self
        }
    }
}

impl Default for AvfDriverConfig {
    fn default() -> Self {
        let capabilities = VfCapabilities::L2
            .and(VfCapabilities::ADV_LINK_SPEED)
            .and(VfCapabilities::REQ_QUEUES)
            .and(VfCapabilities::VLAN)
            .and(VfCapabilities::RSS_PF);
        Self {
            capabilities,
            form: RxDescriptorFormat::Legacy,
            keep_fcs: false,
            pairs: MAX_PAIRS as u16,
            descriptors: 64,
            batch: 1,
            interval_us: 0,
            spread: false,
        }
    }
}

/// Pause between two checks for the end of a VF's reset.
const LOOK: Duration = Duration::from_millis(10);
/// Maximum number of checks for the end of a VF's reset.
const LOOKS: u32 = 200;

/// Driver of an Adaptive Virtual Function.
#[derive(Debug)]
pub struct AvfDriver {
    mailbox: AvfMailbox,
    wishes: AvfDriverConfig,
    resources: VfResources,
    mac: MacAddress,
    tx: Vec<TxRing<tx::TxDataDescriptor>>,
    rx: Vec<RxRing<RxDescriptorFormat>>,
    /// Index of the receive queue whose frames are taken next.
    turn: usize,
    /// Speed of the VF's link in Mb/s; `None` while the link is down.
    link: Option<u32>,
    /// True once the PF has announced a reset of the VF.
    reset_impending: bool,
    /// True while the VF's queues are started.
    running: bool,
    /// Vectors of queues that have interrupted and are still masked, a bit each.
    masked: u32,
}

impl AvfDriver {
    /// Waits for the VF to be active, and requests its resources. `mac` is used if the PF assigns none.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn probe<H: DmaHal>(hal: &mut H, mac: MacAddress) -> Result<Self, AvfDriverError> {
        Self::probe_with(hal, mac, AvfDriverConfig::default())
    }

    /// Waits for the VF to be active, and requests its resources with the given configuration.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn probe_with<H: DmaHal>(
        hal: &mut H,
        mac: MacAddress,
        wishes: AvfDriverConfig,
    ) -> Result<Self, AvfDriverError> {
        let mailbox = AvfMailbox::new(hal)?;
        let none = VfResources {
            pairs: 0,
            vectors: 0,
            max_frame: 0,
            capabilities: VfCapabilities::default(),
            vsi: 0,
            mac: [0; 6],
        };
        let mut vf = Self {
            mailbox,
            wishes: wishes.rounded(),
            resources: none,
            mac,
            tx: Vec::new(),
            rx: Vec::new(),
            turn: 0,
            link: None,
            reset_impending: false,
            running: false,
            masked: 0,
        };
        vf.introduce(hal)?;
        let AvfDriverConfig { form, pairs, descriptors, batch, .. } = vf.wishes;
        for queue in 0..vf.resources.pairs.min(pairs) as u8 {
            vf.tx.push(TxRing::new(hal, descriptors, batch, r::qtx_tail(queue))?);
            vf.rx.push(RxRing::new(hal, form, descriptors, batch, r::qrx_tail(queue))?);
        }
        Ok(vf)
    }

    fn introduce<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AvfDriverError> {
        let mut active = || {
            hal.wait(LOOK);
            VfResetState::of(hal.read(r::VFGEN_RSTAT)) == VfResetState::Active
        };
        if !(0..LOOKS).any(|_| active()) {
            return Err(AvfDriverError::NoReset);
        }
        self.mailbox.start(hal);
        (self.link, self.reset_impending) = (None, false);
        self.ask(hal, VirtchnlRequest::Version(VirtchnlVersion::V1_1))?;
        let request = VirtchnlRequest::Resources(Some(self.wishes.capabilities));
        let body = self.ask(hal, request)?;
        self.resources = decode(&body).ok_or(AvfDriverError::Malformed(request.op().number()))?;
        if self.resources.mac != [0; 6] {
            self.mac = MacAddress(self.resources.mac);
        }
        Ok(())
    }

    /// Sets up and starts every queue of the VF: pair n raises vector n + 1.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn start<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AvfDriverError> {
        let vsi = self.resources.vsi;
        let own =
            EncodedMessageList::new(&[EtherAddress { mac: self.mac.0, usage: EtherAddressType::Primary }]);
        self.ask(hal, VirtchnlRequest::Addresses(true, vsi, own.list()))?;
        let pairs = self.pairs();
        self.spread(hal)?;
        let map = |n: u16| VectorMap { vsi, vector: n + 1, rx: 1 << n, tx: 1 << n, rx_itr: 0, tx_itr: 1 };
        let maps: Vec<_> = (0..pairs).map(map).collect();
        self.ask(hal, VirtchnlRequest::MapVectors(EncodedMessageList::new(&maps).list()))?;
        let (longest, keep_fcs) = (self.resources.max_frame, self.wishes.keep_fcs);
        let rings = self.tx.iter().zip(&self.rx).take(pairs.into()).zip(0..);
        let pair = |((tx, rx), queue)| QueuePairInfo {
            tx: rings::describe_tx(tx, vsi, queue),
            rx: rings::describe_rx(rx, self.wishes.form, vsi, queue, longest, keep_fcs),
        };
        let described: Vec<_> = rings.map(pair).collect();
        self.ask(hal, VirtchnlRequest::ConfigureQueues(vsi, EncodedMessageList::new(&described).list()))?;
        for (tx, rx) in self.tx.iter_mut().zip(&mut self.rx).take(pairs.into()) {
            tx.start(hal);
            rx.start(hal);
        }
        self.ask(hal, VirtchnlRequest::SwitchQueues(true, self.all_queues()))?;
        self.running = true;
        self.start_interrupts(hal);
        Ok(())
    }

    /// Spreads received flows over the queues in use, if so configured. Otherwise disables the hash, which a PF
    /// enables.
    fn spread<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AvfDriverError> {
        if !self.resources.capabilities.has(VfCapabilities::RSS_PF) {
            return Ok(());
        }
        if !self.wishes.spread {
            return self.ask(hal, VirtchnlRequest::SetHashTypes(0)).map(|_| ());
        }
        let (vsi, pairs) = (self.resources.vsi, self.pairs().max(1));
        // Any key with non-repeating bits is suitable.
        let key: [u8; HASH_KEY] = core::array::from_fn(|n| (frames::fold(&[n as u8]) >> 16) as u8);
        self.ask(hal, VirtchnlRequest::HashKey(vsi, &key))?;
        let table: [u8; LOOKUP_TABLE] = core::array::from_fn(|entry| (entry % usize::from(pairs)) as u8);
        self.ask(hal, VirtchnlRequest::LookupTable(vsi, &table)).map(|_| ())
    }

    fn all_queues(&self) -> QueueSet {
        let all = (1_u32 << self.pairs()) - 1;
        QueueSet { vsi: self.resources.vsi, rx: all, tx: all }
    }

    /// Stops every ring of the AVF driver: no frame is sent or returned any more.
    fn halt(&mut self) {
        self.running = false;
        self.tx.iter_mut().for_each(TxRing::stop);
        self.rx.iter_mut().for_each(RxRing::stop);
    }

    /// Stops every queue of the VF.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AvfDriverError> {
        self.halt();
        self.ask(hal, VirtchnlRequest::SwitchQueues(false, self.all_queues())).map(|_| ())
    }

    /// Negotiates with the PF and starts the VF again after a reset of any origin. Waits until an announced reset is
    /// over.
    ///
    /// # Errors
    /// [`AvfDriverError`]: no frame moves until it is called again.
    pub fn restart<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), AvfDriverError> {
        self.halt();
        for _ in 0..LOOKS {
            if !self.reset_impending || self.was_reset(hal) {
                break;
            }
            hal.wait(LOOK);
        }
        self.introduce(hal)?;
        self.start(hal)
    }

    /// Requests a reset of the VF. Call [`AvfDriver::restart`] afterwards.
    pub fn reset<H: DmaHal>(&mut self, hal: &mut H) {
        self.mailbox.send(hal, &VirtchnlRequest::Reset);
    }

    /// Returns the VF's current MAC address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Returns the number of queue pairs in use, limited by the rings.
    #[must_use]
    pub fn pairs(&self) -> u16 {
        self.resources.pairs.min(self.tx.len() as u16)
    }

    /// Requests the card's counters of this VF from the PF, and returns them.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn statistics<H: DmaHal>(&mut self, hal: &mut H) -> Result<VfTrafficStatistics, AvfDriverError> {
        let request = VirtchnlRequest::Statistics(QueueSet { vsi: self.resources.vsi, rx: 0, tx: 0 });
        let body = self.ask(hal, request)?;
        decode(&body).ok_or(AvfDriverError::Malformed(request.op().number()))
    }

    /// Sends a request to the PF and waits for the PF's reply.
    ///
    /// # Errors
    /// [`AvfDriverError`].
    pub fn ask<H: DmaHal>(
        &mut self,
        hal: &mut H,
        request: VirtchnlRequest<'_>,
    ) -> Result<Vec<u8>, AvfDriverError> {
        let number = request.op().number();
        self.mailbox.send(hal, &request);
        for _ in 0..mailbox::PATIENCE {
            while let Some(message) = self.mailbox.receive(hal) {
                if message.operation != number {
                    self.note(&message);
                    continue;
                }
                return match message.status {
                    VirtchnlStatus::Success => Ok(message.body),
                    status => Err(AvfDriverError::Refused(number, status.number())),
                };
            }
            hal.wait(mailbox::TICK);
        }
        Err(AvfDriverError::NoAnswer(number))
    }
}
