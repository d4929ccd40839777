//! Costs of today's paths between guest and network under KVM, and the geometry of the IOTLB. Only experiments on a current
//! machine charge them, so the values of other machines matter with `--set table` alone.

use crate::cost::cell::CostTableRow;
use crate::cost::machine::MachineModel::{Modern, Nehalem};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::Estimate;

/// Source of the first machine's values.
const UNUSED: &str = "engineering estimate: the current machine's value";

/// Rows of the cost table for today's paths.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::IoeventfdExit,
        cells: &[
            (Nehalem, 1_600, (1_300, 2_600), Estimate, UNUSED),
            (
                Modern,
                1_600,
                (1_300, 2_600),
                Estimate,
                "engineering estimate: vmcall's 1,181 (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests) and a signalled eventfd",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::IrqfdSignal,
        cells: &[
            (Nehalem, 1_000, (500, 2_000), Estimate, UNUSED),
            (
                Modern,
                1_000,
                (500, 2_000),
                Estimate,
                "engineering estimate: a write to an eventfd, and an update of the virtual APIC under a lock",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::PostedInterrupt,
        cells: &[
            (Nehalem, 400, (200, 1_000), Estimate, UNUSED),
            (
                Modern,
                400,
                (200, 1_000),
                Estimate,
                "engineering estimate: the processor reads a descriptor in memory, and updates the virtual APIC, without an exit",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::HostPacket,
        cells: &[
            (Nehalem, 300, (115, 870), Estimate, UNUSED),
            (
                Modern,
                300,
                (115, 870),
                Estimate,
                "engineering estimate: frames of 64 bytes between polled rings take 115 to 137 (82576, AVF), 456 to 505 (virtio), 246 to 870 (others), on another processor (docs/performance.md)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::IotlbEntries,
        cells: &[
            (
                Nehalem,
                64,
                (32, 128),
                Estimate,
                "engineering estimate: of the chipset of 2009, as few as on processors of 2014 (Neugebauer et al., SIGCOMM 2018)",
            ),
            (
                Modern,
                128,
                (64, 256),
                Estimate,
                "engineering estimate: 64 on processors of 2014 to 2016 (Neugebauer et al., SIGCOMM 2018), and more since",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::IotlbWays,
        cells: &[
            (Nehalem, 4, (1, 64), Estimate, UNUSED),
            (Modern, 4, (1, 64), Estimate, "engineering estimate: no vendor states the associativity"),
        ],
    },
    CostTableRow {
        constant: CostConstant::IotlbLoad,
        cells: &[
            (
                Nehalem,
                100,
                (60, 150),
                Estimate,
                "engineering estimate: a chipset of 2009 loads entries from memory",
            ),
            (
                Modern,
                80,
                (20, 120),
                Estimate,
                "engineering estimate: from a last-level cache to memory; a miss of four loads takes about 330 ns (Neugebauer et al., SIGCOMM 2018)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::IotlbWalks,
        cells: &[
            (Nehalem, 8, (4, 16), Estimate, UNUSED),
            (
                Modern,
                8,
                (4, 16),
                Estimate,
                "engineering estimate: walks at a time; no vendor states the number",
            ),
        ],
    },
];
