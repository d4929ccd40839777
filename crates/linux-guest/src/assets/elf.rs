//! Reads parts of a 64-bit little-endian ELF file: a section (System V ABI, chapter 4), and the segments that are
//! loaded to run it (chapter 5).

use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD, SymbolSection};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

type ElfHeader = FileHeader64<LittleEndian>;

/// Returns the contents of the section called `wanted`, if the file is a 64-bit little-endian ELF file and has it.
pub(super) fn section<'a>(file: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let (header, endian) = header(file)?;
    let sections = header.sections(endian, file).ok()?;
    let (_, section) = sections.section_by_name(endian, wanted.as_bytes())?;
    section.data(endian, file).ok()
}

/// Returns the segments of a program's file that are loaded to run the program. The rest, for debuggers, is larger and
/// omitted.
pub(super) fn loaded(file: &[u8]) -> Option<Vec<u8>> {
    let (header, endian) = header(file)?;
    let segments = header.program_headers(endian, file).ok()?.iter();
    let loaded = segments.filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|segment| segment.p_offset(endian).checked_add(segment.p_filesz(endian)));
    let end = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let mut kept = file.get(..usize::try_from(end).ok()?)?.to_vec();
    // The headers of sections are at the end of the file, and omitted.
    let (header, _) = object::pod::from_bytes_mut::<ElfHeader>(&mut kept).ok()?;
    header.e_shoff.set(endian, 0);
    header.e_shnum.set(endian, 0);
    header.e_shstrndx.set(endian, SymbolSection(0));
    Some(kept)
}

/// Returns the path of the dynamic linker that a program requests; `None` without one.
pub(super) fn interpreter(file: &[u8]) -> Option<&str> {
    let (header, endian) = header(file)?;
    let mut segments = header.program_headers(endian, file).ok()?.iter();
    let path = segments.find_map(|segment| segment.interpreter(endian, file).ok().flatten())?;
    str::from_utf8(path).ok()
}

fn header(file: &[u8]) -> Option<(&ElfHeader, LittleEndian)> {
    let header = ElfHeader::parse(file).ok()?;
    Some((header, header.endian().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use object::elf::PT_INTERP;

    /// Identification of a 64-bit little-endian ELF file of version 1.
    const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";

    /// Builds an ELF file with `contents` as its section `.modinfo`, and with the table of section names.
    pub(in crate::assets) fn with_modinfo(contents: &[u8]) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let headers = 0x40 + names.len() + contents.len();
        let mut file = vec![0; 0x40];
        file[..7].copy_from_slice(MAGIC);
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
        file[..7].copy_from_slice(MAGIC);
        file[0x20] = 0x40;
        file[0x28] = 0xf0;
        file[0x36..0x40].copy_from_slice(&[0x38, 0, 2, 0, 0x40, 0, 1, 0, 0, 0]);
        let end = 0x40 + 2 * 0x38 + linker.len() as u64;
        for (kind, start, size) in
            [(PT_LOAD, 0, end), (PT_INTERP, end - linker.len() as u64, linker.len() as u64)]
        {
            let mut header = [0; 0x38];
            header[..4].copy_from_slice(&kind.0.to_le_bytes());
            header[0x08..0x10].copy_from_slice(&start.to_le_bytes());
            header[0x20..0x28].copy_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&header);
        }
        file.extend_from_slice(linker);
        file.extend_from_slice(b"symbols");
        file
    }

    #[test]
    fn stripped_elf_program_keeps_its_segments_and_interpreter() {
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
