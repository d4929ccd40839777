//! What a running port can change beside its policy: its uplink and what frames meet on it, its link, and the processors that its thread runs on.
//! Left out: opening an uplink and closing it, which may take their time and are the control thread's.

use super::engine::uplink::{Stages, Uplink};
use super::error::RefusedChange;
use crate::config::file::{LinkLocal, PortLink};
use host::cpus::Cpus;

/// What is to be changed.
#[derive(Debug)]
pub struct Refit {
    /// Another uplink.
    pub(crate) uplink: Option<Uplink>,
    /// Other stages for the uplink that stays.
    pub(crate) stages: Option<Stages>,
    /// What the port's link is.
    pub(crate) link: PortLink,
    /// Policy for link-local frames of guests.
    pub(crate) link_local: LinkLocal,
    /// The processors that the thread may run on; none named is any.
    pub(crate) cpus: Cpus,
}

/// The former values, which undo the change; or the reason for the refusal, and the change that was asked for.
pub type Refitted = Result<Box<Refit>, (RefusedChange, Box<Refit>)>;
