//! Capabilities in the JSON text of a `VERSION` message: the parser is tolerant, and rendering omits capabilities that
//! exceed the room.
//!
//! `twin_socket` and `migration` are ignored in requests and never offered.

use alloc::{string::String, vec::Vec};
use core::fmt::Write as _;

use serde_json::Value;
use thiserror::Error;

/// Error: the version text is not JSON. (A capability of the wrong type is ignored.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the capabilities in the vfio-user version message are not JSON")]
pub struct MalformedCapabilities;

/// Capabilities of client or server, as `VERSION` states them. `None` stands for the specification's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VersionCapabilities {
    /// Maximum file descriptors per message; default 1.
    pub max_msg_fds: Option<u64>,
    /// Maximum data bytes per transfer; default 1 MiB.
    pub max_data_xfer_size: Option<u64>,
    /// Maximum DMA windows at one time; default 65,535.
    pub max_dma_maps: Option<u64>,
    /// Supported sizes of DMA pages, ORed; default 4,096.
    pub pgsizes: Option<u64>,
    /// True if `REGION_WRITE_MULTI` is supported; default false.
    pub write_multiple: Option<bool>,
}

impl VersionCapabilities {
    /// Parses the text after the version numbers of a `VERSION` message, up to its NUL or, if it has none, to its end.
    /// No text, an empty object, and an absent or null `capabilities` all mean defaults. Unknown keys are ignored.
    ///
    /// # Errors
    /// The text is not JSON (or is nested too deeply).
    pub fn parse(text: &[u8]) -> Result<Self, MalformedCapabilities> {
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let document: Value = serde_json::from_slice(text).map_err(|_| MalformedCapabilities)?;
        let number = |name| document.get("capabilities")?.get(name)?.as_u64();
        let truth = |name| document.get("capabilities")?.get(name)?.as_bool();
        Ok(Self {
            max_msg_fds: number("max_msg_fds"),
            max_data_xfer_size: number("max_data_xfer_size"),
            max_dma_maps: number("max_dma_maps"),
            pgsizes: number("pgsizes"),
            write_multiple: truth("write_multiple"),
        })
    }

    /// Renders the text of a `VERSION` message with a final NUL in at most `room` bytes, and returns the rendered
    /// capabilities. Capabilities that do not fit are omitted, the least useful first. Too little room yields an empty
    /// text, which is legal.
    pub fn render(mut self, room: usize) -> (Self, Vec<u8>) {
        loop {
            let text = self.text();
            if text.len() < room {
                return (self, terminated(text));
            }
            if !self.forget_one() {
                let text = if room > 2 { terminated(String::from("{}")) } else { Vec::new() };
                return (self, text);
            }
        }
    }

    fn text(&self) -> String {
        let numbers = [
            ("max_msg_fds", self.max_msg_fds),
            ("max_data_xfer_size", self.max_data_xfer_size),
            ("max_dma_maps", self.max_dma_maps),
            ("pgsizes", self.pgsizes),
        ];
        let mut list = String::new();
        for (name, value) in numbers {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(list, "\"{name}\":{value},");
            }
        }
        if let Some(value) = self.write_multiple {
            let _ = write!(list, "\"write_multiple\":{value},");
        }
        let mut text = String::from("{\"capabilities\":{");
        text.push_str(list.trim_end_matches(','));
        text.push_str("}}");
        text
    }

    fn forget_one(&mut self) -> bool {
        self.pgsizes.take().is_some()
            || self.max_dma_maps.take().is_some()
            || self.max_data_xfer_size.take().is_some()
            || self.write_multiple.take().is_some()
            || self.max_msg_fds.take().is_some()
    }
}

fn terminated(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: VersionCapabilities = VersionCapabilities {
        max_msg_fds: Some(16),
        max_data_xfer_size: Some(1 << 20),
        max_dma_maps: Some(65535),
        pgsizes: Some(4096),
        write_multiple: Some(true),
    };

    #[test]
    fn version_message_without_capabilities_is_valid_in_any_form() {
        for text in [&b""[..], b"\0", b"{}", b"{}\0", b"{\"capabilities\":null}\0", b"{\"capabilities\":{}}"]
        {
            assert_eq!(VersionCapabilities::parse(text), Ok(VersionCapabilities::default()), "{text:?}");
        }
    }

    #[test]
    fn unknown_or_mistyped_version_capabilities_are_ignored() {
        let text = br#"{"x":[1],"capabilities":{"max_msg_fds":"many","twin_socket":{},"pgsizes":4096}}"#;
        let expected = VersionCapabilities { pgsizes: Some(4096), ..VersionCapabilities::default() };
        assert_eq!(VersionCapabilities::parse(text), Ok(expected));
    }

    #[test]
    fn version_text_other_than_json_or_too_deep_is_an_error() {
        assert_eq!(VersionCapabilities::parse(b"hello\0"), Err(MalformedCapabilities));
        assert_eq!(VersionCapabilities::parse(&[0xff, 0xfe, 0]), Err(MalformedCapabilities));
        assert_eq!(VersionCapabilities::parse(&[b'['; 4000]), Err(MalformedCapabilities));
    }

    #[test]
    fn rendered_version_capabilities_parse_to_themselves() {
        let (said, text) = EVERYTHING.render(usize::MAX);
        assert_eq!(said, EVERYTHING);
        assert_eq!(VersionCapabilities::parse(&text), Ok(EVERYTHING));
    }

    #[test]
    fn version_text_fits_a_buffer_of_any_size() {
        for room in 0..200 {
            let (said, text) = EVERYTHING.render(room);
            assert!(text.len() <= room);
            assert_eq!(VersionCapabilities::parse(&text), Ok(said));
            assert!(text.is_empty() || text.ends_with(&[0]));
        }
    }
}
