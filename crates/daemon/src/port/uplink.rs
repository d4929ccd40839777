//! What carries frames beyond a live card. Left out: offloads on the way; a tap takes and gives whole frames.

use crate::config::file;
use host::tap::{InterfaceName, Tap, TapError, TapReceived, TapSent};
use nic::Wire;
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
    },
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
                Ok(Self::Tap { tap, readable: true })
            }
        }
    }

    /// The descriptor to wait on.
    pub(super) fn tap(&self) -> Option<&Tap> {
        match self {
            Self::None => None,
            Self::Tap { tap, .. } => Some(tap),
        }
    }

    /// The descriptor was reported readable.
    pub(super) fn set_readable(&mut self) {
        if let Self::Tap { readable, .. } = self {
            *readable = true;
        }
    }
}

impl Wire for Uplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Tap { tap, .. } => matches!(tap.send(frame), Ok(TapSent::Sent)),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        let Self::Tap { tap, readable } = self else { return None };
        if !*readable {
            return None;
        }
        match tap.recv(into) {
            Ok(TapReceived::Frame(length)) => Some(length),
            Ok(TapReceived::Empty) | Err(_) => {
                *readable = false;
                None
            }
        }
    }
}
