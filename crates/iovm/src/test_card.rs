//! SR-IOV card for tests: the 82576's configuration spaces, without registers. The card logs the manager's
//! requests; while `busy` is set, memory requests stay in flight.

use crate::SrIovDevice;
use alloc::vec::Vec;
use i82576::config::{EXPRESS, pf, vf};
use i82576::{MacAddress, VfIndex};
use pcie::capability::express;
use pcie::{ConfigAccess, ConfigWriteEffects, Endpoint, Function};

/// Offset of the PCI Express capability's device capabilities in a VF's configuration space.
const CAPABILITIES: u16 = EXPRESS as u16 + express::DEVICE_CAPABILITIES;

/// Request of the SR-IOV manager to the card, as the test card logs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestToCard {
    BusMaster(u8, bool),
    Quiesce(u8),
    Reset(u8),
}

/// SR-IOV card for tests: configuration spaces of PF and VFs, and a log of the manager's requests.
#[derive(Debug, Clone)]
pub(crate) struct SrIovTestCard {
    pub(crate) pf: Endpoint,
    pub(crate) vfs: Vec<Endpoint>,
    pub(crate) log: Vec<RequestToCard>,
    pub(crate) busy: bool,
    /// True if VFs offer a function level reset.
    pub(crate) resets: bool,
}

impl SrIovTestCard {
    pub(crate) fn new() -> Self {
        let mac = MacAddress([0x00, 0x1b, 0x21, 0x2b, 0x46, 0xe0]);
        Self { pf: pf::endpoint(mac, true), vfs: Vec::new(), log: Vec::new(), busy: false, resets: true }
    }

    /// Returns the requests of the SR-IOV manager since the last call.
    pub(crate) fn take_log(&mut self) -> Vec<RequestToCard> {
        core::mem::take(&mut self.log)
    }

    pub(crate) fn bus_master(&self, vf: VfIndex) -> bool {
        self.vfs.get(vf.index()).is_some_and(Endpoint::bus_master)
    }

    fn endpoint(&mut self, function: Function) -> Option<&mut Endpoint> {
        match function {
            Function::Pf => Some(&mut self.pf),
            Function::Vf(n) => self.vfs.get_mut(usize::from(n)),
        }
    }

    /// Carries out the effects of a configuration write: creates or removes VFs as the SR-IOV settings
    /// change, and logs resets and changes of bus mastering.
    fn follow(&mut self, function: Function, effects: ConfigWriteEffects) {
        if let Some(sriov) = effects.sriov {
            self.vfs.resize_with(sriov.active().into(), vf::endpoint);
        }
        if let Function::Vf(n) = function {
            if effects.function_reset {
                self.log.push(RequestToCard::Reset(n));
            }
            if let (Some(on), false) = (effects.bus_master, effects.function_reset) {
                self.log.push(RequestToCard::BusMaster(n, on));
            }
        }
    }
}

impl ConfigAccess for SrIovTestCard {
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32 {
        let hidden =
            if offset == CAPABILITIES && !self.resets { express::DEVICE_CAPABILITIES_FLR } else { 0 };
        self.endpoint(function).map_or(u32::MAX, |endpoint| endpoint.read(offset, size) & !hidden)
    }

    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32) {
        let Some(endpoint) = self.endpoint(function) else { return };
        let effects = endpoint.write(offset, size, value);
        self.follow(function, effects);
    }
}

impl SrIovDevice for SrIovTestCard {
    fn quiesce(&mut self, function: Function) -> bool {
        if let Function::Vf(n) = function {
            self.log.push(RequestToCard::Quiesce(n));
        }
        !self.busy
    }
}
