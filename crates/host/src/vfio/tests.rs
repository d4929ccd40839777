//! Tests VFIO without a device: addresses, parsing of sysfs, and the remedy of each error.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::{
    InvalidPciAddress, PciAddress, PciIds, PciSysfs, SysfsFunction, VfToken, VfioError, VfioFunction,
};

const PF: &str = "0000:01:00.0";
const VF: &str = "0000:01:10.0";

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

/// Creates a folder like sysfs with a PF of an 82576, bound to `driver`, in IOMMU group 7.
fn sysfs(driver: Option<&str>) -> (TempDir, PciSysfs) {
    let folder = tempfile::tempdir().unwrap();
    let pf = folder.path().join("bus/pci/devices").join(PF);
    let group = folder.path().join("kernel/iommu_groups/7");
    fs::create_dir_all(&pf).unwrap();
    fs::create_dir_all(group.join("devices").join(PF)).unwrap();
    fs::create_dir_all(group.join("devices").join("0000:01:00.1")).unwrap();
    fs::write(pf.join("vendor"), "0x8086\n").unwrap();
    fs::write(pf.join("device"), "0x10c9\n").unwrap();
    symlink(&group, pf.join("iommu_group")).unwrap();
    if let Some(driver) = driver {
        symlink(folder.path().join("bus/pci/drivers").join(driver), pf.join("driver")).unwrap();
    }
    let pci = PciSysfs::at(folder.path());
    (folder, pci)
}

#[test]
fn printed_pci_address_parses_to_itself() {
    for text in ["0000:01:10.0", "10000:ff:1f.7"] {
        assert_eq!(address(text).to_string(), text);
    }
    assert_eq!(address("01:10.2"), address("0000:01:10.2"));
}

#[test]
fn invalid_pci_address_is_refused() {
    for text in ["", "01:10", "0000:01:10.8", "0000:01:20.0", "0000:100:00.0", "+1:00.0", "a:b:c:d.0", "eth0"]
    {
        assert_eq!(text.parse::<PciAddress>(), Err(InvalidPciAddress), "{text}");
    }
}

#[test]
fn pci_ids_and_driver_are_read_from_sysfs() {
    let (_folder, pci) = sysfs(Some("igb"));
    assert_eq!(pci.ids(address(PF)).unwrap(), PciIds { vendor: 0x8086, device: 0x10c9 });
    assert_eq!(pci.driver(address(PF)).as_deref(), Some("igb"));
    assert!(matches!(pci.ids(address(VF)), Err(VfioError::NoSuchFunction(_))));
}

#[test]
fn bar_addresses_are_read_from_sysfs() {
    let (folder, pci) = sysfs(Some("vfio-pci"));
    let none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    let lines =
        ["0x00000000fe800000 0x00000000fe81ffff 0x0000000000140204\n", none, "0x4000 0x401f 0x101\n", none];
    fs::write(folder.path().join("bus/pci/devices").join(PF).join("resource"), lines.concat()).unwrap();
    let bars = pci.bars(address(PF)).unwrap();
    assert_eq!(bars, [Some(0xfe80_0000), None, Some(0x4000), None, None, None]);
    assert!(matches!(pci.bars(address(VF)), Err(VfioError::Sysfs { .. })));
}

#[test]
fn vf_and_pf_of_a_pci_function_are_read_from_sysfs() {
    let (folder, pci) = sysfs(Some("vfio-pci"));
    let devices = folder.path().join("bus/pci/devices");
    fs::create_dir(devices.join(VF)).unwrap();
    symlink(devices.join(VF), devices.join(PF).join("virtfn0")).unwrap();
    symlink(devices.join(PF), devices.join(VF).join("physfn")).unwrap();
    assert_eq!(pci.virtual_of(address(PF)), [address(VF)]);
    assert_eq!(pci.physical_of(address(VF)), Some(address(PF)));
    assert_eq!(pci.physical_of(address(PF)), None);
}

#[test]
fn iommu_group_is_returned_only_for_functions_of_vfio_pci() {
    let (_folder, pci) = sysfs(Some("vfio-pci"));
    assert_eq!(pci.vfio_group(address(PF)).unwrap(), 7);
    assert_eq!(pci.group_members(address(PF)), "0000:01:00.0 (vfio-pci), 0000:01:00.1 (no driver)");
}

#[test]
fn function_bound_to_another_driver_is_refused_with_a_remedy() {
    for (driver, name) in [(Some("igb"), "igb"), (None, "no driver")] {
        let (_folder, pci) = sysfs(driver);
        let error = VfioFunction::open(&pci, address(PF), None).unwrap_err().to_string();
        assert!(error.contains(&format!("bound to {name}, not to vfio-pci")), "{error}");
        assert!(error.contains("driver_override"), "{error}");
    }
}

