//! Tests of names on the wire: guests of each family that claim the address of a station beyond the uplink, or send it frames that
//! are for switches only.

use crate::support::eventually;
use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::machine::VmWithPciFunction;
use crate::support::qemu::{self, QemuClient};
use crate::vhost::front_end::{FEATURES, VhostTestFrontEnd};
use crate::vhost::guest::VirtioGuest;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use daemon::control::status::RefusedClaims;
use daemon::settings::{PortSettings, VfSettings};
use driver::avf::vf::AvfDriver;
use driver::vf::TxOffload;
use i82576::MacAddress;
use std::any::Any;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tempfile::TempDir;
use vhost_user::features::protocol;

/// Ethernet address of a station beyond the uplink.
const STATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);
/// Group that a guest receives.
const GROUP: MacAddress = MacAddress([1, 0, 0x5e, 0, 0, 0x77]);
/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// EtherType of MAC control frames (IEEE 802.3, 31.4.1.3).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
/// Group of pause frames (IEEE 802.3, annex 31B).
const PAUSE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x01]);
/// Keys of a port whose VF 0 may send all that settings can allow.
const OPEN: &str = "link_local = \"forward\"\n[[port.vf]]\nindex = 0\nspoofchk = false\ntrust = true\n";

/// Host with one port, and the other end of its stream uplink.
struct WiredHost {
    live: LiveHost,
    wire: UnixStream,
    _folder: TempDir,
}

impl WiredHost {
    /// Starts a host whose port has VFs of a family, and has a station send a broadcast from beyond the uplink.
    fn with_a_station(family: &str) -> Self {
        Self::with_vf_2(family, family)
    }

    /// Starts such a host, with another family of VF 2.
    fn with_vf_2(family: &str, other: &str) -> Self {
        let vf = format!("[[port.vf]]\nindex = 2\nfamily = {other:?}\n");
        Self::with_keys(family, if family == other { "" } else { &vf })
    }

    /// Starts such a host with further keys of the port.
    fn with_keys(family: &str, keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("uplink.sock");
        let text = format!("[[port]]\nfamily = {family:?}\nvfs = 3\nuplink.stream.listen = {path:?}\n{keys}");
        let live = LiveHost::with(&text);
        let wire = UnixStream::connect(&path).unwrap();
        let mut host = Self { live, wire, _folder: folder };
        eventually("the port has a link", || host.live.port().link);
        host.add_station(STATION);
        host
    }

    /// Has a station send a broadcast from beyond the uplink.
    fn add_station(&mut self, from: MacAddress) {
        let before = self.live.port().uplink_status.unwrap().rx.packets;
        self.send(MacAddress::BROADCAST, from, &[1; 46]);
        let received = || self.live.port().uplink_status.unwrap().rx.packets;
        eventually("the port has the station's frame", || received() > before);
    }

    fn send(&mut self, to: MacAddress, from: MacAddress, payload: &[u8]) {
        let frame = [&to.0[..], &from.0, &ETHERTYPE, payload].concat();
        self.wire.write_all(&[&(frame.len() as u32).to_be_bytes(), &frame[..]].concat()).unwrap();
    }

    /// Receives frames from the port until one has this payload. Returns the frames before it.
    fn wait_for(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        self.wire.set_read_timeout(Some(Duration::from_secs(240))).unwrap();
        let mut frames = Vec::new();
        loop {
            let mut length = [0; 4];
            self.wire.read_exact(&mut length).unwrap();
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            self.wire.read_exact(&mut frame).unwrap();
            if frame[14..].starts_with(payload) {
                return frames;
            }
            frames.push(frame);
        }
    }

    /// Waits until the claim of a VF to the station's address is refused.
    fn wait_for_refusal(&self, vf: u8) {
        let refused = RefusedClaims { refused: 1, address: Some(STATION.to_string()) };
        eventually("the claim is refused", || self.live.show(vf).claims == refused);
    }
}

/// Boots an avf guest on VF 0.
fn avf_guest(host: &WiredHost) -> (VmWithPciFunction<QemuClient>, AvfDriver) {
    let mut machine = qemu::boot_as(&host.live.socket(0), qemu::AVF, qemu::share);
    let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, 0])).unwrap();
    driver.start(&mut machine).unwrap();
    (machine, driver)
}

/// Requests one more address. Returns true if the PF grants it.
fn claim(machine: &mut VmWithPciFunction<QemuClient>, driver: &mut AvfDriver, mac: MacAddress) -> bool {
    let extra = [EtherAddress { mac: mac.0, usage: EtherAddressType::Extra }];
    let extra = EncodedMessageList::new(&extra);
    driver.ask(machine, VirtchnlRequest::Addresses(true, 1, extra.list())).is_ok()
}

