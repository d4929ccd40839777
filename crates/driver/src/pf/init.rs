//! Initializes the switch for VFs after power-on, and sets a VF's defaults, by register writes only.
//!
//! The order is igb's: mask interrupts, stop receive and transmit, reset, then the switch (multicast and VLAN
//! tables empty, MAC filters empty, queue drop on, loopback, replication, anti-spoof, RSS), then receive and
//! transmit; PFRSTD last, because it lets the VFs start.
//!
//! Flow control stays off. The port's address is the one that the NVM has loaded into RAL0.

use super::moderate::VfPacketRateSampler;
use super::switch::{MulticastTable, ReceiveAddressTable, VlanFilterTable, update};
use super::{Pf, PfError, phy};
use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::{ctrl, ctrl_ext, dtxctl, dtxswc, gpie, rah, rctl, rplolr, rxcsum, status, tctl, vt_ctl};
use i82576::ids::{MAX_FRAME, RECEIVE_ADDRESSES, VLAN_FILTERS};
use i82576::register as r;
use i82576::{MacAddress, VfIndex};

const RESET_POLLS: u32 = 10;
const RESET_POLL: Duration = Duration::from_millis(1);
pub(super) const QUIESCE: Duration = Duration::from_millis(10);
/// Number of words in each of the tables MTA, UTA and VFTA (82576 datasheet 8.10).
const TABLE_WORDS: u32 = 128;

impl Pf {
    pub(super) fn initialise<H: Hal>(&mut self, hal: &mut H) -> Result<(), PfError> {
        reset_port(hal)?;
        (self.filters, self.vlans, self.groups) =
            (ReceiveAddressTable::default(), VlanFilterTable::default(), MulticastTable::default());
        for vf in VfIndex::all() {
            let state = self.state_mut(vf);
            (state.clear_to_send, state.notice, state.reply_until) = (false, None, None);
        }
        self.mac = MacAddress::from_words(hal.read(r::ral(0)), hal.read(r::rah(0)));
        clear_tables(hal, self.mac);
        self.vlans.write(hal, 0);
        set_up_switch(hal);
        self.set_up_scaling(hal);
        self.apply_mirrors(hal);
        self.apply_storm_control(hal);
        hal.write(r::RCTL, rctl::EN | rctl::LPE | rctl::BAM | rctl::VFE | rctl::SECRC);
        hal.write(r::TCTL, tctl::EN | tctl::PSP);
        update(hal, r::CTRL, 0, ctrl::SLU | ctrl::FD);
        update(hal, r::CTRL_EXT, 0, ctrl_ext::DRV_LOAD);
        phy::wake(hal);
        self.wire_up = hal.read(r::STATUS) & status::LU != 0;
        Ok(())
    }

    /// Lets VFs start: clears the reset notice RSTI and sets RSTD for every VF.
    pub(super) fn let_vfs_start<H: Hal>(&self, hal: &mut H) {
        update(hal, r::CTRL_EXT, 0, ctrl_ext::PFRSTD);
    }

    /// Disables the queues of a VF, removes its addresses, VLANs and multicast groups from the switch, and forgets its packet
    /// rate.
    pub(super) fn forget_vf<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let state = self.state_mut(vf);
        state.clear_to_send = false;
        (state.groups, state.overflow, state.all_multicast) = (0, false, false);
        (state.notice, state.reply_until, state.locked) = (None, None, 0);
        state.withheld.clear();
        state.sampler = VfPacketRateSampler::default();
        self.apply_enable(hal, vf);
        self.use_mac(hal, vf, None);
        self.filters.clear_added(hal, vf);
        self.vlans.leave_all(hal, vf);
        self.apply_groups(hal, vf);
    }

    /// Restores a VF's defaults after a reset: the policy's address and VLAN, broadcasts but no multicasts, and frames
    /// of standard length.
    pub(super) fn restore_defaults<H: Hal>(&mut self, hal: &mut H, vf: VfIndex) {
        let state = self.state_mut(vf);
        state.clear_to_send = false;
        (state.groups, state.overflow, state.all_multicast) = (0, false, false);
        state.reply_until = None;
        state.withheld.clear();
        let mac = state.policy.mac;
        self.apply_enable(hal, vf);
        self.filters.clear_added(hal, vf);
        self.use_mac(hal, vf, mac);
        self.apply_length(hal, vf, None);
        self.apply_vlan(hal, vf);
        self.apply_groups(hal, vf);
        self.apply_scaling(hal, vf);
        self.apply_spoof_check(hal, vf);
        self.apply_rate(hal, vf);
    }
}

