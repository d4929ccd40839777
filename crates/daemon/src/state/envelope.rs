//! Envelope of a saved state: kind, version and length of the state, and a checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// First bytes of a saved state's envelope.
const MAGIC: [u8; 8] = *b"SoftIOV\n";
/// Bytes of a saved state's envelope before its body.
const HEADER: usize = 28;
/// Bytes of the envelope's header that the checksum covers.
const CHECKED: usize = 24;
/// Maximum length of a saved state in bytes. A longer state is refused.
const MOST: usize = 64 << 20;

/// Type of state that can be saved in an envelope.
pub trait SavedState: Serialize + DeserializeOwned {
    /// Kind of the saved state, four letters.
    const KIND: [u8; 4];
    /// Version of the saved state's encoding. It increases whenever the encoding changes.
    const VERSION: u32;

    /// Converts the body of an earlier version's saved state. The default supports no earlier version.
    ///
    /// # Errors
    /// [`SavedStateError::Version`], or [`SavedStateError::Body`] if the body is not that version's.
    fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
        let _ = body;
        Err(SavedStateError::Version { found: version, newest: Self::VERSION })
    }
}

/// Reason to refuse the bytes of a saved state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SavedStateError {
    /// The bytes have no envelope of a saved state.
    #[error("not a saved state of softiov: wrong first bytes")]
    NotAState,
    /// The saved state is of another kind.
    #[error("wrong kind of saved state: found {}, expected {}", letters(.found), letters(.expected))]
    Kind {
        /// Kind of state that the saved state's envelope names.
        found: [u8; 4],
        /// Kind of state that the reader expected.
        expected: [u8; 4],
    },
    /// This program saves no state of a port under this kind.
    #[error(
        "unknown kind of saved state: {}; use the program that wrote the state, or a newer one",
        letters(.found)
    )]
    UnknownKind {
        /// Kind of state that the saved state's envelope names.
        found: [u8; 4],
    },
    /// The state's version is newer than this program supports, or 0.
    #[error(
        "the saved state has version {found}, and this program reads versions 1 to {newest}; use the \
         program that wrote the state, or a newer one"
    )]
    Version {
        /// Version that the saved state's envelope names.
        found: u32,
        /// Newest version of the state that this program supports.
        newest: u32,
    },
    /// The state is truncated, or has bytes after its end.
    #[error("the saved state is damaged: {there} bytes instead of {said}; restart the port")]
    Length {
        /// Length of the saved state's body that its envelope states, in bytes.
        said: u64,
        /// Number of bytes that actually follow the envelope's header.
        there: u64,
    },
    /// The checksum of the saved state is wrong.
    #[error("the saved state is damaged: wrong checksum; restart the port")]
    Checksum,
    /// The checksum is correct, but the body is invalid for its version.
    #[error("the saved state is damaged: contents invalid for the version; restart the port")]
    Body,
    /// The value cannot be encoded as a saved state.
    #[error("cannot encode the port's state; the port continues unchanged")]
    Unwritable,
}

/// Returns the letters of a state's kind, with question marks for other characters.
fn letters(kind: &[u8; 4]) -> String {
    kind.iter().map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '?' }).collect()
}

/// Encodes a state of one process in its envelope, for the successor process.
///
/// # Errors
/// [`SavedStateError::Unwritable`] if the value cannot be encoded, or is too long.
pub fn write<T: SavedState>(state: &T) -> Result<Vec<u8>, SavedStateError> {
    write_version(T::KIND, T::VERSION, state)
}

/// Encodes the body of a version in its envelope.
///
/// # Errors
/// [`SavedStateError::Unwritable`] if the value cannot be encoded, or is too long.
pub(super) fn write_version(
    kind: [u8; 4],
    version: u32,
    body: &impl Serialize,
) -> Result<Vec<u8>, SavedStateError> {
    let body = postcard::to_allocvec(body).map_err(|_| SavedStateError::Unwritable)?;
    if body.len() > MOST {
        return Err(SavedStateError::Unwritable);
    }
    Ok(seal(kind, version, &body))
}

