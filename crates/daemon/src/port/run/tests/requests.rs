//! Tests that a VF pays for its requests to the PF driver: a flooder is slowed, and its neighbour is answered in each round.

use super::shares::{admit_windows, client_of};
use super::{PortFixture, message};
use host::socket::StreamSocket;
use i82576::bits::v2p;
use i82576::mailbox::{INFO_SHIFT, id};
use i82576::register::vf as r;
use pcie::Function;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use units::WorkCost;
use units::work::QUANTUM;
use vfio_user::wire::pci_region;

/// Rounds of a flood. The clients' messages that wait until its end fit their sockets.
const ROUNDS: usize = 100;

/// Writes a register of a VF of an 82576, as its guest does.
pub(super) fn write(world: &mut PortFixture, vf: u8, offset: u32, value: u32) {
    let now = world.port_time();
    let card = world.port.engine.card_mut();
    card.write(Function::Vf(vf), pci_region::BAR0, offset.into(), &value.to_le_bytes(), now);
}

/// Returns a register of a VF of an 82576.
pub(super) fn read(world: &mut PortFixture, vf: u8, offset: u32) -> u32 {
    let now = world.port_time();
    let mut bytes = [0; 4];
    world.port.engine.card_mut().read(Function::Vf(vf), pci_region::BAR0, offset.into(), &mut bytes, now);
    u32::from_le_bytes(bytes)
}

/// Puts a request into a VF's mailbox.
pub(super) fn request(world: &mut PortFixture, vf: u8, words: &[u32]) {
    write(world, vf, r::V2PMAILBOX, v2p::VFU);
    for (word, place) in words.iter().zip(0..) {
        write(world, vf, r::VMBMEM + 4 * place, *word);
    }
    write(world, vf, r::V2PMAILBOX, v2p::REQ);
}

/// Returns true if the PF has replied since the last call.
pub(super) fn is_answered(world: &mut PortFixture, vf: u8) -> bool {
    read(world, vf, r::V2PMAILBOX) & v2p::PFSTS != 0
}

/// Port of three VFs, whose third client keeps it busy: a port that sleeps forgets debts.
struct BusyPort {
    world: PortFixture,
    client: UnixStream,
    busy: UnixStream,
    unanswered: Vec<u8>,
}

impl BusyPort {
    fn open() -> Self {
        let mut world = PortFixture::open_with("[[port]]\nvfs = 3\n");
        let (client, busy) = (world.connect(), client_of(&mut world, 2));
        for vf in [0, 1] {
            request(&mut world, vf, &[id::VF_RESET]);
            world.round();
            assert!(is_answered(&mut world, vf));
        }
        let mut unanswered = message(1, 99, &[]);
        // No_reply.
        unanswered[8] = 0x10;
        Self { world, client, busy, unanswered }
    }

    /// Runs a round, in which the neighbour's request is answered.
    fn round(&mut self) {
        self.busy.write_all(&self.unanswered.repeat(40)).unwrap();
        request(&mut self.world, 1, &[id::SET_LPE, 1518]);
        self.world.round();
        assert!(is_answered(&mut self.world, 1));
    }

    /// Runs rounds in which the client of VF 0 sends 32 messages, and then calls `act`. Returns the number of messages
    /// that the port has handled.
    fn messages(mut self, mut act: impl FnMut(&mut PortFixture, usize)) -> u64 {
        let handled = |world: &PortFixture| world.slot().connection().unwrap().counters().messages;
        let before = handled(&self.world);
        for round in 0..ROUNDS {
            self.client.write_all(&self.unanswered.repeat(32)).unwrap();
            act(&mut self.world, round);
            self.round();
        }
        handled(&self.world) - before
    }
}

