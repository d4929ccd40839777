//! Raw client of a VF's socket, which reads all that its protocol offers, and writes ones to all that a guest can write.

use super::super::super::message;
use super::super::super::requests::front_end_message;
use super::super::families::SimulatedFamily;
use super::super::host::SimulatedHost;
use crate::port::tokens::RINGS;
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use i82576::register::vf;
use rustix::fs::fstat;
use rustix::io::pread;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use vfio_user::wire::{Command, pci_region};
use vhost_user::message::RequestCode;

/// Bytes that a client reads and writes at once.
const PIECE: usize = 4096;
/// Steps of the host within which it replies.
const STEPS: usize = 10_000;
/// Byte of Device Control with the bit of a function-level reset, in the configuration space of VFs of both families (PCIe
/// capability at 0xa0).
const FLR: usize = 0xa9;

/// Results of reads, each with the name of what was read.
pub(super) type View = Vec<(String, Vec<u8>)>;

/// Client that is connected to a VF.
pub(super) struct RawClient {
    host: Rc<RefCell<SimulatedHost>>,
    stream: StreamSocket,
    family: SimulatedFamily,
}

impl RawClient {
    /// Connects to a VF, and begins the session.
    pub(super) fn connect(host: &Rc<RefCell<SimulatedHost>>, vf: u16, family: SimulatedFamily) -> Self {
        let stream = StreamSocket::connect(&host.borrow().socket(vf.into())).unwrap();
        let mut client = Self { host: Rc::clone(host), stream, family };
        if family.virtio().is_none() {
            client.ask(Command::Version, b"\0\0\x01\0{}\0");
        }
        client
    }

    /// Reads all that the VF's protocol offers.
    pub(super) fn read_all(&mut self) -> View {
        if self.family.virtio().is_some() { self.read_device() } else { self.read_regions() }
    }

    /// Writes ones to all that a guest can write, except what resets the VF.
    pub(super) fn write_all(&mut self) {
        if self.family.virtio().is_some() {
            return self.write_device();
        }
        for (region, skipped) in
            [(pci_region::CONFIG, Some(FLR)), (pci_region::BAR3, None), (pci_region::BAR0, None)]
        {
            let size = self.size(region);
            for at in (0..size).step_by(PIECE) {
                let mut ones = vec![0xff; PIECE.min(size - at)];
                if let Some(byte) = skipped.filter(|byte| (at..at + ones.len()).contains(byte)) {
                    ones[byte - at] = 0x7f;
                }
                let place = place(region, at, ones.len());
                self.ask(Command::RegionWrite, &[place, ones].concat());
            }
        }
    }

    fn size(&mut self, region: u32) -> usize {
        let asked = [32, 0, region, 0].map(u32::to_le_bytes).concat();
        let info = self.ask(Command::DeviceGetRegionInfo, &[asked, vec![0; 16]].concat());
        u64::from_le_bytes(info[16..24].try_into().unwrap()) as usize
    }

    fn read_regions(&mut self) -> View {
        let mut view = View::new();
        for region in 0..pci_region::COUNT {
            let (size, mut bytes) = (self.size(region), Vec::new());
            for at in (0..size).step_by(PIECE) {
                let count = PIECE.min(size - at);
                bytes.extend_from_slice(&self.ask(Command::RegionRead, &place(region, at, count))[16..]);
            }
            if matches!(self.family, SimulatedFamily::I82576) && region == pci_region::BAR0 {
                // The time of the port.
                bytes[vf::FRTIMER as usize..][..4].fill(0);
            }
            let dwords = bytes.chunks(4).zip((0..).step_by(4));
            view.extend(dwords.map(|(dword, at)| (format!("region {region}, {at:#x}"), dword.to_vec())));
        }
        view
    }

    fn read_device(&mut self) -> View {
        let mut view = View::new();
        let mut read = |client: &mut Self, code: RequestCode, body: &[u8]| {
            let (reply, _) = client.ask_device(code, body);
            view.push((format!("{code:?} {body:?}"), reply.clone()));
            reply
        };
        let features = read(self, RequestCode::GetFeatures, &[]);
        let protocol = read(self, RequestCode::GetProtocolFeatures, &[]);
        self.tell_device(RequestCode::SetProtocolFeatures, &protocol);
        for code in [RequestCode::GetStatus, RequestCode::GetQueueNum, RequestCode::GetMaxMemSlots] {
            read(self, code, &[]);
        }
        self.tell_device(RequestCode::SetFeatures, &features);
        for ring in 0..RINGS {
            read(self, RequestCode::GetVringBase, &[ring, 0].map(u32::to_le_bytes).concat());
        }
        // Records of unfinished descriptors, of two rings with 64 each.
        let area = [&[0; 16][..], &[2_u16, 64, 0, 0].map(u16::to_le_bytes).concat()].concat();
        let (reply, records) = self.ask_device(RequestCode::GetInflightFd, &area);
        let records = records.expect("a file of records");
        let mut bytes = vec![0; fstat(&records).unwrap().st_size as usize];
        assert_eq!(pread(&records, &mut bytes[..], 0), Ok(bytes.len()));
        view.extend([("records' place".to_owned(), reply), ("records".to_owned(), bytes)]);
        view
    }

