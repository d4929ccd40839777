//! Checks that the first file of each pure crate rules out a clock, I/O and unsafe code: `no_std`, and a ban
//! on unsafe code.

use std::path::Path;

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, attribute, group, ident, inside, is_punct};
use crate::metadata::{self, CargoPackage};

/// Names of the pure crates: state machines without a clock and without I/O.
pub(crate) const PURE: [&str; 21] = [
    "units",
    "pcie",
    "plane",
    "offload",
    "capture-filter",
    "rings",
    "i82576",
    "avf",
    "virtio",
    "virtio-nic",
    "nic",
    "avf-nic",
    "policy",
    "driver",
    "iovm",
    "vfio-user",
    "vhost-user",
    "split",
    "sim",
    "hypervisor",
    "guest",
];

pub(super) fn check(members: &[CargoPackage], root: &Path, sources: &[RustSource]) -> Vec<TidyFinding> {
    let libraries = members
        .iter()
        .filter(|member| PURE.contains(&member.crate_name()))
        .flat_map(|member| member.targets.iter().filter(|target| target.kind == "lib"));
    let files = libraries.map(|library| metadata::relative(root, &library.root));
    files.filter_map(|file| sources.iter().find(|source| source.path == file)).flat_map(attributes).collect()
}

fn attributes(library: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !has_inner(library, is_no_std) {
        let remedy = "add `#![no_std]`, and `extern crate std` under `#[cfg(test)]` at most";
        findings.push(library.finding(1, "pure", "this pure crate has no `#![no_std]`", remedy));
    }
    if !has_inner(library, forbids_unsafe) {
        let what = "this pure crate has no `#![forbid(unsafe_code)]`";
        findings.push(library.finding(1, "pure", what, "add `#![forbid(unsafe_code)]`"));
    }
    findings
}

/// Returns true if the file has an attribute of its own, `#![...]`, for which `wanted` returns true.
fn has_inner(library: &RustSource, wanted: fn(&[TokenTree]) -> bool) -> bool {
    (0..library.tokens.len()).any(|start| {
        let tokens = &library.tokens[start..];
        is_punct(tokens.get(1), '!') && attribute(tokens).is_some_and(|group| wanted(&inside(group)))
    })
}

fn is_no_std(attribute: &[TokenTree]) -> bool {
    matches!(attribute, [TokenTree::Ident(name)] if name == "no_std")
}

fn forbids_unsafe(attribute: &[TokenTree]) -> bool {
    let lints = group(attribute.get(1), Delimiter::Parenthesis).map(inside).unwrap_or_default();
    let names = |word: &str| lints.iter().any(|lint| ident(Some(lint)).is_some_and(|lint| lint == word));
    ident(attribute.first()).is_some_and(|name| name == "forbid") && names("unsafe_code")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_crate_must_declare_no_std_and_forbid_unsafe() {
        let pure = "//! A.\n#![no_std]\n#![forbid(unsafe_code)]\nextern crate alloc;\n";
        assert!(attributes(&RustSource::sample(pure)).is_empty());
        let almost = "//! A.\n#![cfg_attr(not(test), no_std)]\n#![deny(unsafe_code)]\n";
        assert_eq!(attributes(&RustSource::sample(almost)).len(), 2);
    }
}
