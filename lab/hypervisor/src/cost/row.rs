//! Row of a cost table: a constant's name, value, unit, range, kind of evidence and source.

use core::ops::RangeInclusive;

/// Unit of a cost constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostUnit {
    /// Unit of a cost constant: processor cycles per operation.
    Cycles,
    /// Unit of a cost constant: processor cycles per 1,000 bytes.
    CyclesPerKilobyte,
    /// Thousandths (permille), as the unit of a cost constant.
    Permille,
    /// Events per second, as the unit of a cost constant.
    Hertz,
    /// Bits per second, as the unit of a cost constant.
    BitsPerSecond,
    /// Units of 1,024 bytes, as the unit of a cost constant.
    Kibibytes,
    /// Nanoseconds, as the unit of a cost constant that the processor's clock does not change.
    Nanoseconds,
    /// Number of parts of the hardware, as the unit of a cost constant.
    Count,
    /// Number of memory pages of 4 KB, as the unit of a cost constant.
    Pages,
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
            CostUnit::Nanoseconds => "ns",
            CostUnit::Count => "count",
            CostUnit::Pages => "pages",
        }
    }

    /// Returns the plausible values of a cost constant, by its unit: a clock has 1 MHz to 100 GHz, and no operation
    /// takes more than 10^9 cycles.
    pub(crate) const fn range(self) -> RangeInclusive<u64> {
        match self {
            CostUnit::Cycles => 0..=1_000_000_000,
            CostUnit::CyclesPerKilobyte | CostUnit::Permille => 0..=1_000_000,
            CostUnit::Hertz => 1_000_000..=100_000_000_000,
            CostUnit::BitsPerSecond => 1..=1_000_000_000_000,
            CostUnit::Kibibytes => 0..=1 << 30,
            CostUnit::Nanoseconds => 0..=1_000_000_000,
            CostUnit::Count => 1..=1 << 16,
            CostUnit::Pages => 0..=1 << 16,
        }
    }
}

/// Kind of evidence for a constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CostEvidenceKind {
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

impl CostEvidenceKind {
    /// Returns the name of this kind of evidence in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CostEvidenceKind::Published => "published",
            CostEvidenceKind::Stated => "stated",
            CostEvidenceKind::Derived => "derived",
            CostEvidenceKind::Estimate => "estimate",
            CostEvidenceKind::Fitted => "fitted",
            CostEvidenceKind::Measured => "measured",
            CostEvidenceKind::Given => "given",
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
    pub kind: CostEvidenceKind,
    /// Source of the constant's value.
    pub source: &'static str,
}

