//! Samples of a client's memory, by which the host finds a client that maps its memory privately.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::mapping::ClientMemoryFile;
use super::{DmaTable, PAGE_SIZE};
use crate::memory::read_memory_file;

/// Number of the lowest pages that are sampled: firmware writes a PC's first MiB before any driver runs.
const LOW_SAMPLES: u64 = 256;
/// Number of pages that are sampled from the rest of the guest's memory, at equal distances.
const SPREAD_SAMPLES: u64 = 256;

/// Sampled pages of a client's memory: at most 512.
#[derive(Debug)]
pub struct MemorySamples(Vec<(Arc<ClientMemoryFile>, u64)>);

impl MemorySamples {
    /// Returns true if all sampled pages hold only zeros. Belongs on a [`BlockingWorker`](crate::worker::BlockingWorker),
    /// since a page may have to come from a swap device.
    ///
    /// A client that maps its memory privately (`share=off`) also sends a file, but writes to private copies of the
    /// pages. In shared memory that is in use, the first page or two differ from zero.
    #[must_use]
    pub fn are_blank(&self) -> bool {
        let mut page = [0; PAGE_SIZE as usize];
        // By the mapping, each hole would become a page, and a huge page takes up to a second to clear.
        !self.0.iter().any(|(file, offset)| {
            read_memory_file(file.fd.as_fd(), *offset, &mut page).is_ok() && page != [0; PAGE_SIZE as usize]
        })
    }
}

impl DmaTable {
    /// Returns the lowest pages of the guest's memory, and some pages at equal distances in the rest.
    #[must_use]
    pub fn samples(&self) -> MemorySamples {
        let mut samples = Vec::new();
        let stride = (self.mapped_bytes / SPREAD_SAMPLES).next_multiple_of(PAGE_SIZE).max(PAGE_SIZE);
        let (mut low, mut offset) = (LOW_SAMPLES, 0);
        for region in &self.regions {
            let Some(memory) = &region.backing else { continue };
            while offset < region.size() {
                samples.push((Arc::clone(&memory.mapping.file), memory.file_offset() + offset));
                offset += if low > 0 { PAGE_SIZE } else { stride };
                low = low.saturating_sub(1);
            }
            // The distances continue in the next region, however small the regions are.
            offset -= region.size();
        }
        MemorySamples(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::super::DmaPermissions;
    use super::super::tests::{PAGE, memfd, table};
    use super::*;
    use std::os::fd::OwnedFd;

    fn are_blank(table: &DmaTable) -> bool {
        table.samples().are_blank()
    }

    #[test]
    fn guest_memory_counts_as_blank_until_sampled_pages_change() {
        let pages = 64 << 10;
        let blank = || table(&[(0, 4), (16, pages)]);
        assert!(are_blank(&DmaTable::default()));
        assert!(are_blank(&blank()));

        let low = blank();
        low.write(20 * PAGE, &[0; 100]).unwrap();
        assert!(are_blank(&low), "zeros do not count");
        low.write(260 * PAGE - 1, &[1]).unwrap();
        assert!(!are_blank(&low));

        let high = blank();
        for page in pages / 2..pages {
            high.write((16 + page) * PAGE, &[1]).unwrap();
        }
        assert!(!are_blank(&high));
    }

    #[test]
    fn at_most_512_pages_of_many_regions_are_sampled() {
        let (regions, mut table) = (3_000, DmaTable::default());
        let file = memfd(regions);
        for page in 0..regions {
            let memory = Some((file.try_clone().unwrap(), page * PAGE));
            table.map(2 * page * PAGE, PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
        }
        let samples: Vec<u64> = table.samples().0.iter().map(|(_, offset)| *offset).collect();
        assert_eq!(samples[..256], *(0..256).map(|page| page * PAGE).collect::<Vec<_>>());
        assert!((400..=512).contains(&samples.len()), "{} samples", samples.len());
        assert!(samples.is_sorted() && samples.last().is_some_and(|last| *last > (regions - 20) * PAGE));
    }

    /// A page that a look allocates costs time: for a huge page, up to a second.
    #[test]
    fn look_at_holes_of_a_file_allocates_no_page() {
        let file: OwnedFd = memfd(1024);
        let mut table = DmaTable::default();
        let memory = Some((file.try_clone().unwrap(), 0));
        table.map(0, 1024 * PAGE, DmaPermissions::READ_WRITE, memory).unwrap();
        assert!(are_blank(&table));
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_blocks, 0);
    }
}
