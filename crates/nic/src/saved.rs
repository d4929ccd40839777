//! The form in which a port's state is saved: its card's and its plane's, in one. Left out: versions of the form, which are
//! those of the whole port's state.

use crate::board::clock::Clock;
use crate::board::nvm::Nvm;
use crate::board::phy::Phy;
use crate::board::timer::TcpTimer;
use crate::buffer::PacketBuffer;
use crate::buffer::saved::SavedFrame;
use crate::counters::{Counters, PoolCounters};
use crate::damaged::Damaged;
use crate::file::RegisterFile;
use crate::interrupt::{Interrupts, Owners};
use crate::moderation::Throttle;
use crate::policy::{self, Plane, Rates, port};
use crate::queue::receive::ReceiveQueue;
use crate::queue::transmit::TransmitQueue;
use crate::queues::{Queues, per_queue};
use crate::spaces::Spaces;
use crate::state::Card;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use i82576::ids::{MAX_VFS, QUEUES};
use i82576::{Pool, Queue, Time};
use plane::pacing::{Account, Debt, Pacing};
use serde::{Deserialize, Serialize};

/// The state of a port between two calls. Moments in it are those of the clock that the calls were given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "NicState")]
pub struct State {
    basis: Basis,
    /// Frames that wait for descriptors, in the order in which they came.
    waiting: Vec<SavedFrame>,
}

/// A port's state without frames that wait: what the first version of a state has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "NicBasis")]
pub struct Basis {
    /// The words of the NVM, which no reset clears.
    nvm: Nvm,
    /// The registers behind MDIC, and the link as they tell it.
    phy: Phy,
    /// SYSTIM.
    clock: Clock,
    /// What TCPTIMER counts down.
    timer: TcpTimer,
    /// Every register of PF and VFs.
    file: RegisterFile,
    /// The configuration spaces of PF and VFs, as far as the card itself answers.
    spaces: Spaces,
    /// Vectors that have something to say, and the PF's one interrupt.
    interrupts: Interrupts,
    /// When each vector may fire next, and its credits.
    throttle: Throttle,
    /// When the window of storm control began.
    storm: SavedStorm,
    /// VFs that exist, and the functions that may master the bus.
    owners: Owners,
    /// VFs answer memory requests, as the SR-IOV capability says.
    vf_memory: bool,
    /// The receive queues, sixteen: descriptors fetched ahead, and filled and not given back.
    rx: Vec<ReceiveQueue>,
    /// The transmit queues, sixteen: descriptors fetched ahead, contexts, and packets of which segments wait.
    tx: Vec<TransmitQueue>,
    /// Transmit queues that may have something to send, a bit each.
    tx_ready: u16,
    /// What pools have to pay for in time before they may send again.
    pacing: SavedPacing,
    /// Transmit queue at which the next round starts, so that none is always first.
    first: u8,
    /// IOADDR.
    io_address: u32,
    /// The wire carries a signal.
    carrier: bool,
    /// The port has a link.
    link: bool,
    /// What VFs see of the link, where it is not the port's.
    links: [Option<bool>; MAX_VFS],
    /// What the card's owner counts of each pool. No reset clears it.
    counters: Counters,
}

/// Storm control: what else there is of it can be read in registers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Storm")]
struct SavedStorm {
    /// When the window began.
    began: Time,
}

/// What a pool owes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Pool")]
struct SavedSender {
    /// RTTBCNRC.
    control: u32,
    rate: Account,
    owed: u64,
    crossed: u64,
}

/// What leaving costs, and who still pays.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Pacing")]
struct SavedPacing {
    pools: [SavedSender; MAX_VFS],
    /// Queues, a bit each, in which frames were left by the last poll.
    waiting: u16,
    /// Bits a second between pools.
    #[serde(with = "bandwidth")]
    loopback: Option<NonZeroU64>,
    crossing: Account,
}

