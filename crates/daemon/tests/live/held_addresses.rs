//! Tests of an address that the guest of another VF holds, on the same port and at the other end of a wire.

use crate::support::avf_guest::AvfGuest;
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu;
use crate::vhost::guest::{RECEIVE, RING, TRANSMIT, VirtioGuest};
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use daemon::control::status::RefusedClaims;
use driver::avf::vf::AvfDriver;
use driver::vf::{Vf, VfDriverConfig};
use host::socket::StreamSocket;
use i82576::MacAddress;
use vhost_user::message::FrontendRequest;

/// Configuration of a host with two ports of virtio VFs, joined by a wire.
const WIRED_VIRTIO: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 2\nuplink.wire = \"w\"\n\
                            [[port]]\nfamily = \"virtio\"\nvfs = 2\nuplink.wire = \"w\"\n";
/// Configuration of a host with two ports of 82576 VFs, joined by a wire.
const WIRED: &str = "[[port]]\nvfs = 2\nuplink.wire = \"w\"\n[[port]]\nvfs = 2\nuplink.wire = \"w\"\n";
/// Configuration of a host with one port of virtio VFs.
const VIRTIO: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 3\n";
/// Configuration of a host with one port of AVF VFs.
const AVF: &str = "[[port]]\nfamily = \"avf\"\nvfs = 2\n";
/// Configuration of a host with one port, whose VF 0 is of the family AVF, and the others of the family virtio.
const MIXED: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 3\n[[port.vf]]\nindex = 0\nfamily = \"avf\"\n";
/// Addition to a configuration: its first VF is trusted.
const TRUSTED: &str = "[[port.vf]]\nindex = 0\ntrust = true\n";
/// Group that a guest receives.
const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// Address that a guest chooses.
const CHOSEN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x55]);

/// Waits until VF 0 of the first port has been refused an address `refused` times.
fn wait_for_refusal(live: &LiveHost, refused: u64, address: MacAddress) {
    let claims = RefusedClaims { refused, address: Some(address.to_string()) };
    eventually("the claim is refused", || live.show(0).claims == claims);
}

/// Boots a virtio guest with the address 02:00:00:00:07:`number` on a VF.
fn virtio_guest(live: &LiveHost, vf: &str, number: u8) -> VirtioGuest {
    VirtioGuest::boot_on(StreamSocket::connect(&live.socket_of(vf)).unwrap(), number)
}

#[test]
fn address_of_the_wires_other_port_is_refused() {
    let live = LiveHost::with(WIRED);
    let (mut thief, mut owner) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf1vf0"));
    let own = thief.vf.mac();
    owner.vf.set_mac(&mut owner.machine, CHOSEN).unwrap();
    exchange(&mut thief, &mut owner, 1);
    assert!(thief.vf.set_mac(&mut thief.machine, CHOSEN).is_err(), "the PF refuses the address");
    wait_for_refusal(&live, 1, CHOSEN);
    assert_eq!(thief.vf.mac(), own);
    // The owner's driver starts again, and has the address of its policy at first.
    owner.vf = Vf::probe(&mut owner.machine, &VfDriverConfig::default()).unwrap();
    owner.start();
    assert_ne!(owner.vf.mac(), CHOSEN);
    exchange(&mut thief, &mut owner, 1);
    assert!(thief.vf.set_mac(&mut thief.machine, CHOSEN).is_err(), "the PF refuses the address");
    wait_for_refusal(&live, 2, CHOSEN);
    assert_eq!(thief.vf.mac(), own);
    owner.vf.set_mac(&mut owner.machine, CHOSEN).unwrap();
    exchange(&mut thief, &mut owner, 5);
}

#[test]
fn address_of_a_resetting_neighbour_is_refused() {
    let live = LiveHost::with("[[port]]\nvfs = 2\n");
    let (mut thief, mut owner) = (VfGuest::on(&live, "pf0vf0"), VfGuest::on(&live, "pf0vf1"));
    owner.vf.set_mac(&mut owner.machine, CHOSEN).unwrap();
    exchange(&mut thief, &mut owner, 1);
    owner.vf = Vf::probe(&mut owner.machine, &VfDriverConfig::default()).unwrap();
    owner.start();
    assert!(thief.vf.set_mac(&mut thief.machine, CHOSEN).is_err());
    eventually("it is counted", || live.show(0).mailbox.refused.get("address-in-use") == Some(&1));
    // The PF driver has granted the address to no other VF, so the owner gets it back.
    owner.vf.set_mac(&mut owner.machine, CHOSEN).unwrap();
    exchange(&mut thief, &mut owner, 5);
}

/// Starts the rings of a virtio guest again at these positions.
fn start_again(guest: &mut VirtioGuest, bases: [u32; 2]) {
    let VirtioGuest { front, receive, transmit, .. } = guest;
    for (ring, base, of) in [(RECEIVE, bases[0], receive), (TRANSMIT, bases[1], transmit)] {
        front.start_ring(ring, (RING.into(), base), of.addresses, (&of.kick, &of.call));
    }
}

