//! Row of a cost table: a constant's name, value, unit, range, kind of evidence and source.

use core::ops::RangeInclusive;

/// Unit of a cost constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostUnit {
    /// Processor cycles per operation.
    Cycles,
    /// Processor cycles per 1,000 bytes.
    CyclesPerKilobyte,
    /// Thousandths, as the unit of a cost constant.
    Permille,
    /// Events per second, as the unit of a cost constant.
    Hertz,
    /// Bits per second, as the unit of a cost constant.
    BitsPerSecond,
    /// Units of 1,024 bytes.
    Kibibytes,
}

impl CostUnit {
    /// Returns the unit's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CostUnit::Cycles => "cycles",
            CostUnit::CyclesPerKilobyte => "cycles/1000 B",
            CostUnit::Permille => "permille",
            CostUnit::Hertz => "Hz",
            CostUnit::BitsPerSecond => "bit/s",
            CostUnit::Kibibytes => "KiB",
        }
    }

    /// Returns the plausible values in this unit: a clock has 1 MHz to 100 GHz, and no operation takes more than 10^9
    /// cycles.
    pub(crate) const fn range(self) -> RangeInclusive<u64> {
        match self {
            CostUnit::Cycles => 0..=1_000_000_000,
            CostUnit::CyclesPerKilobyte | CostUnit::Permille => 0..=1_000_000,
            CostUnit::Hertz => 1_000_000..=100_000_000_000,
            CostUnit::BitsPerSecond => 1..=1_000_000_000_000,
            CostUnit::Kibibytes => 0..=1 << 30,
        }
    }
}

/// Kind of evidence for a constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvidenceKind {
    /// Value measured and published by others, for this processor or a similar one.
    Published,
    /// Value stated by the reproduced paper.
    Stated,
    /// Value computed from published or stated values; the row's source says how.
    Derived,
    /// Value of an engineering estimate; the row's source gives its basis.
    Estimate,
    /// Value fitted by the lab's calibration.
    Fitted,
    /// Value measured on this machine; the row's source says how.
    Measured,
    /// Cost value given by the user.
    Given,
}

impl EvidenceKind {
    /// Returns the name of this kind of evidence in reports.
    pub const fn name(self) -> &'static str {
        match self {
            EvidenceKind::Published => "published",
            EvidenceKind::Stated => "stated",
            EvidenceKind::Derived => "derived",
            EvidenceKind::Estimate => "estimate",
            EvidenceKind::Fitted => "fitted",
            EvidenceKind::Measured => "measured",
            EvidenceKind::Given => "given",
        }
    }
}

/// Row of a cost table: a constant with its value and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostRow {
    /// Cost constant that this row defines.
    pub cost: CostConstant,
    /// Name of the constant in files and on command lines.
    pub name: &'static str,
    /// Value of the constant, in `unit`.
    pub value: u64,
    /// Unit of the constant's value.
    pub unit: CostUnit,
    /// Plausible range of the value for calibration and sensitivity, both ends included.
    pub range: (u64, u64),
    /// Kind of evidence for the constant's value.
    pub kind: EvidenceKind,
    /// Source of the constant's value.
    pub source: &'static str,
}

impl CostRow {
    /// Returns the permitted values of the cost constant: those of its unit. SMT contention is at least 1,000, as a
    /// busy sibling never makes a thread faster.
    pub(crate) const fn allowed(&self) -> RangeInclusive<u64> {
        let range = self.unit.range();
        match self.cost {
            CostConstant::SmtContention => 1_000..=*range.end(),
            _ => range,
        }
    }
}

/// Error of setting a constant of a cost table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetCostError {
    /// No cost constant has that name.
    #[error("unknown constant of the cost table")]
    Unknown,
    /// The value is outside the cost constant's range.
    #[error("the constant must be from {least} to {most} {name}", name = unit.name())]
    OutOfRange {
        /// Unit of the cost constant's permitted bounds.
        unit: CostUnit,
        /// Smallest permitted value of the cost constant.
        least: u64,
        /// Largest permitted value of the cost constant.
        most: u64,
    },
    /// The VM exit would cost less than the processor's transition to and from the guest alone.
    #[error("the constant is below vm_transition ({least} cycles), the least cost of an exit")]
    BelowTransition {
        /// Cycles of the processor's transition to and from the guest.
        least: u64,
    },
}

