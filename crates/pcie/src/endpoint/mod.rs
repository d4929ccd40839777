//! Endpoint: a function's configuration space with the side effects of writes, which it reports to the device in
//! [`ConfigWriteEffects`].

#[cfg(test)]
mod tests;

use crate::capability::express::{self, DEVICE_CAPABILITIES_FLR, DEVICE_CONTROL_FLR};
use crate::capability::power::{self, PowerState};
use crate::capability::{msi, msix, sriov as field};
use crate::config::{ConfigSpace, ConfigSpaceState, SIZE, offset};
use crate::msix::MsiXControl;
use crate::sriov::{self, SrIovRegisters, VfRoutingIds};

/// Changes to a function by a write to configuration space. The device performs a function level reset first: then
/// every other field is set, changed or not, to its value after the reset and the rest of the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConfigWriteEffects {
    /// True if software requested a function level reset, or left D3hot, which resets as well. The configuration
    /// space is reset already.
    pub function_reset: bool,
    /// True if the function may now issue memory requests; `None` if unchanged.
    pub bus_master: Option<bool>,
    /// True if the function now accepts memory requests; `None` if unchanged.
    pub memory: Option<bool>,
    /// New MSI-X enable and function mask, if changed.
    pub msix: Option<MsiXControl>,
    /// New power state of the function, if changed.
    pub power: Option<PowerState>,
    /// New SR-IOV settings, if changed.
    pub sriov: Option<sriov::SrIovSettings>,
}

impl ConfigWriteEffects {
    /// Returns true if the configuration write changed nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Configuration space of a function, with the side effects of writes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    space: ConfigSpace,
    express: Option<u16>,
    msi: Option<u16>,
    msix: Option<u16>,
    power: Option<u16>,
    sriov: Option<SrIovRegisters>,
}

impl Endpoint {
    /// Creates a function with this configuration space. Its first VF, if any, has the same routing id with and without
    /// ARI.
    #[must_use]
    pub fn new(space: ConfigSpace) -> Self {
        let at = space.find_extended(field::ID);
        let first = at.map_or(0, |at| space.word(at + field::FIRST_OFFSET));
        Self::with_ari_offset(space, first)
    }

    /// Creates a function whose first VF is `ari_offset` routing ids behind it while software has set the ARI hierarchy
    /// bit.
    #[must_use]
    pub fn with_ari_offset(space: ConfigSpace, ari_offset: u16) -> Self {
        let express = space.find(express::ID);
        let msi = space.find(msi::ID);
        let msix = space.find(msix::ID);
        let power = space.find(power::ID);
        let sriov = SrIovRegisters::find(&space, ari_offset);
        Self { space, express, msi, msix, power, sriov }
    }

    /// Returns the function's configuration space.
    #[must_use]
    pub fn space(&self) -> &ConfigSpace {
        &self.space
    }

    /// Reads bytes of the configuration space. Bytes beyond 4 KiB read as all ones.
    pub fn read_bytes(&self, offset: u64, into: &mut [u8]) {
        self.space.read_bytes(offset, into);
    }

    /// Reads 1, 2 or 4 bytes of the configuration space. Any other size reads as all ones.
    #[must_use]
    pub fn read(&self, offset: u16, size: u8) -> u32 {
        self.space.read(offset, size)
    }

    /// Writes the low 1, 2 or 4 bytes of `value` to the configuration space. Any other size is ignored.
    pub fn write(&mut self, offset: u16, size: u8, value: u32) -> ConfigWriteEffects {
        match size {
            1 | 2 | 4 => self.write_bytes(offset.into(), &value.to_le_bytes()[..size.into()]),
            _ => ConfigWriteEffects::default(),
        }
    }

    /// Writes bytes of the configuration space, dword by dword in address order, like a root complex: a register takes
    /// effect before the next one is written. Bytes beyond 4 KiB are ignored.
    pub fn write_bytes(&mut self, offset: u64, from: &[u8]) -> ConfigWriteEffects {
        let before = self.effective();
        let mut function_reset = false;
        let (mut at, mut rest) = (u16::try_from(offset).unwrap_or(u16::MAX), from);
        while !rest.is_empty() && usize::from(at) < SIZE {
            let (dword, tail) = rest.split_at(rest.len().min(usize::from(4 - at % 4)));
            function_reset |= self.write_dword(at, dword);
            at = (at | 3) + 1;
            rest = tail;
        }
        let after = self.effective();
        if function_reset { ConfigWriteEffects { function_reset, ..after } } else { changes(before, after) }
    }

    /// Resets the configuration space after a function level reset by a device register, or by the manager that assigns
    /// the device. Reports no effects.
    pub fn function_level_reset(&mut self) {
        self.space.function_level_reset();
    }

    /// Resets every bit of the configuration space, sticky ones included (conventional reset).
    pub fn reset(&mut self) {
        self.space.reset();
    }

    /// Returns the function's saved state, from which [`Endpoint::load`] restores it.
    #[must_use]
    pub fn save(&self) -> ConfigSpaceState {
        self.space.save()
    }

    /// Restores the saved state of the same function; see [`ConfigSpace::load`].
    #[must_use]
    pub fn load(&mut self, state: &ConfigSpaceState) -> bool {
        self.space.reset();
        let reset = self.sriov.map(|sriov| sriov.settings(&self.space));
        let whole = self.space.load(state);
        if let (Some(sriov), Some(reset)) = (self.sriov, reset) {
            sriov.enforce(reset, &mut self.space);
        }
        whole
    }

    /// Returns true if the function may issue memory requests.
    #[must_use]
    pub fn bus_master(&self) -> bool {
        self.command() & offset::COMMAND_BUS_MASTER != 0
    }

