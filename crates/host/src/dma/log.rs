//! Migration log of one client: shared memory in which the device marks each page of guest memory that it has written,
//! while a VMM moves the guest to another machine (vhost-user, "Migration"). Bit `n % 8` of byte `n / 8` stands for the
//! page at guest address `4096 * n`.
//!
//! A page is marked after its write. The VMM clears a mark before it copies the page, so it copies either the new bytes
//! or finds a new mark. A mark before the write could be cleared before the bytes are there.
//!
//! The client may choose any size, truncate the log, or make it part of its guest memory. A mark outside the log is
//! dropped, and a truncated log poisons the client's memory like a truncated region ([`DmaTable::poisoned`]).

use std::os::fd::OwnedFd;

use super::mapping::ClientMemoryMappings;
use super::region::DmaRegionMemory;
use super::{DmaLimits, DmaPermissions, DmaTable, MapDmaRegionError, PAGE_SIZE};
use crate::memory::{FileMapError, finish_writes};

/// Size in bytes of the largest migration log: that of 8 TiB of guest addresses. A log's pages are charged to the host, and
/// the client chooses the size.
const LARGEST: u64 = 256 << 20;

/// Migration log that a DMA table has admitted, and whose memory is not mapped yet.
#[derive(Debug)]
pub struct PendingLog {
    offset: u64,
    /// Size of the log in bytes.
    size: u64,
    mappings: ClientMemoryMappings,
    limits: DmaLimits,
    /// First and last address of the memory that may have been written without a mark.
    unlogged: Vec<(u64, u64)>,
}

impl PendingLog {
    /// Maps an admitted log from the client's file, and marks the memory that may have been written without a mark. May
    /// block.
    ///
    /// # Errors
    /// The file descriptor is unsuitable, the file is too short, or a limit is reached.
    pub fn map(self, fd: OwnedFd) -> Result<MappedLog, MapDmaRegionError> {
        let Self { offset, size, mappings, limits, unlogged } = self;
        let permissions = DmaPermissions::READ_WRITE;
        let mapping = mappings.get(fd, (offset, size), permissions.protection(), limits)?;
        let skip = offset - mapping.start;
        let memory = DmaRegionMemory::new(mapping, skip, size, permissions).ok_or(FileMapError::BadRange)?;
        let log = MappedLog(memory);
        unlogged.into_iter().for_each(|(first, last)| log.mark(first, last));
        Ok(log)
    }
}

/// Mapped migration log. Dropping it may block: leave it to a [`BlockingWorker`](crate::worker::BlockingWorker).
#[derive(Debug)]
#[must_use = "drop the replaced log in a worker thread: munmap may take long"]
pub struct MappedLog(DmaRegionMemory);

/// Guest memory whose writes are logged at another guest address as well: a used ring that the VMM knows by another
/// address (`log_guest_addr` of vhost-user).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogAlias {
    /// First guest address of the written memory.
    pub address: u64,
    /// Size of the memory in bytes.
    pub size: u64,
    /// Guest address at which a write to the first byte is logged.
    pub logged_at: u64,
}

/// State of a client's migration log.
#[derive(Debug, Default)]
pub(super) struct MigrationLog {
    memory: Option<MappedLog>,
    /// True if the client wants writes to be logged.
    enabled: bool,
    /// Alias of each used ring, by ring number.
    aliases: Vec<(u32, LogAlias)>,
    /// True if writes are marked: a log is mapped and enabled.
    active: bool,
    /// True if the client may have freed the mapped log: it has started a ring since it set the log.
    stale: bool,
}

impl MigrationLog {
    fn update(&mut self) {
        self.active = self.enabled && self.memory.is_some();
    }

    /// Returns true if the client has truncated the log.
    pub(super) fn poisoned(&self) -> bool {
        self.memory.as_ref().is_some_and(|log| log.0.mapping.memory.poisoned())
    }

