//! Tests the resets: the state that each clears and keeps, the functions that are notified, and silence of the function
//! afterwards. Also SR-IOV: VFs appear and disappear with VF Enable.

use crate::common::{BASE, CardFixture, index, mac, packet, plain};
use i82576::bits::{ctrl, ctrl_ext, dctl, icr, v2p};
use i82576::config::{EXPRESS, pf};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::register::{self as r, rx, tx, vf};
use pcie::capability::{express, power, sriov};
use pcie::config::offset;
use pcie::{ConfigAccess, Function, Function::Vf};

/// Functions that each reset VF 1 in one way.
const WAYS: [fn(&mut CardFixture); 3] = [
    |bench| bench.vf(1).write(vf::CTRL, ctrl::RST),
    |bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST),
    |bench| level_reset(bench, Vf(1)),
];

/// Makes a function-level reset through configuration space.
fn level_reset(bench: &mut CardFixture, function: Function) {
    let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, at, u32::from(express::DEVICE_CONTROL_FLR));
}

/// Returns a card whose VFs 0 to 2 have read their reset notices and have running rings. No message is pending.
fn with_running_vfs() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).read(vf::V2PMAILBOX);
        bench.vf(vf).start();
    }
    bench.poll();
    bench.msix();
    bench
}

#[test]
fn vf_reset_clears_rings_vectors_and_traffic_enables() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        bench.vf(1).write(vf::VTEITR, 100 << 2);
        bench.vf(1).write(vf::VTEIAM, 7);
        bench.vf(1).write(vf::VTEIMC, 1);
        bench.vf(1).write(vf::VTEICS, 1);
        bench.vf(1).write(vf::TX_BLOCK + tx::TDWBAL, 0x1001);
        bench.vf(1).write(vf::PSRTYPE, 0x10);
        reset(&mut bench);
        for at in [vf::VTEICR, vf::VTEIMS, vf::VTEIAC, vf::VTEIAM, vf::VTEITR, vf::VTIVAR, vf::VTIVAR_MISC] {
            assert_eq!(bench.vf(1).read(at), 0, "{at:#x}");
        }
        for queue in [0, vf::QUEUE_STRIDE] {
            let (rx_block, tx_block) = (vf::RX_BLOCK + queue, vf::TX_BLOCK + queue);
            assert_eq!(bench.vf(1).read(rx_block + rx::RXDCTL), 1 << dctl::WTHRESH_SHIFT);
            assert_eq!(bench.vf(1).read(tx_block + tx::TXDCTL), 0);
            for at in [rx_block + rx::RDLEN, rx_block + rx::RDT, tx_block + tx::TDLEN, tx_block + tx::TDT] {
                assert_eq!(bench.vf(1).read(at), 0, "{at:#x}");
            }
            assert_eq!(bench.vf(1).read(tx_block + tx::TDWBAL), 0, "the next owner gets no address");
            assert_eq!(bench.vf(1).read(rx_block + rx::SRRCTL), 0x400);
        }
        assert_eq!(bench.vf(1).read(vf::PSRTYPE), 0);
        assert_eq!((bench.pf().read(r::VFRE), bench.pf().read(r::VFTE)), (0xfd, 0xfd));
    }
}

#[test]
fn vf_sends_no_frame_or_interrupt_after_its_reset() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        let frame = bench.vf(1).place(&plain(mac(0), mac(1), 100));
        bench.vf(1).put(packet(frame, 114).emit());
        bench.vf(1).ring();
        bench.vf(1).write(vf::VTEICS, 7);
        bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 100));
        reset(&mut bench);
        bench.expect_nothing();
        bench.vf(0).expect_no_frame();
    }
}

#[test]
fn vf_reset_disturbs_no_other_vf() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        let frame = bench.vf(0).place(&plain(mac(2), mac(0), 100));
        bench.vf(0).put(packet(frame, 114).emit());
        bench.vf(0).ring();
        reset(&mut bench);
        bench.poll();
        assert_eq!(bench.vf(2).expect_frame().bytes.len(), 114);
        assert_eq!(bench.msix(), [(Vf(2), 1), (Vf(0), 0)]);
        for vf in [0, 2] {
            assert_eq!(bench.vf(vf).read(vf::VTEIMS), 7);
            assert_eq!(bench.vf(vf).read(vf::V2PMAILBOX), 0);
        }
    }
}

#[test]
fn vf_reset_raises_an_event_at_the_pf() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        bench.pf().write(r::VFLRE, 0xff);
        bench.pf().read(r::ICR);
        reset(&mut bench);
        assert_eq!(bench.pf().read(r::VFLRE), 2);
        assert_ne!(bench.pf().read(r::ICR) & icr::VMMB, 0);
        assert_eq!(bench.vf(1).read(vf::V2PMAILBOX), v2p::RSTD);
    }
}