/// Stops all VFs, and reports to the card that the PF's driver is unloaded.
pub(super) fn leave<H: Hal>(hal: &mut H) {
    hal.write(r::VFRE, 0);
    hal.write(r::VFTE, 0);
    update(hal, r::CTRL_EXT, ctrl_ext::DRV_LOAD, 0);
}

fn reset_port<H: Hal>(hal: &mut H) -> Result<(), PfError> {
    if hal.read(r::STATUS) == u32::MAX {
        return Err(PfError::Gone);
    }
    hal.write(r::IMC, u32::MAX);
    hal.write(r::EIMC, u32::MAX);
    hal.write(r::VFRE, 0);
    hal.write(r::VFTE, 0);
    hal.write(r::RCTL, 0);
    hal.write(r::TCTL, tctl::PSP);
    hal.wait(QUIESCE);
    update(hal, r::CTRL, 0, ctrl::RST);
    for _ in 0..RESET_POLLS {
        hal.wait(RESET_POLL);
        if hal.read(r::CTRL) & ctrl::RST == 0 {
            hal.write(r::IMC, u32::MAX);
            hal.read(r::ICR);
            return Ok(());
        }
    }
    Err(PfError::ResetStuck)
}

fn clear_tables<H: Hal>(hal: &mut H, mac: MacAddress) {
    for word in 0..TABLE_WORDS {
        hal.write(r::mta(word), 0);
        hal.write(r::uta(word), 0);
        hal.write(r::vfta(word), 0);
    }
    for entry in 0..VLAN_FILTERS as u32 {
        hal.write(r::vlvf(entry), 0);
    }
    for entry in 1..RECEIVE_ADDRESSES as u32 {
        hal.write(r::rah(entry), 0);
        hal.write(r::ral(entry), 0);
    }
    // The port's own address belongs to no pool: the PF has none.
    let (low, high) = mac.to_words();
    hal.write(r::ral(0), low);
    hal.write(r::rah(0), high | rah::AV);
}

fn set_up_switch<H: Hal>(hal: &mut H) {
    hal.write(r::VFRE, 0);
    hal.write(r::VFTE, 0);
    hal.write(r::GPIE, gpie::NSICR | gpie::MULTIPLE_MSIX | gpie::EIAME | gpie::PBA);
    hal.write(r::MBVFIMR, 0xff);
    // A guest without buffers must not block the port.
    hal.write(r::QDE, 0xffff);
    hal.write(r::RLPML, MAX_FRAME as u32);
    // A packet checksum in the place of the hash is useless, and the card would have to compute it.
    hal.write(r::RXCSUM, rxcsum::IPOFL | rxcsum::TUOFL | rxcsum::CRCOFL | rxcsum::PCSD);
    hal.write(r::VT_CTL, vt_ctl::REPL_EN | vt_ctl::DIS_DEF_PL);
    update(hal, r::DTXCTL, 0, dtxctl::VLAN_ADDED | dtxctl::SPOOF_INT);
    hal.write(r::RPLOLR, rplolr::STRVLAN | rplolr::STRCRC);
    hal.write(
        r::DTXSWC,
        dtxswc::LOOPBACK_EN | 0xff << dtxswc::MAC_SPOOF_SHIFT | 0xff << dtxswc::VLAN_SPOOF_SHIFT,
    );
}