    /// Marks the pages of a write that is done, and those of its aliases.
    fn mark(&self, address: u64, length: u64) {
        let (Some(log), Some(last)) = (&self.memory, length.checked_sub(1)) else { return };
        let last = address.saturating_add(last);
        log.mark(address, last);
        for (_, LogAlias { address: first, size, logged_at }) in &self.aliases {
            let (from, to) = (address.max(*first), last.min(first.saturating_add(size.saturating_sub(1))));
            if from <= to && *size > 0 {
                let at = |address: u64| logged_at.saturating_add(address - first);
                log.mark(at(from), at(to));
            }
        }
    }
}

impl MappedLog {
    fn mark(&self, first: u64, last: u64) {
        self.0.view().set_bits(first / PAGE_SIZE, last / PAGE_SIZE);
    }
}

/// Migration log of the table's client.
impl DmaTable {
    /// Admits a migration log of `size` bytes at a file offset: returns the log to map, and then to
    /// [set](Self::set_log). Does not block.
    ///
    /// If logging is on without a log, or with a stale one, all memory will be marked in the new one: a client that connects
    /// again during a migration, or stops its device and starts it again, starts its rings before it sends its log.
    ///
    /// # Errors
    /// [`MapDmaRegionError::InvalidLog`].
    pub fn admit_log(&self, size: u64, offset: u64) -> Result<PendingLog, MapDmaRegionError> {
        let is_sized = (1..=LARGEST).contains(&size) && offset.checked_add(size).is_some();
        if !is_sized || !offset.is_multiple_of(PAGE_SIZE) {
            return Err(MapDmaRegionError::InvalidLog { size, offset });
        }
        let is_late = self.log.enabled && (self.log.memory.is_none() || self.log.stale);
        let writable = self.regions.iter().filter(|region| is_late && region.permissions.write);
        let unlogged = writable.map(|region| (region.first, region.last)).collect();
        Ok(PendingLog { offset, size, mappings: self.mappings.clone(), limits: self.limits, unlogged })
    }

    /// Sets the migration log. Returns the log before, which the caller drops.
    pub fn set_log(&mut self, log: MappedLog) -> Option<MappedLog> {
        let before = self.log.memory.replace(log);
        self.log.stale = false;
        self.log.update();
        self.forget_hints();
        before
    }

    /// Switches logging on or off. Without a log nothing is marked. Switching it off removes the log; aliases stay, since
    /// they belong to rings. Returns the log, which the caller drops.
    pub fn enable_log(&mut self, on: bool) -> Option<MappedLog> {
        let removed = if on { None } else { self.log.memory.take() };
        self.log.enabled = on;
        self.log.update();
        self.forget_hints();
        removed
    }

    /// Notes that the client has started a ring. QEMU frees the log of a device that it stops, without a message, and sends
    /// another one after it has started the device again.
    pub fn note_ring_start(&mut self) {
        self.log.stale = self.log.memory.is_some();
    }

    /// Switches logging off, and removes the log and all aliases. Returns the log, which the caller drops.
    pub fn remove_log(&mut self) -> Option<MappedLog> {
        self.forget_hints();
        std::mem::take(&mut self.log).memory
    }

    /// Sets or removes the alias of a ring's used ring. There is at most one for each ring number.
    pub fn alias_log(&mut self, ring: u32, alias: Option<LogAlias>) {
        self.log.aliases.retain(|(of, _)| *of != ring);
        self.log.aliases.extend(alias.map(|alias| (ring, alias)));
    }

    /// Returns true if the client has sent a log, which logging may not use yet.
    #[must_use]
    pub fn has_log(&self) -> bool {
        self.log.memory.is_some()
    }

    /// Returns true if writes are marked in a log.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.log.active
    }

    /// Marks a write that is done. Costs one comparison without a log.
    #[inline(always)]
    pub(super) fn written(&self, iova: u64, length: usize) {
        if self.log.active {
            self.log_writes(&[iova], |_| length);
        }
    }

    /// Marks writes that are done: each address with the length of its index.
    #[cold]
    #[inline(never)]
    pub(super) fn log_writes(&self, addresses: &[u64], length: impl Fn(usize) -> usize) {
        finish_writes();
        addresses.iter().enumerate().for_each(|(at, iova)| self.log.mark(*iova, length(at) as u64));
    }
}
