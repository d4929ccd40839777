//! Two nodes on one port of a host, the VFs that each enables, and containers on these VFs.

use crate::guest::{BOOT, ScenarioGuest, eventually};
use crate::served::HostWithKeeper;
use crate::stream::IperfStream;
use crate::world::SPLIT;
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, GuestBuilder, LinuxGuest};
use serde_json::Value;

/// Numbers of VFs of both nodes' PFs. The first node's PF has more than its slot has functions.
const VFS: [usize; 2] = [10, 2];
/// Number of VFs of the first node's PF.
pub(super) const FIRST_VFS: usize = VFS[0];
/// First three bytes of the containers' IPv4 addresses.
const NETWORK: &str = "10.84.5";
/// Shell script that enters the PF's folder in sysfs, with the PF's driver loaded. A node has one device with SR-IOV.
const ENTER: &str = "modprobe virtio_net && cd $(dirname /sys/bus/pci/devices/*/sriov_numvfs)";
/// Shell script that ends all containers' programs, and removes the containers.
const REMOVE: &str =
    "for ns in $(ip netns list | cut -d ' ' -f 1); do kill $(ip netns pids $ns); ip netns del $ns; done";

/// Host with the two nodes, which are dropped first.
#[derive(Debug)]
pub(crate) struct SriovTestbed {
    nodes: [SriovNode; 2],
    pub(super) served: HostWithKeeper,
}

/// Guest with a PF. The first node has the index 0, and the second 1.
#[derive(Debug)]
pub(super) struct SriovNode {
    guest: ScenarioGuest,
    index: usize,
}

/// Network namespace of a node whose eth0 is a VF: that with index `vf` of the node's PF.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    node: &'a SriovNode,
    vf: usize,
}

/// Starts a host whose virtio port has the functions of both nodes.
pub(super) fn serve() -> Result<HostWithKeeper> {
    let functions: usize = VFS.iter().map(|vfs| vfs + 1).sum();
    HostWithKeeper::start(&format!("[[port]]\nfamily = \"virtio\"\nvfs = {functions}\n"))
}

/// Returns the name of the port's VF that is the PF of a node.
fn pf(node: usize) -> String {
    format!("pf0vf{}", VFS[..node].iter().map(|vfs| vfs + 1).sum::<usize>())
}

/// Returns the name of the port's VF that is a VF of a node.
fn vf(node: usize, vf: usize) -> String {
    format!("pf0vf{}", VFS[..node].iter().map(|vfs| vfs + 1).sum::<usize>() + 1 + vf)
}

/// Returns QEMU's arguments for devices alone, of those that `softiov qemu-args` prints for a PF and its VFs.
fn devices(served: &HostWithKeeper, pf: &str, vfs: &str, port: usize) -> Result<Vec<String>> {
    let command = format!("qemu-args {pf} --sriov-vfs {vfs} --root-port {port} --format json");
    let words: Vec<String> = serde_json::from_str(&served.softiov(&command)?)?;
    let devices = words.chunks(2).filter(|pair| ["-chardev", "-netdev", "-device"].contains(&&*pair[0]));
    Ok(devices.flatten().cloned().collect())
}

/// Returns the builder of a node with several PFs, each with one VF.
pub(super) fn builder_of_pfs(served: &HostWithKeeper, pfs: usize) -> Result<GuestBuilder> {
    (0..pfs).try_fold(LinuxGuest::builder("wanda").memory_mib(320), |builder, index| {
        let [pf, vf] = [2 * index, 2 * index + 1].map(|function| format!("pf0vf{function}"));
        Ok(devices(served, &pf, &vf, index)?.into_iter().fold(builder, GuestBuilder::qemu_argument))
    })
}

/// Returns the builder of a node. QEMU gets the arguments that `softiov qemu-args` prints for the node's PF and VFs, each
/// passed through `change`; the memory is the guest's own.
pub(super) fn builder(
    served: &HostWithKeeper,
    node: usize,
    change: impl Fn(&str) -> String,
) -> Result<GuestBuilder> {
    let vfs: Vec<_> = (0..VFS[node]).map(|index| vf(node, index)).collect();
    let devices = devices(served, &pf(node), &vfs.join(","), 0)?;
    let builder = LinuxGuest::builder(["uma", "vito"][node]).memory_mib(320);
    Ok(devices.iter().fold(builder, |builder, word| builder.qemu_argument(change(word))))
}

impl SriovTestbed {
    /// Starts the host, and boots both nodes.
    pub(super) fn start(assets: &BootFiles) -> Result<Self> {
        let served = serve()?;
        let boot = |index| -> Result<SriovNode> {
            let builder = builder(&served, index, str::to_owned)?;
            Ok(SriovNode { guest: ScenarioGuest::spawn(builder, assets, SPLIT, 40 + index as u8)?, index })
        };
        let nodes = [boot(0)?, boot(1)?];
        nodes.iter().try_for_each(|node| node.guest.linux.wait_ready(BOOT))?;
        Ok(Self { nodes, served })
    }

    /// Disables all VFs of both nodes, and removes the containers and their VLANs.
    pub(super) fn settle(&self) -> Result<()> {
        for node in &self.nodes {
            node.enable(0)?;
            (0..VFS[node.index]).try_for_each(|vf| self.set_vlan(&Container { node, vf }, 0))?;
        }
        Ok(())
    }

    /// Returns both nodes.
    pub(super) fn nodes(&self) -> [&SriovNode; 2] {
        self.nodes.each_ref()
    }

    /// Sets the port VLAN of a container's VF by the host's command.
    pub(super) fn set_vlan(&self, container: &Container<'_>, vlan: u16) -> Result<()> {
        self.served.softiov(&format!("vf set {} --vlan {vlan} --volatile", container.host_vf())).map(drop)
    }

