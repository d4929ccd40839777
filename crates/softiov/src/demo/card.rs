//! Card of a demo, as the command line describes it.

/// Card of the demo: its device family, and the way in which its guests ring doorbells.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoCard<'a> {
    /// Card family of the demo, as a configuration names it.
    pub(super) family: &'a str,
    /// True if the card's doorbell pages are mapped into the demo's guests.
    pub(super) mapped: bool,
}
