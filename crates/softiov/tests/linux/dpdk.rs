//! DPDK's own igbvf driver, which polls and needs no kernel driver: Debian's testpmd in a guest. Debian's 6.1 has no
//! vfio without an IOMMU, so uio_pci_generic holds the VF. Left out: how fast it is.

use crate::guest::{COMMAND, Guest, eventually};
use crate::report::Outcome;
use crate::world::{ALICE, VISITOR, World};
use anyhow::{Result, ensure};
use linux_guest::Background;

/// The guest's two processors, memory for it in 48 pages of 2 MiB, and the VF.
const TESTPMD: &str = "dpdk-testpmd -l 0,1 --no-telemetry -m 64 -a 0000:01:00.0 -- \
    --auto-start --total-num-mbufs=2048 --rxd=128 --txd=128";

/// Hands the VF to uio and makes the pages. EAL refuses to load drivers below a folder that anybody may write.
const PREPARE: &str = "chmod 755 / && mkdir -p /var/run /mnt/huge && echo 48 > /proc/sys/vm/nr_hugepages &&
    mount -t hugetlbfs none /mnt/huge && modprobe uio_pci_generic &&
    echo uio_pci_generic > /sys/bus/pci/devices/0000:01:00.0/driver_override &&
    echo 0000:01:00.0 > /sys/bus/pci/drivers_probe && [ -e /dev/uio0 ]";

/// testpmd takes a VF, shakes hands with the PF, and answers pings; then it sends by itself, and all of it arrives.
pub(crate) fn testpmd_receives_and_sends(world: &mut World) -> Result<Outcome> {
    let assets = world.assets().clone().with_dpdk()?;
    let builder = world.builder("dpdk", VISITOR).cpus(2).memory_mib(384).coldplug(false);
    let guest = world.boot_visitor(builder, &assets)?;
    guest.check(PREPARE)?;

    let alice = world.alice()?;
    let running = start(&guest, "--forward-mode=icmpecho")?;
    alice.reach(&guest.address())?;
    for size in [56, 1400] {
        alice.ping(&guest.address(), size, 100)?;
    }
    let vf = world.vf(VISITOR)?;
    ensure!(vf.active && vf.rx.packets >= 200 && vf.tx.packets >= 200, "the host says {vf:?}");
    finish(&guest, &running)?;

    let before = world.vf(ALICE)?.rx.packets;
    let peer = world.vf(ALICE)?.mac;
    let running = start(&guest, &format!("--forward-mode=txonly --eth-peer=0,{peer}"))?;
    eventually(|| {
        let arrived = world.vf(ALICE)?.rx.packets - before;
        ensure!(arrived > 1000, "{arrived} frames of testpmd have arrived");
        Ok(())
    })?;
    let said = finish(&guest, &running)?;
    ensure!(said.contains("TX-packets:"), "{said}");
    guest.linux.shutdown(COMMAND)?;
    Ok(Outcome::Passed)
}

/// It runs until its standard input ends.
fn start(guest: &Guest, options: &str) -> Result<Background> {
    Ok(guest.linux.spawn_background(&format!("sleep 600 | {TESTPMD} {options} 2>&1"))?)
}

/// Ends testpmd in its own way, and answers what it has said.
fn finish(guest: &Guest, running: &Background) -> Result<String> {
    guest.check("killall sleep")?;
    let output = guest.linux.wait(running, COMMAND)?;
    ensure!(output.success() && output.stdout.contains("Bye"), "testpmd ended so: {output:?}");
    Ok(output.stdout)
}
