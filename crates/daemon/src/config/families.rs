//! Check of the keys `family` of a port and of its VFs. A port with VFs of several families has a card for each, on one
//! switch.

use super::check::{ConfigError, value};
use super::file::{CardFamily, DoorbellMode, PfAssignment, PortConfigKeys, SocketRole, VfConfigKeys};
use pcie::VfIndex;

/// Refuses keys of a port that its card family does not support, and families that cannot be on one port. `resolve` checks
/// the settings, which commands can change as well.
pub(super) fn check(name: &str, port: &PortConfigKeys) -> Result<(), ConfigError> {
    let family = port.family.name();
    if port.family != CardFamily::I82576 && port.pf == PfAssignment::Guest {
        let why = format!(
            "family = \"{family}\" has no PF that a guest could drive; leave pf out, or use family = \"82576\""
        );
        return Err(value(format!("{name}.pf"), why));
    }
    let all_virtio = port.family == CardFamily::Virtio && port.vf.iter().all(|vf| is_of(vf, port.family));
    if all_virtio && port.wait == DoorbellMode::Mapped {
        let why = "family = \"virtio\" has no doorbells in memory, because its guests notify by eventfd; leave wait \
                   out, or use wait = \"busy\", or use family = \"avf\"";
        return Err(value(format!("{name}.wait"), why));
    }
    check_socket_mode(name, port.family, port.socket_mode)?;
    port.vf.iter().try_for_each(|vf| check_vf(name, port, vf))
}

/// Returns true if a VF is of the port's family.
fn is_of(vf: &VfConfigKeys, family: CardFamily) -> bool {
    vf.place.family.is_none_or(|own| own == family)
}

/// Refuses a VF whose family cannot be on the port.
fn check_vf(name: &str, port: &PortConfigKeys, vf: &VfConfigKeys) -> Result<(), ConfigError> {
    let Some(own) = vf.place.family.filter(|own| *own != port.family) else { return Ok(()) };
    let vf = VfIndex::of_field(vf.place.index.into());
    let (key, own_name, family) = (format!("{name}{vf}.family"), own.name(), port.family.name());
    if [own, port.family].contains(&CardFamily::I82576) {
        let why = format!(
            "\"{own_name}\" cannot be on a port with family = \"{family}\", because the 82576 shares its port with no other \
             family; use \"avf\" and \"virtio\" together, or add a port"
        );
        return Err(value(key, why));
    }
    for (key, given) in [
        ("workers", port.workers.is_some_and(|workers| workers > 1)),
        ("dispatcher", port.dispatcher.is_some()),
    ] {
        if given {
            let why = format!(
                "{name}{vf} is of the family \"{own_name}\", the port of \"{family}\", and a port with several families runs \
                 on one thread; leave {key} out, or add a port"
            );
            return Err(value(format!("{name}.{key}"), why));
        }
    }
    Ok(())
}

/// Refuses a role of the host at a socket that the card family does not have. `owner` names the port or VF.
pub(super) fn check_socket_mode(
    owner: &str,
    family: CardFamily,
    mode: Option<SocketRole>,
) -> Result<(), ConfigError> {
    if family == CardFamily::Virtio || mode != Some(SocketRole::Client) {
        return Ok(());
    }
    let why = format!(
        "\"client\" needs family = \"virtio\": with family = \"{}\" the VMM connects by vfio-user; leave socket_mode out, or \
         use family = \"virtio\"",
        family.name()
    );
    Err(value(format!("{owner}.socket_mode"), why))
}

#[cfg(test)]
mod tests {
    use crate::config::file::{CardFamily, SocketRole};
    use crate::config::tests::{check, refused};

    #[test]
    fn vfs_of_a_port_may_be_of_two_families() {
        for (port, own) in [(CardFamily::Avf, CardFamily::Virtio), (CardFamily::Virtio, CardFamily::Avf)] {
            let (name, other) = (port.name(), own.name());
            let text = format!(
                "[[port]]\nfamily = \"{name}\"\nvfs = 64\nvf = [{{ index = 2, family = \"{other}\" }}]"
            );
            let config = check(&text).unwrap();
            let port = &config.ports[0];
            assert!(port.is_mixed() && port.has_family(own));
            assert_eq!(port.families()[..4], [port.family, port.family, own, port.family]);
        }
        let same = check("[[port]]\nfamily = \"avf\"\nvf = [{ index = 2, family = \"avf\" }]").unwrap();
        assert!(!same.ports[0].is_mixed());
    }

    #[test]
    fn families_that_cannot_share_a_port_are_refused() {
        let vf = |family: &str| format!("vf = [{{ index = 2, family = \"{family}\" }}]");
        for (lines, expected) in [
            (vf("virtio"), ["pf0vf2.family", "\"virtio\" cannot be on a port with family = \"82576\""]),
            (format!("family = \"avf\"\n{}", vf("82576")), ["pf0vf2.family", "or add a port"]),
            (
                format!("family = \"virtio\"\nworkers = 2\n{}", vf("avf")),
                ["pf0.workers", "pf0vf2 is of the family \"avf\""],
            ),
            (
                format!("family = \"virtio\"\ndispatcher = \"off\"\n{}", vf("avf")),
                ["pf0.dispatcher", "leave dispatcher out"],
            ),
            (format!("family = \"virtio\"\nvfs = 65\n{}", vf("avf")), ["pf0.vfs", "1-64"]),
        ] {
            let problem = refused(&format!("[[port]]\n{lines}"));
            assert!(expected.iter().all(|part| problem.contains(part)), "{problem}");
        }
    }

    #[test]
    fn settings_are_checked_against_the_vfs_own_family() {
        let port = "[[port]]\nfamily = \"avf\"\n";
        let low = check(&format!("{port}vf = [{{ index = 1, family = \"virtio\", max_mtu = 100 }}]"));
        assert!(low.is_ok(), "the smallest MTU of an AVF VF is larger");
        let problem = refused(&format!("{port}vf = [{{ index = 1, max_mtu = 100 }}]"));
        assert!(problem.contains("pf0vf1"), "{problem}");
    }

    #[test]
    fn host_connects_to_vmms_of_virtio_vfs_only() {
        let config = check(
            "[[port]]\nfamily = \"virtio\"\nsocket_mode = \"client\"\nvf = [{ index = 1, family = \"avf\" }]",
        );
        let roles: Vec<_> = config.unwrap().ports[0].vfs.iter().take(2).map(|vf| vf.socket_mode).collect();
        assert_eq!(roles, [SocketRole::Client, SocketRole::Server]);
        let own = "vf = [{ index = 1, family = \"avf\", socket_mode = \"client\" }]";
        let problem = refused(&format!("[[port]]\nfamily = \"virtio\"\n{own}"));
        assert!(problem.contains("pf0vf1.socket_mode"), "{problem}");
    }

    #[test]
    fn port_with_avf_vfs_may_have_doorbells_in_memory() {
        let port = "[[port]]\nfamily = \"virtio\"\nwait = \"mapped\"\n";
        assert!(check(&format!("{port}vf = [{{ index = 1, family = \"avf\" }}]")).is_ok());
        assert!(refused(port).contains("pf0.wait"));
    }
}
