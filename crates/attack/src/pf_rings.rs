//! Well-behaved driver of an 82576's PF: one receive ring and one transmit ring, without interrupts or offloads.

use anyhow::{Result, ensure};
use driver::{DmaAllocation, DmaHal};
use i82576::bits::{ctrl, dctl, rctl, srrctl, tctl};
use i82576::register::{CTRL, EIMC, IMC, RCTL, TCTL, ral, rx, tx};
use std::time::Duration;

/// Register blocks of receive queue 0 and of transmit queue 0.
pub(crate) const RECEIVE: u32 = 0xc000;
pub(crate) const TRANSMIT: u32 = 0xe000;
/// Number of descriptors in each ring, and bytes of a descriptor.
const SLOTS: u32 = 64;
const DESCRIPTOR: u32 = 16;
/// Bytes of a receive buffer, and of the transmit buffer, which holds one frame of any length.
const RECEIVE_BUFFER: usize = 2048;
const TRANSMIT_BUFFER: usize = 16 << 10;
/// Parts of the second word of a transmit descriptor: advanced data descriptor, end of packet, check sequence, report.
const ONE_FRAME: u64 = 3 << 20 | 1 << 29 | 1 << 24 | 1 << 25 | 1 << 27;
/// Position of the frame's length in the second word, beside the buffer's.
const PAYLOAD: u32 = 46;
/// Offset in a descriptor of the byte whose bit 0 says that the card has completed it.
const DONE: u64 = 12;
/// Pause between two looks at a queue that is being enabled, and the most looks.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 1000;

/// Rings of a started PF.
#[derive(Debug)]
pub struct PfRings {
    mac: [u8; 6],
    ring: DmaAllocation,
    buffer: DmaAllocation,
    /// Next slot to fill, and the slot of the last frame.
    next: u32,
    last: Option<u32>,
}

impl PfRings {
    /// Starts frame reception and transmission of a PF that has been reset.
    ///
    /// # Errors
    /// A queue is not enabled, or memory is exhausted.
    pub fn start<H: DmaHal>(hal: &mut H) -> Result<Self> {
        hal.write(IMC, u32::MAX);
        hal.write(EIMC, u32::MAX);
        let control = hal.read(CTRL);
        hal.write(CTRL, control | ctrl::SLU);
        let [low, high] = [ral(0), ral(0) + 4].map(|register| hal.read(register).to_le_bytes());
        let mac = [low[0], low[1], low[2], low[3], high[0], high[1]];
        let bytes = (SLOTS * DESCRIPTOR) as usize;
        let [received, ring] = [hal.dma_alloc(bytes, 4096)?, hal.dma_alloc(bytes, 4096)?];
        let buffers = hal.dma_alloc(SLOTS as usize * RECEIVE_BUFFER, 4096)?;
        for slot in 0..u64::from(SLOTS) {
            let address = buffers.iova + slot * RECEIVE_BUFFER as u64;
            hal.dma_write(received.iova + slot * u64::from(DESCRIPTOR), &address.to_le_bytes());
        }
        let buffer = hal.dma_alloc(TRANSMIT_BUFFER, 4096)?;
        let format = (srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT) | (RECEIVE_BUFFER as u32 / 1024);
        hal.write(RECEIVE + rx::SRRCTL, format);
        hal.write(RCTL, rctl::EN | rctl::BAM);
        hal.write(TCTL, tctl::EN | tctl::PSP);
        enable(hal, RECEIVE, &received)?;
        enable(hal, TRANSMIT, &ring)?;
        hal.write(RECEIVE + rx::RDT, SLOTS - 1);
        Ok(Self { mac, ring, buffer, next: 0, last: None })
    }

    /// Returns the PF's Ethernet address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Sends a frame. The card must have completed the frame before.
    ///
    /// # Errors
    /// The frame is too long.
    pub fn send<H: DmaHal>(&mut self, hal: &mut H, frame: &[u8]) -> Result<()> {
        ensure!(frame.len() <= TRANSMIT_BUFFER, "a frame has at most {TRANSMIT_BUFFER} bytes");
        hal.dma_write(self.buffer.iova, frame);
        let length = frame.len() as u64;
        let words = [self.buffer.iova, ONE_FRAME | length | length << PAYLOAD];
        hal.dma_write(self.slot(self.next), &words.map(u64::to_le_bytes).concat());
        self.last = Some(self.next);
        self.next = (self.next + 1) % SLOTS;
        hal.write(TRANSMIT + tx::TDT, self.next);
        Ok(())
    }

    /// Returns true if the card has not completed the last frame.
    pub fn is_sending<H: DmaHal>(&mut self, hal: &mut H) -> bool {
        let Some(last) = self.last else { return false };
        let mut done = [0];
        hal.dma_read(self.slot(last) + DONE, &mut done);
        done[0] & 1 == 0
    }

    /// Stops frame reception and transmission.
    pub fn stop<H: DmaHal>(&mut self, hal: &mut H) {
        for register in [RCTL, TCTL, RECEIVE + rx::RXDCTL, TRANSMIT + tx::TXDCTL] {
            hal.write(register, 0);
        }
    }

    fn slot(&self, slot: u32) -> u64 {
        self.ring.iova + u64::from(slot * DESCRIPTOR)
    }
}

/// Sets up and enables a queue: both kinds have the same registers at the same offsets of their blocks.
fn enable<H: DmaHal>(hal: &mut H, block: u32, ring: &DmaAllocation) -> Result<()> {
    hal.write(block + tx::TDBAL, ring.iova as u32);
    hal.write(block + tx::TDBAH, (ring.iova >> 32) as u32);
    hal.write(block + tx::TDLEN, ring.length as u32);
    hal.write(block + tx::TDH, 0);
    hal.write(block + tx::TDT, 0);
    hal.write(block + tx::TXDCTL, dctl::ENABLE);
    for _ in 0..LOOKS {
        if hal.read(block + tx::TXDCTL) & dctl::ENABLE != 0 {
            return Ok(());
        }
        hal.wait(LOOK);
    }
    anyhow::bail!("the queue at {block:#x} is not enabled within {:?}", LOOK * LOOKS)
}

#[cfg(test)]
mod tests {
    use super::{RECEIVE, TRANSMIT};
    use i82576::QueueIndex;
    use i82576::register::{rx, rx_block, tx, tx_block};

    #[test]
    fn rings_use_the_first_queue_and_equal_offsets() {
        let first = QueueIndex::new(0).unwrap();
        assert_eq!((rx_block(first), tx_block(first)), (RECEIVE, TRANSMIT));
        let received = [rx::RDBAL, rx::RDBAH, rx::RDLEN, rx::RDH, rx::RDT, rx::RXDCTL];
        assert_eq!(received, [tx::TDBAL, tx::TDBAH, tx::TDLEN, tx::TDH, tx::TDT, tx::TXDCTL]);
    }
}
