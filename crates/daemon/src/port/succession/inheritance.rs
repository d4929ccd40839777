//! Creates a port's card from the saved state of the previous host process. If the saved state of the whole port is
//! valid, the card is exactly as the predecessor left it. Else a new card is set up from the predecessor's driver
//! state, which guests see as a reset of the port. Without saved state the card is new.

#[cfg(test)]
mod tests;

use super::notes::configurations;
use super::trust::SavedStateTrust;
use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::port::clients::journal::PortJournal;
use crate::port::engine::avf::AvfCard;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::error::{InheritedStateError, PortEngineStartError};
use crate::port::engine::family::InheritedCard;
use crate::port::engine::i82576::I82576Card;
use crate::port::engine::mixed::MixedCard;
use crate::port::engine::virtio::VirtioCard;
use i82576::Time;
use iovm::VirtualFunctionState;
use pcie::VfIndex;

/// Creates the port's card from that part of the previous host process's saved state that is trusted. The second value
/// is `true` if the card is exactly as the predecessor left it.
pub(super) fn card(
    config: &PortConfig,
    link: bool,
    (journal, trust): (&PortJournal, SavedStateTrust),
    bus: &mut GuestBus,
    now: Time,
) -> Result<(InheritedCard, bool), PortEngineStartError> {
    let rest = journal.rest().read().filter(|_| trust == SavedStateTrust::Everything);
    if let Some(bytes) = rest {
        match at_rest(config, &bytes, bus, now) {
            Ok(card) => return Ok((card, true)),
            Err(error) => {
                tracing::error!(
                    port = config.name,
                    %error,
                    "cannot restore the card of the previous host process; guests see a reset"
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
                    "cannot restore the policy of the previous host process; the configuration applies"
                );
            }
        }
    }
    Ok((anew(config, link, bus, now)?, false))
}

/// Creates a port's card without any state of the previous host process.
fn anew(
    config: &PortConfig,
    link: bool,
    bus: &mut GuestBus,
    now: Time,
) -> Result<InheritedCard, PortEngineStartError> {
    Ok(match config.family {
        _ if config.is_mixed() => InheritedCard::new(MixedCard::new(config, link, bus, now)?),
        CardFamily::Avf => InheritedCard::new(AvfCard::new(config, link, bus, now)?),
        CardFamily::I82576 => InheritedCard::new(I82576Card::bring_up(config, link, now)?),
        CardFamily::Virtio => InheritedCard::new(VirtioCard::new(config, link)),
    })
}

/// Restores a port's card from the previous host process's saved state of the whole port.
fn at_rest(
    config: &PortConfig,
    bytes: &[u8],
    bus: &mut GuestBus,
    now: Time,
) -> Result<InheritedCard, InheritedStateError> {
    match config.family {
        _ if config.is_mixed() => MixedCard::resume(config, bytes, bus, now),
        CardFamily::Avf => AvfCard::resume(config, bytes, bus, now).map(InheritedCard::of_any_family),
        CardFamily::I82576 => I82576Card::resume(config, bytes, now),
        CardFamily::Virtio => VirtioCard::resume(config, bytes).map(InheritedCard::of_any_family),
    }
}

/// Creates a new card, set up from the previous host process's driver state. `functions` holds the PCI configurations
/// that guests have changed after that state was saved.
fn by_software(
    config: &PortConfig,
    link: bool,
    (software, functions): (&[u8], Vec<(VfIndex, VirtualFunctionState)>),
    bus: &mut GuestBus,
    now: Time,
) -> Result<InheritedCard, InheritedStateError> {
    Ok(match config.family {
        _ if config.is_mixed() => {
            InheritedCard::new(MixedCard::by_software(config, link, (software, functions), bus, now)?)
        }
        CardFamily::Avf => {
            InheritedCard::new(AvfCard::by_software(config, link, (software, functions), bus, now)?)
        }
        CardFamily::I82576 => {
            InheritedCard::new(I82576Card::by_software(config, link, software, functions, now)?)
        }
        // Its VFs have no PCI configuration.
        CardFamily::Virtio => InheritedCard::new(VirtioCard::by_software(config, link, software)?),
    })
}