    /// Returns true if the function accepts memory requests.
    #[must_use]
    pub fn memory(&self) -> bool {
        self.command() & offset::COMMAND_MEMORY != 0
    }

    /// Returns MSI-X enable and function mask, if the function has MSI-X.
    #[must_use]
    pub fn msix(&self) -> Option<MsiXControl> {
        self.msix.map(|at| MsiXControl::from_word(self.space.word(at + msix::CONTROL)))
    }

    /// Returns the function's MSI enable and mask; both are false for a function without MSI.
    #[must_use]
    pub fn msi(&self) -> msi::MsiControl {
        let Some(at) = self.msi else { return msi::MsiControl::default() };
        msi::MsiControl {
            enabled: self.space.word(at + msi::CONTROL) & msi::CONTROL_ENABLE != 0,
            masked: self.space.dword(at + msi::MASK) & 1 != 0,
        }
    }

    /// Returns true if the function may raise its interrupt pin.
    #[must_use]
    pub fn intx(&self) -> bool {
        self.command() & offset::COMMAND_INTX_DISABLE == 0
    }

    /// Sets the interrupt status bits: `raised` if the pin is raised or would be, `held` if the MSI message is
    /// pending behind its mask.
    pub fn show_interrupt(&mut self, raised: bool, held: bool) {
        let others = self.space.word(offset::STATUS) & !offset::STATUS_INTERRUPT;
        self.space.set_word(offset::STATUS, others | if raised { offset::STATUS_INTERRUPT } else { 0 });
        if let Some(at) = self.msi {
            self.space.set_dword(at + msi::PENDING, held.into());
        }
    }

    /// Returns the function's power state; D0 for a function without power management.
    #[must_use]
    pub fn power(&self) -> PowerState {
        let control = self.power.map_or(0, |at| self.space.word(at + power::CONTROL));
        PowerState::from_control(control).unwrap_or(PowerState::D0)
    }

    /// Returns the SR-IOV settings, if the function has the capability.
    #[must_use]
    pub fn sriov(&self) -> Option<sriov::SrIovSettings> {
        self.sriov.map(|sriov| sriov.state(&self.space))
    }

    /// Returns the routing ids of the function's VFs, if the function has the SR-IOV capability.
    #[must_use]
    pub fn placement(&self) -> Option<VfRoutingIds> {
        self.sriov.map(|sriov| sriov.placement(&self.space))
    }

    fn command(&self) -> u16 {
        self.space.word(offset::COMMAND)
    }

    /// Returns the current values of everything that a write may change.
    fn effective(&self) -> ConfigWriteEffects {
        ConfigWriteEffects {
            function_reset: false,
            bus_master: Some(self.bus_master()),
            memory: Some(self.memory()),
            msix: self.msix(),
            power: self.power.map(|_| self.power()),
            sriov: self.sriov(),
        }
    }

    /// Writes bytes within one dword of the configuration space. Returns true if the write reset the function.
    fn write_dword(&mut self, at: u16, from: &[u8]) -> bool {
        let settings = self.sriov.map(|sriov| sriov.settings(&self.space));
        let power = self.power_control();
        self.space.write_bytes(at.into(), from);
        if let (Some(sriov), Some(settings)) = (self.sriov, settings) {
            sriov.enforce(settings, &mut self.space);
        }
        let reset = self.initiates_reset(at, from) | self.wakes(power);
        if reset {
            self.space.function_level_reset();
        }
        reset
    }

    fn power_control(&self) -> u16 {
        self.power.map_or(0, |at| self.space.word(at + power::CONTROL))
    }

    /// Restores the power state `before` if software wrote an unsupported one. Returns true if software left D3hot,
    /// which resets a function without No_Soft_Reset (PCIe base specification, 5.3.1.4).
    fn wakes(&mut self, before: u16) -> bool {
        let Some(at) = self.power else { return false };
        let control = self.power_control();
        let Some(state) = PowerState::from_control(control) else {
            let kept = control & !power::CONTROL_STATE | before & power::CONTROL_STATE;
            self.space.set_word(at + power::CONTROL, kept);
            return false;
        };
        let slept = PowerState::from_control(before) == Some(PowerState::D3Hot);
        slept && state == PowerState::D0 && control & power::CONTROL_NO_SOFT_RESET == 0
    }

    /// Returns true if a configuration write sets the bit that initiates a function level reset.
    fn initiates_reset(&self, at: u16, from: &[u8]) -> bool {
        let Some(express) = self.express else { return false };
        let capable = self.space.dword(express + express::DEVICE_CAPABILITIES) & DEVICE_CAPABILITIES_FLR;
        let high = express + express::DEVICE_CONTROL + 1;
        let written = high.checked_sub(at).and_then(|i| from.get(usize::from(i)));
        capable != 0 && written.is_some_and(|byte| byte & (DEVICE_CONTROL_FLR >> 8) as u8 != 0)
    }
}

/// Returns the effects of a configuration write: the fields of `after` that differ from `before`.
fn changes(before: ConfigWriteEffects, after: ConfigWriteEffects) -> ConfigWriteEffects {
    fn new<T: Copy + PartialEq>(before: Option<T>, after: Option<T>) -> Option<T> {
        if before == after { None } else { after }
    }
    ConfigWriteEffects {
        function_reset: false,
        bus_master: new(before.bus_master, after.bus_master),
        memory: new(before.memory, after.memory),
        msix: new(before.msix, after.msix),
        power: new(before.power, after.power),
        sriov: new(before.sriov, after.sriov),
    }
}
