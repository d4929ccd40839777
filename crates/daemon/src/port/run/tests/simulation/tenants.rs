//! Tests of clients that follow each other on a VF: the next one reads and receives what the first client ever does, whatever the
//! last one did. `nic` has further tests of the 82576.

mod client;
mod guards;

use super::families::{SimulatedFamily, configured_mac};
use super::function::{GuestPlace, SimulatedFunction};
use super::host::SimulatedHost;
use super::requests;
use super::thread::SimulatedThread;
use super::vf::SimulatedVf;
use super::virtio::SimulatedVirtio;
use avf::virtchnl::{
    EncodedMessageList, EtherAddress, EtherAddressType, QueueSet, VfCapabilities, VirtchnlRequest,
};
use client::{RawClient, View};
use driver::Hal;
use driver::avf::vf::AvfDriver;
use driver::vf::VfDriverConfig;
use i82576::MacAddress;
use i82576::mailbox::{INFO_SHIFT, id};
use std::cell::RefCell;
use std::rc::Rc;
use vfio_client::VfioUserHal;

/// Families of the tested VFs: of virtio devices the one with most features.
const FAMILIES: [SimulatedFamily; 3] = [
    SimulatedFamily::I82576,
    SimulatedFamily::Avf,
    SimulatedFamily::Virtio { packed: true, events: true, in_order: true, offloads: true, descriptors: 64 },
];
/// VF whose clients follow each other.
const VF: u16 = 0;
const NEIGHBOUR: u16 = 1;
/// Bytes of a guest's memory.
const MEMORY: u64 = 2 << 20;
/// Address, group and VLAN that a guest chooses.
const CHOSEN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);
const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const VLAN: u16 = 7;
/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Port of two VFs, whose guests may choose their addresses and VLANs.
struct TestPort {
    host: Rc<RefCell<SimulatedHost>>,
    family: SimulatedFamily,
}

impl TestPort {
    fn open(family: SimulatedFamily) -> Self {
        Self::open_with(family, "")
    }

    /// Opens a port with these further keys.
    fn open_with(family: SimulatedFamily, keys: &str) -> Self {
        let name = family.of_card().name();
        let config = format!("[[port]]\nfamily = \"{name}\"\nmac = \"02:00:00:00:00:01\"\nvfs = 2\n{keys}");
        let mut host = SimulatedHost::open(&config, false);
        host.spare();
        Self { host: Rc::new(RefCell::new(host)), family }
    }

    /// Lets the port work until it has handled all, also that a client has left.
    fn rest(&self) {
        self.host.borrow_mut().rest().unwrap();
    }

    fn connect(&self) -> RawClient {
        RawClient::connect(&self.host, VF, self.family)
    }

    /// Boots a guest on a VF.
    fn boot(&self, vf: u16) -> Box<dyn SimulatedFunction> {
        let place = GuestPlace { index: vf, host: Rc::clone(&self.host) };
        let function: Box<dyn SimulatedFunction> = match self.family.virtio() {
            Some(config) => Box::new(
                SimulatedVirtio::attach(&place, configured_mac(vf.into()), &config).unwrap().unwrap(),
            ),
            None => Box::new(SimulatedVf::attach(&place).unwrap().unwrap()),
        };
        self.rest();
        function
    }

    /// Has the guest of a client use its VF: it sends, receives, and requests what a guest can request.
    fn use_vf(&self) {
        let mut neighbour = self.boot(NEIGHBOUR);
        let mut guest = self.boot(VF);
        // A virtio guest without an address of the policy gets the source of its first frame.
        let own = if self.family.virtio().is_some() { CHOSEN } else { guest.mac() }.0;
        for _ in 0..5 {
            assert!(guest.send(&frame(neighbour.mac().0, own, None)));
            self.rest();
            assert!(neighbour.send(&frame(own, neighbour.mac().0, None)));
            self.rest();
        }
        assert!(!neighbour.receive(true).unwrap().is_empty() && !guest.receive(true).unwrap().is_empty());
        drop(guest);
        self.rest();
        match self.family {
            SimulatedFamily::I82576 => self.request_by_mailbox(),
            SimulatedFamily::Avf => self.request_by_virtchnl(),
            SimulatedFamily::Virtio { .. } => {}
        }
        self.rest();
    }

