//! Cases, their groups, and the kinds of attacks.

use crate::control::ControlStep;
use crate::family::AttackedFamily;
use crate::field::Field;
use crate::guest::{GuestStart, GuestStep};
use crate::host_process::HostSetup;
use crate::remedy::Remedy;
use crate::socket::SocketStep;
use crate::surroundings::SurroundingsStep;
use virtio::net::NetHeader;

/// Attack of a case, as data for the engine that carries it out.
#[derive(Debug, Clone, Copy)]
pub enum Attack {
    /// Messages on the socket of the attacked VF.
    Socket(&'static [SocketStep]),
    /// Messages on the socket of the attacked VF that let it send frames, and what becomes of those.
    Ring(&'static [SocketStep], FrameFate),
    /// Accesses of a guest to the attacked VF's registers and to its own memory.
    Guest(GuestStart, &'static [GuestStep]),
    /// Frames of a guest with an Ethernet address of its own, and what becomes of them.
    Frames(GuestStart, &'static [GuestStep], FrameFate),
    /// Packets of a virtio guest, and what becomes of them.
    Packets(&'static [VirtioPacket], FrameFate),
    /// Accesses of a guest, repeated without a pause while the neighbours exchange frames.
    GuestFlood(GuestStart, &'static [GuestStep]),
    /// Messages on the socket of the attacked VF, repeated without a pause while the neighbours exchange frames.
    SocketFlood(&'static [SocketStep]),
    /// Bytes on the control socket.
    Control(&'static [ControlStep]),
    /// Changes of the host's process and of what is around it.
    Surroundings(&'static [SurroundingsStep]),
}

/// Fate of an attack's frames, which contain the [mark](crate::neighbours::MARK).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFate {
    /// A neighbour receives at least one of the frames.
    Delivered,
    /// No neighbour receives one of the frames.
    Dropped,
    /// The frames may arrive or not.
    Either,
}

/// Packet that a virtio guest sends, with the header in front of it.
#[derive(Debug, Clone, Copy)]
pub struct VirtioPacket {
    /// Header with the packet's offloads.
    pub header: NetHeader,
    /// Ethernet frame.
    pub packet: &'static [Field],
}

/// Hand-made attack with its rule and its remedy.
#[derive(Debug, Clone, Copy)]
pub struct AttackCase {
    /// Name of the case, unique among all groups.
    pub name: &'static str,
    /// Family of the attacked VF.
    pub family: AttackedFamily,
    /// Rule of the datasheet, the protocol or the project's promises that the host must keep.
    pub rule: &'static str,
    /// Action of the host against the attack, and setting of the administrator.
    pub remedy: Remedy,
    /// Way in which the attacked host is started.
    pub host: HostSetup,
    /// Attack that is carried out.
    pub attack: Attack,
}

/// Group of cases on one subject.
#[derive(Debug, Clone, Copy)]
pub struct AttackGroup {
    /// Name of the group.
    pub name: &'static str,
    /// Cases of the group, in the order in which they run.
    pub cases: &'static [AttackCase],
}

/// Creates a row: name, family, rule, remedy and attack.
pub(crate) const fn row(
    name: &'static str,
    family: AttackedFamily,
    rule: &'static str,
    remedy: Remedy,
    attack: Attack,
) -> AttackCase {
    AttackCase { name, family, rule, remedy, host: HostSetup::Shared, attack }
}

impl AttackCase {
    /// Lets the case attack a host of its own, which is started in another way.
    pub(crate) const fn on(mut self, host: HostSetup) -> Self {
        self.host = host;
        self
    }
}
