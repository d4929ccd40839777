//! Macvtap: a tap whose other end is an interface, `eth1` for example, instead of this machine's network stack. An
//! administrator creates the macvtap, and the kernel gives it a device file, `/dev/tapN` with the interface index.
//!
//! A file of that name may be missing in a container, or belong to an interface of another network namespace with
//! the same index. So name and Ethernet address of the interface behind it are checked after opening.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use super::{InterfaceName, Tap, TapError, control, request, system};

impl Tap {
    /// Attaches to the macvtap of this name. Returns `None` if the calling thread's network namespace has no such
    /// interface. Needs no privilege but access to the device file.
    ///
    /// # Errors
    /// See [`TapError`].
    pub fn open_macvtap(name: &InterfaceName) -> Result<Option<Self>, TapError> {
        let control = control(name)?;
        let index = match name_to_index(&control, name.as_str()) {
            Ok(index) => index,
            Err(Errno::NODEV) => return Ok(None),
            Err(errno) => return Err(system(name, "read the properties of")(errno)),
        };
        let path = device_file(index);
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(&path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => {
                TapError::NoDeviceFile { name: name.clone(), path: path.clone() }
            }
            Errno::ACCESS | Errno::PERM => TapError::NoFileAccess { path: path.clone() },
            other => system(name, "open")(other),
        })?;
        let tap = Self::attach(fd, name)?;
        let named = tap.attachment().is_ok_and(|attachment| attachment.name == name.as_str());
        let wanted = request::address(&control, name).map_err(system(name, "read the properties of"))?;
        if named && request::address(&tap.fd, name) == Ok(wanted) {
            Ok(Some(tap))
        } else {
            Err(TapError::NoDeviceFile { name: name.clone(), path })
        }
    }

    /// Returns the path of the macvtap's device file in the calling thread's network namespace.
    #[must_use]
    pub fn macvtap_file(name: &InterfaceName) -> Option<String> {
        name_to_index(control(name).ok()?, name.as_str()).ok().map(device_file)
    }
}

fn device_file(index: u32) -> String {
    format!("/dev/tap{index}")
}
