//! Policies of a simulation's VFs: what the administrator has set, and which frames may pass.

use super::frames;
use super::policy::{SimulatedIps, SimulatedPolicy};

/// Numbers of changes at which frames from one VF to another could pass last.
#[derive(Debug, Clone, Copy, Default)]
struct LastOpen {
    any: u32,
    /// The same for frames with a tag, which only a port VLAN replaces; 0 for never.
    tagged: u32,
    /// The same for frames in another's name; 0 for never.
    spoofed: u32,
}

/// Policies of all VFs, and the time since which each two of them are apart. Time is counted in changes of policies.
#[derive(Debug)]
pub(super) struct PolicyModel {
    in_force: Vec<SimulatedPolicy>,
    /// Number of changes that have begun or ended.
    changes: u32,
    /// Number of changes at which frames between two VFs could pass last, and at which they could pass by one port VLAN.
    open: Vec<Vec<LastOpen>>,
    /// Number of changes at which each VF had its first and its second address last.
    names: Vec<[u32; 2]>,
}

impl PolicyModel {
    pub(super) fn new(vfs: usize) -> Self {
        let in_force = vec![SimulatedPolicy::default(); vfs];
        let open = vec![vec![LastOpen::default(); vfs]; vfs];
        let mut model = Self { in_force, changes: 1, open, names: vec![[0; 2]; vfs] };
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
        let changes = self.changes;
        for (from, row) in self.open.iter_mut().enumerate() {
            let sender = self.in_force[from];
            for (is_second, had) in [false, true].into_iter().zip(&mut self.names[from]) {
                *had = if sender.may_spoof || sender.has_second_mac == is_second { changes } else { *had };
            }
            for (to, open) in row.iter_mut().enumerate() {
                let receiver = self.in_force[to];
                let passes_guard = match sender.ips {
                    SimulatedIps::Any => true,
                    SimulatedIps::Own => frames::is_udp(from as u16, to as u16),
                    SimulatedIps::Foreign | SimulatedIps::None => false,
                };
                if sender.connects(receiver) && passes_guard {
                    open.any = changes;
                    open.tagged = if sender.vlan == 0 { open.tagged } else { changes };
                }
                if sender.may_spoof && sender.ips == SimulatedIps::Any {
                    // Such a guest chooses its VLAN too, unless a port VLAN replaces its tags.
                    let chooses = sender.vlan == 0 && !sender.is_quarantined && !receiver.is_quarantined;
                    open.tagged = if chooses { changes } else { open.tagged };
                    open.spoofed = if sender.connects(receiver) { changes } else { open.spoofed };
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

    /// Returns true if a frame in another's name that was sent at this number of changes may have passed since.
    pub(super) fn may_pass_spoofed(&self, from: usize, to: usize, sent: u32) -> bool {
        self.open[from][to].spoofed >= sent
    }

    /// Returns true if a VF had its first or second address at this number of changes, or since.
    pub(super) fn has_had_name(&self, vf: usize, is_second: bool, sent: u32) -> bool {
        self.names[vf][usize::from(is_second)] >= sent
    }
}

#[test]
fn frame_may_pass_if_two_vfs_were_connected_after_it_was_sent() {
    let apart = SimulatedPolicy { vlan: 7, ..SimulatedPolicy::default() };
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

#[test]
fn frame_may_be_spoofed_while_the_senders_check_is_off() {
    let unchecked = SimulatedPolicy { may_spoof: true, ..SimulatedPolicy::default() };
    let mut model = PolicyModel::new(2);
    let early = model.changes();
    assert!(!model.may_pass_spoofed(0, 1, early));
    model.begin(0, unchecked);
    model.end(0, unchecked);
    assert!(model.may_pass_spoofed(0, 1, early) && !model.may_pass_spoofed(1, 0, early));
    let own = SimulatedPolicy { ips: SimulatedIps::Own, has_second_mac: true, ..SimulatedPolicy::default() };
    model.begin(0, own);
    model.end(0, own);
    let late = model.changes();
    assert!(model.has_had_name(0, false, early) && !model.has_had_name(0, false, late));
    assert!(model.has_had_name(0, true, late));
    assert!(!model.may_pass_spoofed(0, 1, late) && model.may_pass(0, 1, late), "frames 0 to 1 are UDP");
}
