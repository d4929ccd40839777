//! Checks of a device after a case: configuration space, and whether a well-behaved driver can use the device.

use super::bus::AttackedFunction;
use crate::device::AttackedDevice;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};

/// Timeout of a frame's completion. A check of liveness, not of speed.
const FRAME: Duration = Duration::from_secs(5);
/// Pause between two looks at a frame's completion, and between two attempts to use the device.
const LOOK: Duration = Duration::from_millis(1);
const BETWEEN: Duration = Duration::from_millis(100);
/// Ethernet frame of a well-behaved driver: to a station that does not exist, of a local experimental type, padded.
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0xff, 0xfe];
const TYPE_AND_PADDING: [u8; 48] = {
    let mut bytes = [0; 48];
    bytes[0] = 0x88;
    bytes[1] = 0xb5;
    bytes
};
/// Bytes of configuration space that record errors of the bus, which a case may cause: status (PCI 3.0 6.2.3).
const STATUS: std::ops::Range<usize> = 6..8;
/// Capability of PCI Express, and the offset of its device status, which records errors too (PCI Express base 7.5.3.5).
const PCI_EXPRESS: u8 = 0x10;
const DEVICE_STATUS: usize = 10;
const FIRST_CAPABILITY: usize = 0x34;

/// Lets a well-behaved driver use the device until it completes a frame, with a reset before each attempt. Returns the time
/// that it took.
///
/// # Errors
/// The last attempt's error, after `patience`.
pub fn check_usable<F: AttackedFunction>(
    function: &mut F,
    device: AttackedDevice,
    patience: Duration,
) -> Result<Duration> {
    let begun = Instant::now();
    loop {
        let attempted = attempt(function, device);
        let passed = begun.elapsed();
        match attempted {
            Ok(()) if passed <= patience => return Ok(passed),
            Ok(()) => bail!("the device works only after {passed:?}, and not within {patience:?}"),
            Err(error) if passed > patience => {
                return Err(error.context(format!("the device does not work within {patience:?}")));
            }
            Err(error) if function.is_interrupted() => {
                return Err(error.context("a signal interrupted the run"));
            }
            Err(_) => function.wait(BETWEEN),
        }
    }
}

fn attempt<F: AttackedFunction>(function: &mut F, device: AttackedDevice) -> Result<()> {
    function.renew()?;
    check_answers(function, device)?;
    let mut driver = device.start_driver(function)?;
    let frame = [&DESTINATION[..], &driver.mac(), &TYPE_AND_PADDING].concat();
    driver.send(function, &frame, &Default::default()).context("the driver cannot send a frame")?;
    let begun = Instant::now();
    while driver.is_sending(function) {
        ensure!(begun.elapsed() < FRAME, "the device does not complete a frame within {FRAME:?}");
        function.wait(LOOK);
    }
    driver.stop(function);
    Ok(())
}

/// Checks that the device's status register can be read.
///
/// # Errors
/// The register reads as all ones, as for a removed device.
pub fn check_answers<F: AttackedFunction>(function: &mut F, device: AttackedDevice) -> Result<()> {
    let register = device.status_register();
    ensure!(function.read(register) != u32::MAX, "the status register {register:#x} reads as all ones");
    Ok(())
}

/// Describes the first byte that differs between two copies of configuration space, apart from recorded errors. Returns
/// `None` if there is no such byte.
#[must_use]
pub fn config_change(before: &[u8], after: &[u8]) -> Option<String> {
    let status = device_status(before);
    let differs = |at: &usize| {
        let records_errors =
            STATUS.contains(at) || status.is_some_and(|first| (first..first + 2).contains(at));
        !records_errors && before.get(*at) != after.get(*at)
    };
    let at = (0..before.len().max(after.len())).find(differs)?;
    let byte = |bytes: &[u8]| bytes.get(at).map_or("nothing".to_owned(), |byte| format!("{byte:#04x}"));
    Some(format!("byte {at:#x} of configuration space was {} and is {}", byte(before), byte(after)))
}

/// Returns the offset of the device status in the list of capabilities, if the list is sound.
fn device_status(config: &[u8]) -> Option<usize> {
    let mut at = usize::from(*config.get(FIRST_CAPABILITY)?);
    // A list has at most 48 capabilities of four bytes.
    for _ in 0..48 {
        match *config.get(at)? {
            PCI_EXPRESS => return Some(at + DEVICE_STATUS),
            _ => at = usize::from(*config.get(at + 1)?),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[0x34] = 0x70;
        bytes[0x70..0x72].copy_from_slice(&[0x11, 0xa0]);
        bytes[0xa0] = PCI_EXPRESS;
        bytes
    }

    #[test]
    fn recorded_bus_errors_are_no_change_of_configuration_space() {
        let before = config();
        let mut after = before.clone();
        after[7] = 0x20;
        after[0xaa] = 1;
        assert_eq!(config_change(&before, &after), None);
        after[0x72] = 0x80;
        let change = "byte 0x72 of configuration space was 0x00 and is 0x80";
        assert_eq!(config_change(&before, &after).as_deref(), Some(change));
    }

    #[test]
    fn circular_capability_list_has_no_device_status() {
        let mut bytes = config();
        bytes[0xa0] = 0x05;
        bytes[0xa1] = 0x70;
        assert_eq!(device_status(&bytes), None);
        assert_eq!(config_change(&bytes, &[]).as_deref().map(|text| text.contains("is nothing")), Some(true));
    }
}
