//! Transmit rings: chains that were fetched during a visit, their headers, and their return to the driver. A chain is plain if
//! it holds a frame without a request, or with the usual request for a checksum, in one piece. Plain chains leave in bursts.

use crate::device::VirtioDevice;
use crate::packet::PacketRequest;
use crate::work::ring_memory;
use pcie::burst::{BURST, HEAD};
use pcie::{Bus, Function, HintedMemory};
use plane::{PortIndex, TransmitQueueId};
use rings::{BufferChain, NextPacket, PacketDropReason};
use virtio::net::{NetHeader, NetHeaderFormat};
use virtio::{Chain, ChainBurst, RingError, UsedChain, VirtioFeatures};

/// Bytes of a descriptor of crate `rings`.
const DESCRIPTOR: usize = 16;
/// Bit of a frame that a descriptor describes completely.
const PLAIN: u64 = 1 << 63;
/// Bit of a frame that requests the checksum of TCP or UDP in IPv4 without options.
const SUMMED: u64 = 1 << 62;
/// Bit of a frame that requests UDP's checksum.
const UDP: u64 = 1 << 61;
/// Offset of the transport header behind Ethernet and IPv4 without options, in bytes.
const PLAIN_START: usize = 34;
/// Number of buffers that cost as much as a frame.
const BUFFERS_PER_COST: usize = 8;
/// Number of a packet's first bytes that may hold its headers.
const LOOK: usize = 256;

/// Returns the number of the transmit ring of a queue pair.
pub(crate) const fn transmit_ring(pair: u8) -> u32 {
    2 * pair as u32 + 1
}

/// Format of the transmit descriptors that a visit makes of chains.
#[derive(Debug)]
pub(crate) struct ChainFormat;

impl rings::TxFormat for ChainFormat {
    const LENGTHS: core::ops::RangeInclusive<u32> = 14..=crate::LONGEST_FRAME as u32;

    #[inline(always)]
    fn plain(second: u64) -> Option<u32> {
        (second & (PLAIN | SUMMED) == PLAIN).then_some(second as u32)
    }

    #[inline(always)]
    fn summed(second: u64) -> Option<u32> {
        (second & PLAIN != 0).then_some(second as u32)
    }
}

/// Chains that were fetched from the transmit ring that is being visited.
#[derive(Debug)]
pub(crate) struct SentChains {
    burst: ChainBurst,
    /// Number of chains of the burst that were sent or dropped.
    done: usize,
    /// Chains that were sent or dropped, to be returned to the driver.
    used: [UsedChain; BURST],
    returned: usize,
    heads: [[u8; HEAD]; BURST],
    descriptors: [[u8; DESCRIPTOR]; BURST],
}

impl Default for SentChains {
    fn default() -> Self {
        Self {
            burst: ChainBurst::default(),
            done: 0,
            used: [Chain::default().used(0); BURST],
            returned: 0,
            heads: [[0; HEAD]; BURST],
            descriptors: [[0; DESCRIPTOR]; BURST],
        }
    }
}

impl SentChains {
    /// Returns true if the burst has chains that were neither sent nor dropped.
    fn has_chain(&self) -> bool {
        self.done < self.burst.chains().len()
    }

    /// Marks the next chain as sent or dropped.
    fn pass_chain(&mut self) {
        self.used[self.returned] = self.burst.chains()[self.done].used(0);
        (self.returned, self.done) = (self.returned + 1, self.done + 1);
    }

    /// Marks the next `count` chains, which were described, as sent. Returns how many of them requested a checksum.
    pub(crate) fn pass_described(&mut self, count: usize) -> u64 {
        self.pass(count);
        (0..count).filter(|at| self.requested(*at).is_some()).count() as u64
    }

    /// Marks the next `count` chains as sent.
    pub(crate) fn pass(&mut self, count: usize) {
        (0..count).for_each(|_| self.pass_chain());
    }

    /// Marks all fetched chains as dropped. Returns their number.
    pub(crate) fn pass_all(&mut self) -> u64 {
        let count = self.burst.chains().len() - self.done;
        self.pass(count);
        count as u64
    }

