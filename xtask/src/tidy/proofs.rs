//! Reads the list of proved bounds from the sources (`proofs`, and tests of all cases), and checks that docs/proofs.md has
//! the same list.

use std::fmt;
use std::path::PathBuf;

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, TrackedFile, attribute, group, ident, inside, is_punct};

/// Page with the list of bounds.
const PAGE: &str = "docs/proofs.md";
/// Folder of the compiled bounds.
const FOLDER: &str = "proofs/src";
/// Folder of the models that loom runs.
const INTERLEAVED: &str = "proofs/interleavings";
/// Most numbers that are passed in registers.
const MOST_NUMBERS: usize = 6;
/// Prefix of functions by which the checker is checked.
const CONTROL: &str = "control_";

/// Tests that run all cases of a small domain: package, path of the test in the package's library, and bound.
pub(crate) const ENUMERATIONS: &[(&str, &str, &str)] = &[
    (
        "avf",
        "virtchnl::tests::requests_of_any_length_are_refused_or_encoded_again",
        "virtchnl requests of every operation, 0 to 300 bytes that are all 0, 1, 2 or 255, are refused, or decoded from their own encoding.",
    ),
    (
        "daemon",
        "port::clients::journal::tests::journal_parts_of_any_number_of_vfs_have_no_common_byte",
        "Journals for 1 to 64 VFs: no two parts overlap, and all are inside the memory.",
    ),
    (
        "daemon",
        "port::clients::journal::tests::next_driver_state_number_is_new_and_changes_the_copy",
        "Numbers of saved driver states below 1,024: the next one is new, and selects the other copy.",
    ),
    (
        "i82576",
        "window::tests::writable_registers_of_two_vfs_have_no_common_bit",
        "All registers of all VFs: no bit that one VF writes is another VF's.",
    ),
    (
        "offload",
        "checksum::tests::checksum_of_any_two_words_is_their_sum_modulo_65535",
        "Every word at each place of eight bytes with 7 others: the checksum is the sum modulo 65,535.",
    ),
    (
        "offload",
        "tests::segment::segments_cover_any_payload_once_in_order",
        "Payloads of 0 to 700 bytes, MSS of 1 to 700: segments cover the payload once and in order.",
    ),
    (
        "pcie",
        "walk::tests::capability_walk_ends_in_any_list_of_four",
        "All lists of four capabilities with any pointers: the walk ends and reads capabilities only.",
    ),
    (
        "pcie",
        "walk::tests::extended_capability_walk_ends_in_any_list_of_four",
        "All lists of four extended capabilities with any pointers: the walk ends and reads capabilities only.",
    ),
    (
        "rings",
        "buffers::tests::skipped_bytes_are_the_first_of_any_three_buffers",
        "Three buffers of 0 to 5 bytes, 0 to 19 skipped: the other bytes stay in order.",
    ),
    (
        "vfio-user",
        "server::dma::tests::dma_window_ranges_are_compared_with_any_windows",
        "All disjoint DMA windows in seven pages, all ranges: overlap and whole windows are those of the pages.",
    ),
    (
        "vhost-user",
        "inflight::tests::inflight_memory_has_room_for_any_rings",
        "All queue sizes in both formats, nine numbers of rings: whole cache lines, with room for each record.",
    ),
    (
        "vhost-user",
        "inflight::tests::inflight_records_are_read_inside_the_memory_and_once",
        "1 to 3 rings of 0 to 9 descriptors in 0 to 1,200 bytes: each byte inside is read once at most.",
    ),
    (
        "vhost-user",
        "message::request::tests::vhost_requests_of_any_length_are_refused_or_encoded_again",
        "vhost-user requests of every kind, 0 to 400 bytes that are all 0, 1, 2 or 255, are refused, or parsed from their own encoding.",
    ),
    (
        "virtio",
        "packed::position::tests::slots_between_packed_positions_lead_from_one_to_the_other",
        "Packed rings of 1 to 24 descriptors, all pairs of positions: the distance leads from one to the other.",
    ),
    (
        "virtio",
        "signal::tests::passed_events_are_the_entries_that_moved",
        "All events, 9 distances, 8 positions: an event is passed if it is among the moved entries.",
    ),
];