impl CostRow {
    /// Returns the permitted values of the constant: those of its unit, and for SMT contention at least 1,000, since a
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
    #[error("the value of the cost constant must be from {least} to {most} {name}", name = unit.name())]
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

/// Declares the cost constants, each with its unit and its name in files and on command lines.
macro_rules! constants {
    ($($(#[$doc:meta])* $constant:ident = $name:literal in $unit:ident,)*) => {
        /// Constants of the model: costs of operations, and parameters that go with them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum CostConstant {
            $($(#[$doc])* $constant,)*
        }

        impl CostConstant {
            /// Number of constants of a cost table.
            pub const COUNT: usize = [$($name),*].len();

            /// Returns the constant's name in files and on command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $(CostConstant::$constant => $name,)*
                }
            }

            /// Returns the unit of the constant's values.
            pub const fn unit(self) -> CostUnit {
                match self {
                    $(CostConstant::$constant => CostUnit::$unit,)*
                }
            }
        }
    };
}

constants! {
    /// Frequency of the modelled processor's clock.
    ClockHertz = "clock_hertz" in Hertz,
    /// Contention with a busy sibling thread: thousandths of a cycle that a cycle of work takes.
    SmtContention = "smt_contention" in Permille,
    /// Size of a processor socket's last-level cache.
    LastLevelCache = "last_level_cache" in Kibibytes,
    /// Cost of the processor's own part of a VM exit and entry, without the hypervisor's work.
    VmTransition = "vm_transition" in Cycles,
    /// Cost of a physical interrupt while a guest runs: exit, acknowledge, owner lookup, entry.
    ExitExternalInterrupt = "exit_external_interrupt" in Cycles,
    /// Cost of an EOI write whose instruction is fetched, decoded and emulated.
    EoiEmulated = "eoi_emulated" in Cycles,
    /// Cost of an EOI write that is handled by the exit qualification alone.
    EoiFast = "eoi_fast" in Cycles,
    /// Cost of fetching and decoding the EOI instruction, in addition to [`CostConstant::EoiFast`].
    EoiFetch = "eoi_fetch" in Cycles,
    /// Cost of an access to the APIC page other than an EOI write, with the instruction fetched, decoded and emulated.
    ExitApicOther = "exit_apic_other" in Cycles,
    /// Cost of a write to an MSI-X table that the hypervisor handles.
    ExitMsixMmio = "exit_msix_mmio" in Cycles,
    /// Cost of forwarding an access to emulated memory to a device model: the hypervisor's part.
    ExitOtherMmio = "exit_other_mmio" in Cycles,
    /// Cost of one device access in the device model, in the service domain's kernel and user space.
    DeviceModel = "device_model" in Cycles,
    /// Cost of a hypercall by a hardware-virtualized guest.
    HypercallHvm = "hypercall_hvm" in Cycles,
    /// Cost of a guest that goes idle, and of its return when woken.
    ExitHlt = "exit_hlt" in Cycles,
    /// Cost of a VM exit to inject an interrupt that the guest could not take before.
    ExitInterruptWindow = "exit_interrupt_window" in Cycles,
    /// Cost of an access to an intercepted model-specific register.
    ExitMsr = "exit_msr" in Cycles,
    /// Cost of a VM exit without a constant of its own.
    ExitOther = "exit_other" in Cycles,
    /// Cost of requesting an interrupt in a virtual APIC and injecting it at VM entry.
    Injection = "injection" in Cycles,
    /// Cost of a timer interrupt of the hypervisor, including its scheduler.
    HypervisorTick = "hypervisor_tick" in Cycles,
    /// Cost of switching a processor thread to another virtual CPU.
    SwitchDirect = "switch_direct" in Cycles,
    /// Cost of refilling caches and TLB after a switch to another virtual CPU, without TLB entries that the switch flushes.
    SwitchIndirect = "switch_indirect" in Cycles,
    /// Cost of a hypercall by a paravirtualized guest.
    HypercallPv = "hypercall_pv" in Cycles,
    /// Cost of sending an event on an event channel.
    EventSend = "event_send" in Cycles,
    /// Addition to [`CostConstant::EventSend`] if the receiver's virtual CPU runs on another thread.
    EventRemote = "event_remote" in Cycles,
    /// Addition to [`CostConstant::EventSend`] if the receiver's virtual CPU was blocked.
    EventBlocked = "event_blocked" in Cycles,
    /// Cost of entering and leaving a paravirtualized guest's event handler.
    EventUpcall = "event_upcall" in Cycles,
    /// Cost of mapping and unmapping a granted page.
    GrantMapUnmap = "grant_map_unmap" in Cycles,
    /// Cost of copying to or from a granted page, without the bytes.
    GrantCopy = "grant_copy" in Cycles,
    /// Cost of exchanging the ownership of a page.
    PageFlip = "page_flip" in Cycles,
    /// Cost of exchanging the ownership of a further page in the same multicall.
    PageFlipBatched = "page_flip_batched" in Cycles,
    /// Cost of copying bytes that are in the cache.
    CopyWarm = "copy_warm" in CyclesPerKilobyte,
    /// Cost of copying bytes that are not in the cache.
    CopyCold = "copy_cold" in CyclesPerKilobyte,
    /// Cost of forwarding a packet in the software bridge.
    Bridge = "bridge" in Cycles,
    /// Cost of raising and running a softirq.
    Softirq = "softirq" in Cycles,
    /// Cost of a packet in a split driver's back end, without copy, bridge, softirq and physical driver.
    Backend = "backend" in Cycles,
    /// Cost of a packet in a split driver's front end, including grants.
    Frontend = "frontend" in Cycles,
    /// Addition to a system call of a 64-bit paravirtualized guest: traps to Xen on the way in and out, without the TLB
    /// misses that they cause.
    PvSyscall = "pv_syscall" in Cycles,
    /// Cost of reading a device register.
    MmioRead = "mmio_read" in Cycles,
    /// Cost of writing a device register (posted).
    MmioWrite = "mmio_write" in Cycles,
    /// Cost of taking and leaving an interrupt in a kernel, without its handler.
    InterruptEntry = "interrupt_entry" in Cycles,
    /// Cost of a network driver's interrupt handler, which schedules a poll.
    InterruptHandler = "interrupt_handler" in Cycles,
    /// Cost of a periodic timer interrupt in a kernel.
    GuestTick = "guest_tick" in Cycles,
    /// Cost of the service domain's daemons and timers, per tick.
    ServiceTick = "service_tick" in Cycles,
    /// Cost of beginning and ending a poll of the receive ring.
    NapiEntry = "napi_entry" in Cycles,
    /// Cost of a received packet in the network driver.
    RxDriver = "rx_driver" in Cycles,
    /// Cost of the socket buffer of a received packet.
    RxSkb = "rx_skb" in Cycles,
    /// Cost of IP and TCP receive processing of a packet.
    RxTcp = "rx_tcp" in Cycles,
    /// Cost of IP and UDP receive processing of a packet.
    RxUdp = "rx_udp" in Cycles,
    /// Addition to [`CostConstant::RxUdp`] in a kernel that accounts for datagram memory under the socket lock.
    RxUdpAccounting = "rx_udp_accounting" in Cycles,
    /// Cost of waking the receiving program, and of its system call.
    RxWake = "rx_wake" in Cycles,
    /// Cost of copying a received payload to the program; [`CostConstant::CopyCold`] applies if the buffer has left the
    /// last-level cache.
    RxCopy = "rx_copy" in CyclesPerKilobyte,
    /// Cost of sending a TCP acknowledgement.
    RxAck = "rx_ack" in Cycles,
    /// Cost of a program's system call to send, without copy and protocol.
    TxSyscall = "tx_syscall" in Cycles,
    /// Cost of passing a buffer to send through protocol and queue, segmented or not.
    TxStack = "tx_stack" in Cycles,
    /// Cost of describing a buffer to the card, and of completing the sent buffer later.
    TxDriver = "tx_driver" in Cycles,
    /// Cost of switching between processes of one kernel.
    ContextSwitch = "context_switch" in Cycles,
    /// Cost of a request through a kernel's block layer and driver, and of its later completion.
    BlockRequest = "block_request" in Cycles,
    /// Number of timer writes per 1,000 times that a tickless kernel goes idle or wakes.
    TimerWrites = "timer_writes" in Permille,
    /// Cost of a descriptor that the hypervisor checks and enqueues for a guest (CDNA).
    EnqueueCheck = "enqueue_check" in Cycles,
    /// Cost of a TCP segment that a front end inspects for merging.
    MergeSegment = "merge_segment" in Cycles,
    /// Cost of looking up and pinning a granted page's machine address without mapping it.
    GrantAddress = "grant_address" in Cycles,
    /// Cost of software segmentation of a packet, per segment: headers and buffer.
    CutSegment = "cut_segment" in Cycles,
    /// Cost of IP and TCP receive processing of an acknowledgement without payload.
    RxPureAck = "rx_pure_ack" in Cycles,
    /// Cycles that other virtual CPUs must run on a thread to displace all of a virtual CPU's state from the core's
    /// caches and TLB.
    SwitchDisplacement = "switch_displacement" in Cycles,
    /// Translations of pages of 4 KB that the processor's TLB holds.
    TlbSmall = "tlb_small" in Count,
    /// Translations of large pages that the processor's TLB holds.
    TlbLarge = "tlb_large" in Count,
    /// Cost of a page-table walk after a TLB miss.
    TlbWalk = "tlb_walk" in Cycles,
    /// Cost of a walk in two dimensions: the guest's table, and the hypervisor's for its addresses.
    TlbWalkNested = "tlb_walk_nested" in Cycles,
    /// Pages that a kernel and its program use again at each packet; 0 if other costs include the TLB's misses.
    PathHotPages = "path_hot_pages" in Pages,
    /// Pages that are new at each packet; 0 if other costs include the TLB's misses.
    PathStreamedPages = "path_streamed_pages" in Pages,
    /// Pages that a kernel uses in a system call; 0 if other costs include the TLB's misses.
    CallPages = "call_pages" in Pages,
    /// Cost of refilling the first-level caches after a VM exit.
    ExitPollution = "exit_pollution" in Cycles,
    /// Memory that a virtual CPU uses again after each switch to it: code, data and buffers; 0 if the displacement of
    /// working sets is not modelled.
    WorkingSet = "working_set" in Kibibytes,
    /// Cost of reading a whole working set from memory, after other virtual CPUs displaced it from the cache.
    SwitchReload = "switch_reload" in Cycles,
    /// Cost of converting an event to an interrupt of a platform device, for a hardware-virtualized guest.
    EventConvert = "event_convert" in Cycles,
    /// Cost of an exit whose access KVM passes to an eventfd.
    IoeventfdExit = "ioeventfd_exit" in Cycles,
    /// Cost of signalling an irqfd, which makes a guest's interrupt pending.
    IrqfdSignal = "irqfd_signal" in Cycles,
    /// Cost of a posted interrupt's delivery to a running guest, without an exit.
    PostedInterrupt = "posted_interrupt" in Cycles,
    /// Cost of a packet that a thread of the host moves between a card's rings and the network, without its payload's copy.
    HostPacket = "host_packet" in Cycles,
    /// Translations that an IOTLB holds.
    IotlbEntries = "iotlb_entries" in Count,
    /// Ways of an IOTLB's sets.
    IotlbWays = "iotlb_ways" in Count,
    /// Time of loading one page-table entry after a miss of the IOTLB.
    IotlbLoad = "iotlb_load" in Nanoseconds,
    /// Page-table walks that an IOMMU makes at a time.
    IotlbWalks = "iotlb_walks" in Count,
}

impl CostConstant {
    /// Constants that are the cost of a whole VM exit: the processor's transition plus the hypervisor's work.
    pub const EXITS: [CostConstant; 12] = [
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
        CostConstant::IoeventfdExit,
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
            CostConstant::TlbLarge => {
                Some("the constant is only a bound: the few large pages of a packet's path fit")
            }
            _ => None,
        }
    }
}
