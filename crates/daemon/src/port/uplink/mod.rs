//! What carries frames beyond a live card: nothing, or a tap that may come and go. Left out: offloads on the way, a
//! tap takes and gives whole frames.

mod tap;
mod watch;

use crate::config::PortConfig;
use crate::config::file;
use crate::control::tap::{TapState, TapStatus};
use crate::vault::PortVault;
use host::confine::{ConfineError, Prepared};
use host::poll::{Poller, Waker};
use host::tap::{Tap, TapError};
use nic::Wire;
use std::fmt;
use tap::TapUplink;
use thiserror::Error;

/// Under which name the vault has the tap.
const TAP: &str = "tap";

/// Why an uplink cannot be had.
#[derive(Debug, Error)]
pub enum UplinkError {
    /// The name is not an interface's.
    #[error("uplink: {0}")]
    Name(#[from] host::tap::InvalidName),
    /// The tap cannot be opened or configured.
    #[error("uplink: {0}")]
    Tap(#[from] TapError),
    /// The tap cannot be watched.
    #[error(
        "uplink: cannot watch the tap: {0}; the host needs netlink sockets \
         (in a systemd unit, AF_NETLINK in RestrictAddressFamilies=)"
    )]
    Watch(std::io::Error),
    /// There is no thread to watch the tap.
    #[error("uplink: {0}")]
    Watcher(#[from] ConfineError),
}

/// The uplink of a port.
#[derive(Debug)]
pub(super) enum Uplink {
    None,
    Tap(Box<TapUplink>),
}

impl Uplink {
    /// Makes what is configured, or goes on with a tap that a predecessor has left in the vault. `port` is woken when
    /// something has happened to it; the thread that watches it is a `watcher`.
    pub(super) fn open(
        config: &PortConfig,
        port: &Waker,
        vault: &PortVault,
        watcher: &Prepared,
    ) -> Result<Self, UplinkError> {
        match &config.uplink {
            file::Uplink::None => Ok(Self::None),
            file::Uplink::Tap(name) => {
                let name = name.parse()?;
                let kept = vault.copy_named(TAP).and_then(|fd| Tap::adopt(fd, &name).ok());
                let tap = match kept {
                    Some(tap) => tap,
                    None => Tap::open(&name)?,
                };
                watch::set_up(&tap);
                Ok(Self::Tap(TapUplink::new(vault, tap, config.link, port.clone(), watcher)?.into()))
            }
        }
    }

    /// The descriptor to wait on.
    pub(super) fn tap(&self) -> Option<&Tap> {
        match self {
            Self::None => None,
            Self::Tap(tap) => tap.descriptor(),
        }
    }

    /// The descriptor was reported readable.
    pub(super) fn set_readable(&mut self) {
        if let Self::Tap(tap) = self {
            tap.set_readable();
        }
    }

    /// Takes note of what has happened to the uplink; `false` if nothing has. A tap that is attached to again is
    /// waited on as `token`.
    pub(super) fn follow(&mut self, poller: &Poller, token: u64) -> bool {
        match self {
            Self::None => false,
            Self::Tap(tap) => tap.follow(poller, token),
        }
    }

    /// The link that the port has by it. Without an uplink the port has one, so that its VFs reach each other.
    pub(super) fn link(&self) -> bool {
        match self {
            Self::None => true,
            Self::Tap(tap) => tap.link(),
        }
    }

    /// What is told of the tap, if it is one.
    pub(super) fn status(&self) -> Option<TapStatus> {
        match self {
            Self::None => None,
            Self::Tap(tap) => Some(tap.status()),
        }
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tap(tap) => match tap.state() {
                TapState::Up => write!(f, "tap:{}", tap.name()),
                state => write!(f, "tap:{} ({state})", tap.name()),
            },
        }
    }
}

impl Wire for Uplink {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Tap(tap) => tap.transmit(frame),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Tap(tap) => tap.receive(into),
        }
    }
}
