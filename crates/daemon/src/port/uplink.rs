//! What carries frames beyond a live card. Left out: offloads on the way, a tap takes and gives whole frames;
//! and attaching again to a tap that was deleted.

use crate::config::file;
use host::tap::{InterfaceName, Tap, TapError, TapReceived, TapSent};
use nic::Wire;
use std::fmt;
use thiserror::Error;

/// Why an uplink cannot be had.
#[derive(Debug, Error)]
pub enum UplinkError {
    /// The name is not an interface's.
    #[error("uplink: {0}")]
    Name(#[from] host::tap::InvalidName),
    /// The tap cannot be opened or configured.
    #[error("uplink: {0}")]
    Tap(#[from] TapError),
}

/// An open uplink.
#[derive(Debug)]
pub(super) enum Uplink {
    None,
    Tap {
        tap: Tap,
        /// The tap may hold frames: it was reported readable and has not been found empty since.
        readable: bool,
        /// Why it cannot be used any more.
        lost: Option<std::io::Error>,
    },
    /// The tap of this name was deleted.
    Gone(InterfaceName),
}

impl Uplink {
    pub(super) fn open(uplink: &file::Uplink) -> Result<Self, UplinkError> {
        match uplink {
            file::Uplink::None => Ok(Self::None),
            file::Uplink::Tap(name) => {
                let name: InterfaceName = name.parse()?;
                let tap = Tap::open(&name)?;
                // Somebody else may have set the interface up, and may be the only one who is allowed to.
                if let Err(error) = tap.set_up() {
                    tracing::info!(tap = name.as_str(), %error, "the tap is left as it is");
                }
                Ok(Self::Tap { tap, readable: true, lost: None })
            }
        }
    }

    /// The descriptor to wait on.
    pub(super) fn tap(&self) -> Option<&Tap> {
        match self {
            Self::None | Self::Gone(_) => None,
            Self::Tap { tap, .. } => Some(tap),
        }
    }

    /// If the tap was lost, says why, once, and lets it go. Its descriptor would be reported for ever.
    pub(super) fn take_lost(&mut self) -> Option<(Tap, std::io::Error)> {
        let Self::Tap { tap, lost, .. } = self else { return None };
        let why = lost.take()?;
        let gone = Self::Gone(tap.name().clone());
        match std::mem::replace(self, gone) {
            Self::Tap { tap, .. } => Some((tap, why)),
            Self::None | Self::Gone(_) => None,
        }
    }

    /// The descriptor was reported readable.
    pub(super) fn set_readable(&mut self) {
        if let Self::Tap { readable, .. } = self {
            *readable = true;
        }
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tap { tap, .. } => write!(f, "tap:{}", tap.name()),
            Self::Gone(name) => write!(f, "tap:{name} (gone)"),
        }
    }
}

impl Wire for Uplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        match self {
            Self::None | Self::Gone(_) => false,
            Self::Tap { tap, .. } => matches!(tap.send(frame), Ok(TapSent::Sent)),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let Self::Tap { tap, readable, lost } = self else { return None };
        if !*readable {
            return None;
        }
        match tap.recv(into) {
            Ok(TapReceived::Frame(length)) => Some(length),
            Ok(TapReceived::Empty) => {
                *readable = false;
                None
            }
            Err(error) => {
                (*readable, *lost) = (false, Some(error));
                None
            }
        }
    }
}
