//! Costs of VM exits, of the hypervisor's work in them, and of its timers.

use super::source::HARPERTOWN_CORE;
use crate::cost::cell::{CostTableRow, estimate};
use crate::cost::machine::MachineModel::{Harpertown, Modern, Nehalem, Opteron, Server2009, Skylake};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::{Derived, Estimate, Fitted, Published, Stated};

/// Rows of the cost table for exits costs.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::ExitExternalInterrupt,
        cells: &[
            (
                Nehalem,
                2_000,
                (1_500, 3_000),
                Derived,
                "Dong et al., HPCA 2010: (154 M - 139 M cycles/s outside APIC accesses) / about 7.5 K interrupts/s",
            ),
            (
                Modern,
                1_500,
                (1_200, 2_600),
                Estimate,
                "engineering estimate: vmcall's 1,181 (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests) and an interrupt handler",
            ),
            (
                Skylake,
                5_600,
                (1_500, 12_000),
                Fitted,
                "11.2 % more throughput of a busy guest without the PF's interrupts (Iida et al.)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::EoiEmulated,
        cells: &[
            (Nehalem, 8_400, (8_400, 8_400), Stated, "Dong et al., HPCA 2010"),
            (
                Modern,
                2_600,
                (2_000, 3_500),
                Derived,
                "exit handled in the kernel: 2,565 (Dall et al., ISCA 2016 and ATC 2017); only without APIC virtualization",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::EoiFast,
        cells: &[
            (Nehalem, 2_500, (2_500, 2_500), Stated, "Dong et al., HPCA 2010"),
            (
                Modern,
                1_556,
                (1_300, 1_700),
                Published,
                "EOI under KVM: 1,556 (Dall et al., ISCA 2016 and ATC 2017); only without APIC virtualization",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::EoiFetch,
        cells: &[
            (Nehalem, 1_800, (1_800, 1_800), Stated, "Dong et al., HPCA 2010"),
            (
                Modern,
                1_000,
                (600, 1_800),
                Derived,
                "exit handled in the kernel less EOI: 2,565 - 1,556 (Dall et al., ISCA 2016 and ATC 2017)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitApicOther,
        cells: &[
            (
                Nehalem,
                8_400,
                (6_000, 9_500),
                Derived,
                "Dong et al., HPCA 2010: the same path as an emulated EOI",
            ),
            (
                Modern,
                2_600,
                (2_000, 3_500),
                Derived,
                "exit handled in the kernel: 2,565 (Dall et al., ISCA 2016 and ATC 2017); only without x2APIC",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitMsixMmio,
        cells: &[
            (
                Nehalem,
                4_300,
                (3_000, 6_000),
                Derived,
                "Dong et al., HPCA 2010: the exit of a fast EOI and its fetch, 2.5 K + 1.8 K",
            ),
            (
                Modern,
                2_600,
                (2_000, 4_000),
                Derived,
                "exit handled in the kernel: 2,565 (Dall et al., ISCA 2016 and ATC 2017)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitOtherMmio,
        cells: &[
            (
                Nehalem,
                4_300,
                (3_000, 6_000),
                Derived,
                "Dong et al., HPCA 2010: fetch and decode as for an MSI-X table, 2.5 K + 1.8 K; the event has prices of its own",
            ),
            (
                Modern,
                3_200,
                (2_600, 4_500),
                Estimate,
                "engineering estimate: exit handled in the kernel, 2,565 (Dall et al., ISCA 2016 and ATC 2017), and the way out to a process",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::DeviceModel,
        cells: &[
            (
                Nehalem,
                20_000,
                (10_000, 35_000),
                Estimate,
                "engineering estimate: event, select, system calls; bounded by 14 % of a thread for two accesses an interrupt (Dong et al., HPCA 2010)",
            ),
            (
                Modern,
                4_200,
                (3_500, 8_000),
                Derived,
                "exit handled in user space less in the kernel: 6,732 - 2,565 (Dall et al., ISCA 2016 and ATC 2017)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::HypercallHvm,
        cells: &[
            (
                Nehalem,
                1_500,
                (1_200, 2_000),
                Estimate,
                "transition of 1,009 (Agesen et al., ATC 2012) and dispatch",
            ),
            (
                Modern,
                1_181,
                (1_000, 1_437),
                Published,
                "vmcall: 1,181 (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests); 1,300 to 1,437 on Sandy Bridge (Dall et al., ISCA 2016 and ATC 2017)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitHlt,
        cells: &[
            (
                Nehalem,
                2_500,
                (1_500, 6_000),
                Estimate,
                "engineering estimate: exit, blocking, idle loop, waking, entry; 154 M - 139 M cycles/s leave 2.0 K an interrupt for it and the injection (Dong et al., HPCA 2010)",
            ),
            (
                Modern,
                3_500,
                (2_500, 6_000),
                Estimate,
                "engineering estimate: exit, blocking, idle loop, waking, entry",
            ),
            estimate(Server2009, 4_000, (2_500, 6_000)),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitInterruptWindow,
        cells: &[
            (
                Nehalem,
                1_900,
                (1_400, 2_500),
                Estimate,
                "engineering estimate: transition of 1,009 and an injection",
            ),
            (
                Modern,
                1_300,
                (1_000, 1_700),
                Estimate,
                "engineering estimate: transition and an injection; only without APIC virtualization",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitMsr,
        cells: &[
            (
                Nehalem,
                2_200,
                (1_600, 3_000),
                Estimate,
                "engineering estimate: transition of 1,009 and a handler",
            ),
            (
                Modern,
                1_300,
                (1_100, 1_600),
                Estimate,
                "engineering estimate: vmcall's 1,181 (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests) and a handler",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitOther,
        cells: &[
            (
                Nehalem,
                2_200,
                (1_600, 4_000),
                Estimate,
                "engineering estimate: transition of 1,009 and a handler",
            ),
            (
                Modern,
                1_291,
                (1_100, 1_600),
                Published,
                "cpuid: 1,291 (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::Injection,
        cells: &[
            estimate(Nehalem, 500, (300, 900)),
            (
                Modern,
                250,
                (100, 400),
                Estimate,
                "engineering estimate: posting a bit and a notification; nothing if the device posts it",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::EventConvert,
        cells: &[
            (
                Nehalem,
                3_000,
                (1_500, 5_000),
                Estimate,
                "engineering estimate: a virtual line under its lock, through the interrupt controllers to the virtual APIC",
            ),
            estimate(Modern, 1_500, (500, 3_000)),
        ],
    },
    CostTableRow {
        constant: CostConstant::HypervisorTick,
        cells: &[
            estimate(Nehalem, 2_500, (1_500, 5_000)),
            estimate(Modern, 2_000, (1_000, 4_000)),
            (Harpertown, 2_500, (1_500, 5_000), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::TimerWrites,
        cells: &[
            (
                Nehalem,
                565,
                (300, 1_000),
                Derived,
                "Dong et al., HPCA 2010: (139 M - 47 % of it) / 8.4 K = 8.8 K other accesses/s, for 139 M * 47 % / 8.4 K = 7.8 K interrupts/s of two changes each",
            ),
            (
                Modern,
                565,
                (300, 1_000),
                Derived,
                "nehalem's value, because the value is a property of the kernel",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::EnqueueCheck,
        cells: &[
            estimate(Nehalem, 1_500, (800, 2_500)),
            estimate(Modern, 500, (250, 1_000)),
            (
                Opteron,
                820,
                (600, 2_000),
                Fitted,
                "the hypervisor's 10.2 % of the processor in CDNA transmit (Willmann et al., HPCA 2007)",
            ),
        ],
    },
];
