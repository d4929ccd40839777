//! Pages of a VF's BAR0 that its client may map: the shared memory, and the card's accesses to this memory.
//!
//! Each client has memory of its own, so that no client can ring the doorbells of the next. A client that never
//! asks for the memory is served as if there were no such pages.
//!
//! `nic::doorbell` and `avf_nic::doorbell` define the effect of a store. `waiting` decides when to poll for
//! one.

use crate::port::engine::family::PortCard;
use crate::port::engine::page_memory::VfRegisterPages;
use crate::port::moments::pass_moment;
use host::shared::SharedMemoryError;
use i82576::Time;
use pcie::VfIndex;
use pcie::pages::GuestRegisterPages;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vfio_user::types::SparseArea;
use vfio_user::wire::pci_region;

/// Register pages of a VF, in memory that is shared with its client.
#[derive(Debug)]
pub(super) struct SharedRegisterPages {
    memory: Arc<VfRegisterPages>,
    vf: VfIndex,
    /// Ranges of BAR0 that the client may map.
    pub(super) areas: &'static [SparseArea],
    /// True once the client has received the file descriptor of the register pages.
    given: bool,
}

fn bar0(card: &dyn PortCard, vf: VfIndex) -> u64 {
    card.region(vf.function(), pci_region::BAR0) as u64
}

impl SharedRegisterPages {
    /// Creates the register pages of a VF for a new client, or returns `None` if the card has no pages to map.
    pub(super) fn new(vf: VfIndex, card: &dyn PortCard) -> Result<Option<Self>, SharedMemoryError> {
        let areas = card.mappable(vf);
        if areas.is_empty() {
            return Ok(None);
        }
        let memory = Arc::new(VfRegisterPages::new(bar0(card, vf))?);
        Ok(Some(Self { memory, vf, areas, given: false }))
    }

    /// Takes over the register pages that the previous host process's client may have mapped. If the card is `exactly`
    /// as the predecessor left it, the guest's later stores are handled as doorbells. Otherwise the pages show the
    /// registers of the new card.
    pub(super) fn adopt(
        fd: OwnedFd,
        vf: VfIndex,
        card: &mut dyn PortCard,
        exactly: bool,
        now: Time,
    ) -> Option<Self> {
        // `VfRegisterPages::adopt` accepts only memory of the length that `new` creates.
        let memory = Arc::new(VfRegisterPages::adopt(fd, bar0(card, vf))?);
        let areas = card.mappable(vf);
        (!areas.is_empty()).then(|| card.share_pages(vf, &memory, exactly, now))?;
        Some(Self { memory, vf, areas, given: true })
    }

    /// Returns a copy of the register pages' file descriptor, to be kept for the successor process.
    pub(super) fn fd(&self) -> io::Result<OwnedFd> {
        self.memory.fd()
    }

    /// Returns the file descriptor of the register pages for the client. From now on the guest may store doorbells in
    /// the pages.
    pub(super) fn give(&mut self, card: &mut dyn PortCard, now: Time) -> io::Result<OwnedFd> {
        if !self.given {
            card.share_pages(self.vf, &self.memory, false, now);
            self.given = true;
        }
        self.fd()
    }

    /// Returns true if the client has received the file descriptor of the register pages.
    pub(super) fn are_given(&self) -> bool {
        self.given
    }

    /// Returns true if the guest has stored a doorbell since the card last read the register pages.
    pub(super) fn has_new_doorbells(&self, card: &dyn PortCard) -> bool {
        self.given && card.has_new_doorbells(self.vf, &self.memory)
    }

    /// Has the card read the doorbells that the guest has stored into the register pages.
    pub(super) fn read_doorbells(&self, card: &mut dyn PortCard, now: Time) {
        if self.given {
            card.read_doorbells(self.vf, &self.memory, now);
        }
    }

    /// Has the card store registers into the register pages, for the guest to read.
    pub(super) fn publish_registers(&self, card: &mut dyn PortCard, now: Time) {
        if self.given {
            pass_moment();
            card.publish_registers(self.vf, &self.memory, now);
        }
    }

    /// Stores the data of a client's message into the register pages, as if the guest had stored it. Returns `false` if
    /// the client has no such pages.
    pub(super) fn store(&self, offset: u64, data: &[u8]) -> bool {
        let end = offset.saturating_add(data.len() as u64);
        let within = |area: &SparseArea| offset >= area.offset && end <= area.offset + area.size;
        if !self.given || !self.areas.iter().any(within) {
            return false;
        }
        match <[u8; 4]>::try_from(data) {
            Ok(dword) if offset.is_multiple_of(4) => {
                self.memory.store(offset as u32, u32::from_le_bytes(dword));
            }
            // The range is inside the memory, as `within` has checked.
            _ => self.memory.write(offset, data),
        }
        true
    }
}
