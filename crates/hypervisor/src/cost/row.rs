//! Constants of a cost table: name, value, unit, range, kind and source.

use core::ops::RangeInclusive;

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Cycles per operation.
    Cycles,
    /// Cycles per 1,000 bytes.
    CyclesPerKilobyte,
    /// Thousandths.
    Permille,
    /// Events per second.
    Hertz,
    /// Bits per second.
    BitsPerSecond,
    /// Units of 1,024 bytes.
    Kibibytes,
}

impl Unit {
    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::CyclesPerKilobyte => "cycles/1000 B",
            Unit::Permille => "permille",
            Unit::Hertz => "Hz",
            Unit::BitsPerSecond => "bit/s",
            Unit::Kibibytes => "KiB",
        }
    }

    /// Returns the plausible values: a clock has 1 MHz to 100 GHz, and no operation takes more than 10^9
    /// cycles.
    pub(crate) const fn range(self) -> RangeInclusive<u64> {
        match self {
            Unit::Cycles => 0..=1_000_000_000,
            Unit::CyclesPerKilobyte | Unit::Permille => 0..=1_000_000,
            Unit::Hertz => 1_000_000..=100_000_000_000,
            Unit::BitsPerSecond => 1..=1_000_000_000_000,
            Unit::Kibibytes => 0..=1 << 30,
        }
    }
}

/// Kind of evidence for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Measured and published by others, for this processor or a similar one.
    Published,
    /// Stated by the reproduced paper.
    Stated,
    /// Computed from published or stated values; the source says how.
    Derived,
    /// Engineering estimate; the source gives its basis.
    Estimate,
    /// Fitted by the lab's calibration.
    Fitted,
    /// Measured on this machine; the source says how.
    Measured,
    /// Given by the user.
    Given,
}

impl Kind {
    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Published => "published",
            Kind::Stated => "stated",
            Kind::Derived => "derived",
            Kind::Estimate => "estimate",
            Kind::Fitted => "fitted",
            Kind::Measured => "measured",
            Kind::Given => "given",
        }
    }
}

/// Constant of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Constant this row defines.
    pub cost: Cost,
    /// Name in files and on command lines.
    pub name: &'static str,
    /// Value, in `unit`.
    pub value: u64,
    /// Unit of the value.
    pub unit: Unit,
    /// Plausible range for calibration and sensitivity, both ends included.
    pub range: (u64, u64),
    /// Kind of evidence.
    pub kind: Kind,
    /// Source of the value.
    pub source: &'static str,
}

impl Row {
    /// Returns the permitted values: those of its unit; SMT contention is at least 1,000, as a busy sibling
    /// never makes a thread faster.
    pub(crate) const fn allowed(&self) -> RangeInclusive<u64> {
        let range = self.unit.range();
        match self.cost {
            Cost::SmtContention => 1_000..=*range.end(),
            _ => range,
        }
    }
}

/// Error of setting a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No constant has that name.
    #[error("unknown constant")]
    Unknown,
    /// The value is out of range.
    #[error("must be from {least} to {most} {name}", name = unit.name())]
    OutOfRange {
        /// Unit of the bounds.
        unit: Unit,
        /// Smallest permitted value.
        least: u64,
        /// Largest permitted value.
        most: u64,
    },
    /// The exit would cost less than the processor's own transition.
    #[error("below vm_transition ({least} cycles), the least cost of an exit")]
    BelowTransition {
        /// Cycles of the processor's transition.
        least: u64,
    },
}

