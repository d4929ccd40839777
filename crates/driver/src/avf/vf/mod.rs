//! The driver of an Adaptive Virtual Function: mailbox, rings described by messages, frames by polling. Several queue
//! pairs, each with its vector.
//!
//! | module | what it does |
//! |---|---|
//! | `mailbox` | requests and their replies, events |
//! | `rings` | frames out and in |
//!
//! Left out: tunnels, segmentation of UDP, and what the hash is made of, which [`Vf::ask`] can set.

mod mailbox;
mod rings;

pub use crate::offload::TxOffload;
pub use rings::Received;

use crate::hal::{DmaHal, OutOfDmaMemory};
use ::avf::bits::{ResetState, dyn_ctl};
use ::avf::descriptor::rx::Form;
use ::avf::register as r;
use ::avf::virtchnl::reply::decode;
use ::avf::virtchnl::{
    Address, AddressUse, Capabilities, Event, Packed, QueuePair, QueueSet, Request, Resources, Statistics,
    Status, VectorMap, Version,
};
use alloc::vec::Vec;
use core::time::Duration;
use i82576::MacAddress;
use mailbox::Mailbox;
use rings::{RxRing, TxRing};

/// Why the driver could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfError {
    /// VFGEN_RSTAT does not become active.
    #[error("the VF does not come out of reset; is there a PF driver?")]
    NoReset,
    /// Nothing comes back.
    #[error("the PF does not answer request {0}")]
    NoAnswer(u32),
    /// The PF says no.
    #[error("the PF refuses request {0} with status {1}")]
    Refused(u32, i32),
    /// The reply is too short.
    #[error("the PF's reply to request {0} is no reply to it")]
    Malformed(u32),
    /// Memory.
    #[error(transparent)]
    Memory(#[from] OutOfDmaMemory),
}

/// What an owner wants of a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// What the driver asks for. The PF gives what it offers of it.
    pub capabilities: Capabilities,
    /// The form of receive descriptors. One that is flexible takes [`Capabilities::RX_FLEX_DESC`].
    pub form: Form,
    /// Received frames keep their check sequence. It takes [`Capabilities::CRC`].
    pub keep_fcs: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        let capabilities = Capabilities::L2
            .and(Capabilities::ADV_LINK_SPEED)
            .and(Capabilities::REQ_QUEUES)
            .and(Capabilities::VLAN)
            .and(Capabilities::RSS_PF);
        Self { capabilities, form: Form::Legacy, keep_fcs: false }
    }
}

/// A look at VFGEN_RSTAT, and how many there are.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u32 = 200;

/// A VF's driver.
#[derive(Debug)]
pub struct Vf {
    mailbox: Mailbox,
    wishes: Wishes,
    resources: Resources,
    mac: MacAddress,
    tx: Vec<TxRing>,
    rx: Vec<RxRing>,
    /// The speed of the link, Mb/s.
    link: Option<u32>,
    /// The PF has said that it resets the VF.
    reset_impending: bool,
}

