//! Table of a client's DMA windows, which checks the rules for mapping and unmapping windows.
//!
//! An unmap removes every window inside its range, like Linux's VFIO, and not only the one that it names exactly:
//! QEMU unmaps all addresses when a guest's IOMMU detaches a device, and a remaining window would give the card
//! memory that the guest has taken back. An unmap of a range without windows succeeds, also as in Linux: QEMU unmaps such ranges
//! too, and Cloud Hypervisor unmaps windows whose mapping the server has refused. The latter's client ignores errors and waits for
//! the body of a successful reply, so an error would hang it.

use alloc::{collections::BTreeMap, vec::Vec};

use zerocopy::{FromBytes, IntoBytes};

use super::answer::ReplyWriter;
use super::device::{DmaWindow, DmaWindowFile, RequestCompletionTiming, ServedDevice};
use crate::wire::{DMA_PAGE_SIZE, DmaMapBody, DmaUnmapBody, Errno, dma_flags};

/// First and last address of a DMA window.
#[derive(Debug, Clone, Copy)]
pub(super) struct DmaWindowRange {
    first: u64,
    last: u64,
}

/// Table of the DMA windows that a client has mapped, in the order of their addresses.
#[derive(Debug)]
pub(super) struct DmaWindowTable {
    /// Last address of each DMA window, by its first address.
    windows: BTreeMap<u64, u64>,
    limit: usize,
    /// Rest of the range to unmap, if the device has suspended an unmap.
    unmapping: Option<DmaWindowRange>,
}

impl DmaWindowTable {
    pub(super) fn new(limit: usize) -> Self {
        Self { windows: BTreeMap::new(), limit, unmapping: None }
    }

    /// Restores the DMA windows that the previous process had mapped.
    pub(super) fn resume(&mut self, windows: impl IntoIterator<Item = (u64, u64)>) {
        self.windows.extend(windows);
    }

    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns true if the device has suspended an unmap.
    pub(super) fn is_unmapping(&self) -> bool {
        self.unmapping.is_some()
    }

    /// Returns true if a DMA window overlaps the range. Windows are disjoint, so the function checks only the last
    /// window that starts at or before the range's end.
    fn overlaps(&self, first: u64, last: u64) -> bool {
        self.windows.range(..=last).next_back().is_some_and(|(_, &end)| end >= first)
    }

    /// Returns true if a DMA window lies partly inside the range and partly outside.
    fn cuts_a_window(&self, first: u64, last: u64) -> bool {
        let below = self.windows.range(..first).next_back();
        let highest = self.windows.range(first..=last).next_back();
        below.is_some_and(|(_, &end)| end >= first) || highest.is_some_and(|(_, &end)| end > last)
    }

    /// Makes the device map a DMA window. The caller must [insert](Self::insert) the window once the device has mapped
    /// it.
    pub(super) fn map<F, D: ServedDevice<F>>(
        &self,
        body: &[u8],
        fds: Vec<F>,
        device: &mut D,
    ) -> Result<(DmaWindowRange, RequestCompletionTiming), Errno> {
        let map = parse_map(body, fds)?;
        let (first, last) = bounds(map.iova, map.size)?;
        if self.overlaps(first, last) {
            return Err(Errno::EEXIST);
        }
        if self.windows.len() >= self.limit {
            return Err(Errno::ENOSPC);
        }
        Ok((DmaWindowRange { first, last }, device.dma_map(map)?))
    }

    pub(super) fn insert(&mut self, window: DmaWindowRange) {
        self.windows.insert(window.first, window.last);
    }

    pub(super) fn unmap<F, D: ServedDevice<F>>(
        &mut self,
        body: &[u8],
        device: &mut D,
        answer: &mut ReplyWriter<'_, F>,
    ) -> Result<(), Errno> {
        let (mut entry, _) = DmaUnmapBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
        let range = match self.unmapping.take() {
            Some(rest) => Some(rest),
            None => self.range_to_unmap(&entry)?,
        };
        self.unmapping = range.and_then(|range| self.unmap_highest(range, device));
        if self.unmapping.is_none() {
            entry.argsz.set(size_of::<DmaUnmapBody>() as u32);
            answer.send(&[entry.as_bytes()]);
        }
        Ok(())
    }

