//! The second family: stock iavf on VFs of ports with `family = "avf"`. Alice and Bob have one each beside their first
//! VF, so that no guest is booted for it. Alice's doorbells are messages and she has one processor; Bob's are memory, and
//! he has two, and so two queues. Left out: other kernels (`kernels`), DPDK (`dpdk`) and firmware (`ipxe`).

pub(crate) mod ethtool;
pub(crate) mod fleet;
pub(crate) mod policy;
pub(crate) mod recovery;
pub(crate) mod traffic;
pub(crate) mod vlan;

use crate::guest::{Flow, Guest, eventually};
use crate::report::Outcome;
use crate::world::{ALICE_AVF, BOB_AVF, World};
use anyhow::{Context, Result, ensure};
use daemon::control::status::{Interventions, VfStatus};

/// An unmodified Debian kernel finds iavf for the VF, gets the address and the link that the PF gives, and exchanges
/// pings of every size and TCP with another VF, both ways, with checksums and segments left to the card. For the VF whose
/// doorbells are memory next to none of that is a message.
pub(crate) fn binds(world: &mut World) -> Result<Outcome> {
    let [alice, bob] = &linked(world)?;
    for end in [alice, bob] {
        end.is_bound(world)?;
    }
    for (from, to) in [(alice, bob), (bob, alice)] {
        for size in [56, 1400, 8000] {
            from.ping(to, size, 20)?;
        }
        let before = Cost::of(&world.vf(BOB_AVF)?);
        from.iperf(&to.address(), 24)?;
        Cost::of(&world.vf(BOB_AVF)?).is_of_memory(&before)?;
    }
    for end in [alice, bob] {
        no_complaints(end.guest)?;
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

/// A guest's interface on an AVF VF.
#[derive(Debug)]
pub(crate) struct End<'a> {
    pub(crate) guest: &'a Guest,
    pub(crate) vf: &'static str,
    /// What the guest calls it.
    pub(crate) name: String,
    /// Which of the guest's AVF VFs it is, in the order of their slots.
    place: usize,
    number: u8,
}

impl<'a> End<'a> {
    /// Sets the interface up that iavf has made of the VF, with addresses that end in `number` and an MTU of 1500, and waits
    /// for its link.
    pub(crate) fn set_up(guest: &'a Guest, vf: &'static str, number: u8) -> Result<Self> {
        Self::set_up_at(guest, 0, vf, number)
    }

    /// Sets up the AVF VF at `place` of a guest that has several.
    pub(crate) fn set_up_at(guest: &'a Guest, place: usize, vf: &'static str, number: u8) -> Result<Self> {
        let end = Self { guest, vf, name: interface_at(guest, place)?, place, number };
        end.settle()?;
        Ok(end)
    }

    /// Sets it up as before, whatever it is called now.
    pub(crate) fn set_up_again(&mut self) -> Result<()> {
        self.name = interface_at(self.guest, self.place)?;
        self.settle()
    }

    fn settle(&self) -> Result<()> {
        set_up(self.guest, &self.name, &self.address())?;
        self.check(&format!("ip addr replace {}/64 dev IF nodad", self.address_v6()))?;
        self.wait_carrier(true)
    }

    /// Its address on the untagged network.
    pub(crate) fn address(&self) -> String {
        self.vlan_address(0)
    }

    /// Its address in a VLAN with an id below 256.
    pub(crate) fn vlan_address(&self, vlan: u8) -> String {
        format!("10.83.{vlan}.{}", self.number)
    }

    /// Its IPv6 address on the untagged network.
    pub(crate) fn address_v6(&self) -> String {
        format!("fd83::{}", self.number)
    }

    /// Runs a script that has to succeed, in which IF is the interface.
    pub(crate) fn check(&self, script: &str) -> Result<String> {
        self.guest.check(&script.replace("IF", &self.name))
    }

    /// Waits for what the driver makes of the link.
    pub(crate) fn wait_carrier(&self, up: bool) -> Result<()> {
        eventually(|| {
            let carrier = self.check("cat /sys/class/net/IF/carrier")?;
            let wanted = if up { "1" } else { "0" };
            ensure!(
                carrier.trim() == wanted,
                "{}: carrier is {}, not {wanted}",
                self.guest.name(),
                carrier.trim()
            );
            Ok(())
        })
    }

    /// Pings of a size, every one of which must be answered.
    pub(crate) fn ping(&self, to: &End<'_>, size: u32, count: u32) -> Result<()> {
        self.guest.ping(&to.address(), size, count)
    }

    /// Waits until the other end answers.
    pub(crate) fn reach(&self, to: &End<'_>) -> Result<()> {
        self.guest.reach(&to.address())
    }

    /// TCP of so many megabytes to an address.
    pub(crate) fn iperf(&self, to: &str, megabytes: u64) -> Result<Flow> {
        let flow = self.guest.iperf(to, &format!("-n {megabytes}M"))?;
        ensure!(flow.sent >= megabytes << 20 && flow.received > 0, "{} to {to}: {flow:?}", self.guest.name());
        Ok(flow)
    }

    /// Adds a VLAN interface on top, with this end's address in it.
    pub(crate) fn join_vlan(&self, vlan: u8) -> Result<()> {
        let address = self.vlan_address(vlan);
        let script = format!(
            "modprobe 8021q && ip link add link IF name IF.{vlan} type vlan id {vlan} &&
             ip addr add {address}/24 dev IF.{vlan} && ip link set IF.{vlan} up"
        );
        self.check(&script).map(drop)
    }

    /// The function is what it should be, iavf has it, it has the VF's address, and its link's speed.
    pub(crate) fn is_bound(&self, world: &World) -> Result<()> {
        let mac = world.vf(self.vf)?.mac;
        let identity = self.check("cd /sys/class/net/IF; cat device/vendor device/device address")?;
        let name = self.guest.name();
        ensure!(identity == format!("0x8086\n0x1889\n{mac}\n"), "{name}: {identity:?}, not {mac}");
        let driver = self.check("ethtool -i IF")?;
        ensure!(driver.contains("driver: iavf\n"), "{name}: {driver}");
        world.wait_vf(self.vf, "be run by a driver with its link up", |vf| vf.active && vf.link)?;
        eventually(|| {
            let link = self.check("ethtool IF")?;
            ensure!(link.contains("Speed: 25000Mb/s") && link.contains("Link detected: yes"), "{link}");
            Ok(())
        })
    }
}

/// Both guests' ends, which reach each other.
pub(crate) fn linked(world: &World) -> Result<[End<'_>; 2]> {
    let alice = End::set_up(world.alice()?, ALICE_AVF, 1)?;
    let bob = End::set_up(world.bob()?, BOB_AVF, 2)?;
    alice.reach(&bob)?;
    Ok([alice, bob])
}

/// Sets an interface up. The driver refuses as long as it is busy with a reset.
pub(crate) fn set_up(guest: &Guest, name: &str, address: &str) -> Result<()> {
    let script = format!("ip addr replace {address}/24 dev {name} && ip link set {name} mtu 1500 up");
    eventually(|| guest.check(&script)).map(drop)
}

/// What the guest calls its first AVF VF, once its driver has made an interface of it.
pub(crate) fn interface(guest: &Guest) -> Result<String> {
    interface_at(guest, 0)
}

/// What the guest calls the AVF VF at `place`: 0 is the one with the lowest PCI address.
fn interface_at(guest: &Guest, place: usize) -> Result<String> {
    let script = format!("set -- /sys/bus/pci/drivers/iavf/*:*; shift {place} && ls $1/net");
    let names = eventually(|| guest.check(&script))?;
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
    bytes: Vec<u64>,
}

impl Noticed {
    pub(crate) fn of(guest: &Guest) -> Result<Self> {
        let name = interface(guest)?;
        let changes = guest.check(&format!("cat /sys/class/net/{name}/carrier_changes"))?;
        let log = guest.check(&format!("dmesg | grep -E 'iavf|{name}' || true"))?;
        let bytes = guest.statistics_of(&name, &["rx_bytes", "tx_bytes"])?;
        Ok(Self { log, changes, bytes })
    }

    /// Nothing was noticed since, but that more was counted.
    pub(crate) fn is_nothing_since(&self, before: &Self) -> Result<()> {
        let same = (&self.log, &self.changes) == (&before.log, &before.changes);
        let goes_on = self.bytes.iter().zip(&before.bytes).all(|(now, before)| now >= before);
        ensure!(same && goes_on, "it had noticed {before:?}, and now {self:?}");
        Ok(())
    }
}

/// The driver has met nothing unexpected.
pub(crate) fn no_complaints(guest: &Guest) -> Result<()> {
    let said = guest
        .check("dmesg | grep iavf | grep -E '[Ff]ail|[Ee]rror|[Hh]ung|timeout|Never saw|reset' || true")?;
    ensure!(said.is_empty(), "{}: the kernel complains: {said}", guest.name());
    Ok(())
}

/// TCP segments and UDP datagrams that the kernel has found broken. It looks at those of which the card says that they are,
/// and with `ethtool -K rx off` at all of them.
pub(crate) fn no_checksum_errors(guest: &Guest) -> Result<()> {
    for protocol in ["Tcp", "Udp"] {
        let errors = guest.snmp(protocol, "InCsumErrors")?;
        ensure!(errors == 0, "{}: {errors} checksums of {protocol} are wrong", guest.name());
    }
    Ok(())
}
