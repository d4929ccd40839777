//! Tests the client against a small server over a real socket: messages, shared memory, and servers that close the
//! connection or serve another device.

use crate::{RAM_BASE, VfDriverHal, VfioUserHal, VfioUserHalError};
use driver::{DmaHal, Hal};
use host::eventfd::EventFd;
use host::memory::{MappedFile, MemoryProtection};
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketFilePermissions, SocketListener, SocketReceiveResult, StreamSocket};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use tempfile::TempDir;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{
    DmaWindow, IrqChange, RegionInfo, RequestCompletionTiming, ServedDevice, ServerSession, SessionProgress,
};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

const MEMORY: u64 = 64 << 10;
/// Configuration space offset of the simulated function's MSI-X capability, which is the second in the list.
const MSIX_AT: u8 = 0x70;
/// Offset of a register of the simulated function that keeps the value written to it. The next registers react to a
/// write: one interrupts, one copies a byte of memory to the byte after it, and one makes the server leave.
const PLAIN: u32 = 0x10;
const RAISE: u32 = 0x20;
const COPY: u32 = 0x30;
const LEAVE: u32 = 0x40;

/// Simulated PCI function with the ids of a VF, and with registers that no driver knows.
#[derive(Default)]
struct SimulatedFunction {
    config: BTreeMap<u64, u8>,
    plain: [u8; 4],
    memory: Option<(u64, MappedFile)>,
    eventfds: Vec<EventFd>,
    leaving: bool,
    /// Requests of the client that the simulated function has received, in order.
    said: Vec<String>,
}

impl SimulatedFunction {
    fn vf() -> Self {
        let bytes: [(u64, &[u8]); 4] =
            [(0, &[0x86, 0x80, 0xca, 0x10]), (0x34, &[0x40]), (0x40, &[0x10, MSIX_AT]), (0x70, &[0x11, 0])];
        let config = bytes.iter().flat_map(|(at, bytes)| (*at..).zip(bytes.iter().copied()));
        Self { config: config.collect(), ..Self::default() }
    }

    fn register(&mut self, offset: u32, data: &[u8]) {
        match offset {
            PLAIN => self.plain.copy_from_slice(data),
            RAISE => self.eventfds[usize::from(data[0])].signal(),
            COPY => {
                let (iova, memory) = self.memory.as_ref().expect("the client must have shared memory");
                let offset = u64::from(u32::from_le_bytes(data.try_into().unwrap())) + RAM_BASE - iova;
                let mut byte = [0];
                memory.read(offset, &mut byte).unwrap();
                memory.write(offset + 1, &byte).unwrap();
            }
            LEAVE => self.leaving = true,
            _ => {}
        }
    }
}

impl ServedDevice<OwnedFd> for SimulatedFunction {
    fn info(&self) -> DeviceInfo {
        let flags = device_flags::PCI | device_flags::RESET;
        DeviceInfo { flags, regions: pci_region::COUNT, irqs: pci_irq::COUNT }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let size = match index {
            pci_region::BAR0 => 16 << 10,
            pci_region::CONFIG => 4096,
            _ => 0,
        };
        let flags = region_flags::READ | region_flags::WRITE;
        (index < pci_region::COUNT).then_some(RegionInfo { size, flags, ..RegionInfo::default() })
    }

    fn region_fd(&mut self, _: u32) -> Option<OwnedFd> {
        None
    }

    fn irq(&self, index: u32) -> Option<IrqInfo> {
        let count = if index == pci_irq::MSIX { 3 } else { 0 };
        (index < pci_irq::COUNT).then_some(IrqInfo { count, flags: irq_flags::EVENTFD })
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> usize {
        let bytes = data.len();
        match region {
            pci_region::CONFIG => {
                for (at, byte) in (offset..).zip(data) {
                    *byte = self.config.get(&at).copied().unwrap_or(0);
                }
            }
            _ => data.copy_from_slice(&self.plain[..data.len()]),
        }
        bytes
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> usize {
        if region == pci_region::BAR0 {
            self.register(offset as u32, data);
            return data.len();
        }
        self.said.push(format!("config {offset:#x} = {data:02x?}"));
        self.config.extend((offset..).zip(data.iter().copied()));
        data.len()
    }

    fn dma_map(&mut self, map: DmaWindow<OwnedFd>) -> Result<RequestCompletionTiming, Errno> {
        let file = map.file.ok_or(Errno::EINVAL)?;
        let memory = MappedFile::map(&file.fd, file.offset, map.size, MemoryProtection::ReadWrite);
        self.memory = Some((map.iova, memory.map_err(|_| Errno::EINVAL)?));
        self.said.push(format!("map {:#x}+{:#x}", map.iova, map.size));
        Ok(RequestCompletionTiming::Now)
    }

    fn dma_unmap(&mut self, _: u64, _: u64) -> u64 {
        0
    }

    fn dma_unmap_all(&mut self) {}

    fn set_irqs(&mut self, set: IrqChange<OwnedFd>) -> Result<RequestCompletionTiming, Errno> {
        if let IrqChange::Assign { index, start, fds } = set {
            self.said.push(format!("interrupt type {index}, vector {start}: {} eventfds", fds.len()));
            self.eventfds = fds.into_iter().map(|fd| EventFd::adopt(fd).unwrap()).collect();
        }
        Ok(RequestCompletionTiming::Now)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.said.push("reset".into());
        Ok(())
    }
}

/// Server that serves the simulated function to one client, and sends the client's recorded actions when the connection
/// is over.
struct SimulatedServer {
    _folder: TempDir,
    path: PathBuf,
    said: mpsc::Receiver<Vec<String>>,
}

fn serve(toy: SimulatedFunction) -> SimulatedServer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vf.sock");
    let mut listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        let mut poller = Poller::new().unwrap();
        poller.add(&listener, 0, PollInterest::READ).unwrap();
        poller.wait(None).unwrap().for_each(drop);
        let stream = listener.accept().unwrap().unwrap();
        let _ = sender.send(converse(&stream, toy));
    });
    SimulatedServer { _folder: folder, path, said }
}

