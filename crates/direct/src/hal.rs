//! Gives a driver access to a function behind VFIO: registers mapped, memory shared through the IOMMU, interrupts by
//! eventfds. A wait is a sleep, since the card works on its own.
//!
//! [`crate::port`] visits the PF driver during such waits.

use crate::DriverStartError;
use crate::audit::KnownAddresses;
use driver::hal::DESCRIPTOR;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory, PrefetchPurpose};
use host::eventfd::EventFd;
use host::poll::MonotonicClock;
use host::vfio::{MappedRegisters, PciAddress, PciIds, PciSysfs, VfToken, VfioFunction};
use i82576::Time;
use i82576::ids::{DEVICE_PF, DEVICE_VF, MAX_VFS, VENDOR, VF_VECTORS};
use std::os::fd::BorrowedFd;
use std::time::Duration;
use vfio_client::{RAM_BASE as SOCKET_RAM, RegisterAccessCounts, SharedDmaMemory, VfDriverHal, VfioUserHal};

/// Device ids of supported PFs: the 82576's, and those of the same MAC with other media, which igb also supports.
pub(crate) const PF_DEVICES: [u16; 8] = [DEVICE_PF, 0x10e6, 0x10e7, 0x10e8, 0x150a, 0x150d, 0x1518, 0x1526];
/// Device ids of supported VFs; the second is that of VFs under Hyper-V.
const VF_DEVICES: [u16; 2] = [DEVICE_VF, 0x152d];
/// Number of the VFIO region with the function's registers.
const BAR0: u32 = 0;
/// Size of the memory that a driver shares with the card, in bytes: two rings of 256 buffers of 2 KB, and room for
/// alignment.
pub(crate) const MEMORY: u64 = 4 << 20;
/// Device address of VF 0's memory: above 4 GiB, so that addresses need more than 32 bits.
const RAM_BASE: u64 = 1 << 32;
/// Distance of the memory addresses of two VFs, so that an access for another VF finds no memory.
const RAM_STEP: u64 = 1 << 30;

/// PF that VFIO passes to this process: its registers, without memory or interrupts.
#[derive(Debug)]
pub struct VfioPfHal {
    registers: MappedRegisters,
    /// VFIO's handle of the PF. Closing it would return the PF to Linux.
    _function: VfioFunction,
    /// Addresses of the PF's BARs on the machine.
    bars: Vec<u64>,
}

impl VfioPfHal {
    /// Takes a PF from Linux and opens it by VFIO. Its VFs can then be opened only with `token`.
    ///
    /// # Errors
    /// [`DriverStartError`].
    pub fn open(pci: &PciSysfs, address: PciAddress, token: &VfToken) -> Result<Self, DriverStartError> {
        identify(pci, address, &PF_DEVICES, "a physical function")?;
        let function = VfioFunction::open(pci, address, Some(token))?;
        let registers = function.registers(BAR0)?;
        function.enable()?;
        Ok(Self { registers, _function: function, bars: bars(pci, address)? })
    }
}

impl VfioPfHal {
    /// Returns the addresses with which an audit compares the PF's registers. The PF has no memory, and sees the rings
    /// of its VFs.
    pub(crate) fn known(&self) -> KnownAddresses {
        let memory = RAM_BASE..RAM_BASE + MAX_VFS as u64 * RAM_STEP;
        KnownAddresses { memory, bars: self.bars.clone() }
    }
}

impl Hal for VfioPfHal {
    fn read(&mut self, offset: u32) -> u32 {
        self.registers.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.registers.write(offset, value);
    }

