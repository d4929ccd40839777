//! Provides the embedded guest as the TCP/IP stack of the driver checks.

use direct::check::{EchoReplyStatistics, GuestNetworkStack, GuestStackError};
use driver::Vf;
use embedded_guest::EmbeddedGuest;
use std::net::Ipv4Addr;
use std::time::Duration;
use vfio_client::VfDriverHal;

/// Timeout for an embedded guest's link to come up.
const LINK_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP/IP stack of a driver check: an embedded guest that pings and sends TCP.
pub(super) struct EmbeddedStack(EmbeddedGuest);

impl GuestNetworkStack for EmbeddedStack {
    fn start<B: VfDriverHal>(bus: B, vf: Vf, name: &str, ip: Ipv4Addr) -> Result<Self, GuestStackError> {
        let guest = EmbeddedGuest::start_on(bus, vf, name.to_owned(), ip)?;
        if guest.wait_link(LINK_TIMEOUT) {
            Ok(Self(guest))
        } else {
            Err(format!("the link of guest {name} stays down").into())
        }
    }

    fn ping(&self, to: Ipv4Addr, count: u16) -> Result<EchoReplyStatistics, GuestStackError> {
        let pings = self.0.ping(to, count)?;
        Ok(EchoReplyStatistics { received: pings.received(), median: pings.median().unwrap_or_default() })
    }

    fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<u64, GuestStackError> {
        let flow = self.0.send_tcp(to, bytes)?;
        Ok(flow.first_wrong.unwrap_or(flow.received))
    }
}