#[test]
fn mailbox_requests_are_paid_by_their_kind() {
    let join: &[u32] = &[id::SET_VLAN | 1 << INFO_SHIFT, 7];
    let kinds: [&[&[u32]]; 4] =
        [&[], &[&[id::SET_LPE, 1518]], &[join, &[id::SET_VLAN, 7]], &[&[id::VF_RESET]]];
    let messages = kinds.map(|requests| {
        BusyPort::open().messages(|world, round| {
            if let Some(next) = requests.get(round % requests.len().max(1)) {
                request(world, 0, next);
            }
        })
    });
    // A message costs `WorkCost::MESSAGE`, 9 units, and a round has 200 (`units::work`).
    let per_round = messages.map(|messages| messages as usize / ROUNDS);
    let [none, length, vlan, reset] = per_round;
    assert!((21..=23).contains(&none) && (11..20).contains(&length), "{per_round:?} messages in a round");
    assert!(vlan < length - 4 && reset < length - 4, "{per_round:?} messages in a round");
}

#[test]
fn function_level_resets_cost_the_pf_drivers_part() {
    let messages = BusyPort::open()
        .messages(|world, _| assert!(world.port.engine.card_mut().reset_function(Function::Vf(0))));
    assert!((1..=8).contains(&(messages as usize / ROUNDS)), "{messages} messages");
}

#[test]
fn request_of_a_vf_in_debt_waits_and_its_neighbours_does_not() {
    let mut port = BusyPort::open();
    admit_windows(&mut port.world);
    drop(std::mem::replace(&mut port.client, UnixStream::pair().unwrap().0));
    port.round();
    assert!(!port.world.is_connected());
    request(&mut port.world, 0, &[id::VF_RESET]);
    let rounds = (0..100).position(|_| (port.round(), is_answered(&mut port.world, 0)).1);
    // The windows of the client have cost 16,000 units, of which a debt of 20 rounds is left.
    assert!(rounds.is_some_and(|rounds| (18..=21).contains(&rounds)), "{rounds:?}");
}

/// Returns a vhost-user message of version 1.
pub(super) fn front_end_message(request: u32, body: &[u8]) -> Vec<u8> {
    [&[request, 1, body.len() as u32].map(u32::to_le_bytes).concat()[..], body].concat()
}

#[test]
fn front_end_messages_are_paid_by_their_kind() {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"virtio\"\nvfs = 2\n");
    let mut client = UnixStream::connect(&world.config.vfs[0].socket).unwrap();
    client.set_nonblocking(true).unwrap();
    world.round_until(PortFixture::is_connected);
    // SET_OWNER, and SET_PROTOCOL_FEATURES with STATUS and RARP.
    client.write_all(&front_end_message(3, &[])).unwrap();
    client.write_all(&front_end_message(16, &(1_u64 << 16 | 1 << 2).to_le_bytes())).unwrap();
    world.round();
    let client = StreamSocket::adopt(OwnedFd::from(client)).unwrap();
    let memory = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, 4096).unwrap();
    let cost = |world: &mut PortFixture, request, body: &[u8], fds: &[BorrowedFd<'_>]| {
        world.round_until(|world| world.slot().own.account.credit() == QUANTUM);
        client.send(&front_end_message(request, body), fds).unwrap();
        world.round();
        assert!(world.is_connected());
        QUANTUM.0 - world.slot().own.account.credit().0
    };
    // SET_STATUS.
    let status = cost(&mut world, 39, &1_u64.to_le_bytes(), &[]);
    // SET_VRING_CALL without an eventfd, which changes the port's poller.
    assert_eq!(cost(&mut world, 13, &(1_u64 << 8).to_le_bytes(), &[]), status + 9);
    // SEND_RARP: the VF learns the address, and the next round makes the switch's tables with an address of each of 64 VFs.
    assert_eq!(cost(&mut world, 19, &[2, 0, 0, 0, 0, 7, 0, 0], &[]), status);
    world.round();
    assert_eq!(QUANTUM.0 - world.slot().own.account.credit().0, WorkCost::of_tables(64, 64).0);
    // SET_MEM_TABLE with one region, which a worker maps: its guest address, length, user address and offset.
    let region = [1, 0, 4096, 0x1000, 0].map(u64::to_le_bytes).concat();
    // The message itself is paid when the worker has mapped the region.
    assert_eq!(
        cost(&mut world, 5, &region, &[memory.as_fd()]),
        status - WorkCost::MESSAGE.0 - 1 + WorkCost::ERRAND.0
    );
}