/// Constants of the model: costs of operations, and parameters that go with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cost {
    /// Clock frequency.
    ClockHertz,
    /// Thousandths of a cycle per cycle of work while the sibling thread is busy.
    SmtContention,
    /// Size of a socket's last-level cache.
    LastLevelCache,
    /// VM exit and entry, hardware only.
    VmTransition,
    /// Physical interrupt while a guest runs: exit, acknowledge, owner lookup, entry.
    ExitExternalInterrupt,
    /// EOI write, with the instruction fetched, decoded and emulated.
    EoiEmulated,
    /// EOI write, handled by the exit qualification alone.
    EoiFast,
    /// Fetching and decoding the instruction, in addition to [`Cost::EoiFast`].
    EoiFetch,
    /// Other access to the APIC page, with the instruction fetched, decoded and emulated.
    ExitApicOther,
    /// Write to an MSI-X table, handled in the hypervisor.
    ExitMsixMmio,
    /// Access to emulated memory forwarded to a device model: the hypervisor's part.
    ExitOtherMmio,
    /// Device model serving one access, in the service domain's kernel and user space.
    DeviceModel,
    /// Hypercall of a hardware-virtualized guest.
    HypercallHvm,
    /// Guest going idle, and its return when woken.
    ExitHlt,
    /// Exit to inject an interrupt that had to wait.
    ExitInterruptWindow,
    /// Access to an intercepted model-specific register.
    ExitMsr,
    /// Exit of any other kind.
    ExitOther,
    /// Requesting an interrupt in a virtual APIC and injecting it at entry.
    Injection,
    /// Timer interrupt of the hypervisor, including its scheduler.
    HypervisorTick,
    /// Switching a thread to another virtual CPU.
    SwitchDirect,
    /// Refilling caches and TLB after a switch.
    SwitchIndirect,
    /// Hypercall of a paravirtualized guest.
    HypercallPv,
    /// Sending an event on an event channel.
    EventSend,
    /// Addition to [`Cost::EventSend`] if the receiver's virtual CPU runs on another thread.
    EventRemote,
    /// Addition to [`Cost::EventSend`] if the receiver's virtual CPU was blocked.
    EventBlocked,
    /// Entering and leaving a paravirtualized guest's event handler.
    EventUpcall,
    /// Mapping and unmapping a granted page.
    GrantMapUnmap,
    /// Copying to or from a granted page, without the bytes.
    GrantCopy,
    /// Exchanging the ownership of a page.
    PageFlip,
    /// Copying bytes that are in the cache.
    CopyWarm,
    /// Copying bytes that are not in the cache.
    CopyCold,
    /// Forwarding a packet in the software bridge.
    Bridge,
    /// Raising and running a softirq.
    Softirq,
    /// Packet in a split driver's back end, without copy, bridge, softirq and physical driver.
    Backend,
    /// Packet in a split driver's front end, including grants.
    Frontend,
    /// Addition to a system call of a 64-bit paravirtualized guest.
    PvSyscall,
    /// Reading a device register.
    MmioRead,
    /// Writing a device register (posted).
    MmioWrite,
    /// Taking and leaving an interrupt in a kernel, without its handler.
    InterruptEntry,
    /// Interrupt handler of a network driver, which schedules a poll.
    InterruptHandler,
    /// Periodic timer interrupt in a kernel.
    GuestTick,
    /// Daemons and timers of the service domain, per tick.
    ServiceTick,
    /// Beginning and ending a poll of the receive ring.
    NapiEntry,
    /// Received packet in the driver.
    RxDriver,
    /// Socket buffer of a received packet.
    RxSkb,
    /// IP and TCP receive processing of a packet.
    RxTcp,
    /// IP and UDP receive processing of a packet.
    RxUdp,
    /// Addition to [`Cost::RxUdp`] in a kernel that accounts for datagram memory under the socket lock.
    RxUdpAccounting,
    /// Waking the receiver, and its system call.
    RxWake,
    /// Copying the payload to the program; [`Cost::CopyCold`] applies if the buffer has left the last-level
    /// cache.
    RxCopy,
    /// Sending a TCP acknowledgement.
    RxAck,
    /// System call to send, without copy and protocol.
    TxSyscall,
    /// Passing a buffer through protocol and queue, segmented or not.
    TxStack,
    /// Describing a buffer to the card, and its later completion.
    TxDriver,
    /// Switching between processes.
    ContextSwitch,
    /// Request through a kernel's block layer and driver, and its later completion.
    BlockRequest,
    /// Timer writes per 1,000 times a tickless kernel goes idle or wakes.
    TimerWrites,
    /// Descriptor that the hypervisor checks and enqueues for a guest (CDNA).
    EnqueueCheck,
    /// Segment inspected by a front end for merging.
    MergeSegment,
    /// Looking up and pinning a granted page's machine address without mapping it.
    GrantAddress,
    /// Software segmentation, per segment: headers and buffer.
    CutSegment,
    /// Refilling the kernel's TLB entries after a switch that flushed them.
    TlbKernel,
    /// IP and TCP receive processing of an acknowledgement without payload.
    RxPureAck,
    /// Cycles of others on a thread after which nothing of a virtual CPU's state is left in the core's caches
    /// and TLB.
    SwitchDisplacement,
    /// Thousandths by which nested paging prolongs a guest's own work.
    NestedPaging,
    /// Refilling the first-level caches and TLB after an exit.
    ExitPollution,
    /// Converting an event to an interrupt of a platform device, for a hardware-virtualized guest.
    EventConvert,
}

impl Cost {
    /// Number of constants.
    pub const COUNT: usize = Cost::EventConvert as usize + 1;

    /// Costs of whole exits: the processor's transition plus the hypervisor's work.
    pub const EXITS: [Cost; 11] = [
        Cost::ExitExternalInterrupt,
        Cost::EoiEmulated,
        Cost::EoiFast,
        Cost::ExitApicOther,
        Cost::ExitMsixMmio,
        Cost::ExitOtherMmio,
        Cost::HypercallHvm,
        Cost::ExitHlt,
        Cost::ExitInterruptWindow,
        Cost::ExitMsr,
        Cost::ExitOther,
    ];

    /// Returns the reason a constant is never charged. Returns `None` if experiments charge it.
    pub const fn uncharged(self) -> Option<&'static str> {
        match self {
            Cost::VmTransition => Some("only a lower bound: the cost of every exit includes it"),
            Cost::ExitInterruptWindow => {
                Some("charged for interrupts during a handler, which the experiments do not have")
            }
            _ => None,
        }
    }
}
