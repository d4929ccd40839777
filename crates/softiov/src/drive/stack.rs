//! The embedded guest as the TCP/IP stack of the checks.

use direct::check::{Echoes, GuestStack, StackError};
use driver::Vf;
use embedded_guest::EmbeddedGuest;
use std::net::Ipv4Addr;
use std::time::Duration;
use vfio_client::VfBus;

/// Timeout of a guest's link.
const LINK_TIMEOUT: Duration = Duration::from_secs(5);

/// An embedded guest with which the checks ping and send.
pub(super) struct Embedded(EmbeddedGuest);

impl GuestStack for Embedded {
    fn start<B: VfBus>(bus: B, vf: Vf, name: &str, ip: Ipv4Addr) -> Result<Self, StackError> {
        let guest = EmbeddedGuest::start_on(bus, vf, name.to_owned(), ip)?;
        if guest.wait_link(LINK_TIMEOUT) {
            Ok(Self(guest))
        } else {
            Err(format!("the link of guest {name} stays down").into())
        }
    }

    fn ping(&self, to: Ipv4Addr, count: u16) -> Result<Echoes, StackError> {
        let pings = self.0.ping(to, count)?;
        Ok(Echoes { received: pings.received(), median: pings.median().unwrap_or_default() })
    }

    fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<u64, StackError> {
        let flow = self.0.send_tcp(to, bytes)?;
        Ok(flow.first_wrong.unwrap_or(flow.received))
    }
}
