//! Checks DPDK's drivers, which poll and share no code with the kernel's: igbvf on a VF and igb on the PF. Not tested:
//! their speed, and requests that 22.11's igbvf driver refuses by itself (setting an MTU, resetting a port, a second
//! address).

pub(crate) mod iavf;
pub(crate) mod virtio;

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::testpmd::{self, GuestTestpmd, IGB, IGBVF};
use crate::wire::JUMBO;
use crate::world::{ALICE, LinuxTestbed, PORT_VLAN, VISITOR};
use anyhow::{Context, Result, ensure};
use daemon::control::status::VfStatus;
use daemon::settings::VfSettings;

/// Ethernet address that no function has.
const OTHER_MAC: &str = "02:82:57:60:00:78";
/// IPv4 multicast group without members.
const GROUP: &str = "239.82.5.8";
/// Number of frames that a guest sends to the multicast group, so that the test can count those that a VF receives.
const FRAMES: u64 = 20;

/// Checks that testpmd starts a VF with both queues, completes the handshake with the PF, and answers pings, also long
/// ones and after the port was stopped. With `rss`, frames of several addresses arrive in both queues. Then it sends
/// from both queues, and every frame arrives. Its counters match the host's.
pub(crate) fn igbvf_receives_and_sends(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    let (guest, alice) = (world.dpdk()?, world.alice()?);
    world.change(VISITOR, VfSettings { rss: Some(true), ..VfSettings::default() })?;
    let before = world.vf(VISITOR)?;
    let queues = "--rxq=2 --txq=2 --max-pkt-len=9018 --enable-scatter";
    let echo = GuestTestpmd::start(guest, IGBVF, &format!("--forward-mode=icmpecho {queues}"))?;
    alice.check("ip link set eth0 mtu 9000")?;
    alice.wait_carrier(true)?;
    for stops in [false, true] {
        if stops {
            ["stop", "port stop 0"].iter().try_for_each(|word| echo.say(word))?;
            asks(world, &echo, "frame-length", "port start 0")?;
            echo.say("start")?;
        }
        alice.reach(&guest.address())?;
        for size in [56, 1400, 8000] {
            alice.ping(&guest.address(), size, 50).with_context(|| format!("port stopped: {stops}"))?;
        }
    }
    // icmpecho answers for every address.
    (100..116).try_for_each(|host| alice.ping(&format!("10.82.0.{host}"), 56, 4))?;
    let least = world.vf(VISITOR)?;
    ensure!(least.active && least.rx.packets - before.rx.packets >= 300, "too few frames: {least:?}");
    ["stop", "show port xstats 0"].iter().try_for_each(|word| echo.say(word))?;
    let said = echo.finish()?;
    let most = world.vf(VISITOR)?;
    let [first, second] = [0, 1].map(|queue| testpmd::queue(&said, queue).map(|[received, _]| received));
    ensure!(first? > 0 && second? > 0, "one queue received nothing: {said}");
    let counts = ["rx_good_packets:", "rx_good_loopback_packets:", "tx_good_packets:"];
    let counts = counts.map(|name| testpmd::number(&said, name));
    let [good, local, sent] = counts.map(Result::unwrap_or_default);
    // A VF's counters restart at 0 when the VMM resets it; the host's continue.
    let since = |packets: fn(&VfStatus) -> u64| {
        packets(&least) - packets(&before)..=packets(&most) - packets(&before)
    };
    ensure!(
        since(|vf| vf.rx.packets).contains(&good)
            && (300..=good).contains(&local)
            && since(|vf| vf.tx.packets).contains(&sent),
        "{good} received, {local} of them from neighbours, {sent} sent; the host says {least:?}: {said}"
    );

    let before = world.vf(ALICE)?.rx.packets;
    let peer = world.vf(ALICE)?.mac;
    let sends =
        GuestTestpmd::start(guest, IGBVF, &format!("--forward-mode=txonly --eth-peer=0,{peer} {queues}"))?;
    eventually(|| {
        let arrived = world.vf(ALICE)?.rx.packets - before;
        ensure!(arrived > 1000, "{arrived} frames of testpmd have arrived");
        Ok(())
    })?;
    sends.say("stop")?;
    let said = sends.finish()?;
    ensure!(
        testpmd::queue(&said, 0)?[1] > 0 && testpmd::queue(&said, 1)?[1] > 0,
        "one queue sent nothing: {said}"
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the PF carries out testpmd's requests: VLANs, allmulticast, another address. The PF refuses and counts
/// promiscuity, and allmulticast if the policy forbids it.
pub(crate) fn igbvf_asks_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    let (guest, alice) = (world.dpdk()?, world.alice()?);
    let refused =
        |reason| -> Result<u64> { Ok(world.vf(VISITOR)?.mailbox.refused.get(reason).copied().unwrap_or(0)) };
    let every_unicast = refused("unicast-promiscuity")?;
    let running = GuestTestpmd::start(
        guest,
        IGBVF,
        "--forward-mode=rxonly --enable-hw-vlan-filter --enable-hw-vlan-strip",
    )?;
    eventually(|| {
        let now = refused("unicast-promiscuity")?;
        ensure!(
            now > every_unicast,
            "testpmd starts with a request for promiscuity, and the PF refused nothing"
        );
        Ok(())
    })?;
    asks(world, &running, "promiscuity", "set promisc 0 off")?;
    running.say("set verbose 1")?;
    // The descriptor has the priority and the VLAN of a stripped tag.
    asks(world, &running, "vlan", &format!("rx_vlan add {PORT_VLAN} 0"))?;
    world.wait_vf(VISITOR, "be a member", |vf| vf.vlans.contains(&PORT_VLAN.into()))?;
    world
        .change(ALICE, VfSettings { vlan: Some(PORT_VLAN.into()), qos: Some(5), ..VfSettings::default() })?;
    let heard = world.vf(VISITOR)?.rx.broadcast;
    alice.broadcast(0, 5)?;
    world.wait_vf(VISITOR, "hear the VLAN", |vf| vf.rx.broadcast >= heard + 5)?;
    world.change(ALICE, VfSettings { vlan: Some(0), ..VfSettings::default() })?;
    asks(world, &running, "vlan", &format!("rx_vlan rm {PORT_VLAN} 0"))?;
    world.wait_vf(VISITOR, "be no member", |vf| vf.vlans == [0])?;

    for (allowed, word) in [(true, "on"), (true, "off"), (false, "on")] {
        world.change(VISITOR, VfSettings { allmulti: Some(allowed), ..VfSettings::default() })?;
        let before = refused("multicast-promiscuity")?;
        asks(world, &running, "promiscuity", &format!("set allmulti 0 {word}"))?;
        let (heard, refused) = (frames_heard(world, alice)?, refused("multicast-promiscuity")? - before);
        let expected = if allowed && word == "on" { heard >= FRAMES } else { heard < FRAMES / 4 };
        ensure!(
            expected && refused == u64::from(!allowed),
            "allowed {allowed}, {word}: {heard} heard, {refused} refused"
        );
    }
    asks(world, &running, "mac", &format!("mac_addr set 0 {OTHER_MAC}"))?;
    world.wait_vf(VISITOR, "have the address", |vf| vf.mac == OTHER_MAC)?;
    let said = running.finish()?;
    ensure!(said.contains("VLAN tci=0xa064"), "no frame of priority 5 in VLAN {PORT_VLAN}: {said}");
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the card inserts checksums into frames that testpmd forwards without one, and reports which received
/// checksums are right. The kernel of the receiving guest must find every checksum right.
pub(crate) fn igbvf_leaves_checksums_to_the_card(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    let (guest, alice) = (world.dpdk()?, world.alice()?);
    let [peer, own] = [ALICE, VISITOR].map(|vf| world.vf(vf).map(|vf| vf.mac));
    let running = GuestTestpmd::start(
        guest,
        IGBVF,
        &format!("--forward-mode=csum --enable-rx-cksum --eth-peer=0,{}", peer?),
    )?;
    for word in ["stop", "port stop 0", "csum set ip hw 0", "csum set udp hw 0", "csum set tcp hw 0"] {
        running.say(word)?;
    }
    ["port start 0", "start"].iter().try_for_each(|word| running.say(word))?;
    let address = guest.address();
    alice.check(&format!("ip neigh replace {address} lladdr {} dev eth0 nud permanent", own?))?;
    let before = alice.statistics(&["rx_csum_offload_good", "rx_csum_offload_errors"])?;
    // UDP and TCP requests come back as they were sent, without an answer.
    let asked = eventually(|| {
        alice.check(&format!(
            "traceroute -n -m 1 -q 5 -w 1 {address} 1400; iperf3 -c {address} --connect-timeout 1000; [ $? = 1 ]"
        ))?;
        let now = alice.statistics(&["rx_csum_offload_good", "rx_csum_offload_errors"])?;
        let [good, errors] = [now[0] - before[0], now[1] - before[1]];
        ensure!(good >= 6, "{good} checksums were good and {errors} were not");
        Ok(errors)
    });
    alice.check("ip neigh flush nud permanent dev eth0")?;
    ensure!(asked? == 0, "alice's kernel found wrong checksums");
    running.say("stop")?;
    let said = running.finish()?;
    for wrong in ["Bad-ipcsum:", "Bad-l4csum:"] {
        ensure!(testpmd::number(&said, wrong)? == 0, "the card called a checksum wrong: {said}");
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that DPDK's igb drives the PF: flows spread over four queues, frames pass at an MTU of 9000, and the port
/// receives frames to its own address once it is no longer promiscuous.
pub(crate) fn pf_is_driven_with_four_queues(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    let guest = world.dpdk()?;
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let running =
        GuestTestpmd::start(guest, IGB, "--forward-mode=icmpecho --rxq=4 --txq=4 --rss-ip --enable-scatter")?;
    eventually(|| wire.ping(&guest.address(), 56, 1))?;
    running.say("set promisc 0 off")?;
    // icmpecho answers for every address.
    for host in 100..116 {
        wire.ping(&format!("10.82.0.{host}"), 56, 4)?;
    }
    ["stop", "show port xstats 0"].iter().try_for_each(|word| running.say(word))?;
    ["port stop 0", "port config mtu 0 9000", "port start 0", "start"]
        .iter()
        .try_for_each(|word| running.say(word))?;
    wire.set_mtu(JUMBO)?;
    eventually(|| wire.ping(&guest.address(), 8000, 10))?;
    let said = running.finish()?;
    let queues = (0..4).map(|queue| Ok(testpmd::queue(&said, queue)?[0])).collect::<Result<Vec<_>>>()?;
    ensure!(queues.iter().all(|packets| *packets > 0), "the queues received {queues:?}: {said}");
    let [good, all] = ["rx_good_packets:", "rx_total_packets:"].map(|name| testpmd::number(&said, name));
    ensure!(good? >= 64 && all? >= 64, "the port's counters: {said}");
    Ok(LinuxCheckOutcome::Passed)
}

fn asks(world: &LinuxTestbed, testpmd: &GuestTestpmd<'_>, what: &str, command: &str) -> Result<()> {
    vf_asks(world, VISITOR, testpmd, what, command)
}

/// Gives testpmd a command that sends a request to the PF, and waits until the PF has counted that request of the VF.
fn vf_asks(
    world: &LinuxTestbed,
    vf: &str,
    testpmd: &GuestTestpmd<'_>,
    what: &str,
    command: &str,
) -> Result<()> {
    let asked = |vf: &VfStatus| vf.mailbox.requests.get(what).copied();
    let before = asked(&world.vf(vf)?);
    testpmd.say(command)?;
    world.wait_vf(vf, &format!("ask the PF: {command}"), |vf| asked(vf) > before).map(drop)
}

/// Sends frames from a guest to a multicast group, and returns how many of them testpmd's VF receives.
fn frames_heard(world: &LinuxTestbed, from: &ScenarioGuest) -> Result<u64> {
    let before = world.vf(VISITOR)?.rx.multicast;
    from.check_fails(&format!("ping -q -c {FRAMES} -i 0.02 -W 1 -I eth0 {GROUP}"))?;
    Ok(world.vf(VISITOR)?.rx.multicast - before)
}