/// Constants of the cost model: costs of operations, and parameters that go with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CostConstant {
    /// Frequency of the processor's clock.
    ClockHertz,
    /// Slowdown by a busy sibling thread, in thousandths of a cycle per cycle of work.
    SmtContention,
    /// Size of a processor socket's last-level cache.
    LastLevelCache,
    /// Cost of a VM exit and entry, hardware only.
    VmTransition,
    /// Cost of a physical interrupt while a guest runs: VM exit, acknowledge, owner lookup, VM entry.
    ExitExternalInterrupt,
    /// Cost of an EOI write whose instruction is fetched, decoded and emulated.
    EoiEmulated,
    /// Cost of an EOI write that is handled by the VM exit's qualification alone.
    EoiFast,
    /// Cost of fetching and decoding the EOI instruction, in addition to [`CostConstant::EoiFast`].
    EoiFetch,
    /// Cost of an access to the APIC page other than an EOI write, with the instruction fetched, decoded and emulated.
    ExitApicOther,
    /// Cost of a write to an MSI-X table that the hypervisor handles.
    ExitMsixMmio,
    /// Cost of forwarding an access to emulated memory to a device model: the hypervisor's part.
    ExitOtherMmio,
    /// Cost of one device access in the device model, in the service domain's kernel and user space.
    DeviceModel,
    /// Cost of a hypercall by a hardware-virtualized guest.
    HypercallHvm,
    /// Cost of a guest's going idle, and of its return when woken.
    ExitHlt,
    /// Cost of a VM exit to inject an interrupt that the guest could not take before.
    ExitInterruptWindow,
    /// Cost of an access to an intercepted model-specific register.
    ExitMsr,
    /// Cost of a VM exit without a constant of its own.
    ExitOther,
    /// Cost of requesting an interrupt in a virtual APIC and injecting it at VM entry.
    Injection,
    /// Cost of a timer interrupt of the hypervisor, including its scheduler.
    HypervisorTick,
    /// Cost of switching a processor thread to another virtual CPU.
    SwitchDirect,
    /// Cost of refilling caches and TLB after a switch to another virtual CPU.
    SwitchIndirect,
    /// Cost of a hypercall by a paravirtualized guest.
    HypercallPv,
    /// Cost of sending an event on an event channel.
    EventSend,
    /// Addition to [`CostConstant::EventSend`] if the receiver's virtual CPU runs on another thread.
    EventRemote,
    /// Addition to [`CostConstant::EventSend`] if the receiver's virtual CPU was blocked.
    EventBlocked,
    /// Cost of entering and leaving a paravirtualized guest's event handler.
    EventUpcall,
    /// Cost of mapping and unmapping a granted page.
    GrantMapUnmap,
    /// Cost of copying to or from a granted page, without the bytes.
    GrantCopy,
    /// Cost of exchanging the ownership of a page.
    PageFlip,
    /// Cost of copying bytes that are in the cache.
    CopyWarm,
    /// Cost of copying bytes that are not in the cache.
    CopyCold,
    /// Cost of forwarding a packet in the software bridge.
    Bridge,
    /// Cost of raising and running a softirq.
    Softirq,
    /// Cost of a packet in a split driver's back end, without copy, bridge, softirq and physical driver.
    Backend,
    /// Cost of a packet in a split driver's front end, including grants.
    Frontend,
    /// Addition to a system call of a 64-bit paravirtualized guest.
    PvSyscall,
    /// Cost of reading a device register.
    MmioRead,
    /// Cost of writing a device register (posted).
    MmioWrite,
    /// Cost of taking and leaving an interrupt in a kernel, without its handler.
    InterruptEntry,
    /// Cost of a network driver's interrupt handler, which schedules a poll.
    InterruptHandler,
    /// Cost of a periodic timer interrupt in a kernel.
    GuestTick,
    /// Cost of the service domain's daemons and timers, per tick.
    ServiceTick,
    /// Cost of beginning and ending a poll of the receive ring.
    NapiEntry,
    /// Cost of a received packet in the network driver.
    RxDriver,
    /// Cost of the socket buffer of a received packet.
    RxSkb,
    /// Cost of IP and TCP receive processing of a packet.
    RxTcp,
    /// Cost of IP and UDP receive processing of a packet.
    RxUdp,
    /// Addition to [`CostConstant::RxUdp`] in a kernel that accounts for datagram memory under the socket lock.
    RxUdpAccounting,
    /// Cost of waking the receiving program, and of its system call.
    RxWake,
    /// Cost of copying a received payload to the program; [`CostConstant::CopyCold`] applies if the buffer has left the
    /// last-level cache.
    RxCopy,
    /// Cost of sending a TCP acknowledgement.
    RxAck,
    /// Cost of a program's system call to send, without copy and protocol.
    TxSyscall,
    /// Cost of passing a buffer to send through protocol and queue, segmented or not.
    TxStack,
    /// Cost of describing a buffer to the card, and of completing the sent buffer later.
    TxDriver,
    /// Cost of switching between processes of one kernel.
    ContextSwitch,
    /// Cost of a request through a kernel's block layer and driver, and of its later completion.
    BlockRequest,
    /// Number of timer writes per 1,000 times that a tickless kernel goes idle or wakes.
    TimerWrites,
    /// Cost of a descriptor that the hypervisor checks and enqueues for a guest (CDNA).
    EnqueueCheck,
    /// Cost of a TCP segment that a front end inspects for merging.
    MergeSegment,
    /// Cost of looking up and pinning a granted page's machine address without mapping it.
    GrantAddress,
    /// Cost of software segmentation of a packet, per segment: headers and buffer.
    CutSegment,
    /// Cost of refilling the kernel's TLB entries after a switch that flushed them.
    TlbKernel,
    /// Cost of IP and TCP receive processing of an acknowledgement without payload.
    RxPureAck,
    /// Cycles of other virtual CPUs on a thread after which a virtual CPU's state is gone from the core's caches and
    /// TLB.
    SwitchDisplacement,
    /// Thousandths by which nested paging prolongs a guest's own work.
    NestedPaging,
    /// Cost of refilling the first-level caches and TLB after a VM exit.
    ExitPollution,
    /// Cost of converting an event to an interrupt of a platform device, for a hardware-virtualized guest.
    EventConvert,
}

impl CostConstant {
    /// Number of constants of a cost table.
    pub const COUNT: usize = CostConstant::EventConvert as usize + 1;

    /// Constants that are the cost of a whole VM exit: the processor's transition plus the hypervisor's work.
    pub const EXITS: [CostConstant; 11] = [
        CostConstant::ExitExternalInterrupt,
        CostConstant::EoiEmulated,
        CostConstant::EoiFast,
        CostConstant::ExitApicOther,
        CostConstant::ExitMsixMmio,
        CostConstant::ExitOtherMmio,
        CostConstant::HypercallHvm,
        CostConstant::ExitHlt,
        CostConstant::ExitInterruptWindow,
        CostConstant::ExitMsr,
        CostConstant::ExitOther,
    ];

    /// Returns the reason why no experiment charges a cost constant. Returns `None` if experiments charge it.
    pub const fn uncharged(self) -> Option<&'static str> {
        match self {
            CostConstant::VmTransition => {
                Some("the constant is only a lower bound: the cost of every exit includes the transition")
            }
            CostConstant::ExitInterruptWindow => {
                Some("charged for interrupts during a handler, which the experiments do not have")
            }
            _ => None,
        }
    }
}
