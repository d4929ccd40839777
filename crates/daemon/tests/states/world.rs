//! Card with its PF driver, VF drivers and the SR-IOV manager, in one process and with a clock moved by hand. The card
//! can be saved and restored between any two actions.

use backplane::{Backplane, PORT_MAC};
use daemon::state::{self, CardState};
use driver::vf::{Vf, VfDriverConfig};
use driver::{Hal, Pf};
use i82576::VfIndex;
use i82576::bits::{ctrl, srrctl};
use i82576::register::{self as r, rx, vf as at};
use iovm::{BusRouting, SrIovManager, VfOwner};
use nic::Nic;
use pcie::config::offset;
use pcie::{ConfigAccess, Function, Rid};
use std::cell::Cell;

/// Number of VFs of the tested card.
pub(crate) const VFS: u8 = 3;
const PF: Rid = Rid(0x0008);
/// Number of polls by a waiting driver between two replacements of card and PF driver by a successor process.
const EVERY: u32 = 7;

/// Gives the SR-IOV manager access to the card's configuration space.
pub(crate) struct ManagedConfigSpace<'a>(pub(crate) &'a mut Nic);

impl ConfigAccess for ManagedConfigSpace<'_> {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        self.0.config_read(function, offset, size)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        self.0.config_write(function, offset, size, value);
    }
}

impl iovm::SrIovDevice for ManagedConfigSpace<'_> {}

/// 82576 card with its PF driver, the SR-IOV manager, and the VF drivers of its guests.
pub(crate) struct CardWithDrivers {
    pub(crate) card: Backplane,
    pub(crate) manager: SrIovManager,
    pub(crate) vfs: Vec<Vf>,
}

/// Returns the typed index of a VF. Fails if the number is out of range.
pub(crate) fn index(vf: u8) -> VfIndex {
    VfIndex::new(vf).unwrap()
}

impl CardWithDrivers {
    /// Creates a card whose VFs are all assigned. Their drivers have started and see the link up.
    pub(crate) fn new() -> Self {
        let mut card = Backplane::new(PORT_MAC, 0);
        let mut device = ManagedConfigSpace(card.nic());
        let mut manager = SrIovManager::discover(&mut device, PF).unwrap();
        manager.enable(&mut device, VFS.into(), BusRouting::Ari).unwrap();
        for vf in 0..VFS {
            manager.assign(&mut device, index(vf), VfOwner(vf.into())).unwrap();
        }
        card.attach_pf(VFS).unwrap();
        let mut world = Self { card, manager, vfs: Vec::new() };
        for vf in 0..VFS {
            world.enable(vf);
            let config = VfDriverConfig {
                seed: vf.into(),
                tx_descriptors: 64,
                rx_descriptors: 64,
                ..VfDriverConfig::default()
            };
            let mut driver = Vf::probe(&mut world.card.vf(vf), &config).unwrap();
            driver.start(&mut world.card.vf(vf)).unwrap();
            world.vfs.push(driver);
        }
        world
    }

    /// Enables memory space and bus mastering of a VF, as a kernel's PCI core does.
    pub(crate) fn enable(&mut self, vf: u8) {
        let command = (offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER).to_le_bytes();
        let at = offset::COMMAND.into();
        self.manager.config_write(&mut ManagedConfigSpace(self.card.nic()), index(vf), at, &command);
    }

    /// Takes all posted descriptors from a VF's first receive queue, so that arriving frames wait until its driver
    /// posts new ones.
    pub(crate) fn starve(&mut self, vf: u8) {
        self.card.pf().write(r::QDE, 0);
        let mut guest = self.card.vf(vf);
        let control = guest.read(at::RX_BLOCK + rx::SRRCTL);
        guest.write(at::RX_BLOCK + rx::SRRCTL, control & !srrctl::DROP_EN);
        let head = guest.read(at::RX_BLOCK + rx::RDH);
        guest.write(at::RX_BLOCK + rx::RDT, head);
        // Writing RXDCTL makes the card drop the descriptors that it has fetched.
        let enabled = guest.read(at::RX_BLOCK + rx::RXDCTL);
        guest.write(at::RX_BLOCK + rx::RXDCTL, enabled);
    }

    /// Resets the PHY, which then negotiates.
    pub(crate) fn negotiate(&mut self) {
        let control = self.card.pf().read(r::CTRL);
        self.card.pf().write(r::CTRL, control | ctrl::PHY_RST);
    }

    /// Runs `act` with a VF's driver and its access to the card.
    pub(crate) fn on<R>(
        &mut self,
        vf: u8,
        act: impl FnOnce(&mut Vf, &mut backplane::BackplaneVfHal<'_>) -> R,
    ) -> R {
        act(&mut self.vfs[usize::from(vf)], &mut self.card.vf(vf))
    }

    /// Returns the present state of the card, its PF driver and the SR-IOV manager.
    pub(crate) fn state(&mut self) -> CardState {
        let pf = self.card.detach_pf().unwrap();
        let state = CardState::of(self.card.nic(), Some(&pf), Some(&self.manager));
        self.card.return_pf(pf);
        state
    }

    /// Saves the card and its software, and replaces them by a successor process restored from the bytes. Until the
    /// next action, card and PF driver are replaced again and again while drivers wait.
    pub(crate) fn set_aside(&mut self) {
        let written = state::write(&self.state()).unwrap();
        let restored = through(&written).restore().unwrap();
        *self.card.nic() = restored.nic;
        self.card.return_pf(restored.pf.unwrap());
        self.manager = restored.manager.unwrap();
        self.card.set_between(Some(between));
    }
}

/// Decodes a saved card's state, and checks that it encodes to the same bytes again.
pub(crate) fn through(bytes: &[u8]) -> CardState {
    let state: CardState = state::read(bytes).unwrap();
    assert!(state::write(&state).unwrap() == bytes, "the state encodes differently");
    state
}

/// Replaces the card and its PF driver by restored copies at regular polls of a waiting driver (one in [`EVERY`]).
fn between(nic: &mut Nic, pf: Option<&mut Pf>) {
    thread_local!(static ROUND: Cell<u32> = const { Cell::new(0) });
    ROUND.set(ROUND.get() + 1);
    if !ROUND.get().is_multiple_of(EVERY) {
        return;
    }
    let written = state::write(&CardState::of(nic, pf.as_deref(), None)).unwrap();
    let restored = through(&written).restore().unwrap();
    *nic = restored.nic;
    if let (Some(pf), Some(restored)) = (pf, restored.pf) {
        *pf = restored;
    }
}
