//! Guest with one network card, and the process that forwards its frames, as a contender of the measurements. Both are
//! stopped while another contender is measured, so that they use no processor time.

use super::equipment::{configuration, plugged, prepare, virtio};
use super::load::{GuestNetworkLoad, HostCounters, NetworkLoadResult};
use crate::guest::{BOOT, COMMAND, eventually};
use crate::served::HostWithKeeper;
use crate::wire::WireNamespace;
use crate::world::LinuxTestbed;
use anyhow::{Context, Result};
use bench::contender::switch::{OpenVswitchConfig, OpenVswitchPort, OpenVswitchProcess};
use bench::machine::cycles::time;
use bench::machine::huge_pages::{self, HugePages};
use bench::machine::processors::ProcessorAssignment;
use daemon::control::status::{VfStatus, VmmInterventions};
use linux_guest::{BootFiles, HostDpdk, LinuxGuest};
use rustix::process::{Pid, Signal, kill_process};
use std::iter;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Number of the first contender, used for its tap and its IP addresses. Other contenders have the following numbers;
/// ports of the checks' host have lower ones.
const IAVF: u8 = 11;
const IGBVF: u8 = 12;
const ON_SWITCH: u8 = 13;
const ON_TAP: u8 = 14;
const ON_TAP_CUT: u8 = 15;

/// Number of the contender that is virtio-net on SoftIOV. Contenders of module `versions` have lower numbers.
const SERVED_NUMBER: u8 = 20;
/// Numbers of the pairs of virtio guests.
const PAIR: u8 = 21;
const PAIR_WITH_GRO: u8 = 22;
const PAIR_ON_TAPS: u8 = 23;

const SERVED: &str = "virtio-net, vhost-user to SoftIOV";
const SWITCH: &str = "virtio-net, vhost-user to Open vSwitch-DPDK";
const WITH_GRO: &str = "virtio-net, vhost-user to SoftIOV, gro";
/// Name of the contender whose virtio-net receives single frames as igbvf and iavf do, to show the effect of large
/// packets.
const CUT: &str = "virtio-net, tap, receives frames of 1,514 bytes";
const NO_LARGE_RECEIVE: &str = ",guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

/// Name of the measured VF of a contender's host. The name of the other guest's VF follows.
const VF: &str = "pf0vf0";
const PEER: &str = "pf0vf1";
/// Difference between the last bytes of the IP addresses of two guests on one host.
const PEERS: u8 = 100;
/// Name of Open vSwitch's port for the guest. The name of the port for the network beyond the uplink follows.
const GUEST: &str = "guest";
const UPLINK: &str = "uplink";

/// Contender of the measurements: a guest with one network card, and the process that forwards its frames. The guest is
/// dropped first.
#[derive(Debug)]
pub(super) struct MeasuredGuest {
    name: &'static str,
    guest: LinuxGuest,
    /// Other guest on the same port, with its address and an iperf3 server.
    peer: Option<(LinuxGuest, String)>,
    forwarder: GuestForwarder,
}

#[derive(Debug)]
enum GuestForwarder {
    /// VF of SoftIOV's card as forwarder: keeper and host of one port, and the process id of the host.
    Card {
        served: HostWithKeeper,
        host: Pid,
        /// True if the guest's driver counts its own accesses to the card, as virtio-net counts kicks.
        kicks: bool,
    },
    Switch {
        switch: OpenVswitchProcess,
        /// Huge pages for the memory of Open vSwitch.
        _huge: HugePages,
        /// Folder of Open vSwitch's sockets.
        _folder: TempDir,
    },
    /// QEMU forwards the frames by itself.
    Qemu,
}

impl GuestForwarder {
    /// Returns the host of a port of a family as a forwarder.
    fn of(served: HostWithKeeper, family: &str) -> Result<Self> {
        let host = served.host(None)?;
        Ok(Self::Card { served, host, kicks: family == "virtio" })
    }
}

