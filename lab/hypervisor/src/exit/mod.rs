//! VM exits: their kinds, the processor features that avoid them, and their costs.
//!
//! A cost covers the round trip: the processor's exit and entry, and the hypervisor's software between.
//! Consequences elsewhere, such as a device model's work or waking a virtual CPU, are charged where they
//! happen.

use crate::account::CycleCategory;
use crate::cost::{CostConstant, CostTable};

/// Reason of a VM exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VmExitReason {
    /// VM exit for a physical interrupt.
    ExternalInterrupt,
    /// VM exit for a write to the EOI register of the APIC page.
    ApicEoi,
    /// VM exit for an access to the APIC page other than an EOI write.
    ApicOther,
    /// VM exit for an access to an MSI-X table.
    MsixMmio,
    /// VM exit for an access to emulated device memory other than the APIC page and MSI-X tables.
    OtherMmio,
    /// VM exit for a hypercall.
    Hypercall,
    /// VM exit for a `hlt` instruction.
    Hlt,
    /// VM exit of a guest that becomes able to take a pending interrupt.
    InterruptWindow,
    /// VM exit for an access to a model-specific register, including x2APIC registers.
    Msr,
    /// VM exit for a reason without a variant of its own.
    Other,
}

impl VmExitReason {
    /// Returns the category that the cycles of this VM exit are charged to.
    pub const fn category(self) -> CycleCategory {
        match self {
            VmExitReason::ExternalInterrupt => CycleCategory::ExternalInterrupt,
            VmExitReason::ApicEoi => CycleCategory::ApicEoi,
            VmExitReason::ApicOther => CycleCategory::ApicOther,
            VmExitReason::MsixMmio => CycleCategory::MsixMmio,
            VmExitReason::OtherMmio => CycleCategory::OtherMmio,
            VmExitReason::Hypercall => CycleCategory::Hypercall,
            VmExitReason::Hlt => CycleCategory::Hlt,
            VmExitReason::InterruptWindow => CycleCategory::InterruptWindow,
            VmExitReason::Msr => CycleCategory::Msr,
            VmExitReason::Other => CycleCategory::OtherExit,
        }
    }

    /// Returns the VM exit's constant in the cost table; for an APIC EOI, that of [`EoiPath::Emulated`].
    pub const fn cost(self) -> CostConstant {
        match self {
            VmExitReason::ExternalInterrupt => CostConstant::ExitExternalInterrupt,
            VmExitReason::ApicEoi => CostConstant::EoiEmulated,
            VmExitReason::ApicOther => CostConstant::ExitApicOther,
            VmExitReason::MsixMmio => CostConstant::ExitMsixMmio,
            VmExitReason::OtherMmio => CostConstant::ExitOtherMmio,
            VmExitReason::Hypercall => CostConstant::HypercallHvm,
            VmExitReason::Hlt => CostConstant::ExitHlt,
            VmExitReason::InterruptWindow => CostConstant::ExitInterruptWindow,
            VmExitReason::Msr => CostConstant::ExitMsr,
            VmExitReason::Other => CostConstant::ExitOther,
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
    /// The hypervisor trusts the VM exit's qualification, and does not look at the writing instruction.
    Fast,
    /// The hypervisor fetches and decodes the instruction, then trusts the exit qualification.
    FastChecked,
}

impl EoiPath {
    /// Returns the cost of a VM exit for an EOI that is handled by this path, in cycles.
    pub fn price(self, table: &CostTable) -> u64 {
        match self {
            EoiPath::Emulated => table[CostConstant::EoiEmulated],
            EoiPath::Fast => table[CostConstant::EoiFast],
            EoiPath::FastChecked => table[CostConstant::EoiFast] + table[CostConstant::EoiFetch],
        }
    }
}

/// Virtualization feature of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualizationFeature {
    /// Virtual-interrupt delivery.
    ApicVirtualization,
    /// Posted interrupts, including devices'.
    PostedInterrupts,
    /// APIC registers as model-specific registers.
    X2apic,
}

impl VirtualizationFeature {
    /// All virtualization features.
    pub const ALL: [Self; 3] = [Self::ApicVirtualization, Self::PostedInterrupts, Self::X2apic];