/// Models of shared atomics that loom runs in every order: path of the test in `proofs/interleavings`, its controls that must
/// be refuted, and the promise with the number of threads.
pub(crate) const INTERLEAVINGS: &[(&str, &[&str], &str)] = &[
    (
        "bell::sleeping_receiver_is_woken_for_each_of_two_frames",
        &["bell::control_bell_without_fences"],
        "Two threads, two frames: a receiver that sleeps is woken for each frame.",
    ),
    (
        "bell::sleeping_receiver_is_woken_by_either_of_two_senders",
        &["bell::control_bell_without_fences"],
        "Three threads, two frames, at most two preemptions: a receiver that sleeps is woken by each of two senders.",
    ),
    (
        "exchange::shard_that_is_put_in_has_a_round_and_is_returned",
        &["exchange::control_round_without_notification", "exchange::control_shard_that_stays_wanted"],
        "Two threads, two divisions, at most two preemptions: a worker runs a round of each shard, which is then taken.",
    ),
    (
        "exchange::shard_is_returned_whether_or_not_it_had_a_round",
        &["exchange::control_shard_that_stays_wanted"],
        "Two threads, one division, and two with at most two preemptions: a wanted shard is taken at any time.",
    ),
    (
        "exchange::processors_of_a_worker_change_before_its_next_round",
        &[
            "exchange::control_processors_without_notification",
            "exchange::control_processors_of_a_shard_that_stays_wanted",
        ],
        "Two threads, two divisions: a worker runs on the processors that were set between them.",
    ),
    (
        "exchange::failure_of_a_worker_is_found_by_the_next_gathering",
        &[
            "exchange::control_failure_without_notification",
            "exchange::control_failure_of_a_shard_that_stays_wanted",
        ],
        "Two threads: a shard is taken, or its worker's failure is found; no thread waits for ever.",
    ),
    (
        "log::page_written_during_a_copy_is_copied_again",
        &["log::control_marks_without_a_fence"],
        "Two threads, two writes, a mark at the begin or none: a VMM that clears marks copies the last write.",
    ),
    (
        "log::marks_of_two_pages_in_one_byte_are_both_set",
        &["log::control_marks_that_are_set_in_two_steps"],
        "Two threads, two pages: marks in one byte are both set.",
    ),
    (
        "pages::tail_is_read_behind_its_descriptors",
        &["pages::control_tail_with_relaxed_loads"],
        "Two threads, two tails: a port that reads a tail from a register page reads the descriptors before it.",
    ),
    (
        "pages::ring_that_is_set_up_again_has_no_old_tail",
        &[
            "pages::control_ring_without_a_second_load_of_its_tail",
            "pages::control_ring_that_is_loaded_the_first_register_first",
        ],
        "Two threads, a disabled ring: a port that finds it enabled again in a register page finds its new base and tail.",
    ),
    (
        "pages::requests_before_equal_stores_are_handled",
        &["pages::control_equal_stores_with_relaxed_exchanges"],
        "Two threads, two equal stores to an acting register: what came before the second one is handled.",
    ),
    (
        "pages::store_beside_a_publication_is_kept",
        &["pages::control_publication_by_a_load_and_a_store"],
        "Two threads: a guest's store beside a publication of the same register is read afterwards.",
    ),
    (
        "pages::published_head_shows_its_descriptors",
        &["pages::control_head_with_relaxed_exchanges"],
        "Two threads: a guest that loads a published register loads the descriptor that was written before.",
    ),
    (
        "sigbus::sigbus_handler_finds_its_mapping_beside_a_replaced_one",
        &[
            "sigbus::control_table_without_generations",
            "sigbus::control_starts_with_relaxed_stores",
            "sigbus::control_lengths_with_relaxed_stores",
        ],
        "Two threads, two entries: a handler finds the mapping of its fault while another entry's mapping is replaced.",
    ),
    (
        "sigbus::sigbus_handlers_of_two_threads_find_their_own_mappings",
        &["sigbus::control_table_without_exclusive_entries"],
        "Two threads, two entries: each thread registers a mapping, finds it in its fault, and releases it.",
    ),
    (
        "xdp::xdp_ring_of_one_entry_passes_two_entries_in_order",
        XDP_CONTROLS,
        "Two threads, two entries, at most three preemptions: a side reads and writes its own entries only, in order.",
    ),
    (
        "xdp::xdp_ring_of_two_entries_passes_three_entries_in_order",
        XDP_CONTROLS,
        "Two threads, three entries, at most two preemptions: a side reads and writes its own entries only, in order.",
    ),
];

