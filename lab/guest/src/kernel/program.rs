//! The receiving program: reads packets from its socket. A simulated step is a few reads, so that interrupts
//! are taken between steps.

use super::KernelModel;
use super::spec::ProgramWorkload;
use crate::device::NetworkDevice;
use crate::platform::KernelPlatform;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;

/// Number of packets that the receiving program reads per simulated step.
const READS_PER_STEP: u32 = 8;

impl<D> KernelModel<D> {
    /// Reads a few packets from the program's socket. The program sleeps when no packet is left.
    pub(super) fn run<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        let per_call = platform.cost(CostConstant::RxWake);
        let mut calls = 0;
        for _ in 0..READS_PER_STEP {
            let Some((bytes, pieces)) = self.socket.pop() else { break };
            self.counters.read_bytes += bytes;
            self.counters.read_packets += 1;
            // Each piece is in its own buffer, so each is copied separately.
            let mut before = 0;
            for piece in 1..u64::from(pieces) {
                let end = bytes * piece / u64::from(pieces);
                platform.copy_to_program(end - before);
                before = end;
            }
            platform.copy_to_program(bytes - before);
            calls += 1;
        }
        let calls = match self.spec.load {
            ProgramWorkload::Udp | ProgramWorkload::RequestResponse => calls,
            // A stream's reader gets all pending bytes with one system call.
            ProgramWorkload::Tcp => 1,
        };
        platform.charge(CycleCategory::User, calls * per_call);
        for _ in 0..calls {
            platform.system_call();
        }
        if self.spec.load == ProgramWorkload::RequestResponse {
            self.respond(platform, calls);
        }
        if self.socket.is_empty() && self.due == 0 {
            self.runnable = false;
            // The last acknowledgement announced a small window, so the sender must learn of the free room.
            if self.spec.load == ProgramWorkload::Tcp && self.stream.window < self.socket.capacity() / 2 {
                self.acknowledge(platform);
            }
            platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::ContextSwitch));
        }
    }
}
