//! Checks that guests on VFs of several families reach each other: igbvf, iavf and virtio_net, each on a port of its
//! family, and iavf and virtio_net on one port. A wire joins only two ports, so three ports meet at the bridge beyond their
//! uplinks.

use super::{exchange_at, mac, wait_link};
use crate::avf;
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::world::{ALICE, ALICE_AVF, LinuxTestbed, SPLIT};
use anyhow::Result;
use linux_guest::LinuxGuest;
use rustix::process::{Signal, kill_process};
use std::path::PathBuf;

/// Driver of each family, the family's name, and a VF whose guests have that driver.
const FAMILIES: [(&str, &str, &str); 3] =
    [("igbvf", "82576", ALICE), ("iavf", "avf", ALICE_AVF), ("virtio_net", "virtio", SPLIT)];
/// Numbers of the uplinks of the ports.
const TAPS: [u8; 3] = [20, 21, 22];
/// Port VLAN of all three VFs, and a VLAN that none of the others is in.
const VLANS: [u16; 2] = [55, 56];

/// Boots a guest with each of these drivers on its socket. Returns the guests with the addresses of their interfaces.
fn boot(
    world: &LinuxTestbed,
    drivers: &[(&'static str, &str, &'static str)],
    sockets: &[PathBuf],
) -> Result<(Vec<ScenarioGuest>, Vec<String>)> {
    let guests = (0..).zip(drivers).zip(sockets).map(|((number, (driver, family, place)), socket)| {
        let builder = LinuxGuest::builder(*driver);
        let builder = match *family {
            "virtio" => builder.vhost_socket(socket.clone(), 1, &[mac(0x30)]),
            _ => builder.vf_socket(socket.clone()),
        };
        ScenarioGuest::spawn(builder, world.assets(), place, 30 + number)
    });
    let guests = guests.collect::<Result<Vec<_>>>()?;
    let addresses: Vec<_> = (1..=drivers.len()).map(|number| format!("10.84.4.{number}")).collect();
    for ((guest, address), (driver, ..)) in guests.iter().zip(&addresses).zip(drivers) {
        guest.linux.wait_ready(BOOT)?;
        eventually(|| guest.check(&format!("modprobe {driver}; ethtool -i eth0 | grep -w {driver}")))?;
        avf::set_up(guest, "eth0", address)?;
        wait_link(guest, "eth0")?;
        guest.check("iperf3 -s -D")?;
    }
    Ok((guests, addresses))
}

/// Checks iavf and virtio_net on one port: pings and TCP in one port VLAN, none between two, and both again after an upgrade
/// and a SIGKILL of the host.
pub(crate) fn share_a_port(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let vlan = VLANS[0];
    let served = HostWithKeeper::start(&format!(
        "[[port]]\nfamily = \"avf\"\nvfs = 2\nvf = [{{ index = 0, vlan = {vlan} }}, \
         {{ index = 1, vlan = {vlan}, family = \"virtio\" }}]\n"
    ))?;
    let sockets = ["pf0vf0", "pf0vf1"].map(|vf| served.socket(vf));
    let (guests, addresses) = boot(world, &FAMILIES[1..], &sockets)?;
    let ends = || [(&guests[0], &*addresses[0]), (&guests[1], &*addresses[1])];
    exchange_at(ends(), 24)?;
    for (vf, (guest, other)) in guests.iter().zip(addresses.iter().rev()).enumerate() {
        served.softiov(&format!("vf set pf0vf{vf} --vlan {}", VLANS[1]))?;
        guest.cannot_reach("eth0", other)?;
        served.softiov(&format!("vf set pf0vf{vf} --vlan {vlan}"))?;
        guest.reach(other)?;
    }
    served.softiov("upgrade")?;
    exchange_at(ends(), 8)?;
    let host = served.host(None)?;
    kill_process(host, Signal::KILL)?;
    served.host(Some(host))?;
    exchange_at(ends(), 8)?;
    guests.into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND))?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks pings and TCP between guests of every two families in one port VLAN, and that a VF in another VLAN reaches none.
pub(crate) fn share_a_vlan(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let ports = FAMILIES.iter().zip(TAPS).map(|((_, family, _), tap)| {
        format!(
            "[[port]]\nfamily = {family:?}\nvfs = 1\nuplink.tap = {:?}\n[[port.vf]]\nindex = 0\nvlan = {}\n",
            wire.tap(tap),
            VLANS[0]
        )
    });
    let served = HostWithKeeper::start(&ports.collect::<String>())?;
    TAPS.into_iter().try_for_each(|tap| wire.plug(tap))?;
    let sockets = [0, 1, 2].map(|port| served.socket(&format!("pf{port}vf0")));
    let (guests, addresses) = boot(world, &FAMILIES, &sockets)?;
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        exchange_at([(&guests[one], &addresses[one]), (&guests[other], &addresses[other])], 8)?;
    }
    for (port, guest) in guests.iter().enumerate() {
        let others = (0..FAMILIES.len()).filter(|other| *other != port);
        served.softiov(&format!("vf set pf{port}vf0 --vlan {}", VLANS[1]))?;
        for other in others.clone() {
            guest.cannot_reach("eth0", &addresses[other])?;
        }
        served.softiov(&format!("vf set pf{port}vf0 --vlan {}", VLANS[0]))?;
        for other in others {
            guest.reach(&addresses[other])?;
        }
    }
    guests.into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND))?;
    Ok(LinuxCheckOutcome::Passed)
}
