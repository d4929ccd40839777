//! Serves a VF's requests to set up rings, map vectors, and start or stop queues, with i40e's limits. A request is
//! checked as a whole before any of it takes effect. The card checks the rings' contents each time it serves them.

use super::counters::VirtchnlRefusal;
use super::limits::LIMITS;
use super::requests::{VirtchnlReply, VirtchnlResult};
use super::{AvfPf, AvfVfState, CardControlHal, vsi};
use ::avf::control::{CardCommand, QueueInterruptCause, RxQueueContext, TxQueueContext};
use ::avf::descriptor::rx::RxDescriptorFormat;
use ::avf::ids::{RING, RING_ALIGNMENT};
use ::avf::virtchnl::{
    MessageList, QueueChunk, QueuePairInfo, QueueType, RxQueueInfo, TxQueueInfo, VectorMap, VfCapabilities,
};

/// Unit of receive buffer sizes in bytes (i40e).
const BUFFER_UNIT: u32 = 128;
const BUFFERS: core::ops::RangeInclusive<u32> = BUFFER_UNIT..=16_256;
/// Range in bytes within which a VF may request its maximum frame length (i40e).
const FRAMES: core::ops::RangeInclusive<u32> = 64..=16_383;
/// Number that stands for no interrupt interval in a request; intervals have the numbers 0 to 2 (virtchnl, ITR index).
const NO_ITR: u16 = 3;

/// Returns the card's settings of a transmit queue for a VF's request, or `None` if the queue stays unchanged.
fn tx_context(tx: &TxQueueInfo) -> Result<Option<TxQueueContext>, VirtchnlRefusal> {
    let length = u32::from(tx.length);
    if length == 0 {
        return Ok(None);
    }
    let fits = RING.contains(&length) && length.is_multiple_of(8) && tx.base.is_multiple_of(RING_ALIGNMENT);
    let head_address = tx.head_write_back.then_some(tx.head_address);
    fits.then_some(Some(TxQueueContext { base: tx.base, length: tx.length, head_address }))
        .ok_or(VirtchnlRefusal::Ring)
}

/// Returns the card's settings of a receive queue for a VF's request, or `None` if the queue stays unchanged.
fn rx_context(rx: &RxQueueInfo, state: &AvfVfState) -> Result<Option<RxQueueContext>, VirtchnlRefusal> {
    if rx.length == 0 {
        return Ok(None);
    }
    let ring =
        RING.contains(&rx.length) && rx.length.is_multiple_of(32) && rx.base.is_multiple_of(RING_ALIGNMENT);
    let sizes = BUFFERS.contains(&rx.buffer_bytes) && FRAMES.contains(&rx.max_frame) && !rx.split;
    let form =
        RxDescriptorFormat::of(rx.rxdid, state.has(VfCapabilities::RX_FLEX_DESC)).filter(|_| ring && sizes);
    let context = |form| RxQueueContext {
        base: rx.base,
        length: rx.length as u16,
        form,
        buffer_bytes: rx.buffer_bytes / BUFFER_UNIT * BUFFER_UNIT,
        max_frame: rx.max_frame.min(state.decided.policy.longest_frame(&LIMITS).into()),
        keep_fcs: rx.keep_fcs && state.has(VfCapabilities::CRC),
    };
    form.map(|form| Some(context(form))).ok_or(VirtchnlRefusal::Ring)
}

