//! Register pages that a guest has mapped. While the host rests, each register there reads as by a message.

use super::super::thread::SimulatedThread;
use super::SimulatedGuest;
use avf::bits::dyn_ctl;
use avf::register as avf_register;
use driver::Hal;
use driver::any_vf::DeviceFamily;
use i82576::register::rx::RQDPC;
use i82576::register::vf;
use vfio_client::VfioUserHal;

/// Offset after the throttles of the three vectors of an 82576's VF.
const VTEITR_END: u32 = vf::VTEITR + 12;

/// Outcome of a comparison of mapped registers with the same registers by message.
#[derive(Debug, Default)]
pub(in super::super) struct ComparedPages {
    registers: u64,
    /// Offset, value in the page and value by message of the first register that differs.
    different: Option<(u32, u32, u32)>,
}

impl ComparedPages {
    /// Compares the registers that a VF's driver has mapped. All are loaded before the first message: the port publishes
    /// registers when it answers one.
    pub(in super::super) fn of(hal: &mut VfioUserHal<SimulatedThread>) -> Self {
        if !hal.is_mapped() {
            return Self::default();
        }
        let family = hal.family();
        let all = match family {
            DeviceFamily::I82576 => nic::doorbell::REGISTERS.as_slice(),
            DeviceFamily::Avf => avf_nic::doorbell::REGISTERS.as_slice(),
        };
        let offsets: Vec<u32> = all.iter().copied().filter(|offset| mask_of(family, *offset) != 0).collect();
        let loaded: Vec<u32> = offsets.iter().map(|offset| hal.read(*offset)).collect();
        let mut different = None;
        for (offset, loaded) in offsets.iter().zip(loaded) {
            let read = hal.read_by_message(*offset);
            if (loaded ^ read) & mask_of(family, *offset) != 0 {
                different = different.or(Some((*offset, loaded, read)));
            }
        }
        Self { registers: offsets.len() as u64, different }
    }
}

/// Returns the bits of a mapped register that a message reads as the page has them. None are compared of a register that a read
/// clears, nor of a clock.
fn mask_of(family: DeviceFamily, offset: u32) -> u32 {
    let controls = avf_register::VFINT_DYN_CTLN..avf_register::VFINT_DYN_CTLN + 0x40;
    match (family, offset) {
        (DeviceFamily::Avf, offset) if controls.contains(&offset) => !dyn_ctl::SEEN,
        (DeviceFamily::I82576, vf::VTEICR | vf::FRTIMER) => 0,
        // A message reads the counter of the running interval.
        (DeviceFamily::I82576, vf::VTEITR..VTEITR_END) => 0,
        (DeviceFamily::I82576, vf::RX_BLOCK..vf::TX_BLOCK) if offset % vf::QUEUE_STRIDE == RQDPC => 0,
        (DeviceFamily::I82576, vf::VTEICS | vf::VTEIMS | vf::VTEIMC) => !nic::doorbell::SEEN,
        _ => u32::MAX,
    }
}

impl SimulatedGuest {
    /// Checks that each register that the guest has mapped reads as by a message. Returns the number of registers.
    pub(in super::super) fn compare_pages(&mut self) -> Result<u64, String> {
        let deaths = self.place.deaths();
        let Some(function) = self.function.as_mut().filter(|_| !self.is_hostile) else { return Ok(0) };
        let ComparedPages { registers, different } = function.compare_pages();
        // A host that dies meanwhile has reset the registers.
        let different = different.filter(|_| self.place.deaths() == deaths);
        different.map_or(Ok(registers), |(offset, loaded, read)| {
            Err(self.fault(&format!(
                "loads {loaded:#x} from register {offset:#x}, which a message reads as {read:#x}"
            )))
        })
    }
}
