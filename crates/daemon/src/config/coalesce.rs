//! Check of the configuration keys `gro`, `rx_usecs` and `tx_usecs`, by which a virtio port joins frames and interrupts.

use super::file::{CardFamily, PortConfigKeys};
use super::{ConfigError, value};

/// Maximum delay of an interrupt in microseconds, far below the timeouts of guests.
const MOST: u32 = 10_000;

/// Joining of frames and interrupts on a virtio port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoalescingConfig {
    /// True if TCP segments are joined for guests that take unsegmented packets.
    pub gro: bool,
    /// Least time between two interrupts of a receive ring in microseconds.
    pub rx_usecs: u32,
    /// Least time between two interrupts of a transmit ring in microseconds.
    pub tx_usecs: u32,
}

/// Returns the joining of frames and interrupts on a port.
pub(super) fn check(port: &PortConfigKeys, name: &str) -> Result<CoalescingConfig, ConfigError> {
    let is_long = |micros: Option<u32>| micros.is_some_and(|micros| micros > 0);
    // The defaults change nothing on a port of any family.
    let given = [
        ("gro", port.gro == Some(true)),
        ("rx_usecs", is_long(port.rx_usecs)),
        ("tx_usecs", is_long(port.tx_usecs)),
    ];
    let mut families = port.vf.iter().filter_map(|vf| vf.place.family).chain([port.family]);
    let has_virtio = families.any(|family| family == CardFamily::Virtio);
    if let Some((key, _)) = given.iter().find(|(_, given)| *given && !has_virtio) {
        let family = port.family.name();
        let why = format!(
            "guests of a port of family \"{family}\" set this with ethtool; leave {key} out, or use family = \"virtio\""
        );
        return Err(value(format!("{name}.{key}"), why));
    }
    for (key, micros) in [("rx_usecs", port.rx_usecs), ("tx_usecs", port.tx_usecs)] {
        if let Some(micros) = micros.filter(|micros| *micros > MOST) {
            return Err(value(format!("{name}.{key}"), format!("{micros} is not 0 to {MOST} microseconds")));
        }
    }
    Ok(CoalescingConfig {
        gro: port.gro.unwrap_or(false),
        rx_usecs: port.rx_usecs.unwrap_or(0),
        tx_usecs: port.tx_usecs.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::CoalescingConfig;
    use crate::config::tests::{check, refused};

    #[test]
    fn virtio_port_joins_as_configured() {
        let lines = "[[port]]\nfamily = \"virtio\"\ngro = true\nrx_usecs = 50\ntx_usecs = 10000\n[[port]]";
        let config = check(lines).unwrap();
        let found: Vec<_> = config.ports.iter().map(|port| port.coalescing).collect();
        let own = CoalescingConfig { gro: true, rx_usecs: 50, tx_usecs: 10_000 };
        assert_eq!(found, [own, CoalescingConfig { gro: false, rx_usecs: 0, tx_usecs: 0 }]);
    }

    #[test]
    fn port_of_another_family_joins_for_its_virtio_vfs() {
        let virtio = "vf = [{ index = 1, family = \"virtio\" }]";
        let config = check(&format!("[[port]]\nfamily = \"avf\"\ngro = true\n{virtio}")).unwrap();
        assert!(config.ports[0].coalescing.gro);
    }

    #[test]
    fn long_delays_and_other_families_are_refused() {
        for (lines, expected) in [
            ("family = \"virtio\"\nrx_usecs = 10001", ["pf0.rx_usecs", "10001 is not 0 to 10000"]),
            ("family = \"avf\"\ntx_usecs = 5", ["pf0.tx_usecs", "ethtool; leave tx_usecs out"]),
            ("gro = true", ["pf0.gro", "leave gro out"]),
        ] {
            let problem = refused(&format!("[[port]]\n{lines}"));
            assert!(expected.iter().all(|part| problem.contains(part)), "{problem}");
        }
    }
}
