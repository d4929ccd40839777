//! Returns chains of a split ring to the driver (section 2.7.8).

use super::{INDEX, SplitQueue};
use crate::chain::{BURST, UsedChain, batch};
use crate::error::RingError;
use crate::memory::{RingMemory, release};

impl SplitQueue {
    /// Returns chains to the driver, in the order in which they were fetched, and publishes them by one write of the index.
    ///
    /// All buffers of a merged receive frame go into one call, so that the driver sees all or none.
    ///
    /// # Errors
    /// [`RingError`] if the ring is not accessible, or if more chains are returned than were fetched. The driver sees nothing
    /// of the chains then.
    pub fn complete<M: RingMemory>(
        &mut self,
        memory: &mut M,
        returned: &[UsedChain],
    ) -> Result<(), RingError> {
        if returned.is_empty() {
            return Ok(());
        }
        let fetched = self.fetched();
        if returned.len() > fetched.into() {
            return Err(RingError::NotFetched { returned: returned.len() as u32, fetched });
        }
        let mut index = self.used;
        let mut rest = returned;
        while !rest.is_empty() {
            // In order, one element returns a batch: it has the place of the first chain and the id of the last.
            let (skipped, written) = if self.features.in_order {
                let batch = batch(rest);
                (batch, &rest[batch - 1..batch])
            } else {
                let count = rest.len().min(BURST);
                (count, &rest[..count])
            };
            self.write_elements(memory, index, written)?;
            index = index.wrapping_add(skipped as u16);
            rest = &rest[skipped..];
        }
        release();
        memory.write(self.layout.addresses.device + INDEX, &index.to_le_bytes())?;
        self.used = index;
        self.unsignalled.add(returned.len() as u32);
        Ok(())
    }

    /// Writes up to [`BURST`] used elements from a running index on.
    #[inline]
    fn write_elements<M: RingMemory>(
        &self,
        memory: &mut M,
        index: u16,
        chains: &[UsedChain],
    ) -> Result<(), RingError> {
        let mut elements = [[0; 8]; BURST];
        for (element, chain) in elements.iter_mut().zip(chains) {
            *element = (u64::from(chain.id) | u64::from(chain.written) << 32).to_le_bytes();
        }
        let place = self.layout.place(index);
        let before_wrap = chains.len().min((self.layout.size - place).into());
        let (one, two) = elements[..chains.len()].split_at(before_wrap);
        memory.write(self.layout.used_entry(place), one.as_flattened())?;
        if !two.is_empty() {
            memory.write(self.layout.used_entry(0), two.as_flattened())?;
        }
        Ok(())
    }
}
