//! Policies of a simulation's VFs: what the administrator has set, and which frames may pass.

use crate::settings::{LinkState, SettingValues, SettingsGroup, VfSettings};

/// Policy that the administrator sets for a VF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SimulatedPolicy {
    /// Port VLAN; 0 for none.
    pub(super) vlan: u16,
    /// True if the administrator has disabled the VF's link.
    pub(super) is_disabled: bool,
}

impl SimulatedPolicy {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Self {
        let vlan = [0, 0, 0, 7, 8][random.usize(0..5)];
        Self { vlan, is_disabled: random.u32(0..6) == 0 }
    }

    /// Returns the policy as a command's changes of settings. A VF without a port VLAN may join none, as in the configuration: a
    /// virtio VF receives the frames of all VLANs that it may join.
    pub(super) fn settings(self) -> SettingValues {
        let vlans = Some(if self.vlan == 0 { String::new() } else { "any".to_owned() });
        let state = Some(if self.is_disabled { LinkState::Disable } else { LinkState::Auto });
        VfSettings { vlan: Some(self.vlan), vlans, state, ..VfSettings::default() }.leaves()
    }

    /// Returns true if these settings of a VF's status are the policy's.
    pub(super) fn is_in(self, settings: &VfSettings) -> bool {
        let is_disabled = settings.state == Some(LinkState::Disable);
        settings.vlan.unwrap_or(0) == self.vlan && is_disabled == self.is_disabled
    }

    /// Returns true if frames may pass between functions with these policies. A disabled link is what a guest sees, and keeps no
    /// frame from a driver that ignores it.
    fn connects(self, other: Self) -> bool {
        self.vlan == other.vlan
    }
}

/// Numbers of changes at which frames from one VF to another could pass last.
#[derive(Debug, Clone, Copy, Default)]
struct LastOpen {
    any: u32,
    /// The same for frames with a tag, which only a port VLAN replaces; 0 for never.
    tagged: u32,
}

/// Policies of all VFs, and the time since which each two of them are apart. Time is counted in changes of policies.
#[derive(Debug)]
pub(super) struct PolicyModel {
    in_force: Vec<SimulatedPolicy>,
    /// Number of changes that have begun or ended.
    changes: u32,
    /// Number of changes at which frames between two VFs could pass last, and at which they could pass by one port VLAN.
    open: Vec<Vec<LastOpen>>,
}

impl PolicyModel {
    pub(super) fn new(vfs: usize) -> Self {
        let in_force = vec![SimulatedPolicy::default(); vfs];
        let mut model = Self { in_force, changes: 1, open: vec![vec![LastOpen::default(); vfs]; vfs] };
        model.note_open();
        model
    }

    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    pub(super) fn of(&self, vf: usize) -> SimulatedPolicy {
        self.in_force[vf]
    }

    /// Begins a change: until it ends, frames may pass by the old policy or by the new one.
    pub(super) fn begin(&mut self, vf: usize, next: SimulatedPolicy) {
        self.pass_time();
        let old = std::mem::replace(&mut self.in_force[vf], next);
        self.note_open();
        self.in_force[vf] = old;
    }

    /// Ends a change: this policy is in force.
    pub(super) fn end(&mut self, vf: usize, in_force: SimulatedPolicy) {
        self.in_force[vf] = in_force;
        self.pass_time();
    }

    fn pass_time(&mut self) {
        self.note_open();
        self.changes += 1;
        self.note_open();
    }

    fn note_open(&mut self) {
        for (from, row) in self.open.iter_mut().enumerate() {
            for (to, open) in row.iter_mut().enumerate() {
                if self.in_force[from].connects(self.in_force[to]) {
                    open.any = self.changes;
                    open.tagged = if self.in_force[from].vlan == 0 { open.tagged } else { self.changes };
                }
            }
        }
    }

    /// Returns true if a frame that was sent at this number of changes may have passed since.
    pub(super) fn may_pass(&self, from: usize, to: usize, sent: u32) -> bool {
        self.open[from][to].any >= sent
    }

    /// Returns true if a frame with a tag that was sent at this number of changes may have passed since, untagged.
    pub(super) fn may_pass_tagged(&self, from: usize, to: usize, sent: u32) -> bool {
        self.open[from][to].tagged >= sent
    }
}

#[test]
fn frame_may_pass_if_two_vfs_were_connected_after_it_was_sent() {
    let apart = SimulatedPolicy { vlan: 7, is_disabled: false };
    let mut model = PolicyModel::new(2);
    let early = model.changes();
    model.begin(1, apart);
    let amid = model.changes();
    assert!(model.may_pass(0, 1, amid), "the old policy may still be in force");
    model.end(1, apart);
    let late = model.changes();
    assert!(model.may_pass(0, 1, early) && !model.may_pass(0, 1, late));
    model.begin(1, SimulatedPolicy::default());
    assert!(model.may_pass(0, 1, late), "the new policy may be in force already");
    assert!(!model.may_pass_tagged(0, 1, early), "no port VLAN has replaced a tag");
    model.begin(0, apart);
    model.end(0, apart);
    model.end(1, apart);
    assert!(model.may_pass_tagged(0, 1, late));
}
