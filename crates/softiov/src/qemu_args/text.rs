//! Parts of the output that all functions have in common: shared memory, quoted words, attributes of XML.

/// Returns QEMU's arguments for guest memory that QEMU shares with the card, one per word.
pub(super) fn memory_words(memory: &str) -> [String; 6] {
    [
        "-object",
        &format!("memory-backend-memfd,id=mem0,size={memory},share=on"),
        "-machine",
        "q35,memory-backend=mem0",
        "-m",
        memory,
    ]
    .map(str::to_owned)
}

/// Returns QEMU's arguments for shared guest memory as shell text on two lines, which more lines must follow.
pub(super) fn memory_shell(memory: &str) -> String {
    let [object, backend, machine, q35, m, size] = memory_words(memory);
    format!("{object} {backend} \\\n{machine} {q35} {m} {size} \\\n")
}

pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Escapes a text for an XML attribute in single quotes.
pub(super) fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
