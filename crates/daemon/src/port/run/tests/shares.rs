//! Tests of the shares of a port's time: a client's turn ends within a message, and each client pays for its own work.

use super::{PortFixture, message};
use host::dma::DmaPermissions;
use pcie::Function;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Returns a message that resets its VF `count` times by function-level resets, and asks for a reply.
fn resets(id: u16, count: u64) -> Vec<u8> {
    // Device Control of VFs of both families (PCIe capability at 0xa0, offset 8), bit 15.
    let entry = [
        &0xa8_u64.to_le_bytes()[..],
        &7_u32.to_le_bytes(),
        &2_u32.to_le_bytes(),
        &[0, 0x80, 0, 0, 0, 0, 0, 0],
    ];
    message(id, 15, &[&count.to_le_bytes()[..], &entry.concat().repeat(count as usize)].concat())
}

/// Returns true if the port has sent a client a reply of 16 bytes or more, and takes what was sent.
fn has_reply(client: &mut UnixStream) -> bool {
    client.read(&mut [0; 64]).is_ok_and(|length| length >= 16)
}

#[test]
fn turn_ends_within_a_message_and_other_clients_are_served() {
    // Each reset costs 21 units, and a round has 200 (`units::work`). The PF driver's part in a reset costs some 145 units, once
    // a round.
    for (family, expected) in [("82576", 400..=520), ("avf", 280..=420)] {
        let rounds = reset_in_turns(family);
        assert!(expected.contains(&rounds), "{family}: 1,024 resets took {rounds} rounds");
    }
}

/// Has a client reset its VF 1,024 times in one message. Returns the number of rounds that it takes.
fn reset_in_turns(family: &str) -> u32 {
    let mut world = PortFixture::open_with(&format!("[[port]]\nfamily = {family:?}\nvfs = 2\n"));
    let mut flooder = world.connect();
    let mut neighbour = neighbour(&mut world);
    let version = message(0, 1, b"\0\0\x01\0{\"capabilities\":{\"write_multiple\":true}}\0");
    flooder.write_all(&version).unwrap();
    world.round();
    assert!(has_reply(&mut flooder));
    flooder.write_all(&resets(1, 1024)).unwrap();
    let mut rounds = 0;
    while !has_reply(&mut flooder) {
        neighbour.write_all(&message(2, 99, &[])).unwrap();
        world.round();
        assert!(has_reply(&mut neighbour), "round {rounds}");
        rounds += 1;
    }
    rounds
}

#[test]
fn client_is_not_charged_for_resets_of_other_vfs() {
    let mut world = PortFixture::open_with("[[port]]\nvfs = 2\n");
    let mut client = world.connect();
    let version = message(0, 1, b"\0\0\x01\0{}\0");
    client.write_all(&version).unwrap();
    world.round();
    assert!(has_reply(&mut client));
    for _ in 0..1_000 {
        assert!(world.port.engine.card_mut().reset_function(Function::Vf(1)));
    }
    // REGION_READ of 4 bytes of BAR0.
    let read =
        message(1, 9, &[&8_u64.to_le_bytes()[..], &0_u32.to_le_bytes(), &4_u32.to_le_bytes()].concat());
    for _ in 0..2 {
        client.write_all(&read).unwrap();
        world.round();
        assert!(has_reply(&mut client));
    }
}

#[test]
fn port_finishes_a_suspended_message_before_a_hand_over() {
    let read = message(1, 9, &access(0, 0, 16 * 1024));
    for long in [resets(1, 1024), read] {
        let mut world = PortFixture::open();
        let mut client = world.connect();
        let version = message(0, 1, b"\0\0\x01\0{\"capabilities\":{\"write_multiple\":true}}\0");
        client.write_all(&version).unwrap();
        world.round();
        assert!(has_reply(&mut client));
        client.write_all(&long).unwrap();
        world.round();
        assert!(!has_reply(&mut client));
        let now = world.port_time();
        world.port.clients.prepare_hand_over(&mut world.port.engine, now);
        assert!(has_reply(&mut client), "the successor handles no message a second time");
    }
}

