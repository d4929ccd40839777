//! Part of a front end's connection in a planned hand-over. `saved` saves and continues connections.

use crate::state::VhostClientState;

/// Part of a front end's connection in a hand-over.
#[derive(Debug, Default)]
pub(super) enum FrontEndHandOver {
    #[default]
    None,
    /// The connection is saved, and the port is paused.
    Saved,
    /// A previous process has saved the connection.
    Inherited(VhostClientState),
}
