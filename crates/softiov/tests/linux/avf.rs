//! The second family: stock iavf on VFs of ports with `family = "avf"`. Alice and Bob have one each beside their first
//! VF, so that no guest is booted for it. Alice's doorbells are messages, and Bob's are memory. Left out: what else ethtool
//! can set.

use crate::guest::{Guest, eventually};
use crate::report::Outcome;
use crate::world::{ALICE_AVF, BOB_AVF, World};
use anyhow::{Context, Result, ensure};
use daemon::control::status::{Interventions, VfStatus};

/// An unmodified Debian kernel finds iavf for the VF, gets the address and the link that the PF gives, and exchanges
/// pings of every size and TCP with another VF, both ways, with checksums and segments left to the card. For the VF whose
/// doorbells are memory next to none of that is a message.
pub(crate) fn binds(world: &mut World) -> Result<Outcome> {
    let [alice, bob] = linked(world)?;
    for size in [56, 1400, 8000] {
        alice.ping(BOBS, size, 20)?;
        bob.ping(ALICES, size, 20)?;
    }
    for (from, to) in [(alice, BOBS), (bob, ALICES)] {
        let before = Cost::of(&world.vf(BOB_AVF)?);
        let flow = from.iperf(to, "-n 24M")?;
        ensure!(flow.sent >= 24 << 20 && flow.received > 0, "{} to {to}: {flow:?}", from.name());
        Cost::of(&world.vf(BOB_AVF)?).is_of_memory(&before)?;
    }
    for guest in [alice, bob] {
        no_complaints(guest)?;
    }
    Ok(Outcome::Passed)
}

/// What a VF has moved, and what it has told the host for that.
#[derive(Debug, Clone, Copy)]
struct Cost {
    packets: u64,
    messages: u64,
}

impl Cost {
    fn of(vf: &VfStatus) -> Self {
        let Interventions { reads, posted_writes, synchronous_writes, .. } = vf.interventions;
        let messages = reads + posted_writes + synchronous_writes;
        Self { packets: vf.rx.packets + vf.tx.packets, messages }
    }

    /// Bulk TCP by doorbells in memory: iavf asks the PF for statistics every 2 s, and nothing else is a message. Rung by
    /// message it would be a few hundred of 1,000 packets, so half a hundred tells both apart on a slow machine too.
    fn is_of_memory(&self, before: &Self) -> Result<()> {
        let (packets, messages) = (self.packets - before.packets, self.messages - before.messages);
        let rate = messages as f64 * 1000.0 / packets as f64;
        println!("    {messages} messages for {packets} packets: {rate:.2} for 1,000");
        ensure!(rate < 50.0, "{messages} messages for {packets} packets, {rate:.1} for 1,000");
        Ok(())
    }
}

/// Addresses on this port's VFs.
const ALICES: &str = "10.83.0.1";
const BOBS: &str = "10.83.0.2";

/// Both guests, whose VFs are bound, have their addresses and a link, and reach each other.
fn linked(world: &World) -> Result<[&Guest; 2]> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    for (guest, vf, address) in [(alice, ALICE_AVF, ALICES), (bob, BOB_AVF, BOBS)] {
        let name = interface(guest)?;
        let mac = world.vf(vf)?.mac;
        let identity =
            guest.check(&format!("cd /sys/class/net/{name}; cat device/vendor device/device address"))?;
        ensure!(identity == format!("0x8086\n0x1889\n{mac}\n"), "{}: {identity:?}, not {mac}", guest.name());
        let driver = guest.check(&format!("ethtool -i {name}"))?;
        ensure!(driver.contains("driver: iavf\n"), "{}: {driver}", guest.name());
        set_up(guest, &name, address)?;
        world.wait_vf(vf, "be run by a driver with its link up", |vf| vf.active && vf.link)?;
        eventually(|| {
            let link = guest.check(&format!("ethtool {name}"))?;
            ensure!(link.contains("Speed: 25000Mb/s") && link.contains("Link detected: yes"), "{link}");
            Ok(())
        })?;
    }
    alice.reach(BOBS)?;
    Ok([alice, bob])
}

/// The administrator resets the port: drivers are told, start anew by themselves, and frames pass again.
pub(crate) fn port_is_reset(world: &mut World) -> Result<Outcome> {
    let [alice, _] = linked(world)?;
    let before = world.vf(ALICE_AVF)?.mailbox.resets;
    world.reset_port("pf3")?;
    let is_back = |vf: &VfStatus| vf.active && vf.link && vf.mailbox.resets > before;
    world.wait_vf(ALICE_AVF, "be back after a reset", is_back)?;
    alice.reach(BOBS)?;
    Ok(Outcome::Passed)
}

/// Sets an interface up.
pub(crate) fn set_up(guest: &Guest, name: &str, address: &str) -> Result<()> {
    let script = format!("ip addr replace {address}/24 dev {name} && ip link set {name} mtu 1500 up");
    guest.check(&script).map(drop)
}

/// What the guest calls its AVF VF, once its driver has made an interface of it.
pub(crate) fn interface(guest: &Guest) -> Result<String> {
    let names = eventually(|| guest.check("ls /sys/bus/pci/drivers/iavf/*:*/net"))?;
    Ok(names.lines().next().context("no interface")?.to_owned())
}

/// What an iavf has noticed so far.
#[derive(Debug)]
pub(crate) struct Noticed {
    /// Lines of the kernel's log about it: they tell of resets, and of a link that comes or goes.
    log: String,
    /// How often the link changed.
    changes: String,
    /// Bytes received and sent by the card's count, which a new card would begin anew.
    bytes: [u64; 2],
}

impl Noticed {
    pub(crate) fn of(guest: &Guest) -> Result<Self> {
        let name = interface(guest)?;
        let changes = guest.check(&format!("cat /sys/class/net/{name}/carrier_changes"))?;
        let log = guest.check(&format!("dmesg | grep -E 'iavf|{name}' || true"))?;
        let counters = guest.check(&format!("ethtool -S {name}"))?;
        let count = |name: &str| -> Result<u64> {
            let of = |line: &str| line.trim().strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
            counters.lines().find_map(of).with_context(|| format!("no {name} in {counters}"))
        };
        Ok(Self { log, changes, bytes: [count("rx_bytes")?, count("tx_bytes")?] })
    }

    /// Nothing was noticed since, but that more was counted.
    pub(crate) fn is_nothing_since(&self, before: &Self) -> Result<()> {
        let same = (&self.log, &self.changes) == (&before.log, &before.changes);
        let goes_on = self.bytes.iter().zip(before.bytes).all(|(now, before)| *now >= before);
        ensure!(same && goes_on, "it had noticed {before:?}, and now {self:?}");
        Ok(())
    }
}

/// The driver has met nothing unexpected.
fn no_complaints(guest: &Guest) -> Result<()> {
    let said = guest
        .check("dmesg | grep iavf | grep -E '[Ff]ail|[Ee]rror|[Hh]ung|timeout|Never saw|reset' || true")?;
    ensure!(said.is_empty(), "{}: the kernel complains: {said}", guest.name());
    Ok(())
}
