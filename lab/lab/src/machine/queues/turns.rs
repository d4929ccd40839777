//! Executes steps of the guest's processors, and of the service domain's process that carries out posted
//! register writes.

use super::{DoorbellPath, GuestProcessor, MultiqueueCore, MultiqueueEvent, MultiqueueMachine};
use crate::machine::parts::avf::VF;
use crate::machine::parts::avf::pair::VfQueuePairView;
use crate::machine::parts::platform::GuestPlatform;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};
use hypervisor::exit::EoiPath;

impl MultiqueueMachine {
    pub(super) fn execute_guest(&mut self, index: usize, mut step: VcpuStep, core: &mut MultiqueueCore) {
        let began = step.began();
        let Self { chipset, port, driver, doorbell, doorbells, processors, cache, .. } = self;
        let GuestProcessor { kernel, hardware, messages, awaits, .. } = &mut processors[index];
        // A kernel that polls its rings finds the frames that have arrived by now.
        let polls = kernel.polls_device() || hardware.controller.deliverable(&mut chipset.channels);
        let mut next = if polls { Some(port.sync(began, chipset)) } else { None };
        let device = VfQueuePairView {
            port,
            driver: Some(driver),
            doorbell: *doorbell,
            doorbells,
            messages: Vec::new(),
            touched: false,
        };
        let mut env = GuestPlatform {
            step: &mut step,
            hardware,
            chipset,
            device,
            table: &core.table,
            eoi: EoiPath::Fast,
            cache: (0, cache),
        };
        let then = kernel.step(&mut env);
        let (touched, sent) = (env.device.touched, env.device.messages);
        let done = step.now();
        let timer = core::mem::take(&mut hardware.timer_set);
        let interrupt_pending =
            then == VcpuStepOutcome::Block && hardware.controller.deliverable(&mut chipset.channels);
        if hardware.waits {
            *awaits = sent.len();
        }
        let waits = hardware.waits;
        let count = sent.len();
        messages.extend(sent);
        core.finish(step, if waits { VcpuStepOutcome::Block } else { then });
        (0..count).for_each(|_| {
            core.schedule(done, MultiqueueEvent::Forwarded(index));
        });
        if timer {
            self.set_timer(index, core);
        }
        // Its timer may have expired while it was about to sleep.
        if interrupt_pending {
            self.wake(index, done, core);
        }
        if touched {
            next = Some(self.port.sync(began, &mut self.chipset));
        }
        if let Some(next) = next {
            self.settle(next, began, core);
        }
    }

    /// Makes a pending register write for a guest processor, and sends an answer if the processor waits for
    /// one.
    pub(super) fn execute_courier(&mut self, mut step: VcpuStep, core: &mut MultiqueueCore) {
        let Some(processor) = self.courier.requests.pop_front() else {
            return core.finish(step, VcpuStepOutcome::Block);
        };
        let table = &core.table;
        step.charge(CycleCategory::EventChannel, table[CostConstant::EventUpcall]);
        step.charge(CycleCategory::DeviceModel, table[CostConstant::DeviceModel]);
        step.charge(CycleCategory::Driver, table[CostConstant::MmioWrite]);
        let answers = self.doorbell == DoorbellPath::Answered;
        if answers {
            step.charge(
                CycleCategory::EventChannel,
                table[CostConstant::EventSend] + table[CostConstant::EventRemote],
            );
        }
        if let Some((offset, value)) = self.processors[processor].messages.pop_front() {
            self.port.card.write(VF, offset, value);
            self.courier.written += 1;
        }
        let (began, done) = (step.began(), step.now());
        let then =
            if self.courier.requests.is_empty() { VcpuStepOutcome::Block } else { VcpuStepOutcome::Continue };
        core.finish(step, then);
        if answers {
            core.schedule(done, MultiqueueEvent::Answered(processor));
        }
        self.sync(began, core);
    }
}