    /// Attaches a guest's driver to the VF.
    fn driver_hal(&self) -> VfioUserHal<SimulatedThread> {
        let socket = self.host.borrow().socket(VF.into());
        VfioUserHal::attach_on(SimulatedThread(Rc::clone(&self.host)), &socket, MEMORY).unwrap()
    }

    /// Has a guest of the 82576 request another address, a group, a VLAN, long packets and all groups.
    fn request_by_mailbox(&self) {
        let mut hal = self.driver_hal();
        let mut vf = driver::Vf::probe(&mut hal, &VfDriverConfig::default()).unwrap();
        vf.start(&mut hal).unwrap();
        let [low, high] = requests::words_of(CHOSEN.0);
        let group = u32::from(GROUP[4] >> 4) | u32::from(GROUP[5]) << 4;
        for words in [
            &[id::SET_MAC_ADDR, low, high][..],
            &[id::SET_MULTICAST | 1 << INFO_SHIFT, group],
            &[id::SET_VLAN | 1 << INFO_SHIFT, VLAN.into()],
            &[id::SET_LPE, 9_728],
            &[id::SET_PROMISC | 1 << INFO_SHIFT],
        ] {
            for (offset, value) in requests::ask(words) {
                hal.write(offset, value);
            }
            self.rest();
        }
    }

    /// Has a guest of an AVF request a further address, a group, a VLAN, all groups, and another distribution of flows.
    fn request_by_virtchnl(&self) {
        let mut hal = self.driver_hal();
        let mut vf = AvfDriver::probe(&mut hal, CHOSEN).unwrap();
        vf.start(&mut hal).unwrap();
        let address = |mac| EtherAddress { mac, usage: EtherAddressType::Extra };
        let addresses = EncodedMessageList::new(&[address(CHOSEN.0), address(GROUP)]);
        let vlans = EncodedMessageList::new(&[VLAN]);
        // The PF driver numbers the VSIs of its VFs from 1.
        let vsi = VF + 1;
        for request in [
            VirtchnlRequest::Addresses(true, vsi, addresses.list()),
            VirtchnlRequest::Vlans(true, vsi, vlans.list()),
            VirtchnlRequest::SetHashTypes(0),
            VirtchnlRequest::HashKey(vsi, &[7; 52]),
            VirtchnlRequest::LookupTable(vsi, &[1; 64]),
            VirtchnlRequest::Strip(false),
            VirtchnlRequest::Promiscuity(vsi, 2),
        ] {
            vf.ask(&mut hal, request).unwrap();
        }
    }

    /// Returns all that a next client reads in the VF.
    fn registers(&self) -> View {
        let view = self.connect().read_all();
        self.rest();
        view
    }

    /// Returns the replies of the PF to a next guest's requests that ask for state: those of an AVF.
    fn answers(&self) -> View {
        let SimulatedFamily::Avf = self.family else { return View::new() };
        let mut hal = self.driver_hal();
        let mut vf = AvfDriver::probe(&mut hal, CHOSEN).unwrap();
        let queues = QueueSet { vsi: VF + 1, rx: 0, tx: 0 };
        let mut view = vec![("address".to_owned(), vf.mac().0.to_vec())];
        for request in [
            VirtchnlRequest::Resources(Some(VfCapabilities(u32::MAX))),
            VirtchnlRequest::Statistics(queues),
            VirtchnlRequest::GetHashTypes,
            VirtchnlRequest::RxDescriptors,
            VirtchnlRequest::VlanCapabilities,
        ] {
            let reply = vf.ask(&mut hal, request).unwrap();
            view.push((format!("{request:?}"), reply));
        }
        drop(hal);
        self.rest();
        view
    }