#[test]
fn i82576_guest_gets_no_address_of_an_uplink_station() {
    let mut host = WiredHost::with_a_station("82576");
    let mut thief = VfGuest::under_qemu(&host.live, 0);
    let mut other = VfGuest::under_qemu(&host.live, 1);
    assert!(thief.vf.set_mac(&mut thief.machine, STATION).is_err(), "the PF refuses the address");
    host.wait_for_refusal(0);
    assert!(other.send(STATION, &[7; 46]));
    host.wait_for(&[7; 46]);
    assert!(thief.take().iter().all(|payload| payload[0] != 7), "the station's frame came to the guest");
    assert!(thief.send_from(STATION, MacAddress::BROADCAST, &[8; 46]));
    eventually("the frame is dropped", || host.live.show(0).drops.tx_spoofed == 1);
    host.live.change(0, VfSettings { trust: Some(true), ..VfSettings::default() });
    thief.vf.set_mac(&mut thief.machine, STATION).unwrap();
    host.send(STATION, MacAddress([2, 0, 0, 0, 0, 0x78]), &[9; 46]);
    eventually("a trusted guest has the address", || thief.take().iter().any(|payload| payload[0] == 9));
}

/// Boots a guest on VF 2 that sends a broadcast from an address.
fn guest_with(host: &WiredHost, family: &str, own: MacAddress) -> Box<dyn Any> {
    if family == "virtio" {
        let mut guest = VirtioGuest::boot(&host.live, 2);
        guest.send_from(own.0, MacAddress::BROADCAST.0, &[3; 46]);
        return Box::new(guest);
    }
    let mut guest = VfGuest::under_qemu(&host.live, 2);
    let _ = guest.vf.set_mac(&mut guest.machine, own);
    assert!(guest.send_from(own, MacAddress::BROADCAST, &[3; 46]));
    Box::new(guest)
}

#[test]
fn removed_vf_keeps_no_address() {
    let own = MacAddress([2, 0, 0, 0, 0, 0x55]);
    let vfs = |count| PortSettings { vfs: Some(count), ..PortSettings::default() };
    for family in ["82576", "virtio"] {
        let mut host = WiredHost::with_a_station(family);
        let _removed = guest_with(&host, family, own);
        host.wait_for(&[3; 46]);
        host.live.change_port(vfs(2)).unwrap();
        host.add_station(own);
        host.live.change_port(vfs(3)).unwrap();
        let _added = guest_with(&host, family, own);
        let refused = RefusedClaims { refused: 1, address: Some(own.to_string()) };
        eventually("the claim is refused", || host.live.show(2).claims == refused);
    }
}

#[test]
fn avf_guest_gets_no_address_of_an_uplink_station() {
    let mut host = WiredHost::with_a_station("avf");
    let (mut machine, mut driver) = avf_guest(&host);
    assert!(!claim(&mut machine, &mut driver, STATION), "the PF refuses the address");
    host.wait_for_refusal(0);
    let own = driver.mac();
    host.send(own, STATION, &[3; 46]);
    let mut into = [0; 2048];
    eventually("the guest keeps its own address", || {
        let queues = (0..4).filter_map(|queue| driver.receive(&mut machine, queue, &mut into));
        queues.count() > 0
    });
}

#[test]
fn avf_guest_beside_virtio_gets_no_address_of_a_station() {
    let host = WiredHost::with_vf_2("avf", "virtio");
    let (mut machine, mut driver) = avf_guest(&host);
    assert!(!claim(&mut machine, &mut driver, STATION));
    host.wait_for_refusal(0);
}

#[test]
fn virtio_guest_learns_no_address_of_an_uplink_station() {
    let mut host = WiredHost::with_a_station("virtio");
    let mut guest = VirtioGuest::boot(&host.live, 0);
    guest.send_from(STATION.0, MacAddress::BROADCAST.0, &[5; 46]);
    host.wait_for_refusal(0);
    eventually("the frame is dropped", || host.live.show(0).drops.tx_spoofed == 1);
    guest.send(&[6; 46]);
    host.wait_for(&[6; 46]);
    // A frame with the guest's address from beyond the uplink takes nothing away.
    host.send(MacAddress::BROADCAST, MacAddress(guest.mac()), &[1; 46]);
    guest.wait_for(&[1; 46]);
    host.send(MacAddress(guest.mac()), STATION, &[4; 46]);
    guest.wait_for(&[4; 46]);
    assert_eq!(host.live.show(0).claims.refused, 1);
}

