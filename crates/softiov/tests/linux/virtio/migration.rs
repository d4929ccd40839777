//! Checks live migration: a stock QEMU moves a running guest from a virtio VF of one host to a VF of another, whose uplinks are on
//! two switches with a cable between them, each in a network namespace of its own. Times are printed, not judged.

use super::{is_packed, mac, set_up, wait_link};
use crate::avf::no_checksum_errors;
use crate::guest::{BOOT, COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::stream::{EVERY_MS, IperfStream, missed};
use crate::wire::{FarSwitch, WireNamespace};
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use linux_guest::{BackgroundScript, BootFiles, GuestBuilder, LinuxGuest};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Numbers of both hosts' taps, above those of the other checks' hosts.
const TAPS: [u8; 2] = [4, 5];
/// IPv4 address of the guest.
const ADDRESS: &str = "10.82.0.9";
/// Ethernet address of the guest's second interface, which has packed rings. The VMM requests announcements for it: its driver
/// makes none.
const QUIET: &str = "52:54:00:82:84:0b";
/// IPv4 address that the second interface has for pings alone.
const QUIET_ADDRESS: &str = "10.82.0.10";
/// Names of the VFs of each host that the guest uses.
const VFS: [&str; 2] = ["pf0vf0", "pf0vf1"];
/// Number of files that the guest downloads in turn, again and again, and bytes of each.
const FILES: usize = 3;
const BYTES: u32 = 4 << 20;
/// Script that downloads the files until it is killed, and writes the sum of each copy. A copy waits a second in the socket, in
/// pages that only the card has written. A page that the card has not logged has other contents at the other host: those of an
/// earlier copy, of another file.
const DOWNLOADS: &str = "while :; do for file in 0 1 2; do wget -q -O - http://SERVER/$file | { sleep 1; md5sum; }; done; done \
    > /run/sums 2>&1";
/// Script that writes memory all the time, so that QEMU takes further rounds over it.
const BUSY: &str = "dd if=/dev/urandom of=/run/noise bs=1M count=8
    while :; do dd if=/run/noise of=/run/busy bs=1M conv=notrunc 2> /dev/null; usleep 2000; done";
/// Script that gives sockets room for a whole file.
const ROOM: &str = "echo 8388608 > /proc/sys/net/core/rmem_max
    echo 4096 8388608 8388608 > /proc/sys/net/ipv4/tcp_rmem";

/// Checks that a guest with a TCP stream, downloads and pings through the uplink moves to another host and back. Its connections
/// survive, each download is whole, an interface with packed rings continues, policy and counters move by `softiov vf export` and
/// `import`, and both switches learn where the guest is.
pub(crate) fn guest_migrates_under_a_stream(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let far = FarSwitch::join(wire)?;
    let hosts = [start(&wire.tap(TAPS[0]))?, start(&wire.tap(TAPS[1]))?];
    wire.plug(TAPS[0])?;
    far.plug(&wire.tap(TAPS[1]))?;
    let folder = TempDir::new()?;
    for file in 0..FILES {
        let number = |at: u32| (at + file as u32 * BYTES).wrapping_mul(0x9e37_79b9);
        let bytes: Vec<u8> = (0..BYTES).map(|at| (number(at) >> 21) as u8).collect();
        fs::write(folder.path().join(file.to_string()), bytes)?;
    }
    let _server = wire.serve(folder.path())?;
    hosts[0].softiov(&format!("vf set {} --max-tx-rate 900 --mac 52:54:00:82:84:09", VFS[0]))?;

    let guest = boot(&hosts[0], world.assets())?;
    guest.check(ROOM)?;
    let sums = (0..FILES).map(|file| {
        let text = guest.check(&format!("wget -q -O - http://{}/{file} | md5sum", wire.address()))?;
        Ok(text.trim().to_owned())
    });
    let sums: Vec<String> = sums.collect::<Result<_>>()?;
    let mut stream = IperfStream::open(&guest, &wire.address())?;
    let script = DOWNLOADS.replace("SERVER", &wire.address());
    let scripts = [guest.linux.spawn_background(&script)?, guest.linux.spawn_background(BUSY)?];
    for (from, to) in [(0, 1), (1, 0)] {
        let answers = folder.path().join(format!("pings-{to}"));
        let pings = wire.ping_into(&answers, ADDRESS)?;
        stream.moves()?;
        let before = guest.check("wc -l < /run/sums")?.trim().parse::<u64>()?;
        let exported = carry(&hosts[from], &hosts[to], folder.path())?;
        let moved = guest.linux.migrate(machine(&hosts[to]), world.assets())?;
        stream.moves().with_context(|| format!("after {moved:?}: {}", far.state()))?;
        downloads_continue(&guest, before, &sums)?;
        drop(pings);
        let silent = missed(&fs::read_to_string(&answers)?)? * EVERY_MS;
        print!("(silent for {silent} ms, {moved:?}) ");
        let near = wire.tap(TAPS[0]);
        learned(wire, if to == 0 { &near } else { FarSwitch::CABLE })?;
        ping_over_quiet(&guest, &wire.address())?;
        arrived(&hosts[to], &exported)?;
        ensure!(show(&hosts[from], VFS[0])?["peer"].is_null(), "QEMU is still connected to the first host");
    }
    scripts.iter().for_each(BackgroundScript::kill);
    let gap = stream.close()?;
    print!("(no byte for {gap:.1} s) ");
    no_checksum_errors(&guest)?;
    guest.linux.shutdown(COMMAND)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Starts a host with one virtio port, whose uplink is a tap.
fn start(tap: &str) -> Result<HostWithKeeper> {
    HostWithKeeper::start(&format!("[[port]]\nfamily = \"virtio\"\nvfs = 2\nuplink.tap = {tap:?}\n"))
}

/// Returns the builder of the guest on the VFs of a host.
fn machine(host: &HostWithKeeper) -> GuestBuilder {
    let quiet = [("guest_announce", false.into()), ("mac", QUIET.into()), ("packed", true.into())];
    let builder = LinuxGuest::builder("moira").migratable(true);
    builder.vhost_socket(host.socket(VFS[0]), 1, &[mac(9)]).vhost_socket(host.socket(VFS[1]), 1, &quiet)
}

/// Boots the guest on a host. Its second interface sends nothing but what is necessary to be known by the switches.
fn boot(host: &HostWithKeeper, assets: &BootFiles) -> Result<ScenarioGuest> {
    let guest = ScenarioGuest::spawn(machine(host), assets, VFS[0], 9)?;
    guest.linux.wait_ready(BOOT)?;
    set_up(&guest, 0, ADDRESS)?;
    let quiet = &quiet_interface(&guest)?;
    ensure!(is_packed(&guest, quiet)?, "{quiet} has no packed rings");
    guest.check(&format!(
        "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
         echo 1 > /proc/sys/net/ipv6/conf/{quiet}/disable_ipv6; ip link set {quiet} up
         ip addr add 10.99.0.9/24 dev {quiet}; ping -c 1 -W 1 10.99.0.1; ip addr flush dev {quiet}"
    ))?;
    wait_link(&guest, quiet)?;
    Ok(guest)
}

/// Returns the name of the guest's second interface.
fn quiet_interface(guest: &ScenarioGuest) -> Result<String> {
    let name = guest.check(&format!("cd /sys/class/net && grep -l {QUIET} */address | cut -d/ -f1"))?;
    Ok(name.trim().to_owned())
}

/// Pings `server` over the second interface, which is quiet again afterwards. More pings than its rings have entries pass, so that
/// each ring wraps.
fn ping_over_quiet(guest: &ScenarioGuest, server: &str) -> Result<()> {
    let quiet = quiet_interface(guest)?;
    guest.check(&format!("ip addr add {QUIET_ADDRESS}/32 dev {quiet}"))?;
    guest.ping(&format!("-I {quiet} {server}"), 1400, 300)?;
    guest.check(&format!("ip addr flush dev {quiet}")).map(drop)
}

/// Carries policy and counters of the guest's first VF to another host. Returns the exported document.
fn carry(from: &HostWithKeeper, to: &HostWithKeeper, folder: &std::path::Path) -> Result<Value> {
    let text = from.softiov(&format!("vf export {}", VFS[0]))?;
    let file = folder.join("vf.json");
    fs::write(&file, &text)?;
    to.softiov(&format!("vf import {} --file {}", VFS[0], file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn show(host: &HostWithKeeper, vf: &str) -> Result<Value> {
    Ok(serde_json::from_str(&host.softiov(&format!("vf show {vf} --json"))?)?)
}

/// Checks that a host has the exported settings, and counts on from the exported counters.
fn arrived(host: &HostWithKeeper, exported: &Value) -> Result<()> {
    let status = show(host, VFS[0])?;
    for key in ["mac", "max_tx_rate"] {
        ensure!(status["settings"][key] == exported["settings"][key], "{key}: {status} and {exported}");
    }
    for way in ["rx", "tx"] {
        let (now, then) = (status[way]["packets"].as_u64(), exported["counters"][way]["packets"].as_u64());
        ensure!(then > Some(0) && now > then, "{way} has {now:?} packets, and had {then:?}");
    }
    Ok(())
}

/// Waits until more downloads than `before` have ended, and checks that each copy has the sum of its file.
fn downloads_continue(guest: &ScenarioGuest, before: u64, sums: &[String]) -> Result<()> {
    let text = eventually(|| {
        let text = guest.check("cat /run/sums")?;
        let now = text.lines().count() as u64;
        ensure!(now > before + 4, "{now} downloads have ended, of which {before} before the migration");
        Ok(text)
    })?;
    let mut copies = text.lines().zip(sums.iter().cycle()).enumerate();
    let bad = copies.find(|(_, (copy, sum))| copy.trim() != sum.as_str());
    ensure!(bad.is_none(), "download {bad:?} has another sum than its file");
    Ok(())
}

/// Waits until the bridge beyond the uplinks has learned that both of the guest's addresses are behind an interface.
fn learned(wire: &WireNamespace, interface: &str) -> Result<()> {
    eventually(|| {
        let table = wire.learned()?;
        for address in ["52:54:00:82:84:09", QUIET] {
            let wanted = format!("{address} dev {interface} ");
            ensure!(table.contains(&wanted), "{wanted:?} is not in\n{table}");
        }
        Ok(())
    })
}
