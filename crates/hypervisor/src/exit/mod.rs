//! VM exits: their kinds, which of them a processor spares its guests, and their price. Left out: when a guest
//! exits (the guest's model) and what the hypervisor then does (the virtual devices beside this folder).
//!
//! A price is the whole round trip: the processor's exit and entry, and the hypervisor's software between them.
//! What that software causes elsewhere (a device model's answer, another virtual CPU woken) is charged where it
//! happens.

use crate::account::Category;
use crate::cost::{Cost, CostTable};

/// Why a guest left for the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// A physical interrupt.
    ExternalInterrupt,
    /// A write to the EOI register of the APIC page.
    ApicEoi,
    /// Another access to the APIC page.
    ApicOther,
    /// An access to an MSI-X table.
    MsixMmio,
    /// An access to other emulated memory.
    OtherMmio,
    /// A hypercall.
    Hypercall,
    /// `hlt`.
    Hlt,
    /// An interrupt can be injected now.
    InterruptWindow,
    /// A model-specific register, an x2APIC's among them.
    Msr,
    /// Anything else.
    Other,
}

impl ExitKind {
    /// What its cycles are accounted as.
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

    /// The row of its price; for the APIC's EOI, that of [`EoiPath::Emulated`].
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

    /// What it costs, in cycles.
    pub fn price(self, table: &CostTable) -> u64 {
        table[self.cost()]
    }
}

/// How the hypervisor handles a write to the EOI register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EoiPath {
    /// Fetches, decodes and emulates the instruction.
    Emulated,
    /// Believes the exit qualification.
    Fast,
    /// Believes it only after fetching and decoding the instruction.
    FastChecked,
}

impl EoiPath {
    /// What the exit costs, in cycles.
    pub fn price(self, table: &CostTable) -> u64 {
        match self {
            EoiPath::Emulated => table[Cost::EoiEmulated],
            EoiPath::Fast => table[Cost::EoiFast],
            EoiPath::FastChecked => table[Cost::EoiFast] + table[Cost::EoiFetch],
        }
    }
}

/// What a processor does for its guests by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Virtual-interrupt delivery: EOI and injection need no exit (SDM volume 3C, 31.1).
    pub apic_virtualization: bool,
    /// Posted interrupts, of devices too: an interrupt reaches a running guest without an exit (31.6).
    pub posted_interrupts: bool,
    /// The APIC's registers are model-specific registers to the guest.
    pub x2apic: bool,
}

impl Features {
    /// The exit for an end of interrupt, if there is one.
    pub const fn on_eoi(self) -> Option<ExitKind> {
        match (self.apic_virtualization, self.x2apic) {
            (true, _) => None,
            (false, true) => Some(ExitKind::Msr),
            (false, false) => Some(ExitKind::ApicEoi),
        }
    }

    /// The exit for a write to any other APIC register: a timer's, an interrupt command.
    pub const fn on_apic_write(self) -> ExitKind {
        if self.x2apic { ExitKind::Msr } else { ExitKind::ApicOther }
    }

    /// The exit for a device's interrupt to a guest that is running, if there is one.
    pub const fn on_device_interrupt(self) -> Option<ExitKind> {
        if self.posted_interrupts { None } else { Some(ExitKind::ExternalInterrupt) }
    }

    /// The exit when a guest becomes able to take a pending interrupt, if there is one.
    pub const fn on_interrupt_window(self) -> Option<ExitKind> {
        if self.apic_virtualization { None } else { Some(ExitKind::InterruptWindow) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eoi_costs_8400_emulated_2500_fast_and_4300_fast_and_checked() {
        let table = CostTable::nehalem();
        let prices = [EoiPath::Emulated, EoiPath::Fast, EoiPath::FastChecked].map(|path| path.price(&table));
        assert_eq!(prices, [8_400, 2_500, 4_300]);
    }

    #[test]
    fn every_exit_is_the_hypervisors_work_and_costs_more_than_the_transition() {
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
    fn with_apic_virtualization_and_posting_an_interrupt_costs_no_exit() {
        let modern = CostTable::modern().features();
        assert_eq!(modern.on_eoi(), None);
        assert_eq!(modern.on_device_interrupt(), None);
        assert_eq!(modern.on_interrupt_window(), None);
        assert_eq!(modern.on_apic_write(), ExitKind::Msr);
        assert_eq!(CostTable::nehalem().features().on_eoi(), Some(ExitKind::ApicEoi));
    }
}
