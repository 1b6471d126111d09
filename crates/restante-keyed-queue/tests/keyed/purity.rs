//! The core stays pure: its sources name nothing that differs from run to run.

use std::path::Path;

#[test]
fn the_core_names_no_clock_entropy_io_thread_or_unordered_map() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    let forbidden = [
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::thread",
        "std::sync",
        "HashMap",
        "HashSet",
        "HashTable",
        "RandomState",
        "tokio",
        "async fn",
        "async move",
    ];
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        for word in forbidden {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
        files += 1;
    }
    assert!(files >= 5);
}
