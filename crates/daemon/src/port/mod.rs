//! A port's thread: its card, clients and uplink. One thread owns the card, its PF driver, its functions' clients and
//! its uplink. So the frame path needs no lock. Commands arrive as messages.
//!
//! The thread sleeps until a socket, the uplink, a command or a deadline wakes it. Then it runs a round: messages
//! of clients, the PF driver's visit, the card's poll. The PF driver takes no interrupts. Each round visits it, so
//! a VF's request waits for one round at most. No call that may block or take long runs on this thread
//! (`clients::errand`).
//!
//! A port has three parts. Each imports only the parts before it in this table:
//!
//! | part | content |
//! |---|---|
//! | `engine` | the card by family, the bus, the uplink; no clock |
//! | `clients` | sockets, sessions and saved state of clients |
//! | `succession` | hand-over to a successor, inheritance from a predecessor |
//!
//! `tokens` has the tokens of the port's poller and `moments` the deaths of simulated processes, for all parts. `run` has the
//! loop, `waiting` waits between its rounds, `open` creates a port, `carry_out` carries out commands, `pause` waits for a
//! successor.
//! `run` creates the clock; `open`, `carry_out`, and the
//! clients' `service` and `connection` read it too.

mod carry_out;
mod clients;
mod command;
mod engine;
mod error;
mod moments;
mod open;
mod pause;
mod pending_pause;
mod policy_update;
mod refit;
mod run;
mod status;
mod succession;
mod tokens;
mod waiting;

pub use crate::pf_config::PF_RID;
pub use clients::journal::JournalError;
pub use clients::journal::check::check_changed_journal;
pub use clients::listening::FunctionSocketError;
pub(crate) use clients::orphans::disconnect_orphans;
pub use command::{PortCommandInbox, PortHandle, PortThreadCommand};
pub use engine::error::{CardChangeRefusal, PortEngineStartError};
pub(crate) use engine::uplink::{
    ParentAddressRegistry, PortUplink, UplinkPipelineStages, UplinkResources, WireRegistry, XdpPrograms,
};
pub use engine::uplink::{UplinkError, frames_of_recording, frames_of_stream};
pub use engine::virtio::saved::restored_virtio_state;
pub use error::{PortChangeRefusal, PortStartError};
pub(crate) use open::{PreparedPort, SharedPortResources};
pub use policy_update::{PortPolicyUpdate, PreparedVf, VfPolicyUpdate};
pub use refit::{PortReconfiguration, ReconfigurationResult};
pub use run::{OpenPort, PortThreadOutcome};
