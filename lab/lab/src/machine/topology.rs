//! Topology of a server as data: sockets, cores and threads, placement of virtual CPUs, the wires of its ports, and the
//! burst sizes of clients. Costs are in the cost table.

use std::fmt;
use std::str::FromStr;

use hypervisor::cpu::HardwareThreadId;
use sim::VirtualDuration;
use thiserror::Error;

/// Topology of a server: its processors, the placement of virtual CPUs, and its wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTopology {
    /// Number of sockets, or of other units with their own last-level cache.
    pub sockets: u16,
    /// Number of cores per processor socket.
    pub cores_per_socket: u16,
    /// Number of threads per core.
    pub threads_per_core: u16,
    /// Number of virtual CPUs of the service domain.
    pub service_cpus: u16,
    /// Hardware threads that the service domain's virtual CPUs run on.
    pub service_home: ThreadAssignment,
    /// Hardware threads that the guests' virtual CPUs run on.
    pub guest_home: ThreadAssignment,
    /// Period of the service domain's timer tick.
    pub service_tick: VirtualDuration,
    /// Maximum number of guests per port.
    pub guests_per_port: u8,
    /// Buffers of a VF's receive ring (dd_bufs of Dong et al., HPCA 2010).
    pub receive_ring: u16,
    /// Wire of each port, with its clients.
    pub wire: WireProperties,
}

/// Hardware threads that virtual CPUs are assigned to in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadAssignment {
    /// Virtual CPUs run on one thread of each core: the thread with this index within its core.
    Sibling(u16),
    /// Virtual CPUs run on consecutive cores that have one hardware thread each.
    Cores {
        /// Index of the first of the consecutive cores.
        first: u16,
        /// Number of consecutive cores.
        count: u16,
    },
}

/// Error: a text does not name hardware threads.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected thread-N (thread N of each core, from 0) or cores-FIRST-LAST, such as cores-4-7")]
pub struct InvalidThreadAssignment;

impl FromStr for ThreadAssignment {
    type Err = InvalidThreadAssignment;

    fn from_str(text: &str) -> Result<Self, InvalidThreadAssignment> {
        let index = |text: &str| text.parse::<u16>().map_err(|_| InvalidThreadAssignment);
        if let Some(thread) = text.strip_prefix("thread-") {
            return Ok(Self::Sibling(index(thread)?));
        }
        let ends = text.strip_prefix("cores-").and_then(|ends| ends.split_once('-'));
        let (first, last) = ends.ok_or(InvalidThreadAssignment)?;
        let (first, last) = (index(first)?, index(last)?);
        let more = last.checked_sub(first).and_then(|more| more.checked_add(1));
        Ok(Self::Cores { first, count: more.ok_or(InvalidThreadAssignment)? })
    }
}

impl fmt::Display for ThreadAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Sibling(thread) => write!(f, "thread-{thread}"),
            Self::Cores { first, count } => write!(f, "cores-{first}-{}", first + (count - 1)),
        }
    }
}

/// Error: hardware threads that a machine does not have, or that virtual CPUs cannot be assigned to.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum InvalidPlacement {
    /// The cores have fewer threads.
    #[error("a core has only {0} threads, numbered from 0")]
    Thread(u16),
    /// The machine has fewer cores.
    #[error("the machine has only {0} cores, numbered from 0")]
    Core(u16),
}

/// Properties of a port's wire, with the burst sizes of its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireProperties {
    /// Speed of the wire in bits per second.
    pub bits_per_second: u64,
    /// Maximum number of a stream's segments that a client's stack gives to its card at a time.
    pub segments: u32,
    /// Number of datagrams that a client's socket holds.
    pub socket: u32,
    /// Number of datagrams that the transmit ring of the clients' card holds.
    pub ring: u32,
    /// Time from the arrival of a frame at a client to the client's next segment or request: card, interrupt and stack.
    pub turnaround: VirtualDuration,
}