#[test]
fn only_a_function_level_reset_clears_bus_mastering() {
    let mut bench = with_running_vfs();
    WAYS[0](&mut bench);
    assert!(bench.nic.is_bus_master(Vf(1)));
    WAYS[2](&mut bench);
    assert!(!bench.nic.is_bus_master(Vf(1)));
    assert_eq!(bench.nic.config_read(Vf(1), offset::COMMAND, 2), 0);
}

#[test]
fn restarted_vf_moves_no_frame_until_the_pf_enables_it() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        reset(&mut bench);
        bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
        bench.vf(1).start();
        bench.wire_sends(&plain(mac(1), mac(9), 60));
        bench.vf(1).send(&plain(mac(9), mac(1), 60));
        bench.vf(1).expect_no_frame();
        assert!(bench.wire_got().is_empty());
        bench.pf().write(r::VFTE, 0xff);
        bench.poll();
        assert_eq!(bench.wire_got().len(), 1, "the pending frame leaves");
    }
}

#[test]
fn vf_reset_discards_unsent_packets_and_offload_contexts() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        let frame = bench.vf(1).place(&plain(mac(9), mac(1), 60));
        let context = AdvancedContextDescriptor { vlan_tag: 10, ..Default::default() };
        bench.vf(1).transmit(&[context.emit()]);
        // The ring is full with a packet without EOP.
        bench.vf(1).transmit(&[crate::common::data(frame, 64).emit(); 63]);
        reset(&mut bench);
        bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
        bench.pf().write(r::VFTE, 0xff);
        bench.vf(1).start();
        let frame = bench.vf(1).place(&plain(mac(9), mac(1), 60));
        let tagged = AdvancedDataDescriptor { insert_vlan: true, ..packet(frame, 74) };
        bench.vf(1).transmit(&[tagged.emit()]);
        assert_eq!(bench.wire_got(), [crate::common::tagged(0, &plain(mac(9), mac(1), 60))]);
    }
}

#[test]
fn vf_works_again_after_a_reset() {
    for reset in WAYS {
        let mut bench = with_running_vfs();
        reset(&mut bench);
        bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
        bench.pf().write(r::VFRE, 0xff);
        bench.pf().write(r::VFTE, 0xff);
        bench.vf(1).start();
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
        assert_eq!(bench.vf(1).expect_frame().bytes.len(), 74);
        bench.vf(1).send(&plain(mac(0), mac(1), 70));
        assert_eq!(bench.vf(0).expect_frame().bytes.len(), 84);
    }
}

#[test]
fn pf_reset_by_ctrl_rst_keeps_eitr_and_packet_buffer_size() {
    let mut bench = with_running_vfs();
    bench.pf().write(r::eitr(i82576::VectorIndex::new(0).unwrap()), 50 << 2);
    bench.vf(0).write(vf::VTEITR, 100 << 2);
    bench.pf().write(0x2404, 0x30);
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(bench.pf().read(r::CTRL) & ctrl::RST, 0);
    assert_eq!(
        (bench.pf().read(r::RCTL), bench.pf().read(r::TCTL), bench.pf().read(r::MRQC)),
        (0, 0xa404_00f8, 0)
    );
    assert_eq!(bench.pf().read(r::CTRL_EXT) & ctrl_ext::PFRSTD, 0);
    assert_eq!((bench.pf().read(r::VFRE), bench.pf().read(r::VFTE)), (0xff, 0xff));
    assert_eq!((bench.pf().read(r::ral(0)), bench.pf().read(r::rah(0))), (0x0000_0002, 0x8004_ff00));
    assert_eq!(bench.pf().read(r::rah(23)), 0);
    assert_eq!(bench.pf().read(r::EIMS), 0);
    assert_eq!(bench.pf().read(r::eitr(i82576::VectorIndex::new(0).unwrap())), 50 << 2);
    assert_eq!(bench.vf(0).read(vf::VTEITR), 100 << 2);
    assert_eq!(bench.pf().read(0x2404), 0x30);
    assert_eq!(bench.vfs(), 3, "configuration space keeps NumVFs");
    for vf in 0..3 {
        assert_eq!(bench.vf(vf).read(vf::V2PMAILBOX), v2p::RSTI);
        assert_eq!(bench.vf(vf).read(vf::RX_BLOCK + rx::RXDCTL) & dctl::ENABLE, 0);
        assert_eq!(bench.vf(vf).read(vf::VTIVAR), 0);
    }
    bench.expect_nothing();
}

