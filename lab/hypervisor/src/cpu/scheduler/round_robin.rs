//! Round-robin scheduler with time slices in cycles; it uses no clock.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Scheduler, SchedulingParameters, WakeCause};
use crate::cpu::{HardwareThreadId, VcpuId};

/// Round-robin scheduler of virtual CPUs. A virtual CPU runs until it blocks or has used up its time slice; then the
/// next in the queue runs. A woken virtual CPU goes to the end of the queue, unless it is the favoured one.
#[derive(Debug)]
pub struct RoundRobinScheduler {
    slice: u64,
    queues: Vec<RoundRobinQueue>,
    /// Virtual CPU that precedes all others whenever it is ready.
    favoured: Option<VcpuId>,
}

#[derive(Debug, Default)]
struct RoundRobinQueue {
    ready: VecDeque<VcpuId>,
    members: usize,
    /// Cycles that the virtual CPU has used of its current time slice.
    used: u64,
}

impl RoundRobinScheduler {
    /// Creates a scheduler with time slices of `slice` cycles, each extended to the end of the virtual CPU's step in
    /// which the slice is used up.
    pub fn new(slice: u64) -> RoundRobinScheduler {
        RoundRobinScheduler { slice, queues: Vec::new(), favoured: None }
    }

    /// Gives a virtual CPU precedence over all others of its thread, from the end of the current step.
    pub fn favour(&mut self, vcpu: VcpuId) {
        self.favoured = Some(vcpu);
    }
}

impl Scheduler for RoundRobinScheduler {
    fn add_thread(&mut self) {
        self.queues.push(RoundRobinQueue::default());
    }

    fn add_vcpu(&mut self, thread: HardwareThreadId, _: VcpuId, _: SchedulingParameters) {
        let queue = &mut self.queues[thread.index()];
        queue.members += 1;
        queue.ready.reserve(queue.members);
    }

    fn woken(&mut self, thread: HardwareThreadId, vcpu: VcpuId, _: WakeCause) {
        self.queues[thread.index()].ready.push_back(vcpu);
    }

    fn continues(&mut self, thread: HardwareThreadId, vcpu: VcpuId, cycles: u64, _: bool) {
        let queue = &mut self.queues[thread.index()];
        queue.used += cycles;
        if queue.used < self.slice {
            queue.ready.push_front(vcpu);
        } else {
            queue.used = 0;
            queue.ready.push_back(vcpu);
        }
    }

    fn blocked(&mut self, thread: HardwareThreadId, _: VcpuId, _: u64) {
        self.queues[thread.index()].used = 0;
    }

    fn pick(&mut self, thread: HardwareThreadId, _: u64) -> Option<VcpuId> {
        let ready = &mut self.queues[thread.index()].ready;
        let favoured = self.favoured.and_then(|first| ready.iter().position(|vcpu| *vcpu == first));
        match favoured {
            Some(at) => ready.remove(at),
            None => ready.pop_front(),
        }
    }

    fn has_ready(&self, thread: HardwareThreadId) -> bool {
        !self.queues[thread.index()].ready.is_empty()
    }
}
