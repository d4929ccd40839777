//! The machine interface of a front end: its rings, pages, grant table and events. Grants are written to
//! memory shared with the hypervisor without a hypercall; an event is a hypercall. Costs per packet are
//! charged by the device.

use super::{Split, Wires};
use crate::machine::parts::platform::Env;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::Cost;
use hypervisor::domain::DomainId;
use hypervisor::exit::ExitKind;
use hypervisor::grant::{Access, Reference, Table};
use split::Rings;
use split::front::Hal;

/// A guest's view of the split driver.
pub(crate) struct FrontEndView<'a> {
    wires: &'a mut Wires,
    guest: usize,
    service: DomainId,
}

impl FrontEndView<'_> {
    fn own(&mut self) -> &mut Table {
        let domain = self.wires.interfaces[self.guest].domain;
        self.wires.grants.domain(domain).expect("a guest with a front end has a grant table")
    }

    pub(crate) fn rings(&mut self) -> &mut Rings {
        &mut self.wires.interfaces[self.guest].rings
    }

    pub(crate) fn page(&mut self, page: u32) -> &mut [u8] {
        self.own().page_mut(page).expect("a front end uses its own pages")
    }

    pub(crate) fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        let (service, access) = (self.service, if writable { Access::Write } else { Access::Read });
        self.own().grant(service, page, access).ok().map(|Reference(at)| at)
    }

    pub(crate) fn end_access(&mut self, reference: u32) -> bool {
        self.own().end_access(Reference(reference)).is_ok()
    }
}

impl Split {
    /// Returns a guest's view of the split driver.
    pub(crate) fn side(&mut self, guest: usize) -> FrontEndView<'_> {
        FrontEndView { wires: &mut self.wires, guest, service: self.domain }
    }
}

impl Hal for Env<'_, FrontEndView<'_>> {
    fn rings(&mut self) -> &mut Rings {
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
            self.step.charge(ExitKind::Hypercall.category(), ExitKind::Hypercall.price(self.table));
        }
        let cycles = self.table[Cost::EventSend] + self.table[Cost::EventRemote];
        self.step.charge(Category::EventChannel, cycles);
        self.hardware.notifies = true;
    }
}
