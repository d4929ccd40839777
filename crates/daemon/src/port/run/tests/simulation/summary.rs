//! Figures of simulated lives.

use super::hostile::Misdeeds;
use super::kernel::KernelCounts;
use std::fmt;
use std::time::Duration;

/// Figures of one simulated life.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulationSummary {
    pub(super) rounds: u64,
    pub(super) deaths: u64,
    pub(super) hand_overs: u64,
    /// Number of hand-overs whose predecessor was an earlier program.
    pub(super) upgrades: u64,
    pub(super) frames: u64,
    /// Number of segments of TCP streams among the frames.
    pub(super) segments: u64,
    /// Number of frames that have left by the uplink.
    pub(super) departed: u64,
    /// Number of frames of virtio guests that the next host has sent again after a death.
    pub(super) repeated: u64,
    /// Number of times that all frames were accounted for.
    pub(super) accounts: u64,
    /// Number of frames that the port has lost and counted.
    pub(super) lost: u64,
    /// Number of bytes that guests have sent in floods.
    pub(super) flooded: u64,
    /// Number of floods that had to use their rates.
    pub(super) measured_floods: u64,
    /// Number of frames to stations that had to leave although a hostile guest may have asked for their addresses.
    pub(super) probes: u64,
    /// Number of claims to addresses that the port has refused.
    pub(super) refused_claims: u64,
    /// Number of registers that were compared in the pages of guests.
    pub(super) page_registers: u64,
    pub(super) misdeeds: Misdeeds,
    /// Number of times that a worker thread was stuck.
    pub(super) stuck: u64,
    /// Number of times that the uplink was unplugged, and of frames that the port has lost and counted meanwhile.
    pub(super) unplugged: u64,
    pub(super) lost_unplugged: u64,
    /// Number of times that the administrator has removed the last VF and added it again.
    pub(super) tenants: u64,
    /// Number of changes of policies that a failing disk or a death has refused, and of power failures in a change.
    pub(super) refused: u64,
    pub(super) power_losses: u64,
    pub(super) kernel: KernelCounts,
    pub(super) time: Duration,
}

impl SimulationSummary {
    pub(super) fn add(&mut self, one: Self) {
        self.rounds += one.rounds;
        self.deaths += one.deaths;
        self.hand_overs += one.hand_overs;
        self.upgrades += one.upgrades;
        self.frames += one.frames;
        self.segments += one.segments;
        self.departed += one.departed;
        self.repeated += one.repeated;
        self.accounts += one.accounts;
        self.lost += one.lost;
        self.flooded += one.flooded;
        self.measured_floods += one.measured_floods;
        self.probes += one.probes;
        self.refused_claims += one.refused_claims;
        self.page_registers += one.page_registers;
        self.misdeeds.add(one.misdeeds);
        self.stuck += one.stuck;
        self.unplugged += one.unplugged;
        self.lost_unplugged += one.lost_unplugged;
        self.tenants += one.tenants;
        self.refused += one.refused;
        self.power_losses += one.power_losses;
        self.kernel += one.kernel;
        self.time += one.time;
    }
}

impl fmt::Display for SimulationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, deaths, hand_overs, frames, repeated, accounts, lost, .. } = self;
        write!(
            f,
            "{} simulated seconds, {rounds} rounds, {deaths} deaths, {hand_overs} hand-overs, ",
            self.time.as_secs()
        )?;
        write!(
            f,
            "{frames} frames, {} of them TCP segments, {repeated} repeated, {lost} counted losses, {accounts} accounts, ",
            self.segments
        )?;
        let Misdeeds { all, forged, requests, truncations } = self.misdeeds;
        write!(f, "{all} misdeeds, {forged} of them forged frames, {requests} hostile requests, ")?;
        write!(f, "{truncations} truncations, {} unplugged uplinks, ", self.unplugged)?;
        write!(f, "{} counted losses without an uplink, ", self.lost_unplugged)?;
        write!(f, "{} stuck workers, {} VFs removed and added, ", self.stuck, self.tenants)?;
        write!(f, "{} frames departed by the uplink, ", self.departed)?;
        write!(
            f,
            "{} refused changes, {} power failures, {} bytes in floods, {} measured floods, ",
            self.refused, self.power_losses, self.flooded, self.measured_floods
        )?;
        write!(f, "{} probes of stations, {} refused claims, ", self.probes, self.refused_claims)?;
        let (upgrades, registers) = (self.upgrades, self.page_registers);
        write!(f, "{upgrades} hand-overs from an earlier program, {registers} mapped registers compared, ")?;
        let KernelCounts { cut_sends, full_sockets, cut_receives, reordered_waits } = self.kernel;
        write!(f, "{cut_sends} cut sends, {full_sockets} full sockets, {cut_receives} cut receives, ")?;
        write!(f, "{reordered_waits} reordered waits")
    }
}
