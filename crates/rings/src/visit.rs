//! Visits a transmit queue: sends packets until the budget is spent, a frame is not due yet, or the queue is empty. The
//! card chooses the queue; `burst` and `send` send its packets.

use crate::burst::send_burst;
use crate::card::BurstCard;
use crate::packets::PacketTransmitter;
use crate::places::FrameMemory;
use crate::send::send_next;
use alloc::boxed::Box;
use plane::{FrameForwarder, TransmitQueueId};

/// Sends packets of a queue for up to `budget` frames. Returns `false` if no complete packet is left, or none may
/// follow.
pub fn visit<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    mut budget: usize,
    lane: &mut L,
) -> bool {
    let (mut left, mut places) = (true, lend(card));
    let mut bursts = !card.is_careful();
    while left && budget > 0 && lane.has_credit() && lane.is_due() {
        // A look at the ring costs less than finding no packet in it.
        if !card.has_more(sender) {
            left = false;
            break;
        }
        let plain = if bursts { send_burst(card, sender, &mut places.frames, budget, lane) } else { 0 };
        // A driver that sends packets of another kind sends more of them. A burst would read their descriptors in vain.
        bursts &= plain > 0 || C::KEEPS_DESCRIPTORS;
        let frames = if plain > 0 { Some(plain) } else { send_next(card, sender, &mut places, lane) };
        left = frames.is_some();
        budget = budget.saturating_sub(frames.unwrap_or(0));
    }
    *card.places() = Some(places);
    let faults = card.end_visit(sender, &lane.settle());
    lane.counters().dma_faults += faults;
    left
}

/// Takes a card's private frame memory out of the card; the caller returns it when the frames have passed.
#[inline]
pub(crate) fn lend<C: BurstCard>(card: &mut C) -> Box<FrameMemory> {
    card.places().take().unwrap_or_else(|| FrameMemory::new(0))
}
