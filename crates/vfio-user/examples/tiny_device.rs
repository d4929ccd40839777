//! Serves a device with one register on a socket, and attaches a client to it:
//! `cargo run -p softiov-vfio-user --example tiny_device`

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::thread;

use vfio_user::client::{Client, ReplyContents};
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{DmaWindow, IrqChange, RegionInfo, RequestCompletionTiming};
use vfio_user::server::{ServedDevice, ServerSession, SessionProgress};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, pci_irq, pci_region, region_flags};

type Failure = Box<dyn Error + Send + Sync>;

/// Device whose only register, four bytes of BAR 0, adds up the values that are written to it.
struct AddingDevice(u32);

impl ServedDevice<OwnedFd> for AddingDevice {
    fn info(&self) -> DeviceInfo {
        let flags = device_flags::PCI | device_flags::RESET;
        DeviceInfo { flags, regions: pci_region::COUNT, irqs: pci_irq::COUNT }
    }
    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let size = if index == pci_region::BAR0 { 4 } else { 0 };
        let flags = region_flags::READ | region_flags::WRITE;
        (index < pci_region::COUNT).then_some(RegionInfo { size, flags, ..RegionInfo::default() })
    }
    fn region_fd(&mut self, _: u32) -> Option<OwnedFd> {
        None
    }
    fn irq(&self, index: u32) -> Option<IrqInfo> {
        (index < pci_irq::COUNT).then(IrqInfo::default)
    }
    fn read(&mut self, _: u32, offset: u64, data: &mut [u8]) -> usize {
        data.copy_from_slice(&self.0.to_le_bytes()[offset as usize..][..data.len()]);
        data.len()
    }
    fn write(&mut self, _: u32, _: u64, data: &[u8]) -> usize {
        let value = data.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        self.0 = self.0.wrapping_add(value);
        data.len()
    }
    fn dma_map(&mut self, _: DmaWindow<OwnedFd>) -> Result<RequestCompletionTiming, Errno> {
        Ok(RequestCompletionTiming::Now)
    }
    fn dma_unmap(&mut self, _: u64, _: u64) -> u64 {
        0
    }
    fn dma_unmap_all(&mut self) {}
    fn set_irqs(&mut self, _: IrqChange<OwnedFd>) -> Result<RequestCompletionTiming, Errno> {
        Ok(RequestCompletionTiming::Now)
    }
    fn reset(&mut self) -> Result<(), Errno> {
        self.0 = 0;
        Ok(())
    }
}

fn send(stream: &mut UnixStream, out: &mut MessageOutbox<OwnedFd>) -> io::Result<()> {
    while let Some(chunk) = out.chunk() {
        let sent = stream.write(chunk.bytes)?;
        out.sent(sent);
    }
    Ok(())
}

fn receive<'a>(stream: &mut UnixStream, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    stream.read(buffer).map(|length| &buffer[..length])
}

fn serve(mut stream: UnixStream) -> Result<(), Failure> {
    let (mut device, mut session, mut out) =
        (AddingDevice(0), ServerSession::default(), MessageOutbox::new());
    // A device with DMA or interrupts uses recvmsg, for the descriptors beside the bytes.
    while let bytes @ [_, ..] = receive(&mut stream, &mut [0; 4096])? {
        session.push(bytes, [])?;
        while session.step(&mut device, &mut out)? == SessionProgress::Handled {}
        send(&mut stream, &mut out)?;
    }
    session.close(&mut device);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let (mut stream, server) = UnixStream::pair()?;
    let server = thread::spawn(|| serve(server));
    let (mut client, mut out) = (Client::<OwnedFd>::new(), MessageOutbox::new());
    client.version(&mut out);
    client.write_posted(&mut out, pci_region::BAR0, 0, &40_u32.to_le_bytes());
    client.write_posted(&mut out, pci_region::BAR0, 0, &2_u32.to_le_bytes());
    client.read(&mut out, pci_region::BAR0, 0, 4);
    send(&mut stream, &mut out)?;
    while client.pending() > 0 {
        let bytes = receive(&mut stream, &mut [0; 4096])?.to_vec();
        assert!(!bytes.is_empty(), "the server has closed the connection");
        client.push(&bytes, [])?;
        while let Some(reply) = client.next_reply()? {
            println!("{:?}: {:?}", reply.command, reply.answer);
            if let Ok(ReplyContents::Data(sum)) = reply.answer {
                assert_eq!(sum, 42_u32.to_le_bytes());
            }
        }
    }
    drop(stream);
    server.join().expect("the server does not panic")
}

#[test]
fn client_reads_the_sum_of_its_writes() -> Result<(), Failure> {
    main()
}
