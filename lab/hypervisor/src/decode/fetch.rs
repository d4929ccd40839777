//! Fetches the guest's instruction at RIP: page walk, fetch, decode. Code segments with a base are not
//! supported.

use super::memory::GuestMemory;
use super::paging::{GuestMemoryAccessKind, is_canonical, walk};
use super::{EmulationWork, GuestException, VcpuRegisters};
use iced_x86::{Decoder, DecoderError, DecoderOptions, Instruction};

/// Length of the longest instruction, in bytes (SDM volume 2, 2.3.11).
const MAX_LENGTH: usize = 15;
/// Bytes of a page of guest memory.
const PAGE: u64 = 4096;

/// Fetches and decodes the guest's instruction at RIP. Walks the following page only if the instruction
/// extends into it.
///
/// # Errors
/// [`GuestException`] if a page cannot be fetched or the instruction is illegal.
pub fn fetch(
    memory: &impl GuestMemory,
    cpu: &VcpuRegisters,
    work: &mut EmulationWork,
) -> Result<Instruction, GuestException> {
    let mut bytes = [0; MAX_LENGTH];
    let here = ((PAGE - cpu.rip % PAGE) as usize).min(MAX_LENGTH);
    fetch_bytes(memory, cpu, cpu.rip, &mut bytes[..here], work)?;
    work.decoded += 1;
    match decode(&bytes[..here], cpu.rip) {
        Err(DecoderError::NoMoreBytes) if here < MAX_LENGTH => {
            let next = cpu.rip.wrapping_add(here as u64);
            fetch_bytes(memory, cpu, next, &mut bytes[here..], work)?;
            decode(&bytes, cpu.rip).map_err(|_| GuestException::Undefined)
        }
        decoded => decoded.map_err(|_| GuestException::Undefined),
    }
}

fn decode(bytes: &[u8], rip: u64) -> Result<Instruction, DecoderError> {
    let mut decoder = Decoder::with_ip(64, bytes, rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    match decoder.last_error() {
        DecoderError::None => Ok(instruction),
        error => Err(error),
    }
}

/// Reads bytes of a guest's instruction within one page.
fn fetch_bytes(
    memory: &impl GuestMemory,
    cpu: &VcpuRegisters,
    linear: u64,
    into: &mut [u8],
    work: &mut EmulationWork,
) -> Result<(), GuestException> {
    if !is_canonical(linear) {
        return Err(GuestException::GeneralProtection);
    }
    let walk = walk(memory, cpu.cr3, linear, GuestMemoryAccessKind::Fetch, cpu.user);
    work.table_loads += walk.loads;
    work.fetched += into.len() as u32;
    if memory.read(walk.result?, into) { Ok(()) } else { Err(GuestException::Undefined) }
}
