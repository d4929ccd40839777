//! Costs of paravirtualized guests and of split drivers: hypercalls, events, grants, bridge, back end and front end.

use super::source::{HARPERTOWN_CORE, NETBURST, PAGE_OF_A_MULTICALL, PV_TRAPS};
use crate::cost::cell::{CostTableRow, estimate};
use crate::cost::machine::MachineModel::{Harpertown, Modern, Nehalem, Opteron, Prestonia, Server2009};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::{Derived, Estimate, Fitted};

/// Rows of the cost table for paravirtual costs.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::HypercallPv,
        cells: &[
            estimate(Nehalem, 450, (300, 600)),
            estimate(Modern, 450, (300, 700)),
            (Harpertown, 500, (300, 700), Estimate, HARPERTOWN_CORE),
            (Prestonia, 900, (600, 1_200), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::EventSend,
        cells: &[
            estimate(Nehalem, 850, (700, 1_000)),
            estimate(Modern, 700, (500, 1_000)),
            estimate(Opteron, 850, (700, 1_000)),
            (Harpertown, 900, (700, 1_100), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_700, (1_000, 2_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::EventRemote,
        cells: &[
            estimate(Nehalem, 1_750, (1_500, 2_000)),
            estimate(Modern, 1_500, (1_000, 2_000)),
            (Harpertown, 1_900, (1_500, 2_500), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::EventBlocked,
        cells: &[
            estimate(Nehalem, 4_000, (3_000, 5_000)),
            estimate(Modern, 3_500, (2_500, 5_000)),
            (Opteron, 1_000, (500, 4_000), Estimate, "engineering estimate: waking on the same processor"),
            (Harpertown, 4_500, (3_000, 6_000), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_500, (800, 4_000), Estimate, "engineering estimate: waking on the same processor"),
        ],
    },
    CostTableRow {
        constant: CostConstant::EventUpcall,
        cells: &[
            (
                Nehalem,
                1_000,
                (600, 1_500),
                Estimate,
                "engineering estimate: bounce frame, scan of the pending words, return by hypercall",
            ),
            estimate(Modern, 900, (500, 1_500)),
            estimate(Opteron, 700, (500, 1_500)),
            (Harpertown, 1_000, (600, 1_500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 2_000, (1_200, 3_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::GrantMapUnmap,
        cells: &[
            (
                Nehalem,
                3_500,
                (3_000, 4_000),
                Estimate,
                "engineering estimate; 3.8 K follows from Menon et al., ATC 2006",
            ),
            estimate(Modern, 3_000, (2_000, 4_000)),
            estimate(Opteron, 3_000, (3_000, 4_000)),
            (Harpertown, 3_800, (3_000, 4_500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 3_800, (3_000, 5_000), Derived, "Menon et al., ATC 2006: 3.8 K cycles a page"),
        ],
    },
    CostTableRow {
        constant: CostConstant::GrantCopy,
        cells: &[
            estimate(Nehalem, 600, (400, 900)),
            estimate(Modern, 500, (300, 900)),
            (Harpertown, 650, (400, 900), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_200, (600, 2_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::GrantAddress,
        cells: &[
            estimate(Nehalem, 500, (300, 800)),
            estimate(Modern, 350, (200, 600)),
            (Prestonia, 1_000, (400, 1_500), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::PageFlip,
        cells: &[
            estimate(Nehalem, 5_000, (4_000, 6_000)),
            estimate(Modern, 5_000, (4_000, 7_000)),
            estimate(Opteron, 5_000, (4_000, 6_000)),
            (Prestonia, 10_000, (8_000, 12_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::PageFlipBatched,
        cells: &[
            (Nehalem, 900, (600, 1_500), Estimate, PAGE_OF_A_MULTICALL),
            (Modern, 900, (600, 1_500), Estimate, PAGE_OF_A_MULTICALL),
            (Prestonia, 1_800, (1_200, 3_000), Estimate, PAGE_OF_A_MULTICALL),
        ],
    },
    CostTableRow {
        constant: CostConstant::Bridge,
        cells: &[
            estimate(Nehalem, 800, (600, 1_000)),
            estimate(Modern, 600, (400, 900)),
            (Harpertown, 850, (600, 1_100), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_600, (800, 2_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::Softirq,
        cells: &[
            estimate(Nehalem, 400, (300, 500)),
            estimate(Modern, 300, (200, 500)),
            (Harpertown, 400, (300, 500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 800, (300, 1_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::Backend,
        cells: &[
            (
                Nehalem,
                4_400,
                (3_000, 6_000),
                Derived,
                "Dong et al., HPCA 2010: 9.0 K a packet - grant copy (600 + 1,514 B cold) - bridge - softirq - driver - skb",
            ),
            estimate(Modern, 2_500, (1_500, 4_000)),
            (
                Opteron,
                2_950,
                (500, 6_000),
                Fitted,
                "1,602 Mb/s that Xen transmits over two ports (Willmann et al., HPCA 2007)",
            ),
            (
                Harpertown,
                5_250,
                (3_000, 6_000),
                Fitted,
                "2.3 Gb/s of the stock back end over four ports (Zhang et al.); 3,000, fitted to Dong et al., HPCA 2010 beside a busy sibling, leaves 2.96",
            ),
            (
                Prestonia,
                6_000,
                (2_000, 9_000),
                Fitted,
                "750 Mb/s that a guest transmits at `base` (Menon et al., ATC 2006)",
            ),
            (
                Server2009,
                3_750,
                (2_000, 6_000),
                Fitted,
                "2.6 Gb/s that a stream to a guest gets from a full processor of the service domain (Dong et al., SYSTOR 2009)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::Frontend,
        cells: &[
            estimate(Nehalem, 900, (600, 1_500)),
            estimate(Modern, 700, (400, 1_200)),
            estimate(Opteron, 900, (500, 1_200)),
            (Harpertown, 900, (600, 1_500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_800, (900, 2_500), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::PvSyscall,
        cells: &[
            (Nehalem, 300, (200, 450), Estimate, PV_TRAPS),
            (Modern, 300, (200, 600), Estimate, PV_TRAPS),
            (Harpertown, 350, (200, 450), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::MergeSegment,
        cells: &[
            estimate(Nehalem, 200, (100, 400)),
            estimate(Modern, 120, (60, 250)),
            (Harpertown, 200, (100, 400), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::CutSegment,
        cells: &[
            estimate(Nehalem, 700, (400, 1_200)),
            estimate(Modern, 450, (250, 800)),
            (Prestonia, 1_400, (800, 2_500), Estimate, NETBURST),
        ],
    },
];
