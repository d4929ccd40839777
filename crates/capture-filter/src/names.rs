//! Looks up numbers of protocols and ports by name in the texts of the system's tables.

use alloc::string::String;

/// Texts of `/etc/services` and `/etc/protocols`, in which names are looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameDatabases {
    services: String,
    protocols: String,
}

/// Ports of a service, by transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServicePorts {
    pub(crate) tcp: Option<u16>,
    pub(crate) udp: Option<u16>,
}

impl NameDatabases {
    /// Creates the tables of names from the texts of both files. An empty text is a table without names.
    #[must_use]
    pub fn new(services: impl Into<String>, protocols: impl Into<String>) -> Self {
        Self { services: services.into(), protocols: protocols.into() }
    }

    /// Returns the ports of a service, or `None` if the table does not have it.
    pub(crate) fn service(&self, name: &str) -> Option<ServicePorts> {
        let port = |transport: &str| {
            entries(&self.services, name).find_map(|number| {
                let (port, found) = number.split_once('/')?;
                (found == transport).then(|| port.parse().ok())?
            })
        };
        let service = ServicePorts { tcp: port("tcp"), udp: port("udp") };
        (service.tcp.is_some() || service.udp.is_some()).then_some(service)
    }

    /// Returns the number of an IP protocol, or `None` if the table does not have it.
    pub(crate) fn protocol(&self, name: &str) -> Option<u32> {
        entries(&self.protocols, name).find_map(|number| number.parse().ok())
    }
}

/// Returns the second field (the number) of each line of `table` that has `name` as its first field or as an
/// alias.
fn entries<'a>(table: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    table.lines().filter_map(move |line| {
        let mut fields = line.split('#').next()?.split_whitespace();
        let (first, number) = (fields.next()?, fields.next()?);
        (first == name || fields.any(|alias| alias == name)).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_names_are_read_from_etc_services_without_comments() {
        let services = "# http 1/tcp\nhttp 80/tcp www # web\ndomain 53/tcp\ndomain\t53/udp\nsyslog 514/udp\n";
        let names = NameDatabases::new(services, "icmp 1 ICMP\nipv6-icmp 58 IPv6-ICMP\n");
        let found = |name| names.service(name).map(|service| (service.tcp, service.udp));
        assert_eq!(found("www"), Some((Some(80), None)));
        assert_eq!(found("domain"), Some((Some(53), Some(53))));
        assert_eq!(found("syslog"), Some((None, Some(514))));
        assert_eq!([found("web"), found("80/tcp"), found("ssh")], [None; 3]);
        assert_eq!(
            ["icmp", "ICMP", "IPv6-ICMP", "tcp"].map(|name| names.protocol(name)),
            [Some(1), Some(1), Some(58), None]
        );
    }
}
