//! Samples of a client's memory, by which the host finds a client that maps its memory privately.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::file::ClientMemoryFile;
use crate::memory::read_memory_file;

/// Size of a sample in bytes: a page.
const SAMPLE: u64 = 4096;
/// Number of the lowest pages that are sampled: firmware writes a PC's first MiB before any driver runs.
const LOW_SAMPLES: u64 = 256;
/// Number of pages that are sampled from the rest of the guest's memory, at equal distances.
const SPREAD_SAMPLES: u64 = 256;

/// Sampled pages of a client's memory: at most 512.
#[derive(Debug)]
pub struct MemorySamples(pub(super) Vec<(Arc<ClientMemoryFile>, u64)>);

impl MemorySamples {
    /// Chooses the samples of DMA regions with `mapped_bytes` of memory, each with its size, its file and its offset in the file:
    /// the lowest pages, and some at equal distances in the rest.
    pub(super) fn of<'a>(
        regions: impl Iterator<Item = (u64, &'a Arc<ClientMemoryFile>, u64)>,
        mapped_bytes: u64,
    ) -> Self {
        let mut samples = Vec::new();
        let stride = (mapped_bytes / SPREAD_SAMPLES).next_multiple_of(SAMPLE).max(SAMPLE);
        let (mut low, mut offset) = (LOW_SAMPLES, 0);
        for (size, file, first) in regions {
            while offset < size {
                samples.push((Arc::clone(file), first + offset));
                offset += if low > 0 { SAMPLE } else { stride };
                low = low.saturating_sub(1);
            }
            // The distances continue in the next region, however small the regions are.
            offset -= size;
        }
        Self(samples)
    }

    /// Returns true if all sampled pages hold only zeros. Belongs on a [`BlockingWorker`](crate::worker::BlockingWorker),
    /// since a page may have to come from a swap device.
    ///
    /// A client that maps its memory privately (`share=off`) also sends a file, but writes to private copies of the
    /// pages. In shared memory that is in use, the first page or two differ from zero.
    #[must_use]
    pub fn are_blank(&self) -> bool {
        let mut page = [0; SAMPLE as usize];
        // By the mapping, each hole would become a page, and a huge page takes up to a second to clear.
        !self.0.iter().any(|(file, offset)| {
            read_memory_file(file.fd.as_fd(), *offset, &mut page).is_ok() && page != [0; SAMPLE as usize]
        })
    }
}
