//! Access to listening sockets that the previous host process has left.

use host::socket::{SocketFilePermissions, SocketListener};

/// Gives a listening socket the access that the configuration grants now. Call it once no other process serves the socket. A
/// failure is logged: guests need their VFs more than new users do.
pub(crate) fn renew(listener: &SocketListener, access: SocketFilePermissions) {
    if let Err(error) = listener.set_access(access) {
        tracing::error!(
            %error,
            "a socket does not have the configured access; only the host's user may connect, or the former users if the host \
             may not change the file or the file has several links: correct the problem, and upgrade or restart the host"
        );
    }
}
