//! Creates a port's card from the saved state of the previous process. If the notes on a port at rest are valid, the
//! card is exactly as the predecessor left it. Else a new card is set up by the software that was in force, which
//! guests see as a reset of the port. Without notes the card is new.

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

/// Creates the card with as much of the previous process's saved state as is trusted. The result is `true` if the
/// card is exactly the predecessor's.
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
            Err(error) => {
                tracing::error!(
                    port = config.name,
                    %error,
                    "cannot restore the card of the previous process; guests see a reset"
                );
            }
        }
    }
    let software = journal.software();
    if trust.has_clients() && !software.is_empty() {
        match by_software(config, link, (&software, configurations(config, journal)), bus, now) {
            Ok(card) => return Ok((card, false)),
            Err(error) => {
                tracing::error!(
                    port = config.name,
                    %error,
                    "cannot restore the policy of the previous process; the configuration applies"
                );
            }
        }
    }
    Ok((anew(config, link, bus, now)?, false))
}

/// Creates a card without any state of the previous process.
fn anew(config: &PortConfig, link: bool, bus: &mut LiveBus, now: Time) -> Result<Inherited, EngineError> {
    Ok(match config.family {
        Family::Avf => Inherited::new(Avf::new(config, link, bus, now)?),
        Family::I82576 => Inherited::new(I82576::bring_up(config, link, now)?),
    })
}

/// Restores the card from the previous process's saved state of the whole port.
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

/// Creates a new card, set up by the software that was in force. `functions` hold configuration that guests have
/// changed since.
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
