//! The machine interface of the back end: rings, grants, events. Each call is a hypercall of the service
//! domain, charged to the current step.

use super::Wires;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::Step;
use hypervisor::domain::DomainId;
use hypervisor::grant::{Access, GrantAddress, Handle, Reference};
use split::Rings;
use split::back::{GrantedAddress, Host, NotGranted, Vif};

/// Rings, grants and charged step that the back end works on.
pub(crate) struct Machine<'a> {
    pub(crate) wires: &'a mut Wires,
    pub(crate) domain: DomainId,
    pub(crate) step: &'a mut Step,
    pub(crate) table: &'a CostTable,
}

impl Machine<'_> {
    fn address(&self, granted: GrantedAddress) -> GrantAddress {
        let GrantedAddress { vif, reference, offset } = granted;
        GrantAddress { owner: self.owner(vif), reference: Reference(reference), offset }
    }

    fn owner(&self, vif: Vif) -> DomainId {
        self.wires.interfaces[usize::from(vif.0)].domain
    }

    fn charge_copy(&mut self, bytes: usize) {
        let cycles = self.table[Cost::GrantCopy] + self.table.bytes(Cost::CopyCold, bytes as u64);
        self.step.charge(Category::Grant, cycles);
    }
}

impl Host for Machine<'_> {
    type Mapping = Handle;

    fn rings(&mut self, vif: Vif) -> &mut Rings {
        &mut self.wires.interfaces[usize::from(vif.0)].rings
    }

    fn map(&mut self, vif: Vif, reference: u32) -> Result<Handle, NotGranted> {
        // The cost covers mapping and unmapping.
        self.step.charge(Category::Grant, self.table[Cost::GrantMapUnmap]);
        let owner = self.owner(vif);
        let mapped = self.wires.grants.map(self.domain, owner, Reference(reference), Access::Read);
        mapped.map_err(|_| NotGranted)
    }

    fn unmap(&mut self, _: Vif, mapping: Handle) {
        // The back end unmaps each mapping once.
        let _ = self.wires.grants.unmap(self.domain, mapping);
    }

    fn read(&mut self, _: Vif, mapping: Handle, offset: u16, into: &mut [u8]) -> Result<(), NotGranted> {
        let cycles = self.table.bytes(Cost::CopyCold, into.len() as u64);
        self.step.charge(Category::Backend, cycles);
        let page = self.wires.grants.mapped(self.domain, mapping).map_err(|_| NotGranted)?;
        let bytes = page.get(usize::from(offset)..).and_then(|page| page.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(NotGranted)?);
        Ok(())
    }

    fn copy_to(&mut self, to: GrantedAddress, bytes: &[u8]) -> Result<(), NotGranted> {
        self.charge_copy(bytes.len());
        let to = self.address(to);
        self.wires.grants.copy_to(self.domain, to, bytes).map_err(|_| NotGranted)
    }

    fn copy(&mut self, from: GrantedAddress, to: GrantedAddress, length: usize) -> Result<(), NotGranted> {
        self.charge_copy(length);
        let (from, to) = (self.address(from), self.address(to));
        self.wires.grants.copy(self.domain, from, to, length).map_err(|_| NotGranted)
    }

    fn notify(&mut self, vif: Vif) {
        let converted = if self.wires.converts { self.table[Cost::EventConvert] } else { 0 };
        let cycles = self.table[Cost::EventSend] + self.table[Cost::EventRemote] + converted;
        self.step.charge(Category::EventChannel, cycles);
        self.wires.notified.push_back(vif.0.into());
    }
}
