//! Capture filters in libpcap's language (pcap-filter(7)) over Ethernet frames. A filter selects the frames that
//! libpcap 1.10 selects from a savefile of Ethernet frames; `tests/libpcap` compares both. The compiler refuses filters
//! that libpcap refuses, and filters that need a name server or a netmask of the interface.
//!
//! | module | what it does |
//! |---|---|
//! | `token`, `words` | divides the text into tokens |
//! | `parse`, `arithmetic` | reads the grammar |
//! | `layers`, `encapsulation` | knows where the headers are, behind tags, labels and tunnels |
//! | `protocol`, `host`, `port`, `llc` | makes the tests of each kind of primitive |
//! | `names` | finds numbers of protocols and ports by name |
//! | `node`, `run` | holds the tests, and runs them on a frame |
//! | `slots` | checks that offsets inside tunnels are known where they are read |
//!
//! Only frames of Ethernet are supported. The caller reads `/etc/services` and `/etc/protocols`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arithmetic;
mod encapsulation;
mod error;
mod host;
mod layers;
mod llc;
mod names;
mod node;
mod parse;
mod port;
mod protocol;
mod qualifiers;
mod run;
mod slots;
mod token;
mod words;

pub use error::FilterError;
pub use names::NameDatabases;
pub use parse::MAX_TEXT;

use node::FilterNode;

/// Compiled capture filter, which selects frames.
#[derive(Debug, Clone)]
pub struct Filter(FilterNode);

impl Filter {
    /// Compiles the text of a filter. An empty text selects every frame.
    ///
    /// # Errors
    /// [`FilterError`] says which part of the text is refused, and why.
    pub fn compile(text: &str, names: &NameDatabases) -> Result<Self, FilterError> {
        parse::compile(text, names).map(Self)
    }

    /// Returns whether the filter selects a frame of `length` bytes, of which `frame` was captured.
    #[must_use]
    pub fn selects(&self, frame: &[u8], length: usize) -> bool {
        run::selects(&self.0, frame, u32::try_from(length).unwrap_or(u32::MAX))
    }
}
