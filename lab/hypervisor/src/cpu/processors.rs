//! Processors of a machine: their number, their clock, and the costs of sharing a thread.

use sim::{Frequency, VirtualDuration};

use crate::cost::{CostConstant, CostTable};

/// Configuration of a machine's processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorConfig {
    /// Number of physical cores of the machine.
    pub cores: u16,
    /// Sibling threads per core; at least 1.
    pub threads_per_core: u16,
    /// Clock frequency of all cores of the machine.
    pub clock: Frequency,
    /// Contention factor: thousandths of a cycle per cycle of work while a sibling thread is busy; at least 1,000.
    pub contention_permille: u64,
    /// Cycles of the hypervisor to switch a thread to another virtual CPU.
    pub switch: u64,
    /// Cycles a switched virtual CPU takes to refill its caches, without TLB entries that the switch flushes.
    pub refill: u64,
    /// Cycles of other virtual CPUs on a thread after which a returning virtual CPU pays the whole refill; fewer cycles
    /// cost a part of it. With 0, every switch costs the whole refill.
    pub displacement: u64,
    /// KiB that a virtual CPU uses again after each switch to it; 0 if working sets are not modelled.
    pub working_set: u64,
    /// KiB of the cache that the virtual CPUs of a thread share.
    pub cache: u64,
    /// Cycles to read a whole working set from memory, after other virtual CPUs displaced it from the cache.
    pub reload: u64,
    /// Longest time that a virtual CPU runs while others wait for its thread.
    pub slice: VirtualDuration,
}

impl ProcessorConfig {
    /// Creates the processor configuration of a cost table, with time slices of 30 ms (Xen's credit scheduler).
    pub fn from_table(table: &CostTable, cores: u16, threads_per_core: u16) -> ProcessorConfig {
        ProcessorConfig {
            cores,
            threads_per_core,
            clock: Frequency::from_hertz(table[CostConstant::ClockHertz]),
            contention_permille: if threads_per_core > 1 {
                table[CostConstant::SmtContention]
            } else {
                1_000
            },
            switch: table[CostConstant::SwitchDirect],
            refill: table[CostConstant::SwitchIndirect],
            displacement: table[CostConstant::SwitchDisplacement],
            working_set: table[CostConstant::WorkingSet],
            cache: table[CostConstant::LastLevelCache],
            reload: table[CostConstant::SwitchReload],
            slice: VirtualDuration::from_millis(30),
        }
    }
}
