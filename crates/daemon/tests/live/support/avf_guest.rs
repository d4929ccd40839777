//! Guest with an AVF driver on a VF of a live host.

use super::live::LiveHost;
use super::machine::VmWithPciFunction;
use super::qemu::{self, QemuClient};
use driver::avf::vf::AvfDriver;
use i82576::MacAddress;

/// Machine of a guest, and the AVF driver that has enabled its VF.
pub(crate) struct AvfGuest {
    pub(crate) machine: VmWithPciFunction<QemuClient>,
    pub(crate) driver: AvfDriver,
}

impl AvfGuest {
    pub(crate) fn boot(live: &LiveHost, vf: u8) -> Self {
        let mut machine = qemu::boot_as(&live.socket(vf), qemu::AVF, qemu::share);
        let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, vf])).unwrap();
        driver.start(&mut machine).unwrap();
        Self { machine, driver }
    }
}
