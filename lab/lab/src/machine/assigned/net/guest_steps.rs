//! Steps of the guest: interrupts or events, polls of the card or of the front end, acknowledgements, and the program's
//! reads.

use super::{NetworkCore, NicMachine, PER_ACK};
use crate::machine::assigned::{DeviceAccessMode, ServiceAndGuestDomains};
use guest::packet::TCP_PAYLOAD;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};

impl NicMachine {
    pub(super) fn execute_guest(&mut self, mut step: VcpuStep, core: &mut NetworkCore) {
        let mut calls = false;
        if self.guest.interrupted {
            self.guest.interrupted = false;
            self.guest.polls = true;
            self.domains.guest_takes(&mut step, &core.table);
        } else if self.guest.polls {
            calls = self.guest_polls(&mut step, core);
        } else if self.guest.unread > 0 {
            self.guest_reads(&mut step, core);
        }
        let guest = &self.guest;
        let works = guest.interrupted || guest.polls || guest.unread > 0;
        let then = if works { VcpuStepOutcome::Continue } else { VcpuStepOutcome::Block };
        if calls {
            step.charge(CycleCategory::Hypercall, core.table[CostConstant::HypercallPv]);
            ServiceAndGuestDomains::send(core, self.domains.service, &mut step);
        }
        if then == VcpuStepOutcome::Block {
            self.domains.guest_sleeps(&mut step, &core.table);
        }
        let done = step.now();
        core.finish(step, then);
        if calls {
            self.service.called = true;
            core.wake(self.domains.service, done);
        }
    }

    /// Polls the network card or the front end for the guest. Returns `true` if the service domain must be notified of
    /// new acknowledgements.
    fn guest_polls(&mut self, step: &mut VcpuStep, core: &mut NetworkCore) -> bool {
        let is_direct = self.domains.path == DeviceAccessMode::Direct;
        let frames = if is_direct {
            self.poll(step, core)
        } else {
            let frames = self.guest.inbox.min(self.card.turn);
            step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
            step.charge(CycleCategory::Driver, core.table[CostConstant::NapiEntry]);
            step.charge(CycleCategory::Driver, frames * core.table[CostConstant::Frontend]);
            self.guest.inbox -= frames;
            self.guest.polls = self.guest.inbox > 0;
            frames
        };
        let (guest, table) = (&mut self.guest, &core.table);
        step.charge(
            CycleCategory::Kernel,
            frames * (table[CostConstant::RxSkb] + table[CostConstant::RxTcp]),
        );
        guest.unread += frames;
        guest.unacknowledged += frames;
        let acks = guest.unacknowledged / PER_ACK;
        guest.unacknowledged %= PER_ACK;
        guest.acknowledged += acks;
        step.charge(CycleCategory::Kernel, acks * table[CostConstant::RxAck]);
        let sending = if is_direct { CostConstant::TxDriver } else { CostConstant::Frontend };
        step.charge(CycleCategory::Driver, acks * table[sending]);
        if is_direct {
            step.charge(CycleCategory::Driver, u64::from(acks > 0) * table[CostConstant::MmioWrite]);
            self.left += acks;
            return false;
        }
        // A back end with pending acknowledgements checks for more before it sleeps.
        let calls = guest.acks == 0 && acks > 0;
        guest.acks += acks;
        calls && !self.service.called
    }

    /// Makes the guest's program read frames with a system call, which opens the stream's window.
    fn guest_reads(&mut self, step: &mut VcpuStep, core: &mut NetworkCore) {
        let frames = self.guest.unread.min(self.card.read);
        step.charge(CycleCategory::User, core.table[CostConstant::RxWake]);
        for _ in 0..frames {
            let is_near = self.guest.buffers.touch(&mut self.cache, TCP_PAYLOAD as u64);
            let rate = if is_near { CostConstant::RxCopy } else { CostConstant::CopyCold };
            step.charge(CycleCategory::User, core.table.bytes(rate, TCP_PAYLOAD as u64));
        }
        self.bulk.count(self.guest.read, step.began());
        self.guest.unread -= frames;
        self.guest.read += frames;
        self.await_frames(step.began(), core);
    }
}
