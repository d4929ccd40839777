//! Ring of batches of frames, from one part of a card to another, or to the uplink. It has one sender and one receiver, and takes no
//! lock. The memory is this process's own, and the same batches go back and forth. Several VFs put frames into a batch, and each has
//! a share of the ring (`shares`).

mod shares;
#[cfg(test)]
mod tests;

use pcie::MAX_VFS;
use plane::TrunkBatch;
use rtrb::{Consumer, Producer, RingBuffer};
pub(super) use shares::TrunkShare;
use shares::{ChargedBatch, SLOTS, ShareAccounts};

/// Maximum number of batches of a ring, up to 10.7 MB. The sender fills the batch again that came back last, so few of them are in use
/// while the receiver keeps up. A batch is created when it is needed first, and stays. [`POOL`], and a batch for each VF.
const BATCHES: usize = POOL + MAX_VFS;
/// Number of batches that shares take beyond [`RESERVED`] slots. One share alone takes half of them.
const POOL: usize = 64;
/// Slots that a share may always take, in frames whose last may begin below: with a run of 32 long frames some 121 slots.
const RESERVED: usize = 32;
/// Number of batches at the receiver from which on the sender keeps the open batch.
const MANY: usize = POOL / 4;

/// Sending end of a ring of batches.
#[derive(Debug)]
pub(super) struct BatchSender {
    open: Option<ChargedBatch>,
    empty: Vec<ChargedBatch>,
    /// Number of batches that exist, wherever they are.
    created: usize,
    /// True if the receiver got a batch since the last flush: full batches go to it at once.
    handed_over: bool,
    accounts: ShareAccounts,
    /// Share that puts the frames into the open batch at present.
    filler: TrunkShare,
    to_receiver: Producer<ChargedBatch>,
    from_receiver: Consumer<ChargedBatch>,
}

/// Receiving end of a ring of batches.
#[derive(Debug)]
pub(super) struct BatchReceiver {
    from_sender: Consumer<ChargedBatch>,
    to_sender: Producer<ChargedBatch>,
}

/// Creates a ring of batches.
pub(super) fn connect() -> (BatchSender, BatchReceiver) {
    let (to_receiver, from_sender) = RingBuffer::new(BATCHES);
    let (to_sender, from_receiver) = RingBuffer::new(BATCHES);
    let sender = BatchSender {
        open: None,
        empty: Vec::with_capacity(BATCHES),
        created: 0,
        handed_over: false,
        accounts: ShareAccounts::new(),
        filler: TrunkShare::default(),
        to_receiver,
        from_receiver,
    };
    (sender, BatchReceiver { from_sender, to_sender })
}

impl BatchSender {
    /// Returns the batch that takes the next frames of a share, the first of which has `bytes` bytes. Returns `None` if the share
    /// may put no more, or if the receiver is behind by all batches.
    pub(super) fn batch(&mut self, share: TrunkShare, bytes: usize) -> Option<&mut TrunkBatch> {
        self.settle();
        self.filler = share;
        if !self.may_put(share) {
            self.take_back();
            if !self.may_put(share) {
                return None;
            }
        }
        if let Some(batch) = self.open.as_mut().filter(|batch| !batch.frames.has_room(bytes)) {
            batch.charge_rest(share, &mut self.accounts);
            self.hand_over();
        }
        if self.open.is_none() {
            self.take_back();
            self.open = self.empty.pop().or_else(|| self.create());
        }
        self.open.as_mut().map(|batch| &mut batch.frames).filter(|frames| frames.has_room(bytes))
    }

    /// Returns true if a share has less in the ring than is free in the pool, or less than is reserved for it.
    fn may_put(&self, share: TrunkShare) -> bool {
        let used = self.away() * SLOTS + self.open.as_ref().map_or(0, ChargedBatch::charged);
        self.accounts.held(share) < (POOL * SLOTS).saturating_sub(used).max(RESERVED)
    }

    /// Charges the frames that were put into the open batch to the share that has put them.
    fn settle(&mut self) {
        if let Some(batch) = &mut self.open {
            batch.settle(self.filler, &mut self.accounts);
        }
    }

    /// Returns the number of batches on the way to the receiver and back.
    fn away(&self) -> usize {
        self.created - self.empty.len() - usize::from(self.open.is_some())
    }

    /// Hands the batch with frames to the receiver, unless the receiver is far behind: small batches would soon be used up.
    /// Returns true if a batch was handed over since the last call: the receiver has to be woken.
    pub(super) fn flush(&mut self) -> bool {
        self.take_back();
        let ready = self.holds_frames();
        let keeps = self.away() >= MANY && !self.to_receiver_is_empty();
        if ready && !keeps {
            self.settle();
            self.hand_over();
        }
        std::mem::take(&mut self.handed_over)
    }

    /// Returns true if frames have been put and not handed over.
    pub(super) fn holds_frames(&self) -> bool {
        self.open.as_ref().is_some_and(|batch| !batch.frames.is_empty())
    }

    /// Creates one more batch, up to [`BATCHES`].
    #[cold]
    fn create(&mut self) -> Option<ChargedBatch> {
        let more = self.created < BATCHES;
        self.created += usize::from(more);
        more.then(ChargedBatch::new)
    }

    fn to_receiver_is_empty(&self) -> bool {
        self.to_receiver.slots() == BATCHES
    }

    fn hand_over(&mut self) {
        // The ring has a slot for each batch, so it takes this one.
        if let Some(batch) = self.open.take() {
            match self.to_receiver.push(batch) {
                Ok(()) => self.handed_over = true,
                Err(rtrb::PushError::Full(batch)) => self.open = Some(batch),
            }
        }
    }

    fn take_back(&mut self) {
        while let Ok(mut batch) = self.from_receiver.pop() {
            batch.refund(&mut self.accounts);
            self.empty.push(batch);
        }
    }
}

impl BatchReceiver {
    /// Calls `deliver` with the next batch, if there is one. Returns false if there is none.
    pub(super) fn take(&mut self, deliver: impl FnOnce(&mut TrunkBatch)) -> bool {
        let Ok(mut batch) = self.from_sender.pop() else { return false };
        deliver(&mut batch.frames);
        batch.frames.clear();
        // The ring has a slot for each batch.
        let _ = self.to_sender.push(batch);
        true
    }

    /// Returns true if no batch waits for the receiver.
    pub(super) fn is_empty(&self) -> bool {
        self.from_sender.is_empty()
    }
}
