//! Checks PFs inside nodes. A node is a guest whose QEMU makes one PCI device with SR-IOV of several VFs of a port, by the
//! arguments that `softiov qemu-args --sriov-vfs` prints. The node's stock virtio_net enables the device's VFs by sysfs,
//! and each goes to a container, which is a network namespace here.

mod node;

use crate::avf::no_checksum_errors;
use crate::guest::{BOOT, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::world::{LinuxTestbed, SPLIT};
use anyhow::{Context, Result, bail, ensure};
use linux_guest::GuestError;
pub(crate) use node::SriovTestbed;
use node::{Container, FIRST_VFS, SriovNode, builder, builder_of_pfs, serve};
use rustix::process::{Signal, kill_process};

/// Page of the guide with a block of commands for a node, in the language `bash`.
const PAGE: &str = include_str!("../../../../../../docs/guide/virtio.md");
/// Addresses of the container in that block, and of the one that its last command pings.
const PAGE_ADDRESSES: [&str; 2] = ["10.0.0.11", "10.0.0.21"];
/// VLAN of containers that reach each other, and VLAN of one that reaches none.
const VLANS: [u16; 2] = [100, 200];
/// Number of times that a node takes its VFs from a running stream, or that the host is replaced.
const TIMES: u32 = 3;

/// Runs a check with two nodes that have no VF enabled. They boot for the first check. After a failed check, they are not
/// used again.
fn with_nodes(
    world: &mut LinuxTestbed,
    check: impl FnOnce(&SriovTestbed) -> Result<()>,
) -> Result<LinuxCheckOutcome> {
    let nodes = match world.sriov.take() {
        Some(nodes) => nodes,
        None => SriovTestbed::start(world.assets())?,
    };
    nodes.settle().and_then(|()| check(&nodes)).with_context(|| nodes.state())?;
    world.sriov = Some(nodes);
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that pings pass both ways between two containers, and that a TCP stream passes from the second to the first.
fn exchange(one: &Container<'_>, other: &Container<'_>) -> Result<()> {
    one.reach(other)?;
    other.reach(one)?;
    let mut stream = one.stream(other)?;
    stream.moves()?;
    stream.close()?;
    [one, other].into_iter().try_for_each(|container| no_checksum_errors(container.guest()))
}

/// Checks that two nodes enable VFs by sysfs, and that containers of both exchange pings and TCP. The host's policy divides
/// them by VLANs. The node's own `ip link set vf` is refused, because virtio_net has no such operation.
pub(crate) fn containers_of_two_nodes_meet(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_nodes(world, |nodes| {
        let [a, b] = nodes.nodes();
        let (mine, theirs) = (a.containers(2)?, b.containers(2)?);
        for (one, other) in [(&mine[0], &theirs[0]), (&mine[1], &theirs[1]), (&mine[0], &mine[1])] {
            exchange(one, other)?;
        }
        let refused = a.guest().check_fails("ip link set eth0 vf 0 vlan 5")?;
        ensure!(refused.contains("Operation not supported"), "ip link set eth0 vf 0 vlan 5: {refused}");
        for (container, vlan) in [(&mine[0], VLANS[0]), (&theirs[0], VLANS[0]), (&theirs[1], VLANS[1])] {
            nodes.set_vlan(container, vlan)?;
        }
        exchange(&mine[0], &theirs[0])?;
        for other in [&mine[1], &theirs[1]] {
            mine[0].cannot_reach(other)?;
            other.cannot_reach(&theirs[0])?;
        }
        Ok(())
    })
}

/// Checks that the guide's commands for a node enable two VFs and start a container, which reaches a container of the other
/// node.
pub(crate) fn guide_commands_start_a_container(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let (_, block) = PAGE.split_once("\n```bash\n").context("the page has no commands for a node")?;
    let (commands, _) = block.split_once("```").context("the block does not end")?;
    let (prepare, _) = commands.split_once("ip netns exec").context("the page does not use the container")?;
    let [one, other] = PAGE_ADDRESSES;
    ensure!(prepare.contains(one) && commands.contains(&format!("ping -c 3 {other}")), "{commands}");
    with_nodes(world, |nodes| {
        let [a, b] = nodes.nodes();
        b.guest().check(&format!("set -e\n{}", prepare.replace(one, other)))?;
        a.guest().check(&format!("set -e\n{commands}"))?;
        ensure!(a.guest().check("cat /sys/bus/pci/devices/*/sriov_numvfs")?.trim() == "2", "{commands}");
        Ok(())
    })
}

/// Checks that a node disables its VFs under traffic, several times, by sysfs and by taking the PF's driver away: no VF is
/// active, other containers do not notice, and the VFs work when they are enabled again.
pub(crate) fn vfs_go_and_return_under_traffic(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let disable: fn(&SriovNode) -> Result<()> = |node| node.enable(0);
    with_nodes(world, |nodes| {
        let [a, b] = nodes.nodes();
        let theirs = b.containers(2)?;
        let mut stream = theirs[0].stream(&theirs[1])?;
        for take in [disable, disable, SriovNode::rebind] {
            let mine = a.containers(2)?;
            // The server of this stream ends with its container.
            let lost = theirs[1].stream(&mine[0])?;
            take(a)?;
            lost.close()?;
            nodes.wait_idle(a)?;
            stream.moves()?;
        }
        stream.close()?;
        let mine = a.containers(2)?;
        exchange(&mine[0], &theirs[0])?;
        exchange(&mine[1], &theirs[1])
    })
}

/// Checks a PF with more VFs than its slot has functions: those with other device numbers exchange traffic, and have their
/// own policy. The node cannot enable more VFs than QEMU has.
pub(crate) fn pf_has_more_than_seven_vfs(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_nodes(world, |nodes| {
        let [a, b] = nodes.nodes();
        // The PF's folder is found and has this limit, so the limit is what refuses.
        a.check_total(FIRST_VFS)?;
        a.guest().check_fails(&SriovNode::enabling(FIRST_VFS + 1))?;
        let theirs = b.containers(1)?;
        a.enable(FIRST_VFS)?;
        for vf in [7, FIRST_VFS - 1] {
            let mine = a.container(vf)?;
            exchange(&mine, &theirs[0])?;
            nodes.set_vlan(&mine, VLANS[0])?;
            mine.cannot_reach(&theirs[0])?;
        }
        Ok(())
    })
}

/// Checks that containers keep their VFs while the host is replaced and killed, several times: a stream continues, and the
/// policy remains in force. Upgrades take no link down.
pub(crate) fn containers_outlive_the_host(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    with_nodes(world, |nodes| {
        let [a, b] = nodes.nodes();
        let (mine, theirs) = (a.containers(2)?, b.containers(2)?);
        for container in [&mine[0], &theirs[0]] {
            nodes.set_vlan(container, VLANS[0])?;
        }
        let mut stream = mine[0].stream(&theirs[0])?;
        let losses = mine[0].link_losses()?;
        for round in 0..TIMES {
            let host = nodes.served.host(None)?;
            // On a busy machine a successor may be too late; then the host resumes, and the upgrade is repeated.
            eventually(|| nodes.served.softiov("upgrade"))?;
            nodes.served.host(Some(host))?;
            stream.moves().with_context(|| format!("upgrade {round}"))?;
        }
        ensure!(mine[0].link_losses()? == losses, "an upgrade has taken a VF's link down");
        for round in 0..TIMES {
            let host = nodes.served.host(None)?;
            kill_process(host, Signal::KILL)?;
            nodes.served.host(Some(host))?;
            eventually(|| nodes.served.softiov("vf list").map(drop))?;
            stream.moves().with_context(|| format!("SIGKILL {round}"))?;
            exchange(&mine[1], &theirs[1])?;
            mine[0].cannot_reach(&theirs[1])?;
        }
        print!("(no byte for {:.1} s) ", stream.close()?);
        exchange(&mine[0], &theirs[0])
    })
}

/// Checks that a node has two PFs, and that a container on a VF of the one reaches a container on a VF of the other.
pub(crate) fn node_has_two_pfs(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    const SCRIPT: &str = "set -e
        modprobe virtio_net
        number=0
        for total in /sys/bus/pci/devices/*/sriov_totalvfs; do
            cd $(dirname $total)
            number=$((number + 1))
            echo 1 > sriov_numvfs
            for attempt in $(seq 50); do ls virtfn0/virtio*/net > /tmp/name 2> /dev/null && break; sleep 0.1; done
            ip netns add p$number
            ip link set $(cat /tmp/name) netns p$number
            ip -n p$number link set $(cat /tmp/name) name eth0
            ip -n p$number addr add 10.84.6.$number/24 dev eth0
            ip -n p$number link set eth0 up
        done
        [ $number = 2 ]";
    let served = serve()?;
    let guest = ScenarioGuest::spawn(builder_of_pfs(&served, 2)?, world.assets(), SPLIT, 42)?;
    guest.linux.wait_ready(BOOT)?;
    guest.check(SCRIPT)?;
    eventually(|| guest.check("ip netns exec p1 ping -c 1 -W 1 10.84.6.2").map(drop))?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that QEMU refuses `iommu_platform=on` of a VF with its reason: the card translates no addresses of a guest's
/// IOMMU.
pub(crate) fn iommu_platform_is_refused(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let served = serve()?;
    let builder = builder(&served, 1, |word| match word.contains("sriov-pf=") {
        true => format!("{word},iommu_platform=on"),
        false => word.to_owned(),
    })?;
    match builder.spawn(world.assets()).and_then(|guest| guest.wait_ready(BOOT)) {
        Err(GuestError::Ended { tail, .. }) => {
            ensure!(tail.contains("iommu_platform=true is not supported by the device"), "{tail}");
            Ok(LinuxCheckOutcome::Passed)
        }
        Err(other) => Err(other.into()),
        Ok(()) => bail!("a guest has booted on a VF with iommu_platform=on"),
    }
}
