//! Takes the device from its kernel driver for a run, and gives it back, also after an error.

use super::tell;
use anyhow::{Context, Result, ensure};
use host::vfio::{PciAddress, PciSysfs};

/// Driver override during a run: no driver has this name, so none that udev loads binds the device.
const NO_DRIVER: &str = "attack-guest";

/// Device without a kernel driver. Dropping the value gives the device back to its driver.
#[derive(Debug)]
pub struct UnboundDevice<'a> {
    pci: &'a PciSysfs,
    device: PciAddress,
    driver: Option<String>,
    /// Driver override before the run.
    driver_override: Option<String>,
    is_given_back: bool,
}

impl<'a> UnboundDevice<'a> {
    /// Unbinds the device's driver, if `may_unbind` allows it, and keeps other drivers from the device.
    ///
    /// # Errors
    /// A driver holds the device and `may_unbind` is false; the device is a PF with VFs; the kernel refuses.
    pub fn take(pci: &'a PciSysfs, device: PciAddress, may_unbind: bool) -> Result<Self> {
        let vfs = pci.virtual_of(device).len();
        ensure!(
            vfs == 0,
            "device {device} has {vfs} VFs, which its driver removes at its end; remove them first: \
             echo 0 > /sys/bus/pci/devices/{device}/sriov_numvfs"
        );
        // A run that was killed has left its own override.
        let driver_override = pci.driver_override(device)?.filter(|name| name != NO_DRIVER);
        pci.set_driver_override(device, Some(NO_DRIVER))?;
        let mut this = Self { pci, device, driver: None, driver_override, is_given_back: false };
        if let Some(driver) = pci.driver(device) {
            ensure!(may_unbind, "driver {driver} holds device {device}; repeat with --yes to unbind it");
            tell(format_args!(
                "driver {driver} does not hold {device} during the run; to bind it if this program is killed:\n  \
                 cd /sys/bus/pci && echo > devices/{device}/driver_override && echo {device} > drivers_probe"
            ));
            pci.unbind(device)?;
            this.driver = Some(driver);
        }
        Ok(this)
    }

    /// Runs `attack`, which reports its results itself, and gives the device back: a device that the cases have broken may
    /// refuse its driver.
    ///
    /// # Errors
    /// Those of `attack`, and of the kernel if it refuses the driver.
    pub fn during<T>(mut self, attack: impl FnOnce() -> Result<T>) -> Result<T> {
        let attacked = attack();
        self.is_given_back = true;
        let bound = self.give_back();
        if let (Err(_), Err(error)) = (&attacked, &bound) {
            tell(format_args!("{error:#}"));
        }
        let value = attacked?;
        bound.map(|()| value)
    }

    fn give_back(&self) -> Result<()> {
        let Self { pci, device, .. } = self;
        pci.set_driver_override(*device, self.driver_override.as_deref())?;
        let Some(driver) = &self.driver else { return Ok(()) };
        pci.bind(*device, driver).with_context(|| {
            format!(
                "driver {driver} does not bind device {device} again; read `dmesg` for the driver's error"
            )
        })
    }
}

impl Drop for UnboundDevice<'_> {
    fn drop(&mut self) {
        if !self.is_given_back
            && let Err(error) = self.give_back()
        {
            tell(format_args!("{error:#}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const DEVICE: &str = "0000:00:04.0";

    /// Folder like sysfs with a device whose driver is igbvf.
    struct Machine {
        folder: TempDir,
        pci: PciSysfs,
    }

    impl Machine {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let pci = PciSysfs::at(folder.path());
            let this = Self { folder, pci };
            fs::create_dir_all(this.path("devices").join(DEVICE)).unwrap();
            fs::create_dir_all(this.path("drivers/igbvf")).unwrap();
            fs::write(this.override_file(), "(null)\n").unwrap();
            symlink(this.path("drivers/igbvf"), this.path("devices").join(DEVICE).join("driver")).unwrap();
            this
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join("bus/pci").join(name)
        }

        fn override_file(&self) -> PathBuf {
            self.path("devices").join(DEVICE).join("driver_override")
        }

        fn driver_override(&self) -> String {
            fs::read_to_string(self.override_file()).unwrap()
        }

        fn is_bound_again(&self) -> bool {
            fs::read_to_string(self.path("drivers/igbvf/bind")).is_ok_and(|text| text == DEVICE)
        }

        fn take(&self, may_unbind: bool) -> Result<UnboundDevice<'_>> {
            UnboundDevice::take(&self.pci, DEVICE.parse().unwrap(), may_unbind)
        }
    }

    #[test]
    fn no_driver_binds_the_device_during_a_run() {
        let machine = Machine::new();
        let unbound = machine.take(true).unwrap();
        assert_eq!(fs::read_to_string(machine.path("drivers/igbvf/unbind")).unwrap(), DEVICE);
        let during = unbound.during(|| Ok(machine.driver_override())).unwrap();
        assert_eq!((during.as_str(), machine.driver_override().as_str()), ("attack-guest\n", "\n"));
        assert!(machine.is_bound_again());
    }

    #[test]
    fn driver_is_bound_after_an_error_and_a_panic() {
        let machine = Machine::new();
        let attacked = machine.take(true).unwrap().during(|| -> Result<()> { anyhow::bail!("no frame") });
        assert_eq!(attacked.unwrap_err().to_string(), "no frame");
        assert!(machine.is_bound_again());
        let machine = Machine::new();
        let unbound = machine.take(true).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            unbound.during(|| -> Result<()> { panic!("the driver accesses no memory") })
        }));
        assert!(panicked.is_err() && machine.is_bound_again());
    }

    #[test]
    fn results_are_reported_before_a_driver_that_fails() {
        let machine = Machine::new();
        let unbound = machine.take(true).unwrap();
        fs::remove_dir_all(machine.path("drivers/igbvf")).unwrap();
        let mut is_reported = false;
        let attacked = unbound.during(|| {
            is_reported = true;
            Ok(())
        });
        let error = attacked.unwrap_err().to_string();
        assert!(is_reported && error.contains("igbvf does not bind device 0000:00:04.0"), "{error}");
    }

    #[test]
    fn error_of_the_run_precedes_that_of_the_driver() {
        let machine = Machine::new();
        let unbound = machine.take(true).unwrap();
        fs::remove_dir_all(machine.path("drivers/igbvf")).unwrap();
        let attacked = unbound.during(|| -> Result<()> { anyhow::bail!("no frame") });
        assert_eq!(attacked.unwrap_err().to_string(), "no frame");
    }

    #[test]
    fn bound_device_is_refused_without_permission() {
        let machine = Machine::new();
        let error = machine.take(false).unwrap_err().to_string();
        assert!(error.contains("repeat with --yes"), "{error}");
        assert_eq!(machine.driver_override(), "\n");
    }

    #[test]
    fn pf_with_vfs_is_refused_with_the_remedy() {
        let machine = Machine::new();
        let vf = machine.path("devices").join(DEVICE).join("virtfn0");
        symlink(machine.path("devices/0000:01:10.0"), vf).unwrap();
        let error = machine.take(true).unwrap_err().to_string();
        assert!(error.contains("has 1 VFs") && error.contains("sriov_numvfs"), "{error}");
    }
}
