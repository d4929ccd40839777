//! Checks the stock driver and its tools on a VF: binding, configuration space, ethtool, interrupts.

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{ALICE, LinuxTestbed};
use anyhow::{Context, Result, bail, ensure};
use daemon::control::status::LinkState;
use std::process::Command;

/// Recorded output of `lspci -vv` for a VF in a guest, without values that depend on the machine around the VF.
const LSPCI: &str = include_str!("lspci.golden");

/// Names that igbvf gives the interrupt vectors: one for each queue, and one for the mailbox.
const VECTORS: [&str; 3] = ["eth0-tx-0", "eth0-rx-0", "eth0"];

/// Checks that an unmodified Debian kernel binds its driver to each guest's VF, which has the address that was
/// configured.
pub(crate) fn binds_and_brings_the_link_up(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    for guest in world.everyone()? {
        let release = guest.linux.kernel_release();
        ensure!(release.starts_with("6.1."), "{} runs Linux {release}", guest.name());
        let identity = guest.check("cd /sys/class/net/eth0; cat device/vendor device/device address")?;
        let mac = world.vf(guest.vf)?.mac;
        ensure!(
            identity == format!("0x8086\n0x10ca\n{mac}\n"),
            "{} has the ids and address {identity:?}, not {mac}",
            guest.name()
        );
        let driver = guest.check("ethtool -i eth0")?;
        ensure!(driver.contains("driver: igbvf\n"), "{} is not bound to igbvf: {driver}", guest.name());
        let link = guest.check("ethtool eth0")?;
        ensure!(
            link.contains("Speed: 1000Mb/s")
                && link.contains("Duplex: Full")
                && link.contains("Link detected: yes"),
            "{}: {link}",
            guest.name()
        );
        world.wait_vf(guest.vf, "be run by a driver with its link up", |vf| vf.active && vf.link)?;
        let complaints =
            guest.check("dmesg | grep -E 'igbvf|eth0' | grep -E '[Ff]ail|[Ee]rror|Hang|timeout|not added|still in reset' || true")?;
        ensure!(complaints.is_empty(), "{}: the kernel complains: {complaints}", guest.name());
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that lspci decodes the configuration space to the recorded text.
pub(crate) fn lspci_shows_the_vf_as_on_record(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let seen = normalised(&world.alice()?.check("lspci -s 01:00.0 -vv 2> /dev/null")?);
    if seen == LSPCI {
        return Ok(LinuxCheckOutcome::Passed);
    }
    let only_in = |text: &str, other: &str, mark: &str| -> String {
        let differing = text.lines().filter(|line| !other.lines().any(|one| one == *line));
        differing.map(|line| format!("{mark} {line}\n")).collect()
    };
    bail!(
        "not what lspci.golden has:\n{}{}all of it:\n{seen}",
        only_in(LSPCI, &seen, "-"),
        only_in(&seen, LSPCI, "+")
    )
}

/// Removes values that depend on the machine around the VF from a text of lspci: the addresses of the VF's BARs, and
/// the slot above the VF. Keeps bits that a bound driver sets (BusMaster, MSI-X), since the driver is always bound
/// here.
fn normalised(lspci: &str) -> String {
    let lines = lspci.trim_end().lines().filter(|line| !line.trim_start().starts_with("Physical Slot:"));
    let line = |line: &str| match line.split_once("Memory at ") {
        Some((before, after)) => {
            let after = after.split_once(' ').map_or("", |(_, rest)| rest);
            format!("{before}Memory at ADDRESS {after}\n")
        }
        None => format!("{}\n", line.trim_end()),
    };
    lines.map(line).collect()
}

/// Checks that every ethtool query for igbvf succeeds, and that the two settings that can be changed keep their values.
pub(crate) fn ethtool_reads_and_sets(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let alice = world.alice()?;
    for question in ["-i", "-k", "-S", "-d", "-a", "-t"] {
        alice.check(&format!("ethtool {question} eth0"))?;
    }
    no_large_receive(alice)?;
    for usecs in ["250", "3"] {
        alice.check(&format!("ethtool -C eth0 rx-usecs {usecs}"))?;
        let seen = alice.check("ethtool -c eth0")?;
        ensure!(seen.contains(&format!("rx-usecs: {usecs}\n")), "rx-usecs {usecs} was set, and now: {seen}");
    }
    for entries in ["128", "4096", "1024"] {
        alice.check(&format!("ethtool -G eth0 rx {entries} tx {entries}"))?;
        let seen = alice.check("ethtool -g eth0")?;
        let now = seen.split_once("Current").map_or("", |(_, now)| now);
        let words: Vec<_> = now.split_whitespace().collect();
        let is_set = |name: &str| words.windows(2).any(|pair| pair == [name, entries]);
        ensure!(is_set("RX:") && is_set("TX:"), "rings of {entries} were set, and now: {seen}");
        alice.wait_carrier(true)?;
        alice.ping(&world.bob()?.address(), 1400, 10)?;
        ensure!(theirs(&seen) == ours(world, "-g")?, "ethtool -g in the guest: {seen}");
    }
    for option in ["-i", "-c"] {
        let (seen, said) = (alice.check(&format!("ethtool {option} eth0"))?, ours(world, option)?);
        let (theirs, ours) = (shape(&seen), shape(&said));
        ensure!(theirs == ours, "ethtool {option} in the guest: {theirs:?}, and ours: {ours:?}");
    }
    let theirs = theirs(&alice.check("ethtool -S eth0")?);
    for line in ours(world, "-S")?.lines() {
        let (name, _) = line.split_once(": ").unwrap_or((line, ""));
        ensure!(
            theirs.contains(&format!("\n{name}: ")) || theirs.starts_with(line),
            "{line:?} is not igbvf's"
        );
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the name at the start of each line of ethtool's output, without the values.
fn shape(said: &str) -> Vec<&str> {
    let names = said.lines().map(|line| line.split_once(':').map_or(line, |(name, _)| name));
    names.map(|name| if name.starts_with("Coalesce parameters for") { "" } else { name }).collect()
}

/// Returns the output of the guest's ethtool, with eth0 replaced by the host's name of the VF.
fn theirs(said: &str) -> String {
    said.replace(" eth0:", &format!(" {ALICE}:"))
}

/// Returns the output of `softiov ethtool` for the VF of the guest's eth0.
fn ours(world: &LinuxTestbed, option: &str) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softiov"));
    let output =
        command.args(["ethtool", "--runtime-dir"]).arg(world.runtime_dir()).args([option, ALICE]).output()?;
    ensure!(output.status.success(), "softiov ethtool {option}: {output:?}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Checks that the driver offers no LRO, since the card has none.
pub(crate) fn no_large_receive(guest: &ScenarioGuest) -> Result<()> {
    let features = guest.check("ethtool -k eth0")?;
    let line = features.lines().find(|line| line.starts_with("large-receive-offload:"));
    ensure!(line == Some("large-receive-offload: off [fixed]"), "{}: {line:?}", guest.name());
    Ok(())
}

/// Checks that each of the VF's three MSI-X vectors interrupts for its own cause.
pub(crate) fn three_vectors_interrupt(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let alice = world.alice()?;
    let before = vectors(alice)?;
    alice.ping(&world.bob()?.address(), 56, 50)?;
    // The PF reports a changed link through the mailbox.
    world.set_link(ALICE, LinkState::Disable)?;
    alice.wait_carrier(false)?;
    world.set_link(ALICE, LinkState::Auto)?;
    alice.wait_carrier(true)?;
    eventually(|| {
        let now = vectors(alice)?;
        let grew = before.iter().zip(&now).all(|(before, now)| now > before);
        ensure!(grew, "interrupts of {VECTORS:?} were {before:?} and are {now:?} after traffic");
        Ok(())
    })?;
    let status = world.vf(ALICE)?;
    ensure!(status.interventions.interrupts > 0, "the host counts no interrupt: {status:?}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that, with `rx-usecs 1000`, the receive vector interrupts at most once per millisecond, at any packet rate.
pub(crate) fn interrupts_are_moderated(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (alice, bob) = (world.alice()?, world.bob()?);
    bob.check("ethtool -C eth0 rx-usecs 1000")?;
    let (started, before) = (uptime(bob)?, vectors(bob)?);
    let flow = alice.iperf(&bob.address(), "-t 2")?;
    let (ended, after) = (uptime(bob)?, vectors(bob)?);
    bob.check("ethtool -C eth0 rx-usecs 3")?;
    let interrupts = after[1] - before[1];
    // The clocks of guest and host are read at different moments.
    let most = ((ended - started) * 1000.0 * 1.05) as u64 + 10;
    ensure!(
        (1..=most).contains(&interrupts),
        "{interrupts} receive interrupts in {:.3} s, {most} at most were allowed ({flow:?})",
        ended - started
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the seconds since the guest booted.
fn uptime(guest: &ScenarioGuest) -> Result<f64> {
    let text = guest.check("cat /proc/uptime")?;
    Ok(text.split_whitespace().next().context("/proc/uptime is empty")?.parse()?)
}

/// Returns the number of interrupts of each of igbvf's vectors for eth0.
fn vectors(guest: &ScenarioGuest) -> Result<[u64; 3]> {
    let all = guest.interrupts()?;
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(all.len() == VECTORS.len(), "{}: the vectors of eth0 are {names:?}", guest.name());
    let mut counts = [0; 3];
    for (count, vector) in counts.iter_mut().zip(VECTORS) {
        let found = all.iter().find(|(name, _)| name == vector);
        *count = found.with_context(|| format!("{}: no {vector} in {names:?}", guest.name()))?.1;
    }
    Ok(counts)
}
