//! Tests of the encodings of earlier programs, against the kept states and schemas.

use super::{EARLIER_PROGRAMS, EarlierEncoding};
use crate::state::{
    AvfPortState, HeldAddresses, I82576PortState, MixedPortState, PortCounterTotals, PortSoftwareState,
    SavedState, SavedStations, VhostClientState, VirtioPortState,
};
use iovm::VirtualFunctionState;
use std::path::PathBuf;

/// Returns the text of a kept file of a kind and version.
fn kept(kind: [u8; 4], version: u32, extension: &str) -> String {
    let kind = std::str::from_utf8(&kind).unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/states");
    std::fs::read_to_string(folder.join(format!("{kind}-v{version}.{extension}"))).unwrap()
}

/// Returns the bytes of a kept state.
fn kept_state(kind: [u8; 4], version: u32) -> Vec<u8> {
    let digits: Vec<u8> = kept(kind, version, "hex").bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_chunks().0.iter().map(byte).collect()
}

/// Returns a line of a schema without the field.
fn without_field(line: &str, field: &str) -> String {
    let begin = line.find(&format!("Named {{ name: \"{field}\"")).expect("the field is in today's schema");
    let mut depth = 0;
    let end = line[begin..].find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == '}'
    });
    let (before, after) = (&line[..begin], &line[begin + end.expect("the field has an end") + 1..]);
    match after.strip_prefix(", ") {
        Some(after) => [before, after].concat(),
        None => [before.trim_end_matches(", "), after].concat(),
    }
}

/// Returns the schema of an earlier encoding, derived from today's.
fn derived_schema(encoding: &EarlierEncoding, newest: u32) -> Vec<String> {
    let derive = |line: &str| {
        let of_type = encoding
            .lacks
            .iter()
            .filter(|(name, _)| line.split_once(": ").is_some_and(|(of, _)| of == *name));
        of_type.fold(line.to_owned(), |line, (_, field)| without_field(&line, field))
    };
    let newest = kept(encoding.kind, newest, "schema");
    let derived: Vec<_> = newest.lines().map(derive).collect();
    // A type that only the missing fields have is missing too.
    let (newest, earlier) = (newest.as_str(), derived.join("\n"));
    let is_named = |schema: &str, line: &str| {
        line.split_once(": ").is_some_and(|(name, _)| schema.contains(&format!("TypeName(\"{name}\")")))
    };
    let is_kept = |line: &String| is_named(&earlier, line) || !is_named(newest, line);
    derived.into_iter().filter(is_kept).collect()
}

/// Returns today's version of a kind that has earlier encodings.
fn newest(kind: [u8; 4]) -> u32 {
    let versions = [
        (I82576PortState::KIND, I82576PortState::VERSION),
        (PortSoftwareState::KIND, PortSoftwareState::VERSION),
        (AvfPortState::KIND, AvfPortState::VERSION),
        (VhostClientState::KIND, VhostClientState::VERSION),
    ];
    versions.iter().find(|(of, _)| *of == kind).expect("a kind with earlier encodings").1
}

/// Checks that the version before today's of a kind is in the table, if there is one.
fn has_earlier<T: SavedState>() {
    let mut encodings = EARLIER_PROGRAMS.iter().flat_map(|program| program.encodings);
    let has = encodings.any(|encoding| encoding.kind == T::KIND && encoding.version == T::VERSION - 1);
    let kind = String::from_utf8_lossy(&T::KIND);
    assert!(
        has || T::VERSION == 1,
        "{kind} has a new version: add the program before it to EARLIER_PROGRAMS"
    );
}

#[test]
fn earlier_encodings_equal_the_kept_states() {
    for program in &EARLIER_PROGRAMS {
        for EarlierEncoding { kind, version, .. } in program.encodings {
            let sample = kept_state(*kind, *version);
            assert!(program.rewrite(&sample) == sample, "version {version} before {}", program.before);
            // A state that has today's fields loses them.
            let newest = kept_state(*kind, newest(*kind));
            assert_eq!(program.rewrite(&newest)[12], *version as u8);
        }
    }
}

/// A kept state may have a field at its default, which an encoding with a wrong field could hide.
#[test]
fn earlier_schemas_lack_only_the_named_fields() {
    for encoding in EARLIER_PROGRAMS.iter().flat_map(|program| program.encodings) {
        let kept = kept(encoding.kind, encoding.version, "schema");
        assert_eq!(derived_schema(encoding, newest(encoding.kind)), kept.lines().collect::<Vec<_>>());
    }
}

#[test]
fn each_new_version_has_an_earlier_program() {
    has_earlier::<I82576PortState>();
    has_earlier::<PortSoftwareState>();
    has_earlier::<AvfPortState>();
    has_earlier::<VirtioPortState>();
    has_earlier::<MixedPortState>();
    has_earlier::<VirtualFunctionState>();
    has_earlier::<PortCounterTotals>();
    has_earlier::<HeldAddresses>();
    has_earlier::<SavedStations>();
    has_earlier::<VhostClientState>();
}
