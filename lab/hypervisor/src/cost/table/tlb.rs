//! TLB of a machine's processor, and the pages of a packet's path in a kernel.

use super::source::TLB_INCLUDED;
use crate::cost::cell::CostTableRow;
use crate::cost::machine::MachineModel::{Harpertown, Modern, Nehalem, Opteron, Prestonia, Server2009};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::{Estimate, Published};

/// Source of the pages that a kernel and its program use at each packet.
const HOT: &str = "engineering estimate: 35 KB of a stack's code and data are 9 dense pages (Blackwell, SIGCOMM 1996); scattered over functions, with stack, per-processor data, socket and program 30 to 60";

/// Source of the pages that are new at each packet.
const STREAMED: &str = "engineering estimate: a packet's buffer and socket buffer, what describes the pages of both, and part of a page of the program's; 3 to 6";

/// Source of the pages of a system call.
const CALL: &str = "engineering estimate: entry, socket layer, copy and allocator of a call to receive or send, with stack, task, socket and socket buffer: a quarter of the path's hot pages";

/// Rows of the cost table for the TLB.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::TlbSmall,
        cells: &[
            (Nehalem, 512, (512, 512), Published, "Intel, Nehalem: a second-level TLB of 512 pages of 4 KB"),
            (
                Modern,
                2_048,
                (2_048, 2_048),
                Published,
                "Intel, Golden Cove: a second-level TLB of 2,048 pages",
            ),
            (Opteron, 512, (512, 512), Published, "AMD, Opteron: a second-level TLB of 512 pages of 4 KB"),
            (Harpertown, 256, (256, 256), Published, "Intel, Core: a second-level TLB of 256 pages of 4 KB"),
            (Prestonia, 64, (64, 64), Published, "Intel, NetBurst: a data TLB of 64 pages of any size"),
        ],
    },
    CostTableRow {
        constant: CostConstant::TlbLarge,
        cells: &[
            (
                Nehalem,
                32,
                (32, 32),
                Published,
                "Intel, Nehalem: 32 large pages in the first level, none in the second",
            ),
            (
                Modern,
                2_048,
                (2_048, 2_048),
                Published,
                "Intel, Golden Cove: a second-level TLB of 2,048 pages, small or large",
            ),
            (
                Opteron,
                8,
                (8, 8),
                Published,
                "AMD, Opteron: 8 large pages in the first level, none in the second",
            ),
            (Harpertown, 32, (32, 32), Published, "Intel, Core: 32 large pages"),
            (Prestonia, 64, (64, 64), Published, "Intel, NetBurst: a data TLB of 64 pages of any size"),
        ],
    },
    CostTableRow {
        constant: CostConstant::TlbWalk,
        cells: &[
            (
                Nehalem,
                45,
                (30, 60),
                Estimate,
                "engineering estimate: the last table's entry from the second- or third-level cache (10 or 40 cycles), upper tables from the processor's cache of them",
            ),
            (
                Modern,
                30,
                (15, 45),
                Estimate,
                "engineering estimate: the last table's entry from the second- or third-level cache (15 or 70 cycles), and walks overlap with other work",
            ),
            (
                Prestonia,
                60,
                (40, 90),
                Estimate,
                "engineering estimate: two tables, entries from the second-level cache (20 cycles), some from memory",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::TlbWalkNested,
        cells: &[
            (
                Nehalem,
                145,
                (90, 200),
                Estimate,
                "engineering estimate: up to 15 loads in place of 3 with large pages (24 in place of 4 with small ones; Bhargava et al., ASPLOS 2008), upper tables partly cached: two to four times a walk in one dimension",
            ),
            (
                Modern,
                100,
                (50, 150),
                Estimate,
                "engineering estimate: as in `nehalem`, with larger caches of upper tables",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::PathHotPages,
        cells: &[
            (Nehalem, 45, (30, 60), Estimate, HOT),
            (Modern, 45, (30, 60), Estimate, HOT),
            (Opteron, 0, (0, 0), Estimate, TLB_INCLUDED),
            (
                Prestonia,
                85,
                (60, 110),
                Estimate,
                "engineering estimate: 30 to 60 pages to receive a segment, and as many to acknowledge it through stack, bridge or channel, and driver",
            ),
            (Server2009, 0, (0, 0), Estimate, TLB_INCLUDED),
        ],
    },
    CostTableRow {
        constant: CostConstant::PathStreamedPages,
        cells: &[
            (Nehalem, 4, (3, 6), Estimate, STREAMED),
            (
                Modern,
                2,
                (1, 4),
                Estimate,
                "engineering estimate: a packet's buffer comes from a pool of pages that the driver recycles; the socket buffer, and part of a page of the program's",
            ),
            (Opteron, 0, (0, 0), Estimate, TLB_INCLUDED),
            (Server2009, 0, (0, 0), Estimate, TLB_INCLUDED),
        ],
    },
    CostTableRow {
        constant: CostConstant::CallPages,
        cells: &[
            (Nehalem, 10, (6, 16), Estimate, CALL),
            (Modern, 10, (6, 16), Estimate, CALL),
            (Opteron, 0, (0, 0), Estimate, TLB_INCLUDED),
            (Server2009, 0, (0, 0), Estimate, TLB_INCLUDED),
        ],
    },
];
