//! Runs DPDK's testpmd in a guest, where it drives the function and takes commands. testpmd and its drivers are
//! Debian's 22.11; Debian's 6.1 has no vfio without an IOMMU, so uio_pci_generic holds the function.

use crate::guest::{COMMAND, ScenarioGuest};
use anyhow::{Context, Result, ensure};
use linux_guest::BackgroundScript;

/// Shell script that prepares a guest for testpmd: binds the functions to uio and reserves pages of 2 MiB. EAL refuses
/// to load drivers below a world-writable folder.
const PREPARE: &str = "chmod 755 / && mkdir -p /var/run /mnt/huge && echo 48 > /proc/sys/vm/nr_hugepages &&
    mount -t hugetlbfs none /mnt/huge && modprobe uio_pci_generic && mkfifo /run/commands &&
    for device in /sys/bus/pci/devices/0000:0[1-5]:00.0; do echo uio_pci_generic > $device/driver_override &&
    { [ ! -e $device/driver ] || echo ${device##*/} > $device/driver/unbind; } &&
    echo ${device##*/} > /sys/bus/pci/drivers_probe && [ -e $device/uio/uio* ] || exit; done";

/// Start of the shell script that runs testpmd on the guest's two processors. Commands come through a pipe that another
/// process must keep open.
const TESTPMD: &str = "sleep 600 > /run/commands & dpdk-testpmd -l 0,1 --no-telemetry -m 64";
const OPTIONS: &str = "--interactive --auto-start --total-num-mbufs=2048 --rxd=128 --txd=128";

/// Prepares a guest for [`GuestTestpmd::start`]: binds its functions and reserves memory.
pub(crate) fn prepare(guest: &ScenarioGuest) -> Result<()> {
    guest.check(PREPARE).map(drop)
}

/// PCI slot of a network function in a guest. The guest runs testpmd.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PciSlot(u8);

/// PCI slot of igbvf's VF in the guest of [`LinuxTestbed::prepare_dpdk`](crate::world::LinuxTestbed::prepare_dpdk). The
/// slots of the guest's other functions follow.
pub(crate) const IGBVF: PciSlot = PciSlot(1);
pub(crate) const IAVF: PciSlot = PciSlot(2);
pub(crate) const IGB: PciSlot = PciSlot(3);
pub(crate) const VIRTIO: PciSlot = PciSlot(4);
pub(crate) const VIRTIO_PACKED: PciSlot = PciSlot(5);
/// PCI slot of the network function in a guest with only one such function.
pub(crate) const ONLY: PciSlot = PciSlot(1);

/// Process of testpmd that runs in the background of a guest. Dropping this value kills the process.
#[derive(Debug)]
pub(crate) struct GuestTestpmd<'a> {
    guest: &'a ScenarioGuest,
    running: BackgroundScript,
}

impl<'a> GuestTestpmd<'a> {
    /// Starts testpmd on the function in a slot, already forwarding.
    pub(crate) fn start(guest: &'a ScenarioGuest, slot: PciSlot, options: &str) -> Result<Self> {
        let PciSlot(slot) = slot;
        let script = format!("{TESTPMD} -a 0000:0{slot}:00.0 -- {OPTIONS} {options} < /run/commands 2>&1");
        Ok(Self { guest, running: guest.linux.spawn_background(&script)? })
    }

    /// Sends testpmd a command, which takes effect a moment later. Its output is returned by [`finish`](Self::finish).
    pub(crate) fn say(&self, command: &str) -> Result<()> {
        self.guest.check(&format!("echo '{command}' > /run/commands")).map(drop)
    }

    /// Ends testpmd and returns its output.
    pub(crate) fn finish(self) -> Result<String> {
        self.say("quit")?;
        let output = self.guest.linux.wait(&self.running, COMMAND)?;
        ensure!(output.success() && output.stdout.contains("Bye"), "testpmd failed: {output:?}");
        self.guest.check("killall sleep")?;
        Ok(output.stdout)
    }
}

/// Returns the numbers of packets that a queue has received and sent, by the forwarding statistics that `stop` prints
/// last.
pub(crate) fn queue(said: &str, queue: u8) -> Result<[u64; 2]> {
    let heading = format!("Forward Stats for RX Port= 0/Queue= {queue} ");
    let after =
        said.rsplit_once(&heading).with_context(|| format!("no statistics of queue {queue}: {said}"))?.1;
    Ok([number(after, "RX-packets:")?, number(after, "TX-packets:")?])
}

impl Drop for GuestTestpmd<'_> {
    /// Kills testpmd. A testpmd left behind by a failed check would keep its function from the next check.
    fn drop(&mut self) {
        self.running.kill();
    }
}

/// Returns the parts of testpmd's output that follow each `stop`, up to the next.
pub(crate) fn stops(said: &str) -> Vec<&str> {
    said.split("Telling cores to stop").skip(1).collect()
}

/// Returns the first number after a name in testpmd's output.
pub(crate) fn number(text: &str, name: &str) -> Result<u64> {
    let after = text.split_once(name).with_context(|| format!("no {name} in {text}"))?.1;
    let word = after.split_whitespace().next().unwrap_or_default();
    word.parse().with_context(|| format!("{name} {word}"))
}
