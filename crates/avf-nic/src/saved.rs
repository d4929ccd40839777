//! A card and its plane set aside between two calls, and continued by a successor. Registers, rings, messages that wait, a
//! packet between two of its segments, what VFs are held to, and counters are in it; of the plane, what its ports owe for
//! their rates, the windows of storm control, and counters. What follows from these is worked out anew: the plane's tables,
//! prices, the hash's tables.
//!
//! Each part knows what it can be; what is beyond that is refused here, and what is accepted does no more than any card.
//! Left out: the PF driver, mirror rules, and versions of the form, which are those of the whole port's state.

use crate::brake::Brake;
use crate::card::Card;
use crate::function::{Function, MOST_COUNTED};
use crate::ports::factor;
use alloc::boxed::Box;
use alloc::vec::Vec;
use avf::ids::MAX_VFS;
use plane::pacing::{Account, Debt, Pacing};
use plane::switch::{Storm, Tables};
use plane::{Plane, Port, PortCounters};
use serde::{Deserialize, Serialize};

/// The state of a card and its plane. Moments in it are those of the clock that the calls were given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "CardState")]
pub struct State {
    basis: Basis,
    /// As many as the card has VFs.
    brakes: Vec<Brake>,
}

/// The state as it was before a VF could be held back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "CardBasis")]
pub struct Basis {
    card: Card,
    /// As many as the card has VFs.
    ports: Vec<PortState>,
    /// What has crossed the plane.
    crossing: Account,
    storm: Storm,
}

/// A port of the plane.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct PortState {
    debt: Debt,
    counters: PortCounters,
}

/// A state that no card can be in, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of the card is damaged: {0}; start the port anew")]
pub struct RestoreError(&'static str);

impl Card {
    /// All that a successor needs to go on where the card and its plane stand. To be called between two calls.
    #[must_use]
    pub fn save(&self, plane: &Plane<MAX_VFS>) -> State {
        let port = |(function, n): (&Function, _)| {
            let (port, rate) = (Port::of_field(n), factor(function.filters.rate));
            // The plane may not have the VF's new rate yet.
            PortState { debt: plane.pacing.debt_at(port, rate), counters: plane.ledger.total(port) }
        };
        let ports = self.functions.iter().zip(0..).map(port).collect();
        let (_, crossing) = plane.pacing.crossing();
        let basis = Basis { card: self.clone(), ports, crossing, storm: plane.storm };
        State { basis, brakes: self.functions.iter().map(|function| function.brake).collect() }
    }

    /// A card and a plane that go on from a state. Before the first poll the plane needs its tables:
    /// [`Card::apply_policy`].
    ///
    /// # Errors
    /// [`RestoreError`] if no card can be in this state.
    pub fn restore(state: State) -> Result<(Self, Box<Plane<MAX_VFS>>), RestoreError> {
        state.flaw().map_or(Ok(()), |what| Err(RestoreError(what)))?;
        let State { basis: Basis { mut card, ports, crossing, storm }, brakes } = state;
        card.functions.iter_mut().zip(brakes).for_each(|(function, brake)| function.brake = brake);
        card.find_masters();
        let mut pacing = Pacing::resume(None, crossing);
        let mut counters = [PortCounters::default(); MAX_VFS];
        for ((Function { filters, .. }, saved), n) in card.functions.iter().zip(&ports).zip(0..) {
            let port = Port::of_field(n);
            pacing.set_debt(port, factor(filters.rate), saved.debt);
            counters[port.index::<MAX_VFS>()] = saved.counters;
        }
        Ok((card, Box::new(Plane::new(Tables::closed(0), pacing, storm, counters))))
    }
}

/// No VF is held back.
impl From<Basis> for State {
    fn from(basis: Basis) -> Self {
        let brakes = basis.card.functions.iter().map(|_| Brake::default()).collect();
        Self { basis, brakes }
    }
}

impl State {
    /// VFs of the card.
    #[must_use]
    pub fn vfs(&self) -> usize {
        self.basis.card.functions.len()
    }

    /// What of it cannot be.
    fn flaw(&self) -> Option<&'static str> {
        let Basis { card, ports, crossing, storm } = &self.basis;
        let counted = ports.iter().flat_map(|port| port.counters.all());
        let accounts = ports.iter().map(|port| port.debt.rate).chain([*crossing]);
        let rules = [
            (ports.len() == self.vfs(), "the plane has other ports than the card has VFs"),
            (self.brakes.len() == self.vfs(), "other VFs are held back than the card has"),
            (
                accounts.into_iter().all(|account| account.is_sound()),
                "a port's debt is not in whole nanoseconds and a fraction",
            ),
            (counted.into_iter().all(|count| count < MOST_COUNTED), "a port's counter is about to overflow"),
            (!storm.is_on() || storm.limits.window > 0, "a storm has windows without a length"),
        ];
        let of_plane = rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what);
        card.flaw().or(of_plane)
    }
}
