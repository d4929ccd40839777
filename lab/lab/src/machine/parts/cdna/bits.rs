//! Interrupt bit vectors of a CDNA card: before it interrupts, the card writes a vector with a bit per
//! context to a circular buffer in the hypervisor's memory. If the buffer is full, bits are merged into the
//! last vector, so none is lost.

use std::collections::VecDeque;

/// Number of interrupt bit vectors that the circular buffer holds.
pub(crate) const VECTORS: usize = 16;

/// Circular buffer of a CDNA card's interrupt bit vectors.
#[derive(Debug, Default)]
pub(crate) struct InterruptBitVectors(VecDeque<u128>);

impl InterruptBitVectors {
    /// Appends an interrupt bit vector with a bit for each context to notify, or merges it into the last
    /// vector of a full buffer.
    pub(crate) fn push(&mut self, contexts: u128) {
        if contexts == 0 {
            return;
        }
        if self.0.len() < VECTORS {
            self.0.push_back(contexts);
        } else if let Some(last) = self.0.back_mut() {
            *last |= contexts;
        }
    }

    /// Takes all interrupt bit vectors out of the buffer. Returns the number of each context to notify, once.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = usize> + use<> {
        let all = self.0.drain(..).fold(0, |all, vector| all | vector);
        (0..128).filter(move |context| all >> context & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{InterruptBitVectors, VECTORS};

    #[test]
    fn cdna_bit_vectors_beyond_the_buffer_merge_into_the_last() {
        let mut bits = InterruptBitVectors::default();
        (0..VECTORS + 3).for_each(|n| bits.push(1 << n));
        bits.push(0);
        assert_eq!((bits.0.len(), bits.0.back()), (VECTORS, Some(&(0b1111 << (VECTORS - 1)))));
    }
}
