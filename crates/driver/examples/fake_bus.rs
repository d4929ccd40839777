//! Runs the VF driver of the 82576 on a bus in memory, whose card returns each frame to its sender:
//! `cargo run -p softiov-driver --example fake_bus`

use core::time::Duration;
use driver::vf::{RECEIVE_VECTOR, TxOffload, Vf, VfDriverConfig, VfError, VfInterruptCause, VfRxFrame};
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::Time;
use i82576::bits::v2p::{PFACK, PFSTS, REQ, VFU};
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, status};
use i82576::descriptor::tx::{self as descriptor, AnyTxDescriptor};
use i82576::mailbox::{ACK, CTS, id};
use i82576::register::{rx, tx, vf};
use std::collections::BTreeMap;

/// Registers and memory that a driver shares with a card. Device addresses are indices of the memory.
#[derive(Default)]
struct FakeBus {
    registers: BTreeMap<u32, u32>,
    memory: Vec<u8>,
    /// Index of the descriptor that the card uses next, in both rings.
    head: u32,
}

impl FakeBus {
    fn slot(&mut self, base: u32) -> &mut [u8; 16] {
        let at = (self.registers[&base] + self.head * 16) as usize;
        self.memory[at..].first_chunk_mut().expect("a ring in memory")
    }

    /// Copies the frames up to the transmit tail to posted buffers, as a card in loopback.
    fn return_frames(&mut self, tail: u32) {
        while self.head != tail {
            let sent = self.slot(vf::TX_BLOCK + tx::TDBAL);
            let AnyTxDescriptor::Data(data) = descriptor::parse(sent) else { panic!("no buffer: {sent:?}") };
            let buffer = PostedRxDescriptor::parse(self.slot(vf::RX_BLOCK + rx::RDBAL)).packet as usize;
            let frame = data.address as usize..data.address as usize + usize::from(data.length);
            self.memory.copy_within(frame, buffer);
            let received =
                AdvancedRxWriteBack { length: data.length, status: status::EOP, ..Default::default() };
            *self.slot(vf::RX_BLOCK + rx::RDBAL) = received.emit();
            self.head += 1;
        }
    }
}

impl Hal for FakeBus {
    fn read(&mut self, offset: u32) -> u32 {
        let value = self.registers.get(&offset).copied().unwrap_or(0);
        if offset == vf::V2PMAILBOX { value | VFU } else { value }
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.registers.insert(offset, value);
        if (offset, value) == (vf::V2PMAILBOX, REQ) {
            // The PF grants every request: it returns the message with more bits, the first with the VF's address.
            let message = self.registers[&vf::VMBMEM];
            let granted = if message == id::VF_RESET { ACK } else { ACK | CTS };
            let reply =
                [(vf::V2PMAILBOX, PFACK | PFSTS), (vf::VMBMEM, message | granted), (vf::VMBMEM + 4, 2)];
            self.registers.extend(reply);
        } else if offset == vf::TX_BLOCK + tx::TDT {
            self.return_frames(value);
        }
    }
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn wait(&mut self, _: Duration) {}
}

impl DmaHal for FakeBus {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let iova = self.memory.len().next_multiple_of(align);
        self.memory.resize(iova + length, 0);
        Ok(DmaAllocation { iova: iova as u64, length })
    }
    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.memory[iova as usize..][..into.len()]);
    }
    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        self.memory[iova as usize..][..from.len()].copy_from_slice(from);
    }
}

fn main() -> Result<(), VfError> {
    let mut bus = FakeBus::default();
    let mut vf = Vf::probe(&mut bus, &VfDriverConfig::default())?;
    vf.start(&mut bus)?;
    println!("VF {} is started with {} KiB of shared memory", vf.mac(), bus.memory.len() >> 10);
    let frame =
        [&[0xff; 6][..], &vf.mac().0, &[0x88, 0xb5], b"A frame over a bus in memory.", &[0; 17]].concat();
    assert_eq!(vf.transmit_burst(&mut bus, &[&frame], &TxOffload::default()), 1);
    vf.flush(&mut bus);
    assert_eq!(vf.handle_interrupt(&mut bus, RECEIVE_VECTOR), VfInterruptCause::Received);
    let mut buffer = [0; 2048];
    let mut copy = |frame: &mut VfRxFrame<'_, FakeBus>| assert_eq!(frame.copy_to(&mut buffer), Ok(60));
    let received = vf.receive_burst(&mut bus, 32, &mut copy);
    vf.receive_done(&mut bus);
    println!("VF received {received} frame: {}", String::from_utf8_lossy(&buffer[14..43]));
    assert_eq!(buffer[..frame.len()], frame);
    Ok(())
}

#[test]
fn driver_receives_the_frame_that_it_sent() -> Result<(), VfError> {
    main()
}