impl AvfPf {
    pub(super) fn configure_queues<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        pairs: MessageList<'_, QueuePairInfo>,
    ) -> VirtchnlResult {
        let state = self.state(vf);
        if pairs.len() > usize::from(state.pairs) {
            return Err(VirtchnlRefusal::NoSuchQueue);
        }
        for QueuePairInfo { tx, rx } in pairs.iter() {
            if tx.vsi != vsi(vf) || rx.vsi != vsi(vf) {
                return Err(VirtchnlRefusal::NotItsVsi);
            }
            if tx.queue != rx.queue || rx.queue >= state.pairs {
                return Err(VirtchnlRefusal::NoSuchQueue);
            }
            tx_context(&tx)?;
            rx_context(&rx, state)?;
        }
        for QueuePairInfo { tx, rx } in pairs.iter() {
            let queue = rx.queue as u8;
            if let Some(context) = tx_context(&tx)? {
                hal.order(vf, CardCommand::ConfigureTx(queue, context));
            }
            if let Some(context) = rx_context(&rx, state)? {
                hal.order(vf, CardCommand::ConfigureRx(queue, context));
            }
        }
        Ok(VirtchnlReply::Done)
    }

    /// Maps a VF's queues to its interrupt vectors. The request may name queues that are not set up yet, as Linux sends
    /// it first. Vector 0 may have queues, as DPDK needs.
    pub(super) fn map_vectors<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        maps: MessageList<'_, VectorMap>,
    ) -> VirtchnlResult {
        let state = self.state(vf);
        if maps.len() > usize::from(state.vectors()) {
            return Err(VirtchnlRefusal::NoSuchVector);
        }
        for map in maps.iter() {
            if map.vsi != vsi(vf) {
                return Err(VirtchnlRefusal::NotItsVsi);
            }
            if map.vector >= state.vectors() || map.rx_itr > NO_ITR || map.tx_itr > NO_ITR {
                return Err(VirtchnlRefusal::NoSuchVector);
            }
            state.check_queues(u32::from(map.rx | map.tx))?;
        }
        for map in maps.iter() {
            let cause = |itr: u16| Some(QueueInterruptCause { vector: map.vector as u8, itr: itr as u8 });
            for queue in (0..16).filter(|queue| map.rx >> queue & 1 == 1) {
                hal.order(vf, CardCommand::MapRx(queue, cause(map.rx_itr)));
            }
            for queue in (0..16).filter(|queue| map.tx >> queue & 1 == 1) {
                hal.order(vf, CardCommand::MapTx(queue, cause(map.tx_itr)));
            }
        }
        Ok(VirtchnlReply::Done)
    }

    pub(super) fn switch_queues<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        rx: u32,
        tx: u32,
    ) -> VirtchnlResult {
        let state = self.state_mut(vf);
        if rx | tx == 0 {
            return Err(VirtchnlRefusal::NoSuchQueue);
        }
        state.check_queues(rx | tx)?;
        if on && !state.is_free() {
            return Err(VirtchnlRefusal::Disabled);
        }
        let (rx, tx) = (rx as u16, tx as u16);
        (state.rx, state.tx) =
            if on { (state.rx | rx, state.tx | tx) } else { (state.rx & !rx, state.tx & !tx) };
        hal.order(vf, CardCommand::Run { rx: state.rx, tx: state.tx });
        Ok(VirtchnlReply::Done)
    }

    pub(super) fn switch_ranges<H: CardControlHal>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        chunks: MessageList<'_, QueueChunk>,
    ) -> VirtchnlResult {
        let (mut rx, mut tx) = (0, 0);
        for QueueChunk { direction, start, count } in chunks.iter() {
            let end = u32::from(start) + u32::from(count);
            if end > u32::from(self.state(vf).pairs) {
                return Err(VirtchnlRefusal::NoSuchQueue);
            }
            let queues = ((1_u32 << end) - 1) & !((1 << start) - 1);
            match direction {
                QueueType::Receive => rx |= queues,
                QueueType::Transmit => tx |= queues,
                QueueType::Other(_) => return Err(VirtchnlRefusal::NoSuchQueue),
            }
        }
        self.switch_queues(hal, vf, on, rx, tx)
    }
}

impl AvfVfState {
    /// Checks that a bit mask names only queues of the VF.
    fn check_queues(&self, queues: u32) -> Result<(), VirtchnlRefusal> {
        if queues >> self.pairs == 0 { Ok(()) } else { Err(VirtchnlRefusal::NoSuchQueue) }
    }
}
