//! The card of a port: as a predecessor has left it, if the notes on a port at rest count; else set up anew by the software
//! that was in force, which guests take for a reset of the port; else new.
//!
//! Left out: clients (`adopt`).

#[cfg(test)]
mod tests;

use super::notes::configurations;
use super::trust::Trust;
use crate::config::PortConfig;
use crate::config::file::Family;
use crate::port::clients::journal::Journal;
use crate::port::engine::avf::Avf;
use crate::port::engine::bus::LiveBus;
use crate::port::engine::error::{EngineError, InheritanceError};
use crate::port::engine::family::Inherited;
use crate::port::engine::i82576::I82576;
use i82576::Time;
use iovm::FunctionState;
use pcie::VfIndex;

/// Makes the card with as much of a predecessor's notes as is trusted. The answer is `true` if it is exactly the
/// predecessor's.
pub(super) fn card(
    config: &PortConfig,
    link: bool,
    (journal, trust): (&Journal, Trust),
    bus: &mut LiveBus,
    now: Time,
) -> Result<(Inherited, bool), EngineError> {
    let rest = journal.rest().read().filter(|_| trust == Trust::Everything);
    if let Some(bytes) = rest {
        match at_rest(config, &bytes, bus, now) {
            Ok(card) => return Ok((card, true)),
            Err(error) => tracing::error!(port = config.name, %error, "the card starts anew"),
        }
    }
    let software = journal.software();
    if trust.has_clients() && !software.is_empty() {
        match by_software(config, link, (&software, configurations(config, journal)), bus, now) {
            Ok(card) => return Ok((card, false)),
            Err(error) => tracing::error!(port = config.name, %error, "the policy starts anew"),
        }
    }
    Ok((anew(config, link, bus, now)?, false))
}

/// Makes a card with nothing from before.
fn anew(config: &PortConfig, link: bool, bus: &mut LiveBus, now: Time) -> Result<Inherited, EngineError> {
    Ok(match config.family {
        Family::Avf => Inherited::new(Avf::new(config, link, bus, now)?),
        Family::I82576 => Inherited::new(I82576::bring_up(config, link, now)?),
    })
}

/// Makes the card as it was at rest.
fn at_rest(
    config: &PortConfig,
    bytes: &[u8],
    bus: &mut LiveBus,
    now: Time,
) -> Result<Inherited, InheritanceError> {
    match config.family {
        Family::Avf => Avf::resume(config, bytes, bus, now),
        Family::I82576 => I82576::resume(config, bytes, now),
    }
}

/// Makes a new card, set up by the software that was in force, with what guests have configured of `functions` since.
fn by_software(
    config: &PortConfig,
    link: bool,
    (software, functions): (&[u8], Vec<(VfIndex, FunctionState)>),
    bus: &mut LiveBus,
    now: Time,
) -> Result<Inherited, InheritanceError> {
    Ok(match config.family {
        Family::Avf => Inherited::new(Avf::by_software(config, link, (software, functions), bus, now)?),
        Family::I82576 => Inherited::new(I82576::by_software(config, link, software, functions, now)?),
    })
}
