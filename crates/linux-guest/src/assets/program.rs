//! A program of this host for a guest: its loaded part, with the dynamic linker and its linked libraries, which may be
//! newer than the guest's own. It is a second archive behind the guest's initramfs, in a file of its own that is not
//! cached, since a program under test changes with each build. Files that a program opens at run time are not included.

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use super::cpio::CpioWriter;
use super::error::{AssetError, AssetIoResultExt, Result};
use super::{elf, libraries};

/// Folder of the program in the guest, separate from the files of the guest's own programs.
const FOLDER: &str = "opt";

/// Creates a temporary file with `initramfs` and `program` in it, which is removed on drop.
pub(super) fn prepare(initramfs: &Path, program: &Path) -> Result<TempPath> {
    let mut file = NamedTempFile::with_prefix("softiov-initramfs-").at(&env::temp_dir())?;
    let contents = [fs::read(initramfs).at(initramfs)?, archive(program)?].concat();
    file.write_all(&contents).at(file.path())?;
    Ok(file.into_temp_path())
}

/// Builds the initramfs archive of the program and its libraries, and a script in /bin with the program's name. The
/// script starts the program with these libraries.
fn archive(program: &Path) -> Result<Vec<u8>> {
    let unfit =
        || AssetError::Contents(format!("{} is not a program that a guest can run", program.display()));
    let contents = fs::read(program).at(program)?;
    let name = program.file_name().and_then(|name| name.to_str()).ok_or_else(unfit)?;
    let folder = format!("{FOLDER}/{name}");
    let mut start = format!("/{folder}/program");
    let mut cpio = CpioWriter::new(Vec::new());
    for made in [FOLDER, &folder] {
        cpio.directory(made).at(program)?;
    }
    cpio.file(&format!("{folder}/program"), &elf::loaded(&contents).ok_or_else(unfit)?).at(program)?;
    if let Some(linker) = elf::interpreter(&contents) {
        let linker = Path::new(linker);
        cpio.file(&format!("{folder}/linker"), &fs::read(linker).at(linker)?).at(program)?;
        for (name, path) in libraries::of_host(linker, program)? {
            cpio.file(&format!("{folder}/{name}"), &fs::read(&path).at(&path)?).at(&path)?;
        }
        start = format!("/{folder}/linker --inhibit-cache --library-path /{folder} {start}");
    }
    cpio.file(&format!("bin/{name}"), format!("#!/bin/sh\nexec {start} \"$@\"\n").as_bytes()).at(program)?;
    cpio.finish().at(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_of_a_program_has_its_libraries_and_a_start_script() {
        let this = env::current_exe().unwrap();
        let name = this.file_name().unwrap().to_str().unwrap();
        let base = NamedTempFile::with_prefix("base").unwrap();
        fs::write(base.path(), "base").unwrap();

        let path = prepare(base.path(), &this).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"base070701"), "the archive follows the given initramfs");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(&format!("opt/{name}/program\0")));
        assert!(has(&format!("opt/{name}/libc.so.6\0")));
        assert!(has(&format!("exec /opt/{name}/linker ")));

        let kept = path.to_path_buf();
        drop(path);
        assert!(!kept.exists());
    }

    #[test]
    fn script_is_refused_as_a_program_for_the_guest_archive() {
        let script = NamedTempFile::new().unwrap();
        fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(matches!(prepare(script.path(), script.path()), Err(AssetError::Contents(_))));
    }
}
