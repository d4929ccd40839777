//! Scripted conversations with a vfio-user session: requests, replies, and a device that records its calls.

use std::rc::Rc;

use vfio_user::decoder::ProtocolError;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{
    DmaWindow, IrqChange, RegionInfo, RequestCompletionTiming, ServedDevice, ServerSession, SessionProgress,
};
use vfio_user::types::{DeviceInfo, IrqInfo, SparseArea};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

/// Simulated file descriptor, a reference count by which tests find leaked descriptors.
pub(crate) type CountedFd = Rc<i32>;

pub(crate) const BAR0_SIZE: u64 = 0x4000;
pub(crate) const MSIX_VECTORS: u32 = 3;

pub(crate) const COMMAND: u32 = 0;
pub(crate) const REPLY: u32 = 1;
pub(crate) const NO_REPLY: u32 = 1 << 4;
pub(crate) const ERROR: u32 = 1 << 5;

pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOTSUP: u32 = 95;

/// Simulated PCI function that records its calls: BAR0 and BAR3 of 16 KiB, configuration space, and three
/// MSI-X vectors.
#[derive(Default)]
pub(crate) struct RecordingDevice {
    pub(crate) bar0: Vec<u8>,
    /// True if BAR0's upper half is mappable.
    pub(crate) mapped: bool,
    pub(crate) said: Vec<String>,
    pub(crate) maps: Vec<DmaWindow<CountedFd>>,
    pub(crate) vectors: [Option<CountedFd>; MSIX_VECTORS as usize],
    pub(crate) refuse: Option<Errno>,
    /// True if the device finishes DMA maps and interrupt requests after the call has returned.
    pub(crate) later: bool,
    /// Number of bytes after which the device suspends a read or a message of writes, or of windows after which it suspends
    /// an unmap; `None` for never.
    pub(crate) allowance: Option<usize>,
}

const SPARSE: [SparseArea; 1] = [SparseArea { offset: 0x2000, size: 0x2000 }];

impl RecordingDevice {
    fn completion(&self) -> RequestCompletionTiming {
        if self.later { RequestCompletionTiming::Later } else { RequestCompletionTiming::Now }
    }

    fn note(&mut self, what: String) -> Result<(), Errno> {
        self.said.push(what);
        self.refuse.map_or(Ok(()), Err)
    }
}

impl RecordingDevice {
    /// Takes up to `bytes` bytes from the allowance. Returns their number.
    fn allow(&mut self, bytes: usize) -> usize {
        let Some(left) = &mut self.allowance else { return bytes };
        let allowed = bytes.min(*left);
        *left -= allowed;
        allowed
    }
}

impl ServedDevice<CountedFd> for RecordingDevice {
    fn info(&self) -> DeviceInfo {
        let flags = device_flags::PCI | device_flags::RESET;
        DeviceInfo { flags, regions: pci_region::COUNT, irqs: pci_irq::COUNT }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let access = region_flags::READ | region_flags::WRITE;
        match index {
            pci_region::BAR0 if self.mapped => Some(RegionInfo {
                size: BAR0_SIZE,
                flags: access | region_flags::MMAP,
                offset: 0x10000,
                sparse: &SPARSE,
            }),
            pci_region::BAR0 | pci_region::BAR3 => {
                Some(RegionInfo { size: BAR0_SIZE, flags: access, ..RegionInfo::default() })
            }
            pci_region::CONFIG => Some(RegionInfo { size: 4096, flags: access, ..RegionInfo::default() }),
            pci_region::VGA | 0..pci_region::VGA => Some(RegionInfo::default()),
            _ => None,
        }
    }

    fn region_fd(&mut self, index: u32) -> Option<CountedFd> {
        (index == pci_region::BAR0).then(|| Rc::new(77))
    }

