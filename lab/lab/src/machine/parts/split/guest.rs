//! The machine interface of a split driver's front end: its rings, pages, grant table and events. Grants are
//! written to memory shared with the hypervisor without a hypercall; an event is a hypercall. Costs per
//! packet are charged by the device.

use super::host::BUFFER;
use super::{ServiceDomainNetwork, SplitConnections};
use crate::machine::parts::platform::{GuestPlatform, ReceiveBuffers};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{LastLevelCache, PacketBufferRing};
use hypervisor::domain::DomainId;
use hypervisor::exit::VmExitReason;
use hypervisor::grant::{DomainGrantTable, GrantAccess, GrantReference};
use split::InterfaceRings;
use split::front::NetworkFrontendHal;

/// Rings, pages and grants of one guest's front end.
pub(crate) struct FrontEndRingAccess<'a> {
    wires: &'a mut SplitConnections,
    guest: usize,
    service: DomainId,
}

impl FrontEndRingAccess<'_> {
    fn own(&mut self) -> &mut DomainGrantTable {
        let domain = self.wires.interfaces[self.guest].domain;
        self.wires.grants.domain(domain).expect("a guest with a front end has a grant table")
    }

    pub(crate) fn rings(&mut self) -> &mut InterfaceRings {
        &mut self.wires.interfaces[self.guest].rings
    }

    pub(crate) fn page(&mut self, page: u32) -> &mut [u8] {
        self.own().page_mut(page).expect("a front end uses its own pages")
    }

    pub(crate) fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        let (service, access) = (self.service, if writable { GrantAccess::Write } else { GrantAccess::Read });
        self.own().grant(service, page, access).ok().map(|GrantReference(at)| at)
    }

    pub(crate) fn end_access(&mut self, reference: u32) -> bool {
        self.own().end_access(GrantReference(reference)).is_ok()
    }
}

impl ServiceDomainNetwork {
    /// Returns the rings, pages and grants of a guest's front end.
    pub(crate) fn front_end(&mut self, guest: usize) -> FrontEndRingAccess<'_> {
        FrontEndRingAccess { wires: &mut self.wires, guest, service: self.domain }
    }
}

/// A frame is in a page of the guest that the back end has filled.
impl ReceiveBuffers for FrontEndRingAccess<'_> {
    fn read_frame(&mut self, _: &mut PacketBufferRing, cache: (usize, &mut LastLevelCache)) -> bool {
        self.wires.interfaces[self.guest].pages.read(cache, BUFFER)
    }

    fn skip_frames(&mut self) {
        self.wires.interfaces[self.guest].pages.skip();
    }
}

impl NetworkFrontendHal for GuestPlatform<'_, FrontEndRingAccess<'_>> {
    fn rings(&mut self) -> &mut InterfaceRings {
        self.device.rings()
    }

    fn page(&mut self, page: u32) -> &mut [u8] {
        self.device.page(page)
    }

    fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        self.device.grant(page, writable)
    }

    fn end_access(&mut self, reference: u32) -> bool {
        self.device.end_access(reference)
    }

    fn notify(&mut self) {
        if self.virtualised() {
            self.step.charge(VmExitReason::Hypercall.category(), VmExitReason::Hypercall.price(self.table));
        }
        let cycles = self.table[CostConstant::EventSend] + self.table[CostConstant::EventRemote];
        self.step.charge(CycleCategory::EventChannel, cycles);
        self.hardware.notifies = true;
    }
}
