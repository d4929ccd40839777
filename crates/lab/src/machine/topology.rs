//! What a server is made of, as data: sockets, cores and threads, who runs where, what its ports are connected to and
//! how what clients send comes in bursts. Left out: prices, which are a cost table's.

use hypervisor::cpu::ThreadId;
use sim::Span;

/// A server and what is connected to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Sockets, or what else has a last-level cache to itself.
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
    /// Segments of a stream that a client's card is given at a time, at most.
    pub segments: u32,
    /// Datagrams that a client's socket holds.
    pub socket: u32,
    /// Datagrams that the transmit ring of the clients' card holds.
    pub ring: u32,
    /// From a client's wire to its next segment or request: its card, its interrupt, its stack.
    pub turnaround: Span,
}

impl Wire {
    /// A gigabit, and clients of the time. A stream is handed over in up to 64 KB, which the card cuts into segments.
    /// A client's socket is as large as a receiver's. A ring has 256 descriptors (igb), and a datagram takes three: the
    /// context of its checksum, its headers, its page.
    pub const GIGABIT: Self = Self {
        bits_per_second: 1_000_000_000,
        segments: 44,
        socket: 64,
        ring: 256 / 3,
        turnaround: Span::from_micros(30),
    };

    /// Datagrams that each of so many clients sends before another has its turn, in the mean. One that has filled its socket
    /// sleeps until half of it is free again (Linux `sock_writeable`); the ring that they share holds a part for each.
    #[must_use]
    pub const fn burst(&self, clients: u32) -> u32 {
        let clients = if clients == 0 { 1 } else { clients };
        let (woken, part) = (self.socket / 2, self.ring / clients);
        let least = if part < woken { part } else { woken };
        if least == 0 { 1 } else { least }
    }
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

    /// The server of Zhang et al., multi-core netback: eight cores without siblings, in pairs that share a cache; four
    /// for the service domain, four for guests.
    pub const NETBACK: Self = Self {
        sockets: 4,
        cores_per_socket: 2,
        threads_per_core: 1,
        service_cpus: 4,
        service_home: Home::Cores { first: 0, count: 4 },
        guest_home: Home::Cores { first: 4, count: 4 },
        ..Self::HPCA2010
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
    use super::{Home, Topology, Wire};

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

    /// What is under way at a time is the ring's: the more send, the less each of them has in it.
    #[test]
    fn a_burst_is_half_a_socket_or_a_clients_part_of_the_ring() {
        let bursts: Vec<_> = (1..=7).map(|clients| Wire::GIGABIT.burst(clients)).collect();
        assert_eq!(bursts, [32, 32, 28, 21, 17, 14, 12]);
    }

    #[test]
    fn cores_without_sibling_threads_are_divided() {
        let guest_home = Home::Cores { first: 4, count: 4 };
        let topology = Topology { threads_per_core: 1, guest_home, ..Topology::HPCA2010 };
        let homes: Vec<_> = (0..6).map(|n| topology.guest(n).index()).collect();
        assert_eq!(homes, [4, 5, 6, 7, 4, 5]);
    }
}
