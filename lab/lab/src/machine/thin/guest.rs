//! Guest of the thin-hypervisor machine. Interrupts and polls come first. Its receiver and the busy program share the
//! rest as under Linux's fair scheduler: the one that ran less runs next, and a woken sleeper lags by at most one
//! latency.

use super::{ThinHypervisorCore, ThinHypervisorMachine, ThinHypervisorProperties};
use guest::packet::TCP_PAYLOAD;
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{VcpuId, VcpuStep, VcpuStepOutcome};

/// Cycles of a turn of the guest's busy program: short, since an interrupt preempts it at once.
const TURN: u64 = 4_000;
/// Maximum cycles by which a woken receiver may lag behind the busy program: 3 ms at 3 GHz, half a scheduler latency.
const SLEEPER: u64 = 9_000_000;
/// Cycle category that only the guest's busy program is charged to.
pub(super) const BUSY: CycleCategory = CycleCategory::DeviceModel;

/// State of the thin hypervisor's guest: pending interrupts, received frames, and cycles of its two programs.
#[derive(Debug)]
pub(super) struct ThinHypervisorGuest {
    pub(super) vcpu: VcpuId,
    is_busy: bool,
    /// The guest has disabled interrupts, because it runs an interrupt handler.
    pub(super) has_disabled_interrupts: bool,
    pub(super) interrupted: bool,
    /// The last poll of the receive ring used up its budget of frames.
    polls: bool,
    pub(super) ticks: u32,
    /// Number of frames that the guest took from the receive ring.
    pub(super) polled: u64,
    /// Number of frames that the guest's receiver read.
    pub(super) read_frames: u64,
    /// Number of payload bytes that the guest's receiver read.
    pub(super) read: u64,
    /// Cycles that the guest's receiver ran.
    receiver: u64,
    /// Cycles that the guest's busy program ran.
    busy: u64,
}

impl ThinHypervisorGuest {
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

    /// Returns the number of frames that wait on the receive ring, of `arrived` frames in total.
    pub(super) fn on_ring(&self, arrived: u64) -> u64 {
        arrived.saturating_sub(self.polled)
    }

    fn unread(&self) -> u64 {
        self.polled - self.read_frames
    }

    /// Runs the guest's receiver for one turn, in which it reads at most `most` frames from its socket.
    fn read_turn(&mut self, most: u64, step: &mut VcpuStep, table: &CostTable) {
        let frames = self.unread().min(most);
        let bytes = frames * TCP_PAYLOAD as u64;
        let calls = table[CostConstant::RxWake] + frames * table[CostConstant::TxSyscall];
        let copies = table.bytes(CostConstant::CopyCold, bytes);
        step.charge(CycleCategory::User, calls);
        step.charge(CycleCategory::User, copies);
        self.receiver += calls + copies;
        self.read_frames += frames;
        self.read += bytes;
    }
}

impl ThinHypervisorMachine {
    pub(super) fn execute_guest(&mut self, mut step: VcpuStep, core: &mut ThinHypervisorCore) {
        let began = step.began();
        self.count_arrivals(began);
        let ThinHypervisorProperties { poll, read, .. } = self.properties;
        let (guest, table) = (&mut self.guest, &core.table);
        guest.has_disabled_interrupts = false;
        let mut answers = false;
        if guest.ticks > 0 {
            guest.ticks -= 1;
            step.charge(
                CycleCategory::Kernel,
                table[CostConstant::InterruptEntry] + table[CostConstant::GuestTick],
            );
        } else if guest.interrupted {
            guest.interrupted = false;
            guest.has_disabled_interrupts = true;
            step.charge(CycleCategory::Kernel, table[CostConstant::InterruptEntry]);
            step.charge(CycleCategory::Driver, table[CostConstant::InterruptHandler]);
            guest.polls = true;
        } else if guest.polls {
            step.charge(CycleCategory::Kernel, table[CostConstant::Softirq]);
            step.charge(CycleCategory::Driver, table[CostConstant::NapiEntry]);
            let frames = guest.on_ring(self.wire.bulk.arrived()).min(poll);
            let each = table[CostConstant::RxSkb] + table[CostConstant::RxTcp];
            step.charge(CycleCategory::Driver, frames * table[CostConstant::RxDriver]);
            step.charge(CycleCategory::Kernel, frames * each + frames / 2 * table[CostConstant::RxAck]);
            if guest.unread() == 0 && frames > 0 {
                guest.receiver = guest.receiver.max(guest.busy.saturating_sub(SLEEPER));
            }
            guest.polled += frames;
            guest.polls = frames == poll;
        } else if guest.unread() > 0 && (!guest.is_busy || guest.receiver <= guest.busy) {
            guest.read_turn(read, &mut step, table);
            answers = true;
        } else if guest.is_busy {
            step.charge(BUSY, TURN);
            guest.busy += TURN;
        }
        let works =
            guest.ticks > 0 || guest.interrupted || guest.polls || guest.unread() > 0 || guest.is_busy;
        let then = if works { VcpuStepOutcome::Continue } else { VcpuStepOutcome::Block };
        if answers && self.answers() {
            step.charge(CycleCategory::Kernel, core.table[CostConstant::TxStack]);
            step.charge(
                CycleCategory::Driver,
                core.table[CostConstant::TxDriver] + core.table[CostConstant::MmioWrite],
            );
            self.answer(step.now(), core);
        }
        let done = step.now();
        core.finish(step, then);
        if !self.guest.polls {
            self.await_frames(done, core);
        }
    }
}
