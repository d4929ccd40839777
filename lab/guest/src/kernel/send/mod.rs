//! The sending program: writes one message per system call until the socket's send buffer is full. The program then
//! sleeps until enough of the buffer is free.

mod datagram;
mod stream;

use super::KernelModel;
use super::spec::ProgramWorkload;
use crate::device::NetworkDevice;
use crate::packet::TCP_HEADERS;
use crate::platform::KernelPlatform;
use alloc::boxed::Box;
use hypervisor::account::CycleCategory;
use hypervisor::cost::CostConstant;
use i82576::MacAddress;
use stream::TcpSendStream;

/// Number of messages that the sending program sends per simulated step.
const WRITES_PER_STEP: u32 = 4;

/// Configuration of the sending program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderConfig {
    /// MAC address that the program sends to.
    pub to: MacAddress,
    /// Kind of traffic that the program sends: TCP for a stream; any other load sends datagrams.
    pub load: ProgramWorkload,
    /// Bytes per message, which the program sends by one system call.
    pub message_bytes: u32,
    /// Bytes of the longest IP packet that the program sends unfragmented; at least 68 (RFC 791).
    pub mtu: u16,
    /// Capacity of the sending socket's buffer in kernel buffers, each for a frame or 2 KB of one.
    pub buffers: u32,
}

/// Sending program and its socket.
#[derive(Debug)]
pub(super) struct SenderProgram {
    config: SenderConfig,
    /// The sending program is awake and may send.
    pub(super) runnable: bool,
    /// Frame that the sending program builds. Only its headers are filled in, since no receiver reads the payload.
    frame: Box<[u8]>,
    /// IPv4 identification of the next datagram that the program sends.
    next_id: u16,
    stream: TcpSendStream,
}

impl SenderProgram {
    fn new(config: SenderConfig) -> Self {
        let frame = alloc::vec![0; TCP_HEADERS + stream::LARGEST].into();
        Self { config, runnable: true, frame, next_id: 0, stream: TcpSendStream::default() }
    }

    /// Returns `true` if the socket accepts another message, with `held` buffers queued at the device.
    fn has_room(&self, held: usize) -> bool {
        match self.config.load {
            ProgramWorkload::Udp | ProgramWorkload::RequestResponse => held < self.config.buffers as usize,
            ProgramWorkload::Tcp => self.stream.unacknowledged() < stream::bytes(self.config.buffers),
        }
    }

    /// Returns `true` if enough of the send buffer is free to wake a sleeping program: half of the kernel buffers, or a
    /// third of a stream's bytes.
    fn has_room_to_wake(&self, held: usize) -> bool {
        match self.config.load {
            ProgramWorkload::Udp | ProgramWorkload::RequestResponse => {
                2 * held <= self.config.buffers as usize
            }
            ProgramWorkload::Tcp => {
                self.stream.unacknowledged() <= stream::bytes(self.config.buffers) / 3 * 2
            }
        }
    }
}

impl<D> KernelModel<D> {
    /// Starts the sending program. The caller must wake the kernel's virtual CPU.
    pub fn start_sending(&mut self, config: SenderConfig) {
        self.sender = Some(SenderProgram::new(config));
        self.idle = false;
    }

    /// Runs one simulated step of the sending program: it sends a few messages, or sleeps.
    pub(super) fn send<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        let Some(mut sender) = self.sender.take() else { return };
        for _ in 0..WRITES_PER_STEP {
            if !sender.has_room(self.device.unsent()) {
                sender.runnable = false;
                platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::ContextSwitch));
                break;
            }
            self.write(platform, &mut sender);
        }
        self.sender = Some(sender);
    }

    /// Writes a message with a system call, which copies the message and passes it to the protocol stack.
    fn write<P: KernelPlatform>(&mut self, platform: &mut P, sender: &mut SenderProgram)
    where
        D: NetworkDevice<P>,
    {
        let bytes = u64::from(sender.config.message_bytes);
        let copied = (bytes * platform.cost(CostConstant::CopyWarm)).div_ceil(1_000);
        platform.charge(CycleCategory::User, platform.cost(CostConstant::TxSyscall) + copied);
        platform.system_call();
        self.counters.written_messages += 1;
        self.counters.written_bytes += bytes;
        match sender.config.load {
            ProgramWorkload::Udp | ProgramWorkload::RequestResponse => self.send_datagram(platform, sender),
            ProgramWorkload::Tcp => self.write_stream(platform, sender),
        }
    }

    /// Wakes the sending program if enough of its send buffer is free.
    pub(super) fn wake_sender<P: KernelPlatform>(&mut self, platform: &mut P)
    where
        D: NetworkDevice<P>,
    {
        let held = self.device.unsent();
        let Some(sender) = self.sender.as_mut().filter(|s| !s.runnable && s.has_room_to_wake(held)) else {
            return;
        };
        sender.runnable = true;
        platform.charge(CycleCategory::Kernel, platform.cost(CostConstant::ContextSwitch));
        self.start_tick(platform);
    }
}
