//! Client of the vfio-user protocol: encodes requests into a [`MessageOutbox`] and matches replies with them.
//!
//! A server may send requests of its own, to access memory by message (DMA_READ, DMA_WRITE); this client treats
//! them as an error. Any number of requests may be pending; replies come in their order.

mod reply;

use alloc::{collections::VecDeque, vec::Vec};

use thiserror::Error;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

pub use reply::{RegionLayout, ReplyContents, ServerReply};

use crate::decoder::{Decoder, ProtocolError};
use crate::outbox::MessageOutbox;
use crate::wire::{
    Command, DMA_PAGE_SIZE, DeviceInfoBody, DmaMapBody, DmaUnmapBody, IrqInfoBody, IrqSetBody, MAX_DATA_XFER,
    MAX_DMA_MAPS, MAX_MESSAGE_FDS, MessageHeader, MessageType, MultiWriteBody, MultiWriteEntry,
    RegionAccessBody, RegionInfoBody, VERSION_MAJOR, VERSION_MINOR, VersionBody, VersionCapabilities,
    dma_flags, irq_set,
};

/// Violation of the vfio-user protocol by the server: end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ServerViolation {
    /// The client can no longer find the boundaries between the server's messages.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A reply matches no pending request.
    #[error("unexpected vfio-user reply {id} to command {command}")]
    UnexpectedReply {
        /// Message id of the unexpected reply.
        id: u16,
        /// Command that the unexpected reply answers.
        command: u16,
    },
    /// The body of a reply is too short, too long, or inconsistent.
    #[error("malformed vfio-user reply to command {0:?}")]
    MalformedReply(Command),
    /// The server has sent a request, which this client does not support.
    #[error("unsupported vfio-user request from the server: command {0}")]
    UnexpectedRequest(u16),
}

/// DMA window that the client maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientDmaWindow {
    /// First device address of the DMA window, a multiple of 4,096.
    pub iova: u64,
    /// Size of the DMA window in bytes, a multiple of 4,096.
    pub size: u64,
    /// Offset of the DMA window in its file; 0 without a file.
    pub offset: u64,
    /// True if the device may write the window, not only read it.
    pub writable: bool,
}

/// Client side of a vfio-user connection. Every request returns its id, which its [`ServerReply`] repeats.
#[derive(Debug)]
pub struct Client<F> {
    decoder: Decoder<F>,
    next_id: u16,
    pending: VecDeque<(u16, Command)>,
}

impl<F> Default for Client<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> Client<F> {
    /// Creates the client side of a new connection. The first request must be [`version`](Self::version).
    pub fn new() -> Self {
        Self { decoder: Decoder::new(max_body), next_id: 0, pending: VecDeque::new() }
    }

    /// Proposes the newest protocol version, with all capabilities of this crate.
    pub fn version<G>(&mut self, out: &mut MessageOutbox<G>) -> u16 {
        let capabilities = VersionCapabilities {
            max_msg_fds: Some(MAX_MESSAGE_FDS as u64),
            max_data_xfer_size: Some(u64::from(MAX_DATA_XFER)),
            max_dma_maps: Some(u64::from(MAX_DMA_MAPS)),
            pgsizes: Some(DMA_PAGE_SIZE),
            write_multiple: Some(true),
        };
        let (_, text) = capabilities.render(usize::MAX);
        let body = VersionBody { major: U16::new(VERSION_MAJOR), minor: U16::new(VERSION_MINOR) };
        self.request(out, Command::Version, &[body.as_bytes(), &text], Vec::new())
    }

    /// Requests the properties of the device ([`ReplyContents::DeviceInfo`]).
    pub fn device_info<G>(&mut self, out: &mut MessageOutbox<G>) -> u16 {
        let body = DeviceInfoBody { argsz: size_of_body::<DeviceInfoBody>(), ..Default::default() };
        self.request(out, Command::DeviceGetInfo, &[body.as_bytes()], Vec::new())
    }

    /// Requests the properties of a region ([`ReplyContents::Region`]) in a reply body of at most `room` bytes. With
    /// room for the fixed part only (32 bytes), the reply's `argsz` is the size of the full reply body.
    pub fn region_info<G>(&mut self, out: &mut MessageOutbox<G>, index: u32, room: u32) -> u16 {
        let body =
            RegionInfoBody { argsz: U32::new(room), index: U32::new(index), ..RegionInfoBody::default() };
        self.request(out, Command::DeviceGetRegionInfo, &[body.as_bytes()], Vec::new())
    }

