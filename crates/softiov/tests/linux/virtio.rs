//! A measurement, made with `SOFTIOV_MEASURE=1`: TCP between a guest and a network namespace over igbvf and our tap, beside
//! virtio-net and a tap of QEMU's own, in one guest, on one bridge, in turns of a few seconds. Nothing is judged.

use crate::guest::{BOOT, COMMAND, Guest};
use crate::report::Outcome;
use crate::wire::Wire;
use crate::world::{VISITOR, World};
use anyhow::{Context, Result};
use serde_json::Value;

/// The number of QEMU's tap; ports have those below.
const TAP: u8 = 9;
const ROUNDS: usize = 7;
/// What a turn is, and how iperf3 is asked for the other direction.
const TURN: &str = "-t 3";
const DIRECTIONS: [(&str, &str); 2] = [("from the guest", ""), ("to the guest", "-R")];

/// One turn: megabits a second, and segments sent again.
#[derive(Clone, Copy)]
struct Turn {
    rate: f64,
    again: u64,
}

pub(crate) fn tcp_is_measured_beside_it(world: &mut World) -> Result<Outcome> {
    if std::env::var_os("SOFTIOV_MEASURE").is_none() {
        return Ok(Outcome::Skipped("a measurement: SOFTIOV_MEASURE=1 has it made".into()));
    }
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(Outcome::Skipped(format!("no uplink here: {why}"))),
    };
    let guest = boot(world, wire)?;
    let servers = [("igbvf", wire.address()), ("virtio-net", wire.second_address())];
    println!();
    for (direction, option) in DIRECTIONS {
        let mut turns = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for ((_, server), turns) in servers.iter().zip(&mut turns) {
                turns.push(turn(&guest, server, option)?);
            }
        }
        let ratios = turns[0].iter().zip(&turns[1]).map(|(ours, theirs)| ours.rate / theirs.rate).collect();
        for ((name, _), turns) in servers.iter().zip(&turns) {
            let rate = median(turns.iter().map(|turn| turn.rate).collect());
            let again: Vec<u64> = turns.iter().map(|turn| turn.again).collect();
            println!("    {direction}, {name}: {rate:.0} Mb/s, segments sent again {again:?}");
        }
        println!("    {direction}: igbvf is {:.2} of virtio-net (median of {ROUNDS} pairs)", median(ratios));
    }
    let port = world.port()?.uplink_status.context("the uplink is no tap")?;
    let vf = world.vf(VISITOR)?;
    println!("    the uplink's drops: {:?}; the VF's: {:?}", port.drops, vf.drops);
    guest.linux.shutdown(COMMAND)?;
    Ok(Outcome::Passed)
}

/// A guest with a VF, which is its eth0 or eth1, and QEMU's virtio-net; both have addresses.
fn boot(world: &World, wire: &Wire) -> Result<Guest> {
    wire.return_tap(TAP)?;
    let netdev = format!("tap,id=theirs,ifname={},script=no,downscript=no", wire.tap(TAP));
    let device = "virtio-net-pci,netdev=theirs,mac=02:82:57:60:09:09,romfile=";
    let builder = ["-netdev", &netdev, "-device", device]
        .into_iter()
        .fold(world.builder("erin", VISITOR), |builder, word| builder.qemu_argument(word));
    let guest = Guest::spawn(builder, world.assets(), VISITOR, 5)?;
    guest.linux.wait_ready(BOOT)?;
    wire.plug(TAP)?;
    wire.take_second_address()?;
    let named = |driver: &str| {
        format!("$(cd /sys/bus/{driver}/*:*/net 2>/dev/null || cd /sys/bus/{driver}/*/net; ls)")
    };
    let (vf, virtio) = (named("pci/drivers/igbvf"), named("virtio/drivers/virtio_net"));
    guest.check(&format!(
        "modprobe virtio_net
         echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
         ip addr add 10.82.0.5/24 dev {vf} && ip link set {vf} up || exit
         ip addr add 10.83.0.5/24 dev {virtio} && ip link set {virtio} up"
    ))?;
    guest.reach(&wire.address())?;
    guest.reach(&wire.second_address())?;
    Ok(guest)
}

fn turn(guest: &Guest, server: &str, option: &str) -> Result<Turn> {
    let output = guest.linux.run(&format!("iperf3 -J -c {server} {TURN} {option}"), COMMAND)?;
    let report: Value = serde_json::from_str(&output.stdout)?;
    let end = &report["end"];
    let rate = end["sum_received"]["bits_per_second"].as_f64().with_context(|| output.stdout.clone())?;
    Ok(Turn { rate: rate / 1e6, again: end["sum_sent"]["retransmits"].as_u64().unwrap_or(0) })
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