    fn irq(&self, index: u32) -> Option<IrqInfo> {
        let msix = IrqInfo { count: MSIX_VECTORS, flags: irq_flags::EVENTFD };
        match index {
            pci_irq::MSIX => Some(msix),
            0..pci_irq::COUNT => Some(IrqInfo::default()),
            _ => None,
        }
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> usize {
        let data = match self.allow(data.len()) {
            0 => return 0,
            bytes => &mut data[..bytes],
        };
        assert!(!data.is_empty() && offset + data.len() as u64 <= self.region(region).unwrap().size);
        if region == pci_region::BAR0 && !self.bar0.is_empty() {
            data.copy_from_slice(&self.bar0[offset as usize..][..data.len()]);
        }
        if data.len() <= 8 {
            self.said.push(format!("read {region} {offset:#x} {}", data.len()));
        }
        data.len()
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> usize {
        let data = match self.allow(data.len()) {
            0 => return 0,
            bytes => &data[..bytes],
        };
        assert!(!data.is_empty() && offset + data.len() as u64 <= self.region(region).unwrap().size);
        if region == pci_region::BAR0 && !self.bar0.is_empty() {
            self.bar0[offset as usize..][..data.len()].copy_from_slice(data);
        }
        if data.len() <= 8 {
            self.said.push(format!("write {region} {offset:#x} {data:x?}"));
        }
        data.len()
    }

    fn dma_map(&mut self, map: DmaWindow<CountedFd>) -> Result<RequestCompletionTiming, Errno> {
        let file = map.file.as_ref().map(|file| (*file.fd, file.offset));
        self.note(format!("map {:#x}+{:#x} {} {file:?}", map.iova, map.size, map.writable))?;
        self.maps.push(map);
        Ok(self.completion())
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) -> u64 {
        let inside = |map: &DmaWindow<CountedFd>| map.iova >= iova && map.iova - iova + map.size <= size;
        let mut windows: Vec<u64> = self.maps.iter().filter(|map| inside(map)).map(|map| map.iova).collect();
        windows.sort_unstable();
        assert!(!windows.is_empty(), "only what is mapped is unmapped");
        let removed = windows.split_off(windows.len() - self.allow(windows.len()));
        self.maps.retain(|map| !removed.contains(&map.iova));
        let rest = match windows.is_empty() {
            true => 0,
            false => removed.first().map_or(size, |lowest| lowest - iova),
        };
        self.said.push(format!("unmap {:#x}+{:#x}", iova + rest, size - rest));
        rest
    }

    fn dma_unmap_all(&mut self) {
        self.said.push("unmap all".into());
        self.maps.clear();
    }

    fn set_irqs(&mut self, set: IrqChange<CountedFd>) -> Result<RequestCompletionTiming, Errno> {
        self.note(format!("{set:?}"))?;
        match set {
            IrqChange::Disable { index: pci_irq::MSIX } => self.vectors = Default::default(),
            IrqChange::Assign { start, fds, .. } => {
                for (vector, fd) in fds.into_iter().enumerate() {
                    self.vectors[start as usize + vector] = Some(fd);
                }
            }
            IrqChange::Deassign { vectors, .. } => {
                vectors.for_each(|vector| self.vectors[vector as usize] = None);
            }
            _ => {}
        }
        Ok(self.completion())
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.note("reset".into())
    }
}

/// Server's reply as the test received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedReply {
    pub(crate) id: u16,
    pub(crate) command: u16,
    pub(crate) flags: u32,
    pub(crate) error: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) fds: Vec<i32>,
}

/// Server session with its device and its outbox, and the message id of the client's next request.
#[derive(Default)]
pub(crate) struct ScriptedSession {
    pub(crate) session: ServerSession<CountedFd>,
    pub(crate) device: RecordingDevice,
    pub(crate) out: MessageOutbox<CountedFd>,
    next_id: u16,
}

impl ScriptedSession {
    /// Creates a session that has received no message.
    pub(crate) fn fresh() -> Self {
        Self { next_id: 100, ..Self::default() }
    }

    /// Creates a session that has negotiated the version with a QEMU-like client.
    pub(crate) fn agreed() -> Self {
        let mut script = Self::fresh();
        script.ask(1, &version_body(QEMU_CAPABILITIES));
        script
    }

