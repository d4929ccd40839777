//! A VMM that behaves like QEMU 11.1: posted stores to BARs, synchronous stores to configuration space, one eventfd per
//! message, memory announced with and without file descriptors.

use super::PATIENCE;
use super::machine::{CONFIG, MSIX, VmWithPciFunction, Vmm};
use super::ram::{HIGH, HOLE, SIZE};
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use vfio_user::client::{Client, ClientDmaWindow, ReplyContents};
use vfio_user::outbox::MessageOutbox;
use vfio_user::types::DeviceInfo;
use vfio_user::wire::{Errno, device_flags, irq_flags, region_flags};

/// Identity, regions and interrupts that QEMU expects of a function, and the client's support for mappable pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedPciFunction {
    device: u16,
    /// Bytes of the regions by number: BARs, ROM, configuration space, VGA.
    regions: [u64; 9],
    /// Numbers of INTx pins and MSI vectors of the function.
    others: [u32; 2],
    /// Number of MSI-X vectors of the function.
    vectors: u32,
    /// True if the port offers pages of BAR 0 to map.
    mappable: bool,
    /// True if the client reads no capabilities: it requests only the fixed part of a region's description.
    ignorant: bool,
}

impl ExpectedPciFunction {
    /// Returns the expected size of the function's region in bytes.
    pub(crate) fn size(&self, region: u32) -> usize {
        self.regions[region as usize] as usize
    }
}

pub(crate) const VF: ExpectedPciFunction = ExpectedPciFunction {
    device: 0x10ca,
    regions: [0x4000, 0, 0, 0x4000, 0, 0, 0, 4096, 0],
    others: [0, 0],
    vectors: 3,
    mappable: false,
    ignorant: false,
};
/// VF of an 82576 on a port that offers doorbell pages to map.
pub(crate) const MAPPABLE_VF: ExpectedPciFunction = ExpectedPciFunction { mappable: true, ..VF };
/// VF of an 82576 on a port that offers doorbell pages to map, for a client that does not read the offer.
pub(crate) const IGNORANT_VF: ExpectedPciFunction = ExpectedPciFunction { ignorant: true, ..MAPPABLE_VF };
/// VF of a port with `family = "avf"`, without mappable pages.
pub(crate) const AVF: ExpectedPciFunction = ExpectedPciFunction {
    device: 0x1889,
    regions: [0x1_0000, 0, 0, 0x4000, 0, 0, 0, 4096, 0],
    vectors: 17,
    ..VF
};
/// VF of a port with `family = "avf"` that offers doorbell pages to map.
pub(crate) const MAPPABLE_AVF: ExpectedPciFunction = ExpectedPciFunction { mappable: true, ..AVF };
/// VF of a port with `family = "avf"` that offers doorbell pages to map, for a client that does not read the offer.
pub(crate) const IGNORANT_AVF: ExpectedPciFunction = ExpectedPciFunction { ignorant: true, ..MAPPABLE_AVF };
pub(crate) const PF: ExpectedPciFunction = ExpectedPciFunction {
    device: 0x10c9,
    regions: [0x2_0000, 0, 32, 0x4000, 0, 0, 0, 4096, 0],
    others: [1, 1],
    vectors: 10,
    ..VF
};

/// Error: the host has closed the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConnectionClosed;

/// Client that behaves like QEMU on a function's vfio-user socket.
pub(crate) struct QemuClient {
    stream: StreamSocket,
    poller: Poller,
    client: Client<OwnedFd>,
    outbox: MessageOutbox<OwnedFd>,
    buffer: Vec<u8>,
    fds: ReceivedFds,
    pub(crate) gone: bool,
}

/// Shuts the connection down explicitly. A child process of another test has copies of all file descriptors until it
/// runs its own program, so closing alone would end the connection only then.
impl Drop for QemuClient {
    fn drop(&mut self) {
        self.stream.hang_up();
    }
}

