//! Parses the output of apt.

/// Returns the names of package files in the output of `apt-get --print-uris`: `'uri' name size hash`.
pub(super) fn package_files(print_uris: &str) -> Vec<String> {
    let file = |line: &str| {
        let rest = line.strip_prefix('\'')?.split_once("' ")?.1;
        let name = rest.split_whitespace().next()?;
        // The name becomes a path in the download folder, so it must have no slash.
        (name.ends_with(".deb") && !name.contains('/')).then(|| name.to_owned())
    };
    print_uris.lines().filter_map(file).collect()
}

/// Returns true if a line of `apt-get install` reports the start of a package's download.
pub(super) fn is_download(line: &str) -> bool {
    line.strip_prefix("Get:").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the dependencies in the output of `apt-cache depends`, those without an alternative.
pub(super) fn dependencies(depends: &str) -> impl Iterator<Item = &str> {
    depends.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: ")).map(str::trim)
}

/// Returns true if the errors of `apt-get update` report that a key is missing.
pub(super) fn is_missing_key(stderr: &str) -> bool {
    stderr.contains("NO_PUBKEY") || stderr.contains("is not signed") || stderr.contains("Missing key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_print_uris_output_yields_the_package_file_names() {
        let printed = "Reading package lists...\n\
            'http://deb.example/debian/pool/main/g/glibc/libc6_2.41-12%2bdeb13u4_amd64.deb' \
             libc6_2.41-12+deb13u4_amd64.deb 2846580 MD5Sum:5559581916477ef1f57ea9f82cecf22e\n\
            'http://deb.example/x/seabios_1.17.0-1_all.deb' seabios_1.17.0-1_all.deb 161000 \n\
            'http://deb.example/x/evil' ../../evil.deb 1 \n";
        assert_eq!(package_files(printed), ["libc6_2.41-12+deb13u4_amd64.deb", "seabios_1.17.0-1_all.deb"]);
    }

    #[test]
    fn apt_downloads_are_counted_by_their_get_lines() {
        assert!(is_download(
            "Get:88 http://deb.example/debian trixie/main amd64 zlib1g amd64 1:1.3 [89.2 kB]"
        ));
        assert!(!is_download("Fetched 37.9 MB in 5s (8312 kB/s)"));
        assert!(!is_download("Ign:1 http://deb.example/debian trixie InRelease"));
    }

    #[test]
    fn meta_package_names_the_kernel_as_its_dependency() {
        let printed = "linux-image-amd64\n |Depends: dracut\n  Depends: linux-base-amd64\n  \
                       Depends: linux-image-6.1.0-56-amd64\n  Suggests: grub-pc\n";
        let names: Vec<&str> = dependencies(printed).collect();
        assert_eq!(names, ["linux-base-amd64", "linux-image-6.1.0-56-amd64"]);
        assert_eq!(dependencies("linux-image-amd64\n").count(), 0);
    }

    #[test]
    fn missing_archive_key_is_distinguished_from_a_missing_file() {
        assert!(is_missing_key("W: GPG error: http://x trixie InRelease: ... NO_PUBKEY 6ED0E7B82643E131"));
        assert!(!is_missing_key("E: The repository 'http://x trixie Release' does not have a Release file."));
    }
}
