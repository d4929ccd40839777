//! Drives a PF behind VFIO by our PF driver, with VFs enabled. A thread runs the driver again and again, as the live
//! host does, so that requests of VFs are answered.
//!
//! The PF has no data path of its own, since its driver has none.

use crate::DriverStartError;
use crate::hal::VfioPfHal;
use driver::Pf;
use host::vfio::{PciAddress, PciSysfs, VfToken};
use i82576::{MacAddress, VfIndex};
use policy::VfPolicy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two runs of the PF driver by its thread, and so the maximum delay of a VF's request.
const BETWEEN_VISITS: Duration = Duration::from_micros(200);

/// PF driver with the registers that it drives.
#[derive(Debug)]
pub struct PfAndRegisters {
    /// Driver of the PF.
    pub pf: Pf,
    /// Registers of the PF.
    pub hal: VfioPfHal,
}

/// PF that this process drives. Dropping it removes its VFs, which must have been closed before.
#[derive(Debug)]
pub struct DrivenPf {
    pci: PciSysfs,
    address: PciAddress,
    token: VfToken,
    side: Arc<Mutex<PfAndRegisters>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DrivenPf {
    /// Takes the PF from Linux, starts the driver, and has the kernel create `vfs` VFs, each with an address.
    ///
    /// # Errors
    /// [`DriverStartError`].
    pub fn open(pci: &PciSysfs, address: PciAddress, vfs: u8) -> Result<Self, DriverStartError> {
        if !pci.virtual_of(address).is_empty() {
            return Err(DriverStartError::HasVirtualFunctions(address));
        }
        let token = VfToken::random()?;
        let mut hal = VfioPfHal::open(pci, address, &token)?;
        let mut pf = Pf::probe(&mut hal)?;
        for vf in VfIndex::all().filter(|vf| vf.get() < vfs) {
            let policy = VfPolicy { mac: Some(vf_mac(vf)), ..VfPolicy::default() };
            pf.set_policy(&mut hal, vf, policy)?;
        }
        let side = Arc::new(Mutex::new(PfAndRegisters { pf, hal }));
        let stop = Arc::new(AtomicBool::new(false));
        let mut port = Self { pci: pci.clone(), address, token, side, stop, thread: None };
        pci.set_virtual_functions(address, vfs)?;
        port.lock().enable(vfs)?;
        let (side, stop) = (Arc::clone(&port.side), Arc::clone(&port.stop));
        port.thread = Some(
            std::thread::Builder::new().name("pf".into()).spawn(move || visit_until_stopped(&side, &stop))?,
        );
        let found = port.virtual_functions().len();
        if found == usize::from(vfs) {
            Ok(port)
        } else {
            Err(DriverStartError::VirtualFunctions { address, wanted: vfs, found })
        }
    }

    /// Returns the PCI address of the PF.
    #[must_use]
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// Returns the PCI addresses of the PF's VFs, in order.
    #[must_use]
    pub fn virtual_functions(&self) -> Vec<PciAddress> {
        self.pci.virtual_of(self.address)
    }

    /// Returns the VFIO token that the PF's VFs must be opened with.
    #[must_use]
    pub fn token(&self) -> &VfToken {
        &self.token
    }

    /// Locks the PF driver. The driver's thread does not run the driver while the guard is held.
    pub fn lock(&self) -> MutexGuard<'_, PfAndRegisters> {
        // A panic of the visiting thread has been reported; the registers remain valid.
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PfAndRegisters {
    fn enable(&mut self, vfs: u8) -> Result<(), DriverStartError> {
        Ok(self.pf.enable_vfs(&mut self.hal, vfs)?)
    }
}

/// Returns the Ethernet address that our PF driver gives a VF: locally administered, and the same in every run.
#[must_use]
pub fn vf_mac(vf: VfIndex) -> MacAddress {
    MacAddress([0x02, 0x82, 0x57, 0x06, 0x00, vf.get()])
}

fn visit_until_stopped(side: &Mutex<PfAndRegisters>, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        {
            let mut side = side.lock().unwrap_or_else(PoisonError::into_inner);
            let PfAndRegisters { pf, hal } = &mut *side;
            pf.visit(hal);
        }
        std::thread::sleep(BETWEEN_VISITS);
    }
}

impl Drop for DrivenPf {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported by the panic hook.
            let _ = thread.join();
        }
        {
            let mut side = self.lock();
            let PfAndRegisters { pf, hal } = &mut *side;
            pf.remove(hal);
        }
        // The VFs are removed before the PF is closed: the kernel would reset it under its VFs. A failure here has
        // no one to report to.
        let _ = self.pci.set_virtual_functions(self.address, 0);
    }
}
