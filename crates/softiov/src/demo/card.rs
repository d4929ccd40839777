//! Card of a demo, as the command line describes it.

/// Card (device family and doorbells) of the demo.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoCard<'a> {
    /// Card family, as a configuration names it.
    pub(super) family: &'a str,
    /// True if doorbell pages are mapped into the guests.
    pub(super) mapped: bool,
}
