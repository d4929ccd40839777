//! Tests that reads, writes and posted writes allocate no memory in client and server once the buffers have grown.

use vfio_user::client::Client;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{
    DmaWindow, IrqChange, RegionInfo, RequestCompletionTiming, ServedDevice, ServerSession, SessionProgress,
};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, region_flags};

/// Device whose registers are a byte array, and which never allocates.
struct ByteArrayDevice([u8; 256]);

impl ServedDevice<i32> for ByteArrayDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { flags: 2, regions: 9, irqs: 5 }
    }
    fn region(&self, _: u32) -> Option<RegionInfo<'_>> {
        let flags = region_flags::READ | region_flags::WRITE;
        Some(RegionInfo { size: 256, flags, ..RegionInfo::default() })
    }
    fn region_fd(&mut self, _: u32) -> Option<i32> {
        None
    }
    fn irq(&self, _: u32) -> Option<IrqInfo> {
        None
    }
    fn read(&mut self, _: u32, offset: u64, data: &mut [u8]) -> usize {
        data.copy_from_slice(&self.0[offset as usize..][..data.len()]);
        data.len()
    }
    fn write(&mut self, _: u32, offset: u64, data: &[u8]) -> usize {
        self.0[offset as usize..][..data.len()].copy_from_slice(data);
        data.len()
    }
    fn dma_map(&mut self, _: DmaWindow<i32>) -> Result<RequestCompletionTiming, Errno> {
        Ok(RequestCompletionTiming::Now)
    }
    fn dma_unmap(&mut self, _: u64, _: u64) -> u64 {
        0
    }
    fn dma_unmap_all(&mut self) {}
    fn set_irqs(&mut self, _: IrqChange<i32>) -> Result<RequestCompletionTiming, Errno> {
        Ok(RequestCompletionTiming::Now)
    }
    fn reset(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

struct InMemoryConnection {
    client: Client<i32>,
    requests: MessageOutbox<i32>,
    session: ServerSession<i32>,
    device: ByteArrayDevice,
    replies: MessageOutbox<i32>,
}

impl InMemoryConnection {
    fn exchange(&mut self) {
        while let Some(chunk) = self.requests.chunk() {
            self.session.push(chunk.bytes, chunk.fds.iter().copied()).unwrap();
            let sent = chunk.bytes.len();
            self.requests.sent(sent);
            while self.session.step(&mut self.device, &mut self.replies).unwrap() == SessionProgress::Handled
            {
            }
        }
        while let Some(chunk) = self.replies.chunk() {
            self.client.push(chunk.bytes, chunk.fds.iter().copied()).unwrap();
            let sent = chunk.bytes.len();
            self.replies.sent(sent);
            while self.client.next_reply().unwrap().is_some() {}
        }
    }

    fn traffic(&mut self, rounds: u32) {
        for round in 0..rounds {
            for doorbell in 0..3 {
                self.client.write_posted(&mut self.requests, 0, 0x18, &(round + doorbell).to_le_bytes());
            }
            self.client.write(&mut self.requests, 0, 0x20, &round.to_le_bytes());
            self.client.read(&mut self.requests, 0, 8, 4);
            self.exchange();
        }
    }
}

#[test]
fn reads_and_writes_of_a_running_session_do_not_allocate() {
    let mut ends = InMemoryConnection {
        client: Client::new(),
        requests: MessageOutbox::new(),
        session: ServerSession::default(),
        device: ByteArrayDevice([0; 256]),
        replies: MessageOutbox::new(),
    };
    ends.client.version(&mut ends.requests);
    ends.exchange();
    ends.traffic(10);
    let allocations = allocation_counter::measure(|| ends.traffic(1000));
    assert_eq!(allocations.count_total, 0);
    assert_eq!(ends.session.counters().posted_writes, 3030);
}