    /// Fetches chains if none is left, at most `most`, after the return of the chains that were sent. Returns true if there is a
    /// chain.
    pub(crate) fn fetch<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        sender: TransmitQueueId,
        most: usize,
        bus: &mut B,
    ) -> Result<bool, RingError> {
        if self.has_chain() {
            return Ok(true);
        }
        self.give_back(device, sender, bus)?;
        self.done = 0;
        let Some(ring) = device.transmit.get_mut(usize::from(sender.queue)) else { return Ok(false) };
        if ring.queue.is_none() {
            return Ok(false);
        }
        let fetched = ring.fetch(sender.port, &mut self.burst, most.min(BURST), bus)?;
        if fetched == 0 {
            device.ready &= !(1 << sender.queue);
        }
        Ok(fetched > 0)
    }

    /// Returns the sent chains to the driver.
    fn give_back<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        sender: TransmitQueueId,
        bus: &mut B,
    ) -> Result<(), RingError> {
        let returned = core::mem::take(&mut self.returned);
        let Some(ring) = device.transmit.get_mut(usize::from(sender.queue)) else { return Ok(()) };
        match &mut ring.queue {
            Some(queue) if returned > 0 => {
                let mut memory = ring_memory(bus, sender.port, &mut ring.hint);
                queue.complete(&mut memory, &self.used[..returned])
            }
            _ => Ok(()),
        }
    }

    /// Ends a visit: returns the sent chains to the driver, puts the others back into the ring, and asks for a notification if
    /// the ring is empty. Returns true if the driver wants an interrupt.
    pub(crate) fn end<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        sender: TransmitQueueId,
        bus: &mut B,
    ) -> Result<bool, RingError> {
        self.give_back(device, sender, bus)?;
        let left = self.burst.chains().get(self.done..).unwrap_or_default();
        let bit = 1 << sender.queue;
        let Some(ring) = device.transmit.get_mut(usize::from(sender.queue)) else { return Ok(false) };
        let Some(queue) = &mut ring.queue else { return Ok(false) };
        queue.unfetch(left);
        self.done = self.burst.chains().len();
        let interrupt = queue.needs_interrupt(&mut ring_memory(bus, sender.port, &mut ring.hint))?;
        // Until the ring is empty the device visits it without a notification.
        if device.ready & bit == 0 && ring.arm(sender.port, bus)? {
            device.ready |= bit;
        }
        Ok(interrupt)
    }

    /// Stops a ring that has failed, and forgets its chains.
    #[cold]
    pub(crate) fn fail(&mut self, device: &mut VirtioDevice, sender: TransmitQueueId) {
        (self.done, self.returned) = (self.burst.chains().len(), 0);
        device.fail(transmit_ring(sender.queue));
    }

    /// Makes descriptors of the next chains, as long as they are plain, `most` at most. Reads the chains' headers.
    pub(crate) fn describe<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        sender: TransmitQueueId,
        most: usize,
        bus: &mut B,
    ) -> &[[u8; DESCRIPTOR]] {
        let format = NetHeaderFormat::of(device.accepted);
        let Some(ring) = device.transmit.get_mut(usize::from(sender.queue)) else { return &[] };
        let (mut sources, mut frames) = ([0; BURST], [(0, 0); BURST]);
        let chains = self.burst.chains().get(self.done..).unwrap_or_default();
        let mut count = 0;
        for chain in chains.iter().take(most) {
            let Some((header, frame)) = in_one_piece(&self.burst, chain, format.size()) else { break };
            (sources[count], frames[count]) = (header, frame);
            count += 1;
        }
        let space = HintedMemory { function: Function::Vf(sender.port.get()), hint: &mut ring.buffers };
        let lengths = [format.size() as u32; BURST];
        let read = bus.gather(space, &sources[..count], &lengths[..count], &mut self.heads);
        let mut described = 0;
        for ((head, (address, length)), place) in
            self.heads.iter().zip(frames).take(read).zip(&mut self.descriptors)
        {
            let Some(bits) = plain_bits(head, length, device.accepted) else { break };
            place[..8].copy_from_slice(&u64::to_le_bytes(address));
            place[8..].copy_from_slice(&(bits | u64::from(length)).to_le_bytes());
            described += 1;
        }
        &self.descriptors[..described]
    }

    /// Returns whether the frame of a descriptor requests UDP's checksum, if it requests one.
    pub(crate) fn requested(&self, at: usize) -> Option<bool> {
        let raw = self.descriptors.get(at)?.last_chunk()?;
        let second = u64::from_le_bytes(*raw);
        (second & SUMMED != 0).then_some(second & UDP != 0)
    }

    /// Takes the next chain as a packet, and puts its buffers without the header into `buffers`. Returns the packet with its cost
    /// in frames. A malformed packet is returned to the driver; [`SentChains::pass`] returns all others.
    pub(crate) fn take<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        port: PortIndex,
        buffers: &mut BufferChain,
        bus: &mut B,
    ) -> (NextPacket<PacketRequest>, usize) {
        let Some(chain) = self.burst.chains().get(self.done).copied() else {
            return (NextPacket::Nothing, 0);
        };
        let cost = 1 + self.burst.readable(&chain).len() / BUFFERS_PER_COST;
        let packet = self.packet(device, port, &chain, buffers, bus);
        let taken = packet.map_or_else(
            |reason| {
                self.pass_chain();
                NextPacket::Dropped(reason)
            },
            NextPacket::Packet,
        );
        (taken, cost)
    }

    fn packet<B: Bus>(
        &self,
        device: &mut VirtioDevice,
        port: PortIndex,
        chain: &Chain,
        buffers: &mut BufferChain,
        bus: &mut B,
    ) -> Result<PacketRequest, PacketDropReason> {
        let size = NetHeaderFormat::of(device.accepted).size();
        let bytes = (chain.readable_bytes() as usize).checked_sub(size).filter(|bytes| *bytes > 0);
        let bytes = match bytes {
            Some(bytes) if chain.fault().is_none() && chain.writable_bytes() == 0 => bytes,
            Some(_) => return Err(PacketDropReason::Descriptor),
            None => return Err(PacketDropReason::Size),
        };
        let (mut raw, function) = ([0; NetHeader::SIZE], Function::Vf(port.get()));
        buffers.clear();
        self.burst.readable(chain).iter().for_each(|buffer| buffers.push(buffer.address, buffer.length));
        buffers.read(function, bus, &mut raw[..size]).map_err(|_| PacketDropReason::Fault)?;
        buffers.skip(size);
        let asked = NetHeader::parse(&raw).check(bytes, device.accepted);
        let asked = asked.map_err(|_| PacketDropReason::Offload)?;
        device.counters.checksums += u64::from(asked.checksum.is_some());
        device.counters.segmented += u64::from(asked.segmentation.is_some());
        let mut head = [0; LOOK];
        let head = &mut head[..bytes.min(LOOK)];
        if asked.segmentation.is_some() {
            buffers.read(function, bus, head).map_err(|_| PacketDropReason::Fault)?;
        }
        PacketRequest::of(&asked, head).ok_or(PacketDropReason::Offload)
    }
}

