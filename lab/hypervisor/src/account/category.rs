//! Categories of cycles, and the interface to charge cycles. Idle cycles are not charged: the ledger derives them.

/// Category of processor cycles charged to a domain.
///
/// The domain's own work comes first; from [`CycleCategory::ExternalInterrupt`] on it is the hypervisor's work for
/// that domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CycleCategory {
    /// Cycles of a kernel: interrupts, softirq, stack and scheduler.
    Kernel,
    /// Cycles of a network driver: VF driver, front end, or the service domain's driver of its cards.
    Driver,
    /// Cycles of programs in user space, including their system calls.
    User,
    /// Cycles of the device model, which handles a guest's device accesses in the service domain.
    DeviceModel,
    /// Cycles of the back end of a split driver, in the service domain.
    Backend,
    /// Cycles of the service domain's software bridge.
    Bridge,
    /// Cycles to refill caches and TLB after another virtual CPU ran.
    Refill,
    /// Cycles of VM exits for physical interrupts that arrive while a guest runs.
    ExternalInterrupt,
    /// Cycles of VM exits for a guest's end-of-interrupt writes to the APIC page.
    ApicEoi,
    /// Cycles of VM exits for accesses to the APIC page other than end-of-interrupt writes.
    ApicOther,
    /// Cycles of VM exits for accesses to a guest's MSI-X table.
    MsixMmio,
    /// Cycles of VM exits for accesses to emulated device memory other than the APIC page and MSI-X tables.
    OtherMmio,
    /// Cycles of hypercalls without a category of their own.
    Hypercall,
    /// Cycles of VM exits for the HLT instruction, by which a guest goes idle, and of waking idle guests.
    Hlt,
    /// Cycles of VM exits that a guest takes when it becomes able to receive a pending interrupt.
    InterruptWindow,
    /// Cycles of VM exits for accesses to model-specific registers, including x2APIC registers.
    Msr,
    /// Cycles of VM exits without a category of their own.
    OtherExit,
    /// Cycles to request an interrupt in a virtual APIC and to inject it at VM entry.
    Injection,
    /// Cycles to send and deliver an event-channel event.
    EventChannel,
    /// Cycles of grant operations: map, unmap, copy and transfer.
    Grant,
    /// Cycles to switch a processor thread to another virtual CPU.
    Switch,
    /// Cycles that the hypervisor spends on its timers.
    Timer,
}

impl CycleCategory {
    /// Number of categories of cycles.
    pub const COUNT: usize = CycleCategory::ALL.len();

    /// All categories of cycles, in index order.
    pub const ALL: [CycleCategory; 22] = [
        CycleCategory::Kernel,
        CycleCategory::Driver,
        CycleCategory::User,
        CycleCategory::DeviceModel,
        CycleCategory::Backend,
        CycleCategory::Bridge,
        CycleCategory::Refill,
        CycleCategory::ExternalInterrupt,
        CycleCategory::ApicEoi,
        CycleCategory::ApicOther,
        CycleCategory::MsixMmio,
        CycleCategory::OtherMmio,
        CycleCategory::Hypercall,
        CycleCategory::Hlt,
        CycleCategory::InterruptWindow,
        CycleCategory::Msr,
        CycleCategory::OtherExit,
        CycleCategory::Injection,
        CycleCategory::EventChannel,
        CycleCategory::Grant,
        CycleCategory::Switch,
        CycleCategory::Timer,
    ];

    /// Returns the category's index in [`CycleCategory::ALL`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns `true` if the hypervisor does the work of this category on behalf of a domain.
    pub const fn is_hypervisor(self) -> bool {
        self.index() >= CycleCategory::ExternalInterrupt.index()
    }

    /// Returns the category's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CycleCategory::Kernel => "kernel",
            CycleCategory::Driver => "driver",
            CycleCategory::User => "user",
            CycleCategory::DeviceModel => "device_model",
            CycleCategory::Backend => "backend",
            CycleCategory::Bridge => "bridge",
            CycleCategory::Refill => "refill",
            CycleCategory::ExternalInterrupt => "external_interrupt",
            CycleCategory::ApicEoi => "apic_eoi",
            CycleCategory::ApicOther => "apic_other",
            CycleCategory::MsixMmio => "msix_mmio",
            CycleCategory::OtherMmio => "other_mmio",
            CycleCategory::Hypercall => "hypercall",
            CycleCategory::Hlt => "hlt",
            CycleCategory::InterruptWindow => "interrupt_window",
            CycleCategory::Msr => "msr",
            CycleCategory::OtherExit => "other_exit",
            CycleCategory::Injection => "injection",
            CycleCategory::EventChannel => "event_channel",
            CycleCategory::Grant => "grant",
            CycleCategory::Switch => "switch",
            CycleCategory::Timer => "timer",
        }
    }
}

/// Receiver of charged cycles: a virtual CPU's step under execution, or a list in a test.
pub trait CycleSink {
    /// Charges `cycles` of work. Contention with a busy sibling thread is added later.
    fn charge(&mut self, category: CycleCategory, cycles: u64);
}

/// Processor cycles charged to one step of a virtual CPU, by category. Only categories with charges are iterated over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargedCycles {
    cycles: [u64; CycleCategory::COUNT],
    /// Sum of `cycles`.
    total: u64,
    touched: u32,
}

// `touched` has one bit per category.
const _: () = assert!(CycleCategory::COUNT <= 32);

impl Default for ChargedCycles {
    fn default() -> Self {
        ChargedCycles { cycles: [0; CycleCategory::COUNT], total: 0, touched: 0 }
    }
}

impl ChargedCycles {
    /// Returns the cycles of a step that were charged to `category`.
    pub fn of(&self, category: CycleCategory) -> u64 {
        self.cycles[category.index()]
    }

    /// Returns the sum of all cycles charged to a step, over all categories.
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns `true` if no cycles are charged to the step.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the categories with charged cycles, and those cycles, in index order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (CycleCategory, u64)> + '_ {
        let mut left = self.touched;
        core::iter::from_fn(move || {
            let index = left.trailing_zeros() as usize;
            let category = *CycleCategory::ALL.get(index)?;
            left &= left - 1;
            Some((category, self.cycles[index]))
        })
    }
}

impl CycleSink for ChargedCycles {
    #[inline]
    fn charge(&mut self, category: CycleCategory, cycles: u64) {
        let sum = &mut self.cycles[category.index()];
        *sum = sum.saturating_add(cycles);
        self.total = self.total.saturating_add(cycles);
        self.touched |= 1 << category.index();
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn cpu_time_categories_are_listed_in_index_order() {
        let indices: Vec<usize> = CycleCategory::ALL.iter().map(|category| category.index()).collect();
        assert_eq!(indices, (0..CycleCategory::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn cpu_charges_add_up_by_category() {
        let mut charges = ChargedCycles::default();
        charges.charge(CycleCategory::Timer, 5);
        charges.charge(CycleCategory::Kernel, 7);
        charges.charge(CycleCategory::Timer, 1);
        let all: Vec<_> = charges.iter().collect();
        assert_eq!(all, [(CycleCategory::Kernel, 7), (CycleCategory::Timer, 6)]);
        assert_eq!((charges.total(), charges.of(CycleCategory::User)), (13, 0));
    }
}
