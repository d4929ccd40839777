//! Checks the functions' sockets: they exist, and VMMs of other users may connect.

use super::finding::DoctorFinding;
use daemon::config::file::SocketRole;
use daemon::control::status::PortStatus;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const CHECK: &str = "socket";
/// Users as which libvirt runs QEMU: on Debian and Ubuntu, and on Fedora.
const VMMS: [&str; 2] = ["libvirt-qemu", "qemu"];

/// Owner, group and mode of a socket or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketFileRights {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
}

/// User of this machine with all of the user's groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserAccount {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gids: Vec<u32>,
}

impl UserAccount {
    /// Returns those of the users [`VMMS`], as which libvirt runs QEMU, that this machine has.
    pub(super) fn vmms() -> Vec<Self> {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let (passwd, group) = (text("/etc/passwd"), text("/etc/group"));
        VMMS.iter().filter_map(|name| Self::find(name, &passwd, &group)).collect()
    }

    /// Finds a user in lines `name:x:uid:gid:...` (passwd) and `name:x:gid:member,member` (group).
    pub(super) fn find(name: &str, passwd: &str, group: &str) -> Option<Self> {
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let line = passwd.lines().map(fields).find(|fields| fields[0] == name)?;
        let mut gids = vec![line.get(3)?.parse().ok()?];
        let member =
            |fields: &Vec<String>| fields.get(3)?.split(',').find(|member| *member == name).map(drop);
        let of = |fields: &Vec<String>| member(fields).and_then(|()| fields[2].parse::<u32>().ok());
        gids.extend(group.lines().map(fields).filter_map(|fields| of(&fields)));
        Some(Self { name: name.to_owned(), uid: line.get(2)?.parse().ok()?, gids })
    }

    /// Returns true if the user has a right: 4 (read), 2 (write) or 1 (search). The first class that matches decides.
    pub(super) fn may(&self, right: u32, SocketFileRights { uid, gid, mode }: SocketFileRights) -> bool {
        let shift = match () {
            () if self.uid == uid => 6,
            () if self.gids.contains(&gid) => 3,
            () => 0,
        };
        self.uid == 0 || mode >> shift & right == right
    }
}

/// Checks the socket of each function for which the host listens, with the directories above it, and the folder of each socket
/// on which a VMM is to listen.
pub(super) fn check(ports: &[PortStatus]) -> Vec<DoctorFinding> {
    let vmms = UserAccount::vmms();
    let vfs = ports.iter().flat_map(|port| port.vfs.iter().map(|vf| (vf.name.as_str(), &vf.function)));
    let pfs = ports.iter().filter_map(|port| Some((port.name.as_str(), port.pf.as_ref()?)));
    let (servers, clients): (Vec<_>, Vec<_>) =
        pfs.chain(vfs).partition(|(_, function)| function.socket_mode == SocketRole::Server);
    let sockets: Vec<_> =
        servers.into_iter().map(|(name, function)| (name, path_rights(&function.socket))).collect();
    let mut findings = judge(&sockets, &vmms);
    for (name, function) in clients.into_iter().filter(|(_, function)| function.peer.is_none()) {
        let folder = function.socket.parent().unwrap_or(Path::new("/"));
        findings.extend(judge_folder(name, folder, path_rights(folder), &vmms));
    }
    findings
}

/// Returns a finding about the folder in which a VMM creates its socket, if the folder is missing, or none of `vmms` may
/// create a file there.
fn judge_folder(
    name: &str,
    folder: &Path,
    rights: io::Result<Vec<SocketFileRights>>,
    vmms: &[UserAccount],
) -> Option<DoctorFinding> {
    let path = folder.display();
    let rights = match rights {
        Ok(rights) => rights,
        Err(error) => {
            let seen = format!("{name}: cannot inspect folder {path} of the VMM's socket: {error}");
            let remedy =
                "restart the host if the folder was removed; otherwise run this command as the host's user";
            return Some(DoctorFinding::problem(CHECK, seen, remedy));
        }
    };
    let (own, above) = rights.split_first()?;
    let may = |vmm: &UserAccount| vmm.may(3, *own) && above.iter().all(|folder| vmm.may(1, *folder));
    let vmm = vmms.first().filter(|_| !vmms.iter().any(may))?;
    let UserAccount { name: user, .. } = vmm;
    let seen =
        format!("{name}: {user}, the user of libvirt's QEMU, may not create the VMM's socket in {path}");
    // The host changes the rights of no folder that exists.
    let remedy = format!(
        "if {user} runs the VMM, give that user the folder (chown {user} {path}) and let all users search the directories \
         above (chmod o+x)"
    );
    Some(DoctorFinding::warning(CHECK, seen, remedy))
}

/// Returns owner, group and mode of a socket, and of each directory above it.
fn path_rights(socket: &Path) -> io::Result<Vec<SocketFileRights>> {
    let rights = |path: &Path| {
        let file = fs::metadata(path)?;
        Ok(SocketFileRights { uid: file.uid(), gid: file.gid(), mode: file.permissions().mode() })
    };
    socket.ancestors().map(rights).collect()
}

