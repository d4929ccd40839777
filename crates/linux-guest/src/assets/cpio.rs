//! Writes the archive that Linux unpacks as its initramfs: cpio in the "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst). It writes no device nodes, and no compression: an
//! emulated CPU unpacks plain bytes faster.

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;

/// Writer of a cpio archive to `out`. Folders must be added before the files in them.
#[derive(Debug)]
pub(super) struct CpioWriter<W> {
    out: W,
    entries: u32,
}

impl<W: Write> CpioWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, entries: 0 }
    }

    /// Adds a folder to the cpio archive, mode 755. Names are relative to the root, without a leading slash.
    pub(super) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, DIRECTORY, &[])
    }

    /// Adds a file to the cpio archive, mode 755: executable data files do no harm in the guest.
    pub(super) fn file(&mut self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.entry(name, EXECUTABLE, contents)
    }

    /// Adds a symbolic link to the cpio archive.
    pub(super) fn symlink(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.entry(name, SYMLINK, target.as_bytes())
    }

    /// Writes the cpio archive's trailer and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.entries = 0;
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        let size = u32::try_from(contents.len()).map_err(io::Error::other)?;
        let name_size = u32::try_from(name.len() + 1).map_err(io::Error::other)?;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        self.entries += 1;
        // The fields are: inode, mode, uid, gid, links, mtime, size, device x2, special device x2, name size,
        // checksum (unused).
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08X}"));
        }
        header.push_str(name);
        header.push('\0');
        self.out.write_all(header.as_bytes())?;
        self.pad(header.len())?;
        self.out.write_all(contents)?;
        self.pad(contents.len())
    }

    /// Pads the output to a multiple of four bytes, as the format requires after a header with its name and after
    /// contents.
    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..written.wrapping_neg() % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpio_file_is_header_name_and_contents_padded_to_four_bytes() {
        let mut cpio = CpioWriter::new(Vec::new());
        cpio.file("bin/a", b"hello").unwrap();
        let bytes = cpio.finish().unwrap();

        let text = "070701000000010000\
                    81ED0000000000000000000000010000000000000005\
                    00000000000000000000000000000000\
                    0000000600000000bin/a\0";
        assert_eq!(text.len(), 116);
        assert_eq!(&bytes[..116], text.as_bytes());
        assert_eq!(&bytes[116..124], b"hello\0\0\0");
        assert!(bytes[124..].starts_with(b"070701") && bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn cpio_symlink_contains_its_target_and_a_folder_is_empty() {
        let mut cpio = CpioWriter::new(Vec::new());
        cpio.directory("bin").unwrap();
        cpio.symlink("bin/sh", "busybox").unwrap();
        let bytes = cpio.finish().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(&text[14..22], "000041ED", "a folder, rwxr-xr-x");
        assert_eq!(&text[116 + 14..116 + 22], "0000A1FF", "a symbolic link, rwxrwxrwx");
        assert!(text.contains("bin/sh\0\0\0\0busybox\0"));
    }
}
