//! Tests of a port's pause before a hand-over, with a front end whose request is not finished.

use super::requests::front_end_message;
use super::*;
use host::eventfd::EventFd;
use host::socket::{ReceivedFds, SocketReceiveResult};
use pcie::Function;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver, Sender};

/// GET_FEATURES (vhost-user specification, "Front-end message types").
const GET_FEATURES: u32 = 1;
/// SET_VRING_CALL (vhost-user specification, "Front-end message types").
const SET_VRING_CALL: u32 = 13;
/// Flag of a message about an eventfd that brings none.
const NO_FD: u64 = 1 << 8;
/// Longest wait of a pause for front ends.
const LIMIT: Duration = Duration::from_millis(20);

/// Returns a port of virtio devices, and the socket of a front end that has negotiated.
fn port_with_front_end() -> (PortFixture, StreamSocket) {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"virtio\"\nvfs = 2\n");
    let client = StreamSocket::connect(&world.config.vfs[0].socket).unwrap();
    world.round_until(PortFixture::is_connected);
    // SET_OWNER.
    client.send(&front_end_message(3, &[]), &[]).unwrap();
    world.round();
    (world, client)
}

/// Sends SET_VRING_CALL for a ring, with an eventfd or without.
fn set_call(client: &StreamSocket, ring: u64, eventfd: Option<&EventFd>) {
    let flag = if eventfd.is_some() { 0 } else { NO_FD };
    let fds: Vec<BorrowedFd<'_>> = eventfd.iter().map(|eventfd| eventfd.as_fd()).collect();
    client.send(&front_end_message(SET_VRING_CALL, &(ring | flag).to_le_bytes()), &fds).unwrap();
}

/// Asks the port to pause for a successor, which takes it.
fn begin_pause(world: &PortFixture) -> Receiver<bool> {
    let (answer, saved) = mpsc::channel();
    assert!(world.handle.send(PortThreadCommand::Pause(Duration::from_secs(1), answer)));
    assert!(world.handle.send(PortThreadCommand::Leave));
    saved
}

/// Carries out the pending commands. Returns true if the port has paused.
fn has_paused(world: &mut PortFixture, saved: &Receiver<bool>) -> bool {
    world.port.wait(&world.inbox, Some(Duration::ZERO), &world.clock).unwrap();
    world.port.carry_out_commands(&world.inbox, &world.clock);
    let paused = saved.try_recv().inspect(|saved| assert!(*saved, "the port cannot be saved"));
    if paused.is_err() {
        world.port.round(&world.clock);
    }
    paused.is_ok()
}

/// Runs rounds until the port has paused. The clock stands still.
fn await_pause(world: &mut PortFixture, saved: &Receiver<bool>) {
    for _ in 0..5_000 {
        if has_paused(world, saved) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the port has not paused within 5,000 rounds");
}

/// Returns true if the front end continues with the successor.
fn is_kept(world: &PortFixture) -> bool {
    world.slot().connection().is_some_and(|connection| connection.is_kept())
}

/// Blocks the worker thread of a VF until the sender is dropped.
fn block_worker(world: &PortFixture, vf: u8) -> Sender<()> {
    let (end, blocked) = mpsc::channel();
    world.port.engine.reach(Function::Vf(vf)).worker().run(move || {
        let _ = blocked.recv();
    });
    end
}

/// Asks for the features until the socket has no room for a reply. The front end reads none.
fn fill_socket(world: &mut PortFixture, client: &StreamSocket) {
    for _ in 0..5_000 {
        client.send(&front_end_message(GET_FEATURES, &[]), &[]).unwrap();
        world.round();
        if !world.slot().connection().unwrap().is_idle() {
            return;
        }
    }
    panic!("the socket takes 5,000 replies");
}

/// Reads all replies that the front end has received.
fn read_replies(client: &StreamSocket) {
    let (mut buffer, mut fds) = ([0; 4096], ReceivedFds::new());
    while let SocketReceiveResult::Bytes(_) = client.recv(&mut buffer, &mut fds).unwrap() {}
}

#[test]
fn hand_over_keeps_a_front_end_whose_message_was_received() {
    let (mut world, client) = port_with_front_end();
    let eventfd = EventFd::new().unwrap();
    (0..3).for_each(|ring| set_call(&client, ring, None));
    // A visit ends when it has received four messages, and leaves the fourth in the session.
    (3..6).for_each(|ring| set_call(&client, ring, Some(&eventfd)));
    world.round();
    let saved = begin_pause(&world);
    await_pause(&mut world, &saved);
    assert!(is_kept(&world));
}

#[test]
fn hand_over_keeps_a_front_end_whose_eventfd_is_checked() {
    let (mut world, client) = port_with_front_end();
    let end = block_worker(&world, 0);
    set_call(&client, 0, Some(&EventFd::new().unwrap()));
    world.round();
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved) && !has_paused(&mut world, &saved));
    drop(end);
    await_pause(&mut world, &saved);
    assert!(is_kept(&world));
}

