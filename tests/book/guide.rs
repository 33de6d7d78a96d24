//! What a chapter may write, and what holds it true. This is the manual of the guide's authors; the pages checked are
//! `README.md` and every `guide/**/*.md`. `just bless` repairs whatever a fault says it does, and never touches prose.
//!
//! - **Line reference**: `` `let x = 1;` (`01_object_ladder.rs:69`) ``. The code span just before it in the same paragraph,
//!   list item or table row is its *witness* and must stand on that line (of a range, `:69-75`, on its first line). A
//!   bare name lies in `examples/` or `shaders/`; otherwise write the path. In a fence the row's first column is the
//!   witness. As a link, `` [`01_object_ladder.rs:69`](../examples/01_object_ladder.rs#L69) ``, text and `#L69` agree.
//!   A reference in plain text, and a link to a line whose text is no reference, are faults.
//! - **Reference into wgpu**: `` `wgpu-hal/src/metal/device.rs:2017` ``, crate and path without a version, witness as
//!   above, checked against the sources of the version in `Cargo.lock`.
//! - **Excerpt**: a fence whose first row is `// examples/01_object_ladder.rs` (`# Cargo.toml` in toml). Every other row
//!   is the line's number, right-aligned, two spaces and the line; `…` alone stands for the lines left out.
//! - **Arithmetic**: in `text` fences, `label: left = right` or `left ≈ right`, one claim a line. It must be true to within
//!   half a unit of the right side's last digit. Words are units or counts, which `arithmetic.rs` lists.
//! - **Quoted measurement**: `` `184.5 µs` (`runs/2026-11-30-llvmpipe.txt:42`) ``; or a `console` fence whose first row is
//!   `# runs/2026-11-30-llvmpipe.txt:12`, the other rows being that file's lines from 12 on, `…` skipping any number of
//!   them. A time or a bandwidth in prose without such a citation, or a link to its source, is a fault.
//! - **Slot**: `- 02.1 empty submit and wait: predict __ µs  measured __ µs`, numbered from 1. **Card line**:
//!   `- card.submit empty submit and wait: __ µs`. Both on one line; `notes_template.md` is blessed out of them.
//! - **Question**: a paragraph `**Question 02.A.** text`, lettered from A, then `<details>`, `<summary>Answer</summary>`,
//!   an empty line, the answer, an empty line, `</details>`.
//! - **Commands** in `console` and `sh` fences and in code spans name examples, tests and recipes that exist.
//! - **Try edit**: a `diff` fence whose first row is `--- shaders/X.wgsl` or `--- examples/X.rs`. Each run of `-` rows
//!   (and of context rows just before it) occurs once in that file, and the edited file still validates or compiles;
//!   ```` ```diff rejected ```` says that naga is meant to reject the edited shader.
//! - **Index of exhibits**, in `reference/errors.md` between `<!-- gallery: … -->` and `<!-- /gallery -->`: blessed out of
//!   13's `EXHIBITS`, a shelf each.
//! - **Links** resolve: files, `#anchors`, and `#L` line numbers.

pub mod arithmetic;
pub mod commands;
pub mod excerpts;
pub mod figures;
pub mod lines;
pub mod links;
pub mod measurements;
pub mod mend;
pub mod notes;
pub mod page;
pub mod references;
pub mod tries;
pub mod wgpu_sources;

use crate::{Book, Fault};
use mend::Edit;

/// A fault, and the edits that repair it where that is mechanical.
pub struct Finding {
    pub fault: Fault,
    pub edits: Vec<Edit>,
}

impl Finding {
    /// A fault that only an author can repair.
    pub(crate) fn new(at: String, what: impl Into<String>, repair: impl Into<String>) -> Finding {
        Finding { fault: Fault { at, what: what.into(), repair: repair.into() }, edits: Vec::new() }
    }

    /// A fault that bless repairs with `edits`; `does` says what they do.
    pub(crate) fn mended_by(
        at: String,
        what: impl Into<String>,
        does: String,
        edits: Vec<Edit>,
    ) -> Finding {
        let repair = format!("run `just bless`: {does}");
        Finding { fault: Fault { at, what: what.into(), repair }, edits }
    }
}

/// Everything that is wrong with the guide.
pub fn faults(book: &Book) -> Vec<Fault> {
    plain(findings(book))
}

fn findings(book: &Book) -> Vec<Finding> {
    let pages = page::pages(book);
    let crates = wgpu_sources::Crates::of_cargo();
    let mut found = references::findings(book, &pages, &crates);
    found.extend(excerpts::findings(book, &pages));
    found.extend(measurements::findings(book, &pages));
    found.extend(arithmetic::findings(&pages));
    found.extend(notes::findings(book, &pages));
    found.extend(commands::findings(book, &pages));
    found.extend(tries::findings(book, &pages));
    found.extend(links::findings(book, &pages));
    found.extend(crate::gallery::findings(book));
    found.extend(figures::findings(book));
    found
}

fn plain(findings: Vec<Finding>) -> Vec<Fault> {
    findings.into_iter().map(|finding| finding.fault).collect()
}
