//! Resets of the card's functions: the state that each reset clears and keeps, and the functions that are notified. No
//! frame is in flight during a reset, because the card moves frames only in a poll.

use crate::board::clock::SystimClock;
use crate::board::timer::TcpTimer;
use crate::interrupt::ALL_VECTORS;
use crate::moderation::InterruptThrottle;
use crate::switch::PoolRates;
use crate::{Nic, mailbox};
use i82576::bits::dctl;
use i82576::mailbox::WORDS;
use i82576::register::{self as r, rx, rx_block, tx, tx_block};
use i82576::table::DecodedRegisterSet;
use i82576::{QueueIndex, VectorIndex, VfIndex, WorkCost, window};
use pcie::Function;
use plane::PortIndex;

const VF0: VfIndex = match VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
};

impl Nic {
    /// Carries out a function-level reset: of the function's configuration space and bus mastering, and of its registers.
    /// The PF's also removes all VFs. A VF's also clears its statistics and its mailbox memory.
    pub fn reset_function(&mut self, function: Function) {
        self.reset_space(function);
        match function {
            Function::Pf => self.reset_port(true),
            Function::Vf(n) => {
                if let Some(vf) = VfIndex::new(n).filter(|vf| vf.get() < self.state.owners.vfs) {
                    self.renew_vf(vf);
                }
            }
        }
    }

    /// Carries out a conventional reset (PERST#, hot reset): a function-level reset of the PF. It also resets the
    /// fields in configuration space that a function-level reset keeps. The NVM keeps its words.
    pub fn conventional_reset(&mut self) {
        self.reset_function(Function::Pf);
        self.state.spaces.reset();
    }

    /// Resets the port as the PF's CTRL.RST does: registers get their reset values, except a few that only `power_on`
    /// resets. Every VF reads RSTI until the PF writes CTRL_EXT.PFRSTD.
    pub(crate) fn reset_port(&mut self, power_on: bool) {
        self.state.interrupts.reset(&mut self.state.file, ALL_VECTORS);
        self.state.file.reset(power_on);
        if power_on {
            self.state.throttle = InterruptThrottle::new();
            self.state.io_address = 0;
            self.state.phy.reset();
            self.renew_link();
        }
        (self.state.clock, self.state.timer) = (SystimClock::default(), TcpTimer::default());
        self.state.load_address();
        // Reset enables queue 0 for firmware. While there are VFs the queue is VF 0's, and must not run.
        if self.state.owners.vfs > 0 {
            self.stop_queue(VF0.queue(0));
        }
        self.plane.pacing.reset();
        self.state.rates = PoolRates::default();
        self.load_storm();
        VfIndex::all().for_each(|vf| self.count_reset(vf));
        self.restart_queues();
        self.derived.stale = DecodedRegisterSet::ALL;
    }

    /// Resets a VF: by VFLR, by VTCTRL.RST or by the VF's own CTRL.RST. Also clears settings that silicon keeps (SRRCTL,
    /// TDWBAL, PSRTYPE): the next owner must not inherit buffer sizes and write-back addresses.
    pub(crate) fn reset_vf(&mut self, vf: VfIndex) {
        self.scratch.work = self.scratch.work + WorkCost::RESET;
        self.count_reset(vf);
        let vectors = window::VECTOR_BITS << vf.first_vector();
        self.state.interrupts.reset(&mut self.state.file, vectors);
        for local in 0..i82576::ids::VF_VECTORS as u8 {
            if let Some(vector) = VectorIndex::new(vf.first_vector() + local) {
                self.state.file.set(r::eitr(vector), 0);
                self.state.throttle.reset(vector);
            }
        }
        self.state.file.set(r::vtivar(vf), 0);
        self.state.file.set(r::vtivar_misc(vf), 0);
        if let Some(slot) = window::resolve(vf, r::vf::PSRTYPE) {
            self.state.file.set(slot.offset, 0);
        }
        for queue in [vf.queue(0), vf.queue(1)] {
            self.state.file.reset_range(rx_block(queue)..rx_block(queue) + 0x40);
            self.state.file.reset_range(tx_block(queue)..tx_block(queue) + 0x40);
            self.stop_queue(queue);
            self.restart_receive(queue);
            self.reset_transmit(queue);
        }
        let queues = 1u32 << vf.queue(0).get() | 1 << vf.queue(1).get();
        self.state.file.update(r::MDFB, queues, 0);
        if self.state.file.get(r::VFRE) & vf.bit() != 0 {
            self.derived.stale.add(DecodedRegisterSet::SWITCH);
        }
        for gate in [r::VFRE, r::VFTE] {
            self.state.file.update(gate, vf.bit(), 0);
        }
        mailbox::vf_reset(&mut self.state.file, &mut self.state.interrupts, vf);
    }

    /// Prepares a VF for a new owner: resets it, and clears its statistics and its mailbox memory. A reset by the driver
    /// keeps both. Its statistics are differences of wrapping counters, so a counter that restarts would add 2^32; and
    /// Linux igbvf reads the last reply in the mailbox again to check that the PF still lets it send.
    ///
    /// The debt of a pool with a transmit rate stays. Otherwise a guest could exceed its rate by resets.
    pub(super) fn renew_vf(&mut self, vf: VfIndex) {
        self.reset_vf(vf);
        self.state.file.reset_range(r::vf_block(vf)..r::vf_block(vf) + 0x100);
        self.state.file.reset_range(r::vmbmem(vf, 0)..r::vmbmem(vf, 0) + 4 * WORDS as u32);
    }

    /// Returns the cost of the resets since the last call.
    pub fn take_work(&mut self) -> WorkCost {
        core::mem::take(&mut self.scratch.work)
    }

    /// Counts a reset of a VF for the switch's tables.
    fn count_reset(&mut self, vf: VfIndex) {
        self.scratch.resets.count(PortIndex::of_field(vf.get().into()));
    }

    fn stop_queue(&mut self, queue: QueueIndex) {
        for control in [rx_block(queue) + rx::RXDCTL, tx_block(queue) + tx::TXDCTL] {
            self.state.file.update(control, dctl::ENABLE, 0);
        }
    }

    /// Restarts every queue: discards fetched descriptors and, in transmit queues, contexts.
    pub(super) fn restart_queues(&mut self) {
        QueueIndex::all().for_each(|queue| self.restart_receive(queue));
        QueueIndex::all().for_each(|queue| self.reset_transmit(queue));
    }
}
