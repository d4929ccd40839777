//! Next descriptors of a transmit queue, as a burst of plain frames takes them.

use crate::offload::transmit::request;
use crate::queue::BURST;
use i82576::descriptor::SIZE;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AnyTxDescriptor, parse, summed_length};
use offload::OffloadRequest;

/// Next descriptors of a transmit queue for a burst of plain frames. Linux puts a context before each packet that asks
/// for checksums. If the first is a context, the data descriptors are copied here, so that a burst sees frames alone.
#[derive(Debug, Clone)]
pub(crate) struct BurstDescriptors {
    /// Index of the first taken descriptor in the queue's burst of fetched descriptors.
    pub(super) first: usize,
    /// True if the data descriptors were copied out of the queue's fetched burst.
    pub(super) copied: bool,
    /// Number of data descriptors that were copied out.
    pub(super) count: usize,
    pub(super) raw: [[u8; SIZE]; BURST],
    /// For each copied frame, the number of descriptors up to and including the frame's own, context descriptors
    /// included.
    pub(super) ends: [u8; BURST],
    pub(super) requests: [OffloadRequest; BURST],
}

impl Default for BurstDescriptors {
    fn default() -> Self {
        let requests = [OffloadRequest::default(); BURST];
        Self { first: 0, copied: false, count: 0, raw: [[0; SIZE]; BURST], ends: [0; BURST], requests }
    }
}

impl BurstDescriptors {
    /// Copies the data descriptors of plain frames out of `descriptors`. Skips context descriptors, and stops at the
    /// first descriptor of any other packet. `contexts` are the queue's contexts in effect before the first descriptor.
    pub(super) fn copy(&mut self, descriptors: &[[u8; SIZE]], mut contexts: [AdvancedContextDescriptor; 2]) {
        for (raw, end) in descriptors.iter().zip(1..) {
            if summed_length(second(raw)).is_some() {
                let (Some(orders), at) = (RawDataDescriptor::of(raw), self.count) else { break };
                let context = &contexts[usize::from(orders.context() & 1)];
                (self.raw[at], self.ends[at], self.requests[at]) = (*raw, end, request(orders, context));
                self.count += 1;
            } else if let AnyTxDescriptor::Context(context) = parse(raw) {
                contexts[usize::from(context.index & 1)] = context;
            } else {
                break;
            }
        }
    }
}

/// Returns the second word of a descriptor: its command and its status.
#[inline]
pub(super) fn second(raw: &[u8; SIZE]) -> u64 {
    (u128::from_le_bytes(*raw) >> 64) as u64
}
