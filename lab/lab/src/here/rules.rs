//! Rules that compute cost constants from measurements of this host. Constants that cannot be measured from user space
//! have no rule, such as those of a guest's network stack.

use hypervisor::cost::{CostConstant, CostTable};

use super::HostMeasurement;

/// Rule that computes a cost constant from a measurement minus other measurements, in cycles of the measured clock.
struct ConstantRule {
    cost: CostConstant,
    is: &'static str,
    less: &'static [&'static str],
    source: &'static str,
}

const fn rule(
    cost: CostConstant,
    is: &'static str,
    less: &'static [&'static str],
    source: &'static str,
) -> ConstantRule {
    ConstantRule { cost, is, less, source }
}

const CLOCK: &str = "clock";

const RULES: &[ConstantRule] = &[
    rule(CostConstant::CopyWarm, "copy_warm", &[], "copying frames that are in the cache"),
    rule(CostConstant::RxCopy, "copy_shared", &[], "copying frames from the last-level cache"),
    rule(CostConstant::CopyCold, "copy_cold", &[], "copying frames from memory"),
    rule(
        CostConstant::ContextSwitch,
        "switch",
        &["eventfd_write", "eventfd_read"],
        "an eventfd between threads on one processor, including the wake-up, less the write and the read",
    ),
    rule(
        CostConstant::TxSyscall,
        "eventfd_write",
        &[],
        "a system call that looks up a descriptor: an eventfd write",
    ),
    rule(
        CostConstant::EventBlocked,
        "wake_call",
        &["eventfd_write"],
        "an eventfd write that wakes a thread on another processor, less a write without a waiting thread",
    ),
    rule(CostConstant::ExitOther, "exit_cpuid", &[], "KVM: exit and entry for cpuid"),
    rule(
        CostConstant::HypercallHvm,
        "exit_hypercall",
        &[],
        "KVM: exit and entry for a nonexistent hypercall",
    ),
    rule(
        CostConstant::ExitMsixMmio,
        "exit_mmio_kernel",
        &[],
        "KVM: exit and entry for a write to a device in the \
        kernel",
    ),
    rule(
        CostConstant::ExitOtherMmio,
        "exit_mmio_kernel",
        &[],
        "KVM: exit and entry for a write to a device in the \
        kernel",
    ),
    rule(
        CostConstant::IoeventfdExit,
        "exit_ioeventfd",
        &[],
        "KVM: exit and entry for a write that KVM passes to an eventfd",
    ),
    rule(
        CostConstant::DeviceModel,
        "exit_mmio_user",
        &["exit_mmio_kernel"],
        "KVM: exit and entry for a write to a device in user space, less those for a device in the kernel",
    ),
];

/// Sets cost constants of a table from measurements of this host. Constants without a measurement, or with a result of
/// zero or less, stay unchanged.
pub(super) fn apply(table: &mut CostTable, readings: &[HostMeasurement]) {
    let reading = |name: &str| readings.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if let Some(hertz) = reading(CLOCK) {
        measure(table, CostConstant::ClockHertz, hertz, "a chain of dependent instructions");
    }
    let hertz = table[CostConstant::ClockHertz] as f64;
    for ConstantRule { cost, is, less, source } in RULES {
        let less: Option<f64> = less.iter().map(|name| reading(name)).sum();
        if let (Some(is), Some(less)) = (reading(is), less) {
            measure(table, *cost, (is - less) * hertz / 1e9, source);
        }
    }
}

/// Sets a cost constant to a measured value, unless the value is below half a cycle and so cannot be right.
fn measure(table: &mut CostTable, cost: CostConstant, value: f64, source: &'static str) {
    if value >= 0.5 {
        let _ = table.measure(cost, value.round() as u64, source);
    }
}
