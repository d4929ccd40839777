//! Ring of batches of frames, from one part of a card to another, or to the uplink. It has one sender and one receiver, and takes no
//! lock. The memory is this process's own, and the same batches go back and forth.

use plane::TrunkBatch;
use rtrb::{Consumer, Producer, RingBuffer};

/// Maximum number of batches of a ring, some 2.3 MB. The sender fills the batch again that came back last, so few of them are in
/// use while the receiver keeps up. A batch is created when it is needed first, and stays.
const BATCHES: usize = 32;
/// Number of batches at the receiver from which on the sender keeps the open batch.
const MANY: usize = BATCHES / 2;

/// Sending end of a ring of batches.
#[derive(Debug)]
pub(super) struct BatchSender {
    open: Option<TrunkBatch>,
    empty: Vec<TrunkBatch>,
    /// Number of batches that exist, wherever they are.
    created: usize,
    /// True if the receiver got a batch since the last flush: full batches go to it at once.
    handed_over: bool,
    to_receiver: Producer<TrunkBatch>,
    from_receiver: Consumer<TrunkBatch>,
}

/// Receiving end of a ring of batches.
#[derive(Debug)]
pub(super) struct BatchReceiver {
    from_sender: Consumer<TrunkBatch>,
    to_sender: Producer<TrunkBatch>,
}

/// Creates a ring of batches.
pub(super) fn connect() -> (BatchSender, BatchReceiver) {
    let (to_receiver, from_sender) = RingBuffer::new(BATCHES);
    let (to_sender, from_receiver) = RingBuffer::new(BATCHES);
    let empty = Vec::with_capacity(BATCHES);
    let sender =
        BatchSender { open: None, empty, created: 0, handed_over: false, to_receiver, from_receiver };
    (sender, BatchReceiver { from_sender, to_sender })
}

impl BatchSender {
    /// Returns the batch that takes the next frame, of `bytes` bytes, or `None` if the receiver is behind by all batches.
    pub(super) fn batch(&mut self, bytes: usize) -> Option<&mut TrunkBatch> {
        if self.open.as_ref().is_some_and(|batch| !batch.has_room(bytes)) {
            self.hand_over();
        }
        if self.open.is_none() {
            self.take_back();
            self.open = self.empty.pop().or_else(|| self.create());
        }
        self.open.as_mut().filter(|batch| batch.has_room(bytes))
    }

    /// Hands the batch with frames to the receiver, unless the receiver is far behind: small batches would soon be used up.
    /// Returns true if a batch was handed over since the last call: the receiver has to be woken.
    pub(super) fn flush(&mut self) -> bool {
        self.take_back();
        let ready = self.open.as_ref().is_some_and(|batch| !batch.is_empty());
        let away = self.created - self.empty.len() - usize::from(self.open.is_some());
        let keeps = away >= MANY && !self.to_receiver_is_empty();
        if ready && !keeps {
            self.hand_over();
        }
        std::mem::take(&mut self.handed_over)
    }

    /// Returns true if frames have been put and not handed over.
    pub(super) fn holds_frames(&self) -> bool {
        self.open.as_ref().is_some_and(|batch| !batch.is_empty())
    }

    /// Creates one more batch, up to [`BATCHES`].
    #[cold]
    fn create(&mut self) -> Option<TrunkBatch> {
        let more = self.created < BATCHES;
        self.created += usize::from(more);
        more.then(TrunkBatch::default)
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
        while let Ok(batch) = self.from_receiver.pop() {
            self.empty.push(batch);
        }
    }
}

impl BatchReceiver {
    /// Calls `deliver` with the next batch, if there is one. Returns false if there is none.
    pub(super) fn take(&mut self, deliver: impl FnOnce(&mut TrunkBatch)) -> bool {
        let Ok(mut batch) = self.from_sender.pop() else { return false };
        deliver(&mut batch);
        batch.clear();
        // The ring has a slot for each batch.
        let _ = self.to_sender.push(batch);
        true
    }

    /// Returns true if no batch waits for the receiver.
    pub(super) fn is_empty(&self) -> bool {
        self.from_sender.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plane::TrunkFrameHeader;

    /// Puts a frame with a number into a ring.
    fn put(sender: &mut BatchSender, number: u32) -> bool {
        let frame = [&[0; 60][..], &number.to_be_bytes()].concat();
        let header = TrunkFrameHeader::to_uplink(None);
        sender.batch(frame.len()).is_some_and(|batch| batch.put(&header, &frame))
    }

    /// Takes all batches out of a ring, and returns the numbers of their frames.
    fn numbers(receiver: &mut BatchReceiver) -> Vec<u32> {
        let mut found = Vec::new();
        while receiver.take(|batch| {
            let frames = (0..batch.len()).filter_map(|number| batch.frame_bytes(number));
            found.extend(frames.map(|frame| u32::from_be_bytes(*frame.last_chunk().unwrap())));
        }) {}
        found
    }

    #[test]
    fn frames_leave_in_the_order_in_which_they_were_put() {
        let (mut sender, mut receiver) = connect();
        let mut expected = Vec::new();
        for round in 0..1_000 {
            (0..round % 7).for_each(|at| {
                assert!(put(&mut sender, round * 10 + at));
                expected.push(round * 10 + at);
            });
            sender.flush();
            if round % 5 == 0 {
                assert!(numbers(&mut receiver).iter().eq(expected.drain(..).as_slice()));
            }
        }
    }

    #[test]
    fn receiver_that_is_behind_loses_no_frames_of_many_small_rounds() {
        let (mut sender, mut receiver) = connect();
        for number in 0..1_000 {
            assert!(put(&mut sender, number), "frame {number} of as many rounds has no room");
            sender.flush();
        }
        assert!(sender.holds_frames(), "the sender calls again before it sleeps");
        let mut found = numbers(&mut receiver);
        assert!(sender.flush());
        found.extend(numbers(&mut receiver));
        assert!(found.into_iter().eq(0..1_000));
        assert!(sender.created <= BATCHES);
        assert!(!sender.holds_frames());
    }

    #[test]
    fn receiver_that_keeps_up_needs_two_batches() {
        let (mut sender, mut receiver) = connect();
        for number in 0..1_000 {
            assert!(put(&mut sender, number) && sender.flush());
            assert_eq!(numbers(&mut receiver), [number]);
        }
        assert!(sender.created <= 2, "{} batches", sender.created);
    }

    #[test]
    fn full_ring_takes_no_frame_until_a_batch_comes_back() {
        let (mut sender, mut receiver) = connect();
        let room = (0..100_000).take_while(|number| put(&mut sender, *number)).count();
        assert!(room >= 4_000, "only {room} frames had room");
        assert!(sender.flush(), "the receiver is woken, although no batch is open");
        assert!(!put(&mut sender, 0));
        assert!(receiver.take(|_| ()));
        assert!(put(&mut sender, 0));
    }
}
