//! Builds a configuration space with a type 0 header: header, BARs, and the two linked lists of capabilities.

use super::{Bar, ConfigImage, ConfigLayout, ConfigRegister, ConfigSpace, SIZE, offset};
use crate::capability::{Capability, ExtendedCapability};
use crate::low::low_byte;
use crate::walk::EXTENDED_START;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Ids and class of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionIds {
    /// Vendor id of the function.
    pub vendor: u16,
    /// Device id of the function.
    pub device: u16,
    /// Class, subclass and programming interface, 24 bits.
    pub class: u32,
    /// Revision id of the function.
    pub revision: u8,
    /// Subsystem vendor id of the function.
    pub subsystem_vendor: u16,
    /// Subsystem id of the function.
    pub subsystem: u16,
}

/// Builder of a configuration space. Bytes without a register are read-only zero.
///
/// Layouts are constants of a program, so a mistake in one (outside of the space, lists out of order) is a bug that
/// panics on the first use, in any test.
#[derive(Clone)]
pub struct ConfigSpaceBuilder {
    layout: Box<ConfigLayout>,
    /// Offset of the pointer byte that will contain the offset of the next added capability.
    link: u16,
    /// Offset of the extended capability that was added last.
    last_extended: Option<u16>,
}

impl core::fmt::Debug for ConfigSpaceBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Builder").field("link", &self.link).finish_non_exhaustive()
    }
}

impl ConfigSpaceBuilder {
    /// Creates a builder of a configuration space with a type 0 header that has the ids in `identity`. `command` is the
    /// mask of the writable command bits.
    #[must_use]
    pub fn new(identity: FunctionIds, command: u16) -> Self {
        let empty: ConfigImage = [0; SIZE];
        let (reset, writable, clearable, sticky) = (empty, empty, empty, empty);
        let layout = Box::new(ConfigLayout { reset, writable, clearable, sticky, changeable: Vec::new() });
        Self { layout, link: offset::CAPABILITIES, last_extended: None }
            .register(ConfigRegister::word(offset::VENDOR, identity.vendor))
            .register(ConfigRegister::word(offset::DEVICE, identity.device))
            .register(ConfigRegister::word(offset::COMMAND, 0).writable(command.into()))
            .register(ConfigRegister::dword(
                offset::REVISION,
                identity.class << 8 | u32::from(identity.revision),
            ))
            .register(ConfigRegister::word(offset::SUBSYSTEM_VENDOR, identity.subsystem_vendor))
            .register(ConfigRegister::word(offset::SUBSYSTEM_VENDOR + 2, identity.subsystem))
            .register(ConfigRegister::word(offset::STATUS, 0).write_1_to_clear(offset::STATUS_ERRORS.into()))
    }

    /// Adds one register to the configuration space.
    ///
    /// # Panics
    /// The register lies outside of the space.
    #[must_use]
    pub fn register(mut self, register: ConfigRegister) -> Self {
        let from = usize::from(register.offset);
        let range = from..from + usize::from(register.size);
        let size = range.len();
        let place = |image: &mut ConfigImage, value: u32| {
            image[range.clone()].copy_from_slice(&value.to_le_bytes()[..size]);
        };
        place(&mut self.layout.reset, register.reset);
        place(&mut self.layout.writable, register.writable);
        place(&mut self.layout.clearable, register.clearable);
        place(&mut self.layout.sticky, register.sticky);
        self
    }

    /// Adds BAR `number` (0 to 5) to the configuration space; a 64-bit BAR takes the next number as well.
    ///
    /// # Panics
    /// The BAR does not fit the header.
    #[must_use]
    pub fn bar(self, number: u8, bar: Bar) -> Self {
        let last = number + u8::from(bar.kind == super::BarKind::Memory64);
        assert!(last < 6, "a function's BAR index must be below six");
        self.bar_at(offset::BAR0 + 4 * u16::from(number), bar)
    }

    /// Adds a BAR at any offset of the configuration space, for VF BARs in a capability.
    #[must_use]
    pub(crate) fn bar_at(self, at: u16, bar: Bar) -> Self {
        bar.registers(at).fold(self, Self::register)
    }

    /// Appends a capability to the list that begins at offset 34h.
    ///
    /// # Panics
    /// `at` is not a multiple of four after the header.
    #[must_use]
    pub fn capability(mut self, at: u8, capability: Capability) -> Self {
        assert!(
            at >= 0x40 && at.is_multiple_of(4),
            "a capability must be dword-aligned and lie behind the header"
        );
        self.layout.reset[usize::from(self.link)] = at;
        self.layout.reset[usize::from(offset::STATUS)] |= low_byte(offset::STATUS_CAPABILITIES.into());
        let at = u16::from(at);
        self.link = at + 1;
        let placed = self.register(ConfigRegister::byte(at, capability.id));
        capability.body.into_iter().fold(placed, |space, register| space.register(register.at(at)))
    }

    /// Appends an extended capability to the list that begins at offset 100h.
    ///
    /// # Panics
    /// The first one is not at 100h, or a later one is not after the one before.
    #[must_use]
    pub fn extended(mut self, at: u16, capability: ExtendedCapability) -> Self {
        match self.last_extended {
            None => assert!(at == EXTENDED_START, "the first extended capability must be at offset 100h"),
            Some(last) => {
                assert!(
                    at > last && at.is_multiple_of(4),
                    "extended capabilities must be added in the order of their offsets"
                );
                let version = self.layout.reset[usize::from(last) + 2] & 0xf;
                self = self.register(ConfigRegister::word(last + 2, at << 4 | u16::from(version)));
            }
        }
        self.last_extended = Some(at);
        let placed = self
            .register(ConfigRegister::word(at, capability.id))
            .register(ConfigRegister::word(at + 2, capability.version.into()));
        capability.body.into_iter().fold(placed, |space, register| space.register(register.at(at)))
    }

    /// Returns the configuration space in its reset state.
    #[must_use]
    pub fn build(mut self) -> ConfigSpace {
        self.layout.find_changeable();
        ConfigSpace { bytes: Box::new(self.layout.reset), layout: Arc::from(self.layout) }
    }
}
