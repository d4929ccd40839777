//! Memory pages of a function's owner: a receive ring, and buffers filled with a pattern. Old and new owner have equal
//! pages at the same addresses. So a device that still works for the old owner finds a valid ring in the new owner's
//! pages, and its writes are counted.

use host::shared::{SharedMemory, SharedMemoryError};

/// Device address of the owner's pages, into which the card writes received frames.
pub(super) const IOVA: u64 = 1 << 32;
/// Number of descriptors in the receive ring: legacy ones of 16 bytes, which every network card of Intel's has.
pub(super) const DESCRIPTORS: u32 = 256;
pub(super) const RING_BYTES: u32 = DESCRIPTORS * 16;
const BUFFER: u64 = 2048;
const PAGE: usize = 4096;
const PATTERN: u8 = 0xc5;

#[derive(Debug)]
pub(super) struct OwnerMemoryPages {
    memory: SharedMemory,
    /// Contents of the pages as the owner has written them.
    image: Vec<u8>,
}

impl OwnerMemoryPages {
    pub(super) fn new() -> Result<Self, SharedMemoryError> {
        let image = image();
        let memory = SharedMemory::new(image.len() as u64)?;
        // The write cannot fail: the memory is as long as the image.
        let _ = memory.memory().write(0, &image);
        Ok(Self { memory, image })
    }

    pub(super) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Returns the number of pages that the device has changed.
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
    use super::{DESCRIPTORS, OwnerMemoryPages, PAGE};

    #[test]
    fn memory_page_with_several_changes_counts_once() {
        let pages = OwnerMemoryPages::new().unwrap();
        assert_eq!(pages.changed(), 0);
        let write = |at: usize, bytes: &[u8]| pages.memory().memory().write(at as u64, bytes).unwrap();
        write(12, &[1]);
        write(PAGE, &[1; 60]);
        write(PAGE + 2048, &[1; 60]);
        assert_eq!(pages.changed(), 2);
        let last = PAGE + DESCRIPTORS as usize * 2048 - 1;
        write(last, &[0xc5]);
        assert_eq!(pages.changed(), 2, "a page with its old contents is unchanged");
        write(last, &[0xc4]);
        assert_eq!(pages.changed(), 3);
    }
}