#[test]
fn hand_over_keeps_a_front_end_whose_socket_was_full() {
    let (mut world, client) = port_with_front_end();
    fill_socket(&mut world, &client);
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved) && !has_paused(&mut world, &saved));
    read_replies(&client);
    assert!(has_paused(&mut world, &saved) && is_kept(&world));
}

#[test]
fn pause_waits_20_ms_for_room_and_ends_the_front_end() {
    let (mut world, client) = port_with_front_end();
    fill_socket(&mut world, &client);
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved));
    world.clock.now.set(world.clock.now.get() + LIMIT);
    assert!(has_paused(&mut world, &saved) && !is_kept(&world));
}

#[test]
fn port_sleeps_while_its_pause_waits_for_one_front_end() {
    let (mut world, client) = port_with_front_end();
    let other = StreamSocket::connect(&world.config.vfs[1].socket).unwrap();
    world.round_until(|world| world.port.clients.slots()[1].connection().is_some());
    fill_socket(&mut world, &client);
    let end = block_worker(&world, 1);
    set_call(&other, 0, Some(&EventFd::new().unwrap()));
    world.round();
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved));
    // The first front end has room for all replies, and sends a further request, which the successor handles.
    read_replies(&client);
    assert!(!has_paused(&mut world, &saved));
    client.send(&front_end_message(GET_FEATURES, &[]), &[]).unwrap();
    assert!(!has_paused(&mut world, &saved));
    let turn = world.port.turn(&world.inbox, Some(Duration::ZERO), &world.clock);
    assert_eq!(turn, PortTurn::Continues(Some(LIMIT)));
    let ready = world.port.clients.wait(Some(Duration::ZERO)).unwrap();
    assert!(ready.iter().all(Option::is_none), "an event would wake the port at once: {ready:?}");
    drop(end);
    await_pause(&mut world, &saved);
    assert!(is_kept(&world));
}

#[test]
fn pause_waits_20_ms_for_a_front_end_and_ends_it() {
    let (mut world, client) = port_with_front_end();
    let end = block_worker(&world, 0);
    set_call(&client, 0, Some(&EventFd::new().unwrap()));
    world.round();
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved));
    world.clock.now.set(world.clock.now.get() + (LIMIT - Duration::from_nanos(1)));
    assert!(!has_paused(&mut world, &saved));
    world.clock.now.set(world.clock.now.get() + Duration::from_nanos(1));
    assert!(has_paused(&mut world, &saved) && !is_kept(&world));
    drop(end);
}

#[test]
fn pause_handles_no_further_message() {
    let (mut world, client) = port_with_front_end();
    let eventfd = EventFd::new().unwrap();
    let end = block_worker(&world, 0);
    set_call(&client, 0, Some(&eventfd));
    world.round();
    let saved = begin_pause(&world);
    assert!(!has_paused(&mut world, &saved));
    let handled = |world: &PortFixture| world.slot().connection().unwrap().counters().messages;
    let before = handled(&world);
    (1..4).for_each(|ring| set_call(&client, ring, Some(&eventfd)));
    drop(end);
    await_pause(&mut world, &saved);
    assert_eq!(handled(&world), before, "the successor handles them");
    assert!(is_kept(&world));
}

#[test]
fn hand_over_keeps_a_vfio_user_client_that_was_just_accepted() {
    let mut world = PortFixture::open();
    let _client = UnixStream::connect(&world.config.vfs[0].socket).unwrap();
    world.round();
    assert!(world.is_connected());
    let saved = begin_pause(&world);
    await_pause(&mut world, &saved);
    assert_ne!(world.slot().own.successor.progress().stream, 0, "the keeper has the client's socket");
}
