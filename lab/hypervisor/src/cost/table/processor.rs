//! Costs of the processor itself: clock, contention, caches, copies, device registers, and switches between virtual CPUs.

use super::source::{FULL_REFILL, HARPERTOWN_BUS, HARPERTOWN_CORE, NETBURST, SHARED_CACHE};
use crate::cost::cell::{CostTableRow, estimate};
use crate::cost::machine::MachineModel::{
    Harpertown, Modern, Nehalem, Opteron, Prestonia, Server2009, Skylake,
};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::{Derived, Estimate, Published, Stated};

/// Rows of the cost table for processor costs.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::ClockHertz,
        cells: &[
            (
                Nehalem,
                2_800_000_000,
                (2_800_000_000, 2_800_000_000),
                Stated,
                "Dong et al., HPCA 2010: Xeon 5500 at 2.8 GHz",
            ),
            (
                Modern,
                3_000_000_000,
                (2_000_000_000, 3_800_000_000),
                Estimate,
                "Xeon Platinum 8480+: 2.0 GHz base, 3.8 GHz turbo; all cores busy about 3.0 GHz",
            ),
            (
                Opteron,
                2_400_000_000,
                (2_400_000_000, 2_400_000_000),
                Stated,
                "Willmann et al., HPCA 2007: Opteron 250 at 2.4 GHz",
            ),
            (
                Skylake,
                3_000_000_000,
                (2_600_000_000, 4_000_000_000),
                Estimate,
                "engineering estimate: a Skylake-class machine",
            ),
            (
                Harpertown,
                2_000_000_000,
                (2_000_000_000, 2_000_000_000),
                Stated,
                "Zhang et al.: two Xeon 5405 at 2.0 GHz",
            ),
            (
                Prestonia,
                2_400_000_000,
                (2_400_000_000, 2_400_000_000),
                Stated,
                "Menon et al., ATC 2006: Xeon at 2.4 GHz",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::SmtContention,
        cells: &[
            (
                Nehalem,
                1_500,
                (1_250, 1_700),
                Estimate,
                "engineering estimate: two threads of a core do 1.2 to 1.6 times the work of one",
            ),
            (
                Modern,
                1_500,
                (1_250, 1_700),
                Estimate,
                "engineering estimate: two threads of a core do 1.2 to 1.6 times the work of one",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::LastLevelCache,
        cells: &[
            (
                Nehalem,
                8_192,
                (8_192, 8_192),
                Published,
                "Intel, Xeon 5500 data sheet: 8 MB shared by four cores",
            ),
            (
                Modern,
                107_520,
                (32_768, 393_216),
                Published,
                "Intel, Xeon Platinum 8480+: 105 MB shared by a socket",
            ),
            (Opteron, 1_024, (1_024, 1_024), Published, "AMD, Opteron 250: 1 MB"),
            (Harpertown, 6_144, (6_144, 6_144), Published, "Intel, Xeon E5405: 6 MB for two cores"),
            (Prestonia, 512, (512, 1_024), Estimate, "engineering estimate: a Xeon of the time has 512 KB"),
        ],
    },
    CostTableRow {
        constant: CostConstant::VmTransition,
        cells: &[
            (Nehalem, 1_009, (1_009, 1_009), Published, "Agesen et al., ATC 2012: Nehalem"),
            (
                Modern,
                800,
                (700, 1_000),
                Estimate,
                "near Sandy Bridge's 784 (Agesen et al., ATC 2012); about the same since, and below the 1,181 of a whole vmcall (Linux commit b7ffc44d5b2e (A. Lutomirski, 2017), kvm-unit-tests)",
            ),
            (Harpertown, 1_266, (1_266, 1_266), Published, "Agesen et al., ATC 2012: Penryn"),
        ],
    },
    CostTableRow {
        constant: CostConstant::SwitchDirect,
        cells: &[
            (
                Nehalem,
                4_000,
                (3_000, 5_000),
                Estimate,
                "engineering estimate: direct cost of a domain switch",
            ),
            (Modern, 2_500, (1_500, 4_000), Estimate, "engineering estimate: direct cost of a domain switch"),
            (
                Opteron,
                4_000,
                (3_000, 5_000),
                Estimate,
                "engineering estimate: direct cost of a domain switch",
            ),
            (Harpertown, 4_000, (3_000, 5_000), Estimate, HARPERTOWN_CORE),
            (Prestonia, 8_000, (5_000, 10_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::SwitchIndirect,
        cells: &[
            (
                Nehalem,
                12_500,
                (5_000, 60_000),
                Estimate,
                "engineering estimate: a kernel's and a program's working set of 130 to 1,500 lines from the third-level cache at 40 cycles; Li, Ding and Shen, ExpCS 2007, find several microseconds and more",
            ),
            (
                Modern,
                8_000,
                (3_000, 20_000),
                Estimate,
                "engineering estimate: indirect cost of a domain switch; TLB entries are tagged",
            ),
            (
                Opteron,
                8_000,
                (5_000, 20_000),
                Estimate,
                "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
            ),
            (Harpertown, 20_000, (5_000, 60_000), Estimate, HARPERTOWN_BUS),
            (
                Prestonia,
                8_000,
                (5_000, 20_000),
                Estimate,
                "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::SwitchDisplacement,
        cells: &[
            (
                Nehalem,
                200_000,
                (100_000, 400_000),
                Estimate,
                "engineering estimate: 256 KB of a core's second-level cache, a line in 50 cycles of packet processing",
            ),
            (
                Modern,
                600_000,
                (200_000, 1_600_000),
                Estimate,
                "engineering estimate: 2 MB of a core's second-level cache, a line in 20 cycles",
            ),
            (Opteron, 0, (0, 0), Estimate, FULL_REFILL),
            (Harpertown, 0, (0, 0), Estimate, FULL_REFILL),
            (Prestonia, 0, (0, 0), Estimate, FULL_REFILL),
            (Server2009, 0, (0, 0), Estimate, FULL_REFILL),
        ],
    },
    CostTableRow {
        constant: CostConstant::WorkingSet,
        cells: &[
            (Nehalem, 0, (0, 0), Estimate, SHARED_CACHE),
            (Modern, 0, (0, 0), Estimate, SHARED_CACHE),
            (
                Opteron,
                192,
                (96, 256),
                Estimate,
                "engineering estimate: 35 KB of a TCP stack's code and data (Blackwell, SIGCOMM 1996), a program's buffer, and the windows of two streams, 44 segments each",
            ),
            (
                Prestonia,
                96,
                (64, 192),
                Estimate,
                "engineering estimate: 35 KB of a TCP stack's code and data (Blackwell, SIGCOMM 1996), and the headers of long windows; payload is sent in place",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::SwitchReload,
        cells: &[
            (Nehalem, 0, (0, 0), Estimate, SHARED_CACHE),
            (Modern, 0, (0, 0), Estimate, SHARED_CACHE),
            (
                Opteron,
                230_000,
                (120_000, 460_000),
                Estimate,
                "engineering estimate: 3,072 lines from memory at 150 cycles (63 ns), two at a time",
            ),
            (
                Prestonia,
                300_000,
                (150_000, 540_000),
                Estimate,
                "engineering estimate: 1,536 lines from memory behind a front-side bus at 350 cycles (150 ns), partly overlapping",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::ExitPollution,
        cells: &[
            (
                Nehalem,
                800,
                (300, 2_000),
                Estimate,
                "engineering estimate: 30 to 200 lines of the first-level caches from the second at 10 cycles",
            ),
            estimate(Modern, 400, (100, 1_000)),
            (Server2009, 0, (0, 0), Estimate, "zero, because the costs of the guest's own work include it"),
        ],
    },
    CostTableRow {
        constant: CostConstant::MmioRead,
        cells: &[
            (Nehalem, 2_250, (1_500, 3_000), Estimate, "engineering estimate: uncached PCIe read"),
            (
                Modern,
                2_700,
                (1_800, 3_600),
                Estimate,
                "engineering estimate: 0.9 us, near the round trips of Neugebauer et al., SIGCOMM 2018",
            ),
            (Harpertown, 2_000, (1_200, 3_000), Estimate, HARPERTOWN_BUS),
        ],
    },
    CostTableRow {
        constant: CostConstant::MmioWrite,
        cells: &[
            estimate(Nehalem, 250, (100, 500)),
            estimate(Modern, 300, (100, 600)),
            (Harpertown, 250, (100, 500), Estimate, HARPERTOWN_BUS),
            (Prestonia, 500, (200, 800), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::CopyWarm,
        cells: &[
            estimate(Nehalem, 375, (250, 500)),
            (
                Opteron,
                400,
                (250, 600),
                Estimate,
                "engineering estimate: a program's buffer of 16 KB stays in the second-level cache, 2.5 bytes a cycle",
            ),
            (Modern, 60, (30, 150), Estimate, "engineering estimate: 16 bytes a cycle from L2"),
            (Harpertown, 400, (250, 600), Estimate, HARPERTOWN_BUS),
            (Prestonia, 750, (400, 1_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::CopyCold,
        cells: &[
            estimate(Nehalem, 1_150, (1_000, 1_300)),
            (
                Modern,
                320,
                (200, 500),
                Derived,
                "Cai et al., SIGCOMM 2021: about 42 Gb/s a core at 3.4 GHz, half of it spent on the copy",
            ),
            (
                Opteron,
                2_400,
                (1_200, 2_600),
                Estimate,
                "engineering estimate: the card has written the payload to memory, a line of 64 bytes in 150 cycles (63 ns)",
            ),
            (Harpertown, 1_400, (1_000, 2_000), Estimate, HARPERTOWN_BUS),
            (Prestonia, 2_000, (1_500, 2_500), Estimate, "engineering estimate: 1.5 to 2.5 cycles a byte"),
        ],
    },
];