    /// Waits until the host shows that no VF of a node has an active driver.
    pub(super) fn wait_idle(&self, node: &SriovNode) -> Result<()> {
        eventually(|| {
            for index in 0..VFS[node.index] {
                let name = vf(node.index, index);
                let status = self.served.softiov(&format!("vf show {name} --json"))?;
                ensure!(
                    serde_json::from_str::<Value>(&status)?["active"] == false,
                    "{name} is active: {status}"
                );
            }
            Ok(())
        })
    }

    /// Returns the state of host and nodes as text, for error messages.
    pub(super) fn state(&self) -> String {
        const SCRIPT: &str =
            "ip -br link; for ns in $(ip netns list | cut -d ' ' -f 1); do ip -n $ns -br addr; done;
                              dmesg | tail -n 20";
        let vfs = self.served.softiov("vf list").unwrap_or_else(|error| error.to_string());
        let nodes = self.nodes.iter().map(|node| {
            let text = node.guest.check(SCRIPT).unwrap_or_else(|error| error.to_string());
            format!("{}:\n{text}", node.guest.name())
        });
        vfs + &nodes.collect::<String>()
    }
}

impl SriovNode {
    /// Returns the guest that is the node.
    pub(super) fn guest(&self) -> &ScenarioGuest {
        &self.guest
    }

    /// Returns the script that enables the first VFs of the PF, or disables all.
    pub(super) fn enabling(vfs: usize) -> String {
        format!("{ENTER} && echo {vfs} > sriov_numvfs && [ $(cat sriov_numvfs) = {vfs} ]")
    }

    /// Checks the number of VFs that the PF has at most.
    pub(super) fn check_total(&self, vfs: usize) -> Result<()> {
        self.guest.check(&format!("{ENTER} && [ $(cat sriov_totalvfs) = {vfs} ]")).map(drop)
    }

    /// Enables the first VFs of the PF by sysfs. Disables all with 0, and then removes the containers.
    pub(super) fn enable(&self, vfs: usize) -> Result<()> {
        self.guest.check(&Self::enabling(vfs))?;
        if vfs == 0 { self.guest.check(REMOVE).map(drop) } else { Ok(()) }
    }

    /// Unbinds the PF's driver, by which the PF loses its VFs, removes the containers, and binds the driver again.
    pub(super) fn rebind(&self) -> Result<()> {
        let script = format!(
            "{ENTER} && driver=$(readlink -f driver) && device=$(basename $(pwd)) &&
             echo $device > $driver/unbind && [ $(cat sriov_numvfs) = 0 ] && [ ! -e virtfn0 ] &&
             echo $device > $driver/bind && {REMOVE}"
        );
        self.guest.check(&script).map(drop)
    }

    /// Enables the first `vfs` VFs of the PF, and starts a container on each.
    pub(super) fn containers(&self, vfs: usize) -> Result<Vec<Container<'_>>> {
        self.enable(vfs)?;
        (0..vfs).map(|vf| self.container(vf)).collect()
    }

    /// Starts a container on a VF that is enabled, with a server of iperf3, and waits for its link.
    pub(super) fn container(&self, vf: usize) -> Result<Container<'_>> {
        let container = Container { node: self, vf };
        let (name, address) = (container.name(), container.address());
        let interface = eventually(|| self.guest.check(&format!("{ENTER}/virtfn{vf} && ls virtio*/net")))?;
        let interface = interface.trim();
        self.guest.check(&format!(
            "ip netns add {name} && ip link set {interface} netns {name} &&
             ip -n {name} link set {interface} name eth0 && ip -n {name} addr add {address}/24 dev eth0 &&
             ip -n {name} link set eth0 up && ip netns exec {name} iperf3 -s -D"
        ))?;
        eventually(|| {
            let carrier = container.run("cat /sys/class/net/eth0/carrier")?;
            ensure!(carrier.trim() == "1", "{}: the VF of {name} has no link", self.guest.name());
            Ok(())
        })?;
        Ok(container)
    }
}

impl<'a> Container<'a> {
    /// Returns the guest that is the container's node.
    pub(super) fn guest(&self) -> &'a ScenarioGuest {
        &self.node.guest
    }

    fn name(&self) -> String {
        format!("c{}", self.vf)
    }

    fn host_vf(&self) -> String {
        vf(self.node.index, self.vf)
    }

    fn address(&self) -> String {
        format!("{NETWORK}.{}", 10 * (self.node.index + 1) + self.vf)
    }

    /// Returns the beginning of a command that runs in the container.
    fn entering(&self) -> String {
        format!("ip netns exec {}", self.name())
    }

    /// Runs a command in the container, which must succeed, and returns its output.
    fn run(&self, command: &str) -> Result<String> {
        self.guest().check(&format!("{} {command}", self.entering()))
    }

    /// Waits until another container answers a ping.
    pub(super) fn reach(&self, other: &Self) -> Result<()> {
        eventually(|| self.run(&format!("ping -c 1 -W 1 {}", other.address())).map(drop))
    }

    /// Checks that another container does not answer pings within a second or two.
    pub(super) fn cannot_reach(&self, other: &Self) -> Result<()> {
        let command = format!("{} ping -c 2 -W 1 {}", self.entering(), other.address());
        self.guest().check_fails(&command).map(drop)
    }

    /// Starts a TCP stream from another container, and returns it once bytes arrive.
    pub(super) fn stream(&self, from: &Self) -> Result<IperfStream<'a>> {
        IperfStream::open_in(self.guest(), &self.entering(), &from.address())
    }

    /// Returns the number of times that the VF has lost its link.
    pub(super) fn link_losses(&self) -> Result<u32> {
        Ok(self.run("cat /sys/class/net/eth0/carrier_down_count")?.trim().parse()?)
    }
}
