//! Transmit rings: chains that were fetched during a visit, their headers, and their return to the driver. A chain is plain if
//! it holds a frame without a request, or with the usual request for a checksum, in one piece. Plain chains leave in bursts.

use crate::device::VirtioDevice;
use crate::packet::PacketOffloadRequest;
use pcie::burst::{BURST, HEAD};
use pcie::{Bus, Function, HintedMemory};
use plane::{PortIndex, TransmitQueueId};
use rings::{BufferChain, NextPacketResult, PacketDropReason};
use virtio::chain::MAX_CHAIN;
use virtio::net::{NetHeader, NetHeaderFormat, PartialTransport, flag, gso};
use virtio::{Chain, ChainBurst, RingError, VirtioFeatures};

/// Bytes of a transmit descriptor for crate `rings`.
const DESCRIPTOR: usize = 16;
/// Descriptor bit: the descriptor describes its frame completely.
const PLAIN: u64 = 1 << 63;
/// Descriptor bit: the frame requests the checksum of TCP or UDP in IPv4 without options.
const SUMMED: u64 = 1 << 62;
/// Descriptor bit: the requested checksum is UDP's.
const UDP: u64 = 1 << 61;
/// Offset in bytes of a transport header that follows an Ethernet header and an IPv4 header without options.
const PLAIN_START: usize = 34;
/// Number of buffers that reduce a visit's budget as much as one frame.
const BUFFERS_PER_COST: usize = 8;
/// Length of the longest packet to segment, in bytes: an IPv6 header, 65,535 bytes behind it, and an Ethernet header
/// with two tags. A longer one is no IP packet, and would let its driver make the card allocate any amount of memory.
pub(crate) const LONGEST_PACKET: usize = 40 + 65_535 + 22;
/// Number of bytes at the start of a packet in which its headers must lie.
const LOOK: usize = 256;

/// Returns the number of the transmit ring of a queue pair.
pub(crate) const fn transmit_ring(pair: u8) -> u32 {
    2 * pair as u32 + 1
}

/// Returns the cost of a chain of a burst, in frames. The search for the end of a malformed chain costs as much as the longest
/// chain.
pub(crate) fn cost_of_chain(burst: &ChainBurst, chain: &Chain) -> usize {
    let buffers = if chain.fault().is_some() { MAX_CHAIN } else { burst.readable(chain).len() };
    1 + buffers / BUFFERS_PER_COST
}

/// Format of the transmit descriptors that this module makes of plain chains, for crate `rings`.
#[derive(Debug)]
pub(crate) struct VirtioTxFormat;

impl rings::TxFormat for VirtioTxFormat {
    const LENGTHS: core::ops::RangeInclusive<u32> = 14..=crate::limits::LONGEST_FRAME as u32;

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
pub(crate) struct FetchedTransmitChains {
    burst: ChainBurst,
    /// Number of the burst's chains that were sent or dropped. The next field counts those already returned to the
    /// driver.
    done: usize,
    returned: usize,
    heads: [[u8; HEAD]; BURST],
    descriptors: [[u8; DESCRIPTOR]; BURST],
}

impl Default for FetchedTransmitChains {
    fn default() -> Self {
        Self {
            burst: ChainBurst::default(),
            done: 0,
            returned: 0,
            heads: [[0; HEAD]; BURST],
            descriptors: [[0; DESCRIPTOR]; BURST],
        }
    }
}

impl FetchedTransmitChains {
    /// Returns true if the burst has chains that were neither sent nor dropped.
    fn has_chain(&self) -> bool {
        self.done < self.burst.chains().len()
    }

    /// Marks the next `count` chains, which [`Self::describe`] made descriptors of, as sent. Returns the number of
    /// those that requested a checksum.
    pub(crate) fn pass_described(&mut self, count: usize) -> u64 {
        self.pass(count);
        (0..count).filter(|at| self.requested(*at).is_some()).count() as u64
    }

    /// Marks the next `count` chains as sent.
    pub(crate) fn pass(&mut self, count: usize) {
        self.done = (self.done + count).min(self.burst.chains().len());
    }

    /// Marks the remaining chains of the burst as dropped. Returns their number.
    pub(crate) fn pass_all(&mut self) -> u64 {
        let count = self.burst.chains().len() - self.done;
        self.pass(count);
        count as u64
    }

