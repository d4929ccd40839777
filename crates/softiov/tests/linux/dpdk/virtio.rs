//! Checks DPDK's virtio driver on VFs of the third family: in a guest, and on the host as the front end of the socket itself.

use crate::guest::{ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::testpmd::{self, GuestTestpmd, PciSlot, VIRTIO, VIRTIO_PACKED};
use crate::virtio;
use crate::world::{LinuxTestbed, SPLIT, VISITOR_VIRTIO};
use anyhow::{Context, Result, ensure};
use linux_guest::HostDpdk;
use std::fs;
use std::process::{Child, Stdio};
use tempfile::NamedTempFile;

/// IPv4 address of Judy. The address at which she pings testpmd follows; testpmd's mode icmpecho answers for every
/// address.
const JUDY: &str = "10.84.0.6";
const ADDRESS: &str = "10.84.0.5";
const QUEUES: &str = "--rxq=2 --txq=2";

/// Checks that testpmd in a guest answers pings from two queue pairs, also long ones and after the port was stopped, and that
/// frames of several addresses arrive in both queues. Then it sends from both queues, and the frames arrive. This holds for split
/// and for packed rings.
pub(crate) fn receives_and_sends(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.prepare_dpdk()?;
    virtio::linked(world)?;
    let [judy, _] = world.virtio()?;
    virtio::add_address(judy, JUDY)?;
    for slot in [VIRTIO, VIRTIO_PACKED] {
        exchange(world, judy, slot).with_context(|| format!("{slot:?}"))?;
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks what [`receives_and_sends`] names, for the function in one slot of the guest.
fn exchange(world: &LinuxTestbed, judy: &ScenarioGuest, slot: PciSlot) -> Result<()> {
    let guest = world.dpdk()?;
    // The function in another slot has answered for the same addresses.
    judy.check("ip neigh flush dev eth0")?;
    // testpmd sends frames of several buffers only with this flag at its start: RTE_ETH_TX_OFFLOAD_MULTI_SEGS.
    let long = "--max-pkt-len=9018 --enable-scatter --tx-offloads=0x8000";
    let echo = GuestTestpmd::start(guest, slot, &format!("--forward-mode=icmpecho {QUEUES} {long}"))?;
    for stops in [false, true] {
        if stops {
            ["stop", "port stop 0", "port start 0", "start"].iter().try_for_each(|word| echo.say(word))?;
        }
        answers(judy, &[56, 1400, 8000]).with_context(|| format!("port stopped: {stops}"))?;
    }
    (100..116).try_for_each(|host| {
        let address = format!("10.84.0.{host}");
        judy.reach(&address)?;
        judy.ping(&address, 56, 4)
    })?;
    let said = echo.say("stop").and_then(|()| echo.finish())?;
    let [first, second] = [0, 1].map(|queue| testpmd::queue(&said, queue).map(|[received, _]| received));
    ensure!(first? > 0 && second? > 0, "one queue received nothing: {said}");

    let before = world.vf(SPLIT)?.rx.packets;
    let (_, peer) = virtio::mac(6);
    let options =
        format!("--forward-mode=txonly --eth-peer=0,{} {QUEUES}", peer.as_str().unwrap_or_default());
    let sends = GuestTestpmd::start(guest, slot, &options)?;
    eventually(|| {
        let arrived = world.vf(SPLIT)?.rx.packets - before;
        ensure!(arrived > 1000, "{arrived} frames of testpmd have arrived");
        Ok(())
    })?;
    sends.say("stop")?;
    let said = sends.finish()?;
    let sent = [testpmd::queue(&said, 0)?[1], testpmd::queue(&said, 1)?[1]];
    ensure!(sent.iter().all(|packets| *packets > 0), "the queues sent {sent:?}: {said}");
    Ok(())
}

/// Checks that testpmd on the host connects to a VF's socket as virtio-user, with split and with packed rings, and answers pings of a
/// guest.
/// With `VIRTIO_F_IN_ORDER` testpmd links the descriptors of long frames, and without it has an indirect table of each.
pub(crate) fn user_port_exchanges_frames(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let dpdk = HostDpdk::prepare()?;
    // The guest for DPDK holds the VF.
    world.send_visitors_home()?;
    virtio::linked(world)?;
    let [judy, _] = world.virtio()?;
    virtio::add_address(judy, JUDY)?;
    let sizes = &[56, 1400, 8000];
    for [packed, in_order] in [[0, 1], [0, 0], [1, 1], [1, 0]] {
        let before = world.vf(VISITOR_VIRTIO)?;
        let echo = HostTestpmd::start(world, &dpdk, packed, in_order)?;
        let answered = answers(judy, sizes);
        let after = world.vf(VISITOR_VIRTIO)?;
        let said = echo.finish()?;
        let least = sizes.len() as u64 * u64::from(PINGS);
        answered.with_context(|| format!("packed: {packed}, in order: {in_order}; {after:?}: {said}"))?;
        let (received, sent) = (after.rx.packets - before.rx.packets, after.tx.packets - before.tx.packets);
        ensure!(received >= least && sent >= least, "{received} frames received, {sent} sent: {said}");
        ensure!(testpmd::number(&said, "TX-packets:")? >= least, "testpmd did not send: {said}");
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Number of pings of each size that [`answers`] sends.
const PINGS: u32 = 50;

/// Checks that testpmd answers pings of Judy, of several sizes.
fn answers(judy: &ScenarioGuest, sizes: &[u32]) -> Result<()> {
    // testpmd does not answer fragments.
    judy.check("ip link set eth0 mtu 9000")?;
    judy.reach(ADDRESS)?;
    sizes.iter().try_for_each(|size| judy.ping(ADDRESS, *size, PINGS))
}

/// Process of testpmd on the host, and the file of its output. Dropping this value kills the process.
#[derive(Debug)]
struct HostTestpmd {
    process: Child,
    output: NamedTempFile,
}

impl HostTestpmd {
    /// Starts testpmd that answers pings from the socket of a VF.
    fn start(world: &LinuxTestbed, dpdk: &HostDpdk, packed: u8, in_order: u8) -> Result<Self> {
        let (socket, (_, mac)) = (world.socket(VISITOR_VIRTIO), virtio::mac(5));
        let (socket, mac) = (socket.display(), mac.as_str().unwrap_or_default());
        let output = NamedTempFile::new()?;
        let mut command = dpdk.testpmd();
        command.args(["-l", "0,1", "--no-pci", "--no-telemetry", "--no-huge", "-m", "128"]);
        command.args(["--single-file-segments", "--no-shconf"]);
        // Small rings wrap within the pings.
        let rings = format!("queues=1,queue_size=64,packed_vq={packed},in_order={in_order}");
        command.arg(format!("--vdev=net_virtio_user0,path={socket},mac={mac},{rings}"));
        command.args(["--", "--auto-start", "--no-lsc-interrupt", "--total-num-mbufs=8192"]);
        command.args(["--forward-mode=icmpecho", "--max-pkt-len=9018", "--enable-scatter"]);
        command.arg("--tx-offloads=0x8000").stdin(Stdio::piped());
        command.stdout(output.as_file().try_clone()?).stderr(output.as_file().try_clone()?);
        Ok(Self { process: command.spawn().context("cannot start testpmd")?, output })
    }

    /// Ends testpmd by the end of its input, and returns its output.
    fn finish(mut self) -> Result<String> {
        drop(self.process.stdin.take());
        let status = self.process.wait()?;
        let said = fs::read_to_string(self.output.path())?;
        ensure!(status.success() && said.contains("Bye"), "testpmd ended with {status}: {said}");
        Ok(said)
    }
}

impl Drop for HostTestpmd {
    fn drop(&mut self) {
        // An error means that testpmd has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