impl WireProperties {
    /// Gigabit wire with clients that use igb cards. A stream is passed down in up to 64 KB, which the card segments. A
    /// client's socket is as large as a receiver's. A ring has 256 descriptors (igb), and a datagram of 1,472 bytes
    /// takes two: the context of its checksum (`igb_tx_csum_adv`), and the data. Linux' `ip_append_data` copies a
    /// datagram that is sent without `MSG_MORE` into one linear buffer, so it has no page fragment.
    pub const GIGABIT: Self = Self {
        bits_per_second: 1_000_000_000,
        segments: 44,
        socket: 64,
        ring: 256 / 2,
        turnaround: VirtualDuration::from_micros(30),
    };

    /// Returns the mean number of datagrams that a client sends in its turn. A client with a full socket sleeps until
    /// half of the socket is free (Linux `sock_writeable`); each client has an equal part of the shared ring.
    #[must_use]
    pub const fn burst(&self, clients: u32) -> u32 {
        let clients = if clients == 0 { 1 } else { clients };
        let (woken, part) = (self.socket / 2, self.ring / clients);
        let least = if part < woken { part } else { woken };
        if least == 0 { 1 } else { least }
    }
}

impl ServerTopology {
    /// Returns the number of cores of all sockets.
    #[must_use]
    pub const fn cores(&self) -> u16 {
        self.sockets * self.cores_per_socket
    }

    /// Returns the number of threads of all cores.
    #[must_use]
    pub const fn threads(&self) -> u16 {
        self.cores() * self.threads_per_core
    }

    /// Returns the hardware thread on which virtual CPU `n` of the service domain runs.
    #[must_use]
    pub fn service(&self, n: u16) -> HardwareThreadId {
        self.thread_of(self.service_home, n)
    }

    /// Returns the hardware thread on which the virtual CPU of guest `n` runs.
    #[must_use]
    pub fn guest(&self, n: u16) -> HardwareThreadId {
        self.thread_of(self.guest_home, n)
    }

    /// Returns the service domain's virtual CPUs in the order in which busy threads of its kernel are assigned to them:
    /// those on cores without any of `guests` guests first. Most virtual CPUs of a server with few guests are such, and
    /// a kernel's scheduler may run a thread on any.
    #[must_use]
    pub fn service_order(&self, guests: u16) -> Vec<usize> {
        let core = |thread: HardwareThreadId| thread.index() / usize::from(self.threads_per_core);
        let has_guest = |n: u16| (0..guests).any(|guest| core(self.guest(guest)) == core(self.service(n)));
        let mut order: Vec<u16> = (0..self.service_cpus).collect();
        order.sort_by_key(|n| has_guest(*n));
        order.into_iter().map(usize::from).collect()
    }

    /// Returns the hardware thread on which program `n` of a bare machine runs. Without a service domain, programs use
    /// the second threads once every core has one.
    #[must_use]
    pub fn bare(&self, n: u16) -> HardwareThreadId {
        let round = n / self.cores() + self.threads_per_core / 2;
        self.thread_of(ThreadAssignment::Sibling(round % self.threads_per_core), n)
    }

