//! Saved form of a port's state: its card's and its plane's together. The crate that saves the whole port versions it.

use crate::board::clock::SystimClock;
use crate::board::nvm::Nvm;
use crate::board::phy::Phy;
use crate::board::timer::TcpTimer;
use crate::buffer::PacketBuffer;
use crate::buffer::saved::SavedFrame;
use crate::counters::{PoolCounterArray, PoolCounters};
use crate::damaged::InvalidStateError;
use crate::file::RegisterFile;
use crate::interrupt::{Interrupts, VectorAndQueueOwners};
use crate::moderation::InterruptThrottle;
use crate::queue::receive::ReceiveQueue;
use crate::queue::transmit::TransmitQueue;
use crate::queues::{CardQueues, per_queue};
use crate::spaces::ConfigSpaces;
use crate::state::DeviceState;
use crate::switch::{self, PoolPlane, PoolRates, port};
use alloc::vec::Vec;
use core::num::NonZeroU64;
use i82576::ids::{MAX_VFS, QUEUES};
use i82576::{PoolIndex, QueueIndex, Time};
use plane::pacing::{TransmitPacing, TransmitRateDebt, TransmitTimeAccount};
use serde::{Deserialize, Serialize};

/// Saved state of a port between two calls. Its times come from the clock that the caller passes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "NicState")]
pub struct NicState {
    basis: NicBaseState,
    /// Frames that wait for descriptors, in the order of their arrival.
    waiting: Vec<SavedFrame>,
    /// End of the PHY's negotiation; `None` if the PHY does not negotiate.
    negotiation: Option<Time>,
}

/// Saved state of a port without the PHY's negotiation, as versions 2 and 3 of a saved card have it.
#[derive(Debug, Clone, Deserialize)]
pub struct NicStateV2 {
    basis: NicBaseState,
    waiting: Vec<SavedFrame>,
}

/// Saved state of a port without the frames in its packet buffer. The first version of the saved format has nothing
/// else.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "NicBasis")]
pub struct NicBaseState {
    /// Words of the NVM, which no reset clears.
    nvm: Nvm,
    /// PHY registers behind MDIC, and the link that they report.
    phy: Phy,
    /// IEEE 1588 clock of the card (SYSTIM).
    clock: SystimClock,
    /// Countdown of the TCP timer (TCPTIMER).
    timer: TcpTimer,
    /// Stored values of every register of PF and VFs.
    file: RegisterFile,
    /// Configuration spaces of PF and VFs that the card itself answers.
    spaces: ConfigSpaces,
    /// Vectors with a pending message, and the PF's single interrupt.
    interrupts: Interrupts,
    /// Time from which each vector may send its next message, and its credits for urgent frames.
    throttle: InterruptThrottle,
    /// Start of the storm control window.
    storm: SavedStorm,
    /// Number of VFs, and the functions that may master the bus.
    owners: VectorAndQueueOwners,
    /// True if VFs answer memory requests (VF MSE of the SR-IOV capability).
    vf_memory: bool,
    /// The sixteen receive queues: descriptors fetched ahead, and those filled and not written back.
    rx: Vec<ReceiveQueue>,
    /// The sixteen transmit queues: descriptors fetched ahead, contexts, and packets with pending segments.
    tx: Vec<TransmitQueue>,
    /// Transmit queues that may have something to send, a bit each.
    tx_ready: u16,
    /// Transmit rates of the pools, and the times at which they may send again.
    pacing: SavedPacing,
    /// Transmit queue that the next poll visits first, so that no queue is always first.
    first: u8,
    /// Register offset that IOADDR of the I/O BAR selects.
    io_address: u32,
    /// True if the wire to the port carries a signal.
    carrier: bool,
    /// True if the saved port has a link.
    link: bool,
    /// Link state that the administrator set for each VF; `None` follows the port's link.
    links: [Option<bool>; MAX_VFS],
    /// Nanoseconds by which the card served the pool late when the pool's last frame left.
    counters: PoolCounterArray,
}

/// Saved state of storm control beside its registers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Storm")]
struct SavedStorm {
    /// Start time of the storm control window.
    began: Time,
}

/// Saved transmit rate of a pool, and the pool's account of transmit time and lateness.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "Pool")]
struct SavedPoolRate {
    /// Transmit rate of the pool, as in RTTBCNRC.
    control: u32,
    /// Time that the pool's frames have cost so far at its transmit rate.
    rate: TransmitTimeAccount,
    /// Lateness of the card when the pool's last frame left, nanoseconds.
    owed: u64,
    /// Time in nanoseconds at which the bandwidth between pools has carried the pool's last frame to other pools.
    crossed: u64,
}

/// Saved state of transmit rates: each pool's, and the bandwidth inside the card.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Pacing")]
struct SavedPacing {
    pools: [SavedPoolRate; MAX_VFS],
    /// Transmit queues in which the last poll left frames to send, a bit each.
    waiting: u16,
    /// Limit of the traffic between pools, bits per second.
    #[serde(with = "bandwidth")]
    loopback: Option<NonZeroU64>,
    crossing: TransmitTimeAccount,
}