    fn now(&self) -> Time {
        Time::from_nanos(MonotonicClock.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// VF that VFIO passes to this process: its registers, shared memory and three interrupt vectors.
#[derive(Debug)]
pub struct VfioVfHal {
    registers: MappedRegisters,
    function: VfioFunction,
    ram: SharedDmaMemory,
    eventfds: [EventFd; VF_VECTORS],
    accesses: RegisterAccessCounts,
    /// Addresses of the VF's BARs on the machine.
    bars: Vec<u64>,
    /// True if the last read of a VF register returned all ones: the card is gone.
    gone: bool,
}

impl VfioVfHal {
    /// Takes a VF from Linux and opens it by VFIO, as number `place` of this run. `token` is its PF's, if VFIO holds
    /// the PF too.
    ///
    /// # Errors
    /// [`DriverStartError`].
    pub fn open(
        pci: &PciSysfs,
        address: PciAddress,
        token: Option<&VfToken>,
        place: u8,
    ) -> Result<Self, DriverStartError> {
        identify(pci, address, &VF_DEVICES, "a virtual function")?;
        let function = VfioFunction::open(pci, address, token)?;
        let registers = function.registers(BAR0)?;
        let ram = SharedDmaMemory::new(RAM_BASE + u64::from(place) * RAM_STEP, MEMORY)?;
        function.share(ram.shared(), ram.base())?;
        let eventfds = [EventFd::new()?, EventFd::new()?, EventFd::new()?];
        function.signal(&eventfds)?;
        function.enable()?;
        let bars = bars(pci, address)?;
        Ok(Self {
            registers,
            function,
            ram,
            eventfds,
            accesses: RegisterAccessCounts::default(),
            bars,
            gone: false,
        })
    }
}

/// VF that the checks examine: the bus for its driver, and actions on the VF from outside that driver.
pub trait CheckedVfBus: VfDriverHal {
    /// Returns the VF's PCI address, or the path of its socket.
    fn name(&self) -> String;

    /// Resets the VF (FLR) without notice to its driver, as the system does.
    ///
    /// # Errors
    /// [`DriverStartError`].
    fn reset(&mut self) -> Result<(), DriverStartError>;

    /// Returns the addresses of the VF's memory and BARs, with which an audit compares registers.
    fn known(&self) -> KnownAddresses;
}

impl CheckedVfBus for VfioVfHal {
    fn name(&self) -> String {
        self.function.address().to_string()
    }

    fn reset(&mut self) -> Result<(), DriverStartError> {
        Ok(self.function.reset()?)
    }

    fn known(&self) -> KnownAddresses {
        let base = self.ram.base();
        KnownAddresses { memory: base..base + MEMORY, bars: self.bars.clone() }
    }
}

impl CheckedVfBus for VfioUserHal {
    fn name(&self) -> String {
        self.socket().display().to_string()
    }

    fn reset(&mut self) -> Result<(), DriverStartError> {
        Ok(VfioUserHal::reset(self)?)
    }

    fn known(&self) -> KnownAddresses {
        KnownAddresses { memory: SOCKET_RAM..SOCKET_RAM + MEMORY, bars: Vec::new() }
    }
}

impl Hal for VfioVfHal {
    fn read(&mut self, offset: u32) -> u32 {
        self.accesses.reads += 1;
        let value = self.registers.read(offset);
        self.gone = value == u32::MAX;
        value
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.accesses.writes += 1;
        self.registers.write(offset, value);
    }

    fn now(&self) -> Time {
        Time::from_nanos(MonotonicClock.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl DmaHal for VfioVfHal {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        self.ram.allocate(length, align)
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.ram.read(iova, into);
    }

    #[inline]
    fn read_completed(&self, iova: u64, size: usize, into: &mut [[u8; DESCRIPTOR]]) -> usize {
        self.ram.read_completed(iova, size, into)
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.ram.write(iova, from);
    }

    #[inline]
    fn prefetch(&self, iova: u64, length: usize, access: PrefetchPurpose) {
        self.ram.prefetch(iova, length, access);
    }
}

impl VfDriverHal for VfioVfHal {
    fn eventfd(&self, vector: usize) -> Option<&EventFd> {
        self.eventfds.get(vector)
    }

    fn lifeline(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn accesses(&self) -> RegisterAccessCounts {
        self.accesses
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

fn bars(pci: &PciSysfs, address: PciAddress) -> Result<Vec<u64>, DriverStartError> {
    Ok(pci.bars(address)?.into_iter().flatten().collect())
}

/// Checks that a PCI function has one of the supported device ids, before any access to the function's registers.
fn identify(
    pci: &PciSysfs,
    address: PciAddress,
    devices: &[u16],
    wanted: &'static str,
) -> Result<(), DriverStartError> {
    let found: PciIds = pci.ids(address)?;
    if found.vendor == VENDOR && devices.contains(&found.device) {
        Ok(())
    } else {
        Err(DriverStartError::NotOurs { address, found, wanted })
    }
}
