//! Sources that several cells of the cost table share.

/// Source of the Opteron's costs of receiving a segment.
pub(super) const OPTERON_RECEIVE: &str = "a part of the 11 K cycles a segment that 2,508 Mb/s take on a Pentium 4 (Menon et al., ATC 2006), at half of its cycles";

/// Source of the 2.4 GHz Xeon's costs of receiving a segment.
pub(super) const PRESTONIA_RECEIVE: &str =
    "a part of the 11 K cycles a segment that 2,508 Mb/s take natively (Menon et al., ATC 2006)";

/// Source of the Xeon E5405's costs of work in its core.
pub(super) const HARPERTOWN_CORE: &str = "engineering estimate: nehalem's value, because a Core microarchitecture's cycles are near those of its successor";

/// Source of the Xeon E5405's costs of work in memory.
pub(super) const HARPERTOWN_BUS: &str =
    "engineering estimate: memory is behind a front-side bus and a hub, at a clock of 2.0 GHz";

/// Source of the 2.4 GHz Xeon's costs of traps, locks and misses.
pub(super) const NETBURST: &str = "engineering estimate: twice the value of nehalem, because a deep pipeline pays for traps, locks and misses";

/// Source of the displacement of machines that refill all state at each switch.
pub(super) const FULL_REFILL: &str =
    "zero, because the values of the table's paper were fitted with a full refill at each switch";

/// Source of the working sets of machines whose cores refill from a large third-level cache.
pub(super) const SHARED_CACHE: &str =
    "zero, because working sets stay in a third-level cache, and `switch_indirect` is the refill from there";

/// Source of the cost of a page whose owner changes in a multicall with other pages.
pub(super) const PAGE_OF_A_MULTICALL: &str = "engineering estimate: four entries of a multicall (new page, owner, machine address, page table) at half of `hypercall_pv` each, without a trap and a TLB flush of its own";

/// Source of the pages of a packet's path where the costs of its work include the TLB's misses.
pub(super) const TLB_INCLUDED: &str =
    "zero, because the costs of the guest's own work and of a switch include the TLB's misses";

/// Source of the traps of a system call of a 64-bit paravirtualized guest.
pub(super) const PV_TRAPS: &str = "engineering estimate: two entries into Xen, a bounced call and a hypercall to return, with a load of the page table each; without handlers, so below two of `hypercall_pv`";