pub(super) fn judge(
    sockets: &[(&str, io::Result<Vec<SocketFileRights>>)],
    vmms: &[UserAccount],
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, rights) in sockets {
        if let Err(error) = rights {
            let seen = format!("{name}: cannot inspect the socket: {error}");
            let remedy =
                "restart the host if the socket was removed; otherwise run this command as the host's user";
            findings.push(DoctorFinding::problem(CHECK, seen, remedy));
        }
    }
    for vmm in vmms {
        let shut = |rights: &[SocketFileRights]| {
            let (socket, folders) = rights.split_first()?;
            (!vmm.may(2, *socket) || folders.iter().any(|folder| !vmm.may(1, *folder))).then_some(())
        };
        let shut: Vec<&str> = sockets
            .iter()
            .filter_map(|(name, rights)| rights.as_ref().ok().and_then(|rights| shut(rights)).map(|()| *name))
            .collect();
        let UserAccount { name, gids, .. } = vmm;
        if sockets.is_empty() {
            continue;
        }
        if shut.is_empty() {
            findings.push(DoctorFinding::ok(CHECK, format!("{name} may connect to every function")));
        } else {
            let seen = format!("{name}, the user of libvirt's QEMU, may not connect to {}", shut.join(", "));
            let remedy = format!(
                "to admit the user, set access = {{ group = {} }} in the configuration, and let all users search the \
                      directories (chmod o+x)",
                gids[0]
            );
            findings.push(DoctorFinding::warning(CHECK, seen, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::DoctorVerdict;
    use super::{SocketFileRights, UserAccount, judge, judge_folder};
    use std::io;
    use std::path::Path;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nlibvirt-qemu:x:64055:102:Libvirt Qemu:/:/bin/false\n";
    const GROUP: &str = "kvm:x:102:\nlibvirt-qemu:x:64055:libvirt-qemu\nvideo:x:44:ann,bob\n";

    fn vmm() -> UserAccount {
        UserAccount::find("libvirt-qemu", PASSWD, GROUP).unwrap()
    }

    fn rights(uid: u32, gid: u32, mode: u32) -> SocketFileRights {
        SocketFileRights { uid, gid, mode }
    }

    #[test]
    fn user_has_the_groups_of_etc_passwd_and_etc_group() {
        assert_eq!(vmm().gids, [102, 64055]);
        assert_eq!(UserAccount::find("qemu", PASSWD, GROUP), None);
        assert_eq!(UserAccount::find("broken", "broken:x", ""), None);
    }

    #[test]
    fn first_matching_permission_class_decides_socket_access() {
        assert!(vmm().may(2, rights(0, 102, 0o660)));
        assert!(!vmm().may(2, rights(0, 0, 0o660)));
        assert!(!vmm().may(2, rights(64055, 102, 0o066)), "the owner's own right counts");
        assert!(vmm().may(1, rights(0, 0, 0o711)));
    }

    #[test]
    fn doctor_reports_folders_closed_to_a_vmm() {
        let above = rights(0, 0, 0o755);
        let verdict = |rights| {
            let finding = judge_folder("pf0vf0", Path::new("/run/vms"), rights, &[vmm()]);
            finding.map(|finding| finding.verdict)
        };
        assert_eq!(verdict(Ok(vec![rights(64055, 0, 0o711), above])), None);
        assert_eq!(verdict(Ok(vec![rights(0, 102, 0o3771), above])), None);
        assert_eq!(verdict(Ok(vec![rights(0, 0, 0o755), above])), Some(DoctorVerdict::Warning));
        assert_eq!(
            verdict(Ok(vec![rights(64055, 0, 0o711), rights(0, 0, 0o700)])),
            Some(DoctorVerdict::Warning)
        );
        assert_eq!(verdict(Err(io::ErrorKind::NotFound.into())), Some(DoctorVerdict::Problem));
    }

    #[test]
    fn doctor_reports_sockets_that_are_missing_or_closed_to_a_vmm() {
        let folder = rights(0, 0, 0o755);
        let verdicts = |rights: io::Result<Vec<SocketFileRights>>| {
            let findings = judge(&[("pf0vf0", rights)], &[vmm()]);
            findings.into_iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(Ok(vec![rights(0, 102, 0o660), folder])), [DoctorVerdict::Ok]);
        assert_eq!(verdicts(Ok(vec![rights(0, 0, 0o600), folder])), [DoctorVerdict::Warning]);
        assert_eq!(verdicts(Ok(vec![rights(0, 102, 0o660), rights(0, 0, 0o700)])), [DoctorVerdict::Warning]);
        assert_eq!(
            verdicts(Err(io::ErrorKind::NotFound.into())),
            [DoctorVerdict::Problem, DoctorVerdict::Ok]
        );
        assert_eq!(judge(&[("pf0vf0", Ok(vec![rights(0, 0, 0o600)]))], &[]), [], "no VMM of another user");
    }
}