impl QemuClient {
    /// Connects to a function without sending any message.
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = connect(path);
        let poller = Poller::new().unwrap();
        poller.add(&stream, 0, PollInterest::READ).unwrap();
        let (buffer, fds) = (vec![0; 8192], ReceivedFds::new());
        Self { stream, poller, client: Client::new(), outbox: MessageOutbox::new(), buffer, fds, gone: false }
    }

    /// Connects to a function and negotiates a version.
    pub(crate) fn greet(path: &Path) -> Self {
        let mut qemu = Self::connect(path);
        qemu.version();
        qemu
    }

    /// Negotiates QEMU's version of vfio-user. The host must accept several writes in one message, which QEMU supports.
    pub(crate) fn version(&mut self) {
        let agreed = self.ask(Client::version, |answer| match answer {
            Ok(ReplyContents::Version { major: 0, minor: 1, capabilities }) => capabilities.write_multiple,
            other => panic!("unexpected answer {other:?}"),
        });
        assert_eq!(agreed, Ok(Some(true)));
    }

    /// Sends a vfio-user request, and returns the result of `take` on its reply.
    pub(crate) fn ask<T>(
        &mut self,
        request: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
        take: impl FnOnce(Result<ReplyContents<'_>, Errno>) -> T,
    ) -> Result<T, ConnectionClosed> {
        self.ask_for_file(request, |answer, _| take(answer))
    }

    /// Sends a vfio-user request like [`Self::ask`], and also passes the reply's file descriptors to `take`.
    pub(crate) fn ask_for_file<T>(
        &mut self,
        request: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
        take: impl FnOnce(Result<ReplyContents<'_>, Errno>, Vec<OwnedFd>) -> T,
    ) -> Result<T, ConnectionClosed> {
        request(&mut self.client, &mut self.outbox);
        self.flush()?;
        loop {
            if let Some(reply) = self.client.next_reply().unwrap() {
                return Ok(take(reply.answer, reply.fds));
            }
            self.receive()?;
        }
    }

    /// Sends a vfio-user request whose reply has no data, and returns the reply's error if the host refuses.
    pub(crate) fn done(
        &mut self,
        request: impl FnOnce(&mut Client<OwnedFd>, &mut MessageOutbox<OwnedFd>) -> u16,
    ) -> Result<(), Errno> {
        self.ask(request, |answer| answer.map(drop)).expect("the host answers")
    }

    pub(crate) fn map(&mut self, iova: u64, size: u64, fd: Option<OwnedFd>) -> Result<(), Errno> {
        // A window without a descriptor stands for ROM during the guest's boot.
        let window = ClientDmaWindow {
            iova,
            size,
            offset: if fd.is_some() { iova } else { 0 },
            writable: fd.is_some(),
        };
        self.done(|client, out| client.dma_map(out, window, fd))
    }

    pub(crate) fn unmap(&mut self, iova: u64, size: u64) -> Result<(), Errno> {
        self.done(|client, out| client.dma_unmap(out, iova, size))
    }

    pub(crate) fn assign(&mut self, vector: u16, fds: Vec<OwnedFd>) -> Result<(), Errno> {
        self.done(|client, out| client.assign_irqs(out, MSIX, vector.into(), fds))
    }

    /// Sends several register stores in one vfio-user message, without a reply.
    pub(crate) fn store_many(&mut self, writes: &[(u32, u64, &[u8])]) {
        self.client.write_multi_posted(&mut self.outbox, writes);
        self.gone |= self.flush().is_err();
    }

    fn flush(&mut self) -> Result<(), ConnectionClosed> {
        while let Some(chunk) = self.outbox.chunk() {
            let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
            let sent = self.stream.send(chunk.bytes, &fds).unwrap();
            drop(fds);
            match sent {
                SocketSendResult::Bytes(count) => self.outbox.sent(count),
                SocketSendResult::WouldBlock => self.wait(PollInterest::WRITE),
                SocketSendResult::Closed => return Err(ConnectionClosed),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), ConnectionClosed> {
        loop {
            match self.stream.recv(&mut self.buffer, &mut self.fds).unwrap() {
                SocketReceiveResult::Bytes(count) => {
                    self.client.push(&self.buffer[..count], self.fds.drain()).unwrap();
                    return Ok(());
                }
                SocketReceiveResult::WouldBlock => self.wait(PollInterest::READ),
                SocketReceiveResult::Closed => return Err(ConnectionClosed),
            }
        }
    }

    fn wait(&mut self, interest: PollInterest) {
        self.poller.modify(&self.stream, 0, interest).unwrap();
        assert!(self.poller.wait(Some(PATIENCE)).unwrap().next().is_some(), "the host does not answer");
    }
}

/// Connects to a vfio-user socket, and tries again while the socket's queue of connections is full.
pub(crate) fn connect(path: &Path) -> StreamSocket {
    loop {
        match StreamSocket::connect(path) {
            Ok(stream) => return stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

impl Vmm for QemuClient {
    fn load(&mut self, region: u32, offset: u64, into: &mut [u8]) {
        into.fill(0xff);
        let count = into.len() as u32;
        let answered = self.ask(
            |client, out| client.read(out, region, offset, count),
            |answer| match answer {
                Ok(ReplyContents::Data(data)) => into.copy_from_slice(data),
                other => panic!("unexpected answer {other:?}"),
            },
        );
        self.gone |= answered.is_err();
    }

    fn store(&mut self, region: u32, offset: u64, from: &[u8]) {
        let stored = if region == CONFIG {
            let write = |client: &mut Client<OwnedFd>, out: &mut MessageOutbox<OwnedFd>| {
                client.write(out, region, offset, from)
            };
            self.ask(write, |answer| assert_eq!(answer, Ok(ReplyContents::Done)))
        } else {
            self.client.write_posted(&mut self.outbox, region, offset, from);
            self.flush()
        };
        self.gone |= stored.is_err();
    }
}

/// Connects to a VF of an 82576 and performs QEMU's steps up to the start of the guest's driver.
pub(crate) fn boot(path: &Path) -> VmWithPciFunction<QemuClient> {
    boot_as(path, VF, share)
}

/// Boots the simulated QEMU on a VF or a PF, up to the start of the guest's driver. `share` announces the guest's
/// memory to the host.
pub(crate) fn boot_as(
    path: &Path,
    shape: ExpectedPciFunction,
    share: fn(&mut VmWithPciFunction<QemuClient>),
) -> VmWithPciFunction<QemuClient> {
    let mut machine = VmWithPciFunction::new(QemuClient::connect(path), shape.vectors);
    realize(&mut machine.vmm, shape);
    share(&mut machine);
    machine.vmm.done(Client::reset).unwrap();
    enable_interrupts(&mut machine);
    machine.enable();
    machine
}

/// Negotiates the vfio-user version, and reads as QEMU does: device, regions (first with little room, then with
/// enough), interrupts, and all of configuration space in one block.
fn realize(qemu: &mut QemuClient, shape: ExpectedPciFunction) {
    qemu.version();
    let info = qemu.ask(Client::device_info, |answer| answer == Ok(ReplyContents::DeviceInfo(EXPECTED)));
    assert_eq!(info, Ok(true));
    for (index, expected) in (0..).zip(shape.regions) {
        let (argsz, size, flags) = region(qemu, index, 32);
        assert_eq!(size, expected, "region {index}");
        if !shape.ignorant {
            let caps = if argsz > 32 { region_flags::CAPS } else { 0 };
            assert_eq!(region(qemu, index, argsz), (argsz, size, flags | caps));
        }
        let mappable = index == 0 && shape.mappable;
        assert_eq!(flags & region_flags::MMAP != 0, mappable, "QEMU posts no stores to a mappable region");
    }
    let [pin, msi] = shape.others;
    let masked = irq_flags::MASKABLE | irq_flags::AUTOMASKED;
    // With NORESIZE for MSI-X, QEMU would disable all vectors before it enables another one.
    let types = [(pin, masked), (msi, irq_flags::NORESIZE), (shape.vectors, 0), (0, 0), (0, 0)];
    for (index, (count, flags)) in (0..).zip(types) {
        let take = |answer: Result<ReplyContents<'_>, Errno>| match answer {
            Ok(ReplyContents::Irq(info)) => (info.count, info.flags),
            other => panic!("unexpected answer {other:?}"),
        };
        let flags = if count > 0 { flags | irq_flags::EVENTFD } else { 0 };
        assert_eq!(qemu.ask(|client, out| client.irq_info(out, index), take), Ok((count, flags)));
    }
    let mut space = [0; 4096];
    qemu.load(CONFIG, 0, &mut space);
    let ids = [0x8086, shape.device].map(u16::to_le_bytes);
    assert_eq!(space[..4], *ids.as_flattened());
}

const EXPECTED: DeviceInfo =
    DeviceInfo { flags: device_flags::PCI | device_flags::RESET, regions: 9, irqs: 5 };

fn region(qemu: &mut QemuClient, index: u32, room: u32) -> (u32, u64, u32) {
    let take = |answer: Result<ReplyContents<'_>, Errno>| match answer {
        Ok(ReplyContents::Region(layout)) => (layout.argsz, layout.size, layout.flags),
        other => panic!("unexpected answer {other:?}"),
    };
    qemu.ask(|client, out| client.region_info(out, index, room), take).unwrap()
}

/// Announces the guest's memory as QEMU does: RAM with a file descriptor, ROM and another device's memory without.
pub(crate) fn share(machine: &mut VmWithPciFunction<QemuClient>) {
    let (low, high) = (machine.ram.fd(), machine.ram.fd());
    let qemu = &mut machine.vmm;
    qemu.map(0, HOLE, Some(low)).unwrap();
    qemu.map(HOLE, 0x2_0000, None).unwrap();
    qemu.map(HIGH, SIZE - HIGH, Some(high)).unwrap();
    qemu.map(0xfffc_0000, 0x4_0000, None).unwrap();
    qemu.unmap(HOLE, 0x2_0000).unwrap();
}

/// Announces the guest's RAM without file descriptors, as QEMU does without `share=on`.
pub(crate) fn announce_only(machine: &mut VmWithPciFunction<QemuClient>) {
    let qemu = &mut machine.vmm;
    qemu.map(0, HOLE, None).unwrap();
    qemu.map(HIGH, SIZE - HIGH, None).unwrap();
}

/// Enables MSI-X as QEMU does: first one interrupt vector without an eventfd, then each vector with an eventfd of its
/// own.
fn enable_interrupts(machine: &mut VmWithPciFunction<QemuClient>) {
    let copies = machine.eventfd_copies();
    let qemu = &mut machine.vmm;
    qemu.done(|client, out| client.deassign_irqs(out, MSIX, 0, 1)).unwrap();
    for (vector, copy) in (0..).zip(copies) {
        qemu.assign(vector, vec![copy]).unwrap();
    }
}
