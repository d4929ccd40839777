//! Questions to the kernel about the interface that the watcher watches.

use crate::port::engine::uplink::addresses::ParentInterface;
use crate::port::engine::uplink::device::UplinkDevice;
use crate::port::engine::uplink::state::InterfaceState;
use host::links::{LinkMonitor, LinkNotifications, NetworkLinkState};
use std::io;

/// Kernel's view of the network interfaces of one namespace, which a test replaces.
pub(super) trait InterfaceLinks {
    /// Reads pending notifications about interfaces. `related` returns true for an interface of interest, given its index
    /// and name.
    fn hear(&mut self, related: impl FnMut(u32, &str) -> bool) -> io::Result<LinkNotifications>;

    /// Requests the present state of an interface. Returns `None` if no interface has the name.
    fn look_up(&mut self, name: &str) -> io::Result<Option<NetworkLinkState>>;

    /// Returns the inode of the network namespace.
    fn namespace(&self) -> u64;
}

impl InterfaceLinks for LinkMonitor {
    fn hear(&mut self, related: impl FnMut(u32, &str) -> bool) -> io::Result<LinkNotifications> {
        self.hear(related)
    }

    fn look_up(&mut self, name: &str) -> io::Result<Option<NetworkLinkState>> {
        self.look_up(name)
    }

    fn namespace(&self) -> u64 {
        self.namespace()
    }
}

/// Returns the present state of the device's interface, or `None` if it was deleted. Sets `index` to the interface's index in the
/// host's network namespace. In another one, the interface keeps its last index in the host's, or 0 if it has none.
pub(super) fn state_of<D: UplinkDevice>(
    device: &D,
    index: &mut Option<u32>,
    links: &mut impl InterfaceLinks,
) -> Option<io::Result<InterfaceState>> {
    let interface = device.interface()?;
    let answers = links.look_up(&interface).and_then(|found| {
        let is_here = found.as_ref().map_or(Ok(None), |_| device.is_here())?;
        Ok((found, is_here))
    });
    let (found, is_here) = match answers {
        Ok(answers) => answers,
        Err(error) => return Some(Err(error)),
    };
    // While a device that follows its interface is in another namespace, a different interface may have its name and its index. It
    // may return with another index.
    let is_known = |link: &NetworkLinkState| index.is_none_or(|index| index == link.index);
    let found = found.filter(|link| is_here.unwrap_or_else(|| is_known(link)));
    *index = Some(found.as_ref().map_or(index.unwrap_or(0), |link| link.index));
    Some(Ok(match found {
        Some(link) => {
            let parent = ParentInterface { namespace: links.namespace(), index: link.parent };
            let (carrier, mtu) = (Some(link.carrier), Some(link.mtu));
            InterfaceState { interface, up: link.up, carrier, mtu, parent: Some(parent) }
        }
        None => InterfaceState::unknown(interface, device.is_up_elsewhere()),
    }))
}