#[test]
fn virtio_guest_without_trust_returns_the_address_of_a_station() {
    returns_the_address_of_a_station(|trust| VfSettings { trust: Some(trust), ..VfSettings::default() });
}

#[test]
fn virtio_guest_without_share_mac_returns_a_stations_address() {
    returns_the_address_of_a_station(|on| VfSettings { share_mac: Some(on), ..VfSettings::default() });
}

/// Has a virtio guest take the address of a station by a right, and checks that it gives the address up with the right.
fn returns_the_address_of_a_station(right: impl Fn(bool) -> VfSettings) {
    let mut host = WiredHost::with_a_station("virtio");
    host.live.change(0, right(true));
    let mut guest = VirtioGuest::boot(&host.live, 0);
    guest.send_from(STATION.0, MacAddress::BROADCAST.0, &[5; 46]);
    host.wait_for(&[5; 46]);
    host.live.change(0, right(false));
    guest.send_from(STATION.0, MacAddress::BROADCAST.0, &[6; 46]);
    eventually("the frame is dropped", || host.live.show(0).drops.tx_spoofed > 0);
}

/// Boots a virtio guest on VF 0, in whose transmit ring one entry was used before. The VMM, without the protocol features `missing`,
/// says that the ring begins at `base`. The guest sends a frame from the station's address.
fn claims_by_a_used_ring(host: &WiredHost, missing: u64, base: u32) -> VirtioGuest {
    let mut front = VhostTestFrontEnd::connect(&host.live.socket(0));
    front.negotiate_without(missing, FEATURES);
    let mut guest: VirtioGuest = VirtioGuest::behind(front, 0);
    for index in [guest.transmit.addresses.driver + 2, guest.transmit.addresses.device + 2] {
        guest.front.ram.write(index, &1_u16.to_le_bytes());
    }
    guest.transmit.available = 1;
    guest.start(0, base);
    guest.send_from(STATION.0, MacAddress::BROADCAST.0, &[5; 46]);
    guest
}

#[test]
fn used_index_that_a_guest_writes_brings_no_address() {
    let host = WiredHost::with_a_station("virtio");
    let _guest = claims_by_a_used_ring(&host, 0, 0);
    host.wait_for_refusal(0);
}

#[test]
fn front_end_without_rarp_brings_no_address_of_a_station() {
    let host = WiredHost::with_a_station("virtio");
    // Cloud Hypervisor sends the index of the available ring, which the guest writes.
    let _guest = claims_by_a_used_ring(&host, 1 << protocol::RARP, 1);
    host.wait_for_refusal(0);
}

#[test]
fn virtio_guest_that_has_moved_here_brings_its_address() {
    let mut host = WiredHost::with_a_station("virtio");
    let _guest = claims_by_a_used_ring(&host, 0, 1);
    host.wait_for(&[5; 46]);
    assert_eq!(host.live.show(0).claims.refused, 0);
}

/// Has the guest of VF 0 send from the group [`GROUP`], which is no station's address. `send` sends a frame.
fn sends_from_no_group(host: &WiredHost, mut send: impl FnMut(&[u8])) {
    send(&[&[0xff; 6][..], &GROUP.0, &ETHERTYPE, &[2; 46]].concat());
    eventually("the frame is dropped", || host.live.show(0).drops.tx_spoofed == 1);
}

#[test]
fn i82576_guest_sends_from_no_group() {
    let host = WiredHost::with_a_station("82576");
    let mut guest = VfGuest::under_qemu(&host.live, 0);
    guest.vf.set_multicast(&mut guest.machine, &[GROUP]).unwrap();
    sends_from_no_group(&host, |frame| {
        guest.vf.transmit(&mut guest.machine, frame, &TxOffload::default()).unwrap();
        guest.vf.flush(&mut guest.machine);
    });
}

#[test]
fn avf_guest_sends_from_no_group() {
    let host = WiredHost::with_a_station("avf");
    let (mut machine, mut driver) = avf_guest(&host);
    assert!(claim(&mut machine, &mut driver, GROUP));
    sends_from_no_group(&host, |frame| assert!(driver.transmit(&mut machine, 0, frame)));
}

#[test]
fn virtio_guest_sends_from_no_group() {
    let host = WiredHost::with_a_station("virtio");
    let mut guest = VirtioGuest::boot(&host.live, 0);
    sends_from_no_group(&host, |frame| guest.send_frame(frame));
}

