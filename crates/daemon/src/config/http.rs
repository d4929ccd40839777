//! Configuration table `http`: the control interface over TCP on this machine, for a browser and for Prometheus.
//!
//! `control::tcp` reads the token and opens the socket.

use super::{ConfigError, absolute_path, value};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Keys of the configuration table `http`: the control interface over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfigKeys {
    /// Address and port of the control interface over TCP, such as "127.0.0.1:9582". It must be a loopback address,
    /// which other machines cannot reach. Default: none, so no TCP.
    pub listen: Option<String>,
    /// Path of the file with the token that clients over TCP must send.
    pub token_file: Option<PathBuf>,
}

/// Checked configuration of the control interface over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address and port at which the host listens.
    pub listen: SocketAddr,
    /// Path of the file with the token that clients must send.
    pub token_file: PathBuf,
}

pub(super) fn check(keys: &HttpConfigKeys) -> Result<Option<HttpConfig>, ConfigError> {
    let Some(text) = &keys.listen else {
        return match keys.token_file {
            Some(_) => Err(value("http.token_file", "needs http.listen too, such as \"127.0.0.1:9582\"")),
            None => Ok(None),
        };
    };
    let Ok(listen) = text.parse::<SocketAddr>() else {
        let problem = format!(
            "{text:?} is not an address with a port; write an address such as \"127.0.0.1:9582\" or \
             \"[::1]:9582\""
        );
        return Err(value("http.listen", problem));
    };
    if !listen.ip().is_loopback() {
        let problem = format!(
            "{listen} can be reached from other machines, without encryption; listen on 127.0.0.1 or [::1], and let other \
             machines connect through a proxy with TLS or through ssh -L"
        );
        return Err(value("http.listen", problem));
    }
    let Some(token_file) = keys.token_file.clone() else {
        let problem = "is missing, so every user of this machine could connect; name a file with a token that only \
                       the host's user can read";
        return Err(value("http.token_file", problem));
    };
    let token_file = absolute_path(&token_file, "http.token_file")?;
    Ok(Some(HttpConfig { listen, token_file }))
}

#[cfg(test)]
mod tests {
    use super::{HttpConfigKeys, check};

    fn keys(listen: &str, token_file: Option<&str>) -> HttpConfigKeys {
        HttpConfigKeys { listen: Some(listen.into()), token_file: token_file.map(Into::into) }
    }

    #[test]
    fn http_accepts_only_loopback_addresses() {
        assert_eq!(check(&HttpConfigKeys::default()).unwrap(), None);
        for address in ["127.0.0.1:9582", "127.8.8.8:1", "[::1]:9582"] {
            let http = check(&keys(address, Some("/etc/token"))).unwrap().unwrap();
            assert_eq!(http.listen.to_string(), address);
        }
        for address in ["0.0.0.0:9582", "[::]:9582", "192.0.2.1:80", "[2001:db8::1]:80"] {
            let error = check(&keys(address, Some("/etc/token"))).unwrap_err().to_string();
            assert!(error.contains("http.listen") && error.contains("127.0.0.1"), "{error}");
        }
    }

    #[test]
    fn http_over_tcp_requires_a_token() {
        let error = check(&keys("127.0.0.1:9582", None)).unwrap_err().to_string();
        assert!(error.contains("http.token_file") && error.contains("name a file with a token"), "{error}");
        assert!(check(&keys("127.0.0.1:9582", Some("token"))).is_err(), "it has to be absolute");
        assert!(check(&keys("localhost", Some("/etc/token"))).is_err());
        assert!(check(&HttpConfigKeys { listen: None, token_file: Some("/etc/token".into()) }).is_err());
    }
}
