//! The sending program: a message with each system call, until the socket's send buffer is full; then it sleeps until
//! enough of it is free again. Left out: what the messages say.

mod datagram;
mod stream;

use super::Kernel;
use super::spec::Load;
use crate::device::Device;
use crate::packet::TCP_HEADERS;
use crate::platform::Platform;
use alloc::boxed::Box;
use hypervisor::account::Category;
use hypervisor::cost::Cost;
use i82576::MacAddress;
use stream::Outgoing;

/// Messages that one step of the program sends.
const WRITES: u32 = 4;

/// What a program sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// To whom.
    pub to: MacAddress,
    /// A stream, or else datagrams.
    pub load: Load,
    /// Bytes that it hands over with each system call.
    pub message_bytes: u32,
    /// Bytes of the longest IP packet that is sent whole; at least 68 (RFC 791).
    pub mtu: u16,
    /// Buffers of the kernel that its socket may fill with what has not left yet, each with a frame or 2 KB of one.
    pub buffers: u32,
}

/// The program and its socket.
#[derive(Debug)]
pub(super) struct Sender {
    what: Sending,
    /// It has room to send.
    pub(super) runnable: bool,
    /// The frame under construction. Nobody reads more of it than its headers.
    frame: Box<[u8]>,
    /// Identification of the next datagram.
    next_id: u16,
    stream: Outgoing,
}

impl Sender {
    fn new(what: Sending) -> Self {
        let frame = alloc::vec![0; TCP_HEADERS + stream::LARGEST].into();
        Self { what, runnable: true, frame, next_id: 0, stream: Outgoing::default() }
    }

    /// Whether the socket takes another message, with `held` buffers at the device.
    fn has_room(&self, held: usize) -> bool {
        match self.what.load {
            Load::Udp | Load::RequestResponse => held < self.what.buffers as usize,
            Load::Tcp => self.stream.kept() < stream::bytes(self.what.buffers),
        }
    }

    /// Whether so much is free again that a sleeping program is woken: half of the buffers, or a third of a stream's
    /// bytes.
    fn has_much_room(&self, held: usize) -> bool {
        match self.what.load {
            Load::Udp | Load::RequestResponse => 2 * held <= self.what.buffers as usize,
            Load::Tcp => self.stream.kept() <= stream::bytes(self.what.buffers) / 3 * 2,
        }
    }
}

impl<D> Kernel<D> {
    /// From now on the program sends. The kernel's virtual CPU is to be woken for it.
    pub fn start_sending(&mut self, what: Sending) {
        self.sender = Some(Sender::new(what));
        self.idle = false;
    }

    /// The program's turn: a few messages, or sleep.
    pub(super) fn send<P: Platform>(&mut self, platform: &mut P)
    where
        D: Device<P>,
    {
        let Some(mut sender) = self.sender.take() else { return };
        for _ in 0..WRITES {
            if !sender.has_room(self.device.unsent()) {
                sender.runnable = false;
                platform.charge(Category::Kernel, platform.cost(Cost::ContextSwitch));
                break;
            }
            self.write(platform, &mut sender);
        }
        self.sender = Some(sender);
    }

    /// A system call with a message: it is copied, and goes down the stack.
    fn write<P: Platform>(&mut self, platform: &mut P, sender: &mut Sender)
    where
        D: Device<P>,
    {
        let bytes = u64::from(sender.what.message_bytes);
        let copied = (bytes * platform.cost(Cost::CopyWarm)).div_ceil(1_000);
        platform.charge(Category::User, platform.cost(Cost::TxSyscall) + copied);
        platform.system_call();
        self.counters.written_messages += 1;
        self.counters.written_bytes += bytes;
        match sender.what.load {
            Load::Udp | Load::RequestResponse => self.send_datagram(platform, sender),
            Load::Tcp => self.write_stream(platform, sender),
        }
    }

    /// Something has left, or was acknowledged: the program is woken if there is room enough.
    pub(super) fn room_again<P: Platform>(&mut self, platform: &mut P)
    where
        D: Device<P>,
    {
        let held = self.device.unsent();
        let Some(sender) = self.sender.as_mut().filter(|s| !s.runnable && s.has_much_room(held)) else {
            return;
        };
        sender.runnable = true;
        platform.charge(Category::Kernel, platform.cost(Cost::ContextSwitch));
        self.start_tick(platform);
    }
}
