//! The embedded guest's thread: it handles interrupts, moves frames between driver and TCP/IP stack, and executes its
//! owner's commands.
//!
//! One round of the loop: commands, frames in, sockets, frames out, doorbell, interrupts unmasked, sleep. Each step
//! is bounded, so a busy guest still executes commands.
//!
//! [`device`](crate::device) moves the frames; the crate's root has the owner's side of the commands.

pub(crate) mod flow;
mod pattern;
pub(crate) mod ping;
pub(crate) mod pulse;
mod sink;

use crate::EmbeddedGuestStats;
use crate::device::VfNetworkDevice;
use driver::any_vf::AnyVfLinkStatus;
use driver::vf::VfInterruptCause;
use flow::{TestFlowError, TestFlowResult, TestFlowSender};
use host::poll::{MonotonicClock, PollInterest, Poller, ThreadWaker};
use i82576::MacAddress;
use ping::{PingSender, PingStatistics};
use pulse::{PathInterruptionMeasurement, SteadyEchoSender};
use sink::TestFlowServer;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use vfio_client::VfDriverHal;

/// Maximum number of received frames that the guest takes from its driver in one iteration of its loop.
const INGRESS: usize = 128;
/// Maximum number of packets that the guest's stack sends in one iteration of the guest's loop.
const EGRESS: usize = 512;
/// Period of the VF driver's watchdog while the link is up, in nanoseconds.
const WATCHDOG_NS: u64 = 2_000_000_000;
/// Period of the VF driver's watchdog while the link is down, in nanoseconds.
const LINK_DOWN_NS: u64 = 50_000_000;
/// Longest sleep of the guest while frames wait only for room in the transmit ring, in case the ring's interrupt was
/// lost.
const RING_FULL: Duration = Duration::from_millis(1);
/// Time for the guest's TCP connections to close when the guest is stopped, in nanoseconds; the other ends would
/// otherwise wait for a timeout.
const CLOSING_NS: u64 = 100_000_000;
const PREFIX: u8 = 24;
/// First local port of test flows.
const EPHEMERAL: u16 = 49_152;
/// Number of local ports of test flows.
const PORTS: u16 = u16::MAX - EPHEMERAL;

/// Number of poller tokens that stand for interrupt vectors. The token of a vector is the vector's number, which is
/// also its bit in a 64-bit word.
const VECTORS: u64 = u64::BITS as u64;
const WAKER: u64 = VECTORS;
const LIFELINE: u64 = VECTORS + 1;

/// Command that the guest's owner sends to the guest's thread.
#[derive(Debug)]
pub(crate) enum GuestCommand {
    Ping { to: Ipv4Addr, count: u16, answer: mpsc::Sender<PingStatistics> },
    Pulse { to: Ipv4Addr, every: Duration, pulse: PathInterruptionMeasurement },
    Send { to: Ipv4Addr, bytes: u64, answer: mpsc::Sender<Result<TestFlowResult, TestFlowError>> },
    Stats { answer: mpsc::Sender<EmbeddedGuestStats> },
    Stop,
}

/// Unfinished action that the guest's owner requested, such as a series of pings.
#[derive(Debug)]
enum UnfinishedGuestAction {
    Ping(PingSender, mpsc::Sender<PingStatistics>),
    Pulse(SteadyEchoSender),
    Send(TestFlowSender, mpsc::Sender<Result<TestFlowResult, TestFlowError>>),
}

/// Guest on a VF: its stack, sockets and unfinished actions, all used by the guest's thread alone.
pub(crate) struct GuestThread<B> {
    port: VfNetworkDevice<B>,
    interface: Interface,
    sockets: SocketSet<'static>,
    sink: TestFlowServer,
    actions: Vec<UnfinishedGuestAction>,
    /// Sockets of the guest's stack that close without further action of the guest's thread.
    closing: Vec<SocketHandle>,
    commands: mpsc::Receiver<GuestCommand>,
    poller: Poller,
    waker: ThreadWaker,
    link: Arc<AtomicBool>,
    /// Bit mask of the interrupt vectors that have signalled and are not handled yet.
    signalled: u64,
    interrupts: u64,
    /// True while the receive interrupt vector is masked; the vector is unmasked when the receive ring is empty.
    receiving: bool,
    /// Time of the next run of the driver's watchdog, in nanoseconds.
    watchdog: u64,
    /// Number of the last action that the guest's owner requested.
    serial: u16,
}

