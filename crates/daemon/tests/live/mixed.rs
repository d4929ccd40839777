//! Tests of a port with VFs of two families: AVF guests over vfio-user, and virtio guests over vhost-user, on one switch.

use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::machine::VmWithPciFunction;
use crate::support::qemu::{self, QemuClient};
use crate::vhost::guest::VirtioGuest;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use daemon::config::file::CardFamily;
use daemon::control::status::{LinkState, VfStatus};
use daemon::settings::{MirrorRule, PortSettings, StormControlSettings, VfSettings};
use driver::avf::vf::{AvfDriver, AvfDriverError};
use host::socket::StreamSocket;
use i82576::MacAddress;
use std::iter::from_fn;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Configuration of a port whose VFs 0 and 1 are of the family AVF, and the VFs 2 and 3 of the family virtio.
const PORT: &str = "[[port]]\nfamily = \"avf\"\nvfs = 4\n";
const VIRTIO: &str =
    "[[port.vf]]\nindex = 2\nfamily = \"virtio\"\n[[port.vf]]\nindex = 3\nfamily = \"virtio\"\n";

/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER: usize = 14;
const BROADCAST: [u8; 6] = [0xff; 6];

fn mixed() -> LiveHost {
    LiveHost::with(&format!("{PORT}{VIRTIO}"))
}

/// Guest with an AVF driver.
struct AvfGuest {
    machine: VmWithPciFunction<QemuClient>,
    driver: AvfDriver,
}

impl AvfGuest {
    fn boot(live: &LiveHost, vf: u8) -> Self {
        Self::boot_at(&live.socket(vf), vf)
    }

    fn boot_at(socket: &Path, number: u8) -> Self {
        Self::boot_machine(qemu::boot_as(socket, qemu::AVF, qemu::share), number)
    }

    fn boot_machine(mut machine: VmWithPciFunction<QemuClient>, number: u8) -> Self {
        let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, number])).unwrap();
        driver.start(&mut machine).unwrap();
        eventually("the link is up", || driver.look(&mut machine).is_some());
        Self { machine, driver }
    }

    fn send_to(&mut self, to: [u8; 6], payload: &[u8]) {
        self.send_from(self.driver.mac().0, to, payload);
    }

    /// Sends a frame with a source address of choice.
    fn send_from(&mut self, source: [u8; 6], to: [u8; 6], payload: &[u8]) {
        let mut frame = [&to[..], &source, &ETHERTYPE, payload].concat();
        frame.resize(frame.len().max(60), 0);
        assert!(self.driver.transmit(&mut self.machine, 0, &frame), "the ring is full");
    }

    /// Takes the frames that have arrived, and returns their payloads. Payloads of short frames include padding.
    fn take(&mut self) -> Vec<Vec<u8>> {
        let Self { machine, driver } = self;
        let mut into = [0; 2048];
        let mut payloads = Vec::new();
        for queue in 0..4 {
            let frames = from_fn(|| {
                driver.receive(machine, queue, &mut into).map(|got| into[HEADER..got.length].to_vec())
            });
            payloads.extend(frames);
        }
        driver.receive_done(machine);
        payloads
    }

    #[track_caller]
    fn wait_for(&mut self, payload: &[u8]) {
        eventually("the frame arrives", || self.take().iter().any(|arrived| arrived.starts_with(payload)));
    }
}

/// Sends frames to and fro between an AVF guest and a virtio guest: broadcasts, and frames to their addresses.
#[track_caller]
fn exchange(avf: &mut AvfGuest, virtio: &mut VirtioGuest) {
    for number in 0..5 {
        virtio.send(&[number; 100]);
        avf.wait_for(&[number; 100]);
        avf.send_to(BROADCAST, &[0x80 | number; 200]);
        virtio.wait_for(&[0x80 | number; 200]);
        virtio.send_to(avf.driver.mac().0, &[0x10 | number; 300]);
        avf.wait_for(&[0x10 | number; 300]);
        avf.send_to(virtio.mac(), &[0x90 | number; 1400]);
        virtio.wait_for(&[0x90 | number; 1400]);
    }
}

/// Returns the number of payloads that begin with a byte.
fn payloads_with(payloads: &[Vec<u8>], first: u8) -> usize {
    payloads.iter().filter(|payload| payload[0] == first).count()
}

