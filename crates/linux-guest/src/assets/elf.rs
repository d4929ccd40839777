//! Finds a section of a 64-bit little-endian ELF file (System V ABI, chapter 4). Reads nothing else of it.

/// The contents of the section called `wanted`, if the file is such an ELF file and has it.
pub(super) fn section<'a>(file: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let headers = word(file, 0x28)?;
    let size = usize::from(half(file, 0x3a)?);
    let count = usize::from(half(file, 0x3c)?);
    let names = usize::from(half(file, 0x3e)?);
    let header = |index: usize| file.get(headers.checked_add(index.checked_mul(size)?)?..);
    let names = contents(file, header(names)?)?;
    (0..count).filter_map(header).find_map(|header| {
        let name = names.get(usize::try_from(u32::from_le_bytes(take(header, 0)?)).ok()?..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        (name == wanted.as_bytes()).then(|| contents(file, header)).flatten()
    })
}

fn contents<'a>(file: &'a [u8], header: &[u8]) -> Option<&'a [u8]> {
    let start = word(header, 0x18)?;
    file.get(start..start.checked_add(word(header, 0x20)?)?)
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(take(bytes, at)?)).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(take(bytes, at)?))
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An ELF file with a section `.modinfo` of these contents and the table of names that it needs.
    pub(in crate::assets) fn with_modinfo(contents: &[u8]) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let headers = 0x40 + names.len() + contents.len();
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28..0x30].copy_from_slice(&(headers as u64).to_le_bytes());
        file[0x3a..0x40].copy_from_slice(&[0x40, 0, 3, 0, 2, 0]);
        file.extend_from_slice(names);
        file.extend_from_slice(contents);
        let sections = [
            (0, 0, 0),
            (1, 0x40 + names.len() as u64, contents.len() as u64),
            (10, 0x40, names.len() as u64),
        ];
        for (name, offset, size) in sections {
            let mut header = [0; 0x40];
            header[..4].copy_from_slice(&u32::to_le_bytes(name));
            header[0x18..0x20].copy_from_slice(&u64::to_le_bytes(offset));
            header[0x20..0x28].copy_from_slice(&u64::to_le_bytes(size));
            file.extend_from_slice(&header);
        }
        file
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let file = with_modinfo(b"license=GPL\0");
        assert_eq!(section(&file, ".modinfo"), Some(&b"license=GPL\0"[..]));
        assert_eq!(section(&file, ".text"), None);
    }

    #[test]
    fn a_cut_file_has_no_sections() {
        let file = with_modinfo(b"license=GPL\0");
        for length in 0..file.len() - 0x40 {
            assert_eq!(section(&file[..length], ".modinfo"), None);
        }
    }
}
