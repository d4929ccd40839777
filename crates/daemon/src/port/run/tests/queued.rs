//! Tests of clients that connect while a function's client has hung up, and its messages are not all handled.

use super::*;
use host::socket::{ReceivedFds, SocketReceiveResult};
use pcie::Function;
use std::sync::mpsc::{self, Sender};

/// DMA_MAP and VERSION (vfio-user, "Commands").
const DMA_MAP: u16 = 2;
const VERSION: u16 = 1;
/// Bytes of the memory that a client shares.
const MEMORY: u64 = 4096;
/// Rounds in which a client that waits could be refused.
const ROUNDS: usize = 20;

/// Port whose VF 0 has a client that has hung up. The client's last request waits for the worker thread.
struct HungUpClientFixture {
    world: PortFixture,
    /// Lets the worker thread go on when it is dropped.
    blocked: Sender<()>,
}

impl HungUpClientFixture {
    fn open() -> Self {
        let mut world = PortFixture::open();
        let client = connect(&mut world);
        let (end, blocked) = mpsc::channel::<()>();
        world.port.engine.reach(Function::Vf(0)).worker().run(move || {
            let _ = blocked.recv();
        });
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, MEMORY).unwrap();
        let sizes = [32_u32, 3].map(u32::to_le_bytes).concat();
        let places = [0, 0, MEMORY].map(u64::to_le_bytes).concat();
        client.send(&message(1, DMA_MAP, &[sizes, places].concat()), &[memory.as_fd()]).unwrap();
        let mut scene = Self { world, blocked: end };
        scene.rounds();
        drop(client);
        scene.rounds();
        assert!(scene.world.is_connected(), "the port has not handled all messages of the client");
        scene
    }

    fn rounds(&mut self) {
        for _ in 0..ROUNDS {
            self.world.round();
        }
    }

    /// Connects a client, and gives the port time to accept it.
    fn next_client(&mut self) -> StreamSocket {
        let client = StreamSocket::connect(&self.world.config.vfs[0].socket).unwrap();
        self.rounds();
        client
    }

    /// Lets the worker thread go on. Checks that a client that has waited is served.
    fn check_service(mut self, client: &StreamSocket) {
        assert_eq!(received(client), Some(SocketReceiveResult::WouldBlock), "the client waits");
        assert_eq!(self.world.slot().refusals.count, 0);
        drop(self.blocked);
        negotiate(&mut self.world, client);
    }
}

/// Returns the outcome of a receive, or `None` if the connection was reset.
fn received(client: &StreamSocket) -> Option<SocketReceiveResult> {
    client.recv(&mut [0; 4096], &mut ReceivedFds::new()).ok()
}

/// Connects a client to VF 0, and negotiates the version.
fn connect(world: &mut PortFixture) -> StreamSocket {
    let client = StreamSocket::connect(&world.config.vfs[0].socket).unwrap();
    negotiate(world, &client);
    client
}

/// Sends VERSION, and runs rounds until the client has the reply.
fn negotiate(world: &mut PortFixture, client: &StreamSocket) {
    client.send(&message(0, VERSION, b"\0\0\x01\0{}\0"), &[]).unwrap();
    world.round_until(|_| match received(client) {
        Some(SocketReceiveResult::Bytes(_)) => true,
        Some(SocketReceiveResult::WouldBlock) => false,
        end => panic!("the client was disconnected: {end:?}"),
    });
}

#[test]
fn client_behind_two_hung_up_ones_is_served() {
    let mut scene = HungUpClientFixture::open();
    drop(scene.next_client());
    let client = scene.next_client();
    scene.check_service(&client);
}

#[test]
fn second_client_of_a_living_one_is_refused_at_once() {
    let mut world = PortFixture::open();
    let first = connect(&mut world);
    let second = StreamSocket::connect(&world.config.vfs[0].socket).unwrap();
    world.round();
    assert_eq!(received(&second), Some(SocketReceiveResult::Closed));
    assert_eq!((world.slot().refusals.count, received(&first)), (1, Some(SocketReceiveResult::WouldBlock)));
}

#[test]
fn death_keeps_client_that_waits_for_a_hung_up_one() {
    let mut scene = HungUpClientFixture::open();
    let client = scene.next_client();
    scene.world.succeed();
    scene.rounds();
    scene.check_service(&client);
}

#[test]
fn hand_over_keeps_client_that_waits_for_a_hung_up_one() {
    let mut scene = HungUpClientFixture::open();
    let client = scene.next_client();
    let (answer, saved) = mpsc::channel();
    assert!(scene.world.handle.send(PortThreadCommand::Pause(Duration::from_secs(1), answer)));
    assert!(scene.world.handle.send(PortThreadCommand::Leave));
    scene.rounds();
    assert_eq!(saved.try_recv(), Ok(true), "the port does not wait for the worker thread");
    scene.world.succeed();
    scene.rounds();
    scene.check_service(&client);
}