#[test]
fn guests_of_both_families_exchange_frames_on_one_port() {
    let live = mixed();
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    let port = live.port();
    let families: Vec<_> = port.vfs.iter().map(|vf| vf.family).collect();
    let expected = [CardFamily::Avf, CardFamily::Avf, CardFamily::Virtio, CardFamily::Virtio];
    assert_eq!((port.family, families), (CardFamily::Avf, expected.map(Some).to_vec()));
    assert!(
        !port.vfs[1].rid.is_empty() && port.vfs[2].rid.is_empty(),
        "only an AVF is a PCI device of the host"
    );
    for vf in [&port.vfs[0], &port.vfs[2]] {
        assert_eq!((vf.tx.packets, vf.rx.packets, vf.rx.broadcast), (10, 10, 5), "{}", vf.name);
        assert_eq!((vf.rx.dropped, vf.tx.dropped), (0, 0));
    }
}

#[test]
fn broadcast_reaches_vfs_of_both_families_once() {
    let live = mixed();
    let mut avfs = [0, 1].map(|vf| AvfGuest::boot(&live, vf));
    let mut virtios = [2, 3].map(|vf| VirtioGuest::boot(&live, vf));
    avfs[0].send_to(BROADCAST, &[1; 100]);
    virtios[0].send(&[2; 100]);
    avfs[1].wait_for(&[2; 100]);
    virtios[1].wait_for(&[2; 100]);
    virtios[0].wait_for(&[1; 100]);
    avfs[0].wait_for(&[2; 100]);
    let received = [0, 1, 2, 3].map(|vf| live.show(vf).rx.packets);
    assert_eq!(received, [1, 2, 1, 2]);
}

#[test]
fn port_vlans_separate_vfs_of_both_families() {
    let text = "[[port]]\nfamily = \"virtio\"\nvfs = 4\n\
        vf = [{ index = 0, family = \"avf\", vlan = 7 }, { index = 1, family = \"avf\", vlan = 8 }, \
        { index = 2, vlan = 7 }, { index = 3, vlan = 8 }]\n";
    let live = LiveHost::with(text);
    let mut avfs = [0, 1].map(|vf| AvfGuest::boot(&live, vf));
    let mut virtios = [2, 3].map(|vf| VirtioGuest::boot(&live, vf));
    for (avf, virtio) in avfs.iter_mut().zip(&mut virtios) {
        exchange(avf, virtio);
    }
    let before = live.show(1).rx.packets;
    avfs[0].send_to(BROADCAST, &[3; 100]);
    virtios[0].wait_for(&[3; 100]);
    virtios[0].send_to(avfs[1].driver.mac().0, &[4; 100]);
    virtios[0].send(&[5; 100]);
    avfs[0].wait_for(&[5; 100]);
    assert_eq!((payloads_with(&avfs[1].take(), 4), payloads_with(&virtios[1].take(), 3)), (0, 0));
    assert_eq!(live.show(1).rx.packets, before);
    // A virtio VF changes its VLAN at once. The driver of an AVF VF is reset for that.
    live.change(2, VfSettings { vlan: Some(8), ..VfSettings::default() });
    exchange(&mut avfs[1], &mut virtios[0]);
}

#[test]
fn spoofed_source_address_is_dropped_on_both_families() {
    let live = mixed();
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    avf.send_from(virtio.mac(), BROADCAST, &[1; 100]);
    avf.send_to(BROADCAST, &[2; 100]);
    virtio.wait_for(&[2; 100]);
    virtio.send_from(avf.driver.mac().0, BROADCAST, &[3; 100]);
    virtio.send(&[4; 100]);
    avf.wait_for(&[4; 100]);
    assert_eq!([0, 2].map(|vf| live.show(vf).drops.tx_spoofed), [1, 1]);
}

#[test]
fn no_vf_gets_an_address_of_the_other_family() {
    let live = mixed();
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    // The first frame of a virtio guest would teach the switch its address.
    let mut thief = VirtioGuest::boot(&live, 3);
    thief.send_from(avf.driver.mac().0, BROADCAST, &[1; 100]);
    eventually("the frame is dropped", || live.show(3).drops.tx_spoofed == 1);
    exchange(&mut avf, &mut virtio);
    assert_eq!(live.show(3).rx.packets, 10, "only broadcasts");
    let mac = MacAddress(virtio.mac());
    let refusal = live.refusal(1, VfSettings { mac: Some(mac.to_string()), ..VfSettings::default() });
    assert!(refusal.contains("is in use by vf2"), "{refusal}");
    let mut other = AvfGuest::boot(&live, 1);
    let stolen = [EtherAddress { mac: mac.0, usage: EtherAddressType::Extra }];
    let stolen = EncodedMessageList::new(&stolen);
    let request = VirtchnlRequest::Addresses(true, 2, stolen.list());
    let answer = other.driver.ask(&mut other.machine, request);
    assert!(matches!(answer, Err(AvfDriverError::Refused(..))), "{answer:?}");
}

