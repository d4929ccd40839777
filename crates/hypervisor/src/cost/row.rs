//! A constant: what it is, what its value is, where that comes from. Left out: the values.

use core::ops::RangeInclusive;

/// What a value is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Cycles, each time.
    Cycles,
    /// Cycles for 1,000 bytes.
    CyclesPerKilobyte,
    /// Thousandths.
    Permille,
    /// A second.
    Hertz,
    /// Bits a second.
    BitsPerSecond,
    /// 1,024 bytes.
    Kibibytes,
}

impl Unit {
    /// What reports call it.
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

    /// Values that can be meant: a clock is from 1 MHz to 100 GHz, nothing takes a thousand million cycles.
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

/// How good a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Measured and published by someone else, for this processor or a near one.
    Published,
    /// Stated by the paper that is reproduced.
    Stated,
    /// Follows from published or stated values; the source says how.
    Derived,
    /// An engineer's guess: the source says from what.
    Estimate,
    /// Found by the lab's calibration.
    Fitted,
    /// Measured on the machine at hand; the source says how.
    Measured,
    /// Given by the user.
    Given,
}

impl Kind {
    /// What reports call it.
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

/// A constant of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub cost: Cost,
    /// Its name in files and on command lines.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What the value is counted in.
    pub unit: Unit,
    /// Where it is believed to lie, for calibration and sensitivity; both ends included.
    pub range: (u64, u64),
    /// How good the value is.
    pub kind: Kind,
    /// Where it comes from.
    pub source: &'static str,
}

impl Row {
    /// Values that can be meant: those of its unit, and no thread is faster for a busy sibling.
    pub(crate) const fn allowed(&self) -> RangeInclusive<u64> {
        let range = self.unit.range();
        match self.cost {
            Cost::SmtContention => 1_000..=*range.end(),
            _ => range,
        }
    }
}

/// A constant that cannot be given that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No constant has that name.
    #[error("there is no such constant")]
    Unknown,
    /// The value cannot be meant.
    #[error("it must be from {least} to {most} {name}", name = unit.name())]
    OutOfRange {
        /// What it is counted in.
        unit: Unit,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// An exit would cost less than the processor alone takes for it.
    #[error("no exit costs less than vm_transition, {least} cycles here")]
    BelowTransition {
        /// What the processor takes.
        least: u64,
    },
}

