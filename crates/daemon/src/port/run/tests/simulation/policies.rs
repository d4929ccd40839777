//! Policies of a simulation's VFs: what the administrator has set, and which frames may pass.

use super::frames;
use super::guarded::GuardedFrame;
use super::policy::{SimulatedIps, SimulatedPolicy};
use super::uplink::STATION_VLANS;

/// Numbers of changes at which frames from one VF to another could pass last.
#[derive(Debug, Clone, Copy, Default)]
struct LastOpen {
    any: u32,
    /// The same for frames with a tag, which only a port VLAN replaces; 0 for never.
    tagged: u32,
    /// The same for frames in another's name; 0 for never.
    spoofed: u32,
    /// The same for each kind of frames that the sender's policy may keep back by their contents; 0 for never.
    guarded: [u32; GuardedFrame::EVERY.len()],
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
    /// Number of changes at which frames of each VF could leave by the uplink in a VLAN of the stations last: UDP, and others.
    leaves: Vec<[[u32; 2]; STATION_VLANS.len()]>,
    /// The same for each kind of frames that a policy may keep back by their contents.
    guarded_leaves: Vec<[[u32; GuardedFrame::EVERY.len()]; STATION_VLANS.len()]>,
    /// Number of changes at which nothing has checked the names of each VF's frames last; 0 for never.
    unchecked: Vec<u32>,
    /// True for each VF whose guest could ever choose its addresses.
    chooses: Vec<bool>,
}

