//! Checks the second family: stock iavf on VFs of ports with `family = "avf"`. Alice and Bob have one each beside their
//! first VF, so that no other guest needs to boot. Alice's doorbells are messages and she has one processor; Bob's are
//! mapped, and he has two processors and so two queues. `kernels`, `dpdk` and `ipxe` test other drivers.

pub(crate) mod ethtool;
pub(crate) mod fleet;
pub(crate) mod policy;
pub(crate) mod recovery;
pub(crate) mod traffic;
pub(crate) mod vlan;

use crate::guest::{IperfResult, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE_AVF, BOB_AVF, LinuxTestbed};
use anyhow::{Context, Result, ensure};
use daemon::control::status::{VfStatus, VmmInterventions};

/// Checks that an unmodified Debian kernel binds iavf to the VF, gets the address and link that the PF assigns, and
/// exchanges pings and TCP with another VF. Pings have every size, and TCP has checksum and segmentation offload, both
/// ways. A VF with mapped doorbells sends almost no messages for it.
pub(crate) fn binds(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    for end in [alice, bob] {
        end.is_bound(world)?;
    }
    for (from, to) in [(alice, bob), (bob, alice)] {
        for size in [56, 1400, 8000] {
            from.ping(to, size, 20)?;
        }
        let before = RegisterMessageCost::of(&world.vf(BOB_AVF)?);
        from.iperf(&to.address(), 24)?;
        RegisterMessageCost::of(&world.vf(BOB_AVF)?).is_of_memory(&before)?;
    }
    for end in [alice, bob] {
        no_complaints(end.guest)?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Number of a VF's packets, and number of register accesses that the guest's VMM sent to the host as messages.
#[derive(Debug, Clone, Copy)]
struct RegisterMessageCost {
    packets: u64,
    messages: u64,
}

impl RegisterMessageCost {
    fn of(vf: &VfStatus) -> Self {
        let VmmInterventions { reads, posted_writes, synchronous_writes, .. } = vf.interventions;
        let messages = reads + posted_writes + synchronous_writes;
        Self { packets: vf.rx.packets + vf.tx.packets, messages }
    }

    /// Checks that the TCP traffic since `before` used mapped doorbells. With mapped doorbells iavf sends messages only
    /// for statistics, every 2 s. Doorbells as messages would cost some hundreds per 1,000 packets, so a bound of 50
    /// separates both cases on a slow machine too.
    fn is_of_memory(&self, before: &Self) -> Result<()> {
        let (packets, messages) = (self.packets - before.packets, self.messages - before.messages);
        let rate = messages as f64 * 1000.0 / packets as f64;
        println!("    {messages} messages for {packets} packets: {rate:.2} for 1,000");
        ensure!(rate < 50.0, "{messages} messages for {packets} packets are {rate:.1} per 1,000");
        Ok(())
    }
}

/// A guest's interface on an AVF VF.
#[derive(Debug)]
pub(crate) struct AvfInterface<'a> {
    pub(crate) guest: &'a ScenarioGuest,
    pub(crate) vf: &'static str,
    /// Name of the interface in the guest.
    pub(crate) name: String,
    /// Index of the VF among the guest's AVF VFs, ordered by PCI slot.
    place: usize,
    number: u8,
}

impl<'a> AvfInterface<'a> {
    /// Configures the interface that iavf created for the VF, with addresses that end in `number` and an MTU of 1500,
    /// and waits for its link.
    pub(crate) fn set_up(guest: &'a ScenarioGuest, vf: &'static str, number: u8) -> Result<Self> {
        Self::set_up_at(guest, 0, vf, number)
    }

    /// Configures an interface like [`Self::set_up`], for the AVF VF at index `place` of a guest with several.
    pub(crate) fn set_up_at(
        guest: &'a ScenarioGuest,
        place: usize,
        vf: &'static str,
        number: u8,
    ) -> Result<Self> {
        let end = Self { guest, vf, name: interface_at(guest, place)?, place, number };
        end.settle()?;
        Ok(end)
    }

    /// Configures the interface again after a restart of its driver, which may have given the interface another name.
    pub(crate) fn set_up_again(&mut self) -> Result<()> {
        self.name = interface_at(self.guest, self.place)?;
        self.settle()
    }

    fn settle(&self) -> Result<()> {
        set_up(self.guest, &self.name, &self.address())?;
        self.check(&format!("ip addr replace {}/64 dev IF nodad", self.address_v6()))?;
        self.wait_carrier(true)
    }

    /// Returns the interface's IPv4 address on the untagged network.
    pub(crate) fn address(&self) -> String {
        self.vlan_address(0)
    }

    /// Returns the interface's IPv4 address in the VLAN `vlan`, whose id is below 256.
    pub(crate) fn vlan_address(&self, vlan: u8) -> String {
        format!("10.83.{vlan}.{}", self.number)
    }

    /// Returns the interface's IPv6 address on the untagged network.
    pub(crate) fn address_v6(&self) -> String {
        format!("fd83::{}", self.number)
    }

    /// Runs a script in the guest that must succeed, with the interface's name in place of `IF`.
    pub(crate) fn check(&self, script: &str) -> Result<String> {
        self.guest.check(&script.replace("IF", &self.name))
    }

    /// Waits until iavf reports the interface's carrier up or down.
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

    /// Sends pings of a size to another interface, every one of which must be answered.
    pub(crate) fn ping(&self, to: &AvfInterface<'_>, size: u32, count: u32) -> Result<()> {
        self.guest.ping(&to.address(), size, count)
    }

    /// Waits until another guest's interface answers a ping.
    pub(crate) fn reach(&self, to: &AvfInterface<'_>) -> Result<()> {
        self.guest.reach(&to.address())
    }

    /// Sends `megabytes` over TCP to an iperf3 server, and returns iperf3's result.
    pub(crate) fn iperf(&self, to: &str, megabytes: u64) -> Result<IperfResult> {
        let flow = self.guest.iperf(to, &format!("-n {megabytes}M"))?;
        ensure!(flow.sent >= megabytes << 20 && flow.received > 0, "{} to {to}: {flow:?}", self.guest.name());
        Ok(flow)
    }

    /// Adds a VLAN interface on top of this interface, with this end's address in the VLAN.
    pub(crate) fn join_vlan(&self, vlan: u8) -> Result<()> {
        let address = self.vlan_address(vlan);
        let script = format!(
            "modprobe 8021q && ip link add link IF name IF.{vlan} type vlan id {vlan} &&
             ip addr add {address}/24 dev IF.{vlan} && ip link set IF.{vlan} up"
        );
        self.check(&script).map(drop)
    }

    /// Checks that the function has the expected ids, is bound to iavf, and has the VF's Ethernet address and its
    /// link's speed.
    pub(crate) fn is_bound(&self, world: &LinuxTestbed) -> Result<()> {
        let mac = world.vf(self.vf)?.mac;
        let identity = self.check("cd /sys/class/net/IF; cat device/vendor device/device address")?;
        let name = self.guest.name();
        ensure!(
            identity == format!("0x8086\n0x1889\n{mac}\n"),
            "{name} has the ids and address {identity:?}, not {mac}"
        );
        let driver = self.check("ethtool -i IF")?;
        ensure!(driver.contains("driver: iavf\n"), "{name} is not bound to iavf: {driver}");
        world.wait_vf(self.vf, "be run by a driver with its link up", |vf| vf.active && vf.link)?;
        eventually(|| {
            let link = self.check("ethtool IF")?;
            ensure!(
                link.contains("Speed: 25000Mb/s") && link.contains("Link detected: yes"),
                "the link is not up at 25 Gb/s: {link}"
            );
            Ok(())
        })
    }
}

/// Configures Alice's and Bob's interfaces on AVF VFs, waits until they reach each other, and returns both.
pub(crate) fn linked(world: &LinuxTestbed) -> Result<[AvfInterface<'_>; 2]> {
    let alice = AvfInterface::set_up(world.alice()?, ALICE_AVF, 1)?;
    let bob = AvfInterface::set_up(world.bob()?, BOB_AVF, 2)?;
    alice.reach(&bob)?;
    Ok([alice, bob])
}

/// Sets an interface of a guest up, with an address. iavf refuses while it is busy with a reset.
pub(crate) fn set_up(guest: &ScenarioGuest, name: &str, address: &str) -> Result<()> {
    let script = format!("ip addr replace {address}/24 dev {name} && ip link set {name} mtu 1500 up");
    eventually(|| guest.check(&script)).map(drop)
}

/// Returns the name of the interface on a guest's first AVF VF, once iavf has created one.
pub(crate) fn interface(guest: &ScenarioGuest) -> Result<String> {
    interface_at(guest, 0)
}

/// Returns the name of the interface on a guest's AVF VF at index `place`; 0 has the lowest PCI address.
fn interface_at(guest: &ScenarioGuest, place: usize) -> Result<String> {
    let script = format!("set -- /sys/bus/pci/drivers/iavf/*:*; shift {place} && ls $1/net");
    let names = eventually(|| guest.check(&script))?;
    Ok(names.lines().next().context("iavf has created no interface")?.to_owned())
}

/// Resets and link changes that a guest's iavf has seen so far.
#[derive(Debug)]
pub(crate) struct IavfEvents {
    /// Lines of the kernel's log about resets and link changes of the driver.
    log: String,
    /// Number of link changes since the interface was created.
    changes: String,
    /// Bytes received and sent, as the card counts them. A new card would restart at 0.
    bytes: Vec<u64>,
}

impl IavfEvents {
    pub(crate) fn of(guest: &ScenarioGuest) -> Result<Self> {
        let name = interface(guest)?;
        let changes = guest.check(&format!("cat /sys/class/net/{name}/carrier_changes"))?;
        let log = guest.check(&format!("dmesg | grep -E 'iavf|{name}' || true"))?;
        let bytes = guest.statistics_of(&name, &["rx_bytes", "tx_bytes"])?;
        Ok(Self { log, changes, bytes })
    }

    /// Checks that iavf has seen no reset and no link change since `before`, and that no byte counter has fallen.
    pub(crate) fn is_unchanged_since(&self, before: &Self) -> Result<()> {
        let same = (&self.log, &self.changes) == (&before.log, &before.changes);
        let counts_on = self.bytes.iter().zip(&before.bytes).all(|(now, before)| now >= before);
        ensure!(same && counts_on, "the driver had seen {before:?}, and now {self:?}");
        Ok(())
    }
}

/// Checks that iavf has logged no error, timeout or reset in a guest.
pub(crate) fn no_complaints(guest: &ScenarioGuest) -> Result<()> {
    let said = guest
        .check("dmesg | grep iavf | grep -E '[Ff]ail|[Ee]rror|[Hh]ung|timeout|Never saw|reset' || true")?;
    ensure!(said.is_empty(), "{}: the kernel complains: {said}", guest.name());
    Ok(())
}

/// Checks that the kernel has found no broken TCP segment or UDP datagram. The kernel verifies checksums that the card
/// has not verified, and with `ethtool -K rx off` all checksums.
pub(crate) fn no_checksum_errors(guest: &ScenarioGuest) -> Result<()> {
    for protocol in ["Tcp", "Udp"] {
        let errors = guest.snmp(protocol, "InCsumErrors")?;
        ensure!(errors == 0, "{}: {errors} checksums of {protocol} are wrong", guest.name());
    }
    Ok(())
}
