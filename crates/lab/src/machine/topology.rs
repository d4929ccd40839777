//! What a server is made of, as data: sockets, cores and threads, who runs where, what its ports are connected to and
//! how what clients send comes in bursts. Left out: prices, which are a cost table's.

use hypervisor::cpu::ThreadId;
use sim::Span;

/// A server and what is connected to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Sockets, each with a last-level cache.
    pub sockets: u16,
    /// Cores of a socket.
    pub cores_per_socket: u16,
    /// Threads of a core.
    pub threads_per_core: u16,
    /// Virtual CPUs of the service domain.
    pub service_cpus: u16,
    /// Where they run.
    pub service_home: Home,
    /// Where guests' virtual CPUs run.
    pub guest_home: Home,
    /// From one of the service domain's ticks to the next.
    pub service_tick: Span,
    /// Guests that a port has room for.
    pub guests_per_port: u8,
    /// What a port is connected to.
    pub wire: Wire,
}

/// Which threads virtual CPUs run on: one after the other, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// This thread of each core.
    Sibling(u16),
    /// The only threads of these cores, from the first on.
    Cores {
        /// The first.
        first: u16,
        /// How many.
        count: u16,
    },
}

/// A port's wire, and how its clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// Bits a second.
    pub bits_per_second: u64,
    /// Frames of a stream's burst.
    pub segments: u32,
    /// Frames of a burst of datagrams.
    pub datagrams: u32,
    /// From a client's wire to its next segment or request: its card, its interrupt, its stack.
    pub turnaround: Span,
}

impl Wire {
    /// A gigabit, and clients of the time. A stream's burst is 64 KB in segments. A sender of datagrams that has filled
    /// its socket's buffer, as big as a receiver's, is woken when half of that is free again (Linux `sock_writeable`).
    pub const GIGABIT: Self = Self {
        bits_per_second: 1_000_000_000,
        segments: 44,
        datagrams: 32,
        turnaround: Span::from_micros(30),
    };
}

impl Topology {
    /// The server of Dong et al., HPCA 2010: two sockets of four cores, two threads each. Thread 0 of a core is the
    /// service domain's (Linux 2.6.18 of RHEL 5, a tick a millisecond), thread 1 the guests'.
    pub const HPCA2010: Self = Self {
        sockets: 2,
        cores_per_socket: 4,
        threads_per_core: 2,
        service_cpus: 8,
        service_home: Home::Sibling(0),
        guest_home: Home::Sibling(1),
        service_tick: Span::from_millis(1),
        guests_per_port: 7,
        wire: Wire::GIGABIT,
    };

    /// Cores of all sockets.
    #[must_use]
    pub const fn cores(&self) -> u16 {
        self.sockets * self.cores_per_socket
    }

    /// Threads of all cores.
    #[must_use]
    pub const fn threads(&self) -> u16 {
        self.cores() * self.threads_per_core
    }

    /// Where the service domain's virtual CPU `n` runs.
    #[must_use]
    pub fn service(&self, n: u16) -> ThreadId {
        self.place(self.service_home, n)
    }

    /// Where guest `n` runs.
    #[must_use]
    pub fn guest(&self, n: u16) -> ThreadId {
        self.place(self.guest_home, n)
    }

    /// Where program `n` of a bare machine runs: with nobody to leave a thread of each core to, programs have their
    /// turn on the other threads once every core has something to do.
    #[must_use]
    pub fn bare(&self, n: u16) -> ThreadId {
        let round = n / self.cores() + self.threads_per_core / 2;
        self.place(Home::Sibling(round % self.threads_per_core), n)
    }

    /// The socket that a thread is of.
    #[must_use]
    pub fn socket(&self, thread: ThreadId) -> usize {
        thread.index() / usize::from(self.cores_per_socket * self.threads_per_core)
    }

    fn place(&self, home: Home, n: u16) -> ThreadId {
        ThreadId::new(match home {
            Home::Sibling(sibling) => n % self.cores() * self.threads_per_core + sibling,
            Home::Cores { first, count } => (first + n % count) * self.threads_per_core,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, Topology};

    #[test]
    fn guests_of_the_paper_share_cores_with_the_service_domain_and_no_threads() {
        let topology = Topology::HPCA2010;
        let threads =
            |place: fn(&Topology, u16) -> _| (0..10).map(|n| place(&topology, n)).collect::<Vec<_>>();
        let indices = |all: Vec<hypervisor::cpu::ThreadId>| all.iter().map(|t| t.index()).collect::<Vec<_>>();
        assert_eq!(indices(threads(Topology::service)), [0, 2, 4, 6, 8, 10, 12, 14, 0, 2]);
        assert_eq!(indices(threads(Topology::guest)), [1, 3, 5, 7, 9, 11, 13, 15, 1, 3]);
        assert_eq!(indices(threads(Topology::bare)), [1, 3, 5, 7, 9, 11, 13, 15, 0, 2]);
        assert_eq!(topology.socket(topology.guest(3)), 0);
        assert_eq!(topology.socket(topology.guest(4)), 1);
    }

    #[test]
    fn cores_without_sibling_threads_are_divided() {
        let guest_home = Home::Cores { first: 4, count: 4 };
        let topology = Topology { threads_per_core: 1, guest_home, ..Topology::HPCA2010 };
        let homes: Vec<_> = (0..6).map(|n| topology.guest(n).index()).collect();
        assert_eq!(homes, [4, 5, 6, 7, 4, 5]);
    }
}
