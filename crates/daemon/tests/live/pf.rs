//! Tests of a PF that a guest drives: the whole port over one socket, without the host's PF driver.

use crate::support::live::LiveHost;
use crate::support::machine::{CONFIG, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, QemuClient};
use crate::support::{PATIENCE, eventually};
use daemon::settings::PortSettings;
use driver::{DmaHal, Hal};
use host::eventfd::EventFd;
use host::poll::{PollInterest, Poller};
use i82576::bits::{ctrl, icr, ivar, status, tctl};
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::descriptor::{DD, SIZE};
use i82576::ids::{DEVICE_PF, VENDOR};
use i82576::register::{self as r, tx, tx_block};
use i82576::{MacAddress, QueueIndex};
use std::os::fd::AsFd;
use vfio_user::client::Client;
use vfio_user::wire::pci_irq;

const PF: &str = "[[port]]\npf = \"guest\"\nmac = \"02:82:57:60:00:09\"";
/// Number of the PF's I/O BAR.
const BAR2: u32 = 2;
/// Number of the PF's last MSI-X interrupt vector.
const VECTOR: u16 = 9;

fn boot(live: &LiveHost) -> VmWithPciFunction<QemuClient> {
    qemu::boot_as(&live.pf_socket(), qemu::PF, qemu::share)
}

/// Sends a frame as the PF's driver, on queue 0 with a new ring. Waits for the PF's last interrupt vector,
/// and returns true if the card has marked the descriptor as done.
fn sends(machine: &mut VmWithPciFunction<QemuClient>) -> bool {
    let ring = machine.dma_alloc(8 * SIZE, 128).unwrap().iova;
    let buffer = machine.dma_alloc(64, 64).unwrap().iova;
    machine.dma_write(buffer, &[0xff; 60]);
    let data = AdvancedDataDescriptor {
        address: buffer,
        length: 60,
        payload_length: 60,
        end_of_packet: true,
        report_status: true,
        ..AdvancedDataDescriptor::default()
    };
    machine.dma_write(ring, &data.emit());
    machine.write(r::GPIE, 1 << 4);
    machine.write(r::ivar(0), u32::from(ivar::VALID | VECTOR as u8) << 8);
    machine.write(r::EIMS, 1 << VECTOR);
    let block = tx_block(QueueIndex::new(0).unwrap());
    machine.write(block + tx::TXDCTL, 0);
    for (register, value) in
        [(tx::TDBAL, ring as u32), (tx::TDBAH, 0), (tx::TDLEN, 128), (tx::TDH, 0), (tx::TDT, 0)]
    {
        machine.write(block + register, value);
    }
    machine.write(block + tx::TXDCTL, 1 << 25);
    machine.write(r::TCTL, tctl::EN);
    machine.write(block + tx::TDT, 1);
    machine.wait_for(VECTOR, PATIENCE) && {
        let mut status = [0; 4];
        machine.dma_read(ring + 12, &mut status);
        u32::from_le_bytes(status) & DD != 0
    }
}

#[test]
fn guest_drives_the_pf_of_a_whole_port() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    let mut ids = [0; 4];
    machine.vmm.load(CONFIG, 0, &mut ids);
    assert_eq!(u32::from_le_bytes(ids), u32::from(DEVICE_PF) << 16 | u32::from(VENDOR));
    let words = [machine.read(r::ral(0)), machine.read(r::rah(0))];
    assert_eq!(MacAddress::from_words(words[0], words[1]).to_string(), "02:82:57:60:00:09");
    assert!(machine.read(r::STATUS) & 2 != 0, "the link is down");

    assert!(sends(&mut machine), "the frame was not sent");
    let port = live.port();
    assert!(port.vfs.is_empty() && port.link, "{port:?}");
    let pf = port.pf.unwrap();
    assert_eq!((pf.tx.packets, pf.tx.bytes, pf.drops.dma_faults), (1, 60, 0));
    assert_eq!(pf.peer.unwrap().pid, std::process::id().cast_signed());
    assert!(pf.interventions.interrupts > 0 && pf.hint.is_none());
}

/// The port's thread sleeps while the PHY negotiates, and wakes by itself: no access of the guest wakes it.
#[test]
fn end_of_a_phy_negotiation_interrupts_a_waiting_guest() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    machine.write(r::GPIE, 1 << 4);
    machine.write(r::IVAR_MISC, u32::from(ivar::VALID | VECTOR as u8) << 8);
    machine.write(r::EIMS, 1 << VECTOR);
    machine.read(r::ICR);
    machine.write(r::IMS, icr::LSC);
    let control = machine.read(r::CTRL);
    machine.write(r::CTRL, control | ctrl::PHY_RST);
    // The first notice is of the lost link. A slow machine may see both changes in one.
    loop {
        assert!(machine.wait_for(VECTOR, PATIENCE), "no notice of the link");
        machine.write(r::EICR, 1 << VECTOR);
        machine.read(r::ICR);
        if machine.read(r::STATUS) & status::LU != 0 {
            break;
        }
    }
}