    /// Requests the properties of an interrupt type ([`ReplyContents::Irq`]).
    pub fn irq_info<G>(&mut self, out: &mut MessageOutbox<G>, index: u32) -> u16 {
        let argsz = size_of_body::<IrqInfoBody>();
        let body = IrqInfoBody { argsz, index: U32::new(index), ..IrqInfoBody::default() };
        self.request(out, Command::DeviceGetIrqInfo, &[body.as_bytes()], Vec::new())
    }

    /// Requests the mapping of a DMA window. Without a descriptor the server cannot access the window's memory.
    pub fn dma_map<G>(&mut self, out: &mut MessageOutbox<G>, window: ClientDmaWindow, fd: Option<G>) -> u16 {
        let flags = dma_flags::READ | if window.writable { dma_flags::WRITE } else { 0 };
        let body = DmaMapBody {
            argsz: size_of_body::<DmaMapBody>(),
            flags: U32::new(flags),
            offset: U64::new(window.offset),
            address: U64::new(window.iova),
            size: U64::new(window.size),
        };
        self.request(out, Command::DmaMap, &[body.as_bytes()], fd.into_iter().collect())
    }

    /// Requests the unmapping of all DMA windows inside the `size` bytes at `iova`. Keep the windows' memory until the
    /// reply.
    pub fn dma_unmap<G>(&mut self, out: &mut MessageOutbox<G>, iova: u64, size: u64) -> u16 {
        self.unmap(out, 0, iova, size)
    }

    /// Requests the unmapping of all DMA windows.
    pub fn dma_unmap_all<G>(&mut self, out: &mut MessageOutbox<G>) -> u16 {
        self.unmap(out, dma_flags::UNMAP_ALL, 0, 0)
    }

    fn unmap<G>(&mut self, out: &mut MessageOutbox<G>, flags: u32, iova: u64, size: u64) -> u16 {
        let body = DmaUnmapBody {
            argsz: size_of_body::<DmaUnmapBody>(),
            flags: U32::new(flags),
            address: U64::new(iova),
            size: U64::new(size),
        };
        self.request(out, Command::DmaUnmap, &[body.as_bytes()], Vec::new())
    }

    /// Requests `count` bytes of a region, at most 1 MiB; the reply is [`ReplyContents::Data`].
    pub fn read<G>(&mut self, out: &mut MessageOutbox<G>, region: u32, offset: u64, count: u32) -> u16 {
        let body = access(region, offset, count);
        self.request(out, Command::RegionRead, &[body.as_bytes()], Vec::new())
    }

    /// Requests a write of bytes to a region, with a reply: [`ReplyContents::Done`].
    pub fn write<G>(&mut self, out: &mut MessageOutbox<G>, region: u32, offset: u64, data: &[u8]) -> u16 {
        let body = access(region, offset, data.len() as u32);
        self.request(out, Command::RegionWrite, &[body.as_bytes(), data], Vec::new())
    }

    /// Requests a write of bytes to a region, without a reply.
    pub fn write_posted<G>(&mut self, out: &mut MessageOutbox<G>, region: u32, offset: u64, data: &[u8]) {
        let body = access(region, offset, data.len() as u32);
        let body = [body.as_bytes(), data];
        self.send(out, Command::RegionWrite, &body, Vec::new(), true);
    }

    /// Requests writes of several values of up to 8 bytes each (longer values are truncated), without a reply. The
    /// server must have negotiated `write_multiple`.
    pub fn write_multi_posted<G>(&mut self, out: &mut MessageOutbox<G>, writes: &[(u32, u64, &[u8])]) {
        let head = MultiWriteBody { wr_cnt: U64::new(writes.len() as u64) };
        let entries: Vec<MultiWriteEntry> = writes.iter().map(multi_entry).collect();
        let body = [head.as_bytes(), entries.as_bytes()];
        self.send(out, Command::RegionWriteMulti, &body, Vec::new(), true);
    }

    /// Assigns eventfds to the interrupt vectors of interrupt type `index` from `start` on.
    pub fn assign_irqs<G>(&mut self, out: &mut MessageOutbox<G>, index: u32, start: u32, fds: Vec<G>) -> u16 {
        let count = fds.len() as u32;
        self.set_irqs(out, irq_set::DATA_EVENTFD | irq_set::ACTION_TRIGGER, (index, start, count), fds)
    }

    /// Removes the eventfds of `count` interrupt vectors from `start` on.
    pub fn deassign_irqs<G>(
        &mut self,
        out: &mut MessageOutbox<G>,
        index: u32,
        start: u32,
        count: u32,
    ) -> u16 {
        self.set_irqs(out, irq_set::DATA_EVENTFD | irq_set::ACTION_TRIGGER, (index, start, count), Vec::new())
    }