    /// Returns sent chains to the driver and fetches up to `most` new ones, unless fetched chains are left. Returns
    /// true if there is a chain to send.
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
        (self.done, self.returned) = (0, 0);
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
        let sent = self.burst.chains().get(self.returned..self.done).unwrap_or_default();
        let ring = device.transmit.get_mut(usize::from(sender.queue)).filter(|_| !sent.is_empty());
        if let Some((Some(queue), mut memory)) = ring.map(|ring| ring.memory(sender.port, bus)) {
            let mut used = [Chain::default().used(0); BURST];
            used.iter_mut().zip(sent).for_each(|(place, chain)| *place = chain.used(0));
            let used = used.get(..sent.len()).unwrap_or_default();
            // After a fault the chains stay to be returned: a ring that continues would otherwise never return them.
            queue.complete(&mut memory, used)?;
        }
        self.returned = self.done;
        Ok(())
    }

    /// Ends a visit: returns the sent chains to the driver, and puts the others back into the ring. The card polls the ring
    /// if it is empty. Returns true if the driver requests an interrupt.
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
        let (Some(queue), mut memory) = ring.memory(sender.port, bus) else { return Ok(false) };
        queue.unfetch(left);
        (self.done, self.returned) = (self.burst.chains().len(), self.burst.chains().len());
        let interrupt = queue.needs_interrupt(&mut memory)?;
        if device.ready & bit == 0 {
            device.begin_poll(sender.queue);
        }
        Ok(interrupt)
    }

    /// Stops a ring after a fault, and discards the chains fetched from it.
    #[cold]
    pub(crate) fn fail(&mut self, device: &mut VirtioDevice, sender: TransmitQueueId) {
        (self.done, self.returned) = (self.burst.chains().len(), self.burst.chains().len());
        device.fail(transmit_ring(sender.queue));
    }

    /// Makes descriptors of up to `most` of the next chains, up to the first that is not plain. Reads the chains'
    /// headers.
    pub(crate) fn describe<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        sender: TransmitQueueId,
        most: usize,
        bus: &mut B,
    ) -> &[[u8; DESCRIPTOR]] {
        let format = NetHeaderFormat::of(device.accepted);
        let Some(ring) = device.transmit.get_mut(usize::from(sender.queue)) else { return &[] };
        let (mut sources, mut lengths, mut count) = ([0; BURST], [0; BURST], 0);
        let chains = self.burst.chains().get(self.done..).unwrap_or_default();
        let places = sources.iter_mut().zip(&mut lengths).zip(&mut self.descriptors);
        for (chain, ((source, length), place)) in chains.iter().take(most).zip(places) {
            let Some((header, frame)) = in_one_piece(&self.burst, chain, format.size()) else { break };
            (*source, *length) = header;
            *place = descriptor(frame.0, u64::from(frame.1));
            count += 1;
        }
        let space = HintedMemory { function: Function::Vf(sender.port.get()), hint: &mut ring.buffers };
        let read = bus.gather(space, &sources[..count], &lengths[..count], &mut self.heads);
        let mut described = 0;
        for (head, place) in self.heads[..read.min(count)].iter().zip(&mut self.descriptors) {
            let [address, length] = place.as_chunks().0 else { break };
            let (address, length) = (u64::from_le_bytes(*address), u64::from_le_bytes(*length));
            let Some(bits) = plain_bits(head, length, device.accepted) else { break };
            *place = descriptor(address, length | bits);
            described += 1;
        }
        &self.descriptors[..described]
    }

    /// Returns true if the frame of a descriptor requests UDP's checksum, false for TCP's, and `None` if it requests
    /// none.
    pub(crate) fn requested(&self, at: usize) -> Option<bool> {
        let raw = self.descriptors.get(at)?.last_chunk()?;
        let second = u64::from_le_bytes(*raw);
        (second & SUMMED != 0).then_some(second & UDP != 0)
    }

    /// Takes the next chain as a packet, and puts its buffers without the header into `buffers`. Returns the packet with its cost
    /// in frames. A malformed packet is returned to the driver; [`FetchedTransmitChains::pass`] returns all others.
    pub(crate) fn take<B: Bus>(
        &mut self,
        device: &mut VirtioDevice,
        port: PortIndex,
        buffers: &mut BufferChain,
        bus: &mut B,
    ) -> (NextPacketResult<PacketOffloadRequest>, usize) {
        let Some(chain) = self.burst.chains().get(self.done).copied() else {
            return (NextPacketResult::Nothing, 0);
        };
        let cost = cost_of_chain(&self.burst, &chain);
        let packet = self.packet(device, port, &chain, buffers, bus);
        let taken = packet.map_or_else(
            |reason| {
                self.pass(1);
                NextPacketResult::Dropped(reason)
            },
            NextPacketResult::Packet,
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
    ) -> Result<PacketOffloadRequest, PacketDropReason> {
        let size = NetHeaderFormat::of(device.accepted).size();
        let bytes = (chain.readable_bytes() as usize).checked_sub(size).filter(|bytes| *bytes > 0);
        let bytes = match bytes {
            Some(_) if chain.fault().is_some() || chain.writable_bytes() > 0 => {
                return Err(PacketDropReason::Descriptor);
            }
            Some(bytes @ ..=LONGEST_PACKET) => bytes,
            _ => return Err(PacketDropReason::Size),
        };
        let (mut raw, function) = ([0; NetHeader::SIZE], Function::Vf(port.get()));
        buffers.clear();
        self.burst.readable(chain).iter().for_each(|buffer| buffers.push(buffer.address, buffer.length));
        buffers.read(function, bus, &mut raw[..size]).map_err(|_| PacketDropReason::Fault)?;
        buffers.skip(size);
        let asked = NetHeader::parse(&raw).check(bytes, device.accepted);
        let asked = asked.map_err(|_| PacketDropReason::Offload)?;
        if asked.segmentation.is_none() && bytes > crate::limits::LONGEST_FRAME {
            return Err(PacketDropReason::Size);
        }
        device.counters.checksums += u64::from(asked.checksum.is_some());
        device.counters.segmented += u64::from(asked.segmentation.is_some());
        let mut head = [0; LOOK];
        let head = &mut head[..bytes.min(LOOK)];
        if asked.segmentation.is_some() {
            buffers.read(function, bus, head).map_err(|_| PacketDropReason::Fault)?;
        }
        PacketOffloadRequest::of(&asked, head).ok_or(PacketDropReason::Offload)
    }
}

