//! Engine's own admin queue of an Adaptive Virtual Function, which sends what no driver would.

use super::answer::{LOOK, PATIENCE, PfAnswer};
use anyhow::{Result, bail, ensure};
use avf::admin::{AdminQueueDescriptor, LARGE, MAX_BODY, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::register::{
    VF_ARQBAH, VF_ARQBAL, VF_ARQH, VF_ARQLEN, VF_ARQT, VF_ATQBAH, VF_ATQBAL, VF_ATQH, VF_ATQLEN, VF_ATQT,
};
use avf::virtchnl::VirtchnlOpcode;
use driver::DmaHal;

/// Number of descriptors in each ring.
const SLOTS: u32 = 16;
/// Offsets of the rings and buffers in the queue's memory.
const RECEIVE_RING: u64 = 0x1000;
const SEND_BUFFER: u64 = 0x2000;
const RECEIVE_BUFFERS: u64 = 0x4000;
/// Bytes of guest memory that the queue takes.
pub(super) const MEMORY: u64 = RECEIVE_BUFFERS + SLOTS as u64 * MAX_BODY as u64;

/// Resources that the PF has given to the attacking guest.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestResources {
    pub(super) vsi: u16,
    pub(super) mac: [u8; 6],
}

/// Admin queue in the memory of an attacking guest.
#[derive(Debug)]
pub(super) struct AttackAdminQueue {
    /// Device address of the queue's memory.
    memory: u64,
    /// Next slot to fill of the send ring, and next slot to read of the receive ring.
    send: u32,
    receive: u32,
}

impl AttackAdminQueue {
    /// Sets up both rings, also after another driver's.
    pub(super) fn set_up<H: DmaHal>(hal: &mut H, memory: u64) -> Self {
        for slot in 0..SLOTS {
            post(hal, memory, slot);
        }
        let rings = [
            ([VF_ATQLEN, VF_ATQH, VF_ATQT, VF_ATQBAL, VF_ATQBAH], memory),
            ([VF_ARQLEN, VF_ARQH, VF_ARQT, VF_ARQBAL, VF_ARQBAH], memory + RECEIVE_RING),
        ];
        for ([length, head, tail, low, high], address) in rings {
            hal.write(length, 0);
            hal.write(head, 0);
            hal.write(tail, 0);
            hal.write(low, address as u32);
            hal.write(high, (address >> 32) as u32);
            hal.write(length, SLOTS | aqlen::ENABLE);
        }
        hal.write(VF_ARQT, SLOTS - 1);
        Self { memory, send: 0, receive: 0 }
    }

    /// Asks the PF for its version and for the VF's resources.
    pub(super) fn introduce<H: DmaHal>(&mut self, hal: &mut H) -> Result<GuestResources> {
        let version = [1u32, 1].map(u32::to_le_bytes).concat();
        self.request(hal, VirtchnlOpcode::Version as u32, &version, PfAnswer::Accepted)?;
        let wanted = u32::MAX.to_le_bytes();
        let body = self.request(hal, VirtchnlOpcode::GetVfResources as u32, &wanted, PfAnswer::Accepted)?;
        // The first VSI follows the 20 bytes of the VF: number, pairs, type, queue set, address.
        ensure!(body.len() >= 36, "the PF describes the VF's resources in {} bytes", body.len());
        let vsi = u16::from_le_bytes([body[20], body[21]]);
        let mac = body[30..36].try_into()?;
        Ok(GuestResources { vsi, mac })
    }

    /// Sends a message and waits for the PF's answer to it. Returns the answer's body.
    pub(super) fn request<H: DmaHal>(
        &mut self,
        hal: &mut H,
        operation: u32,
        body: &[u8],
        expected: PfAnswer,
    ) -> Result<Vec<u8>> {
        ensure!(body.len() <= MAX_BODY, "a message's body has at most {MAX_BODY} bytes");
        let address = self.memory + SEND_BUFFER;
        hal.dma_write(address, body);
        let large = if body.len() > LARGE { flag::LB } else { 0 };
        let buffer = if body.is_empty() { 0 } else { flag::BUF | flag::RD | large };
        let descriptor = AdminQueueDescriptor {
            flags: flag::SI | buffer,
            opcode: opcode::SEND_TO_PF,
            length: body.len() as u16,
            cookie_high: operation,
            address,
            ..AdminQueueDescriptor::default()
        };
        self.send_raw(hal, &descriptor.emit());
        if expected == PfAnswer::NotAwaited {
            return Ok(Vec::new());
        }
        let (status, body) = self.answer(hal, operation)?;
        match expected {
            PfAnswer::Accepted => ensure!(status == 0, "the PF refused the request with status {status}"),
            PfAnswer::Refused => ensure!(status != 0, "the PF accepted the request"),
            PfAnswer::Reply | PfAnswer::NotAwaited => {}
        }
        Ok(body)
    }

    /// Puts descriptors into the send ring, and rings the doorbell.
    pub(super) fn send_raw<H: DmaHal>(&mut self, hal: &mut H, raw: &[u8]) {
        for descriptor in raw.chunks(SIZE) {
            hal.dma_write(self.memory + u64::from(self.send) * SIZE as u64, descriptor);
            self.send = (self.send + 1) % SLOTS;
        }
        hal.write(VF_ATQT, self.send);
    }

    /// Waits for the answer to an operation. Returns its status and body. Events and late answers are skipped.
    fn answer<H: DmaHal>(&mut self, hal: &mut H, operation: u32) -> Result<(i32, Vec<u8>)> {
        for _ in 0..PATIENCE.as_micros() / LOOK.as_micros() {
            let mut raw = [0; SIZE];
            hal.dma_read(self.memory + RECEIVE_RING + u64::from(self.receive) * SIZE as u64, &mut raw);
            let descriptor = AdminQueueDescriptor::parse(&raw);
            if !descriptor.is_done() {
                hal.wait(LOOK);
                continue;
            }
            let mut body = vec![0; usize::from(descriptor.length).min(MAX_BODY)];
            hal.dma_read(buffer(self.memory, self.receive), &mut body);
            post(hal, self.memory, self.receive);
            hal.write(VF_ARQT, self.receive);
            self.receive = (self.receive + 1) % SLOTS;
            if descriptor.cookie_high == operation {
                return Ok((descriptor.cookie_low.cast_signed(), body));
            }
        }
        bail!("the PF does not answer operation {operation} within {PATIENCE:?}")
    }
}

fn buffer(memory: u64, slot: u32) -> u64 {
    memory + RECEIVE_BUFFERS + u64::from(slot) * MAX_BODY as u64
}

/// Posts the buffer of a slot of the receive ring.
fn post<H: DmaHal>(hal: &mut H, memory: u64, slot: u32) {
    let descriptor = AdminQueueDescriptor::posted(buffer(memory, slot), MAX_BODY as u16);
    hal.dma_write(memory + RECEIVE_RING + u64::from(slot) * SIZE as u64, &descriptor.emit());
}