impl<B: VfDriverHal> GuestThread<B> {
    /// Creates a guest on a started VF.
    ///
    /// # Errors
    /// The error of epoll.
    pub(crate) fn new(
        mut port: VfNetworkDevice<B>,
        ip: Ipv4Addr,
        commands: mpsc::Receiver<GuestCommand>,
        waker: ThreadWaker,
        link: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        for (vector, token) in (0..).zip(0..VECTORS) {
            if let Some(eventfd) = port.hal.eventfd(vector) {
                poller.add(eventfd, token, PollInterest::READ)?;
            }
        }
        poller.add(&waker, WAKER, PollInterest::READ)?;
        if let Some(lifeline) = port.hal.lifeline() {
            poller.add(lifeline, LIFELINE, PollInterest::READ)?;
        }
        let now_ns = MonotonicClock.now_ns();
        let mut config = Config::new(hardware_address(port.vf.mac()));
        config.random_seed = now_ns ^ u64::from(ip.to_bits());
        let mut interface = Interface::new(config, &mut port, instant(now_ns));
        interface.update_ip_addrs(|addresses| {
            // The list is empty, so the addition cannot fail.
            let _ = addresses.push(IpCidr::new(ip.into(), PREFIX));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let sink = TestFlowServer::new(&mut sockets);
        Ok(Self {
            port,
            interface,
            sockets,
            sink,
            actions: Vec::new(),
            closing: Vec::new(),
            commands,
            poller,
            waker,
            link,
            signalled: 0,
            interrupts: 0,
            receiving: false,
            watchdog: 0,
            // A predecessor on this VF may have left connections open, so the ports must differ.
            serial: (now_ns >> 10) as u16 % PORTS,
        })
    }

    /// Runs the guest until a stop command, or until its card is gone.
    pub(crate) fn run(mut self) {
        let mut present = true;
        while present && self.execute_commands() {
            present = self.round();
        }
        let deadline = MonotonicClock.now_ns() + CLOSING_NS;
        while present && !self.closing.is_empty() && MonotonicClock.now_ns() < deadline {
            present = self.round();
        }
        self.link.store(false, Ordering::Release);
        self.port.vf.stop(&mut self.port.hal);
    }

    /// Runs one iteration of the guest's loop: handles interrupts, moves frames, runs the watchdog when due, and waits
    /// for further work. Returns false if the guest's card is gone.
    fn round(&mut self) -> bool {
        let now_ns = MonotonicClock.now_ns();
        self.take_interrupts();
        self.move_frames(now_ns);
        if now_ns >= self.watchdog {
            self.watch(now_ns);
        }
        self.sleep() && !self.port.hal.is_gone()
    }

    /// Starts the commands that the owner has sent. Returns false for a stop command.
    fn execute_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(GuestCommand::Ping { to, count, answer }) => {
                    let ident = self.next_serial();
                    let pinger = PingSender::new(&mut self.sockets, to, ident, count);
                    self.actions.extend(pinger.map(|pinger| UnfinishedGuestAction::Ping(pinger, answer)));
                }
                Ok(GuestCommand::Pulse { to, every, pulse }) => {
                    let ident = self.next_serial();
                    let pulser = SteadyEchoSender::new(&mut self.sockets, to, ident, every, pulse);
                    self.actions.extend(pulser.map(UnfinishedGuestAction::Pulse));
                }
                Ok(GuestCommand::Send { to, bytes, answer }) => self.send(to, bytes, answer),
                Ok(GuestCommand::Stats { answer }) => {
                    // The owner may have dropped its receiver, which is no error.
                    let _ = answer.send(self.stats());
                }
                Ok(GuestCommand::Stop) | Err(mpsc::TryRecvError::Disconnected) => return false,
                Err(mpsc::TryRecvError::Empty) => return true,
            }
        }
    }

    fn send(
        &mut self,
        to: Ipv4Addr,
        bytes: u64,
        answer: mpsc::Sender<Result<TestFlowResult, TestFlowError>>,
    ) {
        let serial = self.next_serial();
        let port = EPHEMERAL + serial;
        let seed = MonotonicClock.now_ns();
        let context = self.interface.context();
        match TestFlowSender::connect(context, &mut self.sockets, to, port, bytes, seed) {
            Some(sender) => self.actions.push(UnfinishedGuestAction::Send(sender, answer)),
            None => {
                let _ = answer.send(Err(TestFlowError::NoConnection));
            }
        }
    }

    /// Returns the number of the next action, which distinguishes concurrent actions of the guest's owner.
    fn next_serial(&mut self) -> u16 {
        self.serial = (self.serial + 1) % PORTS;
        self.serial
    }

    fn stats(&mut self) -> EmbeddedGuestStats {
        let VfNetworkDevice { hal, vf, refused, .. } = &mut self.port;
        EmbeddedGuestStats {
            card: vf.statistics(hal),
            queues: vf.queue_counters(),
            refused: *refused,
            interrupts: self.interrupts,
            accesses: hal.accesses(),
        }
    }

    fn take_interrupts(&mut self) {
        let signalled = std::mem::take(&mut self.signalled);
        for vector in (0..VECTORS as u16).filter(|vector| signalled & (1 << vector) != 0) {
            let Some(eventfd) = self.port.hal.eventfd(vector.into()) else { continue };
            self.interrupts += eventfd.drain();
            match self.port.vf.handle_interrupt(&mut self.port.hal, vector) {
                VfInterruptCause::Received => self.receiving = true,
                // The link may have changed, so the watchdog runs now.
                VfInterruptCause::Mailbox => self.watchdog = 0,
                VfInterruptCause::Transmitted(_) | VfInterruptCause::Unknown => {}
            }
        }
    }

    /// Passes received frames to the stack, serves the sockets, sends the stack's frames, and rings the doorbell at the
    /// end.
    fn move_frames(&mut self, now_ns: u64) {
        let now = instant(now_ns);
        let Self { port, interface, sockets, .. } = self;
        port.drained = false;
        interface.poll_maintenance(now);
        for _ in 0..INGRESS {
            if interface.poll_ingress_single(now, port, sockets) == PollIngressSingleResult::None {
                break;
            }
        }
        self.sink.step(&mut self.sockets);
        self.step_actions(now_ns);
        let Self { port, interface, sockets, .. } = self;
        for _ in 0..EGRESS {
            if interface.poll_egress(now, port, sockets) == PollResult::None {
                break;
            }
        }
        port.vf.flush(&mut port.hal);
        // Actions run after the sockets, since the last data of a connection may have been among those frames.
        self.reap();
        let port = &mut self.port;
        if self.receiving && port.drained {
            self.receiving = false;
            port.vf.receive_done(&mut port.hal);
        }
    }

    fn step_actions(&mut self, now_ns: u64) {
        let Self { actions, sockets, closing, .. } = self;
        actions.retain_mut(|action| match action {
            UnfinishedGuestAction::Ping(pinger, answer) => match pinger.step(sockets, now_ns) {
                None => true,
                Some(pings) => {
                    sockets.remove(pinger.handle());
                    let _ = answer.send(pings);
                    false
                }
            },
            UnfinishedGuestAction::Pulse(pulser) => {
                let wanted = pulser.step(sockets, now_ns);
                if !wanted {
                    sockets.remove(pulser.handle());
                }
                wanted
            }
            UnfinishedGuestAction::Send(sender, answer) => match sender.step(sockets, now_ns) {
                None => true,
                Some(outcome) => {
                    closing.push(sender.handle());
                    let _ = answer.send(outcome);
                    false
                }
            },
        });
    }

    /// Removes the guest's sockets that have closed.
    fn reap(&mut self) {
        let Self { closing, sockets, .. } = self;
        closing.retain(|handle| {
            let state = sockets.get::<tcp::Socket<'static>>(*handle).state();
            let over = matches!(state, tcp::State::TimeWait | tcp::State::Closed);
            if over {
                sockets.remove(*handle);
            }
            !over
        });
    }

    /// Runs the watchdog of the VF's driver, restarts a VF that was reset, and stores whether the link is up.
    fn watch(&mut self, now_ns: u64) {
        let VfNetworkDevice { hal, vf, .. } = &mut self.port;
        let mut link = vf.watchdog(hal);
        // The PF may have disturbed a restart by a reset of its own, so the restart is tried again.
        if link == AnyVfLinkStatus::ResetNeeded && vf.restart(hal).is_ok() {
            self.receiving = false;
            // The PF may have assigned another address.
            self.interface.set_hardware_addr(hardware_address(vf.mac()));
            link = vf.check_link(hal);
        }
        let up = link == AnyVfLinkStatus::Up;
        self.link.store(up, Ordering::Release);
        self.watchdog = now_ns + if up { WATCHDOG_NS } else { LINK_DOWN_NS };
    }

    /// Waits for an interrupt, a command or a deadline of the guest. Returns false if its card is gone.
    fn sleep(&mut self) -> bool {
        let timeout = self.timeout();
        let Ok(events) = self.poller.wait(Some(timeout)) else { return false };
        let mut woken = false;
        for event in events {
            match event.token {
                WAKER => woken = true,
                LIFELINE if event.closed => return false,
                vector => self.signalled |= 1 << vector,
            }
        }
        if woken {
            self.waker.drain();
        }
        true
    }

    fn timeout(&mut self) -> Duration {
        let now_ns = MonotonicClock.now_ns();
        let until = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(now_ns));
        let pings = self.actions.iter().filter_map(|action| match action {
            UnfinishedGuestAction::Ping(pinger, _) => pinger.deadline(),
            UnfinishedGuestAction::Pulse(pulser) => Some(pulser.deadline()),
            UnfinishedGuestAction::Send(..) => None,
        });
        let longest = pings.map(until).fold(until(self.watchdog), Duration::min);
        let stack = self.interface.poll_delay(instant(now_ns), &self.sockets);
        let stack = stack.map_or(longest, |delay| Duration::from_micros(delay.total_micros()));
        let wanted = if self.receiving { Duration::ZERO } else { stack.min(longest) };
        // Packets that cannot be sent, or received because no answer could be sent, wait for descriptors.
        if wanted < RING_FULL && self.port.is_full() { RING_FULL } else { wanted }
    }
}

fn hardware_address(mac: MacAddress) -> HardwareAddress {
    HardwareAddress::Ethernet(EthernetAddress(mac.0))
}

fn instant(now_ns: u64) -> Instant {
    Instant::from_micros(i64::try_from(now_ns / 1_000).unwrap_or(i64::MAX))
}
