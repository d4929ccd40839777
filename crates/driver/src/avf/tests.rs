//! Tests the inbox of a PF without interrupts on a ring of bytes: messages, their order, and resets.

use super::inbox::{VfMessageInbox, VfMessageInboxLimits};
use super::queue::{AdminDescriptorContents, AdminReceiveQueue, MessageFromVf};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use proptest::prelude::{any, proptest};
use std::vec;
use std::vec::Vec;

const LIMITS: VfMessageInboxLimits = VfMessageInboxLimits { messages: 2, resets_every: 1 };

/// Returns the descriptor that the card writes for a message of a VF.
pub(super) fn sent(vf: u16, operation: u32) -> AdminQueueDescriptor {
    AdminQueueDescriptor {
        flags: flag::DD | flag::CMP | flag::BUF,
        opcode: opcode::SEND_TO_PF,
        length: 24,
        return_value: vf,
        cookie_high: operation,
        ..AdminQueueDescriptor::default()
    }
}

pub(super) fn put(ring: &mut [u8], slot: usize, descriptor: AdminQueueDescriptor) {
    ring[slot * SIZE..][..SIZE].copy_from_slice(&descriptor.emit());
}

fn queue(slots: u16) -> (Vec<u8>, AdminReceiveQueue) {
    let mut ring = vec![0xff; usize::from(slots) * SIZE];
    let queue = AdminReceiveQueue::new(slots, 4_096, 0x10_0000, 64, ring.as_mut_slice());
    (ring, queue)
}

#[test]
fn every_admin_queue_buffer_is_posted_at_its_address() {
    let (ring, queue) = queue(4);
    for (slot, raw) in ring.as_chunks().0.iter().enumerate() {
        let posted = AdminQueueDescriptor::parse(raw);
        assert_eq!(posted, AdminQueueDescriptor::posted(0x10_0000 + 4_096 * slot as u64, 4_096));
        assert_eq!(raw[..8], [0, 0x12, 0, 0, 0, 0x10, 0, 0], "BUF and LB; 4,096 bytes");
    }
    assert_eq!(queue.tail(), 3, "head == tail is empty, so the driver keeps one slot");
}

#[test]
fn admin_descriptor_with_error_or_unknown_vf_is_no_message() {
    let good = sent(3, 1);
    let strange = [
        AdminQueueDescriptor { flags: good.flags | flag::ERR, ..good },
        AdminQueueDescriptor { opcode: 0x0607, ..good },
        AdminQueueDescriptor { return_value: 64, ..good },
        AdminQueueDescriptor { length: 4_097, ..good },
    ];
    for descriptor in strange {
        let (mut ring, mut queue) = queue(4);
        put(&mut ring, 0, descriptor);
        assert_eq!(queue.take(ring.as_mut_slice()), Some(AdminDescriptorContents::Other(descriptor.opcode)));
    }
}

#[test]
fn pf_driver_poll_takes_a_limited_message_batch_in_order() {
    let (mut ring, queue) = queue(8);
    let mut inbox = VfMessageInbox::new(queue, LIMITS, 64);
    (0..5).for_each(|n| put(&mut ring, n, sent(1, n as u32)));
    for wanted in [vec![0, 1], vec![2, 3], vec![4], vec![]] {
        inbox.begin();
        let served: Vec<_> = core::iter::from_fn(|| inbox.next(ring.as_mut_slice())).collect();
        assert!(served.iter().map(|message| message.operation).eq(wanted.iter().copied()));
        assert_eq!(
            inbox.end().is_some(),
            !wanted.is_empty(),
            "the tail is written when a buffer is returned"
        );
    }
}

#[test]
fn vf_reset_cancels_the_vfs_messages_already_in_the_ring() {
    let (mut ring, queue) = queue(8);
    let mut inbox = VfMessageInbox::new(queue, LIMITS, 64);
    for (slot, (vf, operation)) in [(1, 10), (2, 20), (2, 21), (1, 11)].into_iter().enumerate() {
        put(&mut ring, slot, sent(vf, operation));
    }
    inbox.begin();
    inbox.cancel(1, ring.as_slice());
    put(&mut ring, 4, sent(1, 12));
    let mut served = Vec::new();
    for _ in 0..4 {
        inbox.begin();
        served.extend(core::iter::from_fn(|| inbox.next(ring.as_mut_slice())));
    }
    assert!(served.iter().map(|message| message.operation).eq([20, 21, 12]));
    assert_eq!(inbox.dropped(), 2);
}

proptest! {
    /// Tests that a receive descriptor is read once and posted again, for any memory contents.
    #[test]
    fn admin_receive_descriptor_is_consumed_once(bytes in any::<[u8; SIZE]>()) {
        let (mut ring, mut queue) = queue(4);
        ring[..SIZE].copy_from_slice(&bytes);
        let found = queue.take(ring.as_mut_slice());
        assert_eq!(found.is_some(), u16::from(bytes[0]) & flag::DD != 0);
        if let Some(AdminDescriptorContents::Message(MessageFromVf { vf, length, slot, .. })) = found {
            assert!(vf < 64 && length <= 4_096 && slot == 0);
        }
        assert_eq!(queue.take(ring.as_mut_slice()), None);
    }
}
