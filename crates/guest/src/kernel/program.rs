//! The program: it reads what its socket holds. A few reads are one step, so that interrupts come in between.

use super::Kernel;
use super::spec::Load;
use crate::device::Device;
use crate::platform::Platform;
use hypervisor::account::Category;
use hypervisor::cost::Cost;

/// Packets that one step of the program reads.
const READS: u32 = 8;

impl<D> Kernel<D> {
    /// Reads a few packets; the program sleeps when there are none left.
    pub(super) fn run<P: Platform>(&mut self, platform: &mut P)
    where
        D: Device<P>,
    {
        let per_call = platform.cost(Cost::RxWake);
        let mut calls = 0;
        for _ in 0..READS {
            let Some((bytes, pieces)) = self.socket.pop() else { break };
            self.counters.read_bytes += bytes;
            self.counters.read_packets += 1;
            // Each piece is in a buffer of its own.
            for piece in 0..u64::from(pieces) {
                let before = bytes * piece / u64::from(pieces);
                platform.copy_to_program(bytes * (piece + 1) / u64::from(pieces) - before);
            }
            calls += 1;
        }
        let calls = match self.spec.load {
            Load::Udp | Load::RequestResponse => calls,
            // A stream's reader takes all that is there.
            Load::Tcp => 1,
        };
        platform.charge(Category::User, calls * per_call);
        for _ in 0..calls {
            platform.system_call();
        }
        if self.spec.load == Load::RequestResponse {
            self.respond(platform, calls);
        }
        if self.socket.is_empty() && self.due == 0 {
            self.runnable = false;
            // A sender that was told of little room must hear that there is more.
            if self.spec.load == Load::Tcp && self.stream.window < self.socket.capacity() / 2 {
                self.acknowledge(platform);
            }
            platform.charge(Category::Kernel, platform.cost(Cost::ContextSwitch));
        }
    }
}
