//! Measures exits of a virtual machine: one processor in real mode, and a program of a few bytes.

mod machine;
mod watchdog;

use std::time::Duration;

use super::{DurationProbeError, DurationProbeResult};

/// Guest program whose VM exits are measured: its instructions, and the registers that it starts with.
struct MeasuredGuestProgram {
    /// Real-mode instructions of the measured guest program; they may change any register but SI.
    instructions: &'static [u8],
    /// Base address of the segment ES while the guest program runs.
    es: u64,
    /// Number of times that a measured guest program runs before it stops the virtual machine; `None` if the program
    /// itself stops it each time.
    repeated: Option<u16>,
    /// KVM signals an eventfd for each write to the base of ES.
    signals: bool,
}

/// Number of times that a measured guest program runs in the virtual machine: enough to hide the cost of the final
/// stop, and few enough that interruptions are rare.
const OFTEN: Option<u16> = Some(200);

/// Timeout of a measurement of VM exits: where KVM itself runs in a virtual machine, some instructions never
/// return.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn cpuid() -> Result<DurationProbeResult, DurationProbeError> {
    // xor ax, ax; cpuid
    run(&MeasuredGuestProgram {
        instructions: &[0x31, 0xc0, 0x0f, 0xa2],
        es: 0,
        repeated: OFTEN,
        signals: false,
    })
}

pub(super) fn hypercall() -> Result<DurationProbeResult, DurationProbeError> {
    // xor ax, ax; vmcall, which KVM replaces by vmmcall on AMD. Hypercall 0 does not exist; its error reply is what
    // is timed.
    run(&MeasuredGuestProgram {
        instructions: &[0x31, 0xc0, 0x0f, 0x01, 0xc1],
        es: 0,
        repeated: OFTEN,
        signals: false,
    })
}

pub(super) fn mmio_kernel() -> Result<DurationProbeResult, DurationProbeError> {
    // mov es:[0], eax: the I/O APIC's register select, which KVM keeps in the kernel.
    run(&MeasuredGuestProgram { instructions: WRITE, es: 0xfec0_0000, repeated: OFTEN, signals: false })
}

pub(super) fn mmio_user() -> Result<DurationProbeResult, DurationProbeError> {
    // The same write where no device is.
    run(&MeasuredGuestProgram { instructions: WRITE, es: 0xd000_0000, repeated: None, signals: false })
}

pub(super) fn ioeventfd() -> Result<DurationProbeResult, DurationProbeError> {
    // The same write where no device is, which KVM passes to an eventfd.
    run(&MeasuredGuestProgram { instructions: WRITE, es: 0xd000_0000, repeated: OFTEN, signals: true })
}

const WRITE: &[u8] = &[0x26, 0x66, 0xa3, 0x00, 0x00];

pub(super) fn pio_user() -> Result<DurationProbeResult, DurationProbeError> {
    // out 0x10, al
    run(&MeasuredGuestProgram { instructions: &[0xe6, 0x10], es: 0, repeated: None, signals: false })
}

fn run(program: &'static MeasuredGuestProgram) -> Result<DurationProbeResult, DurationProbeError> {
    watchdog::within(PATIENCE, |given_up| {
        let mut machine = machine::MeasurementVm::new(program)?;
        super::repeat::per_operation(|count| {
            let stops = program.repeated.map_or(count, |repeated| count.div_ceil(repeated.into()));
            let took = super::repeat::timed(|| (0..stops).try_for_each(|_| machine.run(given_up)))?;
            // Scaled from the repetitions done to the repetitions requested.
            let done = u64::from(stops) * program.repeated.map_or(1, u64::from);
            Ok(took * u64::from(count) / done)
        })
    })
}
