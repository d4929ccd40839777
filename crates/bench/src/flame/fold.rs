//! Parses stacks as `perf script --fields comm,ip,sym` prints them: the program's name, a line for each frame from the
//! innermost to the outermost, and an empty line.

use std::collections::BTreeMap;

/// Function on a stack, with the functions that it called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallTreeNode {
    /// Number of samples in the function and in the functions that it called.
    pub(super) samples: u64,
    /// Functions that the function on the stack calls, by name.
    pub(super) calls: BTreeMap<String, CallTreeNode>,
}

/// Merges all sampled stacks into a call tree that begins with the outermost functions.
pub(super) fn fold(script: &str) -> CallTreeNode {
    let mut root = CallTreeNode::default();
    for sample in script.split("\n\n") {
        let frames = sample.lines().filter(|line| line.starts_with([' ', '\t']));
        let names = frames.filter_map(|line| line.trim().split_once(' ').map(|(_, name)| short(name)));
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            continue;
        }
        names.reverse();
        root.add(&names);
    }
    root
}

impl CallTreeNode {
    fn add(&mut self, names: &[String]) {
        self.samples += 1;
        if let Some((first, rest)) = names.split_first() {
            self.calls.entry(first.clone()).or_default().add(rest);
        }
    }
}

/// Returns a function's name without the compiler's hash and without `perf`'s mark of inlining.
fn short(name: &str) -> String {
    let name = name.trim_end_matches(" (inlined)");
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            name.into()
        }
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
softiov \n\t    55d0 nic::forward::forward::h0123456789abcdef (inlined)\n\t    55d1 main\n\n\
softiov \n\t    55d2 memcpy\n\t    55d0 nic::forward::forward\n\t    55d1 main\n\n";

    #[test]
    fn sampled_stacks_are_folded_from_the_outermost_function() {
        let root = fold(SCRIPT);
        let main = &root.calls["main"];
        let forward = &main.calls["nic::forward::forward"];
        assert_eq!((root.samples, main.samples, forward.samples), (2, 2, 2));
        assert_eq!(forward.calls["memcpy"].samples, 1);
    }

    #[test]
    fn perf_script_without_stacks_gives_no_samples() {
        assert_eq!(fold("").samples, 0);
        assert_eq!(fold("softiov \n\nsoftiov \n\n").samples, 0);
    }
}