    /// Returns the feature's name in machine files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApicVirtualization => "apic_virtualization",
            Self::PostedInterrupts => "posted_interrupts",
            Self::X2apic => "x2apic",
        }
    }
}

/// Virtualization features of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualizationFeatures {
    /// Virtual-interrupt delivery: EOI and interrupt injection need no VM exit (SDM volume 3C, 31.1).
    pub apic_virtualization: bool,
    /// Posted interrupts, including devices': an interrupt reaches a running guest without a VM exit (31.6).
    pub posted_interrupts: bool,
    /// The guest accesses APIC registers as model-specific registers.
    pub x2apic: bool,
}

impl VirtualizationFeatures {
    /// Returns `true` if the processor has a feature.
    #[must_use]
    pub const fn has(self, feature: VirtualizationFeature) -> bool {
        match feature {
            VirtualizationFeature::ApicVirtualization => self.apic_virtualization,
            VirtualizationFeature::PostedInterrupts => self.posted_interrupts,
            VirtualizationFeature::X2apic => self.x2apic,
        }
    }

    /// Returns the features of the processor with or without one of them.
    #[must_use]
    pub const fn with(mut self, feature: VirtualizationFeature, has: bool) -> Self {
        match feature {
            VirtualizationFeature::ApicVirtualization => self.apic_virtualization = has,
            VirtualizationFeature::PostedInterrupts => self.posted_interrupts = has,
            VirtualizationFeature::X2apic => self.x2apic = has,
        }
        self
    }

    /// Returns the reason of the VM exit that a guest's end-of-interrupt write causes, or `None` without an
    /// exit.
    pub const fn on_eoi(self) -> Option<VmExitReason> {
        match (self.apic_virtualization, self.x2apic) {
            (true, _) => None,
            (false, true) => Some(VmExitReason::Msr),
            (false, false) => Some(VmExitReason::ApicEoi),
        }
    }

    /// Returns the reason of the VM exit that a write to an APIC register other than EOI causes, such as
    /// timer or interrupt command.
    pub const fn on_apic_write(self) -> VmExitReason {
        if self.x2apic { VmExitReason::Msr } else { VmExitReason::ApicOther }
    }

    /// Returns the reason of the VM exit that a device interrupt to a running guest causes, or `None` without
    /// an exit.
    pub const fn on_device_interrupt(self) -> Option<VmExitReason> {
        if self.posted_interrupts { None } else { Some(VmExitReason::ExternalInterrupt) }
    }

    /// Returns the reason of the VM exit when a guest becomes able to take a pending interrupt, or `None`
    /// without an exit.
    pub const fn on_interrupt_window(self) -> Option<VmExitReason> {
        if self.apic_virtualization { None } else { Some(VmExitReason::InterruptWindow) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eoi_costs_2500_cycles_fast_4300_checked_8400_emulated() {
        let table = CostTable::nehalem();
        let prices = [EoiPath::Emulated, EoiPath::Fast, EoiPath::FastChecked].map(|path| path.price(&table));
        assert_eq!(prices, [8_400, 2_500, 4_300]);
    }

    #[test]
    fn vm_exit_costs_at_least_a_vm_transition_in_any_cost_table() {
        use VmExitReason::{
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
                assert!(kind.price(&table) >= table[CostConstant::VmTransition], "{} {kind:?}", table.name());
            }
        }
    }

    #[test]
    fn modern_features_need_no_vm_exit_for_eoi_and_interrupts() {
        let modern = CostTable::modern().features();
        assert_eq!(modern.on_eoi(), None);
        assert_eq!(modern.on_device_interrupt(), None);
        assert_eq!(modern.on_interrupt_window(), None);
        assert_eq!(modern.on_apic_write(), VmExitReason::Msr);
        assert_eq!(CostTable::nehalem().features().on_eoi(), Some(VmExitReason::ApicEoi));
    }
}
