//! Memory regions of a front end that wait to be mapped. They are mapped one after the other, so that each is checked
//! against the limits together with all before it.

use crate::port::clients::device::FunctionDevice;
use host::dma::{DmaPermissions, MapRegionError, MappedRegion};
use host::worker::DeferredFd;
use std::collections::VecDeque;
use vhost_user::backend::SharedRegion;

/// Progress of a task to map memory regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MappingProgress {
    /// The worker thread maps a region.
    Waiting,
    /// All regions of the task are mapped.
    Done,
    /// A region cannot be mapped. After the replacement of all memory, no region is mapped any more.
    Failed,
}

/// Memory regions of one task that are not mapped yet.
#[derive(Debug, Default)]
pub(super) struct PendingRegions {
    regions: VecDeque<SharedRegion<DeferredFd>>,
    /// True if the task replaces all memory.
    replaces: bool,
}

impl PendingRegions {
    /// Unmaps all memory of the function, and begins to map these regions instead.
    pub(super) fn replace(regions: Vec<SharedRegion<DeferredFd>>, device: &mut FunctionDevice<'_>) -> Self {
        device.engine.reach_mut(device.function).unmap_all();
        Self { regions: regions.into(), replaces: true }
    }

    /// Begins to map one more region.
    pub(super) fn add(region: SharedRegion<DeferredFd>) -> Self {
        Self { regions: [region].into(), replaces: false }
    }

    /// Has the worker thread map the next region.
    pub(super) fn map_next(&mut self, device: &mut FunctionDevice<'_>) -> MappingProgress {
        let Some(SharedRegion { region, fd }) = self.regions.pop_front() else {
            return MappingProgress::Done;
        };
        let memory = device.engine.reach_mut(device.function).memory_mut();
        // Guest addresses are the addresses of DMA: a front end has no IOMMU here (VIRTIO_F_ACCESS_PLATFORM).
        let (address, size) = (region.guest_address, region.size);
        match memory.admit(address, size, DmaPermissions::READ_WRITE, Some(region.file_offset)) {
            Ok(Some(pending)) => {
                device.errands().map_region(pending, fd);
                MappingProgress::Waiting
            }
            // Only a region without a file needs no mapping.
            Ok(None) => MappingProgress::Failed,
            Err(error) => self.fail(error, device),
        }
    }

    /// Adds a region that the worker thread has mapped, and continues with the next one.
    pub(super) fn mapped(
        &mut self,
        region: Result<MappedRegion, MapRegionError>,
        device: &mut FunctionDevice<'_>,
    ) -> MappingProgress {
        let region = match region {
            Ok(region) => region,
            Err(error) => return self.fail(error, device),
        };
        let memory = device.engine.reach_mut(device.function).memory_mut();
        if let Err(region) = memory.insert(region) {
            device.errands().discard(region);
            return MappingProgress::Failed;
        }
        self.map_next(device)
    }

    fn fail(&mut self, error: MapRegionError, device: &mut FunctionDevice<'_>) -> MappingProgress {
        device.own.refused = Some(error);
        self.regions.clear();
        if self.replaces {
            device.engine.reach_mut(device.function).unmap_all();
        }
        MappingProgress::Failed
    }
}
