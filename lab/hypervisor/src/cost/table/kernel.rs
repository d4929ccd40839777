//! Costs of a kernel's own work: interrupts, ticks, packets, programs and disk requests.

use super::source::{HARPERTOWN_BUS, HARPERTOWN_CORE, NETBURST, OPTERON_RECEIVE, PRESTONIA_RECEIVE};
use crate::cost::cell::{CostTableRow, estimate};
use crate::cost::machine::MachineModel::{Harpertown, Modern, Nehalem, Opteron, Prestonia};
use crate::cost::row::CostConstant;
use crate::cost::row::CostEvidenceKind::{Derived, Estimate, Fitted};

/// Rows of the cost table for kernel costs.
pub(super) const ROWS: &[CostTableRow] = &[
    CostTableRow {
        constant: CostConstant::InterruptEntry,
        cells: &[
            estimate(Nehalem, 600, (400, 1_000)),
            (
                Modern,
                700,
                (400, 1_200),
                Estimate,
                "engineering estimate: a system call with mitigations of processor vulnerabilities",
            ),
            (Harpertown, 600, (400, 1_000), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_200, (800, 2_500), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::InterruptHandler,
        cells: &[
            estimate(Nehalem, 600, (400, 1_200)),
            estimate(Modern, 500, (300, 1_000)),
            (Harpertown, 600, (400, 1_200), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_200, (600, 2_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::GuestTick,
        cells: &[
            estimate(Nehalem, 3_000, (2_000, 6_000)),
            estimate(Modern, 2_500, (1_500, 5_000)),
            (Harpertown, 3_000, (2_000, 6_000), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::ServiceTick,
        cells: &[
            (
                Nehalem,
                5_000,
                (2_000, 12_000),
                Estimate,
                "engineering estimate: softirqs, kernel threads and the toolstack's daemons, spread over the ticks",
            ),
            (
                Modern,
                3_000,
                (1_000, 8_000),
                Estimate,
                "engineering estimate: softirqs, kernel threads and management daemons, spread over the ticks",
            ),
            (Harpertown, 5_000, (2_000, 12_000), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::NapiEntry,
        cells: &[
            estimate(Nehalem, 300, (200, 500)),
            estimate(Modern, 300, (200, 500)),
            (Harpertown, 300, (200, 500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 600, (300, 1_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxDriver,
        cells: &[
            estimate(Nehalem, 700, (500, 900)),
            estimate(Modern, 350, (200, 600)),
            (Opteron, 900, (700, 1_500), Derived, OPTERON_RECEIVE),
            (Harpertown, 750, (500, 1_000), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_400, (900, 2_500), Derived, PRESTONIA_RECEIVE),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxSkb,
        cells: &[
            estimate(Nehalem, 400, (300, 500)),
            estimate(Modern, 200, (120, 400)),
            (Opteron, 600, (400, 1_000), Derived, OPTERON_RECEIVE),
            (Harpertown, 450, (300, 600), Estimate, HARPERTOWN_CORE),
            (Prestonia, 800, (600, 2_000), Derived, PRESTONIA_RECEIVE),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxTcp,
        cells: &[
            estimate(Nehalem, 1_100, (900, 1_300)),
            estimate(Modern, 700, (400, 1_000)),
            (Opteron, 2_000, (1_300, 3_000), Derived, OPTERON_RECEIVE),
            (Harpertown, 1_150, (900, 1_400), Estimate, HARPERTOWN_CORE),
            (
                Prestonia,
                4_060,
                (2_000, 6_000),
                Fitted,
                "2,508 Mb/s that Linux receives natively (Menon et al., ATC 2006)",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxUdp,
        cells: &[
            estimate(Nehalem, 750, (600, 900)),
            estimate(Modern, 450, (300, 700)),
            (Harpertown, 800, (600, 1_000), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxUdpAccounting,
        cells: &[
            (
                Nehalem,
                500,
                (200, 1_000),
                Estimate,
                "engineering estimate: Linux 2.6.25 and later take the socket's lock and account for memory at each datagram, twice two atomic operations",
            ),
            (
                Modern,
                250,
                (100, 600),
                Estimate,
                "engineering estimate: nehalem's value, with cheaper atomic operations",
            ),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxWake,
        cells: &[
            (Nehalem, 950, (700, 1_200), Estimate, "engineering estimate: for UDP, each packet"),
            estimate(Modern, 900, (600, 1_500)),
            (Harpertown, 1_000, (700, 1_300), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_900, (1_500, 4_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxCopy,
        cells: &[
            (Nehalem, 380, (276, 484), Estimate, "engineering estimate: 400 to 700 for 1,448 B"),
            (
                Modern,
                320,
                (100, 500),
                Derived,
                "Cai et al., SIGCOMM 2021: about 42 Gb/s a core at 3.4 GHz, half of it spent on the copy",
            ),
            (Harpertown, 420, (280, 600), Estimate, HARPERTOWN_BUS),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxAck,
        cells: &[
            estimate(Nehalem, 375, (300, 450)),
            estimate(Modern, 300, (200, 450)),
            (Harpertown, 400, (300, 500), Estimate, HARPERTOWN_CORE),
            (Prestonia, 750, (600, 1_600), Derived, PRESTONIA_RECEIVE),
        ],
    },
    CostTableRow {
        constant: CostConstant::RxPureAck,
        cells: &[
            estimate(Nehalem, 1_100, (700, 1_300)),
            estimate(Modern, 600, (300, 1_000)),
            (Opteron, 2_000, (1_000, 3_000), Estimate, "engineering estimate: as much as for a TCP segment"),
            (Prestonia, 2_200, (1_500, 3_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::TxSyscall,
        cells: &[
            estimate(Nehalem, 900, (600, 1_400)),
            estimate(Modern, 700, (400, 1_200)),
            (Harpertown, 900, (600, 1_400), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_800, (1_200, 3_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::TxStack,
        cells: &[
            estimate(Nehalem, 1_500, (1_000, 2_200)),
            estimate(Modern, 1_000, (600, 1_600)),
            (
                Opteron,
                1_600,
                (1_200, 3_000),
                Estimate,
                "engineering estimate: TCP, IP and queue for each segment",
            ),
            (Harpertown, 1_500, (1_000, 2_200), Estimate, HARPERTOWN_CORE),
            (Prestonia, 3_000, (2_000, 4_500), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::TxDriver,
        cells: &[
            estimate(Nehalem, 700, (400, 1_000)),
            estimate(Modern, 400, (250, 700)),
            estimate(Opteron, 600, (400, 900)),
            (Harpertown, 750, (400, 1_000), Estimate, HARPERTOWN_CORE),
            (Prestonia, 1_400, (800, 2_000), Estimate, NETBURST),
        ],
    },
    CostTableRow {
        constant: CostConstant::ContextSwitch,
        cells: &[
            estimate(Nehalem, 2_000, (1_200, 4_000)),
            estimate(Modern, 2_000, (1_200, 4_000)),
            (Harpertown, 2_000, (1_200, 4_000), Estimate, HARPERTOWN_CORE),
        ],
    },
    CostTableRow {
        constant: CostConstant::BlockRequest,
        cells: &[
            (
                Nehalem,
                8_000,
                (4_000, 16_000),
                Estimate,
                "engineering estimate: a request's structures, queue, elevator, command, completion and end",
            ),
            (
                Modern,
                4_000,
                (2_000, 8_000),
                Estimate,
                "engineering estimate: a queue for each processor, and no elevator",
            ),
        ],
    },
];