    /// Delivers the bytes and descriptors of one `recvmsg` to the session, which handles every whole message.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        fds: Vec<CountedFd>,
    ) -> Result<SessionProgress, ProtocolError> {
        self.session.push(bytes, fds)?;
        loop {
            match self.session.step(&mut self.device, &mut self.out)? {
                SessionProgress::Handled => {}
                step => return Ok(step),
            }
        }
    }

    /// Builds a message of the client, with the next message id.
    pub(crate) fn message(&mut self, command: u16, flags: u32, body: &[u8]) -> Vec<u8> {
        self.next_id += 1;
        message(self.next_id, command, flags, body)
    }

    /// Sends a request, and asserts that one reply with the same id and command comes. Returns the reply.
    #[track_caller]
    pub(crate) fn request(&mut self, command: u16, body: &[u8], fds: Vec<CountedFd>) -> ReceivedReply {
        let bytes = self.message(command, COMMAND, body);
        self.receive(&bytes, fds).unwrap();
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1, "one request, one reply");
        let reply = replies.remove(0);
        assert_eq!((reply.id, reply.command), (self.next_id, command), "id and command are echoed");
        reply
    }

    /// Sends a request, which must succeed. Returns the body of the reply.
    #[track_caller]
    pub(crate) fn ask(&mut self, command: u16, body: &[u8]) -> Vec<u8> {
        self.ask_with(command, body, Vec::new())
    }

    /// Sends a request with descriptors, which must succeed. Returns the body of the reply.
    #[track_caller]
    pub(crate) fn ask_with(&mut self, command: u16, body: &[u8], fds: Vec<CountedFd>) -> Vec<u8> {
        let reply = self.request(command, body, fds);
        assert_eq!((reply.flags, reply.error), (REPLY, 0), "success");
        reply.body
    }

    /// Sends a request, which must fail. Returns the error number of the reply.
    #[track_caller]
    pub(crate) fn refused(&mut self, command: u16, body: &[u8]) -> u32 {
        self.refused_with(command, body, Vec::new())
    }

    /// Sends a request with descriptors, which must fail. Returns the error number of the reply.
    #[track_caller]
    pub(crate) fn refused_with(&mut self, command: u16, body: &[u8], fds: Vec<CountedFd>) -> u32 {
        let reply = self.request(command, body, fds);
        assert_eq!(reply.flags, REPLY | ERROR, "an error reply is a reply");
        assert!(reply.body.is_empty(), "an error reply is a header only");
        assert_ne!(reply.error, 0, "clients take 0 for success");
        reply.error
    }

    /// Sends a request with `NO_REPLY`, and asserts that no reply comes.
    #[track_caller]
    pub(crate) fn tell(&mut self, command: u16, body: &[u8]) {
        let bytes = self.message(command, NO_REPLY, body);
        assert_eq!(self.receive(&bytes, Vec::new()), Ok(SessionProgress::Starved));
        assert_eq!(self.replies(), [], "no reply to NO_REPLY");
    }

    /// Takes and parses all unsent replies of the session.
    pub(crate) fn replies(&mut self) -> Vec<ReceivedReply> {
        take_replies(&mut self.out)
    }

    /// Returns the calls of the device since the last call of this function.
    pub(crate) fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.device.said)
    }
}

pub(crate) fn take_replies(out: &mut MessageOutbox<CountedFd>) -> Vec<ReceivedReply> {
    let (mut bytes, mut with_fds) = (Vec::new(), Vec::new());
    while let Some(chunk) = out.chunk() {
        if !chunk.fds.is_empty() {
            with_fds.push((bytes.len(), chunk.fds.iter().map(|fd| **fd).collect::<Vec<_>>()));
        }
        bytes.extend_from_slice(chunk.bytes);
        let sent = chunk.bytes.len();
        out.sent(sent);
    }
    let (mut replies, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let header = &bytes[at..at + 16];
        let size = u32_at(header, 4) as usize;
        let fds = with_fds.iter().find(|(start, _)| *start == at).map(|(_, fds)| fds.clone());
        replies.push(ReceivedReply {
            id: u16_at(header, 0),
            command: u16_at(header, 2),
            flags: u32_at(header, 8),
            error: u32_at(header, 12),
            body: bytes[at + 16..at + size].to_vec(),
            fds: fds.unwrap_or_default(),
        });
        at += size;
    }
    replies
}

pub(crate) const QEMU_CAPABILITIES: &str = concat!(
    r#"{"capabilities":{"pgsizes":4096,"max_msg_fds":16,"max_dma_maps":65535,"max_data_xfer_size":1048576,"#,
    r#""migration":{"max_bitmap_size":268435456,"pgsize":4096},"write_multiple":true}}"#,
    "\0"
);

pub(crate) fn message(id: u16, command: u16, flags: u32, body: &[u8]) -> Vec<u8> {
    sized_message(id, command, flags, 16 + body.len() as u32, body)
}

pub(crate) fn sized_message(id: u16, command: u16, flags: u32, size: u32, body: &[u8]) -> Vec<u8> {
    let words = [size.to_le_bytes(), flags.to_le_bytes(), [0; 4]];
    [&id.to_le_bytes()[..], &command.to_le_bytes(), &words.concat(), body].concat()
}

pub(crate) fn version_body(capabilities: &str) -> Vec<u8> {
    [&[0, 0, 0, 0], capabilities.as_bytes()].concat()
}

/// Returns the bytes of 32-bit words in little-endian order.
pub(crate) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn access(region: u32, offset: u64, count: u32, data: &[u8]) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &words(&[region, count]), data].concat()
}

pub(crate) fn dma_map(flags: u32, offset: u64, iova: u64, size: u64) -> Vec<u8> {
    let long = [offset.to_le_bytes(), iova.to_le_bytes(), size.to_le_bytes()];
    [words(&[32, flags]), long.concat()].concat()
}

pub(crate) fn dma_unmap(flags: u32, iova: u64, size: u64) -> Vec<u8> {
    [words(&[24, flags]), [iova.to_le_bytes(), size.to_le_bytes()].concat()].concat()
}

pub(crate) fn set_irqs(flags: u32, index: u32, start: u32, count: u32) -> Vec<u8> {
    words(&[20, flags, index, start, count])
}

pub(crate) fn fds(numbers: &[i32]) -> Vec<CountedFd> {
    numbers.iter().map(|&number| Rc::new(number)).collect()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
