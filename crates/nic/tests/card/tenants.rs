//! Tests a VF that changes its tenant: after a function-level reset it equals an unused VF, whatever the last tenant
//! did. `iovm` tests the configuration space that a guest sees.

use crate::common::{BASE, CardFixture, data, mac, plain, tcp};
use i82576::bits::{ctrl, dctl, rttbcnrc};
use i82576::config::EXPRESS;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::ids::VF_BAR0_SIZE;
use i82576::register::{self as r, rx, tx, vf};
use i82576::window;
use pcie::Function::Vf;
use pcie::capability::express;

const WIRE: i82576::MacAddress = mac(9);

/// Returns a card whose VFs 0 to 2 may run after PFRSTD. VF 0 has a transmit rate of a thousandth of the link's.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.pf().write(r::RTTBCNRC, rttbcnrc::RS_ENA | 1_000 << rttbcnrc::INTEGER_SHIFT);
    bench
}

/// Resets VF 0 between two tenants as the host does, and sets it up by PF and host. Its memory is the new tenant's.
fn change_tenant(bench: &mut CardFixture) {
    bench.world.bus.memory(Vf(0)).fill(0);
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(Vf(0), control, express::DEVICE_CONTROL_FLR.into());
    bench.config(Vf(0), pcie::config::offset::COMMAND, pcie::config::offset::COMMAND_BUS_MASTER.into());
    let events = bench.pf().read(r::VFLRE);
    bench.pf().write(r::VFLRE, events);
    for gate in [r::VFRE, r::VFTE] {
        bench.pf().set(gate, 1);
    }
}

/// Reads every register of VF 0, in the order of offsets. The reads clear some of them.
fn read_registers(bench: &mut CardFixture) -> Vec<u32> {
    (0..VF_BAR0_SIZE as u32).step_by(4).map(|at| bench.vf(0).read(at)).collect()
}

/// Reads every byte of VF 0's configuration space in the card.
fn look_at_config(bench: &mut CardFixture) -> Vec<u8> {
    let mut bytes = vec![0; pcie::config::SIZE];
    bench.nic.config_read_bytes(Vf(0), 0, &mut bytes);
    bytes
}

/// Returns a context of TCP over IPv4, and the descriptors of a packet of many segments with it.
fn large(bench: &mut CardFixture) -> [[u8; 16]; 3] {
    let address = bench.vf(0).place(&tcp(WIRE, mac(0), &[7; 8_000]));
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ..AdvancedContextDescriptor::default()
    };
    let context =
        AdvancedContextDescriptor { ipv4: true, l4: L4PacketType::Tcp, mss: 500, vlan_tag: 5, ..lengths };
    let first = AdvancedDataDescriptor {
        segment: true,
        payload_length: 8_000,
        insert_l4_checksum: true,
        ..data(address, 54)
    };
    let rest =
        AdvancedDataDescriptor { end_of_packet: true, report_status: true, ..data(address + 54, 8_000) };
    [context.emit(), first.emit(), rest.emit()]
}

/// Uses every part of VF 0, so that the next tenant could see traces: traffic in both directions, a packet held between
/// two segments, fetched and unused descriptors, throttled interrupts, words in the mailbox, and finally ones in every
/// writable bit.
fn leave_traces(bench: &mut CardFixture) {
    bench.vf(0).start();
    bench.vf(0).start_second_receive();
    bench.vf(0).write(vf::VTEITR, 0x7ffc);
    bench.vf(0).write(vf::PSRTYPE, u32::MAX);
    for to in [mac(0), i82576::MacAddress::BROADCAST, i82576::MacAddress([1, 0, 0x5e, 0, 0, 1])] {
        bench.wire_sends(&plain(to, WIRE, 300));
    }
    let descriptors = large(bench);
    bench.vf(0).transmit(&descriptors);
    for (at, row) in window::TABLE.iter().map(|row| (row.offset, row)) {
        let elements = (0..row.count).map(|i| at + i * row.stride);
        // The rings must stay in use until the reset, and CTRL would reset them.
        let rings = (vf::RX_BLOCK..vf::TX_BLOCK + 0x200).contains(&at);
        for offset in elements.filter(|_| !rings && row.offset != vf::CTRL) {
            bench.vf(0).write(offset, u32::MAX);
        }
    }
    for block in [vf::RX_BLOCK, vf::TX_BLOCK] {
        let second = block + vf::QUEUE_STRIDE;
        for at in (0..0x40).step_by(4).filter(|at| ![rx::RXDCTL, tx::TXDCTL].contains(at)) {
            bench.vf(0).write(second + at, 0xffff_fff0);
        }
        bench.vf(0).write(block + rx::SRRCTL, u32::MAX);
        bench.vf(0).write(block + tx::TDWBAL, (BASE | 1) as u32);
    }
}

#[test]
fn next_tenant_reads_the_same_registers_as_a_first_tenant() {
    let (mut fresh, mut used) = (bench(), bench());
    leave_traces(&mut used);
    for bench in [&mut fresh, &mut used] {
        change_tenant(bench);
        bench.poll();
        bench.msix();
    }
    assert_eq!(look_at_config(&mut used), look_at_config(&mut fresh));
    let differs: Vec<String> = read_registers(&mut used)
        .into_iter()
        .zip(read_registers(&mut fresh))
        .zip((0..).step_by(4))
        .filter(|((used, fresh), _)| used != fresh)
        .map(|((used, fresh), at)| format!("{at:#x}: {used:#x} instead of {fresh:#x}"))
        .collect();
    assert_eq!(differs, Vec::<String>::new());
}

#[test]
fn next_tenant_of_a_vf_sees_no_effect_of_the_last_tenant() {
    let (mut fresh, mut used) = (bench(), bench());
    leave_traces(&mut used);
    let mut seen = Vec::new();
    for bench in [&mut fresh, &mut used] {
        change_tenant(bench);
        bench.world.bus.log.clear();
        bench.msix();
        bench.wire_got();
        bench.wait_us(10_000_000);
        bench.poll();
        assert_eq!((bench.world.bus.log.len(), bench.msix().len(), bench.wire_got().len()), (0, 0, 0));
        // The next tenant asks for segments and a tag of a context that it has not set.
        bench.vf(0).start();
        let [_, first, rest] = large(bench);
        bench.vf(0).transmit(&[first, rest]);
        bench.wire_sends(&plain(mac(0), WIRE, 300));
        let memory = bench.vf(0).peek(BASE, 0x4_0000);
        seen.push((bench.wire_got(), bench.msix(), memory, read_registers(bench)));
    }
    assert!(seen[0] == seen[1], "used and unused VF behave the same");
}

#[test]
fn vf_reset_by_its_driver_keeps_mailbox_memory() {
    let mut bench = bench();
    bench.vf(0).write(vf::VMBMEM, 0x1234_5678);
    bench.vf(0).write(vf::CTRL, ctrl::RST);
    assert_eq!(bench.vf(0).read(vf::VMBMEM), 0x1234_5678, "igbvf reads the last reply again");
    assert_eq!(bench.vf(0).read(vf::TX_BLOCK + tx::TXDCTL) & dctl::ENABLE, 0);
}
