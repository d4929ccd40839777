//! Tests that a thousand resets under traffic have no lasting effect. After each reset the registers equal those after
//! the first one. The function makes no memory request and sends no message, and a VF's reset drops no frame of its
//! neighbours.

use crate::common::{CardFixture, index, mac, packet, plain};
use i82576::bits::ctrl;
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, tx, vf};
use i82576::{QueueIndex, ids, table};
use pcie::Function::{self, Pf, Vf};
use pcie::capability::express;
use pcie::config::offset;
use std::collections::HashSet;

const ROUNDS: usize = 1000;

fn level_reset(bench: &mut CardFixture, function: Function) {
    let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, at, u32::from(express::DEVICE_CONTROL_FLR));
}

/// Returns the offsets of the port's and a VF's registers, without counters, semaphore, and heads and tails of queues.
/// A read takes the semaphore, and heads and tails depend on the neighbours' traffic.
fn offsets() -> (Vec<u32>, Vec<u32>) {
    let statistics = table::CHAPTERS.iter().find(|(chapter, _)| *chapter == "statistics").unwrap().1;
    let counts: HashSet<u32> = statistics.iter().flat_map(|row| row.offsets()).collect();
    let of_queue = |queue| {
        let (receive, transmit) = (r::rx_block(queue), r::tx_block(queue));
        [receive + rx::RQDPC, receive + rx::RDH, receive + rx::RDT, transmit + tx::TDH, transmit + tx::TDT]
    };
    let moves: HashSet<u32> = QueueIndex::all().flat_map(of_queue).collect();
    let of_vf = |at: &u32| (0x1_0000..0x1_0800).contains(at) && (0x10..0x80).contains(&(at & 0xff));
    let told = |at: &u32| !(counts.contains(at) || moves.contains(at) || of_vf(at) || *at == r::SWSM);
    (
        table::rows().flat_map(|row| row.offsets()).filter(told).collect(),
        (0..ids::VF_BAR0_SIZE as u32).step_by(4).filter(|at| !(0xf10..0xf80).contains(at)).collect(),
    )
}

/// Returns offsets and values of the registers at the given [`offsets`], the port's and then VF 1's.
fn registers(bench: &mut CardFixture, (port, vf): &(Vec<u32>, Vec<u32>)) -> Vec<(u32, u32)> {
    let mut seen: Vec<(u32, u32)> = port.iter().map(|at| (*at, bench.pf().read(*at))).collect();
    seen.extend(vf.iter().map(|at| (*at, bench.vf(1).read(*at))));
    seen
}

/// Asserts that the registers after a reset (`seen`) equal those after the first reset.
#[track_caller]
fn expect_same(round: usize, first: &[(u32, u32)], seen: &[(u32, u32)]) {
    let differ: Vec<_> = first.iter().zip(seen).filter(|(first, seen)| first != seen).collect();
    assert_eq!(differ, [], "round {round}: offset, after the first reset, now");
}

/// Sets VF 1 up as its driver and the PF do.
fn set_up(bench: &mut CardFixture) {
    bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.pf().write(r::VFRE, 0xff);
    bench.pf().write(r::VFTE, 0xff);
    bench.vf(1).read(vf::V2PMAILBOX);
    bench.vf(1).start();
}

/// Returns VF 0's frame to VF 2 at the time of the reset. It differs between consecutive rounds.
fn between_neighbours(round: usize) -> Vec<u8> {
    plain(mac(2), mac(0), 60 + round % 1000)
}

/// Sends frames to and from VF 1, and one between its neighbours. All but the first are pending at the end.
fn traffic(bench: &mut CardFixture, round: usize) {
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.vf(1).received().len(), 1, "round {round}");
    let bytes = between_neighbours(round);
    let frame = bench.vf(0).place(&bytes);
    bench.vf(0).put(packet(frame, bytes.len() as u16).emit());
    bench.vf(0).ring();
    for _ in 0..round % 4 {
        let frame = bench.vf(1).place(&plain(mac(2), mac(1), 60));
        bench.vf(1).put(packet(frame, 74).emit());
    }
    bench.vf(1).ring();
    bench.vf(1).write(vf::VTEICS, 7);
    bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60));
}

#[test]
fn registers_after_a_thousand_vf_resets_equal_those_after_one() {
    let ways: [fn(&mut CardFixture); 3] = [
        |bench| bench.vf(1).write(vf::CTRL, ctrl::RST),
        |bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST),
        |bench| level_reset(bench, Vf(1)),
    ];
    for reset in ways {
        let mut bench = CardFixture::new(3);
        bench.vf(0).start();
        bench.vf(2).start();
        bench.pf().read(r::ICR);
        let (offsets, mut first) = (offsets(), None);
        for round in 0..ROUNDS {
            set_up(&mut bench);
            traffic(&mut bench, round);
            reset(&mut bench);
            bench.world.bus.log.clear();
            bench.msix();
            bench.poll();
            assert!(bench.world.bus.log.iter().all(|access| access.function != Vf(1)), "round {round}");
            assert!(bench.msix().iter().all(|(function, _)| *function != Vf(1)), "round {round}");
            // VF 1's frames were dropped, and VF 0's frame has arrived.
            let arrived = bench.vf(2).expect_frame();
            assert_eq!(arrived.bytes, between_neighbours(round), "round {round}");
            bench.vf(2).post(1);
            let seen = registers(&mut bench, &offsets);
            expect_same(round, first.get_or_insert_with(|| seen.clone()), &seen);
        }
        assert_eq!(bench.pf().read(r::SSVPC), 0);
    }
}

#[test]
fn registers_after_a_thousand_pf_resets_equal_those_after_one() {
    let mut bench = CardFixture::new(3);
    let (offsets, mut first) = (offsets(), None);
    for round in 0..ROUNDS {
        for n in [0, 2] {
            bench.vf(n).start();
        }
        set_up(&mut bench);
        traffic(&mut bench, round);
        level_reset(&mut bench, Pf);
        bench.expect_nothing();
        bench.vf(2).expect_no_frame();
        let command = offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER;
        bench.config(Pf, offset::COMMAND, u32::from(command));
        bench.enable_vfs(3);
        bench.set_up_port(3);
        let seen = registers(&mut bench, &offsets);
        expect_same(round, first.get_or_insert_with(|| seen.clone()), &seen);
    }
}
