//! Moves frames through the Adaptive Virtual Function card, for callgrind: runs the cases whose name contains the first
//! argument FRAME_PATH_CALLS times. `cargo xtask instructions` counts the instructions per frame. `cargo xtask bench`
//! measures time on the card of SoftIOV.

use avf::control::{CardCommand, CardControl, RxQueueContext, TxQueueContext, VlanTagHandling};
use avf::descriptor::rx::{RxDescriptorFormat, posted};
use avf::descriptor::tx::{TxDataDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::register as r;
use avf_nic::Nic;
use plane::pacing::TransmitPacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use plane::uplink::{UplinkMode, UplinkWire};
use plane::{ForwardingPlane, PortCounters};
use two_vfs::{TwoVfMemory, address, frame};
use units::Time;

#[path = "../../pcie/benches/two_vfs/mod.rs"]
mod two_vfs;

const RING: usize = 64;
const RX_RING: usize = 0;
const TX_RING: usize = 0x1000;
const FRAME: usize = 0x2000;
const BUFFERS: usize = 0x2_0000;
const BUFFER: usize = 2048;
const PORT_VLAN: u16 = 100;
/// Number of frames that a call of [`CardBench::send`] sends.
const BURST: usize = 32;
/// Frame budget of a visit to a transmit queue, as on a live port.
const BUDGET: usize = 64;

/// Uplink that drops every frame.
struct DroppingWire;

impl UplinkWire for DroppingWire {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        true
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

struct CardBench {
    /// Bytes of the receive descriptors in the benchmark, as a guest posts them.
    posted: Vec<u8>,
    card: Nic,
    plane: ForwardingPlane<64>,
    memory: TwoVfMemory,
    /// Tail indices of VF 1's receive ring and of VF 0's transmit ring.
    tails: [usize; 2],
}

impl CardBench {
    /// Creates a card with two VFs as a host sets them up for tenants: on a port VLAN, with spoof check.
    fn new(form: RxDescriptorFormat) -> Self {
        let mut card = Nic::new(2);
        let mut plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            [PortCounters::default(); 64],
        );
        plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
        for vf in 0..2 {
            card.set_bus_master(vf, true);
            let length = RING as u16;
            card.order(
                vf,
                CardCommand::ConfigureTx(
                    0,
                    TxQueueContext { base: TX_RING as u64, length, head_address: None },
                ),
            );
            let rx = RxQueueContext {
                base: RX_RING as u64,
                length,
                form,
                buffer_bytes: BUFFER as u32,
                max_frame: 9728,
                keep_fcs: false,
            };
            card.order(vf, CardCommand::ConfigureRx(0, rx));
            card.order(vf, CardCommand::Address { mac: address(vf), on: true });
            card.order(vf, CardCommand::Vlan { vlan: PORT_VLAN, on: true });
            card.order(
                vf,
                CardCommand::Tags(VlanTagHandling { strip: true, insert: false, port_vlan: Some(PORT_VLAN) }),
            );
            card.order(vf, CardCommand::SpoofCheck(true));
            card.order(vf, CardCommand::Run { rx: 1, tx: 1 });
        }
        card.apply_policy(&mut plane, &PortMirrorRules::NONE);
        let memory = TwoVfMemory::new(false);
        let posted = (0..RING)
            .flat_map(|slot| posted((BUFFERS + slot * BUFFER) as u64).into_iter().take(form.size()))
            .collect();
        Self { posted, card, plane, memory, tails: [0; 2] }
    }

    /// Sends [`BURST`] copies of the data descriptor `raw` from VF 0 to VF 1.
    fn send(&mut self, raw: &[u8; 16]) {
        let [rx, tx] = self.tails;
        self.memory.store(1, RX_RING as u64, &self.posted);
        let at = (TX_RING + tx * 16) as u64;
        self.memory.store(0, at, [*raw; BURST].as_flattened());
        self.tails = [(rx + BURST) % RING, (tx + BURST) % RING];
        self.card.write(1, r::qrx_tail(0), ((rx + RING - 1) % RING) as u32);
        self.card.write(0, r::qtx_tail(0), self.tails[1] as u32);
        while self.card.visit_ready(&mut self.plane, BUDGET, &mut self.memory, &mut DroppingWire) {}
        self.card.poll(Time::ZERO, &mut self.memory);
    }
}

fn main() {
    let wanted = |name: &str| {
        let mut parts = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
        parts.all(|part| name.contains(&part))
    };
    let calls = std::env::var("FRAME_PATH_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1);
    for (form, kind) in [(RxDescriptorFormat::Legacy, "legacy"), (RxDescriptorFormat::FlexLate, "flexible")] {
        for (sums, asked) in [(false, ""), (true, ", checksum inserted")] {
            let name = format!("AVF to AVF{asked}, with policy, 64 bytes, {kind}");
            if !wanted(&name) {
                continue;
            }
            let mut bench = CardBench::new(form);
            let bytes = frame(1, 0, 64);
            bench.memory.store(0, FRAME as u64, &bytes);
            let plain = TxDataDescriptor {
                address: FRAME as u64,
                length: bytes.len() as u16,
                end_of_packet: true,
                report_status: true,
                ..TxDataDescriptor::default()
            };
            let data = if sums {
                let (ip, l4) = (TxIpHeaderKind::V4Checksum, TxL4Checksum::Tcp);
                TxDataDescriptor { ip, l4, mac_length: 14, ip_length: 20, l4_length: 20, ..plain }
            } else {
                plain
            };
            (0..calls).for_each(|_| bench.send(&data.emit()));
            let [sent, received] = [0, 1].map(|vf| bench.card.statistics(vf));
            let expected = calls * BURST as u64;
            assert_eq!((sent.tx_unicast, received.rx_unicast), (expected, expected), "{name}");
        }
    }
}