    /// Checks that the machine has the hardware threads of an assignment.
    ///
    /// # Errors
    /// [`InvalidPlacement`] if a thread or core does not exist.
    pub fn check(&self, home: ThreadAssignment) -> Result<(), InvalidPlacement> {
        match home {
            ThreadAssignment::Sibling(thread) if thread >= self.threads_per_core => {
                Err(InvalidPlacement::Thread(self.threads_per_core))
            }
            ThreadAssignment::Cores { first, count } if first.saturating_add(count) > self.cores() => {
                Err(InvalidPlacement::Core(self.cores()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the index of the socket that has this hardware thread.
    #[must_use]
    pub fn socket(&self, thread: HardwareThreadId) -> usize {
        thread.index() / usize::from(self.cores_per_socket * self.threads_per_core)
    }

    fn thread_of(&self, home: ThreadAssignment, n: u16) -> HardwareThreadId {
        HardwareThreadId::new(match home {
            ThreadAssignment::Sibling(sibling) => n % self.cores() * self.threads_per_core + sibling,
            ThreadAssignment::Cores { first, count } => (first + n % count) * self.threads_per_core,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidPlacement, ServerTopology, ThreadAssignment, WireProperties};
    use crate::experiments::topology::of_paper;
    use hypervisor::cost::MachineModel;

    fn nehalem() -> ServerTopology {
        of_paper(MachineModel::Nehalem)
    }

    #[test]
    fn guests_share_cores_but_no_threads_with_dom0() {
        let topology = nehalem();
        let threads =
            |place: fn(&ServerTopology, u16) -> _| (0..10).map(|n| place(&topology, n)).collect::<Vec<_>>();
        let indices =
            |all: Vec<hypervisor::cpu::HardwareThreadId>| all.iter().map(|t| t.index()).collect::<Vec<_>>();
        assert_eq!(indices(threads(ServerTopology::service)), [0, 2, 4, 6, 8, 10, 12, 14, 0, 2]);
        assert_eq!(indices(threads(ServerTopology::guest)), [1, 3, 5, 7, 9, 11, 13, 15, 1, 3]);
        assert_eq!(indices(threads(ServerTopology::bare)), [1, 3, 5, 7, 9, 11, 13, 15, 0, 2]);
        assert_eq!(topology.socket(topology.guest(3)), 0);
        assert_eq!(topology.socket(topology.guest(4)), 1);
    }

    #[test]
    fn service_threads_prefer_cores_without_guests() {
        let topology = nehalem();
        assert_eq!(topology.service_order(2), [2, 3, 4, 5, 6, 7, 0, 1]);
        assert!(topology.service_order(8).into_iter().eq(0..8));
        assert!(of_paper(MachineModel::Harpertown).service_order(2).into_iter().eq(0..4));
    }

    /// Checks that the preference moves nothing where it has no reason: no core without a guest is left, or no two threads
    /// share a core. No virtual CPU is lost or repeated.
    #[test]
    fn service_order_is_unchanged_without_a_free_core() {
        for guests in 0..20 {
            for machine in [MachineModel::Nehalem, MachineModel::Harpertown] {
                let topology = of_paper(machine);
                let order = topology.service_order(guests);
                let own: Vec<_> = (0..usize::from(topology.service_cpus)).collect();
                let is_full = guests == 0 || guests >= topology.cores();
                assert_eq!(
                    order == own,
                    is_full || machine == MachineModel::Harpertown,
                    "{guests} {order:?}"
                );
                let mut sorted = order;
                sorted.sort_unstable();
                assert_eq!(sorted, own);
            }
        }
    }

    /// Checks the burst for several numbers of clients: the datagrams in flight are those of the ring, so with more
    /// clients each has fewer.
    #[test]
    fn client_sends_bursts_of_32_frames_or_its_share_of_the_ring() {
        let bursts: Vec<_> = (1..=7).map(|clients| WireProperties::GIGABIT.burst(clients)).collect();
        assert_eq!(bursts, [32, 32, 32, 32, 25, 21, 18]);
    }

    #[test]
    fn guests_take_cores_without_smt_in_turn() {
        let guest_home = ThreadAssignment::Cores { first: 4, count: 4 };
        let topology = ServerTopology { threads_per_core: 1, guest_home, ..nehalem() };
        let homes: Vec<_> = (0..6).map(|n| topology.guest(n).index()).collect();
        assert_eq!(homes, [4, 5, 6, 7, 4, 5]);
    }

    #[test]
    fn thread_assignment_text_round_trips_or_is_refused() {
        for text in ["thread-0", "thread-1", "cores-4-7", "cores-3-3"] {
            assert_eq!(text.parse::<ThreadAssignment>().unwrap().to_string(), text);
        }
        for text in ["", "thread-", "thread-x", "cores-4", "cores-7-4", "cores-0-65535", "core-1-2"] {
            assert!(text.parse::<ThreadAssignment>().is_err(), "{text}");
        }
    }

    #[test]
    fn placement_on_missing_threads_or_cores_is_refused() {
        let topology = nehalem();
        assert_eq!(topology.check(ThreadAssignment::Sibling(2)), Err(InvalidPlacement::Thread(2)));
        let beyond = ThreadAssignment::Cores { first: 5, count: 4 };
        assert_eq!(topology.check(beyond), Err(InvalidPlacement::Core(8)));
        assert_eq!(topology.check(ThreadAssignment::Cores { first: 4, count: 4 }), Ok(()));
    }
}
