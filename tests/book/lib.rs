//! The checks that keep the book true. This is about the book, not about your code: nothing here needs a GPU, and
//! nothing here looks at `examples/my_*.rs` or `shaders/my_*.wgsl`.
//!
//! Each check is a function from a [`Book`] to the [`Fault`]s that it finds; its tests feed it small wrong books, and
//! one last test feeds it the real one. Where a repair is mechanical, `just bless` makes it.

pub mod gallery;
pub mod guide;
pub mod inventory;
pub mod ladder;
pub mod shaders;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Every text file that the book consists of, by its path from the repository's root, always with `/`.
#[derive(Clone, Default)]
pub struct Book {
    pub files: BTreeMap<String, String>,
}

/// Something in the book that is no longer true, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where: `guide/02_fixed_tax.md:17`.
    pub at: String,
    /// What is wrong, in one line.
    pub what: String,
    /// The repair: a command, or the edit to make.
    pub repair: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}\n    repair: {}", self.at, self.what, self.repair)
    }
}

/// The files at the root that the book speaks of.
const ROOT_FILES: [&str; 9] = [
    ".ci/run",
    ".gitignore",
    ".rustfmt.toml",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "justfile",
];

/// What the text files in the book's folders end in.
const ENDINGS: [&str; 7] = [".rs", ".wgsl", ".md", ".toml", ".txt", ".svg", ".css"];

/// The repository's root, two folders above this package.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Book {
    /// Reads the book from the repository at `root`. Files that are not there are inventory.rs's business.
    pub fn load(root: &Path) -> Result<Book, String> {
        let mut book = Book::default();
        for path in ROOT_FILES {
            if root.join(path).is_file() {
                book.read(root, path)?;
            }
        }
        for folder in ["examples", "shaders", "tests", "guide"] {
            book.read_folder(root, folder)?;
        }
        Ok(book)
    }

    /// A small book out of paths and texts, for the tests of the checks.
    pub fn of(files: &[(&str, &str)]) -> Book {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string()));
        Book { files: files.collect() }
    }

    /// The text of a file, empty where there is no such file.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// The version of a package in Cargo.lock.
    pub fn locked_version(&self, package: &str) -> Option<&str> {
        let (_, rest) =
            self.text("Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \""))?;
        rest.split('"').next()
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<(), String> {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { return Ok(()) };
        for entry in entries {
            let name = entry.map_err(|e| format!("cannot list {folder}: {e}"))?.file_name();
            let name = name.to_string_lossy();
            let path = format!("{folder}/{name}");
            // my_* is the reader's, and no check's business; the checks' own tests are full of wrong books.
            if name.starts_with("my_") || path == "tests/book" {
                continue;
            }
            if root.join(&path).is_dir() {
                self.read_folder(root, &path)?;
            } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                self.read(root, &path)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, root: &Path, path: &str) -> Result<(), String> {
        let text =
            fs::read_to_string(root.join(path)).map_err(|e| format!("cannot read {path}: {e}"))?;
        // A checkout on Windows may have turned the line ends.
        self.files.insert(path.to_string(), text.replace("\r\n", "\n"));
        Ok(())
    }
}

/// Every check on a book: what `just bless` prints once it has repaired what it can.
pub fn faults(book: &Book) -> Vec<Fault> {
    let mut faults = guide::faults(book);
    faults.extend(ladder::faults(book));
    faults.extend(shaders::faults(book));
    faults.extend(inventory::faults(book));
    faults
}

/// Fails when there are faults, and says that they are the book's and not the reader's.
#[track_caller]
pub fn report(mut faults: Vec<Fault>) {
    faults.sort();
    let list: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(
        faults.is_empty(),
        "this is about the book, not your code: {} fault(s)\n\n{}\n",
        faults.len(),
        list.join("\n")
    );
}

/// The real book, for the last test of each module.
#[cfg(test)]
fn the_book() -> Book {
    Book::load(&root()).unwrap()
}

/// Asserts that there is exactly one fault, that it says `what`, and that its repair says `repair`.
#[cfg(test)]
#[track_caller]
fn assert_caught(faults: &[Fault], what: &str, repair: &str) {
    let [fault] = faults else { panic!("expected one fault with {what:?}, found {faults:#?}") };
    assert!(fault.what.contains(what), "{what:?} is not in {:?}", fault.what);
    assert!(fault.repair.contains(repair), "{repair:?} is not in {:?}", fault.repair);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "this is about the book, not your code: 1 fault(s)\n\nREADME.md:3: is wrong\n    repair: mend it"
    )]
    fn a_report_says_whose_faults_they_are() {
        let fault = |text: &str| text.to_string();
        report(vec![Fault {
            at: fault("README.md:3"),
            what: fault("is wrong"),
            repair: fault("mend it"),
        }]);
    }

    #[test]
    fn the_book_is_read_without_its_checks_and_the_readers_own() {
        let book = the_book();
        assert!(book.locked_version("wgpu").is_some());
        assert!(book.files.keys().any(|path| path.starts_with("examples/")));
        assert!(
            !book.files.keys().any(|path| path.contains("/my_") || path.starts_with("tests/book"))
        );
    }
}
