//! A thousand function level resets under traffic leave nothing behind: the registers are what they were after the
//! first, the neighbours have lost nothing, and nobody's memory was touched but by its own function.

use crate::common::{Bench, index, mac, packet, plain};
use i82576::bits::ctrl;
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, vf};
use i82576::{Queue, ids, table};
use pcie::Function::{self, Pf, Vf};
use pcie::capability::express;
use pcie::config::offset;

const ROUNDS: usize = 1000;

fn level_reset(bench: &mut Bench, function: Function) {
    let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, at, u32::from(express::DEVICE_CONTROL_FLR));
}

/// Every register of the port and of a VF, but for what counts, and for the semaphore, which reading takes.
fn registers(bench: &mut Bench) -> Vec<(u32, u32)> {
    let counts = |offset: &u32| {
        let statistics = table::CHAPTERS.iter().find(|(chapter, _)| *chapter == "statistics").unwrap().1;
        let of_vf = (0x1_0000..0x1_0800).contains(offset) && (0x10..0x80).contains(&(offset & 0xff));
        let missed = Queue::all().any(|queue| *offset == r::rx_block(queue) + rx::RQDPC);
        of_vf
            || missed
            || *offset == r::SWSM
            || statistics.iter().any(|row| row.offsets().any(|at| at == *offset))
    };
    let plain: Vec<u32> = table::rows().flat_map(|row| row.offsets()).filter(|at| !counts(at)).collect();
    let mut seen: Vec<(u32, u32)> = plain.into_iter().map(|at| (at, bench.pf().read(at))).collect();
    let of_vf = (0..ids::VF_BAR0_SIZE as u32).step_by(4).filter(|at| !(0xf10..0xf80).contains(at));
    seen.extend(of_vf.map(|at| (at, bench.vf(1).read(at))));
    seen
}

/// The registers that differ are none.
#[track_caller]
fn expect_same(first: &[(u32, u32)], seen: &[(u32, u32)]) {
    let differ: Vec<_> = first.iter().zip(seen).filter(|(first, seen)| first != seen).collect();
    assert_eq!(differ, [], "as after the first reset, and now");
}

/// VF 1 as its next driver and the PF set it up.
fn set_up(bench: &mut Bench) {
    bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.pf().write(r::VFRE, 0xff);
    bench.pf().write(r::VFTE, 0xff);
    bench.vf(1).read(vf::V2PMAILBOX);
    bench.vf(1).start();
}

/// Frames to and from VF 1, of which some are under way when this ends.
fn traffic(bench: &mut Bench, round: usize) {
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.vf(1).received().len(), 1, "round {round}");
    for _ in 0..round % 4 {
        let frame = bench.vf(1).place(&plain(mac(2), mac(1), 60));
        bench.vf(1).put(packet(frame, 74).emit());
    }
    bench.vf(1).ring();
    bench.vf(1).write(vf::VTEICS, 7);
    bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60));
}

#[test]
fn a_thousand_resets_of_a_vf_in_each_way() {
    let ways: [fn(&mut Bench); 3] = [
        |bench| bench.vf(1).write(vf::CTRL, ctrl::RST),
        |bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST),
        |bench| level_reset(bench, Vf(1)),
    ];
    for reset in ways {
        let mut bench = Bench::new(3);
        bench.vf(0).start();
        bench.vf(2).start();
        bench.pf().read(r::ICR);
        let mut first = None;
        for round in 0..ROUNDS {
            set_up(&mut bench);
            traffic(&mut bench, round);
            reset(&mut bench);
            bench.world.bus.log.clear();
            bench.msix();
            bench.poll();
            assert!(bench.world.bus.log.iter().all(|access| access.function != Vf(1)), "round {round}");
            assert!(bench.msix().iter().all(|(function, _)| *function != Vf(1)), "round {round}");
            assert_eq!(bench.vf(2).received(), [], "what was under way is gone");
            // The neighbour's ring has gone round by then.
            if round % 64 == 0 {
                bench.vf(0).start();
                let seen = registers(&mut bench);
                expect_same(first.get_or_insert_with(|| seen.clone()), &seen);
            }
        }
        assert_eq!(bench.pf().read(r::SSVPC), 0);
    }
}

#[test]
fn a_thousand_function_level_resets_of_the_pf() {
    let mut bench = Bench::new(3);
    let mut first = None;
    for round in 0..ROUNDS {
        for n in [0, 2] {
            bench.vf(n).start();
        }
        set_up(&mut bench);
        traffic(&mut bench, round);
        level_reset(&mut bench, Pf);
        bench.expect_nothing();
        let command = offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER;
        bench.config(Pf, offset::COMMAND, u32::from(command));
        bench.enable_vfs(3);
        bench.set_up_port(3);
        if round % 64 == 0 {
            let seen = registers(&mut bench);
            expect_same(first.get_or_insert_with(|| seen.clone()), &seen);
        }
    }
}
