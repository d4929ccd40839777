//! Tests which cases run on a device, and the results on a device that does not answer.

use super::*;
use crate::cases::GROUPS;
use crate::in_guest::bus::LongestAccess;
use crate::run::select;
use driver::any_vf::DeviceFamily;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use i82576::Time;

const VF: AttackedDevice = AttackedDevice::Vf(DeviceFamily::I82576);
const RUN: GuestRun<'_> = GuestRun {
    device: VF,
    limit: Duration::MAX,
    patience: Duration::ZERO,
    neighbour: None,
    memory_map: &MemoryMap::NOTHING,
};

/// Function whose registers all read as one value, and whose resets may fail.
#[derive(Debug)]
struct StubFunction {
    value: u32,
    resets: bool,
    is_interrupted: bool,
}

impl Hal for StubFunction {
    fn read(&mut self, _offset: u32) -> u32 {
        self.value
    }

    fn write(&mut self, _offset: u32, _value: u32) {}

    fn now(&self) -> Time {
        Time::from_nanos(0)
    }

    fn wait(&mut self, _time: Duration) {}
}

impl DmaHal for StubFunction {
    fn dma_alloc(&mut self, length: usize, _align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        Ok(DmaAllocation { iova: 0, length })
    }

    fn dma_read(&self, _iova: u64, into: &mut [u8]) {
        into.fill(0);
    }

    fn dma_write(&mut self, _iova: u64, _from: &[u8]) {}
}

impl AttackedFunction for StubFunction {
    fn renew(&mut self) -> Result<()> {
        anyhow::ensure!(self.resets, "the reset failed");
        Ok(())
    }

    fn config(&mut self) -> Result<Vec<u8>> {
        Ok(vec![0; 256])
    }

    fn take_longest_access(&mut self) -> LongestAccess {
        LongestAccess::default()
    }

    fn is_interrupted(&mut self) -> bool {
        self.is_interrupted
    }
}

fn run(function: &mut StubFunction) -> (Vec<GuestResult>, Vec<&'static str>) {
    let names = ["two-hundred-resets-by-register", "every-bit-of-ctrl"].map(String::from);
    let mut results = Vec::new();
    let not_run = RUN.run(function, &select(GROUPS, &names), |_| (), |result| results.push(result));
    (results, not_run)
}

#[test]
fn device_of_all_ones_is_silent_and_later_cases_do_not_run() {
    let (results, not_run) = run(&mut StubFunction { value: u32::MAX, resets: true, is_interrupted: false });
    let [result] = &results[..] else { panic!("{results:?}") };
    assert_eq!((result.case, result.result), ("two-hundred-resets-by-register", GuestVerdict::DeviceSilent));
    let detail = result.detail.as_deref().unwrap();
    assert!(detail.contains("the status register 0x8 reads as all ones"), "{detail}");
    assert_eq!(not_run, ["every-bit-of-ctrl"]);
}

#[test]
fn device_that_cannot_be_reset_is_silent_with_the_error() {
    let (results, _) = run(&mut StubFunction { value: 0, resets: false, is_interrupted: false });
    let detail = results[0].detail.as_deref().unwrap();
    assert!(detail.contains("the reset failed"), "{detail}");
    assert_eq!(results[0].result, GuestVerdict::DeviceSilent);
}

#[test]
fn interrupted_case_has_no_result() {
    let (results, not_run) = run(&mut StubFunction { value: 0, resets: true, is_interrupted: true });
    assert!(results.is_empty(), "{results:?}");
    assert_eq!(not_run, ["two-hundred-resets-by-register", "every-bit-of-ctrl"]);
}

#[test]
fn case_with_a_socket_attacks_address_does_not_apply() {
    let cases = select(GROUPS, &["frame-in-the-registers".to_owned()]);
    let [left_out] = &RUN.not_applicable(&cases)[..] else { panic!("the case applies") };
    assert!(left_out.reason.contains("another device's registers"), "{left_out:?}");
    assert!(RUN.steps(cases[0].1).is_none());
}

#[test]
fn requests_for_a_neighbours_address_need_a_neighbour() {
    let counted = |run: &GuestRun<'_>| {
        let all = select(GROUPS, &[]);
        all.iter().filter(|(_, case)| run.steps(case).is_some()).count()
    };
    for device in [VF, AttackedDevice::Vf(DeviceFamily::Avf)] {
        let alone = GuestRun { device, ..RUN };
        let with_neighbour = GuestRun { neighbour: Some([2, 0, 0, 0, 0, 2]), ..alone };
        assert_eq!(counted(&with_neighbour), counted(&alone) + 2, "{device:?}");
        let left_out = alone.not_applicable(&select(GROUPS, &[]));
        let without_neighbour = left_out.iter().filter(|case| case.reason == "it needs --neighbour");
        assert_eq!(without_neighbour.count(), 2, "{left_out:?}");
    }
}

#[test]
fn cases_of_other_families_and_of_sockets_do_not_run() {
    let runs = |name: &str| {
        let [(_, case)] = select(GROUPS, &[name.to_owned()])[..] else { panic!("no case {name}") };
        RUN.steps(case).is_some()
    };
    assert!(runs("transmit-buffer-outside-memory"));
    for other in ["avf-buffer-outside-memory", "window-cut-off-under-a-ring", "flood-of-resets"] {
        assert!(!runs(other), "{other}");
    }
}

#[test]
fn pf_runs_the_cases_of_rings_and_plain_frames() {
    let runs = |name: &str| {
        let [(_, case)] = select(GROUPS, &[name.to_owned()])[..] else { panic!("no case {name}") };
        steps(case, AttackedDevice::Pf).is_some()
    };
    for name in ["transmit-buffer-outside-memory", "frame-of-no-bytes", "receive-ring-of-one-block"] {
        assert!(runs(name), "{name}");
    }
    for name in ["unknown-message", "every-bit-of-ctrl", "avf-buffer-outside-memory"] {
        assert!(!runs(name), "{name}");
    }
}
