//! VM exits: their kinds, the processor features that avoid them, and their costs.
//!
//! A cost covers the round trip: the processor's exit and entry, and the hypervisor's software between.
//! Consequences elsewhere, such as a device model's work or waking a virtual CPU, are charged where they
//! happen.

use crate::account::Category;
use crate::cost::{Cost, CostTable};

/// Reason of a VM exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// VM exit for a physical interrupt.
    ExternalInterrupt,
    /// Exit for a write to the EOI register of the APIC page.
    ApicEoi,
    /// VM exit for any other access to the APIC page.
    ApicOther,
    /// VM exit for an access to an MSI-X table.
    MsixMmio,
    /// VM exit for an access to other emulated device memory.
    OtherMmio,
    /// VM exit for a hypercall.
    Hypercall,
    /// VM exit for a `hlt` instruction.
    Hlt,
    /// VM exit because the guest can take a pending interrupt now.
    InterruptWindow,
    /// Exit for an access to a model-specific register, including x2APIC registers.
    Msr,
    /// VM exit for any other reason.
    Other,
}

impl ExitKind {
    /// Returns the category that the exit's cycles are charged to.
    pub const fn category(self) -> Category {
        match self {
            ExitKind::ExternalInterrupt => Category::ExternalInterrupt,
            ExitKind::ApicEoi => Category::ApicEoi,
            ExitKind::ApicOther => Category::ApicOther,
            ExitKind::MsixMmio => Category::MsixMmio,
            ExitKind::OtherMmio => Category::OtherMmio,
            ExitKind::Hypercall => Category::Hypercall,
            ExitKind::Hlt => Category::Hlt,
            ExitKind::InterruptWindow => Category::InterruptWindow,
            ExitKind::Msr => Category::Msr,
            ExitKind::Other => Category::OtherExit,
        }
    }

    /// Returns the exit's constant in the cost table; for an APIC EOI, that of [`EoiPath::Emulated`].
    pub const fn cost(self) -> Cost {
        match self {
            ExitKind::ExternalInterrupt => Cost::ExitExternalInterrupt,
            ExitKind::ApicEoi => Cost::EoiEmulated,
            ExitKind::ApicOther => Cost::ExitApicOther,
            ExitKind::MsixMmio => Cost::ExitMsixMmio,
            ExitKind::OtherMmio => Cost::ExitOtherMmio,
            ExitKind::Hypercall => Cost::HypercallHvm,
            ExitKind::Hlt => Cost::ExitHlt,
            ExitKind::InterruptWindow => Cost::ExitInterruptWindow,
            ExitKind::Msr => Cost::ExitMsr,
            ExitKind::Other => Cost::ExitOther,
        }
    }

    /// Returns the VM exit's cost in cycles.
    pub fn price(self, table: &CostTable) -> u64 {
        table[self.cost()]
    }
}

/// Path by which the hypervisor handles an EOI write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EoiPath {
    /// The hypervisor fetches, decodes and emulates the writing instruction.
    Emulated,
    /// EOI path: the hypervisor trusts the VM exit's qualification.
    Fast,
    /// The hypervisor fetches and decodes the instruction, then trusts the exit qualification.
    FastChecked,
}

impl EoiPath {
    /// Returns the cost of an EOI exit by this path, in cycles.
    pub fn price(self, table: &CostTable) -> u64 {
        match self {
            EoiPath::Emulated => table[Cost::EoiEmulated],
            EoiPath::Fast => table[Cost::EoiFast],
            EoiPath::FastChecked => table[Cost::EoiFast] + table[Cost::EoiFetch],
        }
    }
}

/// Virtualization features of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Virtual-interrupt delivery: EOI and injection need no exit (SDM volume 3C, 31.1).
    pub apic_virtualization: bool,
    /// Posted interrupts, including devices': an interrupt reaches a running guest without an exit (31.6).
    pub posted_interrupts: bool,
    /// The guest accesses APIC registers as model-specific registers.
    pub x2apic: bool,
}

impl Features {
    /// Returns the exit of an end of interrupt, if any.
    pub const fn on_eoi(self) -> Option<ExitKind> {
        match (self.apic_virtualization, self.x2apic) {
            (true, _) => None,
            (false, true) => Some(ExitKind::Msr),
            (false, false) => Some(ExitKind::ApicEoi),
        }
    }

    /// Returns the exit of a write to any other APIC register, such as timer or interrupt command.
    pub const fn on_apic_write(self) -> ExitKind {
        if self.x2apic { ExitKind::Msr } else { ExitKind::ApicOther }
    }

    /// Returns the exit of a device interrupt to a running guest, if any.
    pub const fn on_device_interrupt(self) -> Option<ExitKind> {
        if self.posted_interrupts { None } else { Some(ExitKind::ExternalInterrupt) }
    }

    /// Returns the exit of a guest that becomes able to take a pending interrupt, if any.
    pub const fn on_interrupt_window(self) -> Option<ExitKind> {
        if self.apic_virtualization { None } else { Some(ExitKind::InterruptWindow) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eoi_costs_8400_emulated_2500_fast_4300_checked() {
        let table = CostTable::nehalem();
        let prices = [EoiPath::Emulated, EoiPath::Fast, EoiPath::FastChecked].map(|path| path.price(&table));
        assert_eq!(prices, [8_400, 2_500, 4_300]);
    }

    #[test]
    fn vm_exit_is_hypervisor_work_and_costs_over_a_transition() {
        use ExitKind::{
            ApicEoi, ApicOther, ExternalInterrupt, Hlt, Hypercall, InterruptWindow, MsixMmio, Msr, Other,
            OtherMmio,
        };
        let kinds = [
            ExternalInterrupt,
            ApicEoi,
            ApicOther,
            MsixMmio,
            OtherMmio,
            Hypercall,
            Hlt,
            InterruptWindow,
            Msr,
            Other,
        ];
        for table in [CostTable::nehalem(), CostTable::modern()] {
            for kind in kinds {
                assert!(kind.category().is_hypervisor());
                assert!(kind.price(&table) >= table[Cost::VmTransition], "{} {kind:?}", table.name());
            }
        }
    }

    #[test]
    fn posted_interrupt_with_virtual_apic_needs_no_vm_exit() {
        let modern = CostTable::modern().features();
        assert_eq!(modern.on_eoi(), None);
        assert_eq!(modern.on_device_interrupt(), None);
        assert_eq!(modern.on_interrupt_window(), None);
        assert_eq!(modern.on_apic_write(), ExitKind::Msr);
        assert_eq!(CostTable::nehalem().features().on_eoi(), Some(ExitKind::ApicEoi));
    }
}