/// Everything that has a price, and the few numbers that go with prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cost {
    /// The clock.
    ClockHertz,
    /// Thousandths of a cycle that a cycle of work takes while the sibling thread is busy.
    SmtContention,
    /// The last-level cache of a socket.
    LastLevelCache,
    /// VM exit and entry, the processor alone.
    VmTransition,
    /// A physical interrupt while a guest runs: exit, acknowledge, find the owner, entry.
    ExitExternalInterrupt,
    /// A write to the EOI register, fetched, decoded and emulated.
    EoiEmulated,
    /// A write to the EOI register, believed from the exit qualification.
    EoiFast,
    /// Fetching and decoding the instruction in addition to the fast path.
    EoiFetch,
    /// Another access to the APIC page, fetched, decoded and emulated.
    ExitApicOther,
    /// A write to an MSI-X table, handled in the hypervisor.
    ExitMsixMmio,
    /// An access to emulated memory that goes to a device model: the hypervisor's part.
    ExitOtherMmio,
    /// A device model serving one access, in the service domain's kernel and user space.
    DeviceModel,
    /// A hypercall of a guest on hardware virtualization.
    HypercallHvm,
    /// A guest going idle, and the way back in when it is woken.
    ExitHlt,
    /// An exit to inject an interrupt that had to wait.
    ExitInterruptWindow,
    /// An access to an intercepted model-specific register.
    ExitMsr,
    /// An exit of any other kind.
    ExitOther,
    /// Setting a request in a virtual APIC and injecting it at entry.
    Injection,
    /// A timer interrupt of the hypervisor, scheduler included.
    HypervisorTick,
    /// Putting another virtual CPU on a thread.
    SwitchDirect,
    /// Caches and TLB filled again after that.
    SwitchIndirect,
    /// A hypercall of a paravirtualized guest.
    HypercallPv,
    /// Sending on an event channel.
    EventSend,
    /// In addition, if the receiver's virtual CPU runs on another thread.
    EventRemote,
    /// In addition, if the receiver's virtual CPU was blocked.
    EventBlocked,
    /// Entering a paravirtualized guest's event handler, and leaving it.
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
    /// A packet through the software bridge.
    Bridge,
    /// Raising and running a softirq.
    Softirq,
    /// A packet in a split driver's back end, without copy, bridge, softirq and the physical driver.
    Backend,
    /// A packet in a split driver's front end, buffer granting included.
    Frontend,
    /// In addition to a system call of a 64-bit paravirtualized guest.
    PvSyscall,
    /// Reading a device register.
    MmioRead,
    /// Writing a device register; posted.
    MmioWrite,
    /// Taking and leaving an interrupt in a kernel, without its handler.
    InterruptEntry,
    /// An interrupt handler of a network driver: it schedules a poll.
    InterruptHandler,
    /// A periodic timer interrupt in a kernel.
    GuestTick,
    /// The service domain's daemons and timers, for each tick.
    ServiceTick,
    /// Beginning and ending a poll of the receive ring.
    NapiEntry,
    /// A received packet in the driver.
    RxDriver,
    /// A socket buffer for it.
    RxSkb,
    /// IP and TCP.
    RxTcp,
    /// IP and UDP.
    RxUdp,
    /// In addition, in a kernel that accounts for the memory of datagrams under the socket's lock.
    RxUdpAccounting,
    /// Waking the receiver and its system call.
    RxWake,
    /// Copying the payload to the program; [`Cost::CopyCold`] if its buffer has left the last-level cache.
    RxCopy,
    /// Sending a TCP acknowledgement.
    RxAck,
    /// A program's send, without copy and protocol.
    TxSyscall,
    /// A buffer handed down through protocol and queue, segmented or not.
    TxStack,
    /// Describing a buffer to the card, and its completion later.
    TxDriver,
    /// Changing from one process to another.
    ContextSwitch,
    /// A request through a kernel's block layer and its driver, and its completion later.
    BlockRequest,
    /// Of 1,000 times that a tickless kernel goes idle or wakes, how often it writes its timer.
    TimerWrites,
    /// A descriptor that a hypervisor checks and puts on a card's ring for a guest (CDNA).
    EnqueueCheck,
    /// A received segment that a front end looks at to merge it with those before it.
    MergeSegment,
    /// Finding the machine address of a granted page and holding the page there, without mapping it.
    GrantAddress,
    /// A segment that software cuts off a long packet: its headers and its buffer.
    CutSegment,
    /// The kernel's TLB entries filled again after a switch that flushed them.
    TlbKernel,
    /// IP and TCP for an acknowledgement without payload.
    RxPureAck,
    /// Cycles of others on a thread after which a virtual CPU finds nothing of what it left in the core's caches and TLB.
    SwitchDisplacement,
    /// Thousandths by which a guest's own work takes longer under nested paging.
    NestedPaging,
    /// What a guest finds gone from the nearest cache and the TLB after an exit.
    ExitPollution,
    /// Turning an event into an interrupt of a platform device, for a guest on hardware virtualization.
    EventConvert,
}

impl Cost {
    /// How many there are.
    pub const COUNT: usize = Cost::EventConvert as usize + 1;

    /// Prices of whole exits: the processor's transition and what the hypervisor does in between.
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

    /// Why nothing is charged this price, if nothing is: moving it moves no row of any experiment.
    pub const fn uncharged(self) -> Option<&'static str> {
        match self {
            Cost::VmTransition => Some("no exit may cost less; the price of an exit has it in it"),
            Cost::ExitInterruptWindow => Some(
                "it waits for interrupts that come while a handler runs; those of the experiments do not",
            ),
            _ => None,
        }
    }
}