/// Sends a client's bytes until the socket is full. Returns the number of bytes that it has taken.
fn fill(client: &mut UnixStream) -> usize {
    std::iter::from_fn(|| client.write(&[0; 16 * 1024]).ok()).sum()
}

#[test]
fn cut_off_client_that_keeps_sending_is_read_once_in_10_ms() {
    let mut world = PortFixture::open();
    let mut flooder = world.connect();
    // A message that is shorter than its head.
    flooder.write_all(&[0; 16]).unwrap();
    world.round();
    assert!(!world.is_connected());
    fill(&mut flooder);
    for _ in 0..10 {
        world.round_after(Duration::from_millis(10));
        // A receive takes 64 KB, and the kernel counts the memory behind them.
        assert!((1..=2 * 64 * 1024).contains(&fill(&mut flooder)));
        let sent: usize = (0..100).map(|_| (world.round(), fill(&mut flooder)).1).sum();
        assert_eq!(sent, 0, "the clock stands still");
    }
}

/// Connects a client to a VF, and waits until the client is saved for the successor process.
pub(super) fn client_of(world: &mut PortFixture, vf: usize) -> UnixStream {
    let client = UnixStream::connect(&world.config.vfs[vf].socket).unwrap();
    client.set_nonblocking(true).unwrap();
    world.round_until(|world| world.port.clients.slots()[vf].own.successor.progress().stream != 0);
    client
}

/// Connects a client to VF 1.
fn neighbour(world: &mut PortFixture) -> UnixStream {
    client_of(world, 1)
}

/// Connects a client to VF 0 that the port has agreed with on a version.
fn negotiated_client(world: &mut PortFixture) -> UnixStream {
    let mut client = world.connect();
    client.write_all(&message(0, 1, b"\0\0\x01\0{}\0")).unwrap();
    world.round();
    assert!(has_reply(&mut client));
    client
}

/// Sends a client's messages. Returns the number of rounds until the client has received `bytes` bytes of replies. The
/// neighbour's message is answered in each of them.
fn rounds_until_answered(world: &mut PortFixture, messages: &[u8], bytes: usize) -> usize {
    let (mut neighbour, mut client) = (neighbour(world), negotiated_client(world));
    let (mut unsent, mut received, mut rounds) = (messages, 0, 0);
    let mut buffer = vec![0; 1 << 20];
    while received < bytes {
        if let Ok(sent) = client.write(unsent) {
            unsent = &unsent[sent..];
        }
        neighbour.write_all(&message(2, 99, &[])).unwrap();
        world.round();
        assert!(has_reply(&mut neighbour), "round {rounds}");
        received += std::iter::from_fn(|| client.read(&mut buffer).ok()).sum::<usize>();
        rounds += 1;
        assert!(rounds < 1_000, "{received} bytes were received");
    }
    rounds
}

/// Returns the body of an access to `count` bytes of a region.
fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes()].concat()
}

#[test]
fn reads_outside_of_a_region_cost_by_their_bytes() {
    let mut world = PortFixture::open();
    let reads = message(1, 9, &access(0, 1 << 40, 64 * 1024)).repeat(64);
    let rounds = rounds_until_answered(&mut world, &reads, 64 * 64 * 1024);
    // 64 KB cost 128 units.
    assert!((41..=60).contains(&rounds), "{rounds}");
}

#[test]
fn turn_ends_within_a_long_read() {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"avf\"\nvfs = 2\n");
    let read = message(1, 9, &access(0, 0, 64 * 1024));
    let rounds = rounds_until_answered(&mut world, &read, 64 * 1024);
    // 16,384 registers, 200 in a round.
    assert!((80..=95).contains(&rounds), "{rounds}");
    assert_eq!(world.slot().connection().unwrap().counters().reads, 1);
}

