//! What a port is from one call to the next, and nothing else: what its resets clear, and what a successor needs to go
//! on where it stood. Left out: what follows from it ([`Derived`](crate::decoded::Derived)), and what lasts no longer
//! than a call ([`Scratch`](crate::scratch::Scratch)).

use crate::board::clock::Clock;
use crate::board::nvm::Nvm;
use crate::board::phy::Phy;
use crate::board::timer::TcpTimer;
use crate::counters::{Counters, PoolCounters};
use crate::file::RegisterFile;
use crate::function::config::Spaces;
use crate::interrupt::{Interrupts, Owners};
use crate::moderation::Throttle;
use crate::pacing::Pacing;
use crate::queue::receive::ReceiveQueue;
use crate::queue::transmit::TransmitQueue;
use crate::switch::Storm;
use crate::{Config, Nic};
use alloc::vec::Vec;
use i82576::Queue;
use i82576::bits::rah;
use i82576::ids::{MAX_VFS, QUEUES};
use i82576::register as r;
use serde::{Deserialize, Serialize};

/// The state of a port between two calls. Moments in it are those of the clock that the calls were given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "NicState")]
pub struct State {
    /// The words of the NVM, which no reset clears.
    pub(crate) nvm: Nvm,
    /// The registers behind MDIC, and the link as they tell it.
    pub(crate) phy: Phy,
    /// SYSTIM.
    pub(crate) clock: Clock,
    /// What TCPTIMER counts down.
    pub(crate) timer: TcpTimer,
    /// Every register of PF and VFs.
    pub(crate) file: RegisterFile,
    /// The configuration spaces of PF and VFs, as far as the card itself answers.
    pub(crate) spaces: Spaces,
    /// Vectors that have something to say, and the PF's one interrupt.
    pub(crate) interrupts: Interrupts,
    /// When each vector may fire next, and its credits.
    pub(crate) throttle: Throttle,
    /// When the window of storm control began.
    pub(crate) storm: Storm,
    /// VFs that exist, and the functions that may master the bus.
    pub(crate) owners: Owners,
    /// VFs answer memory requests, as the SR-IOV capability says.
    pub(crate) vf_memory: bool,
    /// The receive queues, sixteen: descriptors fetched ahead, and filled and not given back.
    pub(crate) rx: Vec<ReceiveQueue>,
    /// The transmit queues, sixteen: descriptors fetched ahead, contexts, and packets of which segments wait.
    pub(crate) tx: Vec<TransmitQueue>,
    /// Transmit queues that may have something to send, a bit each.
    pub(crate) tx_ready: u16,
    /// What pools have to pay for in time before they may send again.
    pub(crate) pacing: Pacing,
    /// Transmit queue at which the next round starts, so that none is always first.
    pub(crate) first: u8,
    /// IOADDR.
    pub(crate) io_address: u32,
    /// The wire carries a signal.
    pub(crate) carrier: bool,
    /// The port has a link.
    pub(crate) link: bool,
    /// What VFs see of the link, where it is not the port's.
    pub(crate) links: [Option<bool>; MAX_VFS],
    /// What the card's owner counts of each pool. No reset clears it.
    pub(crate) counters: Counters,
}

/// A part of a state that cannot be, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub(crate) &'static str);

/// A state that no port can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of the card is damaged: {0}; start the port anew")]
pub struct RestoreError(#[from] Damaged);

/// Counters below this can go on counting for centuries, and several of them can be added up.
const MOST_COUNTED: u64 = 1 << 62;

impl Nic {
    /// All that a successor needs to go on where this port stands. To be called between two calls, as everything is.
    #[must_use]
    pub fn save(&self) -> State {
        self.state.clone()
    }

    /// A port that goes on from a state: whatever it is called for, it does as the one that was saved would have.
    ///
    /// # Errors
    /// [`RestoreError`] if no port can be in this state. Whatever a state says that is restored, the port is bounded
    /// in what it does as any other.
    pub fn restore(state: State) -> Result<Self, RestoreError> {
        state.check()?;
        Ok(Self::of(state))
    }
}

impl State {
    /// What is wrong, beyond what its parts themselves have been held to when they were read.
    fn check(&self) -> Result<(), Damaged> {
        let rx = self.rx.iter().map(ReceiveQueue::queue).eq(Queue::all());
        let tx = self.tx.iter().map(TransmitQueue::queue).eq(Queue::all());
        let counted = self.counters.iter().flat_map(PoolCounters::all).all(|count| count < MOST_COUNTED);
        let rules = [
            (rx && tx, "a queue is missing, or in another's place"),
            (
                self.owners.vfs == self.spaces.active_vfs(),
                "VFs exist that the SR-IOV capability does not know",
            ),
            (self.owners.masters >> (MAX_VFS + 1) == 0, "a function masters the bus that there is not"),
            (self.interrupts.is_sound(), "a vector has something to say that there is not"),
            (usize::from(self.first) < QUEUES, "the round of transmit queues starts beyond the last"),
            (self.pacing.is_sound(), "a pool's debt is not in whole nanoseconds and a fraction"),
            (counted, "a counter is about to overflow"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(Damaged(what)))
    }

    /// Power-on.
    pub(crate) fn new(config: &Config) -> Self {
        let mut state = Self {
            nvm: Nvm::new(config.mac, config.iov),
            phy: Phy::new(),
            clock: Clock::default(),
            timer: TcpTimer::default(),
            file: RegisterFile::new(),
            spaces: Spaces::new(config.mac, config.iov),
            interrupts: Interrupts::default(),
            throttle: Throttle::new(),
            storm: Storm::default(),
            owners: Owners { vfs: 0, masters: 0 },
            vf_memory: false,
            rx: Queue::all().map(ReceiveQueue::new).collect(),
            tx: Queue::all().map(TransmitQueue::new).collect(),
            tx_ready: 0,
            pacing: Pacing::new(config.loopback),
            first: 0,
            io_address: 0,
            carrier: false,
            link: false,
            links: [None; MAX_VFS],
            counters: Counters::default(),
        };
        state.load_address();
        state
    }

    /// RAL0 and RAH0 are loaded from the NVM at each reset.
    pub(crate) fn load_address(&mut self) {
        let (low, high) = self.nvm.mac().to_words();
        self.file.set(r::ral(0), low);
        self.file.set(r::rah(0), high | rah::AV | 1 << rah::POOLSEL_SHIFT);
    }
}
