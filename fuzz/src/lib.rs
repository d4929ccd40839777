//! Shared parts of the fuzz targets: the program of a target, its input, the kept corpora, and what surrounds a card: stations,
//! their claims to addresses, and their flows.
//!
//! A target is a function over bytes that panics if the product breaks a promise. [`target!`] makes its program: with the
//! fuzzer it is libFuzzer's, which `cargo xtask fuzz` builds and runs; as a test it replays the kept corpus of the target,
//! without a fuzzer, in `cargo xtask test`.

pub mod claims;
mod corpus;
pub mod flows;
mod i82576;
mod input;
mod mark;
pub mod source;
pub mod stations;

pub use self::i82576::transmit_descriptor;
pub use input::FuzzerInput;
pub use mark::FrameMark;

#[doc(hidden)]
pub use libfuzzer_sys;

use std::path::Path;

/// Makes the program of a fuzz target from its function over bytes. The name of the program is the name of the target.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(not(test))]
        use $crate::libfuzzer_sys;
        #[cfg(not(test))]
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| $run(input));

        #[cfg(test)]
        #[test]
        fn kept_inputs_pass() {
            $crate::replay(module_path!(), $run);
        }
    };
}

/// Runs a target with each input of its kept corpora, and with none.
///
/// # Panics
/// If the target has no kept corpus, or an input is a fault.
pub fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let [kept, drivers] = [folder.clone(), folder.join("drivers")].map(|of| of.join(format!("{target}.txt")));
    run(&[]);
    assert!(replay_file(&kept, run) > 0, "{} has no input", kept.display());
    if drivers.exists() {
        replay_file(&drivers, run);
    }
}

/// Returns the kept inputs of a target, without those of drivers.
///
/// # Panics
/// If the target has no kept corpus, or a line of it is invalid.
#[must_use]
pub fn kept_inputs(target: &str) -> Vec<Vec<u8>> {
    inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{target}.txt")))
}

/// Runs a target with each input of a file. Returns their number.
fn replay_file(path: &Path, run: fn(&[u8])) -> usize {
    let inputs = inputs(path);
    for (line, input) in (1..).zip(&inputs) {
        println!("{}, line {line}", path.display());
        run(input);
    }
    inputs.len()
}

/// Returns the inputs of a file.
fn inputs(path: &Path) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    corpus::parse(&text).unwrap_or_else(|line| panic!("{}: line {line}", path.display()))
}

/// Returns a text of the input's bytes. A byte above ASCII is a whole word, so that the fuzzer reaches the code behind
/// the keywords.
#[must_use]
pub fn text(input: &[u8], words: &[&str]) -> String {
    let mut text = String::new();
    for byte in input {
        match byte.checked_sub(0x80) {
            Some(word) => text += words[usize::from(word) % words.len()],
            None => text.push(char::from(*byte)),
        }
    }
    text
}

/// Returns the bytes of a kept saved state, which is text with hexadecimal digits, without its envelope.
///
/// # Panics
/// If the text has other characters than digits and white space.
#[must_use]
pub fn saved_body(hex: &str) -> Vec<u8> {
    /// Bytes of a saved state's envelope before the body.
    const ENVELOPE: usize = 28;
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    digits.chunks_exact(2).skip(ENVELOPE).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Returns `body` with changed bytes. A change has two bytes for the position and one for the bits.
#[must_use]
pub fn changed(body: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    for [low, high, value] in changes.as_chunks().0 {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % body.len();
        body[at] ^= *value;
    }
    body
}