impl PolicyModel {
    /// Creates the policies of VFs, and of the stations at the uplink, which come after the VFs.
    pub(super) fn new(vfs: usize) -> Self {
        let mut in_force = vec![SimulatedPolicy::default(); vfs];
        in_force.extend(STATION_VLANS.map(|vlan| SimulatedPolicy { vlan, ..SimulatedPolicy::default() }));
        let vfs = in_force.len();
        let open = vec![vec![LastOpen::default(); vfs]; vfs];
        let (names, leaves) = (vec![[0; 2]; vfs], vec![[[0; 2]; STATION_VLANS.len()]; vfs]);
        let mut model = Self {
            in_force,
            changes: 1,
            open,
            names,
            leaves,
            guarded_leaves: vec![<_>::default(); vfs],
            unchecked: vec![0; vfs],
            chooses: vec![false; vfs],
        };
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
                let is_own = sender.has_second_mac == is_second;
                // A driver that chooses its address may keep the one that it had. A trusted one chooses it against the
                // administrator's too.
                let chooses = sender.has_free_mac || sender.is_trusted;
                *had = if sender.may_spoof || is_own || chooses { changes } else { *had };
            }
            self.chooses[from] |= sender.has_free_mac;
            let unchecked = &mut self.unchecked[from];
            *unchecked = if sender.may_spoof { changes } else { *unchecked };
            let at = STATION_VLANS.iter().position(|vlan| *vlan == sender.vlan).expect("a VLAN of a station");
            note_guarded(&mut self.guarded_leaves[from][at], sender, !sender.is_quarantined, changes);
            if sender.may_spoof && sender.vlan == 0 && !sender.is_quarantined && sender.passes_guard(true) {
                // Nothing replaces the first tag of such a guest.
                let at = STATION_VLANS.iter().position(|vlan| *vlan == GuardedFrame::VLAN).expect("a VLAN");
                self.guarded_leaves[from][at][GuardedFrame::DoubleTag as usize] = changes;
            }
            for is_udp in [false, true] {
                if sender.passes_guard(is_udp) && !sender.is_quarantined {
                    self.leaves[from][at][usize::from(is_udp)] = changes;
                }
            }
            for (to, open) in row.iter_mut().enumerate() {
                let receiver = self.in_force[to];
                note_guarded(&mut open.guarded, sender, sender.connects(receiver), changes);
                let passes_guard = sender.passes_guard(frames::is_udp(from as u16, to as u16));
                if sender.connects(receiver) && passes_guard {
                    open.any = changes;
                    open.tagged = if sender.vlan == 0 { open.tagged } else { changes };
                }
                if sender.may_spoof {
                    // Such a guest chooses its VLAN too, unless a port VLAN replaces its tags.
                    let chooses = sender.vlan == 0 && !sender.is_quarantined && !receiver.is_quarantined;
                    open.tagged = if chooses && passes_guard { changes } else { open.tagged };
                    if chooses && sender.passes_guard(true) {
                        open.guarded[GuardedFrame::DoubleTag as usize] = changes;
                    }
                    // A guard of source addresses keeps IP in others' names back.
                    let passes = sender.connects(receiver) && sender.ips == SimulatedIps::Any;
                    open.spoofed = if passes { changes } else { open.spoofed };
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

    /// Returns true if a frame of this kind that was sent at this number of changes may have passed since.
    pub(super) fn may_pass_guarded(&self, kind: GuardedFrame, from: usize, to: usize, sent: u32) -> bool {
        self.open[from][to].guarded[kind as usize] >= sent
    }

    /// Returns true if a frame of this kind that was sent at this number of changes may have left by the uplink since, in a VLAN.
    pub(super) fn may_leave_guarded(&self, kind: GuardedFrame, from: usize, vlan: u16, sent: u32) -> bool {
        let at = STATION_VLANS.iter().position(|of| *of == vlan);
        at.is_some_and(|at| self.guarded_leaves[from][at][kind as usize] >= sent)
    }

    /// Returns true if a frame that was sent at this number of changes may have left by the uplink since, in a VLAN.
    pub(super) fn may_leave(&self, (from, to): (usize, usize), vlan: u16, sent: u32) -> bool {
        let is_udp = frames::is_udp(from as u16, to as u16);
        let at = STATION_VLANS.iter().position(|of| *of == vlan);
        at.is_some_and(|at| self.leaves[from][at][usize::from(is_udp)] >= sent)
    }

    /// Returns true if a VF was in a VLAN at this number of changes, or since.
    pub(super) fn has_had_vlan(&self, vf: usize, vlan: u16, sent: u32) -> bool {
        let at = STATION_VLANS.iter().position(|of| *of == vlan);
        at.is_some_and(|at| self.leaves[vf][at].iter().any(|last| *last >= sent))
    }

    /// Returns true if a VF could send in others' names at this number of changes, or since.
    pub(super) fn was_unchecked(&self, vf: usize, sent: u32) -> bool {
        self.unchecked[vf] >= sent
    }

    /// Returns true if a VF's guest could ever choose its addresses.
    pub(super) fn has_chosen_names(&self, vf: usize) -> bool {
        self.chooses[vf]
    }

    /// Returns true if a VF had its first or second address at this number of changes, or since.
    pub(super) fn has_had_name(&self, vf: usize, is_second: bool, sent: u32) -> bool {
        self.names[vf][usize::from(is_second)] >= sent
    }
}

/// Notes the kinds of guarded frames that may pass now.
fn note_guarded(
    last: &mut [u32; GuardedFrame::EVERY.len()],
    sender: SimulatedPolicy,
    is_connected: bool,
    changes: u32,
) {
    for (kind, last) in GuardedFrame::EVERY.into_iter().zip(last) {
        *last = if is_connected && kind.passes(sender) { changes } else { *last };
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

#[test]
fn trusted_guest_may_keep_an_address_that_it_had() {
    let second = SimulatedPolicy { has_second_mac: true, ..SimulatedPolicy::default() };
    let trusted = SimulatedPolicy { is_trusted: true, ..SimulatedPolicy::default() };
    let mut model = PolicyModel::new(2);
    for policy in [second, trusted] {
        model.begin(0, policy);
        model.end(0, policy);
    }
    assert!(model.has_had_name(0, true, model.changes()));
    model.begin(0, SimulatedPolicy::default());
    model.end(0, SimulatedPolicy::default());
    assert!(!model.has_had_name(0, true, model.changes()));
}

#[test]
fn unchecked_guest_with_own_address_may_send_a_tag() {
    let own = SimulatedPolicy { may_spoof: true, ips: SimulatedIps::Own, ..SimulatedPolicy::default() };
    let in_vlan = SimulatedPolicy { vlan: 8, ..SimulatedPolicy::default() };
    let mut model = PolicyModel::new(3);
    for (vf, policy) in [(0, own), (1, in_vlan), (2, in_vlan)] {
        model.begin(vf, policy);
        model.end(vf, policy);
    }
    let sent = model.changes();
    assert!(model.may_pass_tagged(0, 1, sent), "frames 0 to 1 are UDP");
    assert!(!model.may_pass_tagged(0, 2, sent) && !model.may_pass_spoofed(0, 1, sent));
}

#[test]
fn guarded_frame_may_pass_while_its_senders_guard_is_off() {
    let guarded =
        SimulatedPolicy { has_dhcp_guard: true, vlan: 7, has_qinq: true, ..SimulatedPolicy::default() };
    let mut model = PolicyModel::new(2);
    let early = model.changes();
    for (vf, policy) in [(0, guarded), (1, SimulatedPolicy { vlan: 7, ..SimulatedPolicy::default() })] {
        model.begin(vf, policy);
        model.end(vf, policy);
    }
    let late = model.changes();
    let may_pass = |kind, sent| model.may_pass_guarded(kind, 0, 1, sent);
    assert!(may_pass(GuardedFrame::DhcpServer, early) && !may_pass(GuardedFrame::DhcpServer, late));
    assert!(may_pass(GuardedFrame::Router, late) && may_pass(GuardedFrame::DoubleTag, late));
    assert!(!model.may_pass_guarded(GuardedFrame::DoubleTag, 1, 0, early), "VF 1 may send one tag");
    assert!(!model.may_leave_guarded(GuardedFrame::DhcpServer, 0, 7, late));
    assert!(model.may_leave_guarded(GuardedFrame::Router, 0, 7, late));
}