/// Returns the address of a chain's header, and address and length of its frame, if each lies in one buffer.
#[inline]
fn in_one_piece(burst: &ChainBurst, chain: &Chain, size: usize) -> Option<(u64, (u64, u32))> {
    let size = size as u32;
    match burst.readable(chain) {
        [only] if only.length > size => {
            Some((only.address, (only.address + u64::from(size), only.length - size)))
        }
        [header, frame] if header.length == size => Some((header.address, (frame.address, frame.length))),
        _ => None,
    }
    .filter(|_| chain.writable_bytes() == 0)
}

/// Returns the bits of a plain frame with a header. `None` if the frame requests more than a usual checksum.
#[inline]
fn plain_bits(head: &[u8; HEAD], length: u32, accepted: VirtioFeatures) -> Option<u64> {
    let header = NetHeader::parse(head.first_chunk()?);
    if header.is_plain() {
        return Some(PLAIN);
    }
    let asked = header.check(length as usize, accepted).ok()?;
    let checksum = asked.checksum.filter(|checksum| checksum.start() == PLAIN_START)?;
    let udp = match checksum.transport() {
        virtio::net::PartialTransport::Tcp => 0,
        virtio::net::PartialTransport::Udp => UDP,
        virtio::net::PartialTransport::Other => return None,
    };
    asked.segmentation.is_none().then_some(PLAIN | SUMMED | udp)
}
