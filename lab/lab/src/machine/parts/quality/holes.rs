//! Driver virtualization holes: registers whose value reveals a device's physical location (bus, function or
//! address). A guest sees its device at another location, so a driver that uses such registers fails. An
//! audit finds the registers that change only with the location; a trap on their page hides them.

/// Location of a device: base address and function number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLocation {
    /// Address in the device's first base address register (BAR).
    pub base: u64,
    /// Function number of the device.
    pub function: u8,
}

/// Modelled device, described by its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditedDevice {
    /// Graphics card with its frame-buffer location in register 0x148.
    RadeonLike,
    /// Network card of two functions with the function number in STATUS; the second function flips a bit of
    /// its MAC address.
    E1000eLike,
    /// Device without registers that reveal its location.
    Clean,
}

/// Bytes of a page of device registers, the unit in which a guest's accesses trap.
const PAGE: u32 = 0x1000;
/// Bytes of a device's registers that are audited.
pub const SPACE: u32 = 0x6000;

impl AuditedDevice {
    /// Returns the value of the register at `offset`, for a device at this location.
    #[must_use]
    pub fn read(self, location: DeviceLocation, offset: u32) -> u32 {
        let function = u32::from(location.function);
        match (self, offset) {
            (AuditedDevice::RadeonLike, 0x148) => {
                let first = (location.base >> 16) as u32 & 0xffff;
                first | ((first + 0xff) & 0xffff) << 16
            }
            (AuditedDevice::E1000eLike, 0x8) => 0x8_0080 | (function & 3) << 2,
            // RAL and RAH of the first address: the lowest bit of its last byte is the function number.
            (AuditedDevice::E1000eLike, 0x5400) => 0x4433_2202,
            (AuditedDevice::E1000eLike, 0x5404) => 0x8000_6654 ^ (function & 1) << 8,
            _ => offset.wrapping_mul(0x9e37_79b9) >> 7,
        }
    }
}

/// Returns the value that a guest reads: on a page that traps, the value at the location that the guest sees.
#[must_use]
pub fn read(
    device: AuditedDevice,
    host: DeviceLocation,
    guest: DeviceLocation,
    traps: &[u32],
    offset: u32,
) -> u32 {
    let location = if traps.contains(&(offset / PAGE)) { guest } else { host };
    device.read(location, offset)
}

/// Returns the offsets of the registers whose value differs between the device's locations.
#[must_use]
pub fn audit(device: AuditedDevice, locations: &[DeviceLocation]) -> Vec<u32> {
    let tells = |offset: &u32| {
        locations.windows(2).any(|pair| device.read(pair[0], *offset) != device.read(pair[1], *offset))
    };
    (0..SPACE).step_by(4).filter(tells).collect()
}

/// Returns the register pages that have to trap to hide the registers `holes`.
#[must_use]
pub fn pages(holes: &[u32]) -> Vec<u32> {
    let mut pages: Vec<u32> = holes.iter().map(|offset| offset / PAGE).collect();
    pages.dedup();
    pages
}

/// Three device locations, no two with an equal base address or function number.
pub const LOCATIONS: [DeviceLocation; 3] = [
    DeviceLocation { base: 0xd000_0000, function: 0 },
    DeviceLocation { base: 0xe000_0000, function: 1 },
    DeviceLocation { base: 0xf000_0000, function: 2 },
];

/// Returns the number of a device's location-revealing registers, and of those hidden from a guest that sees
/// another location.
#[must_use]
pub fn found_and_closed(device: AuditedDevice, trap: bool) -> (usize, usize) {
    let holes = audit(device, &LOCATIONS);
    let traps = if trap { pages(&holes) } else { Vec::new() };
    let [guest, host, _] = LOCATIONS;
    let hidden = |offset: &&u32| read(device, host, guest, &traps, **offset) == device.read(guest, **offset);
    // Without trapping no hole counts as closed, even if the values happen to be equal.
    let closed = if trap { holes.iter().filter(hidden).count() } else { 0 };
    (holes.len(), closed)
}

#[cfg(test)]
mod tests {
    use super::{AuditedDevice, LOCATIONS, SPACE, audit, found_and_closed, pages, read};

    #[test]
    fn register_audit_finds_registers_that_hold_a_bar_address() {
        assert_eq!(audit(AuditedDevice::RadeonLike, &LOCATIONS), [0x148]);
        assert_eq!(audit(AuditedDevice::E1000eLike, &LOCATIONS), [0x8, 0x5404]);
        assert!(audit(AuditedDevice::Clean, &LOCATIONS).is_empty());
        assert!(
            audit(AuditedDevice::RadeonLike, &LOCATIONS[..1]).is_empty(),
            "one location reveals no register"
        );
    }

    #[test]
    fn trapping_audited_pages_gives_the_guest_its_own_bar_address() {
        let [guest, host, _] = LOCATIONS;
        for device in [AuditedDevice::RadeonLike, AuditedDevice::E1000eLike, AuditedDevice::Clean] {
            let traps = pages(&audit(device, &LOCATIONS));
            for offset in (0..SPACE).step_by(4) {
                assert_eq!(read(device, host, guest, &traps, offset), device.read(guest, offset));
            }
        }
    }

    #[test]
    fn guest_reads_the_hosts_bar_address_unless_config_is_trapped() {
        for (device, holes) in
            [(AuditedDevice::RadeonLike, 1), (AuditedDevice::E1000eLike, 2), (AuditedDevice::Clean, 0)]
        {
            assert_eq!(found_and_closed(device, true), (holes, holes));
            assert_eq!(found_and_closed(device, false), (holes, 0));
        }
    }
}