#[test]
fn vfs_recover_after_a_pf_reset() {
    let mut bench = with_running_vfs();
    bench.pf().write(r::CTRL, ctrl::RST);
    bench.set_up_port(3);
    for vf in 0..2 {
        assert_eq!(bench.vf(vf).read(vf::V2PMAILBOX), v2p::RSTD);
        bench.vf(vf).start();
    }
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.vf(1).expect_frame().bytes.len(), 74);
}

#[test]
fn pf_function_level_reset_equals_power_on_without_vfs() {
    let mut bench = with_running_vfs();
    bench.pf().write(0x2404, 0x30);
    bench.vf(0).write(vf::VTEITR, 100 << 2);
    level_reset(&mut bench, Function::Pf);
    assert_eq!(bench.vfs(), 0);
    assert!(!bench.nic.is_bus_master(Function::Pf) && !bench.nic.is_bus_master(Vf(0)));
    assert_eq!(bench.nic.config_read(Vf(0), 0, 4), u32::MAX);
    assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::CONTROL, 2), 0);
    assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::NUM_VFS, 2), 0);
    assert_eq!(bench.pf().read(0x2404), 0x40, "RXPBS is reset too");
    assert_eq!(bench.pf().read(r::eitr(i82576::VectorIndex::new(22).unwrap())), 0);
    bench.expect_nothing();
}

#[test]
fn vf_without_bus_mastering_makes_no_memory_request() {
    let mut bench = with_running_vfs();
    let frame = bench.vf(1).place(&plain(mac(0), mac(1), 60));
    bench.config(Vf(1), offset::COMMAND, 0);
    bench.vf(1).put(packet(frame, 74).emit());
    bench.vf(1).ring();
    bench.vf(1).write(vf::VTEICS, 7);
    bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60));
    bench.expect_nothing();
    bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.poll();
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 74, "the pending frame arrives");
}

#[test]
fn pf_in_d3hot_makes_no_request_and_is_reset_on_wake() {
    let mut bench = with_running_vfs();
    let control = u16::from(pf::POWER) + power::CONTROL;
    bench.config(Function::Pf, control, 3);
    assert_eq!(bench.nic.config_read(Function::Pf, control, 2) & 3, 3);
    let frame = bench.vf(1).place(&plain(mac(0), mac(1), 60));
    bench.vf(1).put(packet(frame, 74).emit());
    bench.vf(1).ring();
    bench.expect_nothing();
    let command = u32::from(offset::COMMAND_BUS_MASTER);
    bench.config(Function::Pf, offset::COMMAND, 0);
    bench.config(Function::Pf, offset::COMMAND, command);
    bench.expect_nothing();
    assert!(!bench.nic.is_bus_master(Function::Pf), "D3hot ignores the command register");
    bench.config(Function::Pf, control, 0);
    assert_eq!(bench.vfs(), 0);
    assert_eq!(bench.pf().read(r::RCTL), 0);
}

#[test]
fn vfs_appear_and_disappear_with_vf_enable() {
    let mut bench = CardFixture::bare();
    let (num_vfs, control) = (pf::SRIOV + sriov::NUM_VFS, pf::SRIOV + sriov::CONTROL);
    assert_eq!(bench.nic.config_read(Vf(0), 0, 4), u32::MAX);
    for vfs in [7u8, 1, 8, 3] {
        bench.enable_vfs(vfs);
        assert_eq!(bench.vfs(), vfs);
        for vf in 0..8 {
            let id = bench.nic.config_read(Vf(vf), offset::REVISION, 4);
            assert_eq!(id == u32::MAX, vf >= vfs, "VF {vf} of {vfs}");
        }
        bench.config(Function::Pf, control, 0);
        assert_eq!(bench.vfs(), 0);
        assert_eq!(bench.nic.config_read(Function::Pf, num_vfs, 2), u32::from(vfs), "NumVFs keeps its value");
        assert!(!bench.nic.is_bus_master(Vf(0)));
    }
}

#[test]
fn num_vfs_is_bounded_and_locked_while_vfs_exist() {
    let mut bench = CardFixture::bare();
    let num_vfs = pf::SRIOV + sriov::NUM_VFS;
    for value in [9, 256, 0xffff] {
        bench.config(Function::Pf, num_vfs, value);
        assert_eq!(bench.nic.config_read(Function::Pf, num_vfs, 2), 0);
    }
    bench.enable_vfs(3);
    for value in [0, 8, 0xffff] {
        bench.config(Function::Pf, num_vfs, value);
        assert_eq!(bench.vfs(), 3);
    }
}