impl MeasuredGuest {
    /// Boots the guests of all contenders; the first contender is iavf.
    pub(super) fn all(world: &LinuxTestbed, wire: &WireNamespace) -> Result<Vec<Self>> {
        let assets = world.assets();
        Ok(vec![
            Self::on_card("iavf, mapped", "avf", (IAVF, 1), assets, wire)?,
            Self::on_card("igbvf, mapped", "82576", (IGBVF, 1), assets, wire)?,
            Self::on_card(SERVED, "virtio", (SERVED_NUMBER, 1), assets, wire)?,
            Self::on_switch(assets, wire)?,
            Self::on_tap("virtio-net, tap", ON_TAP, "", assets, wire)?,
            Self::on_tap(CUT, ON_TAP_CUT, NO_LARGE_RECEIVE, assets, wire)?,
        ])
    }

    /// Boots iavf on a mapped port, in a guest with `cpus` processors.
    pub(super) fn iavf(cpus: u32, world: &LinuxTestbed, wire: &WireNamespace) -> Result<Self> {
        Self::on_card("iavf, mapped", "avf", (IAVF, cpus), world.assets(), wire)
    }

    /// Boots pairs of guests with virtio-net: on a port of SoftIOV, on one that joins TCP segments, and on two taps of
    /// QEMU's that a bridge joins.
    pub(super) fn pairs_of_virtio(world: &LinuxTestbed, wire: &WireNamespace) -> Result<Vec<Self>> {
        let (assets, program) = (world.assets(), || PathBuf::from(env!("CARGO_BIN_EXE_softiov")));
        Ok(vec![
            Self::of_program(SERVED, program(), ("virtio", PAIR), "", assets, wire)?,
            Self::of_program(WITH_GRO, program(), ("virtio", PAIR_WITH_GRO), "gro = true\n", assets, wire)?,
            Self::pair_on_taps(
                "virtio-net, taps and a bridge",
                [PAIR_ON_TAPS, PAIR_ON_TAPS + 1],
                assets,
                wire,
            )?,
        ])
    }

    /// Boots a guest with a VF of a family on a host with mapped doorbells. `number` selects the tap that is the port's
    /// uplink.
    fn on_card(
        name: &'static str,
        family: &str,
        (number, cpus): (u8, u32),
        assets: &BootFiles,
        wire: &WireNamespace,
    ) -> Result<Self> {
        let served = HostWithKeeper::start(&configuration(family, 1, &wire.tap(number)))?;
        wire.plug(number)?;
        let guest =
            plugged(LinuxGuest::builder(name).cpus(cpus), &served, VF, (family, number)).spawn(assets)?;
        let forwarder = GuestForwarder::of(served, family)?;
        Self::settled(name, guest, forwarder, number, wire)
    }

    /// Boots two guests with a VF of a family each, on a host of the `softiov` at the path `program`. `number` selects
    /// the tap that is the port's uplink. `keys` are further lines of the port's configuration.
    pub(super) fn of_program(
        name: &'static str,
        program: PathBuf,
        (family, number): (&str, u8),
        keys: &str,
        assets: &BootFiles,
        wire: &WireNamespace,
    ) -> Result<Self> {
        let configuration = configuration(family, 2, &wire.tap(number)) + keys;
        let served = HostWithKeeper::start_program(program, &configuration)?;
        wire.plug(number)?;
        let spawn =
            |vf, number| plugged(LinuxGuest::builder(name), &served, vf, (family, number)).spawn(assets);
        let (guest, peer) = (spawn(VF, number)?, spawn(PEER, number + PEERS)?);
        let forwarder = GuestForwarder::of(served, family)?;
        Self::settled_pair(name, [guest, peer], forwarder, [number, number + PEERS], wire)
    }

    /// Boots two guests whose virtio-net are on taps that QEMU serves, with the numbers `numbers`.
    fn pair_on_taps(
        name: &'static str,
        numbers: [u8; 2],
        assets: &BootFiles,
        wire: &WireNamespace,
    ) -> Result<Self> {
        let spawn = |number| Self::spawn_on_tap(name, number, "", assets, wire);
        let guests = [spawn(numbers[0])?, spawn(numbers[1])?];
        Self::settled_pair(name, guests, GuestForwarder::Qemu, numbers, wire)
    }

