//! Shares of a ring of batches. A share is the room that one VF takes in the ring. Its limit is the dynamic threshold of switches with
//! shared memory (Choudhury and Hahne, 1998): a share may put more frames into the ring while it has less there than is free. So `n`
//! shares that flood the ring leave about one part of `n + 1` free. Each share has some slots for itself beside that, for the time
//! until the threshold has taken effect. A share gets its room back as the receiver takes batches.

use pcie::MAX_VFS;
use plane::{PortIndex, TrunkBatch};

/// Slots of a batch: its maximum number of frames. Room is counted in slots.
pub(super) const SLOTS: usize = 128;
/// Bytes of a slot: those of a batch, divided by [`SLOTS`].
const SLOT_BYTES: usize = 545;

/// Share of a ring: that of a VF that sends, or that of a VF that receives frames from the uplink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::port::engine) struct TrunkShare(u8);

impl TrunkShare {
    /// Number of shares.
    const COUNT: usize = 2 * MAX_VFS;

    /// Returns the share of a VF that sends frames, by its number below [`MAX_VFS`], or `None` for another number.
    pub(in crate::port::engine) fn of_sender(number: u8) -> Option<Self> {
        (usize::from(number) < MAX_VFS).then_some(Self(number))
    }

    /// Returns the share of a VF that receives frames from the uplink.
    pub(in crate::port::engine) fn of_receiver(port: PortIndex) -> Self {
        Self(MAX_VFS as u8 + port.get() % MAX_VFS as u8)
    }
}

/// Number of slots that each share has in a ring, until the batches with its frames have come back.
#[derive(Debug)]
pub(super) struct ShareAccounts([u32; TrunkShare::COUNT]);

impl ShareAccounts {
    pub(super) fn new() -> Self {
        Self([0; TrunkShare::COUNT])
    }

    /// Returns the number of slots of a share.
    pub(super) fn held(&self, share: TrunkShare) -> usize {
        self.0[usize::from(share.0)] as usize
    }
}

/// Batch of frames, and the slots of each share in it.
#[derive(Debug)]
pub(super) struct ChargedBatch {
    pub(super) frames: TrunkBatch,
    /// Slots of shares, in the order of the frames. A share may occur several times.
    charges: Vec<(TrunkShare, u8)>,
    /// Sum of the charges, at most [`SLOTS`].
    charged: usize,
}

impl ChargedBatch {
    /// Creates an empty batch. Each charge is for a slot at least, so that the list of charges never grows.
    pub(super) fn new() -> Self {
        Self { frames: TrunkBatch::default(), charges: Vec::with_capacity(SLOTS), charged: 0 }
    }

    /// Returns the number of charged slots.
    pub(super) fn charged(&self) -> usize {
        self.charged
    }

    /// Charges a share for the slots that were used since the last charge.
    #[inline]
    pub(super) fn settle(&mut self, share: TrunkShare, accounts: &mut ShareAccounts) {
        self.charge_up_to(self.used(), share, accounts);
    }

    /// Charges a share for all slots that are left, since its next frame does not fit into them.
    pub(super) fn charge_rest(&mut self, share: TrunkShare, accounts: &mut ShareAccounts) {
        self.charge_up_to(SLOTS, share, accounts);
    }

    fn charge_up_to(&mut self, used: usize, share: TrunkShare, accounts: &mut ShareAccounts) {
        let slots = used.saturating_sub(self.charged) as u8;
        if slots == 0 {
            return;
        }
        self.charged = used;
        accounts.0[usize::from(share.0)] += u32::from(slots);
        match self.charges.last_mut() {
            Some((last, sum)) if *last == share => *sum += slots,
            _ => self.charges.push((share, slots)),
        }
    }

    /// Gives the slots back to the shares, after the receiver has taken the frames.
    pub(super) fn refund(&mut self, accounts: &mut ShareAccounts) {
        for (share, slots) in self.charges.drain(..) {
            accounts.0[usize::from(share.0)] -= u32::from(slots);
        }
        self.charged = 0;
    }

    /// Returns the number of slots that the frames use: by their number, or by their bytes if these need more.
    fn used(&self) -> usize {
        let count = self.frames.len();
        let last = self.frames.places(count.saturating_sub(1)..count);
        let (Some(start), Some(length)) = (last.starts.first(), last.lengths.first()) else { return 0 };
        ((*start as usize + *length as usize) / SLOT_BYTES).max(count).min(SLOTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plane::TrunkFrameHeader;

    #[test]
    fn full_batch_has_its_number_of_slots() {
        for length in [60, 300, 1_514, 9_000, 65_536] {
            let mut batch = ChargedBatch::new();
            let header = TrunkFrameHeader::to_uplink(None);
            let frame = vec![0; length];
            while batch.frames.put(&header, &frame) {}
            let used = batch.used();
            // Fewer bytes are left than the next frame needs.
            let left = (length + 128) / SLOT_BYTES + 1;
            assert!(
                (SLOTS - left.min(8 + 2 * length / SLOT_BYTES)..=SLOTS).contains(&used),
                "{length}: {used}"
            );
        }
    }

    #[test]
    fn each_slot_of_a_batch_is_charged_once() {
        let (mut batch, mut accounts) = (ChargedBatch::new(), ShareAccounts::new());
        let [one, other] = [0, 63].map(|number| TrunkShare::of_sender(number).unwrap());
        for share in [one, other, one] {
            assert!(batch.frames.put(&TrunkFrameHeader::to_uplink(None), &[0; 60]));
            batch.settle(share, &mut accounts);
            batch.settle(other, &mut accounts);
        }
        assert_eq!((accounts.held(one), accounts.held(other), batch.charged()), (2, 1, 3));
        batch.charge_rest(other, &mut accounts);
        assert_eq!((accounts.held(one), accounts.held(other), batch.charged()), (2, SLOTS - 2, SLOTS));
        batch.refund(&mut accounts);
        assert_eq!((accounts.held(one), accounts.held(other), batch.charged()), (0, 0, 0));
    }
}
