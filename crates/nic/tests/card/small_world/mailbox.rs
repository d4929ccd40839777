//! Tests the mailbox of a VF, in every order of short scripts of VF, PF and resets. After each step the card equals a
//! model of the datasheet's rules.

use super::{ScriptPlayer, orders};
use crate::common::{CardFixture, index};
use i82576::bits::{ctrl, ctrl_ext, p2v, v2p};
use i82576::register::{self as r, vf};

/// Step of a script in the mailbox test: an action of VF 1 or of the PF on VF 1's mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MailboxStep {
    /// The VF writes V2PMAILBOX.
    VfWrites(u32),
    /// The VF reads V2PMAILBOX, which clears its notices.
    VfReads,
    /// The VF writes the first word of the mailbox memory.
    VfFills(u32),
    /// The PF writes P2VMAILBOX.
    PfWrites(u32),
    /// The PF clears the VF's mailbox and reset events.
    PfClears,
    /// The PF writes the first word of the mailbox memory.
    PfFills(u32),
    /// The VF resets itself by its CTRL.RST.
    VfReset,
    /// The PF resets the port.
    PfReset,
    /// The PF writes PFRSTD: its reset is done.
    PfDone,
}

/// Visible state of VF 1's mailbox: V2PMAILBOX, the first word of its memory, and its events to the PF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MailboxModel {
    /// Value of V2PMAILBOX as the VF reads it.
    v2p: u32,
    word: u32,
    asked: bool,
    acknowledged: bool,
    was_reset: bool,
}

impl MailboxModel {
    /// Locks the mailbox memory for the owner of bit `own` if its write requests that and the other owner does not hold
    /// it. A write without the request releases it.
    fn take(&mut self, asks: bool, own: u32, other: u32) {
        if !asks {
            self.v2p &= !own;
        } else if self.v2p & other == 0 {
            self.v2p |= own;
        }
    }

    fn step(&mut self, step: MailboxStep) {
        match step {
            MailboxStep::VfWrites(value) => {
                self.take(value & v2p::VFU != 0, v2p::VFU, v2p::PFU);
                self.asked |= value & v2p::REQ != 0;
                self.acknowledged |= value & v2p::ACK != 0;
            }
            MailboxStep::VfReads => self.v2p &= !(v2p::PFSTS | v2p::PFACK | v2p::RSTD),
            MailboxStep::VfFills(value) | MailboxStep::PfFills(value) => self.word = value,
            MailboxStep::PfWrites(value) => {
                if value & p2v::RVFU != 0 {
                    self.v2p &= !v2p::VFU;
                    (self.asked, self.acknowledged) = (false, false);
                }
                self.take(value & p2v::PFU != 0, v2p::PFU, v2p::VFU);
                self.v2p |= if value & p2v::STS != 0 { v2p::PFSTS } else { 0 };
                self.v2p |= if value & p2v::ACK != 0 { v2p::PFACK } else { 0 };
            }
            MailboxStep::PfClears => (self.asked, self.acknowledged, self.was_reset) = (false, false, false),
            MailboxStep::VfReset => {
                self.v2p = self.v2p & v2p::RSTI | v2p::RSTD;
                (self.asked, self.acknowledged, self.was_reset) = (false, false, true);
            }
            MailboxStep::PfReset => *self = Self { v2p: v2p::RSTI, word: self.word, ..Self::idle() },
            MailboxStep::PfDone if self.v2p & v2p::RSTI != 0 => self.v2p = self.v2p & !v2p::RSTI | v2p::RSTD,
            MailboxStep::PfDone => {}
        }
    }

    fn idle() -> Self {
        Self { v2p: 0, word: 0, asked: false, acknowledged: false, was_reset: false }
    }
}

fn step(bench: &mut CardFixture, step: MailboxStep) {
    let vf1 = index(1);
    match step {
        MailboxStep::VfWrites(value) => bench.vf(1).write(vf::V2PMAILBOX, value),
        MailboxStep::VfReads => _ = bench.vf(1).read(vf::V2PMAILBOX),
        MailboxStep::VfFills(value) => bench.vf(1).write(vf::VMBMEM, value),
        MailboxStep::PfWrites(value) => bench.pf().write(r::p2v_mailbox(vf1), value),
        MailboxStep::PfClears => {
            bench.pf().write(r::MBVFICR, vf1.bit() | vf1.bit() << 16);
            bench.pf().write(r::VFLRE, vf1.bit());
        }
        MailboxStep::PfFills(value) => bench.pf().write(r::vmbmem(vf1, 0), value),
        MailboxStep::VfReset => bench.vf(1).write(vf::CTRL, ctrl::RST),
        MailboxStep::PfReset => bench.pf().write(r::CTRL, ctrl::RST),
        MailboxStep::PfDone => bench.pf().write(r::CTRL_EXT, ctrl_ext::PFRSTD),
    }
}

