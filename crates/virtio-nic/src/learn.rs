//! Learns the Ethernet address of a VF whose rules have no address: the source address of its first frame.

use crate::device::VirtioDevice;
use crate::limits::{MAX_PAIRS, MAX_VFS};
use crate::transmit::cost_of_chain;
use pcie::{Bus, Function};
use plane::frame::{AddressPair, HEADER};
use plane::{ForwardingPlane, PortIndex};
use rings::BufferChain;
use units::work::FRAME_QUANTUM;
use units::{MacAddress, WorkCost};
use virtio::ChainBurst;
use virtio::net::NetHeaderFormat;

/// Cost of a check for a packet in a ring, and of comparing an address with those of the other VFs.
const RING_CHECK: WorkCost = WorkCost(1);

/// Cost of looks in a round, after which no further ring is looked at: the rings found so far can spend the rest of the round's credit.
/// 16 rings with packets of Linux cost as much.
const MOST_LOOKS: WorkCost = WorkCost(FRAME_QUANTUM.0 / 2);

/// Learns a VF's address from the first packet in one of its rings, which stays there. An address of another VF, or one that
/// the plane refuses, is not learned: its frames would go to this VF. Returns `None` if the device has an address now. Otherwise returns a mask
/// of the transmit rings to visit without an address: their first packet has no address to learn, or they have a paused
/// packet. The VF is charged for the packets.
#[cold]
pub(crate) fn learn<B: Bus>(
    devices: &mut [VirtioDevice],
    vf: usize,
    plane: &mut ForwardingPlane<MAX_VFS>,
    bus: &mut B,
) -> Option<u16> {
    let port = PortIndex::of_field(vf as u32);
    let is_taken = |devices: &[VirtioDevice], plane: &mut ForwardingPlane<MAX_VFS>, source| {
        let is_of_other =
            devices.iter().enumerate().any(|(other, device)| other != vf && device.owns(source));
        let has_arrived = devices[vf].has_arrived && !is_of_other && plane.grant_address(port, source);
        is_of_other || !has_arrived && !plane.may_learn(port, source)
    };
    let (ready, mut useless, mut spent) = (devices[vf].ready, 0, WorkCost(0));
    for queue in (0..MAX_PAIRS).filter(|queue| ready >> queue & 1 != 0) {
        if spent >= MOST_LOOKS {
            break;
        }
        if devices[vf].held.is_of(queue as u8) {
            // The rest of a paused packet waits for no address: its first segments have left. A VF with a check of its sources would
            // be charged with spoofing for it.
            if !devices[vf].rules.spoof_check {
                useless |= 1 << queue;
                continue;
            }
            devices[vf].drop_paused_packet();
            plane.ledger.of(port).tx_unclaimed += 1;
        }
        let (source, cost) = first_source(&mut devices[vf], queue, port, bus);
        plane.shares.charge(port, cost);
        spent = spent + cost;
        match source {
            FirstPacketAddress::From(source) if !is_taken(devices, plane, source) => {
                (devices[vf].learned, devices[vf].has_arrived) = (Some(source), false);
                return None;
            }
            // A packet that arrives from now on has to be looked at before it leaves.
            FirstPacketAddress::Missing => await_packet(&mut devices[vf], queue, port, bus),
            FirstPacketAddress::From(_) | FirstPacketAddress::WithoutAddress => useless |= 1 << queue,
        }
    }
    Some(useless)
}

/// Result of reading the first packet of a transmit ring: its source address, if it has one.
enum FirstPacketAddress {
    Missing,
    /// The packet has no station address as its source or is too short, or the ring is malformed. The visit that follows
    /// sends or drops the packet, or stops the ring.
    WithoutAddress,
    From(MacAddress),
}

/// Asks the driver of an empty ring for a notification of its first packet.
fn await_packet<B: Bus>(device: &mut VirtioDevice, queue: usize, port: PortIndex, bus: &mut B) {
    let arrived = device.transmit.get_mut(queue).is_some_and(|ring| ring.arm(port, bus).unwrap_or(true));
    if !arrived {
        device.ready &= !(1 << queue);
    }
}

/// Reads the source address of a transmit ring's first packet, which stays in the ring. Also returns the cost of the work.
fn first_source<B: Bus>(
    device: &mut VirtioDevice,
    queue: usize,
    port: PortIndex,
    bus: &mut B,
) -> (FirstPacketAddress, WorkCost) {
    let size = NetHeaderFormat::of(device.accepted).size();
    let Some(ring) = device.transmit.get_mut(queue) else {
        return (FirstPacketAddress::Missing, RING_CHECK);
    };
    let mut burst = ChainBurst::default();
    match ring.fetch(port, &mut burst, 1, bus) {
        Ok(0) => return (FirstPacketAddress::Missing, RING_CHECK),
        Ok(_) => {}
        Err(_) => return (FirstPacketAddress::WithoutAddress, RING_CHECK),
    }
    if let Some(queue) = &mut ring.queue {
        queue.unfetch(burst.chains());
    }
    let source = burst.chains().first().and_then(|chain| {
        let mut buffers = BufferChain::default();
        burst.readable(chain).iter().for_each(|buffer| buffers.push(buffer.address, buffer.length));
        let mut head = [0; HEADER];
        buffers.skip(size);
        if buffers.bytes() < HEADER {
            return None;
        }
        buffers.read(Function::Vf(port.get()), bus, &mut head).ok()?;
        Some(AddressPair::of(&head).source()).filter(|source| source.is_valid_unicast())
    });
    let cost = burst
        .chains()
        .first()
        .map_or(RING_CHECK, |chain| RING_CHECK + WorkCost::of_units(cost_of_chain(&burst, chain)));
    (source.map_or(FirstPacketAddress::WithoutAddress, FirstPacketAddress::From), cost)
}