    /// Requests that the device disables an interrupt type.
    pub fn disable_irqs<G>(&mut self, out: &mut MessageOutbox<G>, index: u32) -> u16 {
        self.set_irqs(out, irq_set::DATA_NONE | irq_set::ACTION_TRIGGER, (index, 0, 0), Vec::new())
    }

    /// Requests that the device unmasks an interrupt vector. For interrupt types whose vectors are masked when they
    /// fire.
    pub fn unmask_irq<G>(&mut self, out: &mut MessageOutbox<G>, index: u32, vector: u32) -> u16 {
        self.set_irqs(out, irq_set::DATA_NONE | irq_set::ACTION_UNMASK, (index, vector, 1), Vec::new())
    }

    fn set_irqs<G>(
        &mut self,
        out: &mut MessageOutbox<G>,
        flags: u32,
        (index, start, count): (u32, u32, u32),
        fds: Vec<G>,
    ) -> u16 {
        let body = IrqSetBody {
            argsz: size_of_body::<IrqSetBody>(),
            flags: U32::new(flags),
            index: U32::new(index),
            start: U32::new(start),
            count: U32::new(count),
        };
        self.request(out, Command::DeviceSetIrqs, &[body.as_bytes()], fds)
    }

    /// Requests a reset of the device.
    pub fn reset<G>(&mut self, out: &mut MessageOutbox<G>) -> u16 {
        self.request(out, Command::DeviceReset, &[], Vec::new())
    }

    fn request<G>(
        &mut self,
        out: &mut MessageOutbox<G>,
        command: Command,
        body: &[&[u8]],
        fds: Vec<G>,
    ) -> u16 {
        let id = self.send(out, command, body, fds, false);
        self.pending.push_back((id, command));
        id
    }

    fn send<G>(
        &mut self,
        out: &mut MessageOutbox<G>,
        command: Command,
        body: &[&[u8]],
        fds: Vec<G>,
        no_reply: bool,
    ) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let size = body.iter().map(|part| part.len()).sum();
        out.message(&MessageHeader::request(id, command, size, no_reply), body, fds);
        id
    }

    /// Returns the number of requests that the server has not answered.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Adds the received bytes and descriptors of one `recvmsg` call; then call [`next_reply`](Self::next_reply) until
    /// it returns `None`.
    ///
    /// # Errors
    /// Too many unread bytes are buffered.
    pub fn push(&mut self, bytes: &[u8], fds: impl IntoIterator<Item = F>) -> Result<(), ServerViolation> {
        Ok(self.decoder.push(bytes, fds)?)
    }

    /// Returns the server's next reply, or `None` if it has not arrived.
    ///
    /// # Errors
    /// The server has violated the protocol.
    pub fn next_reply(&mut self) -> Result<Option<ServerReply<'_, F>>, ServerViolation> {
        let Some(message) = self.decoder.next_message()? else { return Ok(None) };
        let (id, command) = (message.header.id.get(), message.header.command.get());
        if message.header.kind() != MessageType::Reply {
            return Err(ServerViolation::UnexpectedRequest(command));
        }
        // The server handles commands in order, so their replies come in order.
        let expected =
            self.pending.pop_front_if(|(pending, asked)| *pending == id && asked.number() == command);
        let (_, command) = expected.ok_or(ServerViolation::UnexpectedReply { id, command })?;
        reply::parse(id, command, message).map(Some)
    }
}

/// Returns the maximum body of a server's message in bytes: the command's limit for a reply to a known command, and 0
/// for other messages.
fn max_body(header: &MessageHeader) -> usize {
    match (header.kind(), Command::from_number(header.command.get())) {
        (MessageType::Reply, Some(command)) => command.max_reply_body(),
        _ => 0,
    }
}

fn size_of_body<T>() -> U32 {
    U32::new(size_of::<T>() as u32)
}

fn access(region: u32, offset: u64, count: u32) -> RegionAccessBody {
    RegionAccessBody { offset: U64::new(offset), region: U32::new(region), count: U32::new(count) }
}

fn multi_entry(&(region, offset, data): &(u32, u64, &[u8])) -> MultiWriteEntry {
    let count = data.len().min(8);
    let mut entry = MultiWriteEntry {
        offset: U64::new(offset),
        region: U32::new(region),
        count: U32::new(count as u32),
        data: [0; 8],
    };
    entry.data[..count].copy_from_slice(&data[..count]);
    entry
}
