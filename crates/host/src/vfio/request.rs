//! VFIO's requests (linux/vfio.h), each one system call on one structure. Layouts are those of `vfio-bindings`,
//! which are generated from the header and checked against it when compiled.
//!
//! The callers interpret the results.

#![expect(unsafe_code, reason = "ioctls are untyped")]

use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use vfio_bindings::bindings::vfio::{
    VFIO_API_VERSION, VFIO_BASE, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE,
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_TYPE, VFIO_TYPE1v2_IOMMU, vfio_device_info,
    vfio_group_status, vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap, vfio_irq_set,
    vfio_pci_dependent_device, vfio_pci_hot_reset, vfio_pci_hot_reset_info, vfio_region_info,
};

use crate::memory::MappedFile;

/// Number of the VFIO request that returns the API version, relative to [`VFIO_BASE`] (linux/vfio.h). Numbers of other
/// requests follow.
const GET_API_VERSION: u32 = 0;
const CHECK_EXTENSION: u32 = 1;
const SET_IOMMU: u32 = 2;
const GROUP_GET_STATUS: u32 = 3;
const GROUP_SET_CONTAINER: u32 = 4;
const GROUP_GET_DEVICE_FD: u32 = 6;
const DEVICE_GET_INFO: u32 = 7;
const DEVICE_GET_REGION_INFO: u32 = 8;
const DEVICE_SET_IRQS: u32 = 10;
const DEVICE_RESET: u32 = 11;
const DEVICE_GET_PCI_HOT_RESET_INFO: u32 = 12;
const DEVICE_PCI_HOT_RESET: u32 = 13;
const IOMMU_MAP_DMA: u32 = 13;
const IOMMU_UNMAP_DMA: u32 = 14;

/// Maximum number of interrupt vectors of a VFIO function that can have eventfds: the 82576's number of vectors,
/// rounded up.
pub(super) const MOST_VECTORS: usize = 32;

/// VFIO request of any kind, by its number and argument. VFIO's request numbers encode no argument size, and the
/// requests may return values.
struct VfioRequest {
    number: u32,
    argument: *mut c_void,
}

// SAFETY: the number is VFIO's, the argument was set by a caller that knows the request, and the call's result is
// passed on.
unsafe impl Ioctl for VfioRequest {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::none(VFIO_TYPE, (VFIO_BASE + self.number) as u8)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(out)
    }
}

/// Makes a VFIO request.
///
/// # Safety
/// `argument` must be what the request takes: a number, or a structure that it may read and write.
unsafe fn call(fd: impl AsFd, number: u32, argument: *mut c_void) -> Result<i32> {
    // SAFETY: the caller vouches for the argument.
    unsafe { ioctl(fd, VfioRequest { number, argument }) }
}

/// Makes a VFIO request whose argument is a number.
fn call_number(fd: impl AsFd, number: u32, value: u32) -> Result<i32> {
    // SAFETY: the requests made here take a number, and touch no memory of ours.
    unsafe { call(fd, number, ptr::without_provenance_mut(value as usize)) }
}

/// Returns true if the container supports this version of VFIO, and IOMMUs of type 1, version 2.
pub(super) fn has_type1(container: impl AsFd + Copy) -> Result<bool> {
    let version = call_number(container, GET_API_VERSION, 0)?;
    let type1 = call_number(container, CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU)?;
    Ok(version == VFIO_API_VERSION as i32 && type1 == 1)
}

pub(super) fn set_type1(container: impl AsFd) -> Result<()> {
    call_number(container, SET_IOMMU, VFIO_TYPE1v2_IOMMU).map(drop)
}

/// Returns the flags of an IOMMU group (`VFIO_GROUP_FLAGS_*`).
pub(super) fn group_flags(group: impl AsFd) -> Result<u32> {
    let mut status = vfio_group_status { argsz: size_of::<vfio_group_status>() as u32, flags: 0 };
    // SAFETY: the request reads and writes one `vfio_group_status`.
    unsafe { call(group, GROUP_GET_STATUS, (&raw mut status).cast()) }?;
    Ok(status.flags)
}

pub(super) fn set_container(group: impl AsFd, container: impl AsFd) -> Result<()> {
    let mut fd = container.as_fd().as_raw_fd();
    // SAFETY: the request reads one `int`.
    unsafe { call(group, GROUP_SET_CONTAINER, (&raw mut fd).cast()) }.map(drop)
}

/// Opens the device with the name `name`, which may include a VF token.
pub(super) fn device(group: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    // SAFETY: the request reads a string.
    let fd = unsafe { call(group, GROUP_GET_DEVICE_FD, name.as_ptr().cast_mut().cast()) }?;
    // SAFETY: the request returns a descriptor that was opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn device_info(device: impl AsFd) -> Result<vfio_device_info> {
    let mut info = vfio_device_info { argsz: size_of::<vfio_device_info>() as u32, ..Default::default() };
    // SAFETY: the request reads and writes one `vfio_device_info`, of the size said.
    unsafe { call(device, DEVICE_GET_INFO, (&raw mut info).cast()) }?;
    Ok(info)
}

pub(super) fn region_info(device: impl AsFd, index: u32) -> Result<vfio_region_info> {
    let mut info =
        vfio_region_info { argsz: size_of::<vfio_region_info>() as u32, index, ..Default::default() };
    // SAFETY: the request reads and writes one `vfio_region_info`, of the size said.
    unsafe { call(device, DEVICE_GET_REGION_INFO, (&raw mut info).cast()) }?;
    Ok(info)
}