impl Vf {
    /// Waits for the VF, and asks what it has. `mac` is used if the PF gives none.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn probe<H: DmaHal>(hal: &mut H, mac: MacAddress) -> Result<Self, VfError> {
        Self::probe_with(hal, mac, Wishes::default())
    }

    /// The same, for an owner with wishes.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn probe_with<H: DmaHal>(hal: &mut H, mac: MacAddress, wishes: Wishes) -> Result<Self, VfError> {
        let mailbox = Mailbox::new(hal)?;
        let none = Resources {
            pairs: 0,
            vectors: 0,
            max_frame: 0,
            capabilities: Capabilities::default(),
            vsi: 0,
            mac: [0; 6],
        };
        let (tx, rx) = (Vec::new(), Vec::new());
        let mut vf =
            Self { mailbox, wishes, resources: none, mac, tx, rx, link: None, reset_impending: false };
        vf.introduce(hal)?;
        for _ in 0..vf.resources.pairs {
            vf.tx.push(TxRing::new(hal)?);
            vf.rx.push(RxRing::new(hal, wishes.form)?);
        }
        Ok(vf)
    }

    fn introduce<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        let mut active = || {
            hal.wait(LOOK);
            ResetState::of(hal.read(r::VFGEN_RSTAT)) == ResetState::Active
        };
        if !(0..LOOKS).any(|_| active()) {
            return Err(VfError::NoReset);
        }
        self.mailbox.start(hal);
        (self.link, self.reset_impending) = (None, false);
        self.ask(hal, Request::Version(Version::V1_1))?;
        let request = Request::Resources(Some(self.wishes.capabilities));
        let body = self.ask(hal, request)?;
        self.resources = decode(&body).ok_or(VfError::Malformed(request.op().number()))?;
        if self.resources.mac != [0; 6] {
            self.mac = MacAddress(self.resources.mac);
        }
        Ok(())
    }

    /// Sets every queue up and lets it run: pair n raises vector n + 1.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn start<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        let vsi = self.resources.vsi;
        let own = Packed::new(&[Address { mac: self.mac.0, usage: AddressUse::Primary }]);
        self.ask(hal, Request::Addresses(true, vsi, own.list()))?;
        let pairs = self.pairs();
        let map = |n: u16| VectorMap { vsi, vector: n + 1, rx: 1 << n, tx: 1 << n, rx_itr: 0, tx_itr: 1 };
        let maps: Vec<_> = (0..pairs).map(map).collect();
        self.ask(hal, Request::MapVectors(Packed::new(&maps).list()))?;
        let (longest, keep_fcs) = (self.resources.max_frame, self.wishes.keep_fcs);
        let rings = self.tx.iter().zip(&self.rx).take(pairs.into()).zip(0..);
        let pair = |((tx, rx), queue): ((&TxRing, &RxRing), u16)| QueuePair {
            tx: tx.describe(vsi, queue),
            rx: rx.describe(vsi, queue, longest, keep_fcs),
        };
        let described: Vec<_> = rings.map(pair).collect();
        self.ask(hal, Request::ConfigureQueues(vsi, Packed::new(&described).list()))?;
        for (ring, queue) in self.rx.iter_mut().zip(0..) {
            ring.start(hal, queue);
        }
        self.tx.iter_mut().for_each(TxRing::start);
        let all = (1_u32 << pairs) - 1;
        self.ask(hal, Request::SwitchQueues(true, QueueSet { vsi, rx: all, tx: all }))?;
        for vector in 0..=pairs as u8 {
            self.enable_interrupt(hal, vector);
        }
        Ok(())
    }

    /// Stops every queue.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        let all = (1_u32 << self.pairs()) - 1;
        let queues = QueueSet { vsi: self.resources.vsi, rx: all, tx: all };
        self.ask(hal, Request::SwitchQueues(false, queues)).map(|_| ())
    }

    /// After a reset by whomever: introduces the VF and starts its queues again.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn restart<H: DmaHal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.introduce(hal)?;
        self.start(hal)
    }

    /// Resets the VF. [`Vf::restart`] is to follow.
    pub fn reset<H: DmaHal>(&mut self, hal: &mut H) {
        self.mailbox.send(hal, &Request::Reset);
    }

    /// Whether the function was reset: its mailbox is off.
    pub fn was_reset<H: DmaHal>(&self, hal: &mut H) -> bool {
        !mailbox::is_on(hal)
    }

    /// Looks for what the PF says of its own accord. Answers the link's speed, Mb/s.
    pub fn look<H: DmaHal>(&mut self, hal: &mut H) -> Option<u32> {
        while let Some(letter) = self.mailbox.receive(hal) {
            self.note(&letter);
        }
        self.link
    }

    /// Whether the PF has said that it is about to reset the VF.
    #[must_use]
    pub fn is_reset_impending(&self) -> bool {
        self.reset_impending
    }

    /// The address in use.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Queue pairs in use: as many as there are rings for.
    #[must_use]
    pub fn pairs(&self) -> u16 {
        self.resources.pairs.min(self.tx.len() as u16)
    }

    /// What the card counts for this VF.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn statistics<H: DmaHal>(&mut self, hal: &mut H) -> Result<Statistics, VfError> {
        let request = Request::Statistics(QueueSet { vsi: self.resources.vsi, rx: 0, tx: 0 });
        let body = self.ask(hal, request)?;
        decode(&body).ok_or(VfError::Malformed(request.op().number()))
    }

    /// Lets a vector interrupt again.
    pub fn enable_interrupt<H: DmaHal>(&self, hal: &mut H, vector: u8) {
        hal.write(r::dyn_ctl(vector), dyn_ctl::INTENA | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT);
    }

    /// Sends a frame by a queue; `false` if there is no room.
    pub fn transmit<H: DmaHal>(&mut self, hal: &mut H, queue: u8, frame: &[u8]) -> bool {
        self.transmit_with(hal, queue, frame, &TxOffload::default())
    }

    /// The same for a packet that the card completes or cuts. `false` too if its headers do not allow what is asked.
    pub fn transmit_with<H: DmaHal>(
        &mut self,
        hal: &mut H,
        queue: u8,
        packet: &[u8],
        offload: &TxOffload,
    ) -> bool {
        let ring = self.tx.get_mut(usize::from(queue));
        ring.is_some_and(|ring| ring.transmit(hal, queue, packet, offload))
    }

    /// The next frame of a queue, copied to the front of `into`.
    pub fn receive<H: DmaHal>(&mut self, hal: &mut H, queue: u8, into: &mut [u8]) -> Option<Received> {
        self.rx.get_mut(usize::from(queue)).and_then(|ring| ring.receive(hal, queue, into))
    }

    /// A request and its reply.
    ///
    /// # Errors
    /// [`VfError`].
    pub fn ask<H: DmaHal>(&mut self, hal: &mut H, request: Request<'_>) -> Result<Vec<u8>, VfError> {
        let number = request.op().number();
        self.mailbox.send(hal, &request);
        for _ in 0..mailbox::PATIENCE {
            while let Some(letter) = self.mailbox.receive(hal) {
                if letter.operation != number {
                    self.note(&letter);
                    continue;
                }
                return match letter.status {
                    Status::Success => Ok(letter.body),
                    status => Err(VfError::Refused(number, status.number())),
                };
            }
            hal.wait(mailbox::TICK);
        }
        Err(VfError::NoAnswer(number))
    }

    /// What the PF says of its own accord.
    fn note(&mut self, letter: &mailbox::Letter) {
        match decode(&letter.body).filter(|_| letter.operation == ::avf::virtchnl::Op::Event.number()) {
            Some(Event::Link { speed, up }) => self.link = up.then_some(speed),
            Some(Event::ResetImpending) => self.reset_impending = true,
            _ => {}
        }
    }
}
