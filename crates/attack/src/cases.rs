//! Tables of cases, a file for each group. Each row has a reason of its own: no row only varies another row's value.

mod admin_queue;
mod control;
mod descriptors;
mod fairness;
mod floods;
mod frames;
mod guest_memory;
mod http;
mod interrupted;
mod mailbox;
mod mailbox_words;
mod network;
mod process;
mod protocol;
mod regions;
mod remedies;
mod requests;
mod resets;
mod shrinking_memory;
mod steps;
mod vhost;
mod vhost_requests;
mod virtchnl;
mod virtchnl_queues;
mod virtio_rings;
mod windows;

use crate::case::AttackGroup;

/// All groups, in the order in which they run.
pub const GROUPS: &[AttackGroup] = &[
    AttackGroup { name: "protocol", cases: protocol::CASES },
    AttackGroup { name: "windows", cases: windows::CASES },
    AttackGroup { name: "regions", cases: regions::CASES },
    AttackGroup { name: "requests", cases: requests::CASES },
    AttackGroup { name: "vhost", cases: vhost::CASES },
    AttackGroup { name: "vhost-requests", cases: vhost_requests::CASES },
    AttackGroup { name: "guest-memory", cases: guest_memory::CASES },
    AttackGroup { name: "descriptors", cases: descriptors::CASES },
    AttackGroup { name: "virtio-rings", cases: virtio_rings::CASES },
    AttackGroup { name: "mailbox", cases: mailbox::CASES },
    AttackGroup { name: "mailbox-words", cases: mailbox_words::CASES },
    AttackGroup { name: "admin-queue", cases: admin_queue::CASES },
    AttackGroup { name: "virtchnl", cases: virtchnl::CASES },
    AttackGroup { name: "virtchnl-queues", cases: virtchnl_queues::CASES },
    AttackGroup { name: "resets", cases: resets::CASES },
    AttackGroup { name: "interrupted", cases: interrupted::CASES },
    AttackGroup { name: "network", cases: network::CASES },
    AttackGroup { name: "control", cases: control::CASES },
    AttackGroup { name: "frames", cases: frames::CASES },
    AttackGroup { name: "tagged-frames", cases: frames::TAGGED_CASES },
    AttackGroup { name: "process", cases: process::CASES },
    AttackGroup { name: "shrinking-memory", cases: shrinking_memory::CASES },
    AttackGroup { name: "http", cases: http::CASES },
    AttackGroup { name: "fairness", cases: fairness::CASES },
    AttackGroup { name: "floods", cases: floods::CASES },
];

#[cfg(test)]
mod tests {
    use super::GROUPS;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn case_names_are_unique_and_remedies_name_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut names = BTreeSet::new();
        for group in GROUPS {
            assert!(names.insert(group.name), "two groups or cases are called {}", group.name);
        }
        for case in GROUPS.iter().flat_map(|group| group.cases) {
            assert!(names.insert(case.name), "two groups or cases are called {}", case.name);
            let file = case.remedy.code.split([':', ' ']).next().unwrap_or_default();
            assert!(root.join(file).is_file(), "{}: {file} is no file", case.name);
            for text in [case.rule, case.remedy.host] {
                assert!(!text.ends_with('.') && text.len() > 20, "{}: {text}", case.name);
            }
        }
    }
}
