//! A hostile client that sends any bytes in any pieces, with descriptors anywhere, and may not read its replies.
//!
//! The input is a list of moves. A move starts with an opcode byte: raw bytes, or a message with a valid header, so
//! that the fuzzer reaches the code behind the header's checks, cut at a position from the input. Checked: no panic,
//! bounded memory, well-formed replies, accesses inside regions, windows that never overlap, no descriptor left at the
//! end.

#![cfg_attr(not(test), no_main)]

use std::collections::BTreeMap;
use std::rc::Rc;

use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{
    DmaWindow, IrqChange, OUTBOX_LIMIT, RegionInfo, RequestCompletionTiming, ServedDevice, ServerSession,
    SessionProgress,
};
use vfio_user::types::{DeviceInfo, IrqInfo, SparseArea};
use vfio_user::wire::{Errno, irq_flags, pci_irq, pci_region, region_flags};

type FakeDescriptor = Rc<()>;

const SPARSE: [SparseArea; 1] = [SparseArea { offset: 0x2000, size: 0x2000 }];
const VECTORS: u32 = 3;

/// Device behind the vfio-user server that asserts everything which the server promises to a device.
#[derive(Default)]
struct CheckingDevice {
    windows: BTreeMap<u64, (u64, Option<FakeDescriptor>)>,
    vectors: [Option<FakeDescriptor>; VECTORS as usize],
    descriptor: FakeDescriptor,
}

impl CheckingDevice {
    /// Checks that an access of the client is inside a region that allows the access.
    fn check(&self, region: u32, offset: u64, length: usize, flag: u32) {
        let info = self.region(region).unwrap();
        assert!(length > 0 && info.flags & flag != 0);
        assert!(offset.checked_add(length as u64).unwrap() <= info.size);
    }
}

impl ServedDevice<FakeDescriptor> for CheckingDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { flags: 3, regions: pci_region::COUNT, irqs: pci_irq::COUNT }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let access = region_flags::READ | region_flags::WRITE;
        match index {
            0 => Some(RegionInfo {
                size: 0x4000,
                flags: access | region_flags::MMAP,
                offset: 0,
                sparse: &SPARSE,
            }),
            3 => Some(RegionInfo { size: 0x4000, flags: region_flags::READ, ..RegionInfo::default() }),
            pci_region::CONFIG => Some(RegionInfo { size: 4096, flags: access, ..RegionInfo::default() }),
            _ => (index < pci_region::COUNT).then(RegionInfo::default),
        }
    }

    fn region_fd(&mut self, _: u32) -> Option<FakeDescriptor> {
        Some(self.descriptor.clone())
    }

    fn irq(&self, index: u32) -> Option<IrqInfo> {
        let flags = irq_flags::EVENTFD | irq_flags::MASKABLE;
        let count = if index == pci_irq::MSIX { VECTORS } else { 0 };
        (index < pci_irq::COUNT).then_some(IrqInfo { count, flags })
    }

    /// Suspends short reads at odd offsets after each byte.
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> usize {
        self.check(region, offset, data.len(), region_flags::READ);
        if offset % 2 == 1 && data.len() <= 8 { 1 } else { data.len() }
    }

    /// Suspends short writes whose first byte is odd after each byte.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> usize {
        self.check(region, offset, data.len(), region_flags::WRITE);
        if data[0] % 2 == 1 && data.len() <= 8 { 1 } else { data.len() }
    }

    fn dma_map(&mut self, map: DmaWindow<FakeDescriptor>) -> Result<RequestCompletionTiming, Errno> {
        let end = map.iova.checked_add(map.size).unwrap();
        assert!(map.size > 0 && map.iova.is_multiple_of(4096) && map.size.is_multiple_of(4096));
        assert!(
            self.windows.range(..end).next_back().is_none_or(|(iova, (size, _))| iova + size <= map.iova)
        );
        if map.size == 0x666000 {
            return Err(Errno::ENOMEM);
        }
        if let Some(file) = &map.file {
            assert!(file.offset.is_multiple_of(4096) && file.offset.checked_add(map.size).is_some());
        }
        self.windows.insert(map.iova, (map.size, map.file.map(|file| file.fd)));
        // Windows with this bit in their size (two pages, six, ten and so on) complete later.
        Ok(if map.size & 0x2000 == 0 { RequestCompletionTiming::Now } else { RequestCompletionTiming::Later })
    }

    /// Suspends an unmap of several windows after the highest one.
    fn dma_unmap(&mut self, iova: u64, size: u64) -> u64 {
        let highest = self.windows.range(..iova + size).next_back();
        let (first, last) = highest.map(|(first, (size, _))| (*first, first + size - 1)).unwrap();
        assert!(first >= iova && last < iova + size);
        self.windows.remove(&first);
        if self.windows.range(iova..first).next().is_some() { first - iova } else { 0 }
    }

    fn dma_unmap_all(&mut self) {
        self.windows.clear();
    }

    fn set_irqs(&mut self, set: IrqChange<FakeDescriptor>) -> Result<RequestCompletionTiming, Errno> {
        match set {
            IrqChange::Disable { index } if index == pci_irq::MSIX => self.vectors = Default::default(),
            IrqChange::Disable { index } => assert!(index < pci_irq::COUNT),
            IrqChange::Assign { index, start, fds } => {
                assert_eq!(index, pci_irq::MSIX);
                for (vector, fd) in fds.into_iter().enumerate() {
                    self.vectors[start as usize + vector] = Some(fd);
                }
            }
            IrqChange::Deassign { index, vectors } => {
                assert_eq!(index, pci_irq::MSIX);
                assert!(!vectors.is_empty());
                vectors.for_each(|vector| self.vectors[vector as usize] = None);
            }
            IrqChange::Trigger { index, vector }
            | IrqChange::Mask { index, vector }
            | IrqChange::Unmask { index, vector } => {
                assert!(index == pci_irq::MSIX && vector < VECTORS);
            }
        }
        Ok(RequestCompletionTiming::Now)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// Hostile vfio-user client and the server, joined by buffers.
struct HostileClient {
    session: ServerSession<FakeDescriptor>,
    device: CheckingDevice,
    out: MessageOutbox<FakeDescriptor>,
    received: Vec<u8>,
    descriptor: FakeDescriptor,
}

impl HostileClient {
    /// Passes the client's bytes to the server, as one of its `recvmsg` calls does. Returns false if the connection has
    /// ended.
    fn send(&mut self, bytes: &[u8], fds: usize) -> bool {
        let fds = std::iter::repeat_n(self.descriptor.clone(), fds);
        // A blocked server must not read; one that reads anyway gets an error at a limit.
        if self.session.push(bytes, fds).is_err() {
            return false;
        }
        for _ in 0..100_000 {
            match self.session.step(&mut self.device, &mut self.out) {
                Ok(SessionProgress::Handled | SessionProgress::Suspended) => {}
                Ok(SessionProgress::Starved) => return true,
                Ok(SessionProgress::Waiting) => self.session.complete(Ok(()), &mut self.out),
                Ok(SessionProgress::Blocked) => self.read(usize::MAX),
                Err(_) => return false,
            }
            assert!(self.out.pending() <= OUTBOX_LIMIT + (1 << 20) + 64);
            // One window may be pending.
            assert!(self.device.windows.len() - self.session.dma_maps() <= 1);
        }
        panic!("no end of work");
    }

    /// Takes up to `room` bytes of the server's output, as the client.
    fn read(&mut self, mut room: usize) {
        while let Some(chunk) = self.out.chunk().filter(|_| room > 0) {
            let taken = chunk.bytes.len().min(room);
            self.received.extend_from_slice(&chunk.bytes[..taken]);
            room -= taken;
            self.out.sent(taken);
        }
    }

    /// Checks that the server's output is a sequence of replies.
    fn check_replies(&self) {
        let mut rest = &self.received[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (size, flags, error) = (word(4) as usize, word(8), word(12));
            assert!(flags == 1 && error == 0 || flags == 0x21 && error != 0 && size == 16);
            rest = &rest[size..];
        }
    }
}

/// Takes `count` bytes off the fuzzer's input, or all if there are fewer.
fn take<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    taken
}