#[test]
fn turn_ends_within_a_long_write() {
    let mut world = PortFixture::open_with("[[port]]\nfamily = \"avf\"\nvfs = 2\n");
    let write = message(1, 10, &[&access(0, 0, 64 * 1024)[..], &[0; 64 * 1024]].concat());
    let rounds = rounds_until_answered(&mut world, &write, 32);
    // 16,384 registers, 200 in a round.
    assert!((80..=95).contains(&rounds), "{rounds}");
    assert_eq!(world.slot().connection().unwrap().counters().synchronous_writes, 1);
}

#[test]
fn skipped_bytes_of_a_message_are_charged() {
    let mut world = PortFixture::open();
    let mut long = message(1, 99, &vec![0; 4 << 20]);
    long.extend(message(2, 99, &[]));
    let rounds = rounds_until_answered(&mut world, &long, 32);
    // 4 MB cost 8,192 units.
    assert!((41..=90).contains(&rounds), "{rounds}");
}

#[test]
fn resets_by_message_cost_their_walk_through_the_configuration() {
    let mut world = PortFixture::open();
    let rounds = rounds_until_answered(&mut world, &message(1, 13, &[]).repeat(100), 100 * 16);
    // Each costs 110 units, and each turn a save of 150.
    assert!((54..=250).contains(&rounds), "{rounds}");
}

#[test]
fn configuration_writes_cost_their_save() {
    let mut world = PortFixture::open();
    let write = message(1, 10, &[&access(7, 4, 2)[..], &[0; 2]].concat());
    let rounds = rounds_until_answered(&mut world, &write.repeat(100), 100 * 32);
    // 20 writes fit into a turn, and a save takes three quarters of one.
    assert!((10..=20).contains(&rounds), "{rounds}");
}

/// Returns the messages that map 1,000 windows without a file.
fn maps() -> Vec<u8> {
    let map = |page: u64| {
        let sizes = [32_u32, 3].map(u32::to_le_bytes).concat();
        message(1, 2, &[&sizes[..], &[0, page * 4096, 4096].map(u64::to_le_bytes).concat()].concat())
    };
    (0..1_000).flat_map(map).collect()
}

/// Returns the message that unmaps them.
fn unmap_of_all() -> Vec<u8> {
    let sizes = [24_u32, 0].map(u32::to_le_bytes).concat();
    message(2, 3, &[&sizes[..], &[0, 1_000 * 4096].map(u64::to_le_bytes).concat()].concat())
}

#[test]
fn turn_ends_within_an_unmap_of_many_windows() {
    let mapped = rounds_until_answered(&mut PortFixture::open(), &maps(), 1_000 * 16);
    let both = [maps(), unmap_of_all()].concat();
    let unmapped = rounds_until_answered(&mut PortFixture::open(), &both, 1_000 * 16 + 16 + 24);
    // 1,000 windows cost 2,000 units.
    assert!((8..=15).contains(&(unmapped - mapped)), "{mapped} rounds, then {unmapped}");
}

#[test]
fn port_leaves_a_suspended_unmap_to_its_successor() {
    let mut world = PortFixture::open();
    let mut client = negotiated_client(&mut world);
    client.write_all(&maps()).unwrap();
    let mut received = 0;
    while received < 1_000 * 16 {
        world.round();
        received += std::iter::from_fn(|| client.read(&mut [0; 4096]).ok()).sum::<usize>();
    }
    client.write_all(&unmap_of_all()).unwrap();
    world.round();
    let now = world.port_time();
    world.port.clients.prepare_hand_over(&mut world.port.engine, now);
    assert!(!has_reply(&mut client));
    let windows = world.port.engine.reach(Function::Vf(0)).memory().len();
    assert!((850..1_000).contains(&windows), "{windows} windows");
    world.succeed();
    let rounds = (0..100).position(|_| (world.round(), has_reply(&mut client)).1).expect("a reply");
    assert!(rounds >= 8 && world.port.engine.reach(Function::Vf(0)).memory().is_empty(), "{rounds} rounds");
}

