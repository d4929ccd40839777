//! Rings, vectors, and running queues, with i40e's limits. A message is checked as a whole before any of it takes
//! effect. The card checks the rings' contents at each visit.

use super::counters::Refusal;
use super::limits::LIMITS;
use super::requests::{Answer, Outcome};
use super::{Card, Pf, VfState, vsi};
use ::avf::control::{Cause, Order, RxContext, TxContext};
use ::avf::descriptor::rx::Form;
use ::avf::ids::{RING, RING_ALIGNMENT};
use ::avf::virtchnl::{Capabilities, Chunk, Direction, List, QueuePair, RxQueue, TxQueue, VectorMap};

/// Unit of receive buffer sizes in bytes (i40e).
const BUFFER_UNIT: u32 = 128;
const BUFFERS: core::ops::RangeInclusive<u32> = BUFFER_UNIT..=16_256;
/// Valid longest frames of a VF in bytes (i40e).
const FRAMES: core::ops::RangeInclusive<u32> = 64..=16_383;
/// Number of "no interval"; the intervals are 0 to 2 (virtchnl, ITR index).
const NO_ITR: u16 = 3;

/// Returns the context of a transmit queue, or `None` if it stays unchanged.
fn tx_context(tx: &TxQueue) -> Result<Option<TxContext>, Refusal> {
    let length = u32::from(tx.length);
    if length == 0 {
        return Ok(None);
    }
    let fits = RING.contains(&length) && length.is_multiple_of(8) && tx.base.is_multiple_of(RING_ALIGNMENT);
    let head_address = tx.head_write_back.then_some(tx.head_address);
    fits.then_some(Some(TxContext { base: tx.base, length: tx.length, head_address })).ok_or(Refusal::Ring)
}

/// Returns the context of a receive queue, or `None` if it stays unchanged.
fn rx_context(rx: &RxQueue, state: &VfState) -> Result<Option<RxContext>, Refusal> {
    if rx.length == 0 {
        return Ok(None);
    }
    let ring =
        RING.contains(&rx.length) && rx.length.is_multiple_of(32) && rx.base.is_multiple_of(RING_ALIGNMENT);
    let sizes = BUFFERS.contains(&rx.buffer_bytes) && FRAMES.contains(&rx.max_frame) && !rx.split;
    let form = Form::of(rx.rxdid, state.has(Capabilities::RX_FLEX_DESC)).filter(|_| ring && sizes);
    let context = |form| RxContext {
        base: rx.base,
        length: rx.length as u16,
        form,
        buffer_bytes: rx.buffer_bytes / BUFFER_UNIT * BUFFER_UNIT,
        max_frame: rx.max_frame.min(state.decided.policy.longest_frame(&LIMITS).into()),
        keep_fcs: rx.keep_fcs && state.has(Capabilities::CRC),
    };
    form.map(|form| Some(context(form))).ok_or(Refusal::Ring)
}

impl Pf {
    pub(super) fn configure_queues<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        pairs: List<'_, QueuePair>,
    ) -> Outcome {
        let state = self.state(vf);
        if pairs.len() > usize::from(state.pairs) {
            return Err(Refusal::NoSuchQueue);
        }
        for QueuePair { tx, rx } in pairs.iter() {
            if tx.vsi != vsi(vf) || rx.vsi != vsi(vf) {
                return Err(Refusal::NotItsVsi);
            }
            if tx.queue != rx.queue || rx.queue >= state.pairs {
                return Err(Refusal::NoSuchQueue);
            }
            tx_context(&tx)?;
            rx_context(&rx, state)?;
        }
        for QueuePair { tx, rx } in pairs.iter() {
            let queue = rx.queue as u8;
            if let Some(context) = tx_context(&tx)? {
                hal.order(vf, Order::ConfigureTx(queue, context));
            }
            if let Some(context) = rx_context(&rx, state)? {
                hal.order(vf, Order::ConfigureRx(queue, context));
            }
        }
        Ok(Answer::Done)
    }

    /// Maps a VF's queues to its interrupt vectors. A map may name queues that are not set up yet, as Linux sends it
    /// first. Vector 0 may have queues, as DPDK needs.
    pub(super) fn map_vectors<H: Card>(&mut self, hal: &mut H, vf: u8, maps: List<'_, VectorMap>) -> Outcome {
        let state = self.state(vf);
        if maps.len() > usize::from(state.vectors()) {
            return Err(Refusal::NoSuchVector);
        }
        for map in maps.iter() {
            if map.vsi != vsi(vf) {
                return Err(Refusal::NotItsVsi);
            }
            if map.vector >= state.vectors() || map.rx_itr > NO_ITR || map.tx_itr > NO_ITR {
                return Err(Refusal::NoSuchVector);
            }
            state.check_queues(u32::from(map.rx | map.tx))?;
        }
        for map in maps.iter() {
            let cause = |itr: u16| Some(Cause { vector: map.vector as u8, itr: itr as u8 });
            for queue in (0..16).filter(|queue| map.rx >> queue & 1 == 1) {
                hal.order(vf, Order::MapRx(queue, cause(map.rx_itr)));
            }
            for queue in (0..16).filter(|queue| map.tx >> queue & 1 == 1) {
                hal.order(vf, Order::MapTx(queue, cause(map.tx_itr)));
            }
        }
        Ok(Answer::Done)
    }

    pub(super) fn switch_queues<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        rx: u32,
        tx: u32,
    ) -> Outcome {
        let state = self.state_mut(vf);
        if rx | tx == 0 {
            return Err(Refusal::NoSuchQueue);
        }
        state.check_queues(rx | tx)?;
        if on && !state.is_free() {
            return Err(Refusal::Disabled);
        }
        let (rx, tx) = (rx as u16, tx as u16);
        (state.rx, state.tx) =
            if on { (state.rx | rx, state.tx | tx) } else { (state.rx & !rx, state.tx & !tx) };
        hal.order(vf, Order::Run { rx: state.rx, tx: state.tx });
        Ok(Answer::Done)
    }

    pub(super) fn switch_ranges<H: Card>(
        &mut self,
        hal: &mut H,
        vf: u8,
        on: bool,
        chunks: List<'_, Chunk>,
    ) -> Outcome {
        let (mut rx, mut tx) = (0, 0);
        for Chunk { direction, start, count } in chunks.iter() {
            let end = u32::from(start) + u32::from(count);
            if end > u32::from(self.state(vf).pairs) {
                return Err(Refusal::NoSuchQueue);
            }
            let queues = ((1_u32 << end) - 1) & !((1 << start) - 1);
            match direction {
                Direction::Receive => rx |= queues,
                Direction::Transmit => tx |= queues,
                Direction::Other(_) => return Err(Refusal::NoSuchQueue),
            }
        }
        self.switch_queues(hal, vf, on, rx, tx)
    }
}

impl VfState {
    /// Checks that a set names only queues of the VF.
    fn check_queues(&self, queues: u32) -> Result<(), Refusal> {
        if queues >> self.pairs == 0 { Ok(()) } else { Err(Refusal::NoSuchQueue) }
    }
}
