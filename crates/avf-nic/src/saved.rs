//! Saved state of a card and its plane, taken between two calls for a successor. Of the card it has registers, rings,
//! pending messages, a partly sent packet, limits and counters; of the plane, the transmit rate accounts of its ports,
//! the windows of storm control, and counters. Tables, rate factors and hash tables are made again from these.
//!
//! Each part checks its own state, and a state that no card can be in is refused. An accepted state is bounded like any card. The
//! PF driver is saved apart. The state's version is that of the whole port's state.

use crate::brake::VfThrottle;
use crate::card::Nic;
use crate::function::{MOST_COUNTED, VfHardware};
use crate::tables::factor;
use alloc::boxed::Box;
use alloc::vec::Vec;
use avf::ids::MAX_VFS;
use pcie::VfSet;
use plane::pacing::{TransmitPacing, TransmitRateDebt, TransmitTimeAccount};
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters, PortIndex};
use serde::{Deserialize, Serialize};

/// Saved state of a card and its plane. Its times are on the clock that was passed to the saved card.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "CardState")]
pub struct NicState {
    basis: NicBaseState,
    /// Limits on messages and interrupts that the PF has set, one for each VF.
    brakes: Vec<VfThrottle>,
}

/// Saved state of a card and its plane without the limits on VFs' messages and interrupts: the whole state in the
/// earlier version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "CardBasis")]
pub struct NicBaseState {
    card: Nic,
    /// Transmit rate accounts and counters of the plane's ports, one port for each VF.
    ports: Vec<SavedPlanePort>,
    /// Account of the time that frames between ports have cost so far at the plane's bandwidth limit.
    crossing: TransmitTimeAccount,
    storm: StormState,
}

/// Saved transmit rate account and counters of one port of the plane.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename = "PortState")]
struct SavedPlanePort {
    debt: TransmitRateDebt,
    counters: PortCounters,
}

/// Error of a saved state that no card can be in: the violated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved state of the AVF card is damaged: {0}; restart the port without the saved state")]
pub struct RestoreError(&'static str);

impl Nic {
    /// Returns the state of the card and its plane, from which another process can continue.
    #[must_use]
    pub fn save(&self, plane: &ForwardingPlane<MAX_VFS>) -> NicState {
        let port = |(function, n): (&VfHardware, _)| {
            let (port, rate) = (PortIndex::of_field(n), factor(function.filters.rate));
            let mut counters = plane.ledger.total(port);
            counters.tx_unclaimed += self.scratch.dropped.bits() >> n & 1;
            // The plane has the VF's rate as of the last `apply_policy`; the order may be newer.
            SavedPlanePort { debt: plane.pacing.debt_at(port, rate), counters }
        };
        let ports = self.functions.iter().zip(0..).map(port).collect();
        let (_, crossing) = plane.pacing.crossing();
        let basis = NicBaseState { card: self.clone(), ports, crossing, storm: plane.storm };
        NicState { basis, brakes: self.functions.iter().map(|function| function.brake).collect() }
    }

    /// Creates a card and a plane from a state. Call [`Nic::apply_policy`] before the first poll: the plane has no
    /// tables.
    ///
    /// # Errors
    /// [`RestoreError`] if no card can be in this state.
    pub fn restore(state: NicState) -> Result<(Self, Box<ForwardingPlane<MAX_VFS>>), RestoreError> {
        state.flaw().map_or(Ok(()), |what| Err(RestoreError(what)))?;
        let NicState { basis: NicBaseState { mut card, ports, crossing, storm }, brakes } = state;
        card.functions.iter_mut().zip(brakes).for_each(|(function, brake)| function.brake = brake);
        // The saved counters have these packets.
        card.scratch.dropped = VfSet::NONE;
        card.find_masters();
        let mut pacing = TransmitPacing::resume(None, crossing);
        let mut counters = [PortCounters::default(); MAX_VFS];
        for ((VfHardware { filters, .. }, saved), n) in card.functions.iter().zip(&ports).zip(0..) {
            let port = PortIndex::of_field(n);
            pacing.set_debt(port, factor(filters.rate), saved.debt);
            counters[port.index::<MAX_VFS>()] = saved.counters;
        }
        Ok((card, Box::new(ForwardingPlane::new(SwitchTables::closed(0), pacing, storm, counters))))
    }
}

/// Converts a state of the earlier version, which has no limits on messages and interrupts.
impl From<NicBaseState> for NicState {
    fn from(basis: NicBaseState) -> Self {
        let brakes = basis.card.functions.iter().map(|_| VfThrottle::default()).collect();
        Self { basis, brakes }
    }
}

impl NicState {
    /// Returns the number of VFs of the saved card.
    #[must_use]
    pub fn vfs(&self) -> usize {
        self.basis.card.functions.len()
    }

    /// Returns the first consistency rule that the saved state breaks, or `None` if the state is valid.
    fn flaw(&self) -> Option<&'static str> {
        let NicBaseState { card, ports, crossing, storm } = &self.basis;
        let counted = ports.iter().flat_map(|port| port.counters.all());
        let accounts = ports.iter().map(|port| port.debt.rate).chain([*crossing]);
        let rules = [
            (ports.len() == self.vfs(), "the number of the VFs' switch ports differs from the number of VFs"),
            (
                self.brakes.len() == self.vfs(),
                "the number of VFs with limits on messages and interrupts differs from the number of VFs",
            ),
            (
                accounts.into_iter().all(|account| account.is_sound()),
                "the fraction in a switch port's rate-limit debt is a nanosecond or more",
            ),
            (
                counted.into_iter().all(|count| count < MOST_COUNTED),
                "a switch port's counter is 2^62 or more",
            ),
            (!storm.is_on() || storm.limits.window > 0, "storm control is enabled with a window of length 0"),
        ];
        let of_plane = rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what);
        card.flaw().or(of_plane)
    }
}