#[test]
fn enabling_vfs_keeps_the_pfs_queues() {
    let mut bench = CardFixture::bare();
    let queue = r::rx_block(index(7).queue(0));
    bench.pf().write(queue + rx::RDLEN, 0x1000);
    bench.pf().write(queue + rx::RDBAL, BASE as u32);
    bench.enable_vfs(7);
    assert_eq!(bench.pf().read(queue + rx::RDLEN), 0x1000);
    assert_eq!(bench.pf().read(r::VFLRE), 0x7f);
    bench.config(Function::Pf, pf::SRIOV + sriov::CONTROL, 0);
    assert_eq!(bench.pf().read(queue + rx::RDLEN), 0x1000);
}

#[test]
fn vfs_answer_memory_requests_only_if_vf_memory_is_enabled() {
    let mut bench = CardFixture::new(2);
    let control = pf::SRIOV + sriov::CONTROL;
    bench.vf(0).write(vf::VTEIAM, 5);
    bench.config(Function::Pf, control, u32::from(sriov::CONTROL_ENABLE));
    assert_eq!(bench.vf(0).read(vf::VTEIAM), u32::MAX);
    bench.vf(0).write(vf::VTEIAM, 2);
    assert_ne!(bench.nic.config_read(Vf(0), offset::REVISION, 4), u32::MAX, "VF MSE gates memory only");
    bench.config(Function::Pf, control, u32::from(sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY));
    assert_eq!(bench.vf(0).read(vf::VTEIAM), 5, "the register keeps its value and ignores the write");
}

#[test]
fn port_in_d3hot_answers_only_configuration_requests() {
    let mut bench = with_running_vfs();
    let control = u16::from(pf::POWER) + power::CONTROL;
    bench.pf().write(r::VET, 0x88a8_8100);
    bench.config(Function::Pf, control, 3);
    assert_eq!((bench.pf().read(r::VET), bench.vf(0).read(vf::STATUS)), (u32::MAX, u32::MAX));
    bench.pf().write(r::CTRL_EXT, 0);
    bench.vf(0).write(vf::CTRL, ctrl::RST);
    assert_eq!(bench.nic.config_read(Function::Pf, offset::VENDOR, 4), 0x10c9_8086);
    bench.config(Function::Pf, control, 0);
    assert_eq!(bench.pf().read(r::VET), 0x8100_8100, "reset by the wake-up");
}

#[test]
fn conventional_reset_also_resets_max_payload_size() {
    let payload = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    for conventional in [false, true] {
        let mut bench = with_running_vfs();
        bench.config(Function::Pf, payload, 0x2830);
        if conventional {
            bench.nic.conventional_reset();
        } else {
            bench.nic.reset_function(Function::Pf);
        }
        assert_eq!(bench.vfs(), 0);
        assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::CONTROL, 4), 0);
        assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::NUM_VFS, 2), 0);
        let kept = bench.nic.config_read(Function::Pf, payload, 2) & 0xe0;
        assert_eq!(kept, if conventional { 0 } else { 0x20 }, "the maximum payload size");
        bench.expect_nothing();
    }
}

#[test]
fn port_makes_no_memory_request_with_gio_master_disable() {
    let mut bench = with_running_vfs();
    bench.pf().write(r::CTRL, ctrl::GIO_MASTER_DISABLE);
    assert_eq!(bench.pf().read(r::STATUS) & i82576::bits::status::GIO_MASTER, 0, "acknowledged");
    let frame = bench.vf(1).place(&plain(mac(0), mac(1), 60));
    bench.vf(1).put(packet(frame, 74).emit());
    bench.vf(1).ring();
    bench.vf(1).write(vf::VTEICS, 7);
    bench.world.wire.incoming.push_back(plain(mac(2), mac(9), 60));
    bench.expect_nothing();
    bench.pf().write(r::CTRL, 0);
    bench.poll();
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 74, "the pending frame arrives");
}

#[test]
fn port_reset_clears_gio_master_disable() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::CTRL, ctrl::GIO_MASTER_DISABLE);
    bench.pf().write(r::CTRL, ctrl::RST | ctrl::GIO_MASTER_DISABLE);
    assert_ne!(bench.pf().read(r::STATUS) & i82576::bits::status::GIO_MASTER, 0);
}

#[test]
fn missing_vf_cannot_be_reset() {
    let resets: [fn(&mut CardFixture); 2] =
        [|bench| bench.pf().write(r::vf_block(index(5)), ctrl::RST), |bench| bench.nic.reset_function(Vf(5))];
    for reset in resets {
        let mut bench = with_running_vfs();
        bench.pf().write(r::VFLRE, 0xff);
        let queue = r::tx_block(index(5).queue(1)) + tx::TDLEN;
        bench.pf().write(queue, 0x1000);
        reset(&mut bench);
        assert_eq!(bench.pf().read(queue), 0x1000, "the PF's queue keeps its length");
        assert_eq!((bench.pf().read(r::VFLRE), bench.pf().read(r::VFTE)), (0, 0xff));
    }
}