    /// Boots a guest with virtio-net that Open vSwitch reaches by vhost-user, with the switch's own interface as the
    /// uplink.
    fn on_switch(assets: &BootFiles, wire: &WireNamespace) -> Result<Self> {
        let (dpdk, folder) = (HostDpdk::prepare()?, TempDir::new()?);
        let huge = huge_pages::reserve(true);
        let switch = OpenVswitchProcess::start(&OpenVswitchConfig {
            dpdk: &dpdk,
            huge: &huge,
            processors: ProcessorAssignment::of_process()?,
            folder: folder.path(),
            ports: [OpenVswitchPort::VhostUser(GUEST), OpenVswitchPort::Interface(UPLINK)],
            offloads: true,
            namespace: Some(&wire.namespace()),
        })?;
        wire.attach(UPLINK)?;
        let socket = folder.path().join(format!("{GUEST}.sock"));
        let builder = LinuxGuest::builder(SWITCH)
            .qemu_argument("-chardev")
            .qemu_argument(format!("socket,id=switch,server=on,wait=off,path={}", socket.display()));
        let guest = virtio(builder, "vhost-user,id=net,chardev=switch", ON_SWITCH, "").spawn(assets)?;
        let forwarder = GuestForwarder::Switch { switch, _huge: huge, _folder: folder };
        Self::settled(SWITCH, guest, forwarder, ON_SWITCH, wire)
    }

    /// Boots a guest with virtio-net for which QEMU reads and writes a tap; `options` are additional device options.
    fn on_tap(
        name: &'static str,
        number: u8,
        options: &str,
        assets: &BootFiles,
        wire: &WireNamespace,
    ) -> Result<Self> {
        let guest = Self::spawn_on_tap(name, number, options, assets, wire)?;
        Self::settled(name, guest, GuestForwarder::Qemu, number, wire)
    }

    fn spawn_on_tap(
        name: &'static str,
        number: u8,
        options: &str,
        assets: &BootFiles,
        wire: &WireNamespace,
    ) -> Result<LinuxGuest> {
        wire.return_tap(number)?;
        let netdev = format!("tap,id=net,ifname={},script=no,downscript=no", wire.tap(number));
        let guest = virtio(LinuxGuest::builder(name), &netdev, number, options).spawn(assets)?;
        // QEMU must open the tap where it was created.
        guest.wait_ready(BOOT)?;
        wire.plug(number)?;
        Ok(guest)
    }

    /// Waits until the guest has booted and its ping is answered, and stops guest and forwarder.
    fn settled(
        name: &'static str,
        guest: LinuxGuest,
        forwarder: GuestForwarder,
        number: u8,
        wire: &WireNamespace,
    ) -> Result<Self> {
        prepare(&guest, number)?;
        let contender = Self { name, guest, peer: None, forwarder };
        contender.reach(&wire.address())?;
        contender.stop(true)?;
        Ok(contender)
    }

    /// Does the same with two guests, of which the second runs an iperf3 server.
    fn settled_pair(
        name: &'static str,
        [guest, peer]: [LinuxGuest; 2],
        forwarder: GuestForwarder,
        [number, other]: [u8; 2],
        wire: &WireNamespace,
    ) -> Result<Self> {
        let address = prepare(&peer, other)?;
        peer.check("iperf3 -s -D", COMMAND)?;
        let contender = Self::settled(name, guest, forwarder, number, wire)?;
        let contender = Self { peer: Some((peer, address)), ..contender };
        contender.stop(true)?;
        Ok(contender)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the accelerator of the guest's processors.
    pub(super) fn accel(&self) -> &'static str {
        self.guest.accel().name()
    }

    /// Measures each load once, while guest and forwarder run. Skips traffic between guests if the contender has no
    /// second guest.
    pub(super) fn turn(&self, server: &str) -> Result<Vec<NetworkLoadResult>> {
        self.running(|| {
            self.reach(server)?;
            let mut results = Vec::new();
            for load in GuestNetworkLoad::ALL {
                let peer = self.peer.as_ref().map(|(_, address)| address.as_str());
                let Some(server) = (if load == GuestNetworkLoad::Between { peer } else { Some(server) })
                else {
                    continue;
                };
                results.push(self.load(load, server, 1)?);
            }
            Ok(results)
        })
    }

