//! Installs the QEMU of the cache with the guests' files in a Debian machine, where its users find it.

use crate::machine::DebianMachine;
use anyhow::Result;
use linux_guest::BootFiles;
use std::path::Path;

/// Path of QEMU in the Debian machine.
pub(crate) const QEMU: &str = "/usr/local/bin/qemu-system-x86_64";

/// Installs a script in the Debian machine that starts the QEMU of this machine's cache, whose folder the
/// Debian machine must share.
pub(crate) fn install(machine: &DebianMachine, assets: &BootFiles) -> Result<()> {
    let command = assets.qemu().command();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    // Folder of QEMU's modules, without which it crashes when libvirt queries them.
    let modules = Path::new(command.get_program()).with_file_name("qemu");
    let script = format!(
        "#!/bin/sh\nexport QEMU_MODULE_DIR='{}'\nexec {} \"$@\"\n",
        modules.display(),
        words.join(" ")
    );
    std::fs::write(machine.files().join("qemu"), script)?;
    machine.run(&format!("install -D {}/qemu {QEMU}", machine.files().display()))?;
    Ok(())
}
