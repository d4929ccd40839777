//! Model of a kernel with one network device and one program, as a sequence of steps. Hard interrupts come
//! first, then the poll of the receive ring, then the program.
//!
//! Each step charges its own cost and is short: one interrupt, one poll of at most 64 packets, or a few reads
//! or writes of the program. Other processes and paging are not modelled.

mod interrupt;
mod poll;
mod program;
mod reassembly;
mod respond;
mod send;
mod spec;
#[cfg(test)]
mod tests;

pub use send::SenderConfig;
pub use spec::{KernelConfig, ProgramWorkload, TickMode};

use crate::device::NetworkDevice;
use crate::platform::KernelPlatform;
use crate::socket::SocketReceiveBuffer;
use alloc::boxed::Box;
use hypervisor::cpu::VcpuStepOutcome;
use i82576::MacAddress;
use interrupt::InterruptPhase;
use sim::VirtualInstant;

/// Length of the longest frame that a device delivers, in bytes: a front end may deliver an unsegmented
/// frame.
const FRAME: usize = split::MAX_FRAME;

/// Kernel with its network device `D`, its socket and its program.
#[derive(Debug)]
pub struct KernelModel<D> {
    spec: KernelConfig,
    device: D,
    socket: SocketReceiveBuffer,
    /// Progress of a hard interrupt whose handling blocked.
    phase: Option<InterruptPhase>,
    /// The kernel has to poll the receive ring in its next step.
    poll: bool,
    /// The program was woken and has data to read from its socket.
    runnable: bool,
    /// The last step of the kernel found nothing to do.
    idle: bool,
    /// Time for which the kernel last programmed its timer.
    timer: Option<VirtualInstant>,
    /// Timer writes that the kernel still has to make for starts and for stops of the tick, in thousandths of
    /// a write.
    timer_debts: [u64; 2],
    stream: poll::TcpReceiveStream,
    /// MAC address of the sender of the last frame delivered to the program.
    peer: MacAddress,
    /// Highest sequence number of the datagrams received so far.
    newest: Option<u32>,
    /// Number of the program's responses that were not given to the device yet.
    due: u64,
    /// Fragmented datagram that the kernel is reassembling.
    reassembly: reassembly::DatagramReassembly,
    /// Program that sends packets through this kernel, or `None` if none runs.
    sender: Option<send::SenderProgram>,
    counters: KernelCounters,
    buffer: Box<[u8]>,
}

/// Counters of a kernel since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Number of interrupts that reported received frames.
    pub receive_interrupts: u64,
    /// Number of timer interrupts that the kernel took.
    pub timer_interrupts: u64,
    /// Number of polls of the receive ring by the kernel.
    pub polls: u64,
    /// Number of frames that the kernel took from the receive ring.
    pub frames: u64,
    /// Number of datagrams received after a datagram with a higher sequence number.
    pub reordered: u64,
    /// Number of TCP acknowledgements that the kernel sent.
    pub acknowledgements: u64,
    /// Number of responses that the guest's program sent.
    pub responses: u64,
    /// Number of payload bytes that the program read from its socket.
    pub read_bytes: u64,
    /// Number of packets that the program read from its socket.
    pub read_packets: u64,
    /// Number of payload bytes written by the sending program, without responses.
    pub written_bytes: u64,
    /// Number of messages written by the sending program.
    pub written_messages: u64,
    /// Number of frames the device accepted from the sending program, counted in segments.
    pub sent_frames: u64,
    /// Number of frames of the sending program that the kernel dropped because the device had no room.
    pub send_drops: u64,
}

impl<D> KernelModel<D> {
    /// Creates a kernel for a network device whose driver is started.
    #[must_use]
    pub fn new(spec: KernelConfig, device: D) -> Self {
        Self {
            socket: SocketReceiveBuffer::new(spec.buffers()),
            spec,
            device,
            phase: None,
            poll: false,
            runnable: false,
            idle: true,
            timer: None,
            timer_debts: [0; 2],
            stream: poll::TcpReceiveStream::default(),
            peer: MacAddress::default(),
            newest: None,
            due: 0,
            reassembly: reassembly::DatagramReassembly::default(),
            sender: None,
            counters: KernelCounters::default(),
            buffer: alloc::vec![0; FRAME].into(),
        }
    }

    /// Returns `true` if the kernel's next step may poll the network device even without a pending interrupt.
    /// A program that only reads does not poll; its responses are given to the device in a separate step.
    #[must_use]
    pub fn polls_device(&self) -> bool {
        self.poll || self.phase.is_some() || self.sender.as_ref().is_some_and(|sender| sender.runnable)
    }

    /// Performs one step of the guest's kernel or program. Returns whether the kernel continues or blocks.
    pub fn step<P: KernelPlatform>(&mut self, platform: &mut P) -> VcpuStepOutcome
    where
        D: NetworkDevice<P>,
    {
        if let Some(then) = self.interrupt(platform) {
            return then;
        }
        if self.poll {
            self.poll(platform);
            return VcpuStepOutcome::Continue;
        }
        if self.due > 0 {
            self.send_responses(platform);
            return VcpuStepOutcome::Continue;
        }
        if self.runnable {
            self.run(platform);
            return VcpuStepOutcome::Continue;
        }
        if self.sender.as_ref().is_some_and(|sender| sender.runnable) {
            self.send(platform);
            return VcpuStepOutcome::Continue;
        }
        if !core::mem::replace(&mut self.idle, true) {
            self.stop_tick(platform);
            platform.halt();
        }
        VcpuStepOutcome::Block
    }

    /// Returns the kernel's network device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the program's receive buffer.
    #[must_use]
    pub fn socket(&self) -> &SocketReceiveBuffer {
        &self.socket
    }

    /// Returns the kernel's counters.
    #[must_use]
    pub fn counters(&self) -> &KernelCounters {
        &self.counters
    }
}
