//! Bus of an attacked function in this guest: registers by sysfs, memory in huge pages, and the stall of each access.

use super::tell;
use anyhow::{Context, Result};
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use host::huge_pages::{DmaHugePage, HUGE_PAGE};
use host::poll::{MonotonicClock, SignalHandlers, SignalSet};
use host::shared::SharedMemoryAllocator;
use host::vfio::{MappedRegisters, PciAddress, PciSysfs, SysfsFunction};
use i82576::Time;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Huge pages for the rings and buffers of a case and of the well-behaved driver.
const PAGES: u64 = 8;
/// Bytes of configuration space that a case may not change: the whole of PCI's.
const CONFIG: usize = 256;

/// Longest access to a register: it held up the virtual processor that made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongestAccess {
    /// Duration of the access.
    pub time: Duration,
    /// Byte offset of the register.
    pub register: u32,
    /// True for a write.
    pub is_write: bool,
}

/// Function that cases attack, with what the checks after each case need.
pub trait AttackedFunction: DmaHal {
    /// Resets the function, enables it, and frees all DMA memory.
    ///
    /// # Errors
    /// The function cannot be reset.
    fn renew(&mut self) -> Result<()>;

    /// Returns the function's configuration space.
    ///
    /// # Errors
    /// It cannot be read.
    fn config(&mut self) -> Result<Vec<u8>>;

    /// Returns the longest access since the last call.
    fn take_longest_access(&mut self) -> LongestAccess;

    /// Returns true if a signal has asked the program to end.
    fn is_interrupted(&mut self) -> bool;
}

/// Function of this guest, which sysfs gives to this process.
#[derive(Debug)]
pub struct SysfsBus<'a> {
    registers: MappedRegisters,
    function: SysfsFunction,
    memory: Vec<(DmaHugePage, SharedMemoryAllocator)>,
    longest: LongestAccess,
    signals: &'a SignalHandlers,
    is_interrupted: bool,
}

impl<'a> SysfsBus<'a> {
    /// Opens a function that no driver holds, and takes huge pages for its DMA.
    ///
    /// # Errors
    /// The kernel refuses the function or the memory.
    pub fn open(pci: &PciSysfs, address: PciAddress, signals: &'a SignalHandlers) -> Result<Self> {
        let function = SysfsFunction::open(pci, address)?;
        let registers = function.registers(0)?;
        let pages = DmaHugePage::allocate(PAGES)?;
        let memory = pages.into_iter().map(|page| (page, SharedMemoryAllocator::new(HUGE_PAGE))).collect();
        let longest = LongestAccess::default();
        Ok(Self { registers, function, memory, longest, signals, is_interrupted: false })
    }

    /// Returns the huge page with a device address, and the offset in it.
    fn page(&self, iova: u64) -> (&DmaHugePage, u64) {
        let found = self.memory.iter().find(|(page, _)| iova.wrapping_sub(page.physical()) < HUGE_PAGE);
        let (page, _) = found.unwrap_or_else(|| panic!("the driver accesses {iova:#x}, outside its memory"));
        (page, iova - page.physical())
    }

    fn timed<T>(&mut self, register: u32, is_write: bool, access: impl FnOnce(&MappedRegisters) -> T) -> T {
        let begun = MonotonicClock.now_ns();
        let value = access(&self.registers);
        let time = Duration::from_nanos(MonotonicClock.now_ns() - begun);
        if time > self.longest.time {
            self.longest = LongestAccess { time, register, is_write };
        }
        value
    }
}

impl Hal for SysfsBus<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.timed(offset, false, |registers| registers.read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.timed(offset, true, |registers| registers.write(offset, value));
    }

    fn now(&self) -> Time {
        Time::from_nanos(MonotonicClock.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl DmaHal for SysfsBus<'_> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let allocate = |(page, free): &mut (DmaHugePage, SharedMemoryAllocator)| {
            let block = free.allocate(length as u64, align as u64)?;
            Some(DmaAllocation { iova: page.physical() + block.offset(), length })
        };
        self.memory.iter_mut().find_map(allocate).ok_or(OutOfDmaMemory(length))
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        let (page, offset) = self.page(iova);
        let read = page.memory().read(offset, into);
        fence(Ordering::Acquire);
        assert!(read.is_ok(), "the driver reads {} bytes at {iova:#x}, outside its memory", into.len());
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        fence(Ordering::Release);
        let (page, offset) = self.page(iova);
        let written = page.memory().write(offset, from);
        assert!(written.is_ok(), "the driver writes {} bytes at {iova:#x}, outside its memory", from.len());
    }
}

impl AttackedFunction for SysfsBus<'_> {
    fn renew(&mut self) -> Result<()> {
        self.function.reset().context("the function cannot be reset")?;
        self.function.enable()?;
        for (page, free) in &mut self.memory {
            page.memory().write(0, &[0; HUGE_PAGE as usize])?;
            *free = SharedMemoryAllocator::new(HUGE_PAGE);
        }
        Ok(())
    }

    fn config(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; CONFIG];
        self.function.config(0, &mut bytes)?;
        Ok(bytes)
    }

    fn take_longest_access(&mut self) -> LongestAccess {
        std::mem::take(&mut self.longest)
    }

    fn is_interrupted(&mut self) -> bool {
        self.is_interrupted |= self.signals.take() != SignalSet::default();
        self.is_interrupted
    }
}

impl Drop for SysfsBus<'_> {
    /// Stops the function's DMA and resets it, so that it writes nothing to pages that the kernel gives to others.
    fn drop(&mut self) {
        let stopped = self.function.disable_bus_master();
        if let Err(error) = stopped.and(self.function.reset()) {
            tell(format_args!("{error}; the device may still write to memory: restart the guest"));
        }
    }
}
