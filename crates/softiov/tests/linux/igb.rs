//! Checks the stock PF driver igb on a PF of its own: igb's and ethtool's own tests, and traffic with the network
//! beyond the uplink. VFs of such a PF are not tested, because no VMM passes them to guests.

use crate::driver::no_large_receive;
use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::traffic::frame_size;
use crate::wire::{JUMBO, WireNamespace};
use crate::world::{LinuxTestbed, PF_MAC};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Id of a VLAN on the network beyond the uplink.
const VLAN: u8 = 43;
/// IPv4 broadcast address of the network beyond the uplink.
const BROADCAST: &str = "10.82.0.255";
const AMOUNT: &str = "-n 16M";

/// Checks that igb binds the PF, with the port's address and a link, and logs no error.
pub(crate) fn binds_and_brings_the_link_up(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let dave = world.dave()?;
    let identity = dave.check("cd /sys/class/net/eth0; cat device/vendor device/device address")?;
    ensure!(identity == format!("0x8086\n0x10c9\n{PF_MAC}\n"), "{identity:?}");
    let driver = dave.check("ethtool -i eth0")?;
    ensure!(driver.contains("driver: igb\n") && driver.contains("supports-test: yes"), "{driver}");
    let link = dave.check("ethtool eth0")?;
    let expected = ["Speed: 1000Mb/s", "Duplex: Full", "Auto-negotiation: on", "Link detected: yes"];
    ensure!(expected.iter().all(|line| link.contains(line)), "{link}");
    no_complaints(dave)?;
    ensure!(world.pf()?.peer.is_some(), "no client is connected to the PF");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that `ethtool -t` passes: registers, EEPROM, interrupts, loopback and link offline, and the link online.
pub(crate) fn self_tests_pass(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    passes_its_own_tests(world.dave()?, world.wire.as_ref().ok())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that every ethtool query for igb succeeds.
pub(crate) fn ethtool_reads(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let dave = world.dave()?;
    for question in
        ["-a", "-c", "-e", "-g", "-i", "-k", "-l", "-n", "-P", "-S", "-T", "-x", "--show-priv-flags"]
    {
        dave.check(&format!("ethtool {question} eth0"))?;
    }
    no_large_receive(dave)?;
    let eeprom = dave.check("ethtool -e eth0 raw on | xxd -p | tr -d '\\n'")?;
    ensure!(eeprom.starts_with(&PF_MAC.replace(':', "")), "the EEPROM begins with {eeprom}");
    no_complaints(dave)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that `ethtool -d` decodes the registers to the configured values.
pub(crate) fn registers_show_what_is_set(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let dave = world.dave()?;
    let settings = [
        ("true", "Link up:", "link config"),
        ("true", "Link speed:", "1000Mb/s"),
        ("true", "Receiver:", "enabled"),
        ("true", "Transmitter:", "enabled"),
        ("ip link set eth0 promisc on", "Unicast promiscuous:", "enabled"),
        ("ip link set eth0 promisc off", "Unicast promiscuous:", "disabled"),
        ("ip link set eth0 allmulticast on", "Multicast promiscuous:", "enabled"),
        ("ip link set eth0 allmulticast off", "Multicast promiscuous:", "disabled"),
        ("ethtool -K eth0 rxvlan off", "VLAN mode:", "disabled"),
        ("ethtool -K eth0 rxvlan on", "VLAN mode:", "enabled"),
        ("ethtool -A eth0 autoneg off rx off tx off", "Receive flow control:", "disabled"),
        ("ethtool -A eth0 autoneg on rx on tx on", "Receive flow control:", "enabled"),
        ("ethtool -G eth0 rx 128", "RDLEN  (Receive desc length)", "0x00000800"),
        ("ethtool -G eth0 rx 256", "RDLEN  (Receive desc length)", "0x00001000"),
    ];
    for (setting, name, value) in settings {
        dave.check(setting)?;
        dave.wait_carrier(true)?;
        let registers = dave.check("ethtool -d eth0")?;
        let line = registers.lines().find(|line| line.contains(name));
        ensure!(
            line.is_some_and(|line| line.trim_end().ends_with(value)),
            "{setting}: {line:?}: {registers}"
        );
    }
    // Reading clears the interrupt cause, and only this command reads it.
    dave.check("ethtool -d eth0")?;
    dave.check("ethtool -r eth0")?;
    dave.wait_carrier(true)?;
    let registers = dave.check("ethtool -d eth0 | grep IAC")?;
    ensure!(!registers.trim_end().ends_with("0x00000000"), "a changed link is no interrupt: {registers}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that moderation, rings, queues and pause frames take their new values, and that the port works after each
/// change.
pub(crate) fn ethtool_sets(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = (world.dave()?, &world.wire);
    let settings = [
        ("-C eth0 rx-usecs 250", "-c", "rx-usecs:", "250"),
        ("-C eth0 rx-usecs 3", "-c", "rx-usecs:", "3"),
        ("-G eth0 rx 128 tx 128", "-g", "RX:", "128"),
        ("-G eth0 rx 4096 tx 4096", "-g", "TX:", "4096"),
        ("-G eth0 rx 256 tx 256", "-g", "RX:", "256"),
        ("-L eth0 combined 1", "-l", "Combined:", "1"),
        ("-L eth0 combined 2", "-l", "Combined:", "2"),
        ("-A eth0 autoneg off rx off tx off", "-a", "RX:", "off"),
        ("-A eth0 autoneg on rx on tx on", "-a", "TX:", "on"),
    ];
    for (setting, question, name, value) in settings {
        dave.check(&format!("ethtool {setting}"))?;
        dave.wait_carrier(true)?;
        let seen = dave.check(&format!("ethtool {question} eth0"))?;
        let words: Vec<_> = seen.split_whitespace().collect();
        // The current value follows the maximum.
        let now = words.windows(2).rfind(|pair| pair[0] == name).map(|pair| pair[1]);
        ensure!(now == Some(value), "{setting} was set, and now: {seen}");
        if let Ok(wire) = wire {
            dave.ping(&wire.address(), 1400, 5).context(setting)?;
        }
    }
    for (setting, speed) in [("speed 100 duplex full autoneg off", "100Mb/s"), ("autoneg on", "1000Mb/s")] {
        dave.check(&format!("ethtool -s eth0 {setting}"))?;
        dave.wait_carrier(true)?;
        let seen = dave.check("ethtool eth0")?;
        ensure!(seen.contains(&format!("Speed: {speed}")), "{setting} was set, and now: {seen}");
    }
    no_complaints(dave)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that pings, TCP and UDP pass to and from the network beyond the uplink, with every offload on.
pub(crate) fn exchanges_traffic(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(no_uplink(why)),
    };
    exchange(world.dave()?, wire)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, with an MTU of 9000, frames pass whole, over several receive buffers.
pub(crate) fn jumbo_frames_pass_whole(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = match &world.wire {
        Ok(wire) => (world.dave()?, wire),
        Err(why) => return Ok(no_uplink(why)),
    };
    dave.check(&format!("ip link set eth0 mtu {JUMBO}"))?;
    wire.set_mtu(JUMBO)?;
    dave.wait_carrier(true)?;
    dave.reach(&wire.address())?;
    let fragments = dave.fragments_made()?;
    dave.ping(&wire.address(), 8000, 20)?;
    ensure!(dave.fragments_made()? == fragments, "fragments were made of frames that fit");
    for direction in ["", " -R"] {
        let before = world.pf()?;
        dave.iperf(&wire.address(), &format!("{AMOUNT}{direction}"))?;
        let after = world.pf()?;
        let traffic = if direction.is_empty() { (before.tx, after.tx) } else { (before.rx, after.rx) };
        let size = frame_size(traffic.0, traffic.1);
        ensure!(size > 4096, "iperf3{direction}: frames of {size} bytes");
    }
    no_checksum_errors(dave)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that tagged frames pass if the card or the kernel inserts and strips the tags, in every combination.
pub(crate) fn vlan_offloads_are_toggled(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    if let Err(why) = &world.wire {
        return Ok(no_uplink(why));
    }
    let (dave, alice) = (world.dave()?, world.alice()?);
    dave.join_vlan("eth0", VLAN)?;
    alice.join_vlan("eth0", VLAN)?;
    for (strip, insert) in [("off", "off"), ("off", "on"), ("on", "off"), ("on", "on")] {
        dave.check(&format!("ethtool -K eth0 rxvlan {strip} txvlan {insert}"))?;
        dave.wait_carrier(true)?;
        let context = || format!("rxvlan {strip}, txvlan {insert}");
        dave.reach(&alice.vlan_address(VLAN)).with_context(context)?;
        for size in [56, 1400, 8000] {
            dave.ping(&alice.vlan_address(VLAN), size, 10).with_context(context)?;
            alice.ping(&dave.vlan_address(VLAN), size, 10).with_context(context)?;
        }
        dave.iperf(&alice.vlan_address(VLAN), "-n 8M").with_context(context)?;
        dave.iperf(&alice.vlan_address(VLAN), "-n 8M -R").with_context(context)?;
    }
    no_checksum_errors(dave)?;
    dave.check(&format!("ip link del eth0.{VLAN}"))?;
    alice.cannot_reach(&format!("eth0.{VLAN}"), &dave.vlan_address(VLAN)).map(|()| LinuxCheckOutcome::Passed)
}

/// Checks that checksums and segmentation are done by the card or by the kernel, as `ethtool -K` says.
pub(crate) fn offloads_are_toggled(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = match &world.wire {
        Ok(wire) => (world.dave()?, wire),
        Err(why) => return Ok(no_uplink(why)),
    };
    for features in
        ["rx off tx off", "rx on tx on tso off", "tso on gro off", "gro on sg off", "sg on tso on rxhash on"]
    {
        dave.check(&format!("ethtool -K eth0 {features}"))?;
        dave.wait_carrier(true)?;
        dave.iperf(&wire.address(), "-n 8M").context(features)?;
        dave.iperf(&wire.address(), "-n 8M -R").context(features)?;
    }
    no_checksum_errors(dave)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that flows spread over both queues by their hash, and all go to one queue if the indirection table has only
/// that queue.
pub(crate) fn rss_spreads_flows(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = match &world.wire {
        Ok(wire) => (world.dave()?, wire),
        Err(why) => return Ok(no_uplink(why)),
    };
    let received = || dave.statistics(&["rx_queue_0_packets", "rx_queue_1_packets"]);
    let flows = |first: u16| -> Result<[u64; 2]> {
        let before = received()?;
        // The driver has a random hash key. Each bit of a port chooses the queue or not, as the key has it. So the ports differ from
        // the first by each bit alone, and the chance of all in one queue is 1 in 32,768.
        for port in [0].into_iter().chain((0..15).map(|bit| 1 << bit)).map(|bits| first ^ bits) {
            dave.iperf(&wire.address(), &format!("-n 1M -R --cport {port}"))?;
        }
        let after = received()?;
        Ok([after[0] - before[0], after[1] - before[1]])
    };
    let spread = flows(0x5555)?;
    ensure!(spread.iter().all(|packets| *packets > 200), "16 flows, and the queues got {spread:?} packets");
    dave.check("ethtool -X eth0 equal 1")?;
    // Other ports, because those above are still in use for a minute.
    let gathered = flows(0x6666)?;
    dave.check("ethtool -X eth0 equal 2")?;
    ensure!(
        gathered[0] > 200 && gathered[1] < 20,
        "a table of queue 0 only, and the queues got {gathered:?} packets"
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that `ethtool -S` matches the host's counters, and that the sums over the queues match the port's.
pub(crate) fn counters_agree(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = match &world.wire {
        Ok(wire) => (world.dave()?, wire),
        Err(why) => return Ok(no_uplink(why)),
    };
    dave.reach(&wire.address())?;
    let names = ["tx_packets", "tx_queue_0_packets", "tx_queue_1_packets", "rx_packets", "rx_bytes"];
    let before = dave.statistics(&names)?;
    dave.ping(&wire.address(), 1000, 100)?;
    // The driver reads the card's counters every two seconds.
    eventually(|| {
        let after = dave.statistics(&names)?;
        let grown: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        let &[tx, first, second, rx, bytes] = &grown[..] else { unreachable!("five were asked for") };
        ensure!(
            (100..120).contains(&tx) && tx == first + second,
            "100 pings, and {names:?} grew by {grown:?}"
        );
        ensure!(rx >= 100 && bytes >= 100 * 1042, "100 pings, and {names:?} grew by {grown:?}");
        Ok(())
    })?;
    let errors = [
        "rx_crc_errors",
        "rx_long_length_errors",
        "rx_short_length_errors",
        "rx_align_errors",
        "tx_aborted_errors",
    ];
    let counts = dave.statistics(&errors)?;
    ensure!(counts.iter().all(|count| *count == 0), "{errors:?} are {counts:?}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the port returns after each of: interface down and up, driver out and in, and a reboot.
pub(crate) fn comes_back(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.settle_dave()?;
    let (dave, wire) = (world.dave()?, &world.wire);
    for disturbance in ["ip link set eth0 down", "rmmod igb && [ ! -e /sys/class/net/eth0 ] && modprobe igb"]
    {
        for _ in 0..3 {
            dave.check(disturbance)?;
            dave.settle().context(disturbance)?;
            if let Ok(wire) = wire {
                dave.reach(&wire.address()).context(disturbance)?;
            }
        }
    }
    no_complaints(dave)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that igb's self-tests (`ethtool -t`) pass in a guest, offline and online, while stations beyond the uplink send broadcasts.
pub(crate) fn passes_its_own_tests(guest: &ScenarioGuest, wire: Option<&WireNamespace>) -> Result<()> {
    // igb never returns if a frame comes between the start of its test rings and its loopback.
    let broadcasts = wire.map(|wire| wire.ping_into(Path::new("/dev/null"), BROADCAST)).transpose()?;
    let before = received_broadcasts(guest)?;
    for mode in ["offline", "online"] {
        // ethtool's exit status is 0 if the tests passed.
        let report = guest.check(&format!("ethtool -t eth0 {mode}"))?;
        ensure!(report.contains("The test result is PASS"), "the self-test ({mode}) failed: {report}");
        for test in ["Register test", "Eeprom test", "Interrupt test", "Loopback test", "Link test"] {
            let line = report.lines().find(|line| line.starts_with(test));
            let passed = line.is_some_and(|line| line.ends_with("\t 0"));
            ensure!(passed, "{mode}: {test}: {report}");
        }
        guest.wait_carrier(true)?;
    }
    match broadcasts {
        // Also proves that they still come.
        Some(_) => eventually(|| {
            let now = received_broadcasts(guest)?;
            ensure!(now > before + 100, "{} broadcasts came while igb tested itself", now - before);
            Ok(())
        }),
        None => {
            print!("(no broadcasts without a network namespace) ");
            Ok(())
        }
    }
}

/// Returns the number of broadcasts that igb has received.
fn received_broadcasts(guest: &ScenarioGuest) -> Result<u64> {
    let count = guest.check("ethtool -S eth0 | sed -n 's/ *rx_broadcast: //p'")?;
    count.trim().parse().with_context(|| format!("rx_broadcast is {count:?}"))
}

/// Exchanges pings, fragments, TCP and UDP between a guest and the network beyond the uplink, and checks that no
/// checksum is wrong.
pub(crate) fn exchange(guest: &ScenarioGuest, wire: &WireNamespace) -> Result<()> {
    guest.reach(&wire.address())?;
    for size in [56, 1400, 8000] {
        guest.ping(&wire.address(), size, 10)?;
        wire.ping(&guest.address(), size, 10)?;
    }
    for direction in ["", " -R"] {
        guest.iperf(&wire.address(), &format!("{AMOUNT}{direction}"))?;
    }
    guest.iperf(&wire.address(), "-u -b 10M -l 1400 -n 1M")?;
    no_checksum_errors(guest)
}

fn no_checksum_errors(guest: &ScenarioGuest) -> Result<()> {
    let errors = guest.statistics(&["rx_queue_0_csum_err", "rx_queue_1_csum_err", "rx_crc_errors"])?;
    ensure!(errors.iter().all(|errors| *errors == 0), "checksum errors: {errors:?}");
    Ok(())
}

/// Checks that igb has logged no fault of the card.
fn no_complaints(guest: &ScenarioGuest) -> Result<()> {
    let complaints = "igb.*([Ff]ail|[Ee]rror|Hang|timeout|not valid|[Uu]nable|hung)|NETDEV WATCHDOG";
    let said = guest.check(&format!("dmesg | grep -E '{complaints}' || true"))?;
    ensure!(said.is_empty(), "{}: the kernel complains: {said}", guest.name());
    Ok(())
}

fn no_uplink(why: &str) -> LinuxCheckOutcome {
    LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))
}
