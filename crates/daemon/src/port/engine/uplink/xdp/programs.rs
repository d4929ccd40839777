//! XDP programs of AF_XDP uplinks, loaded while the host starts.

use crate::config::uplink::XdpMode;
use host::xdp::XdpProgram;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Loaded XDP programs of the host. One uplink uses each program at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct XdpPrograms(Arc<Mutex<Vec<Arc<XdpProgram>>>>);

impl XdpPrograms {
    /// Returns the parameters for attaching an uplink to an interface by AF_XDP, with an unused program.
    pub(in crate::port::engine::uplink) fn terms(&self, asked: XdpMode) -> XdpAttachOptions {
        XdpAttachOptions { asked, program: self.take() }
    }

    /// Returns an unused XDP program, or loads one. Also loads a spare program for a later uplink, since loading may
    /// not be permitted later.
    fn take(&self) -> Result<Arc<XdpProgram>, String> {
        let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = programs.iter().find(|program| Arc::strong_count(program) == 1) {
            return Ok(free.clone());
        }
        let load = || XdpProgram::load().map(Arc::new);
        let new = load().map_err(|error| why_not(&error))?;
        programs.push(new.clone());
        programs.extend(load());
        Ok(new)
    }
}

/// Returns the reason why XDP programs cannot be loaded, with its remedy.
fn why_not(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "the host needs root, or CAP_BPF and CAP_NET_ADMIN",
        _ => {
            "the kernel has no bpf(2), or the host gave up bpf(2) at its start; restart the host with an \
             AF_XDP uplink in its configuration"
        }
    };
    format!("cannot load the XDP program: {error}; {remedy}")
}

/// Parameters for attaching an uplink to an interface by AF_XDP.
#[derive(Debug, Clone)]
pub(in crate::port::engine::uplink) struct XdpAttachOptions {
    pub(super) asked: XdpMode,
    /// Loaded XDP program, or the reason why there is none.
    pub(super) program: Result<Arc<XdpProgram>, String>,
}