/// Returns address and length of the bytes to read for a chain's header, and address and length of its frame. Returns `None`
/// if header or frame spans several buffers.
///
/// A head of [`HEAD`] bytes is read at less cost than a header alone, so the frame's first bytes are read too if they
/// follow the header.
#[inline]
fn in_one_piece(burst: &ChainBurst, chain: &Chain, size: usize) -> Option<((u64, u32), (u64, u32))> {
    let size = size as u32;
    if let Some(only) = burst.only_readable(chain) {
        let frame =
            (only.address + u64::from(size), only.length.checked_sub(size).filter(|length| *length > 0)?);
        return Some(((only.address, only.length.min(HEAD as u32)), frame));
    }
    match burst.readable(chain) {
        [header, frame] if header.length == size && chain.writable_bytes() == 0 => {
            Some(((header.address, size), (frame.address, frame.length)))
        }
        _ => None,
    }
}

/// Encodes a transmit descriptor for crate `rings`.
#[inline]
fn descriptor(address: u64, second: u64) -> [u8; DESCRIPTOR] {
    (u128::from(address) | u128::from(second) << 64).to_le_bytes()
}

/// Returns the descriptor bits of a plain frame of `length` bytes, or `None` if the frame's header requests more than
/// the usual checksum.
#[inline]
fn plain_bits(head: &[u8; HEAD], length: u64, accepted: VirtioFeatures) -> Option<u64> {
    let [flags, gso_type, ..] = *head;
    if flags & flag::NEEDS_CSUM == 0 && gso_type == gso::NONE {
        return Some(PLAIN);
    }
    core::hint::cold_path();
    let asked = NetHeader::parse(head.first_chunk()?).check(length as usize, accepted).ok()?;
    let checksum = asked.checksum.filter(|checksum| checksum.start() == PLAIN_START)?;
    let udp = match checksum.transport() {
        PartialTransport::Tcp => 0,
        PartialTransport::Udp => UDP,
        PartialTransport::Other => return None,
    };
    asked.segmentation.is_none().then_some(PLAIN | SUMMED | udp)
}
