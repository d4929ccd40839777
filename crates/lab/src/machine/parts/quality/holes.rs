//! Registers whose value tells a driver where its device really is: on which bus, as which function, at which address.
//! A guest sees its device elsewhere, so a driver that believes them goes wrong. An audit finds them: registers that
//! change when only the place does. A page that traps hides them. Left out: what a driver does with what it believes.

/// Where a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its first base address.
    pub base: u64,
    /// Its function's number.
    pub function: u8,
}

/// A device, by its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A graphics card that tells where its frame buffer is (register 0x148).
    RadeonLike,
    /// A network card of two functions that tells which it is (STATUS), and whose second function flips a bit of its
    /// address.
    E1000eLike,
    /// A device that tells nothing.
    Clean,
}

/// Registers of a page.
const PAGE: u32 = 0x1000;
/// Bytes of registers that are audited.
pub const SPACE: u32 = 0x6000;

impl Device {
    /// What a register reads at a place.
    #[must_use]
    pub fn read(self, place: Place, offset: u32) -> u32 {
        let function = u32::from(place.function);
        match (self, offset) {
            (Device::RadeonLike, 0x148) => {
                let first = (place.base >> 16) as u32 & 0xffff;
                first | ((first + 0xff) & 0xffff) << 16
            }
            (Device::E1000eLike, 0x8) => 0x8_0080 | (function & 3) << 2,
            // RAL and RAH of the first address: its last byte's lowest bit is the function's.
            (Device::E1000eLike, 0x5400) => 0x4433_2202,
            (Device::E1000eLike, 0x5404) => 0x8000_6654 ^ (function & 1) << 8,
            _ => offset.wrapping_mul(0x9e37_79b9) >> 7,
        }
    }
}

/// What a guest reads: of a page that traps, what the device would say where the guest sees it.
#[must_use]
pub fn read(device: Device, host: Place, guest: Place, traps: &[u32], offset: u32) -> u32 {
    let place = if traps.contains(&(offset / PAGE)) { guest } else { host };
    device.read(place, offset)
}

/// Registers that change when only the device's place does.
#[must_use]
pub fn audit(device: Device, places: &[Place]) -> Vec<u32> {
    let tells = |offset: &u32| {
        places.windows(2).any(|pair| device.read(pair[0], *offset) != device.read(pair[1], *offset))
    };
    (0..SPACE).step_by(4).filter(tells).collect()
}

/// Pages to be trapped for registers.
#[must_use]
pub fn pages(holes: &[u32]) -> Vec<u32> {
    let mut pages: Vec<u32> = holes.iter().map(|offset| offset / PAGE).collect();
    pages.dedup();
    pages
}

/// Places that differ in everything.
pub const PLACES: [Place; 3] = [
    Place { base: 0xd000_0000, function: 0 },
    Place { base: 0xe000_0000, function: 1 },
    Place { base: 0xf000_0000, function: 2 },
];

/// How many holes a device has, and how many of them a guest that sees its device at another place does not fall into.
#[must_use]
pub fn found_and_closed(device: Device, trap: bool) -> (usize, usize) {
    let holes = audit(device, &PLACES);
    let traps = if trap { pages(&holes) } else { Vec::new() };
    let [guest, host, _] = PLACES;
    let hidden = |offset: &&u32| read(device, host, guest, &traps, **offset) == device.read(guest, **offset);
    // A hole that happens to tell the same at both places is not closed by luck.
    let closed = if trap { holes.iter().filter(hidden).count() } else { 0 };
    (holes.len(), closed)
}

#[cfg(test)]
mod tests {
    use super::{Device, PLACES, SPACE, audit, found_and_closed, pages, read};

    #[test]
    fn an_audit_finds_what_tells_the_place_and_nothing_else() {
        assert_eq!(audit(Device::RadeonLike, &PLACES), [0x148]);
        assert_eq!(audit(Device::E1000eLike, &PLACES), [0x8, 0x5404]);
        assert!(audit(Device::Clean, &PLACES).is_empty());
        assert!(audit(Device::RadeonLike, &PLACES[..1]).is_empty(), "one place tells nothing");
    }

    #[test]
    fn a_page_that_traps_hides_the_place_and_changes_no_other_register() {
        let [guest, host, _] = PLACES;
        for device in [Device::RadeonLike, Device::E1000eLike, Device::Clean] {
            let traps = pages(&audit(device, &PLACES));
            for offset in (0..SPACE).step_by(4) {
                assert_eq!(read(device, host, guest, &traps, offset), device.read(guest, offset));
            }
        }
    }

    #[test]
    fn holes_are_closed_by_trapping_alone() {
        for (device, holes) in [(Device::RadeonLike, 1), (Device::E1000eLike, 2), (Device::Clean, 0)] {
            assert_eq!(found_and_closed(device, true), (holes, holes));
            assert_eq!(found_and_closed(device, false), (holes, 0));
        }
    }
}
