//! What `just bless` does: it makes the repairs that need no author. Line numbers, the numbers of excerpts and quotes,
//! `notes_template.md`, the index of exhibits and the wgpu version in the examples' headers; never prose.

use super::{Finding, findings, plain};
use crate::{Book, Fault};
use std::cmp::Reverse;
use std::ops::Range;

/// One replacement in one file, in bytes.
#[derive(Clone)]
pub struct Edit {
    pub file: String,
    pub range: Range<usize>,
    pub text: String,
}

/// Makes every mechanical repair, and returns the faults that are repaired. Those that need an author stay.
pub fn bless(book: &mut Book) -> Vec<Fault> {
    let mut repaired = Vec::new();
    // One repair may call for another: a number that moves in a question moves in the notes too. Three rounds are plenty.
    for _ in 0..3 {
        let mut mendable = findings(book);
        mendable.extend(stale_versions(book));
        mendable.retain(|finding| !finding.edits.is_empty());
        apply(book, mendable.iter().flat_map(|finding| finding.edits.clone()).collect());
        repaired.extend(plain(mendable));
    }
    repaired
}

/// Applies edits from the back of each file to its front, so that the ranges in front stay right.
fn apply(book: &mut Book, mut edits: Vec<Edit>) {
    edits.sort_by_key(|edit| (edit.file.clone(), Reverse(edit.range.start)));
    // Two faults may ask for one repair.
    edits.dedup_by(|a, b| a.file == b.file && a.range == b.range);
    // What is written anew as a whole needs no mending inside.
    let outer: Vec<(String, Range<usize>)> =
        edits.iter().map(|edit| (edit.file.clone(), edit.range.clone())).collect();
    edits.retain(|edit| {
        let inside = |range: &Range<usize>| {
            *range != edit.range && range.start <= edit.range.start && edit.range.end <= range.end
        };
        !outer.iter().any(|(file, range)| *file == edit.file && inside(range))
    });
    for edit in edits {
        book.files.entry(edit.file).or_default().replace_range(edit.range, &edit.text);
    }
}

/// `const WGPU: &str = "30.0.2";` is what an example's header prints. inventory.rs holds it equal to Cargo.lock.
fn stale_versions(book: &Book) -> Vec<Finding> {
    const BEFORE: &str = "const WGPU: &str = \"";
    let Some(locked) = book.locked_version("wgpu") else { return Vec::new() };
    let mut found = Vec::new();
    for (path, source) in book.files.iter().filter(|(path, _)| path.starts_with("examples/")) {
        let Some(start) = source.find(BEFORE).map(|at| at + BEFORE.len()) else { continue };
        let written = source[start..].split('"').next().unwrap_or_default();
        if written != locked {
            let range = start..start + written.len();
            let edit = Edit { file: path.clone(), range, text: locked.to_string() };
            let what = format!("says wgpu {written}, but Cargo.lock has {locked}");
            found.push(Finding::mended_by(
                path.clone(),
                what,
                format!("it writes {locked}"),
                vec![edit],
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_caught;
    use crate::guide::faults;

    /// Blesses a page beside a small example and a small run, and returns the page and the faults that remain.
    fn blessed(page: &str) -> (String, Vec<Fault>) {
        let mut book = Book::of(&[
            ("guide/02_x.md", page),
            (
                "examples/02_x.rs",
                "//! One.\n\nfn main() {\n    let x = 1;\n    end();\n    end();\n}\n",
            ),
            ("guide/runs/2026-11-30-llvmpipe.txt", "# llvmpipe\n\n| n |\n| 184.5 µs |\n"),
        ]);
        bless(&mut book);
        (book.text("guide/02_x.md").to_string(), faults(&book))
    }

    /// Asserts that blessing turns one page into the other, and leaves no fault.
    #[track_caller]
    fn assert_mended(page: &str, expected: &str) {
        let (mended, left) = blessed(page);
        assert_eq!(mended, expected);
        assert_eq!(left, []);
    }

    #[test]
    fn a_moved_line_is_mended() {
        assert_mended(
            "Set `let x` (`02_x.rs:9`), `main` (`02_x.rs:1-2`).",
            "Set `let x` (`02_x.rs:4`), `main` (`02_x.rs:3-4`).",
        );
        assert_mended(
            "```text\nlet x = 1;  02_x.rs:99\n```\n",
            "```text\nlet x = 1;  02_x.rs:4\n```\n",
        );
    }

    #[test]
    fn a_figure_is_not_moved_to_another_line_of_a_record() {
        let page = "`184.5 µs` `runs/2026-11-30-llvmpipe.txt:3`";
        let (left, faults) = blessed(page);
        assert_eq!(left, page);
        assert_caught(&faults, "`184.5 µs` is not on", "it stands on line 4");
    }

    #[test]
    fn a_link_is_mended_in_its_text_and_its_target() {
        let right = "`let x` [`02_x.rs:4`](../examples/02_x.rs#L4)";
        assert_mended("`let x` [`02_x.rs:3`](../examples/02_x.rs#L3)", right);
        assert_mended("`let x` [`02_x.rs:4`](../examples/02_x.rs#L3)", right);
        assert_mended("`let x` [`02_x.rs:3`](../examples/02_x.rs#L4)", right);
        // With two homes, the one that either side names is meant.
        let twice = "`end();` [`02_x.rs:6`](../examples/02_x.rs#L6)";
        assert_mended("`end();` [`02_x.rs:3`](../examples/02_x.rs#L6)", twice);
    }

    #[test]
    fn an_ambiguous_line_is_left_with_its_fault() {
        let page = "Then `end();` (`02_x.rs:3`).";
        let (left, faults) = blessed(page);
        assert_eq!(left, page);
        assert_caught(&faults, "`end();` is not on `02_x.rs:3`", "stands 2 times");
    }

    #[test]
    fn a_moved_excerpt_is_mended() {
        let right = "1. Look:\n\n   ```rust\n   // examples/02_x.rs\n     3  fn main() {\n     4      let x = 1;\n     …\n     7  }\n   ```\n";
        let moved = right
            .replace("     3  ", "     9  ")
            .replace("     4  ", "    10  ")
            .replace("     7  }", "    13  }");
        assert_mended(&moved, right);
    }

    #[test]
    fn a_moved_quote_is_mended() {
        let quote = |line| {
            format!(
                "```console\n# runs/2026-11-30-llvmpipe.txt:{line}\n| n |\n…\n| 184.5 µs |\n```\n"
            )
        };
        assert_mended(&quote(1), &quote(3));
    }

    #[test]
    fn the_notes_and_the_versions_are_written() {
        let mut book = Book::of(&[
            ("Cargo.lock", "name = \"wgpu\"\nversion = \"30.0.2\"\n"),
            ("examples/01_x.rs", "const WGPU: &str = \"29.0.1\";\n"),
            ("guide/SUMMARY.md", "- [x](01_x.md)\n"),
            ("guide/01_x.md", "- 01.1 one: predict __ µs  measured __ µs\n"),
        ]);
        assert_eq!(bless(&mut book).len(), 2);
        assert_eq!(book.text("examples/01_x.rs"), "const WGPU: &str = \"30.0.2\";\n");
        assert!(book.text("guide/notes_template.md").contains("## 01 X\n\n- 01.1 one:"));
        assert_eq!(bless(&mut book), []);
    }
}
