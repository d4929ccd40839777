//! What a running port can change beside its policy: its uplink and what frames meet on it, its link, and the processors that its thread runs on.
//! Left out: opening an uplink and closing it, which may take their time and are the control thread's.

use super::uplink::{Stages, Uplink};
use super::{Port, RefusedChange, UPLINK};
use crate::config::file::{LinkLocal, PortLink};
use host::cpus::Cpus;
use std::io;

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

impl Port {
    /// Makes a change, whole or not at all.
    pub(super) fn refit(&mut self, refit: Refit) -> Refitted {
        let Refit { uplink, stages, link, link_local, cpus } = refit;
        let before = self.cpus.clone();
        if let Err(error) = self.run_on(cpus.clone()) {
            let refit = Refit { uplink, stages, link, link_local, cpus };
            return Err((self.refused("cpus", error), Box::new(refit)));
        }
        let policy = self.uplink.set_policy(link);
        let replaced = uplink.map(|next| self.uplink.replace(next, &self.poller, UPLINK)).transpose();
        match replaced {
            Ok(uplink) => {
                if uplink.is_some() {
                    self.forget_uplink_totals();
                }
                self.uplink.set_policy(link);
                // The PF driver's visit in the round that follows finds it.
                self.card.set_link(self.uplink.link());
                let stages = stages.map(|stages| self.uplink.set_stages(stages));
                let link_local = self.set_link_local(link_local);
                Ok(Box::new(Refit { uplink, stages, link: policy, link_local, cpus: before }))
            }
            Err(refused) => {
                let (next, error) = *refused;
                self.uplink.set_policy(policy);
                // It ran there just now.
                let _ = self.run_on(before);
                Err((
                    self.refused("uplink", error),
                    Box::new(Refit { uplink: Some(next), stages, link, link_local, cpus }),
                ))
            }
        }
    }

    /// Drops or forwards link-local frames of guests from now on; returns the former setting.
    fn set_link_local(&mut self, link_local: LinkLocal) -> LinkLocal {
        self.card.forward_link_local(link_local == LinkLocal::Forward);
        std::mem::replace(&mut self.link_local, link_local)
    }

    /// Holds the port's thread to processors.
    pub(super) fn run_on(&mut self, cpus: Cpus) -> io::Result<()> {
        if self.cpus != cpus {
            if cpus.is_empty() {
                self.anywhere.pin()?;
            } else {
                cpus.pin()?;
            }
            self.cpus = cpus;
        }
        Ok(())
    }

    fn refused(&self, key: &'static str, source: io::Error) -> RefusedChange {
        RefusedChange::Refit { name: self.name.clone(), key, source }
    }
}
