//! An owner's pages, as both owners have them at the same addresses: a receive ring whose descriptors name buffers behind
//! it, and in the buffers a pattern. A device that still works for the old owner finds a ring that it knows, and whatever it
//! writes is a change. Left out: what was written.

use host::shared::{SharedMemory, SharedMemoryError};

/// Where the device finds them.
pub(super) const IOVA: u64 = 1 << 32;
/// Descriptors of 16 bytes, legacy ones, which every network card of Intel's has.
pub(super) const DESCRIPTORS: u32 = 256;
pub(super) const RING_BYTES: u32 = DESCRIPTORS * 16;
const BUFFER: u64 = 2048;
const PAGE: usize = 4096;
const PATTERN: u8 = 0xc5;

#[derive(Debug)]
pub(super) struct Pages {
    memory: SharedMemory,
    /// What is in them as long as nobody writes.
    image: Vec<u8>,
}

impl Pages {
    pub(super) fn new() -> Result<Self, SharedMemoryError> {
        let image = image();
        let memory = SharedMemory::new(image.len() as u64)?;
        // The memory is as long as the image, and ours.
        let _ = memory.memory().write(0, &image);
        Ok(Self { memory, image })
    }

    pub(super) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// How many pages are not as they were.
    pub(super) fn changed(&self) -> u32 {
        let mut page = [0; PAGE];
        let differs = |(at, was): (usize, &[u8])| {
            self.memory.memory().read((at * PAGE) as u64, &mut page).is_err() || page != *was
        };
        self.image.chunks_exact(PAGE).enumerate().map(differs).map(u32::from).sum()
    }
}

fn image() -> Vec<u8> {
    let buffers = IOVA + u64::from(RING_BYTES);
    let descriptor = |at| (u128::from(buffers + u64::from(at) * BUFFER)).to_le_bytes();
    let mut image: Vec<u8> = (0..DESCRIPTORS).flat_map(descriptor).collect();
    image.resize(RING_BYTES as usize + DESCRIPTORS as usize * BUFFER as usize, PATTERN);
    image
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTORS, PAGE, Pages};

    #[test]
    fn a_page_counts_once_however_much_of_it_is_changed() {
        let pages = Pages::new().unwrap();
        assert_eq!(pages.changed(), 0);
        let write = |at: usize, bytes: &[u8]| pages.memory().memory().write(at as u64, bytes).unwrap();
        write(12, &[1]);
        write(PAGE, &[1; 60]);
        write(PAGE + 2048, &[1; 60]);
        assert_eq!(pages.changed(), 2);
        let last = PAGE + DESCRIPTORS as usize * 2048 - 1;
        write(last, &[0xc5]);
        assert_eq!(pages.changed(), 2, "what is as it was is no change");
        write(last, &[0xc4]);
        assert_eq!(pages.changed(), 3);
    }
}