/// Error: a saved state is invalid, because no port can have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved state of the 82576 card is damaged: {0}; restart the port without the saved state")]
pub struct RestoreError(#[from] InvalidStateError);

/// Upper bound of a restored counter. A counter below it can count for centuries, and sums of several do not overflow.
const MOST_COUNTED: u64 = 1 << 62;

impl SavedPacing {
    fn of(pacing: &TransmitPacing<MAX_VFS>, rates: &PoolRates) -> Self {
        let (loopback, crossing) = pacing.crossing();
        let pools = PoolIndex::EVERY.map(|pool| {
            let TransmitRateDebt { rate, owed, crossed, .. } = pacing.debt(port(pool));
            SavedPoolRate { control: rates.control(pool), rate, owed, crossed }
        });
        let waits = |queue: &QueueIndex| pacing.debt(port(queue.pool())).waiting >> queue.in_pool() & 1 != 0;
        let waiting = QueueIndex::all().filter(waits).fold(0, |set, queue| set | 1 << queue.get());
        Self { pools, waiting, loopback, crossing }
    }

    fn is_sound(&self) -> bool {
        self.crossing.is_sound() && self.pools.iter().all(|pool| pool.rate.is_sound())
    }

    fn rates(&self) -> PoolRates {
        PoolRates::new(self.pools.map(|pool| pool.control))
    }

    fn resume(&self) -> TransmitPacing<MAX_VFS> {
        let mut pacing = TransmitPacing::resume(self.loopback, self.crossing);
        for (pool, saved) in PoolIndex::EVERY.into_iter().zip(self.pools) {
            let SavedPoolRate { control, rate, owed, crossed } = saved;
            let bit = |which: u8| self.waiting >> pool.queue(which).get() & 1;
            let debt = TransmitRateDebt { rate, owed, crossed, waiting: bit(0) | bit(1) << 1 };
            pacing.set_debt(port(pool), switch::factor(control), debt);
        }
        pacing
    }
}

/// Converts a state of the format's first version, in which no frame waits in the packet buffer.
impl From<NicBaseState> for NicState {
    fn from(basis: NicBaseState) -> Self {
        Self { basis, waiting: Vec::new(), negotiation: None }
    }
}

/// Converts a state of the format's second version, in which the link was up at once.
impl From<NicStateV2> for NicState {
    fn from(NicStateV2 { basis, waiting }: NicStateV2) -> Self {
        Self { basis, waiting, negotiation: None }
    }
}

impl NicState {
    /// Saves the states of a card and of its plane.
    pub(crate) fn of(card: &DeviceState, plane: &PoolPlane) -> Self {
        let negotiation = card.phy.negotiates_until();
        Self { basis: NicBaseState::of(card, plane), waiting: card.queues.buffer.save(), negotiation }
    }

    /// Creates the card and the plane that continue from the saved state.
    ///
    /// # Errors
    /// [`InvalidStateError`] if no card can be in this state.
    pub(crate) fn resume(mut self) -> Result<(DeviceState, PoolPlane), InvalidStateError> {
        self.basis.check()?;
        self.basis.phy.resume_negotiation(self.negotiation);
        Ok(self.basis.resume(PacketBuffer::restore(&self.waiting)?))
    }
}

impl NicBaseState {
    /// Checks the rules that hold between parts of the saved state. Each part was checked by itself when it was read.
    ///
    /// # Errors
    /// [`InvalidStateError`] names the first rule that does not hold.
    fn check(&self) -> Result<(), InvalidStateError> {
        let rx = self.rx.iter().map(ReceiveQueue::queue).eq(QueueIndex::all());
        let tx = self.tx.iter().map(TransmitQueue::queue).eq(QueueIndex::all());
        let in_rings = self.rx.iter().all(|queue| queue.is_in_its_ring(&self.file))
            && self.tx.iter().all(|queue| queue.is_in_its_ring(&self.file));
        let counted = self.counters.iter().flat_map(PoolCounters::all).all(|count| count < MOST_COUNTED);
        let rules = [
            (rx && tx, "the sixteen queues are incomplete or out of order"),
            (in_rings, "a queue's position is beyond the end of its ring"),
            (
                self.owners.vfs == self.spaces.active_vfs(),
                "the number of VFs differs from the SR-IOV capability",
            ),
            (self.owners.masters >> (MAX_VFS + 1) == 0, "bus mastering is set for a function beyond VF 7"),
            (self.interrupts.is_sound(), "an interrupt message is pending for a vector beyond the last"),
            (usize::from(self.first) < QUEUES, "the next transmit queue to visit is beyond the last"),
            (self.pacing.is_sound(), "the fraction in a pool's rate-limit debt is a nanosecond or more"),
            (counted, "a counter is 2^62 or more"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(InvalidStateError(rule)))
    }

    fn of(card: &DeviceState, plane: &PoolPlane) -> Self {
        let DeviceState {
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
            queues: CardQueues { rx, tx, ready: tx_ready, first, buffer: _ },
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

    /// Creates the card and the plane that continue from the saved state, with the frames that wait in `buffer`.
    fn resume(mut self, buffer: PacketBuffer) -> (DeviceState, PoolPlane) {
        // Decoded rings follow from registers and are not saved.
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
        let plane = switch::resume(&file, owners.vfs, pacing.resume(), storm.began, counters);
        let rates = pacing.rates();
        (
            DeviceState {
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
                queues: CardQueues { rx: per_queue(rx), buffer, tx: per_queue(tx), ready: tx_ready, first },
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

/// Saved form of a bandwidth limit: 0 for no limit.
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