#[test]
fn host_does_not_configure_a_pf_that_a_guest_drives() {
    // A driver sets CTRL_EXT.DRV_LOAD. VFRE and VFTE are all ones until a driver writes them.
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    assert_eq!(machine.read(r::CTRL_EXT) & 1 << 28, 0);
    assert_eq!([machine.read(r::VFRE), machine.read(r::VFTE)], [0xff; 2]);
}

#[test]
fn administrator_cannot_change_a_port_that_a_guest_drives() {
    let live = LiveHost::with(PF);
    for refused in [live.change_port(PortSettings::default()), live.reset_port()] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("a guest drives this port's PF"), "{error}");
    }
}

#[test]
fn pf_driven_by_a_guest_has_no_sr_iov_capability() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    let mut space = [0; 4096];
    machine.vmm.load(CONFIG, 0, &mut space);
    let header = |at: usize| u32::from_le_bytes(space[at..at + 4].try_into().unwrap());
    let ids: Vec<u32> =
        std::iter::successors(Some(0x100), |at| Some((header(*at) >> 20) as usize).filter(|at| *at > 0))
            .map(|at| header(at) & 0xffff)
            .collect();
    assert_eq!(ids, [0x0001, 0x0003, 0x000e], "AER, serial number, ARI");
}

#[test]
fn io_bar_accesses_the_registers_of_the_pf() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    machine.vmm.store(BAR2, 0, &r::STATUS.to_le_bytes());
    let mut word = [0; 4];
    machine.vmm.load(BAR2, 4, &mut word);
    assert_eq!(u32::from_le_bytes(word), machine.read(r::STATUS));
}

#[test]
fn vmm_reset_of_a_pf_equals_power_on() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    assert!(sends(&mut machine));
    machine.vmm.done(Client::reset).unwrap();
    assert_eq!(machine.read(r::TCTL) & tctl::EN, 0);
    assert_eq!(machine.config_word(4), 0, "memory space or bus mastering is on");
    machine.enable();
    assert!(sends(&mut machine));
}

#[test]
fn bus_mastering_of_a_pf_is_off_when_the_next_client_connects() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    assert!(sends(&mut machine));
    drop(machine);
    let mut next = VmWithPciFunction::new(QemuClient::greet(&live.pf_socket()), 10);
    assert_eq!(next.config_word(4) & 4, 0, "bus mastering survived the client");
    let mut next = {
        drop(next);
        boot(&live)
    };
    assert!(sends(&mut next));
}

/// Assigns an eventfd to the only interrupt vector of a type (a VFIO index), and returns the eventfd.
fn listen(machine: &mut VmWithPciFunction<QemuClient>, index: u32) -> EventFd {
    let eventfd = EventFd::new().unwrap();
    let copy = eventfd.as_fd().try_clone_to_owned().unwrap();
    machine.vmm.done(|client, out| client.assign_irqs(out, index, 0, vec![copy])).unwrap();
    eventfd
}

/// Switches MSI-X off in the PF's configuration space, as for a driver that does not use MSI-X.
fn without_msix(machine: &mut VmWithPciFunction<QemuClient>) {
    let control = machine.capability(0x11) + 2;
    machine.vmm.store(CONFIG, control, &[0, 0]);
}

fn fired(eventfd: &EventFd) -> bool {
    let mut poller = Poller::new().unwrap();
    poller.add(eventfd, 0, PollInterest::READ).unwrap();
    let fired = poller.wait(Some(PATIENCE)).unwrap().next().is_some();
    eventfd.drain();
    fired
}

#[test]
fn intx_pin_is_level_triggered_and_masked_when_it_fires() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    without_msix(&mut machine);
    let pin = listen(&mut machine, pci_irq::INTX);
    machine.write(r::IMS, icr::LSC);
    machine.write(r::ICS, icr::LSC);
    assert!(fired(&pin));
    let status = machine.read(r::STATUS);
    assert_eq!(pin.drain(), 0, "the pin was signalled while masked, status {status:#x}");

    machine.vmm.done(|client, out| client.unmask_irq(out, pci_irq::INTX, 0)).unwrap();
    assert_eq!(pin.drain(), 1, "the unmasked pin was not signalled, though ICR was not read");
    assert!(machine.read(r::ICR) & icr::LSC != 0);
    // The card lowers the pin at its next poll, and several messages may be served before that.
    eventually("the pin is lowered", || {
        machine.vmm.done(|client, out| client.unmask_irq(out, pci_irq::INTX, 0)).unwrap();
        pin.drain() == 0
    });
}

#[test]
fn msi_vector_fires_for_a_driver_that_uses_it() {
    let live = LiveHost::with(PF);
    let mut machine = boot(&live);
    without_msix(&mut machine);
    let msi = listen(&mut machine, pci_irq::MSI);
    let control = machine.capability(0x05) + 2;
    machine.vmm.store(CONFIG, control, &[1, 0]);
    machine.write(r::IMS, icr::LSC);
    machine.write(r::ICS, icr::LSC);
    assert!(fired(&msi));
}
