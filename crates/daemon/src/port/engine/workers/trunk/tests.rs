//! Tests of trunks in rounds of a worker with a flooding VF, and of a receiver that takes a batch in a round.

use super::*;

/// Rounds of a test.
const ROUNDS: usize = 1_000;
/// Frames of a VF that does not flood, in a round.
const FEW: usize = 3;
/// Long frames of a flooding VF in a round: some more than its share of the round pays for (`units::work`).
const FLOOD: usize = 160;
/// VF that receives the flood, and VF that receives the few frames.
const FLOODED: PortIndex = PortIndex::of_field(2);
const NEIGHBOUR: PortIndex = PortIndex::of_field(3);

/// Creates the trunks of three workers. The last has all VFs.
fn trunks() -> (Vec<WorkerTrunks>, TrunkReceiver) {
    let (all, to_uplink) = connect(3).unwrap();
    all[0].shared().homes.iter().for_each(|home| home.store(2, Ordering::Relaxed));
    (all, to_uplink)
}

/// Puts frames for a port into a trunk, in runs. Returns the number of frames that had room.
fn put_frames(trunk: &mut dyn FrameTrunk, port: PortIndex, count: usize) -> usize {
    let header = TrunkFrameHeader { port, ..TrunkFrameHeader::to_uplink(None) };
    let (lengths, mut starts) = ([1_514; 32], [0; 32]);
    let mut put = 0;
    while put < count {
        let Some(batch) = trunk.batch(port, 1_514) else { break };
        let run = batch.find_places(&lengths[..lengths.len().min(count - put)], &mut starts);
        batch.add_run(&header, (&starts[..run], &lengths[..run]), std::iter::repeat_n(0, run));
        put += run;
    }
    put
}

/// Takes a batch from each ring, and returns the number of frames for a port in them.
fn take_round(receiver: &mut TrunkReceiver, port: PortIndex) -> usize {
    let mut taken = 0;
    receiver.take(|batch| {
        let runs = (0..).map_while(|at| batch.run(at)).filter(|run| run.header.port == port);
        taken += runs.map(|run| run.frames().len()).sum::<usize>();
    });
    taken
}

/// Takes all batches, and returns the number of frames for a port in them.
fn take_all(trunk: &mut dyn FrameTrunk, receiver: &mut TrunkReceiver, port: PortIndex) -> usize {
    let mut taken = 0;
    while trunk.flush() || !receiver.are_empty() {
        taken += take_round(receiver, port);
    }
    taken
}

#[test]
fn flood_of_a_vf_costs_its_neighbour_on_the_worker_no_frame() {
    let (mut all, _to_uplink) = trunks();
    let [_, from, to] = &mut all[..] else { unreachable!() };
    let (mut sent, mut received, mut flooded) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let visits = from.visited.begin();
        flooded += put_frames(&mut from.sender, FLOODED, FLOOD);
        from.sender.flush();
        visits.advance();
        sent += put_frames(&mut from.sender, NEIGHBOUR, FEW);
        from.sender.flush();
        drop(visits);
        received += take_round(&mut to.receiver, NEIGHBOUR);
    }
    received += take_all(&mut from.sender, &mut to.receiver, NEIGHBOUR);
    assert_eq!((sent, received), (FEW * ROUNDS, FEW * ROUNDS));
    assert!(flooded < FLOOD * ROUNDS / 2, "{flooded} frames are no flood");
}

#[test]
fn floods_of_eight_vfs_cost_another_on_the_worker_no_frame() {
    let (mut all, _to_uplink) = trunks();
    let [_, from, to] = &mut all[..] else { unreachable!() };
    let mut received = 0;
    for _ in 0..ROUNDS {
        let visits = from.visited.begin();
        for _ in 0..8 {
            put_frames(&mut from.sender, FLOODED, FLOOD);
            from.sender.flush();
            visits.advance();
        }
        assert_eq!(put_frames(&mut from.sender, NEIGHBOUR, FEW), FEW);
        from.sender.flush();
        drop(visits);
        received += take_round(&mut to.receiver, NEIGHBOUR);
    }
    received += take_all(&mut from.sender, &mut to.receiver, NEIGHBOUR);
    assert_eq!(received, FEW * ROUNDS);
}

#[test]
fn flood_of_a_vf_to_the_uplink_costs_its_neighbour_no_frame() {
    let (mut all, mut to_uplink) = trunks();
    let from = &mut all[1];
    let uplink = from.uplink.as_mut().unwrap();
    for round in 0..ROUNDS {
        let visits = from.visited.begin();
        (0..FLOOD).for_each(|_| _ = uplink.transmit(&[0; 1_514]));
        uplink.flush();
        visits.advance();
        (0..FEW).for_each(|_| assert!(uplink.transmit(&[0; 1_514]), "round {round}"));
        uplink.flush();
        drop(visits);
        to_uplink.take(|_| ());
    }
}

#[test]
fn flood_from_the_uplink_to_a_vf_costs_its_neighbour_no_frame() {
    let (mut all, _to_uplink) = trunks();
    let [from, _, to] = &mut all[..] else { unreachable!() };
    for round in 0..ROUNDS {
        put_frames(&mut from.sender, FLOODED, FLOOD);
        assert_eq!(put_frames(&mut from.sender, NEIGHBOUR, FEW), FEW, "round {round}");
        from.sender.flush();
        to.receiver.take(|_| ());
    }
}
