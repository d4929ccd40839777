//! PF driver for the VFs of an 82576: sets up the switch, lets VFs start, serves their mailboxes as Linux igb does,
//! and enforces their policies. It works through registers only, so it could drive silicon.
//!
//! It takes no interrupts: the port's loop calls [`Pf::visit`] when it has time, which reads the events and is
//! bounded. It has no queues either: all traffic is the VFs' and the wire's.
//!
//! # How a stock igbvf detects link changes
//! igbvf sets the carrier on when STATUS.LU is set and the first dword of its mailbox has CTS, but it only looks
//! after a mailbox interrupt: that turns the carrier off, marks the link unknown and starts the watchdog at once;
//! the watchdog then reads STATUS and the mailbox, and again every two seconds until both agree. Clearing LU alone
//! would not be noticed. So a change takes two steps: [`Pf::link_state`], which the card has to present to that VF
//! as STATUS.LU (a VF's STATUS is the port's, so an override per VF is the card's own feature), and a PF_CONTROL
//! message with CTS, whose interrupt makes igbvf look. Link up needs the message too: igbvf expects its CTS, and
//! without it up to two seconds pass. When transmit descriptors are pending while the carrier is off, igbvf resets
//! itself; its VF_RESET is then served like any other.
//!
//! The PF has no data path.

mod addresses;
mod counters;
pub mod earlier;
mod held;
mod init;
mod limits;
mod mailbox;
mod messages;
mod moderate;
mod notice;
mod phy;
mod policies;
mod policy;
mod port;
mod quota;
mod scaling;
mod state;
mod switch;
#[cfg(test)]
mod tests;
mod visit;
mod vlans;
mod work;

pub use counters::{MailboxCounters, MailboxMessageKind, MailboxRefusal};
pub use limits::LIMITS;
pub use policies::VfCountError;
pub use port::SavedPortPolicy;
pub use state::{PfRestoreError, PfState};
pub use visit::PfServiceResults;
pub use work::PfWork;

use crate::conduct::VfConductMonitor;
use crate::hal::Hal;
use ::policy::VfPolicy;
use alloc::vec::Vec;
use i82576::ids::MAX_VFS;
use i82576::mailbox::MAX_MULTICAST;
use i82576::{MacAddress, Time, VfIndex};
use moderate::VfPacketRateSampler;
use serde::{Deserialize, Serialize};
use switch::{MulticastTable, ReceiveAddressTable, VlanFilterTable};

/// Error of the PF driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PfError {
    /// Registers read as all ones: the function was removed.
    #[error("the physical function does not respond on the bus: check that the device is present")]
    Gone,
    /// The card does not finish its reset (CTRL.RST stays set).
    #[error("the card stays in reset: CTRL.RST does not clear")]
    ResetStuck,
    /// More VFs were requested than the port has.
    #[error("number of virtual functions {0} is out of range (0-8)")]
    TooManyVfs(u8),
}

/// State that the PF driver keeps of one VF of an 82576.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct VfState {
    policy: VfPolicy,
    /// Current MAC address of the VF: the policy's, or the VF's choice.
    mac: Option<MacAddress>,
    /// True once VF_RESET was served, until the next reset: only then are the VF's other requests served.
    clear_to_send: bool,
    /// Time of the last NACK to a VF that must send VF_RESET, or the time of the VF's last reset.
    last_nack: Option<Time>,
    hashes: [u16; MAX_MULTICAST],
    groups: usize,
    /// True if the VF has reported more multicast groups than a message holds.
    overflow: bool,
    all_multicast: bool,
    /// Maximum frame length that the VF requested, in bytes.
    asked_length: Option<u32>,
    /// Time since which a PF_CONTROL message to the VF is pending; `None` without one.
    notice: Option<Time>,
    /// Time until which the PF protects its unacknowledged reply in the mailbox buffer from later notices.
    reply_until: Option<Time>,
    /// Number of consecutive runs of the PF driver that found the mailbox buffer locked by the VF.
    locked: u8,
    counters: MailboxCounters,
    monitor: VfConductMonitor,
    sampler: VfPacketRateSampler,
    /// VLANs that the VF requested and its policy denies.
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
            counters: MailboxCounters::default(),
            monitor: VfConductMonitor::default(),
            sampler: VfPacketRateSampler::default(),
            withheld: Vec::new(),
        }
    }

    /// Returns true if the VF's list of multicast groups fills the message, and so may be incomplete: Linux's igbvf
    /// silently truncates a longer list.
    const fn has_full_list(&self) -> bool {
        self.groups == MAX_MULTICAST
    }

    /// Returns true if the VF receives all multicasts: it has requested them, or it is trusted and its list of groups
    /// may be truncated.
    const fn receives_every_group(&self) -> bool {
        let trusted = self.policy.trust && self.policy.allmulti;
        self.overflow || self.all_multicast || self.has_full_list() && trusted
    }
}