/// Runs rounds until the account of VF 0 has credit. Returns the number of rounds without. The neighbour's message is
/// answered in each round. A `busy` client sends more messages than the port handles.
fn rounds_in_debt(
    world: &mut PortFixture,
    neighbour: &mut UnixStream,
    mut busy: Option<&mut UnixStream>,
) -> usize {
    let mut unanswered = message(1, 99, &[]);
    // No_reply.
    unanswered[8] = 0x10;
    let mut rounds = 0;
    loop {
        busy.iter_mut().for_each(|busy| busy.write_all(&unanswered.repeat(40)).unwrap());
        neighbour.write_all(&message(2, 99, &[])).unwrap();
        world.round();
        assert!(has_reply(neighbour), "round {rounds}");
        if world.slot().own.account.has_credit() {
            return rounds;
        }
        rounds += 1;
    }
}

#[test]
fn client_that_connects_and_leaves_pays_for_it() {
    let mut world = PortFixture::open_with("[[port]]\nvfs = 3\n");
    let (mut neighbour, mut busy) = (neighbour(&mut world), client_of(&mut world, 2));
    for _ in 0..3 {
        let client = UnixStream::connect(&world.config.vfs[0].socket).unwrap();
        let attached = rounds_in_debt(&mut world, &mut neighbour, Some(&mut busy));
        world.round_until(|world| world.slot().own.successor.progress().stream != 0);
        drop(client);
        let detached = rounds_in_debt(&mut world, &mut neighbour, Some(&mut busy));
        assert!(!world.is_connected());
        // 400 units, of which a round before had the first 200; 780, and the PF driver's part in the reset.
        assert_eq!([attached, detached], [1, 4]);
    }
}

/// Maps 8,000 windows for VF 0, as a VMM does without a file.
pub(super) fn admit_windows(world: &mut PortFixture) {
    let memory = world.port.engine.reach_mut(Function::Vf(0)).memory_mut();
    let permissions = DmaPermissions::READ_WRITE;
    (0..8_000)
        .for_each(|page| assert!(memory.admit((1 << 32) + page * 4096, 4096, permissions, None).is_ok()));
}

#[test]
fn next_client_pays_at_most_20_rounds_of_a_former_ones_debt() {
    let mut world = PortFixture::open_with("[[port]]\nvfs = 3\n");
    let (mut neighbour, mut busy) = (neighbour(&mut world), client_of(&mut world, 2));
    let client = world.connect();
    admit_windows(&mut world);
    drop(client);
    let rounds = rounds_in_debt(&mut world, &mut neighbour, Some(&mut busy));
    // The windows cost 16,000 units, 80 rounds.
    assert_eq!((rounds, world.is_connected()), (21, false));
}

#[test]
fn debts_are_forgotten_when_the_port_sleeps() {
    let mut world = PortFixture::open();
    let mut neighbour = neighbour(&mut world);
    let client = world.connect();
    admit_windows(&mut world);
    drop(client);
    assert_eq!(rounds_in_debt(&mut world, &mut neighbour, None), 1);
}

#[test]
fn window_below_many_others_costs_by_the_moved_windows() {
    let mut world = PortFixture::open();
    admit_windows(&mut world);
    let map = [32_u32, 3].map(u32::to_le_bytes).concat();
    let map = [&map[..], &[0, 4096, 4096].map(u64::to_le_bytes).concat()].concat();
    let unmap = [24_u32, 0].map(u32::to_le_bytes).concat();
    let unmap = [&unmap[..], &[4096, 4096].map(u64::to_le_bytes).concat()].concat();
    let messages = [message(1, 2, &map), message(2, 3, &unmap)].concat().repeat(10);
    let rounds = rounds_until_answered(&mut world, &messages, 10 * (16 + 16 + 24));
    // Each map and each unmap moves 8,000 windows, for 500 units.
    assert!((50..=70).contains(&rounds), "{rounds}");
}
