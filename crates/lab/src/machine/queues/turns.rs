//! Steps of the guest's processors, and of the process that carries out posted writes.

use super::{Core, Doorbell, Event, Host, Processor};
use crate::machine::parts::avf::VF;
use crate::machine::parts::avf::pair::PairView;
use crate::machine::parts::platform::Env;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::Cost;
use hypervisor::cpu::{AfterStep, Step};
use hypervisor::exit::EoiPath;

impl Host {
    pub(super) fn execute_guest(&mut self, index: usize, mut step: Step, core: &mut Core) {
        let began = step.began();
        let Self { chipset, port, driver, doorbell, doorbells, processors, cache, .. } = self;
        let Processor { kernel, hardware, messages, awaits, .. } = &mut processors[index];
        // A kernel that polls its rings finds the frames that have arrived by now.
        let polls = kernel.polls_device() || hardware.controller.deliverable(&mut chipset.channels);
        let mut next = if polls { Some(port.sync(began, chipset)) } else { None };
        let device = PairView {
            port,
            driver: Some(driver),
            doorbell: *doorbell,
            doorbells,
            messages: Vec::new(),
            touched: false,
        };
        let mut env =
            Env { step: &mut step, hardware, chipset, device, table: &core.table, eoi: EoiPath::Fast, cache };
        let then = kernel.step(&mut env);
        let (touched, sent) = (env.device.touched, env.device.messages);
        let done = step.now();
        let timer = core::mem::take(&mut hardware.timer_set);
        let interrupt_pending =
            then == AfterStep::Block && hardware.controller.deliverable(&mut chipset.channels);
        if hardware.waits {
            *awaits = sent.len();
        }
        let waits = hardware.waits;
        let count = sent.len();
        messages.extend(sent);
        core.finish(step, if waits { AfterStep::Block } else { then });
        (0..count).for_each(|_| {
            core.schedule(done, Event::Forwarded(index));
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

    /// Carries out a pending register write for a processor, and sends an answer if the processor waits for one.
    pub(super) fn execute_courier(&mut self, mut step: Step, core: &mut Core) {
        let Some(processor) = self.courier.requests.pop_front() else {
            return core.finish(step, AfterStep::Block);
        };
        let table = &core.table;
        step.charge(Category::EventChannel, table[Cost::EventUpcall]);
        step.charge(Category::DeviceModel, table[Cost::DeviceModel]);
        step.charge(Category::Driver, table[Cost::MmioWrite]);
        let answers = self.doorbell == Doorbell::Answered;
        if answers {
            step.charge(Category::EventChannel, table[Cost::EventSend] + table[Cost::EventRemote]);
        }
        if let Some((offset, value)) = self.processors[processor].messages.pop_front() {
            self.port.card.write(VF, offset, value);
            self.courier.written += 1;
        }
        let (began, done) = (step.began(), step.now());
        let then = if self.courier.requests.is_empty() { AfterStep::Block } else { AfterStep::Continue };
        core.finish(step, then);
        if answers {
            core.schedule(done, Event::Answered(processor));
        }
        self.sync(began, core);
    }
}
