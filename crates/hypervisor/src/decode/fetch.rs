//! From RIP to an instruction: walk, fetch, decode. Left out: code segments with a base.

use super::memory::GuestMemory;
use super::paging::{Intent, is_canonical, walk};
use super::{Cpu, Trap, Work};
use iced_x86::{Decoder, DecoderError, DecoderOptions, Instruction};

/// No instruction is longer (SDM volume 2, 2.3.11).
const LONGEST: usize = 15;
/// Bytes of a page.
const PAGE: u64 = 4096;

/// Fetches and decodes the instruction at RIP. The following page is walked only if the instruction goes on
/// there.
///
/// # Errors
/// [`Trap`]: a page of it cannot be fetched, or it is illegal.
pub fn fetch(memory: &impl GuestMemory, cpu: &Cpu, work: &mut Work) -> Result<Instruction, Trap> {
    let mut bytes = [0; LONGEST];
    let here = ((PAGE - cpu.rip % PAGE) as usize).min(LONGEST);
    fetch_bytes(memory, cpu, cpu.rip, &mut bytes[..here], work)?;
    work.decoded += 1;
    match decode(&bytes[..here], cpu.rip) {
        Err(DecoderError::NoMoreBytes) if here < LONGEST => {
            let next = cpu.rip.wrapping_add(here as u64);
            fetch_bytes(memory, cpu, next, &mut bytes[here..], work)?;
            decode(&bytes, cpu.rip).map_err(|_| Trap::Undefined)
        }
        decoded => decoded.map_err(|_| Trap::Undefined),
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

/// Reads code that is inside one page.
fn fetch_bytes(
    memory: &impl GuestMemory,
    cpu: &Cpu,
    linear: u64,
    into: &mut [u8],
    work: &mut Work,
) -> Result<(), Trap> {
    if !is_canonical(linear) {
        return Err(Trap::GeneralProtection);
    }
    let walk = walk(memory, cpu.cr3, linear, Intent::Fetch, cpu.user);
    work.table_loads += walk.loads;
    work.fetched += into.len() as u32;
    if memory.read(walk.result?, into) { Ok(()) } else { Err(Trap::Undefined) }
}
