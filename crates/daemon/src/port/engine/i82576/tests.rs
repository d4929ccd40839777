//! Tests of the PF driver's access to an 82576.

use super::hal::{I82576PfHal, RunningCardHal};
use crate::config::HostConfig;
use crate::config::file::CardFamily;
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::uplink::PortUplink;
use crate::port::engine::uplink::test_support::with_resources;
use driver::Hal;
use i82576::{MacAddress, Time};
use nic::{Nic, NicConfig};
use plane::guard::PortGuard;
use std::path::Path;

#[test]
fn each_access_of_the_pf_driver_asks_the_switch() {
    let [own, reserved, free] = [1, 2, 3].map(|n| MacAddress([2, 0, 0, 0, 0, n]));
    let config = HostConfig::parse("[[port]]\nvfs = 1\n").unwrap();
    let config = HostConfig::check(config, Path::new("/run/softiov")).unwrap();
    let threads = ThreadSandboxes::prepare(&config).unwrap();
    let mut uplink = with_resources(|resources| PortUplink::open(&config.ports[0], resources).unwrap());
    let mut bus = GuestBus::new(("pf0", &[CardFamily::I82576]), 1 << 30, &threads.helper).unwrap();
    let mut nic = Nic::new(NicConfig { mac: own, iov: true, loopback: None });
    let guard = PortGuard { checks_claims: true, ..PortGuard::default() };
    nic.guards_mut().set_guards(&[guard], &[reserved], 0);
    assert!(!I82576PfHal::new(&mut nic, Time::ZERO).may_have_address(0, reserved));
    let (bus, uplink) = (&mut bus, &mut uplink);
    let mut running = RunningCardHal { nic: &mut nic, bus, uplink, now: Time::ZERO };
    assert!(!running.may_have_address(0, reserved));
    assert!(running.may_have_address(0, free));
}