    /// Continues the stopped guest and forwarder of a contender, calls `work`, and stops both again.
    pub(super) fn running<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.stop(false)?;
        let done = work().with_context(|| self.name)?;
        self.stop(true)?;
        Ok(done)
    }

    /// Measures a load of the contender's guest over `connections` connections to `server`.
    pub(super) fn load(
        &self,
        load: GuestNetworkLoad,
        server: &str,
        connections: u32,
    ) -> Result<NetworkLoadResult> {
        let before = self.counted()?;
        let printed = self.check(&load.script(server, connections))?;
        NetworkLoadResult::read(load, &printed, &self.counted()?.since(&before))
    }

    /// Runs a script in the guest that must succeed.
    pub(super) fn check(&self, script: &str) -> Result<String> {
        Ok(self.guest.check(script, COMMAND)?)
    }

    /// Waits until an address answers a ping from the guest.
    pub(super) fn reach(&self, address: &str) -> Result<()> {
        eventually(|| self.check(&format!("ping -c 1 -W 1 {address}")).map(drop))
    }

    /// Prints the drops of the guest's VF, if it has one, and turns the guest off.
    pub(super) fn end(self) -> Result<()> {
        self.stop(false)?;
        if let GuestForwarder::Card { served, .. } = &self.forwarder {
            println!("    {}: {:?}", self.name, status(served)?.drops);
        }
        if let Some((peer, _)) = self.peer {
            peer.shutdown(COMMAND)?;
        }
        Ok(self.guest.shutdown(COMMAND)?)
    }

    /// Reads this machine's counters: register accesses of the VF, and processor time of QEMU and of the forwarder.
    fn counted(&self) -> Result<HostCounters> {
        let (forwarder, accesses) = match &self.forwarder {
            GuestForwarder::Card { served, host, kicks } => {
                let accesses = if *kicks { None } else { Some(accesses(served)?) };
                (Some(host.as_raw_nonzero().get().cast_unsigned()), accesses)
            }
            GuestForwarder::Switch { switch, .. } => (Some(switch.process().id()), None),
            GuestForwarder::Qemu => (None, None),
        };
        Ok(HostCounters {
            accesses,
            vmm: time(self.guest.pid()),
            forwarder: forwarder.map_or(Duration::ZERO, time),
        })
    }

    /// Stops guests and forwarder by SIGSTOP, or continues them. The guests are stopped first, because a guest may wait
    /// for the forwarder.
    fn stop(&self, stopped: bool) -> Result<()> {
        let signal = if stopped { Signal::STOP } else { Signal::CONT };
        if stopped {
            self.signal_guests(signal)?;
        }
        match &self.forwarder {
            GuestForwarder::Card { host, .. } => kill_process(*host, signal)?,
            GuestForwarder::Switch { switch, .. } => switch.process().stop(stopped)?,
            GuestForwarder::Qemu => {}
        }
        if !stopped {
            self.signal_guests(signal)?;
        }
        Ok(())
    }

    fn signal_guests(&self, signal: Signal) -> Result<()> {
        for guest in iter::once(&self.guest).chain(self.peer.as_ref().map(|(peer, _)| peer)) {
            let vmm = Pid::from_raw(guest.pid().cast_signed()).context("QEMU has no process id")?;
            kill_process(vmm, signal)?;
        }
        Ok(())
    }
}

/// Returns the status of the measured VF of a contender's host.
fn status(served: &HostWithKeeper) -> Result<VfStatus> {
    Ok(serde_json::from_str(&served.softiov(&format!("vf show {VF} --json"))?)?)
}

/// Returns the number of the VF's register reads and writes that the host carried out.
fn accesses(served: &HostWithKeeper) -> Result<u64> {
    let VmmInterventions { reads, posted_writes, synchronous_writes, .. } = status(served)?.interventions;
    Ok(reads + posted_writes + synchronous_writes)
}
