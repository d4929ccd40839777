//! A kernel with one network device and one program, as a sequence of steps: hard interrupts first, then the
//! poll of the receive ring, then the program, then nothing.
//!
//! Each step charges what it does and is short: one interrupt, one poll of at most 64 packets, a few
//! reads or writes of the program. Left out: other processes, paging.

mod interrupt;
mod poll;
mod program;
mod reassembly;
mod respond;
mod send;
mod spec;
#[cfg(test)]
mod tests;

pub use send::Sending;
pub use spec::{Load, Spec, Tick};

use crate::device::Device;
use crate::platform::Platform;
use crate::socket::Socket;
use alloc::boxed::Box;
use hypervisor::cpu::Then;
use i82576::MacAddress;
use interrupt::Phase;
use sim::Instant;

/// Longest frame that a device hands over: a front end's may still be uncut.
const FRAME: usize = split::LONGEST;

/// A kernel, its network device `D`, its socket and its program.
#[derive(Debug)]
pub struct Kernel<D> {
    spec: Spec,
    device: D,
    socket: Socket,
    /// Where a hard interrupt stands that had to wait.
    phase: Option<Phase>,
    /// The receive ring is to be polled.
    poll: bool,
    /// The program has something to read and was woken.
    runnable: bool,
    /// Nothing was left to do at the end of the last step.
    idle: bool,
    /// When the timer is set for, as far as the kernel knows.
    timer: Option<Instant>,
    /// Thousandths of a timer write still owed for starting the tick, and for stopping it.
    timer_debts: [u64; 2],
    stream: poll::Stream,
    /// Who sent what the program has heard of last.
    peer: MacAddress,
    /// The greatest number of a datagram so far.
    newest: Option<u32>,
    /// Responses of the program that the device is still to be given.
    due: u64,
    /// The datagram that is being put together.
    reassembly: reassembly::Reassembly,
    /// The program that sends, if there is one.
    sender: Option<send::Sender>,
    counters: Counters,
    buffer: Box<[u8]>,
}

/// What a kernel has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interrupts that found frames received.
    pub receive_interrupts: u64,
    /// Interrupts of the timer.
    pub timer_interrupts: u64,
    /// Polls of the receive ring.
    pub polls: u64,
    /// Frames taken from the ring.
    pub frames: u64,
    /// Datagrams that came after one with a greater number.
    pub reordered: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Responses sent.
    pub responses: u64,
    /// Payload bytes that the program has read.
    pub read_bytes: u64,
    /// Packets that the program has read.
    pub read_packets: u64,
    /// Payload bytes that the program has written, responses apart.
    pub written_bytes: u64,
    /// Messages that they came in.
    pub written_messages: u64,
    /// Frames that the device took for that, segments counted.
    pub sent_frames: u64,
    /// Frames that it had no room for.
    pub send_drops: u64,
}

impl<D> Kernel<D> {
    /// A kernel that drives a device which has been started.
    #[must_use]
    pub fn new(spec: Spec, device: D) -> Self {
        Self {
            socket: Socket::new(spec.buffers()),
            spec,
            device,
            phase: None,
            poll: false,
            runnable: false,
            idle: true,
            timer: None,
            timer_debts: [0; 2],
            stream: poll::Stream::default(),
            peer: MacAddress::default(),
            newest: None,
            due: 0,
            reassembly: reassembly::Reassembly::default(),
            sender: None,
            counters: Counters::default(),
            buffer: alloc::vec![0; FRAME].into(),
        }
    }

    /// Whether the next step may look for what the network device has done even if no interrupt is to be taken.
    /// A program that only reads does not; if it has the device send something, that begins then.
    #[must_use]
    pub fn looks(&self) -> bool {
        self.poll || self.phase.is_some() || self.sender.as_ref().is_some_and(|sender| sender.runnable)
    }

    /// One step; answers whether there is more to do.
    pub fn step<P: Platform>(&mut self, platform: &mut P) -> Then
    where
        D: Device<P>,
    {
        if let Some(then) = self.interrupt(platform) {
            return then;
        }
        if self.poll {
            self.poll(platform);
            return Then::Continue;
        }
        if self.due > 0 {
            self.send_responses(platform);
            return Then::Continue;
        }
        if self.runnable {
            self.run(platform);
            return Then::Continue;
        }
        if self.sender.as_ref().is_some_and(|sender| sender.runnable) {
            self.send(platform);
            return Then::Continue;
        }
        if !core::mem::replace(&mut self.idle, true) {
            self.stop_tick(platform);
            platform.halt();
        }
        Then::Block
    }

    /// Its network device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The program's receive buffer.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
