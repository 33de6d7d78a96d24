use super::*;
use crate::guide::{page::pages, plain};
use crate::{Fault, assert_caught, report, the_book};
use std::path::PathBuf;
use std::{env, fs, process};

const LADDER: &str =
    "//! One.\n\nfn main() {\n    let x = 1;\n    let y = 2;\n    end();\n    end();\n}\n";
const LOCK: &str =
    "name = \"wgpu\"\nversion = \"30.0.2\"\n\nname = \"wgpu-hal\"\nversion = \"30.0.2\"\n";

fn book(page: &str) -> Book {
    Book::of(&[
        ("guide/02_x.md", page),
        ("guide/runs/2026-11-30-llvmpipe.txt", "# llvmpipe\n| 184.5 µs |\n"),
        ("examples/01_ladder.rs", LADDER),
        ("shaders/01_ladder.wgsl", "@compute\nfn fold() {}\n"),
        ("justfile", "all:\n    cargo test\n"),
        ("Cargo.lock", LOCK),
    ])
}

fn check(page: &str) -> Vec<Fault> {
    let book = book(page);
    plain(findings(&book, &pages(&book), &Crates { registries: Vec::new() }))
}

/// A registry folder with one small crate in it.
fn registry(name: &str) -> Crates {
    let folder: PathBuf = env::temp_dir().join(format!("book-{name}-{}", process::id()));
    let source = folder.join("wgpu-hal-30.0.2/src");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("device.rs"), "one\nfn wait() {\nthree\n").unwrap();
    Crates { registries: vec![folder] }
}

#[test]
fn right_references_hold() {
    report(check("Set `x = 1` (`01_ladder.rs:4`), then `let y` (`examples/01_ladder.rs:5-7`).\n"));
    report(check(
        "The kernel `fold` `01_ladder.wgsl:2`, the recipe `all:` `justfile:1`, `184.5 µs` `runs/2026-11-30-llvmpipe.txt:2`.\n",
    ));
    report(check("`let x` [`01_ladder.rs:4-5`](../examples/01_ladder.rs#L4-L5)\n"));
    report(check("| `let x` | `01_ladder.rs:4` |\n|---|---|\n| `let y` | `01_ladder.rs:5` |\n"));
    report(check(
        "```text\nlet x = 1;   the first   01_ladder.rs:4\n│ let y │ (01_ladder.rs:5)\n```\n",
    ));
}

#[test]
fn what_is_no_reference_is_left_alone() {
    report(check(
        "`my_fold.rs:3`, `12:30`, `a::b:3`, `http://localhost:80`, `error at 01_ladder.rs:4:5`\n",
    ));
    report(check("```rust\n// examples/01_ladder.rs\n  4      let x = 1;\n```\n"));
}

#[test]
fn a_moved_line_is_caught() {
    let faults = check("Set\n`let x = 1;` (`01_ladder.rs:5`).\n");
    assert_caught(
        &faults,
        "`let x = 1;` is not on `01_ladder.rs:5`, which reads `let y = 2;`",
        "it writes 4",
    );
    assert_eq!(faults[0].at, "guide/02_x.md:2");
    assert_caught(&check("```text\nlet x = 1;  01_ladder.rs:5\n```\n"), "is not on", "it writes 4");
}

#[test]
fn a_wrong_witness_is_caught() {
    assert_caught(
        &check("`let z` (`01_ladder.rs:4`)"),
        "`let z` is not on",
        "it stands nowhere in examples/01_ladder.rs",
    );
    assert_caught(&check("`end();` (`01_ladder.rs:4`)"), "`end();` is not on", "stands 2 times");
}

#[test]
fn a_reference_without_a_witness_is_caught() {
    assert_caught(&check("See `01_ladder.rs:4`."), "has no witness", "just before the reference");
    assert_caught(
        &check("`let x` `01_ladder.rs:4` and `01_ladder.rs:5`"),
        "has no witness",
        "just before",
    );
    assert_caught(&check("```text\n01_ladder.rs:4\n```"), "has no witness", "just before");
}

#[test]
fn a_reference_in_plain_text_is_caught() {
    assert_caught(
        &check("`let x` (01_ladder.rs:4)."),
        "01_ladder.rs:4 is not in a code span",
        "write `01_ladder.rs:4`",
    );
}

#[test]
fn a_missing_file_and_a_line_past_the_end_are_caught() {
    assert_caught(&check("`x` `07_none.rs:4`"), "no such file", "path from the repository's root");
    assert_caught(&check("`let x` `01_ladder.rs:4-90`"), "has 8 lines", "it stands on line 4");
}

#[test]
fn a_link_that_differs_from_its_text_is_caught() {
    let link = |text: &str, to: &str| check(&format!("`let x` [`01_ladder.rs:{text}`]({to})"));
    assert_caught(
        &link("4", "../examples/01_ladder.rs#L5"),
        "`01_ladder.rs:4` links to #L5",
        "it writes 4",
    );
    assert_caught(&link("5", "../examples/01_ladder.rs#L4"), "`let x` is not on", "it writes 4");
    assert_caught(
        &link("4", "../shaders/01_ladder.wgsl#L4"),
        "links to ../shaders",
        "link to examples/01_ladder.rs",
    );
    assert_caught(
        &link("4", "../examples/01_ladder.rs"),
        "links to no line",
        "end the link in #L4",
    );
    assert_caught(
        &check("[the start](../examples/01_ladder.rs#L4)"),
        "its text does not name",
        "`FILE:4`",
    );
}

#[test]
fn references_into_wgpu_are_read_in_the_registry() {
    let crates = registry("read");
    let check = |page: &str| {
        let book = book(page);
        plain(findings(&book, &pages(&book), &crates))
    };
    report(check("`fn wait` (`wgpu-hal/src/device.rs:2`)"));
    let host = "https://example.org/wgpu/blob/v30.0.2/wgpu-hal/src/device.rs#L2";
    report(check(&format!("`fn wait` [`wgpu-hal/src/device.rs:2`]({host})")));
    let trunk = host.replace("v30.0.2", "trunk");
    assert_caught(
        &check(&format!("`fn wait` [`wgpu-hal/src/device.rs:2`]({trunk})")),
        "links to",
        "link to wgpu-hal",
    );
    assert_caught(&check("`fn wait` (`wgpu-hal/src/device.rs:3`)"), "is not on", "it writes 2");
    assert_caught(
        &check("`fn wait` (`wgpu-hal/src/queue.rs:3`)"),
        "no such file",
        "name the file that holds it",
    );
    fs::remove_dir_all(&crates.registries[0]).unwrap();
}

#[test]
fn absent_wgpu_sources_are_one_fault() {
    assert_caught(
        &check("`a` `wgpu/src/lib.rs:1` and `b` `wgpu-hal/src/x.rs:1`"),
        "registry folder",
        "cargo fetch",
    );
}

#[test]
fn a_part_of_a_figure_is_no_witness() {
    use super::stands_in;
    let row = "| 2^14 | 154.0 | 60.01 | 67,108 |";
    for whole in ["154.0", "154.0 | 60.01", "60.01", "67,108", "2^14"] {
        assert!(stands_in(row, whole), "{whole}");
    }
    for part in ["54.0", "4.0", "154", "0.01", "60.0", "67", "108", "0"] {
        assert!(!stands_in(row, part), "{part}");
    }
}

#[test]
fn the_book_holds() {
    let book = the_book();
    report(plain(findings(&book, &pages(&book), &Crates::of_cargo())));
}