/// Request that assigns eventfds to vectors: `vfio_irq_set` with its file descriptors.
#[repr(C)]
struct VfioIrqSet {
    head: vfio_irq_set,
    fds: [i32; MOST_VECTORS],
}

const _: () = assert!(offset_of!(VfioIrqSet, fds) == offset_of!(vfio_irq_set, data));

/// Makes the vectors of an interrupt index, from the first on, signal these eventfds. Returns `EINVAL` for too
/// many.
pub(super) fn set_eventfds(device: impl AsFd, index: u32, eventfds: &[BorrowedFd<'_>]) -> Result<()> {
    let mut set = VfioIrqSet { head: vfio_irq_set::default(), fds: [-1; MOST_VECTORS] };
    let fds = set.fds.get_mut(..eventfds.len()).ok_or(Errno::INVAL)?;
    for (to, eventfd) in fds.iter_mut().zip(eventfds) {
        *to = eventfd.as_raw_fd();
    }
    set.head.argsz = (size_of::<vfio_irq_set>() + size_of_val(fds)) as u32;
    set.head.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set.head.index = index;
    set.head.count = eventfds.len() as u32;
    // SAFETY: the request reads a `vfio_irq_set` and the descriptors after it, as many as `argsz` says there are.
    unsafe { call(device, DEVICE_SET_IRQS, (&raw mut set).cast()) }.map(drop)
}

pub(super) fn reset(device: impl AsFd) -> Result<()> {
    call_number(device, DEVICE_RESET, 0).map(drop)
}

/// Maximum number of functions that a bus reset may affect.
const MOST_ON_A_BUS: usize = 64;

/// Reply about a bus reset: `vfio_pci_hot_reset_info` with the affected functions.
#[repr(C)]
struct HotResetInfo {
    head: vfio_pci_hot_reset_info,
    functions: [vfio_pci_dependent_device; MOST_ON_A_BUS],
}

const _: () = assert!(offset_of!(HotResetInfo, functions) == offset_of!(vfio_pci_hot_reset_info, devices));

/// Returns the group of each function that a reset of the device's bus would reset. Returns `ENODEV` without such a
/// reset, `ENOSPC` for too many functions.
pub(super) fn groups_on_the_bus(device: impl AsFd) -> Result<Vec<u32>> {
    // SAFETY: both structures are integers, for which zeros are a value.
    let mut bus: HotResetInfo = unsafe { std::mem::zeroed() };
    bus.head.argsz = size_of::<HotResetInfo>() as u32;
    // SAFETY: the request reads and writes a `vfio_pci_hot_reset_info` and the functions after it, as many as fit into
    // `argsz` bytes.
    unsafe { call(device, DEVICE_GET_PCI_HOT_RESET_INFO, (&raw mut bus).cast()) }?;
    let functions = bus.functions.iter().take(bus.head.count as usize);
    // SAFETY: the union's two members are both a `u32`; without `VFIO_PCI_HOT_RESET_FLAG_DEV_ID` it is the group.
    Ok(functions.map(|function| unsafe { function.__bindgen_anon_1.group_id }).collect())
}

/// Request for a bus reset: `vfio_pci_hot_reset` with one group's file descriptor.
#[repr(C)]
struct HotResetRequest {
    head: vfio_pci_hot_reset,
    group: i32,
}

const _: () = assert!(offset_of!(HotResetRequest, group) == offset_of!(vfio_pci_hot_reset, group_fds));

/// Resets the device's bus. All functions on it must be in this group.
pub(super) fn reset_bus(device: impl AsFd, group: impl AsFd) -> Result<()> {
    let mut reset = HotResetRequest { head: vfio_pci_hot_reset::default(), group: group.as_fd().as_raw_fd() };
    reset.head.argsz = size_of::<HotResetRequest>() as u32;
    reset.head.count = 1;
    // SAFETY: the request reads a `vfio_pci_hot_reset` and one descriptor after it.
    unsafe { call(device, DEVICE_PCI_HOT_RESET, (&raw mut reset).cast()) }.map(drop)
}

/// Removes the container's DMA mapping at `iova`.
pub(super) fn unmap_dma(container: impl AsFd, iova: u64, size: u64) -> Result<()> {
    let argsz = size_of::<vfio_iommu_type1_dma_unmap>() as u32;
    let mut unmap = vfio_iommu_type1_dma_unmap { argsz, iova, size, ..Default::default() };
    // SAFETY: the request reads and writes one `vfio_iommu_type1_dma_unmap`.
    unsafe { call(container, IOMMU_UNMAP_DMA, (&raw mut unmap).cast()) }.map(drop)
}

/// Maps memory at `iova` for reading and writing by the container's devices.
///
/// The kernel pins the pages until the container is closed: a mapping that is dropped earlier frees no page that
/// the device could still write.
pub(super) fn map_dma(container: impl AsFd, memory: &MappedFile, iova: u64) -> Result<()> {
    let mut map = vfio_iommu_type1_dma_map {
        argsz: size_of::<vfio_iommu_type1_dma_map>() as u32,
        flags: VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
        vaddr: memory.address() as u64,
        iova,
        size: memory.len(),
    };
    // SAFETY: the request reads one `vfio_iommu_type1_dma_map`. The memory is a `MappedFile`, which other processes
    // may write at any time.
    unsafe { call(container, IOMMU_MAP_DMA, (&raw mut map).cast()) }.map(drop)
}
