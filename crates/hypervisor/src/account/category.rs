//! What cycles are spent on, and a sink for them. Left out: idleness, which is what remains and which nobody
//! can charge.

/// What cycles are spent on.
///
/// The work of a domain itself comes first; from [`Category::ExternalInterrupt`] on it is the hypervisor's work
/// for that domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Category {
    /// A kernel: interrupts, softirq, stack, scheduler.
    Kernel,
    /// A network driver: VF driver, front end, and the service domain's own for its cards.
    Driver,
    /// A program, with its system calls.
    User,
    /// A device model serving a guest's access, in the service domain.
    DeviceModel,
    /// A back end of a split driver, in the service domain.
    Backend,
    /// The software bridge of the service domain.
    Bridge,
    /// Caches and TLB filled again after another virtual CPU ran.
    Refill,
    /// A physical interrupt taken while a guest ran.
    ExternalInterrupt,
    /// A guest's end-of-interrupt write to the APIC page.
    ApicEoi,
    /// Any other access to the APIC page.
    ApicOther,
    /// An access to a guest's MSI-X table.
    MsixMmio,
    /// An access to other emulated memory.
    OtherMmio,
    /// A hypercall, other than those below.
    Hypercall,
    /// A guest going idle, and being woken again.
    Hlt,
    /// A guest that has become able to take an interrupt.
    InterruptWindow,
    /// An access to a model-specific register, x2APIC among them.
    Msr,
    /// An exit of any other kind.
    OtherExit,
    /// Putting an interrupt into a virtual APIC, and into the guest at entry.
    Injection,
    /// Sending and delivering an event channel's event.
    EventChannel,
    /// Grants: mapping, unmapping, copying, transferring.
    Grant,
    /// Putting another virtual CPU on a thread.
    Switch,
    /// The hypervisor's own timers.
    Timer,
}

impl Category {
    /// How many there are.
    pub const COUNT: usize = Category::ALL.len();

    /// All, in order.
    pub const ALL: [Category; 22] = [
        Category::Kernel,
        Category::Driver,
        Category::User,
        Category::DeviceModel,
        Category::Backend,
        Category::Bridge,
        Category::Refill,
        Category::ExternalInterrupt,
        Category::ApicEoi,
        Category::ApicOther,
        Category::MsixMmio,
        Category::OtherMmio,
        Category::Hypercall,
        Category::Hlt,
        Category::InterruptWindow,
        Category::Msr,
        Category::OtherExit,
        Category::Injection,
        Category::EventChannel,
        Category::Grant,
        Category::Switch,
        Category::Timer,
    ];

    /// Its place in [`Category::ALL`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the hypervisor did it (for the domain it is charged to), not the domain.
    pub const fn is_hypervisor(self) -> bool {
        self.index() >= Category::ExternalInterrupt.index()
    }

    /// What reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Kernel => "kernel",
            Category::Driver => "driver",
            Category::User => "user",
            Category::DeviceModel => "device_model",
            Category::Backend => "backend",
            Category::Bridge => "bridge",
            Category::Refill => "refill",
            Category::ExternalInterrupt => "external_interrupt",
            Category::ApicEoi => "apic_eoi",
            Category::ApicOther => "apic_other",
            Category::MsixMmio => "msix_mmio",
            Category::OtherMmio => "other_mmio",
            Category::Hypercall => "hypercall",
            Category::Hlt => "hlt",
            Category::InterruptWindow => "interrupt_window",
            Category::Msr => "msr",
            Category::OtherExit => "other_exit",
            Category::Injection => "injection",
            Category::EventChannel => "event_channel",
            Category::Grant => "grant",
            Category::Switch => "switch",
            Category::Timer => "timer",
        }
    }
}

/// Somewhere to charge cycles to: a step of the machine, or a list in a test.
pub trait Charge {
    /// Charges `cycles` of work, as they would be with the core to oneself.
    fn charge(&mut self, category: Category, cycles: u64);
}

/// Cycles by category. Only the touched ones are ever looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charges {
    cycles: [u64; Category::COUNT],
    touched: u32,
}

// A bit for each category.
const _: () = assert!(Category::COUNT <= 32);

impl Default for Charges {
    fn default() -> Self {
        Charges { cycles: [0; Category::COUNT], touched: 0 }
    }
}

impl Charges {
    /// What was charged to `category`.
    pub fn of(&self, category: Category) -> u64 {
        self.cycles[category.index()]
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, cycles)| cycles).sum()
    }

    /// Whether nothing was charged, or only zeroes.
    pub fn is_empty(&self) -> bool {
        self.iter().all(|(_, cycles)| cycles == 0)
    }

    /// Those charged at all, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Category, u64)> + '_ {
        let mut left = self.touched;
        core::iter::from_fn(move || {
            let index = left.trailing_zeros() as usize;
            let category = *Category::ALL.get(index)?;
            left &= left - 1;
            Some((category, self.cycles[index]))
        })
    }
}

impl Charge for Charges {
    #[inline]
    fn charge(&mut self, category: Category, cycles: u64) {
        let sum = &mut self.cycles[category.index()];
        *sum = sum.saturating_add(cycles);
        self.touched |= 1 << category.index();
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_indices() {
        let indices: Vec<usize> = Category::ALL.iter().map(|category| category.index()).collect();
        assert_eq!(indices, (0..Category::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn charges_add_up_by_category() {
        let mut charges = Charges::default();
        charges.charge(Category::Timer, 5);
        charges.charge(Category::Kernel, 7);
        charges.charge(Category::Timer, 1);
        let all: Vec<_> = charges.iter().collect();
        assert_eq!(all, [(Category::Kernel, 7), (Category::Timer, 6)]);
        assert_eq!((charges.total(), charges.of(Category::User)), (13, 0));
    }
}