#[test]
fn further_address_of_an_avf_guest_is_given_to_no_vf() {
    let live = mixed();
    let mut avf = AvfGuest::boot(&live, 0);
    let mac = MacAddress([2, 0, 0, 0, 0, 0x77]);
    let extra = [EtherAddress { mac: mac.0, usage: EtherAddressType::Extra }];
    let extra = EncodedMessageList::new(&extra);
    avf.driver.ask(&mut avf.machine, VirtchnlRequest::Addresses(true, 1, extra.list())).unwrap();
    let wanted = VfSettings { mac: Some(mac.to_string()), ..VfSettings::default() };
    let refusal = live.refusal(2, wanted);
    assert!(refusal.contains("is in use by vf0"), "{refusal}");
}

#[test]
fn avf_guest_without_trust_returns_a_virtio_guests_address() {
    let live = LiveHost::with(&format!("{PORT}[[port.vf]]\nindex = 0\ntrust = true\n{VIRTIO}"));
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    let taken = [EtherAddress { mac: virtio.mac(), usage: EtherAddressType::Primary }];
    let taken = EncodedMessageList::new(&taken);
    avf.driver.ask(&mut avf.machine, VirtchnlRequest::Addresses(true, 1, taken.list())).unwrap();
    let mac = MacAddress(virtio.mac()).to_string();
    let has = |vf: u8| live.show(vf).mac == mac;
    eventually("the virtio guest loses its address", || has(0) && !has(2));
    live.change(0, VfSettings { trust: Some(false), ..VfSettings::default() });
    assert!(!has(0));
    // The change has reset the VF, whose driver starts again.
    let mut avf = AvfGuest::boot_machine(avf.machine, 0);
    exchange(&mut avf, &mut virtio);
    assert!(has(2));
}

#[test]
fn large_virtio_packet_reaches_an_avf_guest_in_segments() {
    use virtio::VirtioFeatures as V;
    let live = mixed();
    let mut avf = AvfGuest::boot(&live, 0);
    let stream = StreamSocket::connect(&live.socket(2)).unwrap();
    let features = V::CSUM.bits() | V::HOST_TSO4.bits();
    let mut virtio = VirtioGuest::boot_with_features(stream, 2, features);
    exchange(&mut avf, &mut virtio);
    let mac = avf.driver.mac().0;
    virtio.send_segmented(mac, 3, 400);
    let mut lengths = Vec::new();
    eventually("three segments arrive", || {
        lengths.extend(avf.take().iter().map(Vec::len));
        lengths.len() >= 3
    });
    assert_eq!(lengths, [440, 440, 440], "IP and TCP headers, and 400 bytes of payload");
}

#[test]
fn both_families_exchange_frames_with_the_uplink() {
    let wired = format!("{PORT}uplink.wire = \"w\"\n{VIRTIO}");
    let live = LiveHost::with(&format!("{wired}{wired}"));
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    let mut far_avf = AvfGuest::boot_at(&live.socket_of("pf1vf1"), 11);
    let far = StreamSocket::connect(&live.socket_of("pf1vf3")).unwrap();
    let mut far_virtio = VirtioGuest::boot_on(far, 13);
    exchange(&mut avf, &mut far_virtio);
    exchange(&mut far_avf, &mut virtio);
    exchange(&mut avf, &mut virtio);
}

#[test]
fn mirror_and_storm_control_cover_both_families() {
    let live = mixed();
    let mut avfs = [0, 1].map(|vf| AvfGuest::boot(&live, vf));
    let mut virtios = [2, 3].map(|vf| VirtioGuest::boot(&live, vf));
    exchange(&mut avfs[0], &mut virtios[0]);
    let rules = [(1, 2), (3, 0)].into_iter().enumerate().map(|(number, (to, vf))| {
        (number.to_string(), Some(MirrorRule { to, vfs: vec![vf], uplink: None, vlans: None }))
    });
    live.change_port(PortSettings { mirror: rules.collect(), ..PortSettings::default() }).unwrap();
    let (mac, address) = (avfs[0].driver.mac().0, virtios[0].mac());
    avfs[0].send_to(address, &[1; 100]);
    avfs[1].wait_for(&[1; 100]);
    virtios[0].send_to(mac, &[2; 100]);
    virtios[1].wait_for(&[2; 100]);
    let storm =
        StormControlSettings { broadcast: Some(11), interval: Some(1000), ..StormControlSettings::default() };
    live.change_port(PortSettings { storm: Some(storm), ..PortSettings::default() }).unwrap();
    (0..20).for_each(|_| avfs[0].send_to(BROADCAST, &[3; 1000]));
    eventually("a storm is counted", || live.port().storms > 0);
    eventually("virtio VFs are spared", || live.show(2).drops.rx_storm > 0);
}

