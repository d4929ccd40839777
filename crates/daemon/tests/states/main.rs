//! Tests of saved states: a card with its PF driver and SR-IOV manager is saved, encoded, decoded and continued; states
//! of earlier versions are read; and damaged states are refused. `live` tests hand-over with a port around the card.

mod avf;
mod conversation;
mod damage;
mod kept;
mod poke;
mod world;