/// Controls of the AF_XDP ring: one for each access that orders others.
const XDP_CONTROLS: &[&str] = &[
    "xdp::control_producer_index_with_relaxed_stores",
    "xdp::control_producer_index_with_relaxed_loads",
    "xdp::control_consumer_index_with_relaxed_stores",
    "xdp::control_consumer_index_with_relaxed_loads",
];

/// Bound that the checker proves on the compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledBound {
    /// Name of the exported function.
    pub(crate) name: String,
    /// Meaning of the bound, a sentence.
    meaning: String,
    file: PathBuf,
    /// Names and bits of the free numbers.
    pub(crate) numbers: Vec<(String, u32)>,
}

impl CompiledBound {
    /// Returns true if the function fails on purpose, so that the checker must refute it.
    pub(crate) fn is_control(&self) -> bool {
        self.name.starts_with(CONTROL)
    }
}

/// Row of the page's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundRow {
    name: String,
    meaning: String,
    place: String,
    method: &'static str,
}

impl fmt::Display for BoundRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, meaning, place, method } = self;
        write!(f, "| `{name}` | {meaning} | `{place}` | {method} |")
    }
}

/// Returns the compiled bounds of the sources, controls among them.
pub(crate) fn compiled(sources: &[RustSource]) -> Vec<CompiledBound> {
    let mut bounds = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with(FOLDER)) {
        source.each(|tokens| {
            let macros = ident(tokens.first()).is_some_and(|name| name == "bound" || name == "control");
            let body =
                group(tokens.get(2), Delimiter::Brace).filter(|_| macros && is_punct(tokens.get(1), '!'));
            bounds.extend(body.and_then(|body| bound(source, &inside(body))));
        });
    }
    bounds.sort_by(|one, other| (&one.file, &one.name).cmp(&(&other.file, &other.name)));
    bounds
}

/// Returns the rows of the page's list.
pub(crate) fn rows(sources: &[RustSource]) -> Vec<BoundRow> {
    let compiled = compiled(sources).into_iter().filter(|bound| !bound.is_control()).map(|bound| BoundRow {
        name: bound.name,
        meaning: bound.meaning,
        place: bound.file.display().to_string(),
        method: "all values",
    });
    let enumerated = ENUMERATIONS.iter().map(|(package, test, meaning)| BoundRow {
        name: test.rsplit("::").next().unwrap_or_default().to_owned(),
        meaning: (*meaning).to_owned(),
        place: format!("{package}: {test}"),
        method: "all cases",
    });
    let interleaved = INTERLEAVINGS.iter().map(|(test, _, meaning)| BoundRow {
        name: test.rsplit("::").next().unwrap_or_default().to_owned(),
        meaning: (*meaning).to_owned(),
        place: format!("{INTERLEAVED}: {test}"),
        method: "all orders",
    });
    compiled.chain(enumerated).chain(interleaved).collect()
}

/// Returns the controls of the models that are not in the list, so that none is left without a run.
fn unlisted_controls<'a>(sources: &'a [RustSource], listed: &[&str]) -> Vec<&'a str> {
    let models = sources.iter().filter(|source| source.path.starts_with(INTERLEAVED));
    let names = models.flat_map(|source| source.text.lines()).filter_map(|line| {
        let name = line.strip_prefix("fn ")?.split('(').next()?;
        name.starts_with(CONTROL).then_some(name)
    });
    names.filter(|name| !listed.contains(name)).collect()
}

/// Compares the page with the list, and checks that each test of the list exists.
pub(super) fn check(tracked: &[TrackedFile], sources: &[RustSource]) -> Vec<TidyFinding> {
    let page = tracked.iter().find(|file| file.path.ends_with(PAGE)).map_or("", |file| &file.text);
    compare(page, sources)
}

