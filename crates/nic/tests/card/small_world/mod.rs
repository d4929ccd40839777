//! Small worlds, looked at completely: short scripts of a VF, the PF and whoever resets, in every order in which
//! they can take turns. Left out: long scripts; those are drawn at random (`random`).

mod mailbox;
mod resets;

/// Calls `visit` with every order in which scripts of these lengths can take turns: a sequence of script numbers.
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

/// A script played step by step.
struct Player<'a, S> {
    scripts: Vec<core::slice::Iter<'a, S>>,
}

impl<'a, S> Player<'a, S> {
    fn new(scripts: &[&'a [S]]) -> Self {
        Self { scripts: scripts.iter().map(|script| script.iter()).collect() }
    }

    /// The next step of a script.
    fn step(&mut self, script: usize) -> &'a S {
        self.scripts[script].next().unwrap()
    }
}

#[test]
fn orders_are_all_there_and_each_once() {
    let mut seen = std::collections::HashSet::new();
    orders(&[3, 2, 1], &mut |order| assert!(seen.insert(order.to_vec())));
    assert_eq!(seen.len(), 60, "6! / (3! 2! 1!)");
}