/// Has a front end announce the owner's address by RARP, and its guest send from it while the owner's driver is stopped.
fn announces_the_address_of(live: &LiveHost, owner: &mut VirtioGuest, mut witness: VirtioGuest) {
    let address = MacAddress(owner.mac());
    owner.send(&[1; 46]);
    witness.wait_for(&[1; 46]);
    let mut thief = virtio_guest(live, "pf0vf0", 0);
    thief.front.accept(&FrontendRequest::SendRarp(address.0), vec![]);
    let bases = [RECEIVE, TRANSMIT].map(|ring| owner.front.stop_ring(ring));
    thief.send_from(address.0, [0xff; 6], &[2; 46]);
    wait_for_refusal(live, 1, address);
    start_again(owner, bases);
    owner.send(&[3; 46]);
    witness.wait_for(&[3; 46]);
    witness.send_to(address.0, &[4; 46]);
    owner.wait_for(&[4; 46]);
    assert!(thief.take().iter().all(|payload| !payload.starts_with(&[4; 46])), "the owner's frame");
}

#[test]
fn virtio_address_of_a_stopped_neighbour_is_refused() {
    let live = LiveHost::with(VIRTIO);
    let mut owner = virtio_guest(&live, "pf0vf1", 1);
    let witness = virtio_guest(&live, "pf0vf2", 2);
    announces_the_address_of(&live, &mut owner, witness);
}

#[test]
fn announced_address_of_the_wires_other_port_is_refused() {
    let live = LiveHost::with(WIRED_VIRTIO);
    let mut owner = virtio_guest(&live, "pf1vf0", 1);
    let witness = virtio_guest(&live, "pf1vf1", 2);
    announces_the_address_of(&live, &mut owner, witness);
}

impl AvfGuest {
    /// Requests the main address of the VF, and more addresses, in one list, as iavf does at its start. Returns true if the PF
    /// acknowledges the list.
    fn request(&mut self, vf: u8, more: &[([u8; 6], EtherAddressType)]) -> bool {
        let main = (self.driver.mac().0, EtherAddressType::Primary);
        let list =
            std::iter::once(&main).chain(more).map(|(mac, usage)| EtherAddress { mac: *mac, usage: *usage });
        let list = EncodedMessageList::new(&list.collect::<Vec<_>>());
        let vsi = u16::from(vf) + 1;
        self.driver.ask(&mut self.machine, VirtchnlRequest::Addresses(true, vsi, list.list())).is_ok()
    }

    fn send_to(&mut self, to: MacAddress, payload: &[u8]) {
        let frame = [&to.0[..], &self.driver.mac().0, &[0x88, 0xb5], payload].concat();
        assert!(self.driver.transmit(&mut self.machine, 0, &frame));
    }

    fn wait_for(&mut self, payload: &[u8]) {
        let Self { machine, driver } = self;
        let mut into = [0; 2048];
        let mut has = |queue| {
            let received = driver.receive(machine, queue, &mut into);
            received.is_some_and(|received| into[14..received.length].starts_with(payload))
        };
        eventually("the frame arrives", || (0..4).any(&mut has));
    }
}

#[test]
fn avf_list_takes_no_address_of_a_resetting_neighbour() {
    let live = LiveHost::with(AVF);
    let (mut thief, mut owner) = (AvfGuest::boot(&live, 0), AvfGuest::boot(&live, 1));
    let owned = [CHOSEN.0, GROUP].map(|mac| (mac, EtherAddressType::Extra));
    assert!(owner.request(1, &owned));
    thief.send_to(CHOSEN, &[1; 46]);
    owner.wait_for(&[1; 46]);
    owner.driver.reset(&mut owner.machine);
    owner.driver.restart(&mut owner.machine).unwrap();
    assert!(thief.request(0, &owned), "the PF acknowledges the list of a driver's start");
    wait_for_refusal(&live, 1, CHOSEN);
    assert!(owner.request(1, &owned));
    thief.send_to(CHOSEN, &[2; 46]);
    owner.wait_for(&[2; 46]);
}

#[test]
fn avf_list_takes_no_address_of_a_disconnected_neighbour() {
    let live = LiveHost::with(AVF);
    let (mut thief, mut owner) = (AvfGuest::boot(&live, 0), AvfGuest::boot(&live, 1));
    let (own, chosen) = (thief.driver.mac(), [(CHOSEN.0, EtherAddressType::Primary)]);
    assert!(owner.request(1, &chosen));
    thief.send_to(CHOSEN, &[1; 46]);
    owner.wait_for(&[1; 46]);
    live.disconnect(1).unwrap();
    assert!(thief.request(0, &chosen), "the PF acknowledges the list of a driver's start");
    wait_for_refusal(&live, 1, CHOSEN);
    thief.driver.reset(&mut thief.machine);
    thief.driver.restart(&mut thief.machine).unwrap();
    assert_eq!(thief.driver.mac(), own);
    drop(owner);
    let mut owner = AvfGuest::boot(&live, 1);
    assert!(owner.request(1, &chosen));
    thief.send_to(CHOSEN, &[2; 46]);
    owner.wait_for(&[2; 46]);
}