fn compare(page: &str, sources: &[RustSource]) -> Vec<TidyFinding> {
    let finding = |what, remedy| TidyFinding { file: PAGE.into(), line: 1, rule: "proofs", what, remedy };
    let expected: Vec<_> = rows(sources).iter().map(ToString::to_string).collect();
    let told: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let remedy = "replace the page's rows by the output of `cargo xtask prove --list`";
    let missing = expected.iter().filter(|row| !told.contains(&row.as_str()));
    let left_over = told.iter().filter(|row| !expected.iter().any(|expected| expected == *row));
    let mut findings: Vec<_> =
        missing.map(|row| finding(format!("the page has no row {row}"), remedy)).collect();
    findings.extend(left_over.map(|row| finding(format!("the list has no row {row}"), remedy)));
    let in_crates = ENUMERATIONS.iter().map(|(package, test, _)| (format!("crates/{package}"), *test));
    let models = || {
        INTERLEAVINGS
            .iter()
            .flat_map(|(test, controls, _)| [*test].into_iter().chain(controls.iter().copied()))
    };
    for (package, test) in in_crates.chain(models().map(|test| (INTERLEAVED.to_owned(), test))) {
        let opening = format!("fn {}(", test.rsplit("::").next().unwrap_or(test));
        let exists =
            sources.iter().any(|source| source.path.starts_with(&package) && source.text.contains(&opening));
        if !exists {
            findings.push(finding(format!("{package} has no test {test}"), "correct the list of tests"));
        }
    }
    let listed: Vec<_> = models().filter_map(|test| test.rsplit("::").next()).collect();
    for control in unlisted_controls(sources, &listed) {
        findings
            .push(finding(format!("{INTERLEAVED} has a control {control} of no model"), "list the control"));
    }
    for bound in compiled(sources).iter().filter(|bound| bound.numbers.len() > MOST_NUMBERS) {
        let what = format!("bound {} has more than {MOST_NUMBERS} numbers", bound.name);
        findings.push(finding(what, "pack several numbers into one"));
    }
    findings
}

/// Reads a bound from the tokens of its macro: comments, `fn`, name and numbers.
fn bound(source: &RustSource, tokens: &[TokenTree]) -> Option<CompiledBound> {
    let start = (0..tokens.len()).find(|at| ident(tokens.get(*at)).is_some_and(|word| word == "fn"))?;
    let name = ident(tokens.get(start + 1))?.to_string();
    let numbers = numbers(&inside(group(tokens.get(start + 2), Delimiter::Parenthesis)?))?;
    let lines: Vec<_> = (0..start).filter_map(|at| comment(&tokens[at..])).collect();
    Some(CompiledBound { name, meaning: lines.join(" "), file: source.path.clone(), numbers })
}

/// Returns the text of a documentation comment, which tokens show as the attribute `doc`.
fn comment(tokens: &[TokenTree]) -> Option<String> {
    let words = inside(attribute(tokens)?);
    ident(words.first()).filter(|word| *word == "doc")?;
    let literal = words.get(2)?.to_string();
    Some(literal.trim_start_matches('r').trim_matches('"').trim().to_owned())
}

/// Reads numbers and their unsigned types.
fn numbers(tokens: &[TokenTree]) -> Option<Vec<(String, u32)>> {
    let parameters = tokens.split(|token| is_punct(Some(token), ',')).filter(|part| !part.is_empty());
    let number = |part: &[TokenTree]| {
        let kind = ident(part.get(2))?.to_string();
        Some((ident(part.first())?.to_string(), kind.strip_prefix('u')?.parse().ok()?))
    };
    parameters.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> RustSource {
        let mut source = RustSource::sample(text);
        source.path = "proofs/src/sample.rs".into();
        source
    }

    #[test]
    fn bounds_are_read_from_their_macros() {
        let text = "bound! {\n /// One line,\n /// and `two`.\n fn one(a: u32, b: u8) if a > 1; { [true, false] }\n}\n\
            control! { fn control_x(a: u64) if true; { a + 1 } }\n";
        let bounds = compiled(&[source(text)]);
        assert_eq!(bounds[1].meaning, "One line, and `two`.");
        assert_eq!(bounds[1].numbers, [("a".to_owned(), 32), ("b".to_owned(), 8)]);
        assert!(bounds[0].is_control() && !bounds[1].is_control());
        assert_eq!(compiled(&[RustSource::sample(text)]), []);
    }

    #[test]
    fn page_and_list_of_bounds_must_agree() {
        let sources = [source("bound! {\n /// Holds.\n fn one(a: u32) if true; { [true, false] }\n}\n")];
        let row = "| `one` | Holds. | `proofs/src/sample.rs` | all values |";
        let of_row = |page: &str| {
            let findings = compare(page, &sources).into_iter().map(|finding| finding.what);
            findings.filter(|what| what.contains("`one`") || what.contains("`two`")).count()
        };
        assert_eq!(of_row(row), 0);
        assert_eq!(of_row(&row.replace("Holds", "Fails")), 2);
        assert_eq!(of_row(&format!("{row}\n| `two` | |")), 1);
    }
}