#[test]
fn link_of_each_family_follows_its_own_rules() {
    let live = mixed();
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    live.set(0, LinkState::Disable);
    eventually("the AVF driver sees no link", || avf.driver.look(&mut avf.machine).is_none());
    assert!(live.show(0).peer.is_some(), "the AVF client stays");
    live.set(0, LinkState::Auto);
    eventually("the link is back", || avf.driver.look(&mut avf.machine).is_some());
    live.set(2, LinkState::Disable);
    virtio.front.wait_for_end();
    live.set(2, LinkState::Auto);
    // Unlike the front end of the tests, a VMM waits in connect(2) while the host opens the socket again.
    let stream = UnixStream::connect(live.socket(2)).unwrap();
    virtio.reconnect_on(StreamSocket::adopt(OwnedFd::from(stream)).unwrap());
    exchange(&mut avf, &mut virtio);
}

#[test]
fn truncated_avf_memory_disconnects_only_its_client() {
    let live = mixed();
    let (hostile, mut avf) = (AvfGuest::boot(&live, 0), AvfGuest::boot(&live, 1));
    let mut virtio = VirtioGuest::boot(&live, 2);
    exchange(&mut avf, &mut virtio);
    hostile.machine.ram.truncate();
    avf.send_to(hostile.driver.mac().0, &[1; 60]);
    eventually("the hostile client is disconnected", || live.show(0).peer.is_none());
    exchange(&mut avf, &mut virtio);
    drop(hostile);
    exchange(&mut AvfGuest::boot(&live, 0), &mut virtio);
    assert!(live.show(1).peer.is_some() && live.is_whole());
}

/// Returns the properties of an AVF VF of which its driver would notice a change.
fn noticed(status: &VfStatus) -> (u64, bool, bool) {
    (status.mailbox.resets, status.active, status.link)
}

#[test]
fn mixed_port_continues_in_the_next_version_of_the_host() {
    let text = format!("{PORT}{VIRTIO}");
    let mut live = LiveHost::with(&text);
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    exchange(&mut avf, &mut virtio);
    let before = [0, 2].map(|vf| live.show(vf));
    for round in 1..3 {
        live.hand_over(&text);
        exchange(&mut avf, &mut virtio);
        let after = [0, 2].map(|vf| live.show(vf));
        assert_eq!(noticed(&after[0]), noticed(&before[0]), "the AVF driver notices nothing");
        assert!(!avf.driver.was_reset(&mut avf.machine));
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after.tx.packets, before.tx.packets + 10 * round, "{}", after.name);
        }
    }
}

#[test]
fn clients_of_vfs_that_change_their_family_are_disconnected() {
    let mut live = mixed();
    let (avf, virtio) = (AvfGuest::boot(&live, 0), VirtioGuest::boot(&live, 2));
    let swapped = "vf = [{ index = 0, family = \"virtio\" }, { index = 1, family = \"virtio\" }]\n";
    live.hand_over(&format!("{PORT}{swapped}"));
    drop((avf, virtio));
    let (mut avf, mut virtio) = (AvfGuest::boot(&live, 2), VirtioGuest::boot(&live, 0));
    exchange(&mut avf, &mut virtio);
}

#[test]
fn family_of_a_vf_cannot_change_while_the_port_runs() {
    let live = LiveHost::keeping(&format!("{PORT}{VIRTIO}"));
    let refusal = live.apply(PORT).unwrap_err().to_string();
    assert!(
        refusal.contains("family cannot change from \"virtio\" to \"avf\" while the port runs"),
        "{refusal}"
    );
}

#[test]
fn vf_that_is_added_later_has_its_configured_family() {
    let text = format!("{PORT}{VIRTIO}");
    let live = LiveHost::with(&text);
    let mut avf = AvfGuest::boot(&live, 0);
    let count = |vfs| PortSettings { vfs: Some(vfs), ..PortSettings::default() };
    live.change_port(count(2)).unwrap();
    let port = live.change_port(count(5)).unwrap();
    let families: Vec<_> = port.vfs.iter().filter_map(|vf| vf.family).collect();
    assert_eq!(families[2..], [CardFamily::Virtio, CardFamily::Virtio, CardFamily::Avf]);
    let mut virtio = VirtioGuest::boot(&live, 3);
    exchange(&mut avf, &mut virtio);
}
