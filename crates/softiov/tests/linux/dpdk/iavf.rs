//! Checks DPDK's iavf driver on a VF of the second family, with flexible descriptors, which it prefers, and without
//! WB_ON_ITR, which the PF does not offer: the driver polls its mailbox. Linux uses legacy descriptors.

use super::vf_asks;
use crate::avf::{AvfInterface, ethtool::hash_key};
use crate::guest::{COMMAND, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::testpmd::{self, GuestTestpmd, IAVF, PciSlot};
use crate::world::{ALICE_AVF, LinuxTestbed, PORT_VLAN, VISITOR_AVF};
use anyhow::{Context, Result, bail, ensure};
use daemon::settings::VfSettings;
use linux_guest::DpdkSeries;

/// Ethernet address that no function has.
const OTHER_MAC: &str = "02:82:57:60:00:79";
/// IPv4 address at which Alice pings testpmd, whose mode icmpecho answers for every address.
const ADDRESS: &str = "10.83.0.5";
const QUEUES: &str = "--rxq=2 --txq=2";
/// Start of testpmd's command that sets the hash key, by which pings spread.
const SET_KEY: &str = "port config 0 rss-hash-key ipv4-other";

/// Checks that testpmd starts a VF with two queues, has a link, and answers pings, also long ones and after the port
/// was stopped. Frames of several addresses arrive in both queues by testpmd's hash key, or in one if the table says so. Then
/// it sends from both queues, and every frame arrives.
pub(crate) fn receives_and_sends(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    exchange(world, world.dpdk()?, IAVF)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that DPDK 24.11's iavf does the same as [`receives_and_sends`] checks for 22.11's.
pub(crate) fn of_trixie_receives_and_sends(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.send_visitors_home()?;
    let assets = world.assets().clone().with_dpdk(DpdkSeries::Trixie2411)?;
    let builder = world.builder("dpdk 24.11", VISITOR_AVF).cpus(2).memory_mib(448).coldplug(false);
    let guest = world.boot_visitor(builder, &assets)?;
    testpmd::prepare(&guest)?;
    let version =
        guest.check("dpdk-testpmd --no-pci --no-huge -m 64 -v 2>&1 < /dev/null | grep RTE || true")?;
    ensure!(version.contains("24.11"), "the guest has DPDK {version:?} instead of 24.11");
    exchange(world, &guest, testpmd::ONLY)?;
    guest.linux.shutdown(COMMAND)?;
    Ok(LinuxCheckOutcome::Passed)
}

fn exchange(world: &LinuxTestbed, guest: &ScenarioGuest, slot: PciSlot) -> Result<()> {
    let alice = AvfInterface::set_up(world.alice()?, ALICE_AVF, 1)?;
    let before = world.vf(VISITOR_AVF)?;
    // testpmd sends frames of several buffers only with this flag at its start: RTE_ETH_TX_OFFLOAD_MULTI_SEGS.
    let long = "--max-pkt-len=9018 --enable-scatter --tx-offloads=0x8000 --rss-ip";
    let echo = GuestTestpmd::start(guest, slot, &format!("--forward-mode=icmpecho {QUEUES} {long}"))?;
    alice.check("ip link set IF down && ip link set IF mtu 9000 && ip link set IF up")?;
    alice.wait_carrier(true)?;
    for stops in [false, true] {
        if stops {
            ["stop", "port stop 0"].iter().try_for_each(|word| echo.say(word))?;
            vf_asks(world, VISITOR_AVF, &echo, "enable", "port start 0")?;
            echo.say("start")?;
        }
        alice.guest.reach(ADDRESS)?;
        for size in [56, 1400, 8000] {
            alice.guest.ping(ADDRESS, size, 50).with_context(|| format!("port stopped: {stops}"))?;
        }
    }
    vf_asks(world, VISITOR_AVF, &echo, "hash-key", &format!("{SET_KEY} {}", hash_key("")))?;
    flows(&alice)?;
    echo.say("stop")?;
    // A command has room for sixteen of the 64 entries.
    for first in [0, 16, 32, 48] {
        let table: Vec<String> = (first..first + 16).map(|entry| format!("({entry},1)")).collect();
        let command = format!("port config 0 rss reta {}", table.join(","));
        vf_asks(world, VISITOR_AVF, &echo, "hash-table", &command)?;
    }
    echo.say("start")?;
    flows(&alice)?;
    let counted = world.vf(VISITOR_AVF)?;
    ensure!(counted.active && counted.rx.packets - before.rx.packets >= 400, "too few frames: {counted:?}");
    let said = echo.say("stop").and_then(|()| echo.finish())?;
    // testpmd prints nothing about a queue without traffic.
    let received =
        |said: &str| [0, 1].map(|queue| testpmd::queue(said, queue).map_or(0, |[received, _]| received));
    let [.., spread, gathered] = testpmd::stops(&said)[..] else { bail!("testpmd was not stopped: {said}") };
    let [spread, gathered] = [spread, gathered].map(received);
    ensure!(spread.iter().all(|packets| *packets > 0), "the queues received {spread:?}: {said}");
    // ARP has no hash and stays in queue 0. The kernel probes its neighbours five seconds after the last ping, so how
    // many probes there are depends on the machine's speed.
    ensure!(
        gathered[1] >= PINGS,
        "a table of queue 1, and of {PINGS} pings they received {gathered:?}: {said}"
    );

    let before = world.vf(ALICE_AVF)?;
    let options = format!("--forward-mode=txonly --eth-peer=0,{} {QUEUES}", before.mac);
    let sends = GuestTestpmd::start(guest, slot, &options)?;
    eventually(|| {
        let arrived = world.vf(ALICE_AVF)?.rx.packets - before.rx.packets;
        ensure!(arrived > 1000, "{arrived} frames of testpmd have arrived");
        Ok(())
    })?;
    sends.say("stop")?;
    let said = sends.finish()?;
    let sent = [testpmd::queue(&said, 0)?[1], testpmd::queue(&said, 1)?[1]];
    ensure!(sent.iter().all(|packets| *packets > 0), "the queues sent {sent:?}: {said}");
    Ok(())
}

/// Number of pings that Alice sends to testpmd: one until the address is reached, and four, from each of sixteen
/// addresses.
const PINGS: u64 = 16 * 5;

/// Sends pings from Alice to testpmd at sixteen addresses, so that their flows have different hashes.
fn flows(alice: &AvfInterface<'_>) -> Result<()> {
    (100..116).try_for_each(|host| {
        let address = format!("10.83.0.{host}");
        alice.guest.reach(&address)?;
        alice.guest.ping(&address, 56, 4)
    })
}

/// Checks that the PF carries out testpmd's requests: VLANs, tag stripping, promiscuity of a trusted VF, another
/// address. The card does the checksums, and the kernel at the other end finds every one right.
pub(crate) fn asks_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    world.change(VISITOR_AVF, VfSettings { trust: Some(true), ..VfSettings::default() })?;
    let (guest, alice) = (world.dpdk()?, AvfInterface::set_up(world.alice()?, ALICE_AVF, 1)?);
    let asks =
        |running: &GuestTestpmd<'_>, what, command: &str| vf_asks(world, VISITOR_AVF, running, what, command);
    let options = "--forward-mode=rxonly --enable-hw-vlan-filter --enable-hw-vlan-strip";
    let running = GuestTestpmd::start(guest, IAVF, options)?;
    world.wait_vf(VISITOR_AVF, "be run by a driver", |vf| {
        vf.active && vf.mailbox.requests.contains_key("enable")
    })?;
    running.say("set verbose 1")?;
    asks(&running, "add-vlan-v2", &format!("rx_vlan add {PORT_VLAN} 0"))?;
    world.wait_vf(VISITOR_AVF, "be a member", |vf| vf.vlans.contains(&PORT_VLAN.into()))?;
    let heard = world.vf(VISITOR_AVF)?.rx.broadcast;
    alice.join_vlan(PORT_VLAN)?;
    alice.guest.check_fails(&format!("ping -q -c 5 -i 0.02 -W 1 10.83.{PORT_VLAN}.255"))?;
    world.wait_vf(VISITOR_AVF, "hear the VLAN", |vf| vf.rx.broadcast >= heard + 5)?;
    asks(&running, "delete-vlan-v2", &format!("rx_vlan rm {PORT_VLAN} 0"))?;
    world.wait_vf(VISITOR_AVF, "be no member", |vf| vf.vlans == [0])?;
    asks(&running, "promiscuity", "set promisc 0 off")?;
    asks(&running, "add-address", &format!("mac_addr set 0 {OTHER_MAC}"))?;
    world.wait_vf(VISITOR_AVF, "have the address", |vf| vf.mac == OTHER_MAC)?;
    let said = running.finish()?;
    ensure!(said.contains(&format!("VLAN tci=0x{PORT_VLAN:x}")), "no tag of VLAN {PORT_VLAN}: {said}");
    leaves_checksums_to_the_card(world, &alice)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the card inserts and verifies checksums for testpmd: UDP and TCP requests come back as they were sent,
/// without an answer.
fn leaves_checksums_to_the_card(world: &LinuxTestbed, alice: &AvfInterface<'_>) -> Result<()> {
    let [peer, own] = [ALICE_AVF, VISITOR_AVF].map(|vf| world.vf(vf).map(|vf| vf.mac));
    let options = format!("--forward-mode=csum --enable-rx-cksum --eth-peer=0,{}", peer?);
    let running = GuestTestpmd::start(world.dpdk()?, IAVF, &options)?;
    for word in ["stop", "port stop 0", "csum set ip hw 0", "csum set udp hw 0", "csum set tcp hw 0"] {
        running.say(word)?;
    }
    ["port start 0", "start"].iter().try_for_each(|word| running.say(word))?;
    alice.check(&format!(
        "ip neigh replace {ADDRESS} lladdr {} dev IF nud permanent; ethtool -K IF rx off",
        own?
    ))?;
    let before = world.vf(ALICE_AVF)?.rx.packets;
    let came = eventually(|| {
        alice.check(&format!(
            "traceroute -n -m 1 -q 5 -w 1 {ADDRESS} 1400; iperf3 -c {ADDRESS} --connect-timeout 1000; [ $? = 1 ]"
        ))?;
        let came = world.vf(ALICE_AVF)?.rx.packets - before;
        ensure!(came >= 6, "{came} frames came back");
        Ok(())
    });
    alice.check("ip neigh flush nud permanent dev IF; ethtool -K IF rx on")?;
    came?;
    running.say("stop")?;
    let said = running.finish()?;
    for wrong in ["Bad-ipcsum:", "Bad-l4csum:"] {
        ensure!(testpmd::number(&said, wrong)? == 0, "the card called a checksum wrong: {said}");
    }
    crate::avf::no_checksum_errors(alice.guest)
}
