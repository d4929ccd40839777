//! Checks the third family: stock virtio_net behind vhost-user, on a port whose VFs are spread over two workers. The guest
//! Judy has split rings. The guest Kim has four queue pairs, with packed rings. Both guests are on
//! one port, so that large packets pass unsegmented.

pub(crate) mod bookworm;
pub(crate) mod client;
mod every;
pub(crate) mod families;
pub(crate) mod kernels;
pub(crate) mod migration;
mod pairs;
pub(crate) mod reduced;
pub(crate) mod sriov;

pub(crate) use pairs::{is_packed, mac};

use crate::avf::no_checksum_errors;
use crate::guest::{BOOT, ScenarioGuest, eventually};
use crate::report::LinuxCheckOutcome;
use crate::stream::IperfStream;
use crate::world::{LinuxTestbed, PACKED, SPLIT, VISITOR_VIRTIO, settle_all};
use anyhow::{Context, Result, ensure};
use daemon::control::status::{LinkState, VfStatus};
use daemon::settings::VfSettings;
use pairs::{TESTBED, are_bound, boot_pair, exchange_large_packets};

const VLAN: u8 = 77;
/// Script that unbinds the driver from a guest's only virtio interface, and binds it again.
const REBIND: &str =
    "cd /sys/bus/virtio/drivers/virtio_net && device=$(ls -d virtio*) && echo $device > unbind &&
    [ ! -e /sys/class/net/eth0 ] && echo $device > bind";

impl LinuxTestbed {
    /// Boots the guests on [`SPLIT`] and [`PACKED`], unless they run, and restores their network state. The second has four
    /// processors and four queue pairs.
    pub(crate) fn settle_virtio(&mut self) -> Result<()> {
        if self.virtio.is_none() {
            let sockets = [SPLIT, PACKED].map(|vf| self.socket(vf));
            self.virtio = Some(boot_pair(["judy", "kim"], sockets, TESTBED, [self.assets(); 2], 6)?);
        }
        for vf in [SPLIT, PACKED, VISITOR_VIRTIO] {
            self.change(vf, settings_at_start())?;
        }
        settle_all(self.virtio.iter().flatten())
    }

    /// Returns the guests on [`SPLIT`] and [`PACKED`].
    pub(crate) fn virtio(&self) -> Result<[&ScenarioGuest; 2]> {
        let [judy, kim] = self.virtio.as_ref().context("the guests on virtio VFs are not running")?;
        Ok([judy, kim])
    }

    /// Returns the guest on [`PACKED`], to reboot it.
    pub(crate) fn kim_mut(&mut self) -> Result<&mut ScenarioGuest> {
        let [_, kim] = self.virtio.as_mut().context("the guests on virtio VFs are not running")?;
        Ok(kim)
    }
}

/// Returns the settings of a VF in which each check begins.
fn settings_at_start() -> VfSettings {
    VfSettings {
        state: Some(LinkState::Auto),
        vlan: Some(0),
        spoofchk: Some(true),
        max_tx_rate: Some(0),
        ..VfSettings::default()
    }
}

