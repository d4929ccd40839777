//! Learns the address of a VF whose rules have none: the source address of its first frame.

use crate::device::VirtioDevice;
use pcie::{Bus, Function};
use plane::PortIndex;
use plane::frame::{AddressPair, HEADER};
use rings::BufferChain;
use units::MacAddress;
use virtio::ChainBurst;
use virtio::net::NetHeaderFormat;

/// Reads the source address of a VF's first packet, which stays in its ring. An address of another VF does not count: the VF would
/// receive that one's frames. Returns true if the VF has an address now.
#[cold]
pub(crate) fn learn<B: Bus>(devices: &mut [VirtioDevice], port: PortIndex, bus: &mut B) -> bool {
    let vf = usize::from(port.get());
    let Some(device) = devices.get_mut(vf) else { return false };
    let ready = device.ready;
    let mut queues = (0..device.transmit.len()).filter(|queue| ready >> queue & 1 != 0);
    let source = queues.find_map(|queue| first_source(device, queue, port, bus));
    let learned = source.filter(|source| !devices.iter().any(|other| other.has_address(*source)));
    devices[vf].learned = learned;
    learned.is_some()
}

/// Returns the source address of the first packet of a ring. A packet that is too short, or from a group, has none.
fn first_source<B: Bus>(
    device: &mut VirtioDevice,
    queue: usize,
    port: PortIndex,
    bus: &mut B,
) -> Option<MacAddress> {
    let size = NetHeaderFormat::of(device.accepted).size();
    let ring = device.transmit.get_mut(queue)?;
    let mut burst = ChainBurst::default();
    // A malformed ring is stopped by the visit that follows.
    ring.fetch(port, &mut burst, 1, bus).ok()?;
    let chain = *burst.chains().first()?;
    ring.queue.as_mut()?.unfetch(&[chain]);
    let mut buffers = BufferChain::default();
    burst.readable(&chain).iter().for_each(|buffer| buffers.push(buffer.address, buffer.length));
    let mut head = [0; HEADER];
    buffers.skip(size);
    if buffers.bytes() < HEADER {
        return None;
    }
    buffers.read(Function::Vf(port.get()), bus, &mut head).ok()?;
    Some(AddressPair::of(&head).source()).filter(|source| !source.is_group())
}
