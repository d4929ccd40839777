//! The programs of AF_XDP, which are loaded while the host starts. Left out: attaching one to an interface.

use crate::config::uplink::Xdp;
use host::xdp::Program;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The host's programs. Each is one uplink's as long as that is there, and then another's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs(Arc<Mutex<Vec<Arc<Program>>>>);

impl Programs {
    /// What an uplink is attached with.
    pub(in crate::port::engine::uplink) fn terms(&self, asked: Xdp) -> Terms {
        Terms { asked, program: self.take() }
    }

    /// One that nobody has; else a new one, and another for an uplink that is to take this one's place: later there may be none
    /// to be had.
    fn take(&self) -> Result<Arc<Program>, String> {
        let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = programs.iter().find(|program| Arc::strong_count(program) == 1) {
            return Ok(free.clone());
        }
        let load = || Program::load().map(Arc::new);
        let new = load().map_err(|error| why_not(&error))?;
        programs.push(new.clone());
        programs.extend(load());
        Ok(new)
    }
}

/// Why there is no program.
fn why_not(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "it takes root, or CAP_BPF and CAP_NET_ADMIN",
        _ => {
            "the kernel has no bpf(2), or this host has given it up: a host that starts with such an uplink loads it"
        }
    };
    format!("AF_XDP's program cannot be loaded: {error}; {remedy}")
}

/// How an interface is to be attached to.
#[derive(Debug, Clone)]
pub(in crate::port::engine::uplink) struct Terms {
    pub(super) asked: Xdp,
    /// The program, or why there is none.
    pub(super) program: Result<Arc<Program>, String>,
}
