//! Parts of a virtio card, which workers run.

use crate::port::engine::access::{FunctionAccess, FunctionTable};
use crate::port::engine::workers::{BUDGET, CardPlane, DivisibleCard, ShardRoundOutcome};
use pcie::Bus;
use plane::{FrameTrunk, TrunkBatch, UplinkWire};
use virtio_nic::{DetachedDevice, MAX_VFS, Nic};

impl DivisibleCard for Nic {
    type Device = DetachedDevice;

    fn new_part() -> Self {
        Self::new(MAX_VFS as u8)
    }

    fn set_trunk(&mut self, trunk: Box<dyn FrameTrunk>) {
        self.set_trunk(Some(trunk));
    }

    fn may_detach(&self, vf: u8) -> bool {
        self.may_detach(vf)
    }

    fn detach(&mut self, vf: u8) -> Option<DetachedDevice> {
        self.detach(vf)
    }

    fn attach(&mut self, device: DetachedDevice) {
        self.attach(device);
    }

    fn follow(&mut self, whole: &Self) {
        self.follow(whole);
    }

    fn leave_trunk<B: Bus>(&mut self, plane: &mut CardPlane, batch: &mut TrunkBatch, bus: &mut B) {
        self.leave_trunk(plane, batch, bus);
    }

    fn flush_trunk(&mut self) -> bool {
        self.flush_trunk()
    }

    fn give_back<B: Bus>(&mut self, plane: &mut CardPlane, bus: &mut B) {
        self.give_back(plane, bus);
    }

    fn move_frames<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut CardPlane,
        bus: &mut B,
        uplink: &mut W,
        mut after_vf: impl FnMut(),
    ) -> ShardRoundOutcome {
        plane.shares.begin_round();
        let more = self.visit_ready_vfs(plane, BUDGET, bus, uplink, |_, _| after_vf());
        ShardRoundOutcome { more, deadline: self.due() }
    }

    fn polls_rings(&self) -> bool {
        self.polls_rings()
    }

    fn look<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.look_at_rings(bus)
    }

    fn arm<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.arm_rings(bus)
    }

    fn kick(&mut self, bus: &mut FunctionTable<FunctionAccess>, vf: u8, ring: u32) {
        bus.note_kick(self, vf, ring);
    }
}
