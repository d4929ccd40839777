//! Processors of other papers: a line for each value of their own. Left out: rows that no experiment on them charges,
//! which stay those of the table that they began from.

use super::row::{Cost, Kind};

/// A constant, its value, where it is believed to lie, its kind, its source.
pub(super) type Value = (Cost, u64, (u64, u64), Kind, &'static str);

const SEED: &str = "engineering seed";
const RECEIVE: &str = "a part of the 11 K cycles a segment that 2,508 Mb/s take on a Pentium 4 (Menon et al., ATC 2006), at half of its cycles";

/// One core without siblings, a cache of a megabyte, memory at the processor.
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
    (Cost::SwitchDirect, 4_000, (3_000, 5_000), Kind::Estimate, "engineering seed: domain switch, direct"),
    (
        Cost::SwitchIndirect,
        8_000,
        (5_000, 20_000),
        Kind::Estimate,
        "engineering seed: domain switch, indirect; a small cache is soon full",
    ),
    (Cost::EventSend, 850, (700, 1_000), Kind::Estimate, SEED),
    (
        Cost::EventBlocked,
        1_000,
        (500, 4_000),
        Kind::Estimate,
        "engineering seed: waking on the same processor",
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
        "engineering seed: TCP, IP and queue for each segment",
    ),
    (Cost::TxDriver, 600, (400, 900), Kind::Estimate, SEED),
    (Cost::RxDriver, 900, (700, 1_500), Kind::Derived, RECEIVE),
    (Cost::RxSkb, 600, (400, 1_000), Kind::Derived, RECEIVE),
    (Cost::RxTcp, 2_000, (1_300, 3_000), Kind::Derived, RECEIVE),
];

/// One processor's share of a machine of its time. Its values are those of the current machine but for the exit of an
/// interrupt, which the thin hypervisor of the paper handles in its own way.
pub(super) const SKYLAKE: &[Value] = &[
    (
        Cost::ClockHertz,
        3_000_000_000,
        (2_600_000_000, 4_000_000_000),
        Kind::Estimate,
        "engineering seed: a Skylake-class machine",
    ),
    (
        Cost::ExitExternalInterrupt,
        5_600,
        (1_500, 12_000),
        Kind::Fitted,
        "11.2 % more throughput of a busy guest without the PF's interrupts (Iida et al.)",
    ),
];
