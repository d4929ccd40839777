//! Memory regions of a front end that wait to be mapped. They are mapped one after the other, and each is checked
//! against the limits together with those mapped before it.

use crate::port::clients::device::VfioFunction;
use host::dma::{DmaPermissions, MapDmaRegionError, MappedDmaRegion};
use host::worker::DeferredCloseFd;
use std::collections::VecDeque;
use vhost_user::backend::SharedRegion;

/// Progress of a task to map memory regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegionMappingProgress {
    /// The worker thread maps a region.
    Waiting,
    /// All regions of the task are mapped.
    Done,
    /// Mapping a region failed. If the task was to replace all memory, the function has no mapped memory now.
    Failed,
}

/// Memory regions of one task that are not mapped yet.
#[derive(Debug, Default)]
pub(super) struct PendingMemoryRegions {
    regions: VecDeque<SharedRegion<DeferredCloseFd>>,
    /// True if the task replaces all memory of the function, and false if it adds a region.
    replaces: bool,
}

impl PendingMemoryRegions {
    /// Unmaps all memory of the function, and begins to map the given regions.
    pub(super) fn replace(
        regions: Vec<SharedRegion<DeferredCloseFd>>,
        device: &mut VfioFunction<'_>,
    ) -> Self {
        device.engine.reach_mut(device.function).unmap_all();
        Self { regions: regions.into(), replaces: true }
    }

    /// Begins to map one more region.
    pub(super) fn add(region: SharedRegion<DeferredCloseFd>) -> Self {
        Self { regions: [region].into(), replaces: false }
    }

    /// Has the worker thread map the next region.
    pub(super) fn map_next(&mut self, device: &mut VfioFunction<'_>) -> RegionMappingProgress {
        let Some(SharedRegion { region, fd }) = self.regions.pop_front() else {
            return RegionMappingProgress::Done;
        };
        let memory = device.engine.reach_mut(device.function).memory_mut();
        // Guest addresses are the addresses of DMA: a front end has no IOMMU here (VIRTIO_F_ACCESS_PLATFORM).
        let (address, size) = (region.guest_address, region.size);
        match memory.admit(address, size, DmaPermissions::READ_WRITE, Some(region.file_offset)) {
            Ok(Some(pending)) => {
                device.errands().map_region(pending, fd);
                RegionMappingProgress::Waiting
            }
            // Only a region without a file needs no mapping.
            Ok(None) => RegionMappingProgress::Failed,
            Err(error) => self.fail(error, device),
        }
    }

    /// Adds a region that the worker thread has mapped, and continues with the next one.
    pub(super) fn mapped(
        &mut self,
        region: Result<MappedDmaRegion, MapDmaRegionError>,
        device: &mut VfioFunction<'_>,
    ) -> RegionMappingProgress {
        let region = match region {
            Ok(region) => region,
            Err(error) => return self.fail(error, device),
        };
        let memory = device.engine.reach_mut(device.function).memory_mut();
        if let Err(region) = memory.insert(region) {
            device.errands().discard(region);
            return RegionMappingProgress::Failed;
        }
        self.map_next(device)
    }

    fn fail(&mut self, error: MapDmaRegionError, device: &mut VfioFunction<'_>) -> RegionMappingProgress {
        device.own.refused = Some(error);
        self.regions.clear();
        if self.replaces {
            device.engine.reach_mut(device.function).unmap_all();
        }
        RegionMappingProgress::Failed
    }
}
