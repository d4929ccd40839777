//! Transmit queue of an 82576's VF: its registers and descriptors. The ring is in `ring`.

use super::VfError;
use crate::hal::DmaHal;
use crate::offload::{HeaderLengths, TxOffload};
use crate::ring::transmit::burst::FamilyTxQueue;
use crate::ring::transmit::{self, TxCounters, TxError, TxPartDescriptor};
use i82576::bits::dctl;
use i82576::descriptor::{DD, SIZE, tx as descriptor};
use i82576::register::{tx, vf};

/// Prefetch threshold of the transmit queue: number of descriptors that the card fetches at once.
const PREFETCH: u32 = 8;

impl TxPartDescriptor for descriptor::AdvancedDataDescriptor {
    const REPORT: u64 = descriptor::REPORT;

    #[inline(always)]
    fn words_of(self, address: u64, length: u16, last: bool) -> [u64; 2] {
        let raw = u128::from_le_bytes(Self { address, length, end_of_packet: last, ..self }.emit());
        [raw as u64, (raw >> 64) as u64]
    }

    #[inline(always)]
    fn plain_words(address: u64, length: u16) -> [u64; 2] {
        Self { payload_length: length.into(), ..Self::default() }.words_of(address, length, true)
    }

    fn is_done(raw: &[u8; SIZE]) -> bool {
        u32::from_le_bytes([raw[12], raw[13], raw[14], raw[15]]) & DD != 0
    }
}

#[derive(Debug)]
pub(crate) struct VfTxRing {
    ring: transmit::TxRing<descriptor::AdvancedDataDescriptor>,
    /// Offload context that the driver last gave the card for the transmit queue.
    context: Option<descriptor::AdvancedContextDescriptor>,
}

impl VfTxRing {
    pub(crate) fn new<H: DmaHal>(hal: &mut H, count: u16, batch: u16) -> Result<Self, VfError> {
        super::receive::check_size(count)?;
        let ring = transmit::TxRing::new(hal, count, batch, vf::TX_BLOCK + tx::TDT)?;
        Ok(Self { ring, context: None })
    }

    pub(super) fn counters(&self) -> TxCounters {
        self.ring.counters()
    }

    pub(crate) fn start<H: DmaHal>(&mut self, hal: &mut H) {
        self.disable(hal);
        let (block, (base, count)) = (vf::TX_BLOCK, self.ring.place());
        hal.write(block + tx::TDLEN, u32::from(count) * SIZE as u32);
        hal.write(block + tx::TDBAL, base as u32);
        hal.write(block + tx::TDBAH, (base >> 32) as u32);
        hal.write(block + tx::TDWBAL, 0);
        hal.write(block + tx::TDWBAH, 0);
        hal.write(block + tx::TXDCTL, dctl::ENABLE | PREFETCH);
        hal.write(block + tx::TDH, 0);
        self.context = None;
        self.ring.start(hal);
    }

    pub(super) fn disable<H: DmaHal>(&mut self, hal: &mut H) {
        hal.write(vf::TX_BLOCK + tx::TXDCTL, 0);
        self.ring.stop();
    }

    /// Rings the doorbell for queued frames, if there are any.
    pub(super) fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.ring.flush(hal);
    }

    /// Reclaims the slots that the card has reported as done. Returns the number of reclaimed slots.
    pub(super) fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        self.ring.clean(hal)
    }

    /// Returns the number of free slots in the VF's transmit ring.
    pub(super) fn free(&self) -> usize {
        self.ring.free()
    }

    /// Returns the number of transmit slots that are not reclaimed.
    pub(super) fn pending(&self) -> usize {
        self.ring.pending()
    }
}

impl FamilyTxQueue for VfTxRing {
    type Piece = descriptor::AdvancedDataDescriptor;
    /// Number of transmit slots for a context descriptor, which may precede a frame.
    const RESERVE: usize = 1;

    #[inline(always)]
    fn ring(&mut self) -> &mut transmit::TxRing<descriptor::AdvancedDataDescriptor> {
        &mut self.ring
    }

