//! Parses stacks as `perf script --fields comm,ip,sym` prints them: the program's name, a line for each frame from the
//! innermost to the outermost, and an empty line.

use figure::flame::FlameGraphNode;

/// Merges all sampled stacks into a call tree that begins with the outermost functions.
pub(super) fn fold(script: &str) -> FlameGraphNode {
    let mut root = FlameGraphNode::default();
    for sample in script.split("\n\n") {
        let frames = sample.lines().filter(|line| line.starts_with([' ', '\t']));
        let names = frames.filter_map(|line| line.trim().split_once(' ').map(|(_, name)| short(name)));
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            continue;
        }
        names.reverse();
        root.add(&names, 1, 0);
    }
    root
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
        let main = &root.children["main"];
        let forward = &main.children["nic::forward::forward"];
        assert_eq!((root.weight, main.weight, forward.weight), (2, 2, 2));
        assert_eq!(forward.children["memcpy"].weight, 1);
    }

    #[test]
    fn perf_script_without_stacks_gives_no_samples() {
        assert_eq!(fold("").weight, 0);
        assert_eq!(fold("softiov \n\nsoftiov \n\n").weight, 0);
    }
}