fn converse(stream: &StreamSocket, mut toy: SimulatedFunction) -> Vec<String> {
    let mut session = ServerSession::default();
    let mut out: MessageOutbox<OwnedFd> = MessageOutbox::new();
    let (mut buffer, mut fds) = (vec![0; 4096], ReceivedFds::new());
    let mut poller = Poller::new().unwrap();
    poller.add(stream, 0, PollInterest::READ).unwrap();
    while !toy.leaving {
        match stream.recv(&mut buffer, &mut fds).unwrap() {
            SocketReceiveResult::Bytes(count) => session.push(&buffer[..count], fds.drain()).unwrap(),
            SocketReceiveResult::WouldBlock => poller.wait(None).unwrap().for_each(drop),
            SocketReceiveResult::Closed => break,
        }
        while !toy.leaving && session.step(&mut toy, &mut out).unwrap() == SessionProgress::Handled {}
        while let Some(chunk) = out.chunk() {
            let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
            let host::socket::SocketSendResult::Bytes(sent) = stream.send(chunk.bytes, &fds).unwrap() else {
                break;
            };
            drop(fds);
            out.sent(sent);
        }
    }
    toy.said
}

#[test]
fn attach_maps_resets_sets_interrupts_and_enables_the_device() {
    let server = serve(SimulatedFunction::vf());
    drop(VfioUserHal::attach(&server.path, MEMORY).unwrap());
    assert_eq!(
        server.said.recv().unwrap(),
        [
            "map 0x100000000+0x10000",
            "reset",
            "interrupt type 2, vector 0: 3 eventfds",
            "config 0x4 = [06, 00]",
            "config 0x72 = [00, 80]",
        ]
    );
}

#[test]
fn register_read_sees_earlier_posted_writes() {
    let server = serve(SimulatedFunction::vf());
    let mut hal = VfioUserHal::attach(&server.path, MEMORY).unwrap();
    for value in 0..1_000 {
        hal.write(PLAIN, value);
    }
    assert_eq!(hal.read(PLAIN), 999);
    assert_eq!((hal.accesses().reads, hal.accesses().writes), (1, 1_000));
}

#[test]
fn dma_memory_is_shared_aligned_and_bounded() {
    let server = serve(SimulatedFunction::vf());
    let mut hal = VfioUserHal::attach(&server.path, MEMORY).unwrap();
    let first = hal.dma_alloc(100, 128).unwrap();
    let second = hal.dma_alloc(4096, 4096).unwrap();
    assert!(first.iova >= RAM_BASE && second.iova.is_multiple_of(4096));
    hal.dma_write(second.iova, &[7]);
    hal.write(COPY, (second.iova - RAM_BASE) as u32);
    hal.read(PLAIN);
    let mut seen = [0; 3];
    hal.dma_read(second.iova, &mut seen);
    assert_eq!(seen, [7, 7, 0]);
    assert!(hal.dma_alloc(MEMORY as usize, 1).is_err());
}

#[test]
fn interrupt_signals_the_eventfd_of_its_vector() {
    let server = serve(SimulatedFunction::vf());
    let mut hal = VfioUserHal::attach(&server.path, MEMORY).unwrap();
    hal.write(RAISE, 1);
    hal.read(PLAIN);
    let drained: Vec<_> = (0..3).map(|vector| hal.eventfd(vector).unwrap().drain()).collect();
    assert_eq!(drained, [0, 1, 0]);
    assert!(hal.eventfd(3).is_none());
}

#[test]
fn registers_read_all_ones_after_the_server_leaves() {
    let server = serve(SimulatedFunction::vf());
    let mut hal = VfioUserHal::attach(&server.path, MEMORY).unwrap();
    hal.write(LEAVE, 1);
    assert_eq!(hal.read(PLAIN), u32::MAX);
    assert!(matches!(hal.broken(), Some(VfioUserHalError::Gone)));
    hal.write(PLAIN, 1);
    assert_eq!(hal.read(PLAIN), u32::MAX);
}

#[test]
fn attach_refuses_a_device_other_than_a_supported_vf() {
    let mut other = SimulatedFunction::vf();
    other.config.insert(2, 0xc9);
    let server = serve(other);
    assert!(matches!(VfioUserHal::attach(&server.path, MEMORY), Err(VfioUserHalError::NotAVf(_))));

    let mut endless = SimulatedFunction::vf();
    endless.config.insert(0x41, 0x40);
    let server = serve(endless);
    assert!(
        matches!(VfioUserHal::attach(&server.path, MEMORY), Err(VfioUserHalError::NotAVf(_))),
        "a loop ends"
    );

    let unserved = server.path.with_file_name("unserved.sock");
    assert!(matches!(VfioUserHal::attach(&unserved, MEMORY), Err(VfioUserHalError::Connect { .. })));
}