fn byte(input: &mut &[u8]) -> u8 {
    take(input, 1).first().copied().unwrap_or(0)
}

/// Returns a vfio-user message with a valid header: command, flags and length from the fuzzer's input.
fn sound_message(input: &mut &[u8]) -> Vec<u8> {
    let (command, style, length) = (byte(input), byte(input), byte(input));
    let mut body = take(input, usize::from(length)).to_vec();
    if style & 0x80 != 0 {
        body.resize(body.len() + (usize::from(style & 0x7f) << 10), 0);
    }
    let size = 16 + body.len() as u32;
    let flags = u32::from(style & 1) << 4;
    let mut message = vec![7, 0, command % 20, 0];
    message.extend(size.to_le_bytes());
    message.extend(flags.to_le_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// Makes the hostile client's next move. Returns false if the connection has ended.
fn play(client: &mut HostileClient, input: &mut &[u8]) -> bool {
    let opcode = byte(input);
    let fds = usize::from(byte(input) % 20);
    match opcode % 4 {
        0 => {
            let length = usize::from(byte(input));
            let bytes = take(input, length);
            client.send(bytes, fds)
        }
        1 | 2 => {
            let message = sound_message(input);
            let cut = usize::from(byte(input)).min(message.len());
            client.send(&message[..cut], 0) && client.send(&message[cut..], fds)
        }
        _ => {
            let room = usize::from(byte(input)) << 6;
            client.read(room);
            true
        }
    }
}

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(input: &[u8]) {
    let descriptor = FakeDescriptor::default();
    let mut client = HostileClient {
        session: ServerSession::new(64),
        device: CheckingDevice::default(),
        out: MessageOutbox::new(),
        received: Vec::new(),
        descriptor: descriptor.clone(),
    };
    let mut input = input;
    // Most inputs begin with a version negotiation, so that the server accepts the messages after it.
    if byte(&mut input) != 0 {
        let text = b"\0\0\0\0{\"capabilities\":{\"write_multiple\":true,\"max_msg_fds\":16}}\0";
        let mut version = vec![1, 0, 1, 0, 16 + text.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        version.extend(text);
        assert!(client.send(&version, 0));
    }
    while !input.is_empty() && play(&mut client, &mut input) {}
    client.read(usize::MAX);
    client.check_replies();
    let HostileClient { session, mut device, descriptor: lent, .. } = client;
    session.close(&mut device);
    drop(lent);
    assert!(device.windows.is_empty() && device.vectors.iter().all(Option::is_none));
    assert_eq!(Rc::strong_count(&descriptor), 1, "every descriptor is closed");
}