/// Reads the state of VF 1's mailbox in the card, without side effects.
fn mailbox_state(bench: &mut CardFixture) -> MailboxModel {
    let events = bench.pf().read(r::MBVFICR);
    MailboxModel {
        v2p: bench.pf().read(r::v2p_mailbox(index(1))),
        word: bench.pf().read(r::vmbmem(index(1), 0)),
        asked: events & 2 != 0,
        acknowledged: events & 2 << 16 != 0,
        was_reset: bench.pf().read(r::VFLRE) & 2 != 0,
    }
}

/// Performs the steps of scripts in every order, compares card and model after each step, and returns the number of
/// orders.
fn play(scripts: &[&[MailboxStep]]) -> usize {
    let lengths: Vec<usize> = scripts.iter().map(|script| script.len()).collect();
    let (mut bench, mut count) = (CardFixture::new(3), 0);
    orders(&lengths, &mut |order| {
        restart(&mut bench);
        let (mut model, mut player) = (MailboxModel::idle(), ScriptPlayer::new(scripts));
        for (at, &script) in order.iter().enumerate() {
            let next = *player.step(script);
            step(&mut bench, next);
            model.step(next);
            let seen = mailbox_state(&mut bench);
            assert_eq!(seen, model, "after {next:?}, step {at} of {order:?}");
            assert_ne!(seen.v2p & (v2p::VFU | v2p::PFU), v2p::VFU | v2p::PFU, "both sides hold the lock");
            assert_eq!(seen.v2p & v2p::RSTI == 0, bench.vf(0).read(vf::V2PMAILBOX) & v2p::RSTI == 0);
        }
        count += 1;
    });
    count
}

/// Sets VF 1's mailbox to its idle state.
fn restart(bench: &mut CardFixture) {
    for next in [
        MailboxStep::VfWrites(0),
        MailboxStep::PfWrites(0),
        MailboxStep::PfDone,
        MailboxStep::VfReads,
        MailboxStep::PfClears,
    ] {
        step(bench, next);
    }
    step(bench, MailboxStep::VfFills(0));
    assert_eq!(mailbox_state(bench), MailboxModel::idle());
}

const VF_ASKS: &[MailboxStep] = &[
    MailboxStep::VfWrites(v2p::VFU),
    MailboxStep::VfFills(0x1),
    MailboxStep::VfWrites(v2p::REQ),
    MailboxStep::VfReads,
    MailboxStep::VfWrites(v2p::ACK),
];
const PF_ANSWERS: &[MailboxStep] = &[
    MailboxStep::PfClears,
    MailboxStep::PfWrites(p2v::PFU),
    MailboxStep::PfFills(0x8000_0001),
    MailboxStep::PfWrites(p2v::STS | p2v::ACK),
];

#[test]
fn mailbox_obeys_its_rules_in_any_order_of_pf_and_vf_steps() {
    assert_eq!(play(&[VF_ASKS, PF_ANSWERS]), 126);
}

#[test]
fn mailbox_obeys_its_rules_with_a_vf_reset_at_any_time() {
    assert_eq!(play(&[VF_ASKS, PF_ANSWERS, &[MailboxStep::VfReset, MailboxStep::VfReads]]), 6_930);
}

#[test]
fn mailbox_obeys_its_rules_with_a_pf_reset_at_any_time() {
    assert_eq!(play(&[VF_ASKS, PF_ANSWERS, &[MailboxStep::PfReset, MailboxStep::PfDone]]), 6_930);
}

#[test]
fn mailbox_obeys_its_rules_with_vf_and_pf_resets_at_any_time() {
    let resets: [&[MailboxStep]; 2] = [&[MailboxStep::VfReset], &[MailboxStep::PfReset, MailboxStep::PfDone]];
    assert_eq!(play(&[&VF_ASKS[..4], &PF_ANSWERS[1..], resets[0], resets[1]]), 12_600);
}

#[test]
fn mailbox_obeys_its_rules_when_the_pf_revokes_the_lock() {
    let takes = [MailboxStep::PfWrites(p2v::RVFU | p2v::PFU), MailboxStep::PfWrites(0)];
    assert_eq!(play(&[VF_ASKS, &takes, &[MailboxStep::VfReset]]), 168);
}

#[test]
fn mailbox_obeys_its_rules_after_any_two_register_writes() {
    let values: Vec<MailboxStep> =
        (0..8).map(MailboxStep::VfWrites).chain((0..32).map(MailboxStep::PfWrites)).collect();
    for first in &values {
        for second in &values {
            play(&[&[*first], &[*second], &[MailboxStep::VfReads]]);
        }
    }
}
