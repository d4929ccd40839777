//! The driver of the physical function as the host of virtual ones: it sets up the switch, lets VFs start,
//! answers their mailboxes as Linux igb does, and holds them to their policy. It works through registers
//! only, so it could drive silicon.
//!
//! It takes no interrupts: [`Pf::visit`] is called when the port's loop has time, looks at the events, and is
//! bounded in what it does. It has no queues either: all traffic is the VFs' and the wire's.
//!
//! # How a stock igbvf learns of the link
//! igbvf shows carrier on when STATUS.LU is set and the first dword of its mailbox has CTS, but it only looks
//! when told: the mailbox interrupt turns the carrier off, marks the link unknown and starts the watchdog at
//! once; the watchdog then reads STATUS and the mailbox, and again every two seconds until both agree. Clearing
//! LU alone would not be noticed. So a change is two things: [`Pf::link_state`], which the card has to show to
//! that VF as STATUS.LU (a VF's STATUS is the port's, so an override per VF is the card's own affair), and a
//! PF_CONTROL message with CTS, whose interrupt makes igbvf look. Link up needs the message too: its CTS is
//! what igbvf wants to find, and without it up to two seconds pass. When transmit descriptors are pending
//! while the carrier is off, igbvf resets itself; its VF_RESET is then served as any other.
//!
//! Left out: a PF data path.

mod counters;
pub mod earlier;
mod held;
mod init;
mod limits;
mod mailbox;
mod membership;
mod messages;
mod moderate;
mod notice;
mod phy;
mod policy;
mod port;
mod scaling;
mod several;
mod state;
mod switch;
#[cfg(test)]
mod tests;
mod visit;

pub use counters::{Counters, Kind, Refusal};
pub use limits::LIMITS;
pub use port::SavedPortPolicy;
pub use several::ResizeError;
pub use state::{PfState, RestoreError};
pub use visit::Visit;

use crate::conduct::Monitor;
use crate::hal::Hal;
use ::policy::VfPolicy;
use alloc::vec::Vec;
use i82576::ids::MAX_VFS;
use i82576::mailbox::MAX_MULTICAST;
use i82576::{MacAddress, Time, VfIndex};
use moderate::Sampler;
use serde::{Deserialize, Serialize};
use switch::{Filters, Groups, Vlans};

/// Why the PF could not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PfError {
    /// Registers read as all ones.
    #[error("the function does not answer on the bus")]
    Gone,
    /// CTRL.RST stays set.
    #[error("the card does not come out of reset")]
    ResetStuck,
    /// More VFs than a port has.
    #[error("a port has 8 virtual functions, not {0}")]
    TooManyVfs(u8),
}

/// What the PF knows of a VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct VfState {
    policy: VfPolicy,
    /// The address in use: the policy's, or what the VF chose.
    mac: Option<MacAddress>,
    /// VF_RESET was served, and no reset has come since: requests are heard.
    clear_to_send: bool,
    /// When a NACK was last said without CTS, or the VF was reset.
    last_nack: Option<Time>,
    hashes: [u16; MAX_MULTICAST],
    groups: usize,
    /// More groups than a message holds.
    overflow: bool,
    all_multicast: bool,
    /// The longest frame that the VF asked for.
    asked_length: Option<u32>,
    /// A PF_CONTROL message is due since then.
    notice: Option<Time>,
    /// A reply is in the buffer, which nothing may overwrite before this moment or its acknowledgement.
    reply_until: Option<Time>,
    /// Visits in a row at which the VF held the buffer.
    locked: u8,
    counters: Counters,
    monitor: Monitor,
    sampler: Sampler,
    /// VLANs that the VF asked for and its policy denies it.
    withheld: Vec<u16>,
}

impl VfState {
    fn new() -> Self {
        Self {
            policy: VfPolicy::default(),
            mac: None,
            clear_to_send: false,
            last_nack: None,
            hashes: [0; MAX_MULTICAST],
            groups: 0,
            overflow: false,
            all_multicast: false,
            asked_length: None,
            notice: None,
            reply_until: None,
            locked: 0,
            counters: Counters::default(),
            monitor: Monitor::default(),
            sampler: Sampler::default(),
            withheld: Vec::new(),
        }
    }

    /// The list of groups takes the whole message. Linux's igbvf cuts a longer one to that, and does not say so.
    const fn has_full_list(&self) -> bool {
        self.groups == MAX_MULTICAST
    }

    /// Returns true if the VF receives every multicast: it has asked for that, or its list may be cut and it is trusted.
    const fn receives_every_group(&self) -> bool {
        let trusted = self.policy.trust && self.policy.allmulti;
        self.overflow || self.all_multicast || self.has_full_list() && trusted
    }
}

/// The physical function and its driver's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pf {
    mac: MacAddress,
    /// VFs 0..enabled exist.
    enabled: u8,
    vfs: [VfState; MAX_VFS],
    port_policy: SavedPortPolicy,
    /// Storms that have begun.
    storms: u64,
    filters: Filters,
    vlans: Vlans,
    groups: Groups,
    /// The administrator wants the port up.
    port_up: bool,
    /// The driver has taken its leave.
    removed: bool,
    /// STATUS.LU of the port.
    wire_up: bool,
    /// The VF that is looked at first at the next visit.
    turn: u8,
}