    fn transmit_any<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: [&[u8]; 2],
        offload: &TxOffload,
        longest: usize,
    ) -> Result<(), TxError> {
        let headers = self.ring.check(frame, offload, longest)?;
        let length = frame[0].len() + frame[1].len();
        let context = context_of(headers, offload).filter(|c| self.context != Some(*c));
        self.ring.make_room(hal, length, Self::RESERVE)?;
        if let Some(context) = context {
            self.ring.put(context.emit());
            self.context = Some(context);
        }
        self.ring.take(hal, frame, headers, offload, data_of(headers, offload, length));
        Ok(())
    }
}

fn context_of(
    headers: Option<HeaderLengths>,
    offload: &TxOffload,
) -> Option<descriptor::AdvancedContextDescriptor> {
    match (headers, offload.vlan) {
        (Some(headers), vlan_tag) => {
            let (mac, ip, l4) = headers.lengths();
            Some(descriptor::AdvancedContextDescriptor {
                mac_length: mac as u8,
                ip_length: ip as u16,
                l4_length: l4 as u8,
                vlan_tag: vlan_tag.unwrap_or(0),
                ipv4: headers.is_ipv4(),
                l4: if headers.is_tcp() {
                    descriptor::L4PacketType::Tcp
                } else {
                    descriptor::L4PacketType::Udp
                },
                mss: offload.tso.unwrap_or(0),
                index: 0,
            })
        }
        (None, Some(vlan_tag)) => Some(descriptor::AdvancedContextDescriptor {
            mac_length: 14,
            vlan_tag,
            ..descriptor::AdvancedContextDescriptor::default()
        }),
        (None, None) => None,
    }
}

fn data_of(
    headers: Option<HeaderLengths>,
    offload: &TxOffload,
    length: usize,
) -> descriptor::AdvancedDataDescriptor {
    let segment = offload.tso.is_some();
    let payload = match headers {
        Some(headers) if segment => length - headers.total(),
        _ => length,
    };
    // IPv6 headers have no checksum, and not every card checks that before it inserts one.
    let ip_checksum = (offload.ip_checksum || segment) && headers.is_some_and(|headers| headers.is_ipv4());
    descriptor::AdvancedDataDescriptor {
        insert_vlan: offload.vlan.is_some(),
        segment,
        insert_ip_checksum: ip_checksum,
        insert_l4_checksum: offload.l4_checksum || segment,
        payload_length: payload as u32,
        ..descriptor::AdvancedDataDescriptor::default()
    }
}

impl super::Vf {
    /// Queues frames, without FCS, up to the first that is refused. Returns the number of queued frames. The card is
    /// notified at the latest by [`Vf::flush`](super::Vf::flush).
    #[inline]
    pub fn transmit_burst<H: DmaHal>(&mut self, hal: &mut H, frames: &[&[u8]], offload: &TxOffload) -> usize {
        self.tx.transmit_burst(hal, frames, offload, self.wishes.max_frame).0
    }

    /// Queues a frame, without FCS: a burst of one.
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit<H: DmaHal>(
        &mut self,
        hal: &mut H,
        frame: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        self.tx.transmit_burst(hal, &[frame], offload, self.wishes.max_frame).1
    }

    /// Queues a frame that lies in two buffers. The first buffer must contain all headers that an offload needs.
    ///
    /// # Errors
    /// [`TxError`].
    pub fn transmit_gather<H: DmaHal>(
        &mut self,
        hal: &mut H,
        first: &[u8],
        second: &[u8],
        offload: &TxOffload,
    ) -> Result<(), TxError> {
        self.tx.transmit_any(hal, [first, second], offload, self.wishes.max_frame)
    }

    /// Rings the transmit doorbell for queued frames.
    pub fn flush<H: DmaHal>(&mut self, hal: &mut H) {
        self.tx.flush(hal);
    }

    /// Reclaims completed descriptors without waiting for the interrupt. Returns the number of reclaimed descriptors.
    pub fn clean<H: DmaHal>(&mut self, hal: &mut H) -> usize {
        self.tx.clean(hal)
    }

    /// Returns the number of transmit descriptors that are not reclaimed.
    #[must_use]
    pub fn tx_pending(&self) -> usize {
        self.tx.pending()
    }

    /// Returns the number of free transmit descriptors.
    #[must_use]
    pub fn tx_free(&self) -> usize {
        self.tx.free()
    }
}
