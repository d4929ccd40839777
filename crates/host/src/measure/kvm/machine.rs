//! Smallest virtual machine that KVM runs, without devices.

#![expect(unsafe_code, reason = "a machine's memory is mapped, and KVM receives its address")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, ptr, slice};

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{IoEventAddress, Kvm, NoDatamatch, VcpuExit, VcpuFd, VmFd};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::MeasuredGuestProgram;
use crate::measure::DurationProbeError;

/// Guest address at which the measured program starts.
const START: u64 = 0x1000;
const PAGE: usize = 0x1000;

/// Virtual machine that runs a guest program whose exits are measured. Fields are dropped in order, the processor
/// first.
pub(super) struct MeasurementVm {
    processor: VcpuFd,
    _machine: VmFd,
    _memory: VmMemoryPage,
}

impl MeasurementVm {
    pub(super) fn new(program: &MeasuredGuestProgram) -> Result<Self, DurationProbeError> {
        let kvm = Kvm::new().map_err(failed("opening /dev/kvm"))?;
        let machine = kvm.create_vm().map_err(failed("creating a virtual machine"))?;
        machine.create_irq_chip().map_err(failed("creating interrupt controllers"))?;
        let memory = VmMemoryPage::new(&code(program))?;
        let region = kvm_userspace_memory_region {
            slot: 0,
            flags: 0,
            guest_phys_addr: START,
            memory_size: PAGE as u64,
            userspace_addr: memory.0.addr() as u64,
        };
        // SAFETY: the page belongs to this machine alone and is unmapped after it is gone.
        unsafe { machine.set_user_memory_region(region) }.map_err(failed("giving the machine memory"))?;
        if program.signals {
            // KVM keeps the eventfd; its signals never block, although no reader takes the count.
            let event = EventFd::new(EFD_NONBLOCK)?;
            machine
                .register_ioevent(&event, &IoEventAddress::Mmio(program.es), NoDatamatch)
                .map_err(failed("registering an eventfd for a guest's writes"))?;
        }
        let processor = machine.create_vcpu(0).map_err(failed("creating a virtual processor"))?;
        let mut segments = processor.get_sregs().map_err(failed("reading the processor's registers"))?;
        (segments.cs.base, segments.cs.selector, segments.es.base) = (0, 0, program.es);
        processor.set_sregs(&segments).map_err(failed("setting the processor's segments"))?;
        let mut registers = processor.get_regs().map_err(failed("reading the processor's registers"))?;
        // Bit 1 of the flags is always set.
        (registers.rip, registers.rflags) = (START, 2);
        processor.set_regs(&registers).map_err(failed("setting the processor's registers"))?;
        Ok(Self { processor, _machine: machine, _memory: memory })
    }

    /// Runs the virtual processor until it exits to user space. Returns an error if a signal interrupts it after
    /// `given_up` was set.
    pub(super) fn run(&mut self, given_up: &AtomicBool) -> Result<(), DurationProbeError> {
        loop {
            match self.processor.run() {
                Ok(VcpuExit::IoOut(..) | VcpuExit::MmioWrite(..)) => return Ok(()),
                Ok(other) => return Err(DurationProbeError::Exit(format!("{other:?}"))),
                Err(error) if error.errno() == libc::EINTR => {
                    if given_up.load(Ordering::Relaxed) {
                        return Err(DurationProbeError::Stuck);
                    }
                }
                Err(error) => return Err(failed("running the processor")(error)),
            }
        }
    }
}

/// Returns the machine code of a guest program whose exits are measured, with the loop that repeats it.
fn code(program: &MeasuredGuestProgram) -> Vec<u8> {
    let back = |bytes: usize| (bytes as u8).wrapping_neg();
    let mut code = Vec::new();
    let Some(repeated) = program.repeated else {
        code.extend(program.instructions);
        code.extend([0xeb, back(code.len() + 2)]); // jmp to the beginning
        return code;
    };
    let [low, high] = repeated.to_le_bytes();
    code.extend([0xbe, low, high]); // mov si, repeated
    code.extend(program.instructions);
    code.extend([0x4e, 0x75, back(program.instructions.len() + 3)]); // dec si; jnz to the instructions
    code.extend([0xe6, 0x10]); // out 0x10, al: stop
    code.extend([0xeb, back(code.len() + 2)]); // jmp to the beginning
    code
}

fn failed(what: &'static str) -> impl Fn(kvm_ioctls::Error) -> DurationProbeError {
    move |error| DurationProbeError::Kvm { what, error: io::Error::from_raw_os_error(error.errno()) }
}

/// Anonymous page of this process that is the virtual machine's memory.
struct VmMemoryPage(*mut u8);

impl VmMemoryPage {
    fn new(code: &[u8]) -> Result<Self, DurationProbeError> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping where the kernel has room touches nothing that exists.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, access, MapFlags::PRIVATE) };
        let memory = Self(page.map_err(io::Error::from)?.cast());
        // SAFETY: the page is ours, readable and writable, and no other code has its address yet.
        let bytes = unsafe { slice::from_raw_parts_mut(memory.0, PAGE) };
        bytes[..code.len()].copy_from_slice(code);
        Ok(memory)
    }
}

impl Drop for VmMemoryPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; the machine that used it is gone. An error cannot be handled
        // here.
        let _ = unsafe { munmap(self.0.cast(), PAGE) };
    }
}