    /// Returns the range of a request to unmap windows, or `None` if the range has no window.
    fn range_to_unmap(&self, entry: &DmaUnmapBody) -> Result<Option<DmaWindowRange>, Errno> {
        let (iova, size) = (entry.address.get(), entry.size.get());
        match entry.flags.get() {
            0 => {
                let (first, last) = bounds(iova, size)?;
                if self.cuts_a_window(first, last) {
                    return Err(Errno::ENOENT);
                }
                Ok(self.overlaps(first, last).then_some(DmaWindowRange { first, last }))
            }
            // As in the kernel, "all" takes no range.
            dma_flags::UNMAP_ALL if iova == 0 && size == 0 => {
                let lowest = self.windows.first_key_value().map(|(&first, _)| first);
                let highest = self.windows.last_key_value().map(|(_, &last)| last);
                Ok(lowest.zip(highest).map(|(first, last)| DmaWindowRange { first, last }))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Has the device unmap the highest windows of a range. Returns the rest of the range, or `None` if nothing is left.
    fn unmap_highest<F, D: ServedDevice<F>>(
        &mut self,
        DmaWindowRange { first, last }: DmaWindowRange,
        device: &mut D,
    ) -> Option<DmaWindowRange> {
        let rest = device.dma_unmap(first, last - first + 1);
        // Without a removal, the rest ends behind the last address.
        let is_removed = |window: &u64| *window >= first + rest;
        while let Some((&window, _)) =
            self.windows.range(..=last).next_back().filter(|(at, _)| is_removed(at))
        {
            self.windows.remove(&window);
        }
        (rest > 0).then(|| DmaWindowRange { first, last: first + rest - 1 })
    }

    pub(super) fn clear<F, D: ServedDevice<F>>(&mut self, device: &mut D) {
        device.dma_unmap_all();
        self.windows.clear();
    }
}

fn parse_map<F>(body: &[u8], mut fds: Vec<F>) -> Result<DmaWindow<F>, Errno> {
    let (map, _) = DmaMapBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    let (flags, offset, size) = (map.flags.get(), map.offset.get(), map.size.get());
    let too_small = (map.argsz.get() as usize) < size_of::<DmaMapBody>();
    let unknown = flags & !(dma_flags::READ | dma_flags::WRITE | dma_flags::MMAP) != 0;
    let lacks_file = flags & dma_flags::MMAP != 0 && fds.is_empty();
    if too_small || unknown || lacks_file || fds.len() > 1 {
        return Err(Errno::EINVAL);
    }
    let file = match fds.pop() {
        Some(fd) => {
            let end = offset.checked_add(size).ok_or(Errno::EINVAL)?;
            if offset % DMA_PAGE_SIZE != 0 || end > i64::MAX as u64 {
                return Err(Errno::EINVAL);
            }
            Some(DmaWindowFile { fd, offset })
        }
        None => None,
    };
    Ok(DmaWindow {
        iova: map.address.get(),
        size,
        readable: flags & dma_flags::READ != 0,
        writable: flags & dma_flags::WRITE != 0,
        file,
    })
}

/// Returns first and last address of a DMA window, or refuses the window: it must have whole pages, not be empty and
/// not wrap around. Refuses the last page of the address space too: no guest has memory there, and the sum of address
/// and size then never overflows.
fn bounds(iova: u64, size: u64) -> Result<(u64, u64), Errno> {
    if size == 0 || !(iova | size).is_multiple_of(DMA_PAGE_SIZE) {
        return Err(Errno::EINVAL);
    }
    let end = iova.checked_add(size).ok_or(Errno::EINVAL)?;
    Ok((iova, end - 1))
}

#[cfg(test)]
mod tests {
    use super::{DmaWindowRange, DmaWindowTable, bounds};
    use alloc::vec::Vec;

    /// Pages of the tests' address space.
    const PAGES: u64 = 7;

    /// Returns all sets of disjoint windows, each window as its first and last page.
    fn window_sets() -> impl Iterator<Item = Vec<(u64, u64)>> {
        // Each page is free, begins a window, or continues the window of the page before.
        (0..3_usize.pow(PAGES as u32)).filter_map(|case| {
            let mut windows: Vec<(u64, u64)> = Vec::new();
            for page in 0..PAGES {
                match case / 3_usize.pow(page as u32) % 3 {
                    0 => {}
                    1 => windows.push((page, page)),
                    _ => match windows.last_mut() {
                        Some(window) if window.1 + 1 == page => window.1 = page,
                        _ => return None,
                    },
                }
            }
            Some(windows)
        })
    }

    #[test]
    fn dma_window_ranges_are_compared_with_any_windows() {
        let bytes = |(first, last): (u64, u64)| bounds(first << 12, (last + 1 - first) << 12).unwrap();
        for windows in window_sets() {
            let mut table = DmaWindowTable::new(PAGES as usize);
            for (first, last) in windows.iter().map(|window| bytes(*window)) {
                table.insert(DmaWindowRange { first, last });
            }
            for (first, last) in (0..PAGES).flat_map(|first| (first..PAGES).map(move |last| (first, last))) {
                let touched = || windows.iter().filter(|window| window.0 <= last && window.1 >= first);
                let whole = touched().all(|window| first <= window.0 && window.1 <= last);
                let (start, end) = bytes((first, last));
                assert_eq!(table.overlaps(start, end), touched().count() > 0, "{windows:?} {first} {last}");
                assert_eq!(table.cuts_a_window(start, end), !whole, "{windows:?} {first} {last}");
            }
        }
    }
}
