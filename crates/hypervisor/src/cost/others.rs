//! Costs of the processors of the other papers: each lists the values that differ from its base table. Rows
//! that no experiment on the processor charges keep the base table's values.

use super::row::{Cost, Kind};

/// Row that differs from the base table: constant, value, plausible range, kind and source.
pub(super) type Value = (Cost, u64, (u64, u64), Kind, &'static str);

const SEED: &str = "engineering estimate";
const RECEIVE: &str = "a part of the 11 K cycles a segment that 2,508 Mb/s take on a Pentium 4 (Menon et al., ATC 2006), at half of its cycles";

/// Constants of the Opteron 250: one core without SMT, 1 MB of cache, an on-chip memory controller.
pub(super) const OPTERON: &[Value] = &[
    (
        Cost::ClockHertz,
        2_400_000_000,
        (2_400_000_000, 2_400_000_000),
        Kind::Stated,
        "Willmann et al., HPCA 2007: Opteron 250 at 2.4 GHz",
    ),
    (Cost::LastLevelCache, 1_024, (1_024, 1_024), Kind::Published, "AMD, Opteron 250: 1 MB"),
    (
        Cost::EnqueueCheck,
        820,
        (600, 2_000),
        Kind::Fitted,
        "the hypervisor's 10.2 % of the processor in CDNA transmit (Willmann et al., HPCA 2007)",
    ),
    (
        Cost::Backend,
        1_000,
        (500, 6_000),
        Kind::Fitted,
        "1,602 Mb/s that Xen transmits over two ports (Willmann et al., HPCA 2007)",
    ),
    (
        Cost::SwitchDirect,
        4_000,
        (3_000, 5_000),
        Kind::Estimate,
        "engineering estimate: direct cost of a domain switch",
    ),
    (
        Cost::SwitchIndirect,
        8_000,
        (5_000, 20_000),
        Kind::Estimate,
        "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
    ),
    (
        Cost::TlbKernel,
        0,
        (0, 0),
        Kind::Estimate,
        "engineering estimate: zero, because the indirect cost of a domain switch includes it",
    ),
    (Cost::EventSend, 850, (700, 1_000), Kind::Estimate, SEED),
    (
        Cost::EventBlocked,
        1_000,
        (500, 4_000),
        Kind::Estimate,
        "engineering estimate: waking on the same processor",
    ),
    (Cost::EventUpcall, 700, (500, 1_500), Kind::Estimate, SEED),
    (Cost::GrantMapUnmap, 3_000, (3_000, 4_000), Kind::Estimate, SEED),
    (Cost::PageFlip, 5_000, (4_000, 6_000), Kind::Estimate, SEED),
    (Cost::CopyCold, 1_200, (500, 1_300), Kind::Estimate, SEED),
    (Cost::Frontend, 900, (500, 1_200), Kind::Estimate, SEED),
    (
        Cost::TxStack,
        1_600,
        (1_200, 3_000),
        Kind::Estimate,
        "engineering estimate: TCP, IP and queue for each segment",
    ),
    (Cost::TxDriver, 600, (400, 900), Kind::Estimate, SEED),
    (Cost::RxDriver, 900, (700, 1_500), Kind::Derived, RECEIVE),
    (Cost::RxSkb, 600, (400, 1_000), Kind::Derived, RECEIVE),
    (Cost::RxTcp, 2_000, (1_300, 3_000), Kind::Derived, RECEIVE),
    (
        Cost::RxPureAck,
        2_000,
        (1_000, 3_000),
        Kind::Estimate,
        "engineering estimate: as much as for a TCP segment",
    ),
    (
        Cost::SwitchDisplacement,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

/// Cost constants of a Skylake-class machine. All values but one are the modern table's: the paper's lightweight
/// hypervisor handles the exit of an interrupt in its own way.
pub(super) const SKYLAKE: &[Value] = &[
    (
        Cost::ClockHertz,
        3_000_000_000,
        (2_600_000_000, 4_000_000_000),
        Kind::Estimate,
        "engineering estimate: a Skylake-class machine",
    ),
    (
        Cost::ExitExternalInterrupt,
        5_600,
        (1_500, 12_000),
        Kind::Fitted,
        "11.2 % more throughput of a busy guest without the PF's interrupts (Iida et al.)",
    ),
];

const CORE: &str = "engineering estimate: nehalem's value, because a Core microarchitecture's cycles are \
    near those of its successor";
const BUS: &str = "engineering estimate: memory is behind a front-side bus and a hub, at a clock of 2.0 GHz";

/// Constants of the Xeon E5405: two pairs of cores, each with its own cache; memory and devices behind a chipset hub.
pub(super) const HARPERTOWN: &[Value] = &[
    (
        Cost::ClockHertz,
        2_000_000_000,
        (2_000_000_000, 2_000_000_000),
        Kind::Stated,
        "Zhang et al.: two Xeon 5405 at 2.0 GHz",
    ),
    (Cost::LastLevelCache, 6_144, (6_144, 6_144), Kind::Published, "Intel, Xeon E5405: 6 MB for two cores"),
    (Cost::VmTransition, 1_266, (1_266, 1_266), Kind::Published, "Agesen et al., ATC 2012: Penryn"),
    (
        Cost::Backend,
        5_250,
        (3_000, 6_000),
        Kind::Fitted,
        "2.3 Gb/s of the stock back end over four ports (Zhang et al.); 4,158, fitted to Dong et al., HPCA 2010, leaves 2.58",
    ),
    (Cost::GrantCopy, 650, (400, 900), Kind::Estimate, CORE),
    (Cost::CopyCold, 1_400, (1_000, 2_000), Kind::Estimate, BUS),
    (Cost::CopyWarm, 400, (250, 600), Kind::Estimate, BUS),
    (Cost::RxCopy, 420, (280, 600), Kind::Estimate, BUS),
    (Cost::MmioRead, 2_000, (1_200, 3_000), Kind::Estimate, BUS),
    (Cost::MmioWrite, 250, (100, 500), Kind::Estimate, BUS),
    (Cost::SwitchDirect, 4_000, (3_000, 5_000), Kind::Estimate, CORE),
    (Cost::SwitchIndirect, 20_000, (5_000, 60_000), Kind::Estimate, BUS),
    (Cost::HypercallPv, 500, (300, 700), Kind::Estimate, CORE),
    (Cost::EventSend, 900, (700, 1_100), Kind::Estimate, CORE),
    (Cost::EventRemote, 1_900, (1_500, 2_500), Kind::Estimate, CORE),
    (Cost::EventBlocked, 4_500, (3_000, 6_000), Kind::Estimate, CORE),
    (Cost::EventUpcall, 1_000, (600, 1_500), Kind::Estimate, CORE),
    (Cost::GrantMapUnmap, 3_800, (3_000, 4_500), Kind::Estimate, CORE),
    (Cost::Bridge, 850, (600, 1_100), Kind::Estimate, CORE),
    (Cost::Softirq, 400, (300, 500), Kind::Estimate, CORE),
    (Cost::Frontend, 900, (600, 1_500), Kind::Estimate, CORE),
    (Cost::MergeSegment, 200, (100, 400), Kind::Estimate, CORE),
    (Cost::PvSyscall, 800, (500, 1_000), Kind::Estimate, CORE),
    (Cost::InterruptEntry, 600, (400, 1_000), Kind::Estimate, CORE),
    (Cost::InterruptHandler, 600, (400, 1_200), Kind::Estimate, CORE),
    (Cost::GuestTick, 3_000, (2_000, 6_000), Kind::Estimate, CORE),
    (Cost::ServiceTick, 5_000, (2_000, 12_000), Kind::Estimate, CORE),
    (Cost::HypervisorTick, 2_500, (1_500, 5_000), Kind::Estimate, CORE),
    (Cost::NapiEntry, 300, (200, 500), Kind::Estimate, CORE),
    (Cost::RxDriver, 750, (500, 1_000), Kind::Estimate, CORE),
    (Cost::RxSkb, 450, (300, 600), Kind::Estimate, CORE),
    (Cost::RxTcp, 1_150, (900, 1_400), Kind::Estimate, CORE),
    (Cost::RxUdp, 800, (600, 1_000), Kind::Estimate, CORE),
    (Cost::RxWake, 1_000, (700, 1_300), Kind::Estimate, CORE),
    (Cost::RxAck, 400, (300, 500), Kind::Estimate, CORE),
    (Cost::TxSyscall, 900, (600, 1_400), Kind::Estimate, CORE),
    (Cost::TxStack, 1_500, (1_000, 2_200), Kind::Estimate, CORE),
    (Cost::TxDriver, 750, (400, 1_000), Kind::Estimate, CORE),
    (Cost::ContextSwitch, 2_000, (1_200, 4_000), Kind::Estimate, CORE),
    (
        Cost::SwitchDisplacement,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

const NETBURST: &str = "engineering estimate: twice the value of nehalem, because a deep pipeline pays for \
    traps, locks and misses";
const RECEIVED: &str =
    "a part of the 11 K cycles a segment that 2,508 Mb/s take natively (Menon et al., ATC 2006)";

/// Constants of the Xeon at 2.4 GHz: one core without SMT in use, a small cache, a front-side bus.
pub(super) const PRESTONIA: &[Value] = &[
    (
        Cost::ClockHertz,
        2_400_000_000,
        (2_400_000_000, 2_400_000_000),
        Kind::Stated,
        "Menon et al., ATC 2006: Xeon at 2.4 GHz",
    ),
    (
        Cost::LastLevelCache,
        512,
        (512, 1_024),
        Kind::Estimate,
        "engineering estimate: a Xeon of the time has 512 KB",
    ),
    (
        Cost::Backend,
        3_600,
        (2_000, 9_000),
        Kind::Fitted,
        "750 Mb/s that a guest transmits at `base` (Menon et al., ATC 2006)",
    ),
    (
        Cost::RxTcp,
        4_060,
        (2_000, 6_000),
        Kind::Fitted,
        "2,508 Mb/s that Linux receives natively (Menon et al., ATC 2006)",
    ),
    (Cost::RxDriver, 1_400, (900, 2_500), Kind::Derived, RECEIVED),
    (Cost::RxSkb, 800, (600, 2_000), Kind::Derived, RECEIVED),
    (Cost::RxAck, 750, (600, 1_600), Kind::Derived, RECEIVED),
    (Cost::CopyCold, 2_000, (1_500, 2_500), Kind::Estimate, "engineering estimate: 1.5 to 2.5 cycles a byte"),
    (Cost::GrantCopy, 1_200, (600, 2_000), Kind::Estimate, NETBURST),
    (
        Cost::GrantMapUnmap,
        3_800,
        (3_000, 5_000),
        Kind::Derived,
        "Menon et al., ATC 2006: 3.8 K cycles a page",
    ),
    (Cost::GrantAddress, 1_000, (400, 1_500), Kind::Estimate, NETBURST),
    (Cost::PageFlip, 10_000, (8_000, 12_000), Kind::Estimate, NETBURST),
    (Cost::HypercallPv, 900, (600, 1_200), Kind::Estimate, NETBURST),
    (Cost::EventSend, 1_700, (1_000, 2_000), Kind::Estimate, NETBURST),
    (
        Cost::EventBlocked,
        1_500,
        (800, 4_000),
        Kind::Estimate,
        "engineering estimate: waking on the same processor",
    ),
    (Cost::EventUpcall, 2_000, (1_200, 3_000), Kind::Estimate, NETBURST),
    (Cost::SwitchDirect, 8_000, (5_000, 10_000), Kind::Estimate, NETBURST),
    (
        Cost::SwitchIndirect,
        8_000,
        (5_000, 20_000),
        Kind::Estimate,
        "engineering estimate: indirect cost of a domain switch; a small cache is soon full",
    ),
    (
        Cost::TlbKernel,
        4_000,
        (2_000, 6_000),
        Kind::Estimate,
        "engineering estimate: 64 entries of 4 KB pages, a walk of 60 cycles each",
    ),
    (Cost::InterruptEntry, 1_200, (800, 2_500), Kind::Estimate, NETBURST),
    (Cost::InterruptHandler, 1_200, (600, 2_000), Kind::Estimate, NETBURST),
    (Cost::Softirq, 800, (300, 1_000), Kind::Estimate, NETBURST),
    (Cost::NapiEntry, 600, (300, 1_000), Kind::Estimate, NETBURST),
    (Cost::Bridge, 1_600, (800, 2_000), Kind::Estimate, NETBURST),
    (Cost::Frontend, 1_800, (900, 2_500), Kind::Estimate, NETBURST),
    (Cost::MmioWrite, 500, (200, 800), Kind::Estimate, NETBURST),
    (Cost::RxWake, 1_900, (1_500, 4_000), Kind::Estimate, NETBURST),
    (Cost::RxPureAck, 2_200, (1_500, 3_000), Kind::Estimate, NETBURST),
    (Cost::TxSyscall, 1_800, (1_200, 3_000), Kind::Estimate, NETBURST),
    (Cost::TxStack, 3_000, (2_000, 4_500), Kind::Estimate, NETBURST),
    (Cost::TxDriver, 1_400, (800, 2_000), Kind::Estimate, NETBURST),
    (Cost::CutSegment, 1_400, (800, 2_500), Kind::Estimate, NETBURST),
    (
        Cost::SwitchDisplacement,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
];

/// Cost constants of a server of 2009. Our excerpt of the paper does not name the processor. The values are those of
/// the Xeon 5500, of the same year, except the back end's.
pub(super) const SERVER_2009: &[Value] = &[
    (
        Cost::Backend,
        3_750,
        (2_000, 6_000),
        Kind::Fitted,
        "2.6 Gb/s that a stream to a guest gets from a full processor of the service domain (Dong et al., SYSTOR 2009)",
    ),
    (
        Cost::SwitchDisplacement,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the values of the table's paper were fitted with a full refill at each switch",
    ),
    (Cost::ExitHlt, 4_000, (2_500, 6_000), Kind::Estimate, SEED),
    (
        Cost::NestedPaging,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the costs of the guest's own work include it",
    ),
    (
        Cost::ExitPollution,
        0,
        (0, 0),
        Kind::Estimate,
        "zero, because the costs of the guest's own work include it",
    ),
];
