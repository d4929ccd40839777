//! What sort of kernel it is. Left out: prices, which are the machine's.

use sim::Span;

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// It masks a vector's MSI-X entry at the start of each interrupt and unmasks it at the end (Linux 2.6.18).
    pub masks: bool,
    /// It accounts for the memory of each datagram under the socket's lock (Linux 2.6.25 and later).
    pub accounts: bool,
    /// Its timer interrupt.
    pub tick: Tick,
    /// Packets that the program's socket holds: 120,832 bytes at 1,888 a full frame.
    pub socket_packets: u32,
    /// Segments of a stream that it holds: TCP promises bytes, not buffers, so these are 120,832 of payload.
    pub stream_segments: u32,
    /// Packets that a poll of the receive ring takes at most.
    pub budget: u32,
    /// What the program does.
    pub load: Load,
}

/// A kernel's timer interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// At every period, whatever happens.
    Periodic(Span),
    /// At every period while something runs; programmed anew when the kernel goes idle and when it wakes.
    Tickless(Span),
}

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Reads datagrams, each with a system call.
    Udp,
    /// Reads a stream, all that is there with a system call; the kernel acknowledges every second segment.
    Tcp,
    /// Answers datagrams, each with one of a byte (netperf's UDP_RR): a system call to read, another to send.
    RequestResponse,
}

impl Spec {
    /// Packets that its program's socket holds, of what the program reads.
    #[must_use]
    pub fn buffers(&self) -> u32 {
        match self.load {
            Load::Tcp => self.stream_segments,
            Load::Udp | Load::RequestResponse => self.socket_packets,
        }
    }

    /// Linux 2.6.18 as RHEL 5 has it: masks at run time, ticks at 1,000 Hz.
    #[must_use]
    pub fn linux_2_6_18(load: Load) -> Self {
        let tick = Tick::Periodic(Span::from_millis(1));
        Self { masks: true, accounts: false, tick, socket_packets: 64, stream_segments: 83, budget: 64, load }
    }

    /// Linux 2.6.18 as a paravirtualized guest: ticks at 250 Hz unless idle; its masks are the event channels',
    /// in memory that it shares with the hypervisor.
    #[must_use]
    pub fn xenlinux_2_6_18(load: Load) -> Self {
        Self { tick: Tick::Tickless(Span::from_millis(4)), ..Self::linux_2_6_18(load) }
    }

    /// Linux 2.6.28: does not mask at run time, is tickless at 1,000 Hz.
    #[must_use]
    pub fn linux_2_6_28(load: Load) -> Self {
        Self {
            masks: false,
            accounts: true,
            tick: Tick::Tickless(Span::from_millis(1)),
            ..Self::linux_2_6_18(load)
        }
    }
}