/// Sets up the guest's virtio interface at index `place`, ordered by PCI slot, with an IPv4 address. Waits for the
/// interface's link, and returns the interface's name.
pub(crate) fn set_up(guest: &ScenarioGuest, place: usize, address: &str) -> Result<String> {
    let script = format!(
        "modprobe virtio_net; cd /sys/bus/pci/drivers/virtio-pci && set -- *:*/virtio*/net/* && shift {place} &&
         [ -e $1 ] && echo ${{1##*/}}"
    );
    let name = eventually(|| guest.check(&script))?.trim().to_owned();
    guest.check(&format!("ip addr replace {address}/24 dev {name} && ip link set {name} up"))?;
    wait_link(guest, &name)?;
    Ok(name)
}

/// Waits until an interface of a guest has a link.
pub(crate) fn wait_link(guest: &ScenarioGuest, interface: &str) -> Result<()> {
    eventually(|| {
        let carrier = guest.check(&format!("cat /sys/class/net/{interface}/carrier"))?;
        ensure!(carrier.trim() == "1", "{}: {interface} has no link", guest.name());
        Ok(())
    })
}

/// Boots both guests, restores their network state, and waits until they reach each other.
pub(crate) fn linked(world: &mut LinuxTestbed) -> Result<[&ScenarioGuest; 2]> {
    world.settle_virtio()?;
    let [judy, kim] = world.virtio()?;
    judy.reach(&kim.address())?;
    Ok([judy, kim])
}

/// Checks that pings of every size and TCP pass between two guests, both ways, without a checksum error.
fn exchange([judy, kim]: [&ScenarioGuest; 2]) -> Result<()> {
    exchange_at([(judy, &judy.address()), (kim, &kim.address())], 24)
}

/// Checks that pings of every size and `megabytes` of TCP pass between two addresses of guests, both ways, without a checksum
/// error.
fn exchange_at(ends: [(&ScenarioGuest, &str); 2], megabytes: u64) -> Result<()> {
    let [near, far] = ends;
    for ((from, _), (to, address)) in [(near, far), (far, near)] {
        from.reach(address)?;
        for size in [56, 1400, 8000] {
            from.ping(address, size, 10)?;
        }
        let flow = from.iperf(address, &format!("-n {megabytes}M"))?;
        // iperf3's client ends while the last bytes are on the way.
        ensure!(flow.received > (megabytes - 4) << 20, "{} to {}: {flow:?}", from.name(), to.name());
    }
    ends.into_iter().try_for_each(|(guest, _)| no_checksum_errors(guest))
}

/// Adds an address to Judy's eth0 for the exchange with a further interface of another guest.
pub(crate) fn add_address(judy: &ScenarioGuest, address: &str) -> Result<()> {
    judy.check(&format!("ip addr replace {address}/24 dev eth0")).map(drop)
}

/// Returns the numbers of large packets that a VF's guest has sent and received unsegmented.
fn large_packets(world: &LinuxTestbed, vf: &str) -> Result<[u64; 2]> {
    let counts = world.vf(vf)?.device.context("a virtio VF has counts of its device")?;
    Ok([counts.segmented, counts.passed_uncut])
}

/// Checks that an unmodified Debian kernel binds virtio_net with one and with four queue pairs, exchanges pings and TCP with
/// another guest, and sends and receives large packets unsegmented.
pub(crate) fn binds(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let guests = world.virtio()?;
    let [judy, kim] = guests;
    are_bound(guests, TESTBED)?;
    exchange_large_packets(guests, TESTBED)?;
    let before = [SPLIT, PACKED].map(|vf| large_packets(world, vf));
    exchange(guests)?;
    for (vf, before) in [SPLIT, PACKED].into_iter().zip(before) {
        let (before, after) = (before?, large_packets(world, vf)?);
        let grown = before.iter().zip(&after).all(|(before, after)| after > before);
        ensure!(grown, "{vf}: large packets sent and received: {before:?} before TCP, {after:?} after it");
    }
    for (from, to) in [(judy, kim), (kim, judy)] {
        from.reach(&to.address_v6())?;
        from.iperf(&to.address_v6(), "-n 8M")?;
        let flow = from.iperf(&to.address(), "-u -b 10M -l 1400 -n 1M")?;
        ensure!(flow.received > flow.sent / 2, "{} to {}: {flow:?}", from.name(), to.name());
    }
    no_checksum_errors(judy)?;
    no_checksum_errors(kim)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that frames of 9,000 bytes pass whole.
pub(crate) fn jumbo_frames_pass_whole(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    exchange_jumbo_frames(linked(world)?)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Raises the MTU of two guests to 9,000 bytes, and checks that such frames pass whole, both ways.
fn exchange_jumbo_frames(guests: [&ScenarioGuest; 2]) -> Result<()> {
    let [one, other] = guests;
    for guest in guests {
        guest.check("ip link set eth0 mtu 9000")?;
    }
    for (from, to) in [(one, other), (other, one)] {
        let before = from.fragments_made()?;
        from.ping(&to.address(), 8000, 20)?;
        let made = from.fragments_made()? - before;
        ensure!(made == 0, "{}: {made} fragments were made of frames that fit", from.name());
        from.iperf(&to.address(), "-n 24M")?;
    }
    guests.into_iter().try_for_each(no_checksum_errors)
}

/// Adds VLAN interfaces to two guests, and checks that pings and TCP pass between these.
fn exchange_in_vlan([one, other]: [&ScenarioGuest; 2]) -> Result<()> {
    for guest in [one, other] {
        guest.join_vlan("eth0", VLAN)?;
    }
    one.reach(&other.vlan_address(VLAN))?;
    for size in [56, 1400, 8000] {
        one.ping(&other.vlan_address(VLAN), size, 5)?;
    }
    one.iperf(&other.vlan_address(VLAN), "-n 8M").map(drop)
}

/// Checks tags of the guests, and then a port VLAN of the administrator, which no guest sees.
pub(crate) fn vlans_separate_guests(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let [judy, kim] = world.virtio()?;
    exchange_in_vlan([judy, kim])?;
    let port_vlan = |vlan| VfSettings { vlan: Some(vlan), ..VfSettings::default() };
    world.change(SPLIT, port_vlan(30))?;
    judy.cannot_reach("eth0", &kim.address())?;
    world.change(PACKED, port_vlan(30))?;
    judy.reach(&kim.address())?;
    judy.iperf(&kim.address(), "-n 8M")?;
    no_checksum_errors(kim)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the administrator's link state takes a guest's link down and stops its frames, and that the guest continues
/// afterwards.
pub(crate) fn disabled_vf_moves_no_frame(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let [judy, kim] = world.virtio()?;
    link_follows_policy([judy, kim], |state| world.set_link(SPLIT, state))?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the first guest has no link and sends no ping while `set_link` has disabled its VF, and that it reaches the second
/// guest afterwards.
fn link_follows_policy(
    [guest, other]: [&ScenarioGuest; 2],
    set_link: impl Fn(LinkState) -> Result<()>,
) -> Result<()> {
    set_link(LinkState::Disable)?;
    guest.wait_carrier(false)?;
    guest.cannot_ping(&other.address(), 56)?;
    set_link(LinkState::Auto)?;
    guest.wait_carrier(true)?;
    guest.reach(&other.address())
}

/// Checks that frames with another source address are dropped while spoof checking is on.
pub(crate) fn spoofing_is_checked(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let [judy, kim] = world.virtio()?;
    let mac = judy.check("cat /sys/class/net/eth0/address")?;
    judy.check("ip link set eth0 down && ip link set eth0 address 02:00:00:00:66:66 && ip link set eth0 up")?;
    judy.cannot_ping(&kim.address(), 56)?;
    let status = world.vf(SPLIT)?;
    ensure!(status.drops.tx_spoofed > 0, "no frame was counted as spoofed: {status:?}");
    judy.check(&format!(
        "ip link set eth0 down && ip link set eth0 address {} && ip link set eth0 up",
        mac.trim()
    ))?;
    judy.settle()?;
    judy.reach(&kim.address())?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Runs a script in a guest that restarts its interface, and waits until the interface is back.
fn comes_back(guest: &ScenarioGuest, disturbance: &str) -> Result<()> {
    guest.check(disturbance)?;
    eventually(|| guest.settle()).context(disturbance.to_owned())
}

/// Checks restarts: interface down and up, driver unbound and bound, the port reset under TCP, the guest rebooted.
pub(crate) fn guests_come_back(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    linked(world)?;
    let [judy, kim] = world.virtio()?;
    for disturbance in ["ip link set eth0 down && ip link set eth0 up", REBIND] {
        (0..3).try_for_each(|_| comes_back(kim, disturbance))?;
        exchange([judy, kim])?;
    }
    let mut stream = IperfStream::open(judy, &kim.address())?;
    for _ in 0..3 {
        world.reset_port("pf5")?;
        world.wait_vf(SPLIT, "be back after a reset", |vf: &VfStatus| vf.active)?;
        world.wait_vf(PACKED, "be back after a reset", |vf: &VfStatus| vf.active)?;
        stream.moves()?;
    }
    stream.close()?;
    reboot(std::slice::from_mut(world.kim_mut()?))?;
    exchange(linked(world)?)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Reboots guests, all at once, and restores their network state.
fn reboot(guests: &mut [ScenarioGuest]) -> Result<()> {
    for guest in &mut *guests {
        guest.linux.reboot()?;
    }
    guests.iter().try_for_each(|guest| guest.linux.wait_ready(BOOT))?;
    settle_all(guests.iter())
}
