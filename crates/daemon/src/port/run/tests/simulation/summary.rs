//! Figures of simulated lives.

use super::hostile::Misdeeds;
use super::kernel::KernelCounts;
use crate::config::file::CardFamily;
use std::fmt;
use std::time::Duration;

/// Families of functions.
pub(super) const FAMILIES: [CardFamily; 3] = [CardFamily::I82576, CardFamily::Avf, CardFamily::Virtio];

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
    /// Number of frames of virtio guests that have left by the uplink again after a death.
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
    /// Number of stations that successors knew from the process before a hand-over.
    pub(super) kept_stations: u64,
    /// Number of claims to addresses that the port has refused.
    pub(super) refused_claims: u64,
    /// Number of registers that were compared in the pages of guests.
    pub(super) page_registers: u64,
    /// Number of times that a VMM has paused a guest or added memory.
    pub(super) remaps: u64,
    pub(super) misdeeds: Misdeeds,
    /// Number of times that memory of a function was truncated, by the families of [`FAMILIES`].
    pub(super) truncations: [u64; FAMILIES.len()],
    /// Number of misdeeds while the uplink was gone.
    pub(super) unplugged_misdeeds: u64,
    /// Number of times that a worker thread was stuck.
    pub(super) stuck: u64,
    /// Number of guests that booted while the memory of a former client was not mapped yet.
    pub(super) late_mappings: u64,
    /// Number of times that the uplink was unplugged, and of frames that the port has lost and counted meanwhile.
    pub(super) unplugged: u64,
    pub(super) lost_unplugged: u64,
    /// Number of times that the administrator has removed the last VF and added it again, and of removals in which the host has
    /// died.
    pub(super) removed_vfs: u64,
    pub(super) interrupted_removals: u64,
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
        self.kept_stations += one.kept_stations;
        self.refused_claims += one.refused_claims;
        self.page_registers += one.page_registers;
        self.remaps += one.remaps;
        self.misdeeds.add(one.misdeeds);
        self.truncations.iter_mut().zip(one.truncations).for_each(|(sum, one)| *sum += one);
        self.unplugged_misdeeds += one.unplugged_misdeeds;
        self.stuck += one.stuck;
        self.late_mappings += one.late_mappings;
        self.unplugged += one.unplugged;
        self.lost_unplugged += one.lost_unplugged;
        self.removed_vfs += one.removed_vfs;
        self.interrupted_removals += one.interrupted_removals;
        self.refused += one.refused;
        self.power_losses += one.power_losses;
        self.kernel += one.kernel;
        self.time += one.time;
    }

    /// Adds misdeeds of a function's guest or VMM.
    pub(super) fn add_misdeeds(&mut self, family: CardFamily, done: Misdeeds, is_uplink_gone: bool) {
        self.misdeeds.add(done);
        let families = self.truncations.iter_mut().zip(FAMILIES);
        families.filter(|(_, of)| *of == family).for_each(|(sum, _)| *sum += done.truncations);
        self.unplugged_misdeeds += if is_uplink_gone { done.all } else { 0 };
    }

    /// Returns the names of the figures that are 0.
    pub(super) fn absent(&self) -> Vec<&'static str> {
        self.figures().into_iter().filter(|(value, _)| *value == 0).map(|(_, name)| name).collect()
    }

    /// Returns the figures and their names.
    fn figures(&self) -> Vec<(u64, &'static str)> {
        let Misdeeds { all, forged, requests, unmappings, .. } = self.misdeeds;
        let KernelCounts { cut_sends, full_sockets, cut_receives, reordered_waits } = self.kernel;
        let [i82576, avf, virtio] = self.truncations;
        vec![
            (self.time.as_secs(), "simulated seconds"),
            (self.rounds, "rounds"),
            (self.deaths, "deaths"),
            (self.hand_overs, "hand-overs"),
            (self.upgrades, "hand-overs from an earlier program"),
            (self.frames, "frames"),
            (self.segments, "received TCP segments"),
            (self.departed, "frames departed by the uplink"),
            (self.repeated, "repeated frames at the uplink"),
            (self.accounts, "accounts"),
            (self.lost, "counted losses"),
            (self.remaps, "pauses and additions of memory"),
            (all, "misdeeds"),
            (forged, "forged frames"),
            (requests, "hostile requests"),
            (unmappings, "hostile unmappings"),
            (i82576, "truncations of memory of 82576 VFs"),
            (avf, "truncations of memory of AVFs"),
            (virtio, "truncations of memory of virtio devices"),
            (self.unplugged, "unplugged uplinks"),
            (self.lost_unplugged, "counted losses without an uplink"),
            (self.unplugged_misdeeds, "misdeeds without an uplink"),
            (self.stuck, "stuck workers"),
            (self.late_mappings, "late mappings"),
            (self.removed_vfs, "VFs removed and added"),
            (self.interrupted_removals, "removals in which the host died"),
            (self.refused, "refused changes"),
            (self.power_losses, "power failures"),
            (self.flooded, "bytes in floods"),
            (self.measured_floods, "measured floods"),
            (self.probes, "probes of stations"),
            (self.kept_stations, "stations kept by successors"),
            (self.refused_claims, "refused claims"),
            (self.page_registers, "mapped registers compared"),
            (cut_sends, "cut sends"),
            (full_sockets, "full sockets"),
            (cut_receives, "cut receives"),
            (reordered_waits, "reordered waits"),
        ]
    }
}

/// Prints the figures, between commas.
impl fmt::Display for SimulationSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Vec<_> = self.figures().iter().map(|(value, name)| format!("{value} {name}")).collect();
        f.write_str(&figures.join(", "))
    }
}
