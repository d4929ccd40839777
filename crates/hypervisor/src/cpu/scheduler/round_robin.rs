//! Round robin. Left out: time, of which a slice of cycles is all it knows.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Scheduler, Share};
use crate::cpu::{ThreadId, VcpuId};

/// Round robin: whoever runs goes on until it blocks or has used its slice, then the next in line has its turn.
/// A virtual CPU that wakes up goes to the end of the line, unless it is the favoured one.
#[derive(Debug)]
pub struct RoundRobin {
    slice: u64,
    lines: Vec<Line>,
    /// Goes before all others whenever it is ready.
    favoured: Option<VcpuId>,
}

#[derive(Debug, Default)]
struct Line {
    ready: VecDeque<VcpuId>,
    members: usize,
    /// What the one who has its turn used of its slice.
    used: u64,
}

impl RoundRobin {
    /// Turns of `slice` cycles, to the end of the step in which they are used up.
    pub fn new(slice: u64) -> RoundRobin {
        RoundRobin { slice, lines: Vec::new(), favoured: None }
    }

    /// Lets one virtual CPU go before all others of its thread, at the end of the step that runs.
    pub fn favour(&mut self, vcpu: VcpuId) {
        self.favoured = Some(vcpu);
    }
}

impl Scheduler for RoundRobin {
    fn add_thread(&mut self) {
        self.lines.push(Line::default());
    }

    fn add_vcpu(&mut self, thread: ThreadId, _: VcpuId, _: Share) {
        let line = &mut self.lines[thread.index()];
        line.members += 1;
        line.ready.reserve(line.members);
    }

    fn woken(&mut self, thread: ThreadId, vcpu: VcpuId) {
        self.lines[thread.index()].ready.push_back(vcpu);
    }

    fn continues(&mut self, thread: ThreadId, vcpu: VcpuId, cycles: u64, _: bool) {
        let line = &mut self.lines[thread.index()];
        line.used += cycles;
        if line.used < self.slice {
            line.ready.push_front(vcpu);
        } else {
            line.used = 0;
            line.ready.push_back(vcpu);
        }
    }

    fn blocked(&mut self, thread: ThreadId, _: VcpuId, _: u64) {
        self.lines[thread.index()].used = 0;
    }

    fn pick(&mut self, thread: ThreadId, _: u64) -> Option<VcpuId> {
        let ready = &mut self.lines[thread.index()].ready;
        let favoured = self.favoured.and_then(|first| ready.iter().position(|vcpu| *vcpu == first));
        match favoured {
            Some(at) => ready.remove(at),
            None => ready.pop_front(),
        }
    }

    fn has_ready(&self, thread: ThreadId) -> bool {
        !self.lines[thread.index()].ready.is_empty()
    }
}
