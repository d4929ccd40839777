//! Reads parts of a 64-bit little-endian ELF file: a section (System V ABI, chapter 4), and the segments that are
//! loaded to run it (chapter 5).

/// Magic number of an ELF file with 64 bits, little-endian.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// Type of an ELF program header: segment that is loaded. The type of a dynamic linker's path follows.
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;

/// Returns the contents of the section called `wanted`, if the file is a 64-bit little-endian ELF file and has it.
pub(super) fn section<'a>(file: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    if !file.starts_with(MAGIC) {
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

/// Returns the segments of a program's file that are loaded to run the program. The rest, for debuggers, is larger and
/// omitted.
pub(super) fn loaded(file: &[u8]) -> Option<Vec<u8>> {
    let ends = segments(file, PT_LOAD)?.map(|(start, size)| start.checked_add(size));
    let end = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let mut kept = file.get(..end)?.to_vec();
    // The headers of sections are at the end of the file, and omitted.
    for (field, size) in [(0x28, 8), (0x3c, 4)] {
        kept.get_mut(field..field + size)?.fill(0);
    }
    Some(kept)
}

/// Returns the path of the dynamic linker that a program requests; `None` without one.
pub(super) fn interpreter(file: &[u8]) -> Option<&str> {
    let (start, size) = segments(file, PT_INTERP)?.next()?;
    str::from_utf8(file.get(start..start.checked_add(size)?)?).ok()?.strip_suffix('\0')
}

/// Returns the offsets and sizes in the file of the segments of type `wanted`.
fn segments(file: &[u8], wanted: u32) -> Option<impl Iterator<Item = (usize, usize)>> {
    if !file.starts_with(MAGIC) {
        return None;
    }
    let (headers, size, count) = (word(file, 0x20)?, half(file, 0x36)?, half(file, 0x38)?);
    let header = move |index| file.get(headers.checked_add(usize::from(size) * usize::from(index))?..);
    let found =
        (0..count).filter_map(header).filter(move |header| take(header, 0) == Some(wanted.to_le_bytes()));
    Some(found.filter_map(|header| Some((word(header, 8)?, word(header, 0x20)?))))
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

    /// Builds an ELF file with `contents` as its section `.modinfo`, and with the table of section names.
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
    fn section_of_an_elf_file_is_found_by_its_name() {
        let file = with_modinfo(b"license=GPL\0");
        assert_eq!(section(&file, ".modinfo"), Some(&b"license=GPL\0"[..]));
        assert_eq!(section(&file, ".text"), None);
    }

    /// Builds the file of an ELF program with one loaded segment, which requests a linker, with symbols behind the
    /// segment.
    fn program() -> Vec<u8> {
        let linker = b"/lib/ld.so\0";
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(MAGIC);
        file[0x20] = 0x40;
        file[0x28] = 0xf0;
        file[0x36..0x40].copy_from_slice(&[0x38, 0, 2, 0, 0x40, 0, 1, 0, 0, 0]);
        let end = 0x40 + 2 * 0x38 + linker.len() as u64;
        for (kind, start, size) in
            [(PT_LOAD, 0, end), (PT_INTERP, end - linker.len() as u64, linker.len() as u64)]
        {
            let mut header = [0; 0x38];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[0x08..0x10].copy_from_slice(&start.to_le_bytes());
            header[0x20..0x28].copy_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&header);
        }
        file.extend_from_slice(linker);
        file.extend_from_slice(b"symbols");
        file
    }

    #[test]
    fn loaded_part_and_linker_of_an_elf_program_are_found() {
        let file = program();
        let kept = loaded(&file).unwrap();
        assert_eq!(kept.len(), file.len() - b"symbols".len());
        assert_eq!(kept[0x28..0x30], [0; 8], "the ELF header must name no sections");
        assert_eq!(kept[0x40..], file[0x40..kept.len()]);
        assert_eq!(interpreter(&file), Some("/lib/ld.so"));
        assert_eq!(interpreter(&kept), Some("/lib/ld.so"));
    }

    #[test]
    fn truncated_elf_program_is_refused() {
        let file = program();
        let whole = file.len() - b"symbols".len();
        assert!((0..whole).all(|length| loaded(&file[..length]).is_none()));
        assert!((0..whole).all(|length| interpreter(&file[..length]).is_none()));
    }

    #[test]
    fn truncated_elf_file_has_no_sections() {
        let file = with_modinfo(b"license=GPL\0");
        for length in 0..file.len() - 0x40 {
            assert_eq!(section(&file[..length], ".modinfo"), None);
        }
    }
}