impl Pf {
    /// Resets the function and sets it up, without any VF.
    ///
    /// # Errors
    /// [`PfError::Gone`], [`PfError::ResetStuck`].
    pub fn probe<H: Hal>(hal: &mut H) -> Result<Self, PfError> {
        let mut pf = Self {
            mac: MacAddress::ZERO,
            enabled: 0,
            vfs: core::array::from_fn(|_| VfState::new()),
            port_policy: SavedPortPolicy::default(),
            storms: 0,
            filters: Filters::default(),
            vlans: Vlans::default(),
            groups: Groups::default(),
            port_up: true,
            removed: false,
            wire_up: false,
            turn: 0,
        };
        pf.initialise(hal)?;
        Ok(pf)
    }

    /// Resets the card under its VFs: they are told before, lose their queues, and may start again afterwards.
    ///
    /// As with igb, a stock igbvf finds its way back by itself: it sees RSTD, finds no CTS in the mailbox, and
    /// its acknowledgement is answered with the NACK that makes it reset.
    ///
    /// # Errors
    /// As [`Pf::probe`].
    pub fn reset<H: Hal>(&mut self, hal: &mut H) -> Result<(), PfError> {
        for state in &mut self.vfs {
            // The notice must not say CTS: VFs would take the link for good.
            state.clear_to_send = false;
        }
        self.notify_all(hal);
        // The reset would take the interrupt back that tells them.
        hal.wait(init::QUIESCE);
        self.initialise(hal)?;
        self.enable_vfs(hal, self.enabled)
    }

    /// Takes leave: VFs are told, see no link and lose their queues. Afterwards the card must be told
    /// [`Pf::link_override`], and be given the time to send its interrupts.
    pub fn remove<H: Hal>(&mut self, hal: &mut H) {
        for state in &mut self.vfs {
            state.clear_to_send = false;
        }
        self.removed = true;
        self.notify_all(hal);
        init::leave(hal);
    }

    /// Lets VFs 0..`count` start, under the policy set for each. The bus must have them enabled (SR-IOV
    /// capability). All of them start anew: a driver that runs one is told, and has to reset it.
    ///
    /// # Errors
    /// [`PfError::TooManyVfs`].
    pub fn enable_vfs<H: Hal>(&mut self, hal: &mut H, count: u8) -> Result<(), PfError> {
        if usize::from(count) > MAX_VFS {
            return Err(PfError::TooManyVfs(count));
        }
        let known = self.enabled.max(count);
        let mut active = 0;
        for vf in VfIndex::all().filter(|vf| vf.get() < known) {
            active |= if self.state(vf).clear_to_send { vf.bit() } else { 0 };
            self.forget_vf(hal, vf);
        }
        self.enabled = count;
        for vf in self.enabled_vfs() {
            self.restore_defaults(hal, vf);
            self.state_mut(vf).notice = (active & vf.bit() != 0).then(|| hal.now());
        }
        if count > 0 {
            self.let_vfs_start(hal);
        }
        self.follow_vlans(hal);
        Ok(())
    }

    /// The enabled VFs, in order.
    pub fn enabled_vfs(&self) -> impl Iterator<Item = VfIndex> + use<> {
        let enabled = self.enabled;
        VfIndex::all().filter(move |vf| vf.get() < enabled)
    }

    /// The port's own address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// The address a VF uses, if it has one.
    #[must_use]
    pub fn vf_mac(&self, vf: VfIndex) -> Option<MacAddress> {
        self.state(vf).mac
    }

    /// Whether a driver runs the VF: VF_RESET was served and no reset came since.
    #[must_use]
    pub fn vf_is_active(&self, vf: VfIndex) -> bool {
        self.state(vf).clear_to_send
    }

    /// The VLANs a VF is a member of, in the order of the table; 0 stands for untagged.
    pub fn vf_vlans(&self, vf: VfIndex) -> impl Iterator<Item = u16> + '_ {
        self.vlans.of(vf)
    }

    /// Returns the number of multicast hashes that a VF receives by, at most [`MAX_MULTICAST`], and whether its guest may have
    /// groups beyond them.
    #[must_use]
    pub fn vf_multicast(&self, vf: VfIndex) -> (usize, bool) {
        let state = self.state(vf);
        (state.groups, state.has_full_list() && !state.receives_every_group())
    }

    /// What was counted for a VF.
    #[must_use]
    pub fn counters(&self, vf: VfIndex) -> &Counters {
        &self.state(vf).counters
    }

    fn state(&self, vf: VfIndex) -> &VfState {
        &self.vfs[vf.index()]
    }

    fn state_mut(&mut self, vf: VfIndex) -> &mut VfState {
        &mut self.vfs[vf.index()]
    }
}
