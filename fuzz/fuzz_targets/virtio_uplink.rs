//! Hostile guests and stations that claim each other's addresses, on a card of virtio network devices, and TCP flows from an uplink
//! that hands over packets of several segments.
//!
//! The first seven bytes of the input select whether the card joins segments, and policy and features of the VFs. The rest is a
//! list of moves, each a byte with the kind and then its parameters: frames of stations and guests, requests for addresses,
//! announcements, time, restarts of guests, policies, addresses of another port, flows. Checked: no VF gets an address of a
//! station that is remembered, of the host or of another VF; no frame leaves a VF that its policy forbids; a VF gets no frame to
//! an address that is not its own; flows arrive complete and in order, in a form that the driver has accepted.
#![cfg_attr(not(test), no_main)]

use packets::requested;
use softiov_fuzz::FuzzerInput;
use softiov_fuzz::claims::VFS;
use softiov_fuzz::flows::TcpFlow;
use softiov_fuzz::stations::{self, destination};
use world::{Reached, World};

#[path = "../../crates/virtio-nic/tests/device/bus.rs"]
mod bus;
#[path = "virtio_uplink/checks.rs"]
mod checks;
#[path = "../../crates/virtio-nic/tests/device/driver.rs"]
mod driver;
#[path = "../../crates/virtio-nic/tests/device/machine.rs"]
mod machine;
#[path = "../../crates/virtio-nic/tests/device/packets.rs"]
mod packets;
#[path = "virtio_uplink/policy.rs"]
mod policy;
#[path = "virtio_uplink/world.rs"]
mod world;

/// Returns the Ethernet address of VF `n` or of a station.
fn address(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, n]
}

/// Returns the VF that a byte selects.
fn vf(byte: u8) -> usize {
    usize::from(byte) % VFS
}

/// Makes the next move. Returns `None` at the end of the fuzzer's input.
fn make_move(world: &mut World, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind] = input.array()?;
    match kind % 12 {
        0 | 1 => {
            let [from, to] = input.array()?;
            let frame = stations::frame(input, stations::address(from), destination(to))?;
            world.arrive(frame);
        }
        2 | 3 => {
            let [guest, from, to] = input.array()?;
            let frame = stations::frame(input, stations::address(from), destination(to))?;
            world.send(vf(guest), Default::default(), &frame);
        }
        4 => {
            let [guest, mac] = input.array()?;
            world.announce(vf(guest), stations::address(mac));
        }
        5 => {
            let [steps] = input.array()?;
            world.wait(u64::from(steps) * 10);
        }
        6 => {
            let [guest, how] = input.array()?;
            world.restart(vf(guest), how);
        }
        7 => {
            // Two guests may request addresses before the switch's tables change.
            let [first, mac, second, other] = input.array()?;
            world.request(vf(first), stations::address(mac));
            world.request(vf(second), stations::address(other));
            world.settle();
        }
        8 | 9 => flow(world, input)?,
        10 if kind & 0x80 == 0 => {
            let [guest, policy] = input.array()?;
            world.set_policy(vf(guest), policy);
        }
        10 => {
            let [mac] = input.array()?;
            match mac & 0x80 {
                0 => world.link.toggle(stations::address(mac)),
                _ => world.hand_over(),
            }
        }
        _ => {
            // A packet that the card segments, or passes on unsegmented.
            let [guest, from, to, kind, length] = input.array()?;
            let (header, packet) = requested(kind, (from % 12, to % 12), length, 0xf9);
            world.send(vf(guest), header, &packet);
        }
    }
    Some(())
}

/// Lets a flow arrive from a station: in one packet, in segments, or in segments between those of another flow. Returns `None` at
/// the end of the fuzzer's input.
fn flow(world: &mut World, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [ends, shape, a, b, c, d] = input.array()?;
    let length = 1 + usize::from(u16::from_le_bytes([a, b])) % 30_000;
    let mss = (usize::from(u16::from_le_bytes([c, d])) % 8_000).max(length / 60 + 1) as u16;
    let flow = TcpFlow {
        from: stations::address(ends >> 4),
        to: stations::address(ends),
        is_ipv6: shape & 1 != 0,
        is_tagged: shape & 2 != 0,
        port: 1,
        length,
        mss,
        pushes: shape & 4 != 0,
    };
    match (flow.whole(), shape >> 3 & 3) {
        (Some(packet), 0 | 1) => world.arrive_uncut(&flow, packet),
        (_, 2) => {
            let other = TcpFlow { port: 2, ..flow }.segments();
            let segments = flow.segments().into_iter().zip(other).flat_map(|(a, b)| [a, b]);
            world.arrive_in_segments(&flow, &segments.collect::<Vec<_>>());
        }
        _ => {
            let mut segments = flow.segments();
            if shape & 0x20 != 0 {
                // A segment with a wrong checksum.
                let at = usize::from(a) % segments.len();
                *segments[at].last_mut()? ^= 0x40;
            }
            world.arrive_in_segments(&flow, &segments);
        }
    }
    Some(())
}

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(data: &[u8]) {
    play(data);
}

/// Plays the moves of an input, and returns what they reached.
fn play(data: &[u8]) -> Reached {
    let mut input = FuzzerInput(data);
    let [card, a, b, c, d, e, f] = input.array().unwrap_or_default();
    let mut world = World::new(card, [[a, b], [c, d], [e, f]]);
    while make_move(&mut world, &mut input).is_some() {}
    world.settle();
    world.reached()
}

#[cfg(test)]
mod tests {
    use super::play;

    #[test]
    fn kept_inputs_reach_the_code_that_the_target_is_for() {
        let inputs = softiov_fuzz::kept_inputs("virtio_uplink");
        let reached = inputs.iter().map(|input| play(input));
        let all = reached.reduce(|all, one| all.with(&one)).expect("an input");
        assert!(all.has_everything(), "{all:?}");
    }
}
