//! Exhaustive tests: short scripts of a VF, of the PF and of resets, in every order of their steps. `random` tests long
//! scripts.

mod mailbox;
mod resets;

/// Calls `visit` with every order in which scripts of these lengths can take turns. An order names a script by its
/// index for each step.
fn orders(lengths: &[usize], visit: &mut impl FnMut(&[usize])) {
    fn go(left: &mut [usize], order: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
        if left.iter().all(|&left| left == 0) {
            return visit(order);
        }
        for script in 0..left.len() {
            if left[script] > 0 {
                left[script] -= 1;
                order.push(script);
                go(left, order, visit);
                order.pop();
                left[script] += 1;
            }
        }
    }
    go(&mut lengths.to_vec(), &mut Vec::new(), visit);
}

/// Scripts of test actions, with the position of the next step of each.
struct ScriptPlayer<'a, S> {
    scripts: Vec<core::slice::Iter<'a, S>>,
}

impl<'a, S> ScriptPlayer<'a, S> {
    fn new(scripts: &[&'a [S]]) -> Self {
        Self { scripts: scripts.iter().map(|script| script.iter()).collect() }
    }

    /// Returns the next step of the script with the number `script`, and advances that script.
    fn step(&mut self, script: usize) -> &'a S {
        self.scripts[script].next().unwrap()
    }
}

#[test]
fn each_interleaving_of_test_scripts_is_played_exactly_once() {
    let mut seen = std::collections::HashSet::new();
    orders(&[3, 2, 1], &mut |order| assert!(seen.insert(order.to_vec())));
    assert_eq!(seen.len(), 60, "6! / (3! 2! 1!)");
}
