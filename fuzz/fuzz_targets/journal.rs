//! A port's journal with any words in its header, in the port's saved states and in the records of its functions, adopted
//! as a successor process does.
//!
//! The input is a list of changes: two bytes for the place, one for the kind of the word, and its bytes. Checked: no panic,
//! and a successor that saves each client again leaves the same client to its own successor.
#![cfg_attr(not(test), no_main)]

use daemon::port::check_changed_journal;
use softiov_fuzz::FuzzerInput;

softiov_fuzz::target!(run);

/// Takes a change of a word off the input.
fn change(input: &mut FuzzerInput<'_>) -> Option<(u16, u64)> {
    let [low, high, kind] = input.array()?;
    let word = match kind % 4 {
        0 => u64::from(kind >> 2),
        1 => u64::from(u32::from_le_bytes(input.array()?)),
        2 => u64::MAX - u64::from(kind >> 2),
        _ => u64::from_le_bytes(input.array()?),
    };
    Some((u16::from_le_bytes([low, high]), word))
}

fn run(data: &[u8]) {
    let mut input = FuzzerInput(data);
    check_changed_journal(std::iter::from_fn(|| change(&mut input)));
}