    /// Sets all of a virtio device's state that a client can read, but for its rings' addresses.
    fn write_device(&mut self) {
        let (features, _) = self.ask_device(RequestCode::GetFeatures, &[]);
        let (protocol, _) = self.ask_device(RequestCode::GetProtocolFeatures, &[]);
        self.tell_device(RequestCode::SetOwner, &[]);
        self.tell_device(RequestCode::SetProtocolFeatures, &protocol);
        self.tell_device(RequestCode::SetFeatures, &features);
        for ring in 0..RINGS {
            self.tell_device(RequestCode::SetVringNum, &[ring, 64].map(u32::to_le_bytes).concat());
            self.tell_device(RequestCode::SetVringBase, &[ring, 0x8001_8001].map(u32::to_le_bytes).concat());
            self.tell_device(RequestCode::SetVringEnable, &[ring, 1].map(u32::to_le_bytes).concat());
        }
        self.tell_device(RequestCode::SendRarp, &[2, 0, 0, 0, 0, 0x77, 0, 0]);
        self.tell_device(RequestCode::NetSetMtu, &1_300_u64.to_le_bytes());
        self.tell_device(RequestCode::SetStatus, &0xf_u64.to_le_bytes());
    }

    /// Sends a vfio-user request, and returns the body of the reply.
    fn ask(&mut self, command: Command, body: &[u8]) -> Vec<u8> {
        self.send(&message(1, command as u16, body));
        let (reply, _) = self.receive(16, 4);
        let error = u32::from_le_bytes(reply[12..16].try_into().unwrap());
        assert_eq!(error, 0, "{command:?} is refused");
        reply[16..].to_vec()
    }

    /// Sends a vhost-user request, and returns the body of the reply and its file.
    fn ask_device(&mut self, code: RequestCode, body: &[u8]) -> (Vec<u8>, Option<OwnedFd>) {
        self.tell_device(code, body);
        let (reply, file) = self.receive(12, 8);
        (reply[12..].to_vec(), file)
    }

    /// Sends a vhost-user request without a reply.
    fn tell_device(&mut self, code: RequestCode, body: &[u8]) {
        self.send(&front_end_message(code.number(), body));
    }

    fn send(&mut self, message: &[u8]) {
        let mut sent = 0;
        while sent < message.len() {
            match self.stream.send(&message[sent..], &[]).unwrap() {
                SocketSendResult::Bytes(bytes) => sent += bytes,
                SocketSendResult::WouldBlock => self.host.borrow_mut().step(Duration::ZERO),
                SocketSendResult::Closed => panic!("the host ended the connection"),
            }
        }
    }

    /// Receives a reply with a header of `header` bytes. At `size`, the header has the bytes of the reply: those of the body in
    /// vhost-user, and all in vfio-user.
    fn receive(&mut self, header: usize, size: usize) -> (Vec<u8>, Option<OwnedFd>) {
        let (mut bytes, mut files) = (Vec::new(), ReceivedFds::new());
        let mut buffer = [0; PIECE];
        for _ in 0..STEPS {
            let length = |bytes: &[u8]| {
                let stated = u32::from_le_bytes(bytes[size..size + 4].try_into().unwrap()) as usize;
                if header == 12 { header + stated } else { stated }
            };
            if bytes.len() >= header && bytes.len() >= length(&bytes) {
                return (bytes, files.drain().next());
            }
            match self.stream.recv(&mut buffer, &mut files).unwrap() {
                SocketReceiveResult::Bytes(count) => bytes.extend_from_slice(&buffer[..count]),
                SocketReceiveResult::WouldBlock => self.host.borrow_mut().step(Duration::from_micros(20)),
                SocketReceiveResult::Closed => panic!("the host ended the connection"),
            }
        }
        panic!("the host does not reply within {STEPS} steps");
    }
}

/// Returns the place of an access to a region, as a vfio-user request states it.
fn place(region: u32, offset: usize, count: usize) -> Vec<u8> {
    [&(offset as u64).to_le_bytes()[..], &region.to_le_bytes(), &(count as u32).to_le_bytes()].concat()
}
