//! Checks settings of a stock iavf that ethtool reads and changes. `traffic` and `vlan` toggle offloads, and `kernels`
//! changes the number of queues, since the driver of 6.1 deadlocks then (docs/conformance.md).

use super::{AvfInterface, linked};
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use daemon::control::status::VfStatus;

/// Checks that every ethtool query that iavf supports succeeds, and that unsupported ones are refused.
pub(crate) fn reads(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [_, bob] = &linked(world)?;
    for question in ["-i", "-k", "-S", "-c", "-g", "-l", "-x", "-P", "-T", "--show-priv-flags"] {
        bob.check(&format!("ethtool {question} IF"))?;
    }
    let tests = bob.guest.check_fails(&format!("ethtool -t {}", bob.name))?;
    ensure!(tests.contains("Operation not supported"), "ethtool -t: {tests}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that interrupt moderation and rings take their new values, and that frames pass after each change.
pub(crate) fn sets(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    let settings = [
        ("-C IF adaptive-rx off rx-usecs 100", "-c", "rx-usecs:", "100"),
        ("-C IF adaptive-tx off tx-usecs 200", "-c", "tx-usecs:", "200"),
        ("-C IF rx-usecs 50 tx-usecs 50", "-c", "rx-usecs:", "50"),
        ("-G IF rx 64 tx 128", "-g", "RX:", "64"),
        ("-G IF rx 4096 tx 4096", "-g", "TX:", "4096"),
        ("-G IF rx 512 tx 512", "-g", "RX:", "512"),
    ];
    for (setting, question, name, value) in settings {
        // While the interface is up, the driver of 6.1 deadlocks.
        let around =
            if question == "-g" { ["ip link set IF down && ", " && ip link set IF up"] } else { [""; 2] };
        bob.check(&format!("{}ethtool {setting}{}", around[0], around[1]))?;
        bob.wait_carrier(true)?;
        let seen = bob.check(&format!("ethtool {question} IF"))?;
        let words: Vec<_> = seen.split_whitespace().collect();
        // The current value follows the maximum.
        let now = words.windows(2).rfind(|pair| pair[0] == name).map(|pair| pair[1]);
        ensure!(now == Some(value), "{setting} was set, and now: {seen}");
        alice.reach(bob)?;
        alice.ping(bob, 1400, 5).context(setting)?;
    }
    bob.check("ethtool -C IF adaptive-rx on adaptive-tx on").map(|_| LinuxCheckOutcome::Passed)
}

/// Checks that flows spread over both queues by their hash, whatever the key, and all go to one queue if the
/// indirection table has only that queue.
pub(crate) fn rss_spreads_flows(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let [alice, bob] = &linked(world)?;
    spreads_flows(world, bob, &alice.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that flows to a guest spread over both queues with any hash key, and all go to one queue if the indirection
/// table has only that queue. The guest runs an iperf3 server; `from` is the sender's address.
pub(crate) fn spreads_flows(world: &LinuxTestbed, end: &AvfInterface<'_>, from: &str) -> Result<()> {
    let asked = |vf: &VfStatus| vf.mailbox.requests.get("hash-table").copied();
    let key = hash_key(":");
    let settings = [(format!("hkey {key}"), true), ("equal 1".into(), false), ("default".into(), true)];
    for (setting, spread) in settings {
        let before = asked(&world.vf(end.vf)?);
        end.check(&format!("ethtool -X IF {setting}"))?;
        // The driver requests it from the PF when it has time.
        world.wait_vf(end.vf, "ask for its table", |vf| asked(vf) > before)?;
        let before = received(end)?;
        end.guest.iperf(from, "-n 8M -R -P 16")?;
        let after = received(end)?;
        let [first, second] = [0, 1].map(|queue| after[queue] - before[queue]);
        let is_so = if spread { second > 100 } else { second < 20 };
        ensure!(first > 100 && is_so, "{setting}: 16 flows, and the queues got {first} and {second} packets");
    }
    let table = end.check("ethtool -x IF")?;
    ensure!(table.contains(&key), "the key is not the one that was set: {table}");
    Ok(())
}

/// Returns a hash key of 52 bytes, as hexadecimal numbers with a separator. Drivers start with a random key, and one random key in
/// 32 sends the flows of sixteen neighbouring addresses to one queue. This key does not.
pub(crate) fn hash_key(separator: &str) -> String {
    (1..=52).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(separator)
}

/// Returns the number of packets that each of an interface's two queues has received.
fn received(end: &AvfInterface<'_>) -> Result<Vec<u64>> {
    end.guest.statistics_of(&end.name, &["rx-0.packets", "rx-1.packets"])
}
