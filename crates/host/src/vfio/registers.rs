//! Mapped registers of a device: each 32-bit access happens once and in program order.
//!
//! Supports processors on which a full fence orders memory and registers, as on x86-64.

#![expect(unsafe_code, reason = "registers are reached by volatile accesses to a mapping")]

use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::memory::sigbus;

/// Registers of a device, mapped into this process and unmapped on drop.
pub struct MappedRegisters {
    base: NonNull<u8>,
    span: sigbus::MappedAddressRange,
    registration: sigbus::MappingRegistration,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only reached by whole volatile accesses.
unsafe impl Send for MappedRegisters {}

impl MappedRegisters {
    /// Maps `len` bytes (whole pages) of a device's region at `offset`.
    pub(super) fn map(device: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Self, Errno> {
        // Accesses fault when the device is removed.
        sigbus::install()?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint makes the kernel pick unused addresses, so no existing memory is touched.
        let start = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, device, offset) }?;
        let span = sigbus::MappedAddressRange { start: start as usize, len };
        match (NonNull::new(start.cast()), sigbus::register(span)) {
            (Some(base), Some(registration)) => Ok(Self { base, span, registration }),
            _ => {
                // SAFETY: no pointer into the mapping exists yet.
                let _ = unsafe { munmap(start, len) };
                Err(Errno::NOMEM)
            }
        }
    }

    /// Reads the register at a byte offset, a multiple of 4. Returns all ones beyond the region, and after the
    /// device was removed. The device's earlier writes to memory are visible afterwards.
    #[must_use]
    pub fn read(&self, offset: u32) -> u32 {
        let Some(register) = self.at(offset) else { return u32::MAX };
        // SAFETY: `at` checked that 4 aligned bytes are mapped there.
        let value = unsafe { register.read_volatile() };
        fence(Ordering::SeqCst);
        if self.registration.poisoned() { u32::MAX } else { u32::from_le(value) }
    }

    /// Writes the register at a byte offset, a multiple of 4. Ignores offsets beyond the region. The device sees
    /// earlier writes to memory first.
    pub fn write(&self, offset: u32, value: u32) {
        let Some(register) = self.at(offset) else { return };
        fence(Ordering::SeqCst);
        // SAFETY: `at` checked that 4 aligned bytes are mapped there.
        unsafe { register.write_volatile(value.to_le()) };
    }

    fn at(&self, offset: u32) -> Option<NonNull<u32>> {
        let offset = offset as usize;
        let inside = offset.is_multiple_of(size_of::<u32>()) && offset < self.span.len;
        // SAFETY: the offset lies inside the mapping, whose length is a multiple of a register's as its pages are.
        inside.then(|| unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for MappedRegisters {
    fn drop(&mut self) {
        // Before unmapping: afterwards the addresses may belong to another thread's mapping.
        self.registration.release();
        // SAFETY: the span was mapped by `map`, and no pointer into it outlives `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.span.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

impl fmt::Debug for MappedRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registers").field("len", &self.span.len).finish_non_exhaustive()
    }
}