#[test]
fn pci_function_without_an_iommu_is_refused_with_a_remedy() {
    let (folder, pci) = sysfs(Some("vfio-pci"));
    let group = folder.path().join("bus/pci/devices").join(PF).join("iommu_group");
    fs::write(group.join("name"), "vfio-noiommu\n").unwrap();
    let error = VfioFunction::open(&pci, address(PF), None).unwrap_err();
    assert!(matches!(error, VfioError::NoIommuGroup(_)), "{error}");
    fs::remove_file(group).unwrap();
    let error = VfioFunction::open(&pci, address(PF), None).unwrap_err().to_string();
    assert!(error.contains("intel_iommu=on"), "{error}");
}

#[test]
fn vf_count_is_written_to_sriov_numvfs() {
    let (folder, pci) = sysfs(Some("vfio-pci"));
    let file = folder.path().join("bus/pci/devices").join(PF).join("sriov_numvfs");
    fs::write(&file, "0").unwrap();
    pci.set_virtual_functions(address(PF), 2).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "2");
    fs::remove_file(&file).unwrap();
    let error = pci.set_virtual_functions(address(PF), 2).unwrap_err();
    assert!(matches!(error, VfioError::Unexpected { .. }), "{error}");
    // A dangling link returns the same error as vfio-pci without its parameter.
    symlink("nowhere/at/all", &file).unwrap();
    let error = pci.set_virtual_functions(address(PF), 2).unwrap_err().to_string();
    assert!(error.contains("enable_sriov"), "{error}");
}

#[test]
fn random_vf_token_is_a_uuid() {
    let token = VfToken::random().unwrap();
    let name = super::function::device_name(address(VF), Some(&token)).into_string().unwrap();
    let uuid = name.strip_prefix("0000:01:10.0 vf_token=").unwrap();
    assert_eq!((uuid.len(), uuid.matches('-').count()), (36, 4));
    assert_ne!(token, VfToken::random().unwrap());
}

/// Adds the files of a function without a driver or an IOMMU to a folder like sysfs.
fn plain_function() -> (TempDir, PciSysfs) {
    let (folder, pci) = sysfs(None);
    let function = folder.path().join("bus/pci/devices").join(PF);
    fs::remove_file(function.join("iommu_group")).unwrap();
    fs::write(function.join("config"), [0; 64]).unwrap();
    fs::write(function.join("reset"), "").unwrap();
    fs::write(function.join("resource0"), [0x5a; 4096]).unwrap();
    (folder, pci)
}

#[test]
fn function_without_vfio_is_used_by_its_sysfs_files() {
    let (folder, pci) = plain_function();
    let function = SysfsFunction::open(&pci, address(PF)).unwrap();
    function.enable().unwrap();
    let mut command = [0; 2];
    function.config(4, &mut command).unwrap();
    assert_eq!(u16::from_le_bytes(command), 0x0406, "memory space, bus master, no interrupt pin");
    function.disable_bus_master().unwrap();
    function.config(4, &mut command).unwrap();
    assert_eq!(u16::from_le_bytes(command), 0x0402, "no DMA, and the rest as before");
    function.reset().unwrap();
    let reset = folder.path().join("bus/pci/devices").join(PF).join("reset");
    assert_eq!(fs::read_to_string(reset).unwrap(), "1");
    assert_eq!(function.registers(0).unwrap().read(4), 0x5a5a_5a5a);
    assert!(matches!(function.registers(1), Err(VfioError::Open { .. })));
}

#[test]
fn function_behind_an_iommu_or_with_a_driver_is_refused() {
    let (_folder, pci) = sysfs(None);
    let error = SysfsFunction::open(&pci, address(PF)).unwrap_err().to_string();
    assert!(error.contains("without intel_iommu=on"), "{error}");
    let (folder, pci) = plain_function();
    let drivers = folder.path().join("bus/pci/drivers/igbvf");
    fs::create_dir_all(&drivers).unwrap();
    symlink(&drivers, folder.path().join("bus/pci/devices").join(PF).join("driver")).unwrap();
    let error = SysfsFunction::open(&pci, address(PF)).unwrap_err().to_string();
    assert!(error.contains("unbind it first"), "{error}");
    pci.unbind(address(PF)).unwrap();
    assert_eq!(fs::read_to_string(drivers.join("unbind")).unwrap(), PF);
    pci.bind(address(PF), "igbvf").unwrap();
    assert_eq!(fs::read_to_string(drivers.join("bind")).unwrap(), PF);
}

#[test]
fn driver_override_is_set_read_and_cleared() {
    let (folder, pci) = plain_function();
    let file = folder.path().join("bus/pci/devices").join(PF).join("driver_override");
    fs::write(&file, "(null)\n").unwrap();
    assert_eq!(pci.driver_override(address(PF)).unwrap(), None);
    pci.set_driver_override(address(PF), Some("vfio-pci")).unwrap();
    assert_eq!(pci.driver_override(address(PF)).unwrap().as_deref(), Some("vfio-pci"));
    pci.set_driver_override(address(PF), None).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "\n", "a line without a name clears it");
}