#[test]
fn avf_list_takes_no_address_of_a_resetting_virtio_vf() {
    let live = LiveHost::with(MIXED);
    let (mut thief, mut owner) = (AvfGuest::boot(&live, 0), virtio_guest(&live, "pf0vf1", 1));
    let address = MacAddress(owner.mac());
    owner.send(&[1; 46]);
    thief.wait_for(&[1; 46]);
    let bases = [RECEIVE, TRANSMIT].map(|ring| owner.front.stop_ring(ring));
    let list = [(address.0, EtherAddressType::Extra)];
    assert!(thief.request(0, &list), "the PF acknowledges the list of a driver's start");
    wait_for_refusal(&live, 1, address);
    start_again(&mut owner, bases);
    owner.send(&[2; 46]);
    thief.wait_for(&[2; 46]);
    thief.send_to(address, &[3; 46]);
    owner.wait_for(&[3; 46]);
}

#[test]
fn next_avf_guest_gets_the_address_of_the_policy() {
    let live = LiveHost::with("[[port]]\nfamily = \"avf\"\nvfs = 1\n");
    // The driver would choose this address if the PF assigned none.
    let boot = || {
        let mut machine = qemu::boot_as(&live.socket(0), qemu::AVF, qemu::share);
        let driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, 0])).unwrap();
        (machine, driver)
    };
    let (mut machine, mut driver) = boot();
    let proposed = driver.mac();
    driver.start(&mut machine).unwrap();
    let chosen = [EtherAddress { mac: CHOSEN.0, usage: EtherAddressType::Primary }];
    let chosen = EncodedMessageList::new(&chosen);
    driver.ask(&mut machine, VirtchnlRequest::Addresses(true, 1, chosen.list())).unwrap();
    // A reset by the same guest keeps the address.
    driver.reset(&mut machine);
    driver.restart(&mut machine).unwrap();
    assert_eq!(driver.mac(), CHOSEN);
    drop(machine);
    let (_machine, driver) = boot();
    assert_eq!(driver.mac(), proposed);
}

#[test]
fn next_host_takes_an_address_from_an_avf_without_trust() {
    let mut live = LiveHost::with(&format!("{AVF}{TRUSTED}"));
    let (mut thief, mut owner) = (AvfGuest::boot(&live, 0), AvfGuest::boot(&live, 1));
    let owned = [(CHOSEN.0, EtherAddressType::Extra)];
    assert!(owner.request(1, &owned));
    owner.driver.reset(&mut owner.machine);
    owner.driver.restart(&mut owner.machine).unwrap();
    let stolen = [(CHOSEN.0, EtherAddressType::Primary)];
    assert!(thief.request(0, &stolen), "a trusted guest may have it");
    eventually("the address is used", || live.show(0).mac == CHOSEN.to_string());
    live.hand_over(AVF);
    assert_ne!(live.show(0).mac, CHOSEN.to_string());
    thief.driver.reset(&mut thief.machine);
    thief.driver.restart(&mut thief.machine).unwrap();
    thief.request(0, &stolen);
    wait_for_refusal(&live, 1, CHOSEN);
    assert!(owner.request(1, &owned));
    thief.send_to(CHOSEN, &[2; 46]);
    owner.wait_for(&[2; 46]);
}

#[test]
fn next_host_takes_an_address_from_a_virtio_vf_without_trust() {
    let mut live = LiveHost::with(&format!("{VIRTIO}{TRUSTED}"));
    let (mut owner, mut witness) = (virtio_guest(&live, "pf0vf1", 1), virtio_guest(&live, "pf0vf2", 2));
    let address = MacAddress(owner.mac());
    owner.send(&[1; 46]);
    witness.wait_for(&[1; 46]);
    let bases = [RECEIVE, TRANSMIT].map(|ring| owner.front.stop_ring(ring));
    let mut thief = virtio_guest(&live, "pf0vf0", 0);
    thief.send_from(address.0, [0xff; 6], &[2; 46]);
    witness.wait_for(&[2; 46]);
    live.hand_over(VIRTIO);
    thief.send_from(address.0, [0xff; 6], &[3; 46]);
    wait_for_refusal(&live, 1, address);
    start_again(&mut owner, bases);
    owner.send(&[4; 46]);
    witness.wait_for(&[4; 46]);
}
