//! Costs of the processors of the other papers, each as the values that differ from a base table. Rows that no
//! experiment on the processor charges keep the base table's values.

use super::row::{CostConstant, CostEntry, CostEvidenceKind, estimate};

const RECEIVE: &str = "a part of the 11 K cycles a segment that 2,508 Mb/s take on a Pentium 4 (Menon et al., ATC 2006), at half of its cycles";

/// Constants of the Opteron 250: one core without SMT, 1 MB of cache, an on-chip memory controller.
pub(super) const OPTERON: &[CostEntry] = &[
    (
        CostConstant::ClockHertz,
        2_400_000_000,
        (2_400_000_000, 2_400_000_000),
        CostEvidenceKind::Stated,
        "Willmann et al., HPCA 2007: Opteron 250 at 2.4 GHz",
    ),
    (
        CostConstant::LastLevelCache,
        1_024,
        (1_024, 1_024),
        CostEvidenceKind::Published,
        "AMD, Opteron 250: 1 MB",
    ),
    (
        CostConstant::EnqueueCheck,
        820,
        (600, 2_000),
        CostEvidenceKind::Fitted,
        "the hypervisor's 10.2 % of the processor in CDNA transmit (Willmann et al., HPCA 2007)",
    ),
    (
        CostConstant::Backend,
        1_000,
        (500, 6_000),
        CostEvidenceKind::Fitted,
        "1,602 Mb/s that Xen transmits over two ports (Willmann et al., HPCA 2007)",
    ),
    (
        CostConstant::SwitchDirect,
        4_000,
        (3_000, 5_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: direct cost of a domain switch",
    ),
    (
        CostConstant::SwitchIndirect,
        8_000,
        (5_000, 20_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
    ),
    (
        CostConstant::TlbKernel,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "engineering estimate: zero, because the indirect cost of a domain switch includes it",
    ),
    estimate(CostConstant::EventSend, 850, (700, 1_000)),
    (
        CostConstant::EventBlocked,
        1_000,
        (500, 4_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: waking on the same processor",
    ),
    estimate(CostConstant::EventUpcall, 700, (500, 1_500)),
    estimate(CostConstant::GrantMapUnmap, 3_000, (3_000, 4_000)),
    estimate(CostConstant::PageFlip, 5_000, (4_000, 6_000)),
    estimate(CostConstant::CopyCold, 1_200, (500, 1_300)),
    estimate(CostConstant::Frontend, 900, (500, 1_200)),
    (
        CostConstant::TxStack,
        1_600,
        (1_200, 3_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: TCP, IP and queue for each segment",
    ),
    estimate(CostConstant::TxDriver, 600, (400, 900)),
    (CostConstant::RxDriver, 900, (700, 1_500), CostEvidenceKind::Derived, RECEIVE),
    (CostConstant::RxSkb, 600, (400, 1_000), CostEvidenceKind::Derived, RECEIVE),
    (CostConstant::RxTcp, 2_000, (1_300, 3_000), CostEvidenceKind::Derived, RECEIVE),
    (
        CostConstant::RxPureAck,
        2_000,
        (1_000, 3_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: as much as for a TCP segment",
    ),
    (
        CostConstant::SwitchDisplacement,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

/// Cost constants of a Skylake-class machine that differ from the modern table: clock, and VM exit for an interrupt,
/// which the paper's lightweight hypervisor handles in its own way.
pub(super) const SKYLAKE: &[CostEntry] = &[
    (
        CostConstant::ClockHertz,
        3_000_000_000,
        (2_600_000_000, 4_000_000_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: a Skylake-class machine",
    ),
    (
        CostConstant::ExitExternalInterrupt,
        5_600,
        (1_500, 12_000),
        CostEvidenceKind::Fitted,
        "11.2 % more throughput of a busy guest without the PF's interrupts (Iida et al.)",
    ),
];

const CORE: &str = "engineering estimate: nehalem's value, because a Core microarchitecture's cycles are \
    near those of its successor";
const BUS: &str = "engineering estimate: memory is behind a front-side bus and a hub, at a clock of 2.0 GHz";

/// Cost constants of the Xeon E5405: two pairs of cores, each with its own cache; memory and devices behind a chipset
/// hub.
pub(super) const HARPERTOWN: &[CostEntry] = &[
    (
        CostConstant::ClockHertz,
        2_000_000_000,
        (2_000_000_000, 2_000_000_000),
        CostEvidenceKind::Stated,
        "Zhang et al.: two Xeon 5405 at 2.0 GHz",
    ),
    (
        CostConstant::LastLevelCache,
        6_144,
        (6_144, 6_144),
        CostEvidenceKind::Published,
        "Intel, Xeon E5405: 6 MB for two cores",
    ),
    (
        CostConstant::VmTransition,
        1_266,
        (1_266, 1_266),
        CostEvidenceKind::Published,
        "Agesen et al., ATC 2012: Penryn",
    ),
    (
        CostConstant::Backend,
        5_250,
        (3_000, 6_000),
        CostEvidenceKind::Fitted,
        "2.3 Gb/s of the stock back end over four ports (Zhang et al.); 4,158, fitted to Dong et al., HPCA 2010, leaves 2.58",
    ),
    (CostConstant::GrantCopy, 650, (400, 900), CostEvidenceKind::Estimate, CORE),
    (CostConstant::CopyCold, 1_400, (1_000, 2_000), CostEvidenceKind::Estimate, BUS),
    (CostConstant::CopyWarm, 400, (250, 600), CostEvidenceKind::Estimate, BUS),
    (CostConstant::RxCopy, 420, (280, 600), CostEvidenceKind::Estimate, BUS),
    (CostConstant::MmioRead, 2_000, (1_200, 3_000), CostEvidenceKind::Estimate, BUS),
    (CostConstant::MmioWrite, 250, (100, 500), CostEvidenceKind::Estimate, BUS),
    (CostConstant::SwitchDirect, 4_000, (3_000, 5_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::SwitchIndirect, 20_000, (5_000, 60_000), CostEvidenceKind::Estimate, BUS),
    (CostConstant::HypercallPv, 500, (300, 700), CostEvidenceKind::Estimate, CORE),
    (CostConstant::EventSend, 900, (700, 1_100), CostEvidenceKind::Estimate, CORE),
    (CostConstant::EventRemote, 1_900, (1_500, 2_500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::EventBlocked, 4_500, (3_000, 6_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::EventUpcall, 1_000, (600, 1_500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::GrantMapUnmap, 3_800, (3_000, 4_500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::Bridge, 850, (600, 1_100), CostEvidenceKind::Estimate, CORE),
    (CostConstant::Softirq, 400, (300, 500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::Frontend, 900, (600, 1_500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::MergeSegment, 200, (100, 400), CostEvidenceKind::Estimate, CORE),
    (CostConstant::PvSyscall, 800, (500, 1_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::InterruptEntry, 600, (400, 1_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::InterruptHandler, 600, (400, 1_200), CostEvidenceKind::Estimate, CORE),
    (CostConstant::GuestTick, 3_000, (2_000, 6_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::ServiceTick, 5_000, (2_000, 12_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::HypervisorTick, 2_500, (1_500, 5_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::NapiEntry, 300, (200, 500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxDriver, 750, (500, 1_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxSkb, 450, (300, 600), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxTcp, 1_150, (900, 1_400), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxUdp, 800, (600, 1_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxWake, 1_000, (700, 1_300), CostEvidenceKind::Estimate, CORE),
    (CostConstant::RxAck, 400, (300, 500), CostEvidenceKind::Estimate, CORE),
    (CostConstant::TxSyscall, 900, (600, 1_400), CostEvidenceKind::Estimate, CORE),
    (CostConstant::TxStack, 1_500, (1_000, 2_200), CostEvidenceKind::Estimate, CORE),
    (CostConstant::TxDriver, 750, (400, 1_000), CostEvidenceKind::Estimate, CORE),
    (CostConstant::ContextSwitch, 2_000, (1_200, 4_000), CostEvidenceKind::Estimate, CORE),
    (
        CostConstant::SwitchDisplacement,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

const NETBURST: &str = "engineering estimate: twice the value of nehalem, because a deep pipeline pays for \
    traps, locks and misses";
const RECEIVED: &str =
    "a part of the 11 K cycles a segment that 2,508 Mb/s take natively (Menon et al., ATC 2006)";

/// Cost constants of the Xeon at 2.4 GHz: one core without SMT in use, a small cache, a front-side bus.
pub(super) const PRESTONIA: &[CostEntry] = &[
    (
        CostConstant::ClockHertz,
        2_400_000_000,
        (2_400_000_000, 2_400_000_000),
        CostEvidenceKind::Stated,
        "Menon et al., ATC 2006: Xeon at 2.4 GHz",
    ),
    (
        CostConstant::LastLevelCache,
        512,
        (512, 1_024),
        CostEvidenceKind::Estimate,
        "engineering estimate: a Xeon of the time has 512 KB",
    ),
    (
        CostConstant::Backend,
        3_600,
        (2_000, 9_000),
        CostEvidenceKind::Fitted,
        "750 Mb/s that a guest transmits at `base` (Menon et al., ATC 2006)",
    ),
    (
        CostConstant::RxTcp,
        4_060,
        (2_000, 6_000),
        CostEvidenceKind::Fitted,
        "2,508 Mb/s that Linux receives natively (Menon et al., ATC 2006)",
    ),
    (CostConstant::RxDriver, 1_400, (900, 2_500), CostEvidenceKind::Derived, RECEIVED),
    (CostConstant::RxSkb, 800, (600, 2_000), CostEvidenceKind::Derived, RECEIVED),
    (CostConstant::RxAck, 750, (600, 1_600), CostEvidenceKind::Derived, RECEIVED),
    (
        CostConstant::CopyCold,
        2_000,
        (1_500, 2_500),
        CostEvidenceKind::Estimate,
        "engineering estimate: 1.5 to 2.5 cycles a byte",
    ),
    (CostConstant::GrantCopy, 1_200, (600, 2_000), CostEvidenceKind::Estimate, NETBURST),
    (
        CostConstant::GrantMapUnmap,
        3_800,
        (3_000, 5_000),
        CostEvidenceKind::Derived,
        "Menon et al., ATC 2006: 3.8 K cycles a page",
    ),
    (CostConstant::GrantAddress, 1_000, (400, 1_500), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::PageFlip, 10_000, (8_000, 12_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::HypercallPv, 900, (600, 1_200), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::EventSend, 1_700, (1_000, 2_000), CostEvidenceKind::Estimate, NETBURST),
    (
        CostConstant::EventBlocked,
        1_500,
        (800, 4_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: waking on the same processor",
    ),
    (CostConstant::EventUpcall, 2_000, (1_200, 3_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::SwitchDirect, 8_000, (5_000, 10_000), CostEvidenceKind::Estimate, NETBURST),
    (
        CostConstant::SwitchIndirect,
        8_000,
        (5_000, 20_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
    ),
    (
        CostConstant::TlbKernel,
        4_000,
        (2_000, 6_000),
        CostEvidenceKind::Estimate,
        "engineering estimate: 64 entries of 4 KB pages, a walk of 60 cycles each",
    ),
    (CostConstant::InterruptEntry, 1_200, (800, 2_500), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::InterruptHandler, 1_200, (600, 2_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::Softirq, 800, (300, 1_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::NapiEntry, 600, (300, 1_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::Bridge, 1_600, (800, 2_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::Frontend, 1_800, (900, 2_500), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::MmioWrite, 500, (200, 800), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::RxWake, 1_900, (1_500, 4_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::RxPureAck, 2_200, (1_500, 3_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::TxSyscall, 1_800, (1_200, 3_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::TxStack, 3_000, (2_000, 4_500), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::TxDriver, 1_400, (800, 2_000), CostEvidenceKind::Estimate, NETBURST),
    (CostConstant::CutSegment, 1_400, (800, 2_500), CostEvidenceKind::Estimate, NETBURST),
    (
        CostConstant::SwitchDisplacement,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

/// Cost constants of a server of 2009. Our excerpt of the paper does not name the processor. The values are those of
/// the Xeon 5500, of the same year, except the back end's.
pub(super) const SERVER_2009: &[CostEntry] = &[
    (
        CostConstant::Backend,
        3_750,
        (2_000, 6_000),
        CostEvidenceKind::Fitted,
        "2.6 Gb/s that a stream to a guest gets from a full processor of the service domain (Dong et al., SYSTOR 2009)",
    ),
    (
        CostConstant::SwitchDisplacement,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
    estimate(CostConstant::ExitHlt, 4_000, (2_500, 6_000)),
    (
        CostConstant::NestedPaging,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the costs of the guest's own work include it",
    ),
    (
        CostConstant::ExitPollution,
        0,
        (0, 0),
        CostEvidenceKind::Estimate,
        "zero, because the costs of the guest's own work include it",
    ),
];