/// Physical function and its driver's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pf {
    mac: MacAddress,
    /// Number of enabled VFs, from VF 0 on.
    enabled: u8,
    vfs: [VfState; MAX_VFS],
    port_policy: SavedPortPolicy,
    /// Number of broadcast and multicast storms that have begun.
    storms: u64,
    filters: ReceiveAddressTable,
    vlans: VlanFilterTable,
    groups: MulticastTable,
    /// True if the administrator has set the port up.
    port_up: bool,
    /// True once the PF driver has been removed from the card.
    removed: bool,
    /// True if the port's link is up (STATUS.LU).
    wire_up: bool,
    /// VF that the next run of the PF driver serves first.
    turn: u8,
    /// VFs without credit, a bit each, whose requests and resets wait.
    #[serde(skip)]
    held: u8,
}

impl Pf {
    /// Resets the physical function and sets it up, without VFs.
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
            filters: ReceiveAddressTable::default(),
            vlans: VlanFilterTable::default(),
            groups: MulticastTable::default(),
            port_up: true,
            removed: false,
            wire_up: false,
            turn: 0,
            held: 0,
        };
        pf.initialise(hal)?;
        Ok(pf)
    }

    /// Resets the card with its VFs: they are notified, lose their queues, and may start again afterwards.
    ///
    /// As with igb, a stock igbvf recovers by itself: it sees RSTD, finds no CTS in the mailbox, and gets a NACK
    /// for its acknowledgement, which makes it reset.
    ///
    /// # Errors
    /// Returns the errors of [`Pf::probe`].
    pub fn reset<H: Hal>(&mut self, hal: &mut H) -> Result<(), PfError> {
        for state in &mut self.vfs {
            // The notice must not have CTS: VFs would treat the link as up.
            state.clear_to_send = false;
        }
        self.notify_all(hal);
        // The reset would withdraw the interrupt of the notice.
        hal.wait(init::QUIESCE);
        self.initialise(hal)?;
        self.enable_vfs(hal, self.enabled)
    }

    /// Removes the driver: VFs are notified, see no link and lose their queues. Afterwards pass
    /// [`Pf::link_override`] to the card, and give it time to send its interrupts.
    pub fn remove<H: Hal>(&mut self, hal: &mut H) {
        for state in &mut self.vfs {
            state.clear_to_send = false;
        }
        self.removed = true;
        self.notify_all(hal);
        init::leave(hal);
    }

    /// Lets VFs 0..`count` start, each under its policy. The SR-IOV capability must have them enabled. VFs that are
    /// already active are notified, and their drivers have to reset them.
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

    /// Returns the enabled VFs, in order.
    pub fn enabled_vfs(&self) -> impl Iterator<Item = VfIndex> + use<> {
        let enabled = self.enabled;
        VfIndex::all().filter(move |vf| vf.get() < enabled)
    }

    /// Returns the port's own MAC address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Returns a VF's current MAC address, if the VF has one.
    #[must_use]
    pub fn vf_mac(&self, vf: VfIndex) -> Option<MacAddress> {
        self.state(vf).mac
    }

    /// Returns true if a VF is active: VF_RESET was served since the last reset.
    #[must_use]
    pub fn vf_is_active(&self, vf: VfIndex) -> bool {
        self.state(vf).clear_to_send
    }

    /// Returns the VLANs that a VF is a member of, in the order of the table; 0 stands for untagged frames.
    pub fn vf_vlans(&self, vf: VfIndex) -> impl Iterator<Item = u16> + '_ {
        self.vlans.of(vf)
    }

    /// Returns the number of a VF's multicast hashes, at most [`MAX_MULTICAST`], and true if its guest may have
    /// more groups.
    #[must_use]
    pub fn vf_multicast(&self, vf: VfIndex) -> (usize, bool) {
        let state = self.state(vf);
        (state.groups, state.has_full_list() && !state.receives_every_group())
    }

    /// Returns the PF driver's counters of a VF.
    #[must_use]
    pub fn counters(&self, vf: VfIndex) -> &MailboxCounters {
        &self.state(vf).counters
    }

    fn state(&self, vf: VfIndex) -> &VfState {
        &self.vfs[vf.index()]
    }

    fn state_mut(&mut self, vf: VfIndex) -> &mut VfState {
        &mut self.vfs[vf.index()]
    }
}