/// Puts the body of a saved state into its envelope.
pub(crate) fn seal(kind: [u8; 4], version: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(MAGIC);
    bytes.extend(kind);
    bytes.extend(version.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    let checksum = checksum(&bytes, body);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Decodes a saved state of any supported version. The result has the right type, but its values are not checked:
/// restoring does that.
///
/// # Errors
/// [`SavedStateError`]: the bytes are damaged, or not a state of this kind.
pub fn read<T: SavedState>(bytes: &[u8]) -> Result<T, SavedStateError> {
    let (kind, version, body) = unseal(bytes)?;
    if kind != T::KIND {
        return Err(SavedStateError::Kind { found: kind, expected: T::KIND });
    }
    match version {
        version if version == T::VERSION => decode(body),
        version if (1..T::VERSION).contains(&version) => T::from_earlier(version, body),
        found => Err(SavedStateError::Version { found, newest: T::VERSION }),
    }
}

/// Takes a body out of its envelope. Returns the kind, the version and the body.
pub(super) fn unseal(bytes: &[u8]) -> Result<([u8; 4], u32, &[u8]), SavedStateError> {
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(SavedStateError::NotAState)?;
    let [magic @ .., _] = header.as_chunks::<4>().0 else { return Err(SavedStateError::NotAState) };
    let [m0, m1, kind, version, low, high] = *magic else { return Err(SavedStateError::NotAState) };
    if [m0, m1].as_flattened() != MAGIC {
        return Err(SavedStateError::NotAState);
    }
    let said = u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << 32;
    let there = body.len() as u64;
    if said != there || body.len() > MOST {
        return Err(SavedStateError::Length { said, there });
    }
    let (checked, written) = header.split_at(CHECKED);
    if checksum(checked, body).to_le_bytes() != written {
        return Err(SavedStateError::Checksum);
    }
    Ok((kind, u32::from_le_bytes(version), body))
}

/// Decodes the body of a saved state, for [`SavedState::from_earlier`]. Further bytes after the body are an error.
///
/// # Errors
/// [`SavedStateError::Body`].
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, SavedStateError> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(SavedStateError::Body),
    }
}

/// Returns true if the bytes begin with an envelope of this kind of state.
#[must_use]
pub fn is_kind<T: SavedState>(bytes: &[u8]) -> bool {
    bytes.get(..MAGIC.len()) == Some(&MAGIC) && bytes.get(MAGIC.len()..MAGIC.len() + 4) == Some(&T::KIND)
}

/// Returns the CRC-32 (IEEE 802.3) of an envelope's header and body.
fn checksum(header: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::{HEADER, SavedState, SavedStateError, decode, read, write};
    use serde::{Deserialize, Serialize};

    /// Saved state for tests of the envelope. Its version 1 had no name.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct NamedTestState {
        count: u32,
        name: String,
    }

    impl SavedState for NamedTestState {
        const KIND: [u8; 4] = *b"test";
        const VERSION: u32 = 2;

        fn from_earlier(version: u32, body: &[u8]) -> Result<Self, SavedStateError> {
            match version {
                1 => Ok(Self { count: decode(body)?, name: "default".into() }),
                found => Err(SavedStateError::Version { found, newest: Self::VERSION }),
            }
        }
    }

    /// Saved state for tests of the envelope, of any kind and version, with a number as its body.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct NumberTestState<const KIND: u8, const VERSION: u32>(u32);

    impl<const KIND: u8, const V: u32> SavedState for NumberTestState<KIND, V> {
        const KIND: [u8; 4] = [KIND, b'e', b's', b't'];
        const VERSION: u32 = V;
    }

    fn today() -> NamedTestState {
        NamedTestState { count: 7, name: "test".into() }
    }

    #[test]
    fn written_saved_state_is_read_back_unchanged() {
        assert_eq!(read(&write(&today()).unwrap()), Ok(today()));
    }

    #[test]
    fn saved_state_is_read_from_an_old_but_not_a_newer_version() {
        let earlier = write(&NumberTestState::<b't', 1>(5)).unwrap();
        assert_eq!(read(&earlier), Ok(NamedTestState { count: 5, name: "default".into() }));
        for (bytes, found) in
            [(write(&NumberTestState::<b't', 3>(5)), 3), (write(&NumberTestState::<b't', 0>(5)), 0)]
        {
            let refused = read::<NamedTestState>(&bytes.unwrap()).unwrap_err();
            assert_eq!(refused, SavedStateError::Version { found, newest: 2 });
        }
        let text = SavedStateError::Version { found: 3, newest: 2 }.to_string();
        assert!(text.contains("version 3") && text.contains("1 to 2"), "{text}");
    }

    #[test]
    fn saved_state_of_another_kind_is_named_in_the_error() {
        let refused = read::<NamedTestState>(&write(&NumberTestState::<b'b', 2>(5)).unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), "wrong kind of saved state: found best, expected test");
    }

    #[test]
    fn any_changed_bit_of_a_saved_state_is_detected() {
        let bytes = write(&today()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read::<NamedTestState>(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn any_changed_length_of_a_saved_state_is_detected() {
        let bytes = write(&today()).unwrap();
        for length in 0..bytes.len() {
            let expected = if length < HEADER {
                SavedStateError::NotAState
            } else {
                read::<NamedTestState>(&bytes[..length]).unwrap_err()
            };
            assert_eq!(read::<NamedTestState>(&bytes[..length]), Err(expected));
        }
        let longer = [&bytes[..], &[0]].concat();
        let said = (bytes.len() - HEADER) as u64;
        assert_eq!(read::<NamedTestState>(&longer), Err(SavedStateError::Length { said, there: said + 1 }));
    }

    #[test]
    fn saved_state_with_bytes_after_its_body_is_refused() {
        assert_eq!(decode::<u8>(&[1]), Ok(1));
        assert_eq!(decode::<u8>(&[1, 2]), Err(SavedStateError::Body));
    }
}
