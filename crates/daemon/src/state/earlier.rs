//! Saved states as earlier programs wrote them, for tests of planned upgrades. An earlier encoding is today's without some
//! fields: the value is traced with its types, and written in postcard's encoding without these fields.

mod fields;
mod tests;

use super::envelope::seal;
use super::{AvfPortState, I82576PortState, PortSoftwareState, SavedState, VhostClientState, is_kind, read};
use fields::LackingField;

/// Encoding of a kind of saved state by an earlier program.
#[derive(Debug)]
struct EarlierEncoding {
    kind: [u8; 4],
    version: u32,
    lacks: &'static [LackingField],
}

/// Program of an earlier commit, with the encodings that differ from today's.
#[derive(Debug)]
pub(crate) struct EarlierProgram {
    /// Commit that changed the encodings.
    before: &'static str,
    encodings: &'static [EarlierEncoding],
}

const NEGOTIATION: LackingField = ("NicState", "negotiation");
const SHARED_ADDRESS: LackingField = ("VfPolicy", "share_mac");
/// Encoding of a vhost-user client without the packet that waits for a rate.
const FRONT_END: EarlierEncoding =
    EarlierEncoding { kind: VhostClientState::KIND, version: 1, lacks: &[("VhostClientState", "paused")] };

/// Earlier programs, the latest first. The table in `docs/decisions/14` has their versions.
pub(crate) const EARLIER_PROGRAMS: [EarlierProgram; 3] = [
    EarlierProgram { before: "9878842c", encodings: &[FRONT_END] },
    EarlierProgram {
        before: "42195cff",
        encodings: &[
            EarlierEncoding { kind: I82576PortState::KIND, version: 3, lacks: &[NEGOTIATION] },
            FRONT_END,
        ],
    },
    EarlierProgram {
        before: "d4356287",
        encodings: &[
            EarlierEncoding {
                kind: I82576PortState::KIND,
                version: 2,
                lacks: &[NEGOTIATION, SHARED_ADDRESS, ("VfState", "withheld")],
            },
            EarlierEncoding {
                kind: PortSoftwareState::KIND,
                version: 1,
                lacks: &[SHARED_ADDRESS, ("VfState", "withheld")],
            },
            EarlierEncoding {
                kind: AvfPortState::KIND,
                version: 5,
                lacks: &[SHARED_ADDRESS, ("AvfPolicy", "share_mac"), ("AvfVfState", "withheld")],
            },
        ],
    },
];

impl EarlierProgram {
    /// Encodes a saved state as this program did.
    pub(crate) fn rewrite(&self, bytes: &[u8]) -> Vec<u8> {
        match bytes {
            _ if is_kind::<I82576PortState>(bytes) => self.encode::<I82576PortState>(bytes),
            _ if is_kind::<PortSoftwareState>(bytes) => self.encode::<PortSoftwareState>(bytes),
            _ if is_kind::<AvfPortState>(bytes) => self.encode::<AvfPortState>(bytes),
            _ if is_kind::<VhostClientState>(bytes) => self.encode::<VhostClientState>(bytes),
            _ => bytes.to_vec(),
        }
    }

    fn encode<T: SavedState>(&self, bytes: &[u8]) -> Vec<u8> {
        let Some(encoding) = self.encodings.iter().find(|encoding| encoding.kind == T::KIND) else {
            return bytes.to_vec();
        };
        let state: T = read(bytes).expect("a host reads the state that it has written");
        seal(T::KIND, encoding.version, &fields::encode(&state, encoding.lacks))
    }
}
