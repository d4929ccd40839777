//! Follows two pages of the guide that need virtual machines, on a Debian as their readers have it: first-vm, from the
//! package on, and ci, with the example for a CI. GitHub's runner and container, and downloads of packages, are not
//! tested.

use crate::built;
use crate::machine::{DebianMachine, obstacle};
use crate::page::{self, DocumentationShell};
use crate::vmm;
use anyhow::Result;
use host::test_support::skipped;
use linux_guest::{BootFiles, KernelSeries};
use std::path::Path;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/ci");
/// Shell script that creates what the page expects: the package, a kernel, an initramfs and the examples.
const PREPARED: &str = "mkdir -p /srv/you/docs/examples /srv/you/target/debian && cd /srv/you &&
    cp \"$0\" target/debian/softiov_0.1.0-1_amd64.deb &&
    ln -s \"$1\" kernel && ln -s \"$2\" initramfs && ln -s \"$3\" docs/examples/ci";

#[test]
fn guide_commands_for_first_vm_and_ci_succeed() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("the guide's pages with virtual machines", obstacle);
        return Ok(());
    }
    let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
    let cache = linux_guest::cache_folder()?;
    let example = Path::new(EXAMPLE).canonicalize()?;
    let machine = DebianMachine::boot(&[&cache, &example])?;
    let package = built::package("0.1.0-1", machine.files())?;
    vmm::install(&machine, &assets)?;
    let mut prepare = machine.command(PREPARED);
    prepare.args([&package, assets.kernel(), assets.initramfs(), &example]);
    anyhow::ensure!(prepare.status()?.success(), "cannot create the files that the pages expect");
    for page in ["first-vm", "ci"] {
        // Root's shell, as the page says.
        let shell = machine.command("cd /srv/you && exec timeout 200 sh");
        let mut reader = DocumentationShell::at(shell, &[]);
        reader.follow(&page::guide(page));
    }
    Ok(())
}
