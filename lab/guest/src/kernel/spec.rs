//! Kernel configuration: version-dependent behaviour and the program's load. Costs belong to the machine.

use sim::VirtualDuration;

/// Configuration of a modelled kernel and its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelConfig {
    /// The kernel masks an interrupt's MSI-X vector at the start of each interrupt and unmasks it at the end (Linux
    /// 2.6.18).
    pub masks: bool,
    /// The kernel accounts for each datagram's memory under the socket lock (Linux 2.6.25 and later).
    pub accounts: bool,
    /// Mode of the kernel's periodic timer interrupt: always, or only while something is runnable.
    pub tick: TickMode,
    /// Capacity of the program's socket in packets: 120,832 bytes of buffers, at 1,888 per full frame.
    pub socket_packets: u32,
    /// Capacity of the program's socket in TCP segments: 120,832 bytes of payload, since TCP announces bytes, not
    /// buffers.
    pub stream_segments: u32,
    /// Maximum number of packets that one poll of the receive ring takes.
    pub budget: u32,
    /// Workload of the kernel's program.
    pub load: ProgramWorkload,
}

/// Mode of a kernel's periodic timer interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickMode {
    /// Timer interrupts come at every period, also when the kernel is idle.
    Periodic(VirtualDuration),
    /// Timer interrupts come at every period while something is runnable; the timer is reprogrammed on going idle and
    /// on waking.
    Tickless(VirtualDuration),
}

/// Work of a program, which determines the packets that it reads and sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramWorkload {
    /// The program reads datagrams, one per system call.
    Udp,
    /// The program reads a TCP stream, all pending bytes per system call; the kernel acknowledges every second segment.
    Tcp,
    /// The program answers each datagram with a datagram of one byte (netperf UDP_RR): one system call to read, one to
    /// send.
    RequestResponse,
}

impl KernelConfig {
    /// Returns the capacity of the program's socket, in packets of its kind of traffic.
    #[must_use]
    pub fn buffers(&self) -> u32 {
        match self.load {
            ProgramWorkload::Tcp => self.stream_segments,
            ProgramWorkload::Udp | ProgramWorkload::RequestResponse => self.socket_packets,
        }
    }

    /// Returns the configuration of Linux 2.6.18 as in RHEL 5, which masks MSI-X vectors at run time and ticks at 1,000
    /// Hz.
    #[must_use]
    pub fn linux_2_6_18(load: ProgramWorkload) -> Self {
        let tick = TickMode::Periodic(VirtualDuration::from_millis(1));
        Self { masks: true, accounts: false, tick, socket_packets: 64, stream_segments: 83, budget: 64, load }
    }

    /// Returns the configuration of Linux 2.6.18 as a paravirtualized guest. It ticks at 250 Hz unless idle, and masks
    /// event channels in memory shared with the hypervisor.
    #[must_use]
    pub fn xenlinux_2_6_18(load: ProgramWorkload) -> Self {
        Self { tick: TickMode::Tickless(VirtualDuration::from_millis(4)), ..Self::linux_2_6_18(load) }
    }

    /// Returns the configuration of Linux 2.6.28, which does not mask MSI-X vectors at run time and ticks at 1,000 Hz
    /// unless idle.
    #[must_use]
    pub fn linux_2_6_28(load: ProgramWorkload) -> Self {
        Self {
            masks: false,
            accounts: true,
            tick: TickMode::Tickless(VirtualDuration::from_millis(1)),
            ..Self::linux_2_6_18(load)
        }
    }
}
