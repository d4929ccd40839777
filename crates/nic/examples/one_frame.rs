//! Sends one frame from VF 0 to VF 1 through the 82576: `cargo run -p softiov-nic --example one_frame`

use i82576::bits::{dctl, dtxswc, mrqc, rctl, tctl, vmolr};
use i82576::descriptor::{rx::PostedRxDescriptor, tx::AdvancedDataDescriptor};
use i82576::register::{self as r, rx, tx, vf};
use i82576::{MacAddress, PoolIndex, Time, config::pf::SRIOV};
use nic::{Nic, NicConfig, PollBudget, UnpluggedWire};
use pcie::Function::{self, Pf, Vf};
use pcie::{Bus, ConfigAccess, DmaFault, Iova, capability::sriov, config::offset};

const TX_RING: Iova = 0x1000;
const RX_RING: Iova = 0x2000;
const BUFFER: Iova = 0x4000;

/// Memory of two guests. A VF reaches the memory of its own guest only.
struct GuestMemory([Vec<u8>; 2]);

impl GuestMemory {
    fn bytes(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
        let memory = function.vf().and_then(|vf| self.0.get_mut(usize::from(vf.get())));
        let bytes = memory.and_then(|memory| memory.get_mut(iova as usize..)?.get_mut(..length));
        bytes.ok_or(DmaFault { function, iova })
    }
}

impl Bus for GuestMemory {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.bytes(function, iova, into.len()).map(|bytes| into.copy_from_slice(bytes))
    }
    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.bytes(function, iova, from.len()).map(|bytes| bytes.copy_from_slice(from))
    }
    fn msix(&mut self, function: Function, vector: u16) {
        println!("{function} is interrupted by vector {vector}");
    }
}

fn main() -> Result<(), DmaFault> {
    let mac = |n| MacAddress([2, 0, 0, 0, 0, n]);
    let mut nic = Nic::new(NicConfig { mac: mac(255), iov: true, loopback: None });
    // Software enables the functions: two VFs, and each function's memory requests.
    nic.config_write(Pf, SRIOV + sriov::NUM_VFS, 2, 2);
    nic.config_write(Pf, SRIOV + sriov::CONTROL, 2, (sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY).into());
    for function in [Pf, Vf(0), Vf(1)] {
        nic.config_write(function, offset::COMMAND, 2, offset::COMMAND_BUS_MASTER.into());
    }
    // The PF's driver: the switch between the VFs, and VF 1's address.
    let (low, high) = mac(1).to_words();
    let pf = [(r::MRQC, mrqc::VMDQ), (r::DTXSWC, dtxswc::LOOPBACK_EN), (r::VFRE, 3), (r::VFTE, 3)];
    let pools = [(r::RCTL, rctl::EN), (r::TCTL, tctl::EN), (r::vmolr(PoolIndex::of_field(1)), vmolr::AUPE)];
    let address = [(r::ral(1), low), (r::rah(1), high | 1 << 31 | 1 << 19)];
    // The VFs' drivers: VF 0 has a ring to send, VF 1 a ring to receive that interrupts by vector 1.
    let sender = [(tx::TDBAL, TX_RING as u32), (tx::TDLEN, 128), (tx::TXDCTL, dctl::ENABLE)];
    let receiver = [(rx::RDBAL, RX_RING as u32), (rx::RDLEN, 128), (rx::RXDCTL, dctl::ENABLE)];
    let vector = [(vf::VTIVAR, 0x81), (vf::VTEIMS, 1 << 1)];
    let of = |function, block, registers: &[(u32, u32)]| {
        registers.iter().map(move |&(at, value)| (function, block + at, value)).collect::<Vec<_>>()
    };
    let pf = of(Pf, 0, &[&pf[..], &pools, &address].concat());
    let vfs = [of(Vf(0), vf::TX_BLOCK, &sender), of(Vf(1), vf::RX_BLOCK, &receiver), of(Vf(1), 0, &vector)];
    for (function, register, value) in pf.into_iter().chain(vfs.concat()) {
        nic.write(function, register, value, Time::ZERO);
    }
    // VF 1 posts a buffer. VF 0 sends a frame: addresses, type, payload.
    let mut memory = GuestMemory([vec![0; 0x8000], vec![0; 0x8000]]);
    memory.dma_write(Vf(1), RX_RING, &PostedRxDescriptor { packet: BUFFER, header: 0 }.emit())?;
    nic.write(Vf(1), vf::RX_BLOCK + rx::RDT, 1, Time::ZERO);
    let frame =
        [&mac(1).0[..], &mac(0).0, &[0x88, 0xb5], b"A frame from VF 0 to VF 1 through the card."].concat();
    let (address, length) = (BUFFER, frame.len() as u16);
    let report = AdvancedDataDescriptor { address, length, end_of_packet: true, ..Default::default() };
    let descriptor = AdvancedDataDescriptor { payload_length: length.into(), ..report };
    memory.dma_write(Vf(0), BUFFER, &frame)?;
    memory.dma_write(Vf(0), TX_RING, &descriptor.emit())?;
    nic.write(Vf(0), vf::TX_BLOCK + tx::TDT, 1, Time::ZERO);
    while nic.poll(Time::ZERO, PollBudget::default(), &mut memory, &mut UnpluggedWire).more {}

    let received = memory.bytes(Vf(1), BUFFER, frame.len())?;
    assert_eq!(received, frame);
    println!("VF 1 received: {}", String::from_utf8_lossy(&received[14..]));
    Ok(())
}

#[test]
fn frame_reaches_the_other_vf() -> Result<(), DmaFault> {
    main()
}
