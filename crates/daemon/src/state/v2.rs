//! Version 1 of a card's state and of a port's: no frames waited for descriptors. Left out: everything that both versions
//! have, which is today's.

use super::port::{ClientState, Configured};
use super::{CardState, PortState};
use driver::pf::PfState;
use i82576::Time;
use iovm::ManagerState;
use pcie::msix::TableState;
use serde::Deserialize;

/// A card as version 1 has it.
#[derive(Deserialize)]
pub(super) struct Card {
    nic: nic::Basis,
    pf: Option<PfState>,
    manager: Option<ManagerState>,
}

impl From<Card> for CardState {
    fn from(card: Card) -> Self {
        let Card { nic, pf, manager } = card;
        Self { nic: nic.into(), pf, manager }
    }
}

/// A port as version 1 has it.
#[derive(Deserialize)]
pub(super) struct Port {
    card: Card,
    table: Option<TableState>,
    configured: Option<Configured>,
    watched: Time,
    functions: Vec<ClientState>,
}

impl From<Port> for PortState {
    fn from(port: Port) -> Self {
        let Port { card, table, configured, watched, functions } = port;
        Self { card: card.into(), table, configured, watched, functions }
    }
}
