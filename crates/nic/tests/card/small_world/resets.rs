//! Tests every way to stop a VF, in every order with its own frames, its neighbour's and the wire's. A stopped VF is
//! silent: the card makes no memory request and sends no message in its name.

use super::{ScriptPlayer, orders};
use crate::common::{CardFixture, index, mac, packet, plain};
use i82576::bits::ctrl;
use i82576::config::{EXPRESS, pf};
use i82576::register::{self as r, vf};
use pcie::Function::{Pf, Vf};
use pcie::capability::{express, power, sriov};
use pcie::config::offset;

/// Step of a script in the reset test: an action of VF 1, its neighbour, the wire or the PF.
#[derive(Debug, Clone, Copy)]
enum ResetScriptStep {
    /// The VF puts a frame for its neighbour into its ring and rings the doorbell.
    Sends,
    /// The VF raises the interrupts of its vectors (VTEICS).
    Asks,
    /// The wire delivers a frame for the VF.
    WireSends,
    /// The neighbour puts a frame for the VF into its ring and rings the doorbell.
    NeighbourSends,
    /// The card is polled.
    Poll,
    /// The PF enables the traffic of all VFs (VFRE, VFTE).
    Opens,
    /// The VF is stopped by one of [`WAYS`].
    Stop(StopMethod),
}

/// A way to stop VF 1, such as a reset or the loss of bus mastering.
type StopMethod = fn(&mut CardFixture);

/// Ways to stop VF 1, each with true if VF 1's neighbour keeps running.
const WAYS: [(StopMethod, bool); 8] = [
    (|bench| bench.vf(1).write(vf::CTRL, ctrl::RST), true),
    (|bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST), true),
    (|bench| flr(bench, Vf(1)), true),
    (|bench| bench.config(Vf(1), offset::COMMAND, 0), true),
    (|bench| bench.pf().write(r::CTRL, ctrl::RST), false),
    (|bench| flr(bench, Pf), false),
    (|bench| bench.config(Pf, pf::SRIOV + sriov::CONTROL, 0), false),
    (|bench| bench.config(Pf, u16::from(pf::POWER) + power::CONTROL, 3), false),
];

fn flr(bench: &mut CardFixture, function: pcie::Function) {
    let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, at, u32::from(express::DEVICE_CONTROL_FLR));
}

fn step(bench: &mut CardFixture, step: ResetScriptStep) {
    let sends = |bench: &mut CardFixture, from: u8, to: u8| {
        let frame = bench.vf(from).place(&plain(mac(to), mac(from), 60));
        bench.vf(from).put(packet(frame, 74).emit());
        bench.vf(from).ring();
    };
    match step {
        ResetScriptStep::Sends => sends(bench, 1, 0),
        ResetScriptStep::Asks => bench.vf(1).write(vf::VTEICS, 0b111),
        ResetScriptStep::WireSends => bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60)),
        ResetScriptStep::NeighbourSends => sends(bench, 0, 1),
        ResetScriptStep::Poll => _ = bench.poll_once(),
        ResetScriptStep::Opens => {
            bench.pf().write(r::VFRE, 0xff);
            bench.pf().write(r::VFTE, 0xff);
        }
        ResetScriptStep::Stop(way) => {
            way(bench);
            bench.world.bus.log.clear();
            bench.msix();
        }
    }
}

/// Returns true if the card made no memory request and sent no message in VF 1's name since VF 1 was stopped.
fn is_silent(bench: &CardFixture) -> bool {
    let memory = bench.world.bus.log.iter().all(|access| access.function != Vf(1));
    memory && bench.world.bus.msix.iter().all(|(function, _)| *function != Vf(1))
}

/// Replaces the card by a new one, whose VFs 0 and 1 have running rings and no pending frames.
fn start(bench: &mut CardFixture) {
    *bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.poll();
    bench.msix();
}

fn play(scripts: &[&[ResetScriptStep]], check_neighbour: bool) -> usize {
    let lengths: Vec<usize> = scripts.iter().map(|script| script.len()).collect();
    let (mut bench, mut count) = (CardFixture::bare(), 0);
    orders(&lengths, &mut |order| {
        start(&mut bench);
        let (mut player, mut stopped) = (ScriptPlayer::new(scripts), false);
        for &script in order {
            let next = *player.step(script);
            step(&mut bench, next);
            stopped |= matches!(next, ResetScriptStep::Stop(_));
            assert!(!stopped || is_silent(&bench), "after {next:?} in {order:?}");
        }
        bench.poll();
        assert!(is_silent(&bench), "at the end of {order:?}");
        if check_neighbour {
            bench.vf(0).received();
            bench.wire_sends(&plain(mac(0), mac(9), 60));
            bench.vf(0).expect_frame();
        }
        count += 1;
    });
    count
}

#[test]
fn vf_sends_no_frame_after_its_reset_in_any_order_of_steps() {
    for (way, only_the_vf) in WAYS {
        let work = [ResetScriptStep::Sends, ResetScriptStep::Asks];
        let world = [ResetScriptStep::WireSends, ResetScriptStep::NeighbourSends, ResetScriptStep::Poll];
        let scripts: [&[ResetScriptStep]; 4] =
            [&work, &world, &[ResetScriptStep::Stop(way)], &[ResetScriptStep::Opens]];
        assert_eq!(play(&scripts, only_the_vf), 420);
    }
}

#[test]
fn vf_sends_no_frame_after_two_resets_in_any_order_of_steps() {
    for (first, _) in WAYS {
        for (second, _) in WAYS {
            let work = [ResetScriptStep::Sends, ResetScriptStep::Poll];
            play(&[&work, &[ResetScriptStep::Stop(first)], &[ResetScriptStep::Stop(second)]], false);
        }
    }
}