/// A state that no port can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of the card is damaged: {0}; start the port anew")]
pub struct RestoreError(#[from] Damaged);

/// Counters below this can go on counting for centuries, and several of them can be added up.
const MOST_COUNTED: u64 = 1 << 62;

impl SavedPacing {
    fn of(pacing: &Pacing<MAX_VFS>, rates: &Rates) -> Self {
        let (loopback, crossing) = pacing.crossing();
        let pools = Pool::EVERY.map(|pool| {
            let Debt { rate, owed, crossed, .. } = pacing.debt(port(pool));
            SavedSender { control: rates.control(pool), rate, owed, crossed }
        });
        let waits = |queue: &Queue| pacing.debt(port(queue.pool())).waiting >> queue.in_pool() & 1 != 0;
        let waiting = Queue::all().filter(waits).fold(0, |set, queue| set | 1 << queue.get());
        Self { pools, waiting, loopback, crossing }
    }

    fn is_sound(&self) -> bool {
        self.crossing.is_sound() && self.pools.iter().all(|pool| pool.rate.is_sound())
    }

    fn rates(&self) -> Rates {
        Rates::new(self.pools.map(|pool| pool.control))
    }

    fn resume(&self) -> Pacing<MAX_VFS> {
        let mut pacing = Pacing::resume(self.loopback, self.crossing);
        for (pool, saved) in Pool::EVERY.into_iter().zip(self.pools) {
            let SavedSender { control, rate, owed, crossed } = saved;
            let bit = |which: u8| self.waiting >> pool.queue(which).get() & 1;
            let debt = Debt { rate, owed, crossed, waiting: bit(0) | bit(1) << 1 };
            pacing.set_debt(port(pool), policy::factor(control), debt);
        }
        pacing
    }
}

/// A state in which no frame waits.
impl From<Basis> for State {
    fn from(basis: Basis) -> Self {
        Self { basis, waiting: Vec::new() }
    }
}

impl State {
    /// The state of a card and its plane.
    pub(crate) fn of(card: &Card, plane: &Plane) -> Self {
        Self { basis: Basis::of(card, plane), waiting: card.queues.buffer.save() }
    }

    /// The card and the plane that go on from here.
    ///
    /// # Errors
    /// [`Damaged`] if no card can be in this state.
    pub(crate) fn resume(self) -> Result<(Card, Plane), Damaged> {
        self.basis.check()?;
        Ok(self.basis.resume(PacketBuffer::restore(&self.waiting)?))
    }
}

impl Basis {
    /// What is wrong, beyond what its parts themselves have been held to when they were read.
    fn check(&self) -> Result<(), Damaged> {
        let rx = self.rx.iter().map(ReceiveQueue::queue).eq(Queue::all());
        let tx = self.tx.iter().map(TransmitQueue::queue).eq(Queue::all());
        let in_rings = self.rx.iter().all(|queue| queue.is_in_its_ring(&self.file))
            && self.tx.iter().all(|queue| queue.is_in_its_ring(&self.file));
        let counted = self.counters.iter().flat_map(PoolCounters::all).all(|count| count < MOST_COUNTED);
        let rules = [
            (rx && tx, "a queue is missing, or in another's place"),
            (in_rings, "a queue is at a descriptor beyond its ring"),
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

    fn of(card: &Card, plane: &Plane) -> Self {
        let Card {
            nvm,
            phy,
            clock,
            timer,
            file,
            spaces,
            interrupts,
            throttle,
            owners,
            vf_memory,
            queues: Queues { rx, tx, ready: tx_ready, first, buffer: _ },
            io_address,
            carrier,
            link,
            links,
            rates,
        } = card.clone();
        let storm = SavedStorm { began: plane.storm.began };
        let pacing = SavedPacing::of(&plane.pacing, &rates);
        let counters = plane.ledger.counters;
        Self {
            nvm,
            phy,
            clock,
            timer,
            file,
            spaces,
            interrupts,
            throttle,
            storm,
            owners,
            vf_memory,
            rx: rx.to_vec(),
            tx: tx.to_vec(),
            tx_ready,
            pacing,
            first,
            io_address,
            carrier,
            link,
            links,
            counters,
        }
    }

    /// The card and the plane that go on from here, with what waits.
    fn resume(mut self, buffer: PacketBuffer) -> (Card, Plane) {
        self.rx.iter_mut().for_each(|queue| queue.decode(&self.file));
        self.tx.iter_mut().for_each(|queue| queue.decode(&self.file));
        let Self {
            nvm,
            phy,
            clock,
            timer,
            file,
            spaces,
            interrupts,
            throttle,
            storm,
            owners,
            vf_memory,
            rx,
            tx,
            tx_ready,
            pacing,
            first,
            io_address,
            carrier,
            link,
            links,
            counters,
        } = self;
        let plane = policy::resume(&file, owners.vfs, pacing.resume(), storm.began, counters);
        let rates = pacing.rates();
        (
            Card {
                nvm,
                phy,
                clock,
                timer,
                file,
                spaces,
                interrupts,
                throttle,
                owners,
                vf_memory,
                queues: Queues { rx: per_queue(rx), buffer, tx: per_queue(tx), ready: tx_ready, first },
                io_address,
                carrier,
                link,
                links,
                rates,
            },
            plane,
        )
    }
}

/// A bandwidth as it is saved: 0 is none.
mod bandwidth {
    use core::num::NonZeroU64;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(loopback: &Option<NonZeroU64>, to: S) -> Result<S::Ok, S::Error> {
        loopback.map_or(0, NonZeroU64::get).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
        Ok(NonZeroU64::new(u64::deserialize(from)?))
    }
}