    /// Returns the address of a next guest, and the frames that it receives of those that the neighbour sends to all that a guest may have chosen.
    fn frames(&self) -> View {
        let (mut neighbour, mut guest) = (self.boot(NEIGHBOUR), self.boot(VF));
        let (own, from) = (guest.mac(), neighbour.mac().0);
        assert!(guest.send(&frame(from, own.0, None)));
        self.rest();
        for (to, vlan) in [
            (own.0, None),
            (own.0, Some(VLAN)),
            (CHOSEN.0, None),
            (GROUP, None),
            ([0xff; 6], None),
            (GROUP, Some(VLAN)),
        ] {
            assert!(neighbour.send(&frame(to, from, vlan)));
        }
        self.rest();
        let received = guest.receive(true).unwrap();
        drop((guest, neighbour));
        self.rest();
        let mut view: View =
            received.into_iter().map(|frame| (format!("{:?}", frame.checksum), frame.bytes)).collect();
        // The queues of a function have no common order.
        view.sort_by(|one, other| one.1.cmp(&other.1));
        view.insert(0, ("address".to_owned(), own.0.to_vec()));
        view
    }
}

/// Returns a frame, with a tag for a VLAN.
fn frame(to: [u8; 6], from: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let tag = vlan.map(|vlan| [0x8100, vlan].map(u16::to_be_bytes).concat()).unwrap_or_default();
    [&to[..], &from, &tag, &ETHERTYPE, &[7; 86]].concat()
}

/// Checks that two clients have read the same.
#[track_caller]
fn check_equal(family: SimulatedFamily, next: &View, first: &View) {
    assert_eq!(next.len(), first.len(), "{family:?}");
    let differs = next.iter().zip(first).filter(|(next, first)| next != first);
    let differs: Vec<_> = differs
        .map(|((name, next), (_, first))| format!("{name}: {next:x?} instead of {first:x?}"))
        .collect();
    assert!(differs.is_empty(), "{family:?}: {}", differs.join("\n"));
}

#[test]
fn next_client_reads_the_same_as_the_first_client() {
    for family in FAMILIES {
        let port = TestPort::open(family);
        let first = port.registers();
        port.use_vf();
        check_equal(family, &port.registers(), &first);
        let mut client = port.connect();
        client.write_all();
        port.rest();
        let written = client.read_all();
        let different = written.iter().zip(&first).filter(|(written, first)| written != first).count();
        // All rings of a virtio device, and its status.
        let least = if family.virtio().is_some() { 5 } else { 50 };
        assert!(different >= least, "{family:?}: the client has changed {different} values");
        client.write_all();
        drop(client);
        port.rest();
        check_equal(family, &port.registers(), &first);
    }
}

#[test]
fn next_client_gets_the_replies_and_frames_of_the_first() {
    for family in FAMILIES {
        let mut port = TestPort::open(family);
        let (answers, frames) = (port.answers(), port.frames());
        let to: Vec<_> = frames.iter().map(|(_, bytes)| &bytes[..6]).collect();
        let (own, all) = (to[0], &[0xff; 6][..]);
        // A virtio device has no filters of groups and VLANs.
        let is_virtio = family.virtio().is_some();
        let received = if is_virtio { &[own, own, &GROUP, &GROUP, all][..] } else { &[own, all] };
        assert_eq!(to[1..], *received, "{family:?}");
        if is_virtio {
            // A VF that kept the address of its first guest ever would not get the next one's.
            port = TestPort::open(family);
        }
        port.use_vf();
        check_equal(family, &port.answers(), &answers);
        port.use_vf();
        check_equal(family, &port.frames(), &frames);
        port.connect().write_all();
        port.rest();
        check_equal(family, &port.answers(), &answers);
        port.connect().write_all();
        port.rest();
        check_equal(family, &port.frames(), &frames);
    }
}
