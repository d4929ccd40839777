//! The machine interface of a split driver's back end: rings, grants, events. Each call is a hypercall of the
//! service domain, charged to the current step.

use super::SplitConnections;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{LastLevelCache, VcpuStep};
use hypervisor::domain::DomainId;
use hypervisor::grant::{GrantAccess, GrantAddress, GrantHandle, GrantReference};
use split::InterfaceRings;
use split::back::{GrantedAddress, NetworkBackendHal, NotGranted, VifIndex};

/// Rings and grants that the back end accesses, with the step that its hypercalls are charged to.
pub(crate) struct BackEndRingAccess<'a> {
    pub(crate) wires: &'a mut SplitConnections,
    pub(crate) domain: DomainId,
    /// Socket of the virtual CPU that runs the back end.
    pub(crate) socket: usize,
    /// Last-level cache of that socket, which the guests on it share.
    pub(crate) cache: &'a mut LastLevelCache,
    pub(crate) step: &'a mut VcpuStep,
    pub(crate) table: &'a CostTable,
}

/// Bytes of the last-level cache that a frame in a guest's page occupies.
pub(super) const BUFFER: u64 = 2_048;

impl BackEndRingAccess<'_> {
    fn address(&self, granted: GrantedAddress) -> GrantAddress {
        let GrantedAddress { vif, reference, offset } = granted;
        GrantAddress { owner: self.owner(vif), reference: GrantReference(reference), offset }
    }

    fn owner(&self, vif: VifIndex) -> DomainId {
        self.wires.interfaces[usize::from(vif.0)].domain
    }

    /// Charges for copying bytes to a guest's page. Bytes that are not in the last-level cache of the back end's socket
    /// come from memory. A destination that is not there is read from memory before it is written (write-allocate), and
    /// costs as much again.
    fn charge_copy(&mut self, to: GrantedAddress, bytes: usize, is_source_cached: bool) {
        let of = |rate| self.table.bytes(rate, bytes as u64);
        let (warm, cold) = (of(CostConstant::CopyWarm), of(CostConstant::CopyCold));
        let is_page_cached = self.touch(to);
        let misses = u64::from(!is_source_cached) + u64::from(!is_page_cached);
        let cycles = self.table[CostConstant::GrantCopy] + warm + misses * cold.saturating_sub(warm);
        self.step.charge(CycleCategory::Grant, cycles);
    }

    /// Returns `true` if a guest's page is in the last-level cache of the back end's socket. A guest posts its pages in
    /// turn, so the first bytes of a page are the next touch of its ring.
    fn touch(&mut self, page: GrantedAddress) -> bool {
        let interface = &mut self.wires.interfaces[usize::from(page.vif.0)];
        if page.offset == 0 {
            interface.is_page_cached = interface.pages.write((self.socket, self.cache), BUFFER);
        }
        interface.is_page_cached
    }
}

impl NetworkBackendHal for BackEndRingAccess<'_> {
    type Mapping = GrantHandle;

    fn rings(&mut self, vif: VifIndex) -> &mut InterfaceRings {
        &mut self.wires.interfaces[usize::from(vif.0)].rings
    }

    fn map(&mut self, vif: VifIndex, reference: u32) -> Result<GrantHandle, NotGranted> {
        // The cost covers mapping and unmapping.
        self.step.charge(CycleCategory::Grant, self.table[CostConstant::GrantMapUnmap]);
        let owner = self.owner(vif);
        let mapped = self.wires.grants.map(self.domain, owner, GrantReference(reference), GrantAccess::Read);
        mapped.map_err(|_| NotGranted)
    }

    fn unmap(&mut self, _: VifIndex, mapping: GrantHandle) {
        // The back end unmaps each mapping once.
        let _ = self.wires.grants.unmap(self.domain, mapping);
    }

    fn read(
        &mut self,
        _: VifIndex,
        mapping: GrantHandle,
        offset: u16,
        into: &mut [u8],
    ) -> Result<(), NotGranted> {
        let cycles = self.table.bytes(CostConstant::CopyCold, into.len() as u64);
        self.step.charge(CycleCategory::Backend, cycles);
        let page = self.wires.grants.mapped(self.domain, mapping).map_err(|_| NotGranted)?;
        let bytes = page.get(usize::from(offset)..).and_then(|page| page.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(NotGranted)?);
        Ok(())
    }

    fn copy_to(&mut self, to: GrantedAddress, bytes: &[u8]) -> Result<(), NotGranted> {
        // A card has written the frame to memory.
        self.charge_copy(to, bytes.len(), false);
        let to = self.address(to);
        self.wires.grants.copy_to(self.domain, to, bytes).map_err(|_| NotGranted)
    }

    fn copy(&mut self, from: GrantedAddress, to: GrantedAddress, length: usize) -> Result<(), NotGranted> {
        // The sender has just written its page, on its own socket.
        let is_near = self.wires.interfaces[usize::from(from.vif.0)].socket == self.socket;
        self.charge_copy(to, length, is_near);
        let (from, to) = (self.address(from), self.address(to));
        self.wires.grants.copy(self.domain, from, to, length).map_err(|_| NotGranted)
    }

    fn notify(&mut self, vif: VifIndex) {
        let converted = if self.wires.converts_events { self.table[CostConstant::EventConvert] } else { 0 };
        let cycles = self.table[CostConstant::EventSend] + self.table[CostConstant::EventRemote] + converted;
        self.step.charge(CycleCategory::EventChannel, cycles);
        self.wires.notified.push_back(vif.0.into());
    }
}