/// Returns an ARP reply for Ethernet and IPv4, padded, behind its Ethernet header.
fn arp_reply(from: MacAddress, protocol: [u8; 4]) -> Vec<u8> {
    let head: [&[u8]; 6] =
        [&MacAddress::BROADCAST.0, &from.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &from.0, &protocol, &[0; 28]];
    head.concat()
}

/// Settings of a VF whose guest has one IP address.
fn one_address() -> VfSettings {
    VfSettings { ips: Some(vec!["10.0.0.5".into()]), ..VfSettings::default() }
}

/// Has the guest of VF 0 answer ARP for another address, and for its own, which alone passes. `send` sends a frame.
fn answers_for_its_own_address_alone(host: &mut WiredHost, from: MacAddress, mut send: impl FnMut(&[u8])) {
    host.live.change(0, one_address());
    send(&arp_reply(from, [10, 0, 0, 1]));
    eventually("the forged answer is dropped", || host.live.show(0).guarded.get("source_arp") == Some(&1));
    send(&arp_reply(from, [10, 0, 0, 5]));
    host.wait_for(&arp_reply(from, [10, 0, 0, 5])[14..42]);
    let status = host.live.show(0);
    assert_eq!((status.guarded.len(), status.drops.tx_blocked), (1, 1));
}

#[test]
fn i82576_guest_answers_arp_for_its_own_address_alone() {
    let mut host = WiredHost::with_a_station("82576");
    let mut guest = VfGuest::under_qemu(&host.live, 0);
    let from = guest.vf.mac();
    answers_for_its_own_address_alone(&mut host, from, |frame| {
        guest.vf.transmit(&mut guest.machine, frame, &TxOffload::default()).unwrap();
        guest.vf.flush(&mut guest.machine);
    });
}

#[test]
fn avf_guest_answers_arp_for_its_own_address_alone() {
    let mut host = WiredHost::with_a_station("avf");
    let (mut machine, mut driver) = avf_guest(&host);
    let from = driver.mac();
    answers_for_its_own_address_alone(&mut host, from, |frame| {
        assert!(driver.transmit(&mut machine, 0, frame));
    });
}

#[test]
fn virtio_guest_answers_arp_for_its_own_address_alone() {
    let mut host = WiredHost::with_a_station("virtio");
    let mut guest = VirtioGuest::boot(&host.live, 0);
    let from = MacAddress(guest.mac());
    answers_for_its_own_address_alone(&mut host, from, |frame| guest.send_frame(frame));
}

/// Has the guest of VF 0 send pause frames to their group, to a station and to all. None of them leaves. `send` sends a frame.
fn pauses_no_station(host: &mut WiredHost, from: MacAddress, mut send: impl FnMut(&[u8])) {
    for to in [PAUSE, STATION, MacAddress::BROADCAST] {
        // A switch may strip the tag.
        for tag in [&[][..], &[0x81, 0, 0, 7]] {
            send(&[&to.0[..], &from.0, tag, &MAC_CONTROL, &[0, 1, 0xff, 0xff], &[0; 42]].concat());
        }
    }
    send(&[&STATION.0[..], &from.0, &ETHERTYPE, &[7; 46]].concat());
    let left = host.wait_for(&[7; 46]);
    let is_control = |frame: &Vec<u8>| [12, 16].iter().any(|at| frame[*at..].starts_with(&MAC_CONTROL));
    assert!(!left.iter().any(is_control), "{left:x?}");
    let drops = host.live.show(0).drops;
    assert_eq!((drops.tx_link_control, drops.tx_blocked), (6, 6));
}

#[test]
fn i82576_guest_pauses_no_station() {
    let mut host = WiredHost::with_keys("82576", OPEN);
    let mut guest = VfGuest::under_qemu(&host.live, 0);
    let from = guest.vf.mac();
    pauses_no_station(&mut host, from, |frame| {
        guest.vf.transmit(&mut guest.machine, frame, &TxOffload::default()).unwrap();
        guest.vf.flush(&mut guest.machine);
    });
}

#[test]
fn avf_guest_pauses_no_station() {
    let mut host = WiredHost::with_keys("avf", OPEN);
    let (mut machine, mut driver) = avf_guest(&host);
    let from = driver.mac();
    pauses_no_station(&mut host, from, |frame| assert!(driver.transmit(&mut machine, 0, frame)));
}

#[test]
fn virtio_guest_pauses_no_station() {
    let mut host = WiredHost::with_keys("virtio", OPEN);
    let mut guest = VirtioGuest::boot(&host.live, 0);
    let from = MacAddress(guest.mac());
    pauses_no_station(&mut host, from, |frame| guest.send_frame(frame));
}
