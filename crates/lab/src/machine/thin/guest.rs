//! Guest of the thin-hypervisor machine. Interrupts and polls come first. Its receiver and the busy program share the
//! rest as under Linux's fair scheduler: the one that ran less runs next, and a woken sleeper lags by at most one
//! latency.

use super::{Core, Host};
use guest::packet::TCP_PAYLOAD;
use hypervisor::account::{Category, Charge};
use hypervisor::cost::Cost;
use hypervisor::cpu::{AfterStep, Step, VcpuId};
use sim::Span;

/// Period of the guest's timer tick.
pub(super) const TICK: Span = Span::from_millis(1);
/// Frames per poll of the ring, and frames per turn of the receiver.
const POLL: u64 = 64;
const READ: u64 = 16;
/// Cycles of a turn of the busy program: short, since an interrupt preempts it at once.
const TURN: u64 = 4_000;
/// Cycles by which a woken sleeper may lag, at most: 3 ms at 3 GHz, half a latency.
const SLEEPER: u64 = 9_000_000;
/// Category that the busy program's cycles are charged to; nothing else of this guest uses it.
pub(super) const BUSY: Category = Category::DeviceModel;

/// State of the thin-hypervisor machine's guest.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) vcpu: VcpuId,
    is_busy: bool,
    /// The guest has disabled interrupts, because it runs a handler.
    pub(super) has_disabled_interrupts: bool,
    pub(super) interrupted: bool,
    /// The last poll of the ring used up its budget.
    polls: bool,
    pub(super) ticks: u32,
    /// Numbers of frames polled, of frames read by the program, and of bytes read.
    pub(super) polled: u64,
    pub(super) read_frames: u64,
    pub(super) read: u64,
    /// Cycles that the receiver and the busy program ran.
    receiver: u64,
    busy: u64,
}

impl Guest {
    pub(super) fn new(vcpu: VcpuId, is_busy: bool) -> Self {
        Self {
            vcpu,
            is_busy,
            has_disabled_interrupts: false,
            interrupted: false,
            polls: false,
            ticks: 0,
            polled: 0,
            read_frames: 0,
            read: 0,
            receiver: 0,
            busy: 0,
        }
    }

    /// Returns the number of frames on the ring, of `arrived` frames in total.
    pub(super) fn on_ring(&self, arrived: u64) -> u64 {
        arrived.saturating_sub(self.polled)
    }

    fn unread(&self) -> u64 {
        self.polled - self.read_frames
    }
}

impl Host {
    pub(super) fn execute_guest(&mut self, mut step: Step, core: &mut Core) {
        let began = step.began();
        self.count_arrivals(began);
        let (guest, table) = (&mut self.guest, &core.table);
        guest.has_disabled_interrupts = false;
        let mut answers = false;
        if guest.ticks > 0 {
            guest.ticks -= 1;
            step.charge(Category::Kernel, table[Cost::InterruptEntry] + table[Cost::GuestTick]);
        } else if guest.interrupted {
            guest.interrupted = false;
            guest.has_disabled_interrupts = true;
            step.charge(Category::Kernel, table[Cost::InterruptEntry]);
            step.charge(Category::Driver, table[Cost::InterruptHandler]);
            guest.polls = true;
        } else if guest.polls {
            step.charge(Category::Kernel, table[Cost::Softirq]);
            step.charge(Category::Driver, table[Cost::NapiEntry]);
            let frames = guest.on_ring(self.wire.bulk.arrived()).min(POLL);
            let each = table[Cost::RxSkb] + table[Cost::RxTcp];
            step.charge(Category::Driver, frames * table[Cost::RxDriver]);
            step.charge(Category::Kernel, frames * each + frames / 2 * table[Cost::RxAck]);
            if guest.unread() == 0 && frames > 0 {
                guest.receiver = guest.receiver.max(guest.busy.saturating_sub(SLEEPER));
            }
            guest.polled += frames;
            guest.polls = frames == POLL;
        } else if guest.unread() > 0 && (!guest.is_busy || guest.receiver <= guest.busy) {
            let frames = guest.unread().min(READ);
            step.charge(Category::User, table[Cost::RxWake] + frames * table[Cost::TxSyscall]);
            let bytes = frames * TCP_PAYLOAD as u64;
            step.charge(Category::User, table.bytes(Cost::CopyCold, bytes));
            guest.receiver +=
                table[Cost::RxWake] + frames * table[Cost::TxSyscall] + table.bytes(Cost::CopyCold, bytes);
            guest.read_frames += frames;
            guest.read += bytes;
            answers = true;
        } else if guest.is_busy {
            step.charge(BUSY, TURN);
            guest.busy += TURN;
        }
        let works =
            guest.ticks > 0 || guest.interrupted || guest.polls || guest.unread() > 0 || guest.is_busy;
        let then = if works { AfterStep::Continue } else { AfterStep::Block };
        if answers && self.answers() {
            step.charge(Category::Kernel, core.table[Cost::TxStack]);
            step.charge(Category::Driver, core.table[Cost::TxDriver] + core.table[Cost::MmioWrite]);
            self.answer(step.now(), core);
        }
        let done = step.now();
        core.finish(step, then);
        if !self.guest.polls {
            self.await_frames(done, core);
        }
    }
}
