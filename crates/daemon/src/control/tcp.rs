//! Control interface over TCP: its socket, which a successor process takes over, and the token that clients must send.
//! `server` serves the interface.

use crate::config::http::HttpConfig;
use crate::vault::FileDescriptorStore;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// Reason why there is no control interface over TCP.
#[derive(Debug, Error)]
pub(crate) enum HttpSetupError {
    /// The address for HTTP over TCP is not available.
    #[error(
        "cannot listen on {address} (setting http.listen): {source}; choose another port, or find the process that \
         has this one with `ss -ltnp`"
    )]
    Listen {
        /// Address to listen at for HTTP over TCP.
        address: SocketAddr,
        /// Error from the kernel when listening at the address.
        source: io::Error,
    },
    /// The file with the HTTP token cannot be read, or is not safe.
    #[error("cannot use the token file {} (setting http.token_file): {problem}", path.display())]
    Token {
        /// Path of the file with the HTTP token.
        path: PathBuf,
        /// Problem of the token file, and its remedy.
        problem: String,
    },
}

/// Name of the listening TCP socket in the file descriptor store, by which the successor process finds the socket.
const NAME: &str = "http";
/// Characters of the shortest accepted HTTP token.
const SHORTEST: usize = 16;
/// Maximum bytes that are read from the token file.
const LONGEST: u64 = 4096;

/// Token that HTTP clients over TCP must send.
#[derive(Clone)]
pub(crate) struct BearerToken(String);

/// Writes a text in place of the token, so that no log shows the token.
impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl BearerToken {
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn read(path: &Path) -> Result<Self, HttpSetupError> {
        let wrong = |problem: String| HttpSetupError::Token { path: path.to_owned(), problem };
        let failed = |error: io::Error| {
            wrong(format!(
                "{error}; create the file with: (umask 077; head -c 24 /dev/urandom | base64 > {})",
                path.display()
            ))
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o007 != 0 {
            return Err(wrong(format!("every user can open the file; run: chmod o= {}", path.display())));
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
        let token = text.trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem =
                format!("the file must contain one word of at least {SHORTEST} printable characters");
            return Err(wrong(problem));
        }
        Ok(Self(token.to_owned()))
    }

    /// Returns true if a client has sent this token. The comparison takes constant time, so that its duration reveals
    /// no part of the token.
    pub(crate) fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

/// Opens the TCP socket of the control interface, the previous host process's or a new one, and reads the token.
/// Returns `None` if the configuration has no address. Leaves the file descriptor store unchanged, because the
/// predecessor may still resume; [`settle`] changes the store.
pub(crate) fn open(
    http: Option<&HttpConfig>,
    vault: &FileDescriptorStore,
) -> Result<Option<(TcpListener, BearerToken)>, HttpSetupError> {
    let Some(HttpConfig { listen, token_file }) = http else { return Ok(None) };
    let token = BearerToken::read(token_file)?;
    let failed = |source| HttpSetupError::Listen { address: *listen, source };
    let listener = match kept(vault, *listen) {
        Some(listener) => listener,
        None => TcpListener::bind(listen).map_err(failed)?,
    };
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(Some((listener, token)))
}

/// Returns the TCP socket in the file descriptor store, if the socket listens at `address`.
fn kept(vault: &FileDescriptorStore, address: SocketAddr) -> Option<TcpListener> {
    let listener = vault.copy(NAME).map(TcpListener::from)?;
    listener.local_addr().is_ok_and(|kept| kept == address).then_some(listener)
}

/// Makes the file descriptor store hold the TCP socket that this process serves, and no other. Clients of an abandoned
/// socket would wait without an answer.
///
/// # Errors
/// The process is out of descriptors.
pub(crate) fn settle(served: Option<&TcpListener>, vault: &FileDescriptorStore) -> io::Result<()> {
    let Some(listener) = served else {
        forget(vault);
        return Ok(());
    };
    if kept(vault, listener.local_addr()?).is_some() {
        return Ok(());
    }
    vault.keep(NAME, listener.as_fd())
}

/// Removes the TCP socket from the file descriptor store, so that the successor process opens its own.
pub(crate) fn forget(vault: &FileDescriptorStore) {
    vault.forget(NAME);
}

#[cfg(test)]
mod tests {
    use super::{BearerToken, open, settle};
    use crate::config::http::HttpConfig;
    use crate::vault::FileDescriptorStore;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tcp_token_must_be_long_and_its_file_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |text: &str, mode| {
            write(&file, text).unwrap();
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            BearerToken::read(&file).map_err(|error| error.to_string())
        };
        let token = read("0123456789abcdef\n", 0o600).unwrap();
        assert!(token.is("0123456789abcdef") && !token.is("0123456789abcdee") && !token.is("0123"));
        assert_eq!(format!("{token:?}"), "Token");
        for (text, mode, says) in [
            ("0123456789abcdef", 0o604, "chmod o="),
            ("short", 0o600, "16 printable"),
            ("0123456789 abcdef", 0o600, "one word"),
        ] {
            let error = read(text, mode).unwrap_err();
            assert!(error.contains(says) && error.contains("http.token_file"), "{error}");
        }
        let missing = BearerToken::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("create the file with"), "{missing}");
    }

    #[test]
    fn next_process_inherits_the_tcp_socket() {
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        write(&token_file, "0123456789abcdef").unwrap();
        set_permissions(&token_file, Permissions::from_mode(0o600)).unwrap();
        let listen = host::test_support::free_address();
        let (http, vault) = (HttpConfig { listen, token_file }, FileDescriptorStore::default());
        let (first, _) = open(Some(&http), &vault).unwrap().unwrap();
        assert!(vault.copy("http").is_none(), "open leaves the vault unchanged");
        settle(Some(&first), &vault).unwrap();
        let waiting = std::net::TcpStream::connect(listen).unwrap();
        drop(first);
        let (second, _) = open(Some(&http), &vault).unwrap().unwrap();
        assert_eq!(second.accept().unwrap().1, waiting.local_addr().unwrap(), "the pending client is lost");
        drop(second);
        assert!(open(None, &vault).unwrap().is_none() && vault.copy("http").is_some());
        settle(None, &vault).unwrap();
        assert!(vault.copy("http").is_none());
    }
}
