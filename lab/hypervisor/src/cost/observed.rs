//! Published observations to calibrate the cost model on, and to compare with its results. The model may not
//! use them as costs. Results that the model has to predict are not here.

use super::row::{CostEvidenceKind, CostUnit};

/// Published observation to calibrate the cost model on, or to compare with its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedObservation {
    /// Name of the published observation.
    pub name: &'static str,
    /// Value that was observed, in `unit`.
    pub value: u64,
    /// Unit of the observed value; permille are of one hardware thread unless the name says otherwise.
    pub unit: CostUnit,
    /// Kind of evidence for the observation: published by others, or stated in the reproduced paper.
    pub kind: CostEvidenceKind,
    /// Circumstances of the observation and its source.
    pub source: &'static str,
}

/// All published observations of the cost model.
pub const OBSERVATIONS: &[PublishedObservation] = &[
    stated(
        "msi_dom0_before",
        170,
        CostUnit::Permille,
        "1 VM on 1 port, 2.6.18 HVM: dom0, MSI-X in the device model",
    ),
    stated(
        "msi_dom0_after",
        30,
        CostUnit::Permille,
        "1 VM on 1 port, 2.6.18 HVM: dom0, MSI-X in the hypervisor: about 3 %",
    ),
    stated(
        "overhead_per_second",
        154_000_000,
        CostUnit::Hertz,
        "1 VM, 2.6.28: cycles/s of virtualization overhead",
    ),
    stated(
        "apic_access_per_second",
        139_000_000,
        CostUnit::Hertz,
        "1 VM, 2.6.28: cycles/s of virtualization overhead in APIC-access exits",
    ),
    stated(
        "eoi_share_of_apic_access",
        470,
        CostUnit::Permille,
        "1 VM, 2.6.28: share of EOI writes in the cycles of APIC-access exits",
    ),
    stated("udp_throughput", 957_000_000, CostUnit::BitsPerSecond, "1 VM on 1 port, UDP"),
    stated("tcp_throughput", 940_000_000, CostUnit::BitsPerSecond, "1 VM on 1 port, TCP at 20 kHz"),
    stated(
        "udp_saving_20k_to_2k",
        400,
        CostUnit::Permille,
        "UDP_STREAM: CPU saved at 2 kHz, relative to 20 kHz",
    ),
    stated(
        "ten_vms_2_6_18_before",
        4_990,
        CostUnit::Permille,
        "10 VMs on 10 ports, 2.6.18 HVM, no optimisation",
    ),
    stated(
        "ten_vms_2_6_18_after",
        2_270,
        CostUnit::Permille,
        "10 VMs on 10 ports, 2.6.18 HVM, MSI-X in the hypervisor",
    ),
    stated(
        "ten_vms_2_6_28_all",
        1_930,
        CostUnit::Permille,
        "10 VMs on 10 ports, 2.6.28 HVM, all three optimisations, 9.57 Gb/s UDP",
    ),
    stated(
        "ten_vms_throughput",
        9_570_000_000,
        CostUnit::BitsPerSecond,
        "10 VMs on 10 ports, 2.6.28 HVM, all three optimisations: UDP payload",
    ),
    stated(
        "hvm_scaling_per_vm",
        28,
        CostUnit::Permille,
        "CPU of each additional VM, from 10 to 60 VMs, at 9.57 Gb/s",
    ),
    stated(
        "loopback_bandwidth",
        2_800_000_000,
        CostUnit::BitsPerSecond,
        "throughput between two VFs inside the card",
    ),
    stated(
        "pv_one_backend",
        3_600_000_000,
        CostUnit::BitsPerSecond,
        "10 VMs, stock PV, one back-end thread at 100 %",
    ),
    stated(
        "pv_cycles_per_packet",
        9_000,
        CostUnit::Cycles,
        "10 VMs, stock PV, one back-end thread at 100 %: cycles per packet of the thread",
    ),
    published("transition_prescott", 3_963, AGESEN),
    published("transition_merom", 1_579, AGESEN),
    published("transition_penryn", 1_266, AGESEN),
    published("transition_nehalem", 1_009, AGESEN),
    published("transition_westmere", 761, AGESEN),
    published("transition_sandy_bridge", 784, AGESEN),
    published("kvm_hypercall_least", 1_300, DALL),
    published("kvm_hypercall_most", 1_437, DALL),
    published("kvm_exit_in_kernel", 2_565, DALL),
    published("kvm_exit_in_user_space", 6_732, DALL),
    published("kvm_virtual_ipi", 3_102, DALL),
    published("kvm_eoi", 1_556, DALL),
    published("kvm_ioeventfd", 560, DALL),
    published("kvm_vmcall_2017", 1_181, "Linux commit b7ffc44d5b2e (A. Lutomirski), kvm-unit-tests"),
    published("kvm_cpuid_2017", 1_291, "Linux commit b7ffc44d5b2e (A. Lutomirski), kvm-unit-tests"),
];

const AGESEN: &str = "Agesen et al., ATC 2012: VM exit and entry, hardware only";
const DALL: &str = "Dall et al., ISCA 2016 and ATC 2017: KVM on Sandy Bridge";

/// Creates an observation stated by Dong et al., HPCA 2010.
const fn stated(
    name: &'static str,
    value: u64,
    unit: CostUnit,
    source: &'static str,
) -> PublishedObservation {
    PublishedObservation { name, value, unit, kind: CostEvidenceKind::Stated, source }
}

const fn published(name: &'static str, cycles: u64, source: &'static str) -> PublishedObservation {
    PublishedObservation {
        name,
        value: cycles,
        unit: CostUnit::Cycles,
        kind: CostEvidenceKind::Published,
        source,
    }
}
