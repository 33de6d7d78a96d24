//! The same stem everywhere, and nothing orphaned: every example has its shader, chapter, test, slots and rows, and
//! each of them has its example. Also what the examples share: the packages, the profile, and `just all`.

use std::collections::BTreeSet;

use crate::shaders::{strings, users};
use crate::{Book, Fault};

const PACKAGES: [&str; 5] = ["bytemuck", "env_logger", "flume", "pollster", "wgpu"];
/// What belongs to the reader, and so to no commit and no check.
const IGNORED: [&str; 3] = ["/notes.md", "examples/my_*.rs", "shaders/my_*.wgsl"];

/// One `examples/NN_name.rs`.
#[derive(Clone, Copy)]
pub struct Example<'a> {
    pub path: &'a str,
    /// `NN_name`
    pub stem: &'a str,
    pub number: usize,
    pub text: &'a str,
}

/// The examples of the book, in order.
pub fn examples(book: &Book) -> Vec<Example<'_>> {
    let paths = stems(book, "examples/", ".rs");
    let example = |(path, stem, text)| Some(Example { path, stem, number: number(stem)?, text });
    paths.filter_map(example).collect()
}

/// Name (without folder and ending), path and text of every shader of the book.
pub fn shaders(book: &Book) -> Vec<(&str, &str, &str)> {
    stems(book, "shaders/", ".wgsl").map(|(path, name, text)| (name, path, text)).collect()
}

/// Path, stem and text.
type File<'a> = (&'a str, &'a str, &'a str);

/// The files right in a folder, but for those that begin with `my_`, which are not the book's.
fn stems<'a>(book: &'a Book, folder: &str, ending: &str) -> impl Iterator<Item = File<'a>> {
    book.files.iter().filter_map(move |(path, text)| {
        let stem = path.strip_prefix(folder)?.strip_suffix(ending)?;
        let ours = !stem.contains('/') && !stem.starts_with("my_");
        ours.then_some((path.as_str(), stem, text.as_str()))
    })
}

/// The number that a stem begins with: 2 of `02_fixed_tax`.
fn number(stem: &str) -> Option<usize> {
    let (digits, _) = stem.split_once('_')?;
    (digits.len() == 2).then(|| digits.parse().ok())?
}

pub fn fault(at: impl Into<String>, what: impl Into<String>, repair: impl Into<String>) -> Fault {
    Fault { at: at.into(), what: what.into(), repair: repair.into() }
}

/// Everything that this module holds against the book.
pub fn faults(book: &Book) -> Vec<Fault> {
    let examples = examples(book);
    let mut faults = numbers(book, &examples);
    for example in &examples {
        faults.extend(belongings(book, example));
        faults.extend(ids(book, example));
        faults.extend(version(book, example));
    }
    faults.extend(outlook(&examples));
    faults.extend(orphans(book, &examples));
    faults.extend(unlisted(book));
    faults.extend(manifest(book));
    faults.extend(just_all(book, &examples));
    let ignored: Vec<&str> = book.text(".gitignore").lines().collect();
    for pattern in IGNORED.iter().filter(|pattern| !ignored.contains(pattern)) {
        let what = format!("does not ignore {pattern}, which is the reader's");
        faults.push(fault(".gitignore", what, format!("add the line `{pattern}`")));
    }
    faults
}

/// The examples are numbered from 00 without a gap.
fn numbers(book: &Book, examples: &[Example]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, stem, _) in stems(book, "examples/", ".rs") {
        if number(stem).is_none() {
            let repair = format!("name it NN_{stem}.rs, or my_{stem}.rs if it is an experiment");
            faults.push(fault(path, "is not called after a lesson", repair));
        }
    }
    let mut numbered = examples.iter().enumerate();
    if let Some((wanted, example)) = numbered.find(|(wanted, example)| *wanted != example.number) {
        let what = format!("{wanted:02} is expected in this place");
        let repair = "number the examples from 00 without a gap, each number once";
        faults.push(fault(example.path, what, repair));
    }
    faults
}

/// What an example needs beside it.
fn belongings(book: &Book, example: &Example) -> Vec<Fault> {
    let Example { path, stem, number, text } = *example;
    let mut faults = Vec::new();
    let chapter = format!("guide/{stem}.md");
    for file in [&chapter, &format!("tests/{stem}.rs")] {
        if !book.files.contains_key(file) {
            faults.push(fault(path, format!("there is no {file}"), format!("write {file}")));
        }
    }
    if !has_row(book, stem) {
        let what = format!("has no row for {stem}");
        faults.push(fault("README.md", what, format!("add a table row with a link to {chapter}")));
    }
    if book.files.contains_key(&chapter) && number > 0 && slots(book, stem).is_empty() {
        let repair = format!("add a line `- {number:02}.1 …: predict __ µs  measured __ µs`");
        faults.push(fault(chapter, "has no slots to write a prediction in", repair));
    }
    for included in strings(text).iter().filter_map(|text| text.strip_prefix("../shaders/")) {
        if !owns(stem, included.trim_end_matches(".wgsl")) {
            let what = format!("includes shaders/{included}, which is another example's");
            let repair = format!("copy it to shaders/{stem}.wgsl: an example stands alone");
            faults.push(fault(path, what, repair));
        } else if !book.files.contains_key(&format!("shaders/{included}")) {
            let what = format!("there is no shaders/{included}");
            faults.push(fault(path, what, "write it, or do not include it"));
        }
    }
    faults
}

/// Whether a shader is `NN_name` or `NN_name_FEATURE`.
pub fn owns(stem: &str, shader: &str) -> bool {
    shader.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn has_row(book: &Book, stem: &str) -> bool {
    let link = format!("(guide/{stem}.md)");
    book.text("README.md").lines().any(|line| line.starts_with('|') && line.contains(&link))
}

/// The ids of a chapter's slots: `02.1` in `- 02.1 empty submit and wait: predict __ µs  measured __ µs`.
fn slots(book: &Book, stem: &str) -> BTreeSet<String> {
    let text = book.text(&format!("guide/{stem}.md"));
    let ids = text.lines().filter_map(|line| line.strip_prefix("- ")?.split(' ').next());
    ids.filter(|id| is_id(id)).map(str::to_string).collect()
}

fn is_id(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|sign| sign.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(chapter, slot)| chapter.len() == 2 && digits(chapter) && digits(slot))
}

/// What an example prints for notes.md are the slots of its chapter.
fn ids(book: &Book, example: &Example) -> Vec<Fault> {
    let chapter = format!("guide/{}.md", example.stem);
    if !book.files.contains_key(&chapter) {
        return Vec::new();
    }
    let slots = slots(book, example.stem);
    let printed = printed(example);
    let idle = slots.difference(&printed).map(|id| {
        let what = format!("the slot {id} is none that {} fills", example.path);
        fault(&chapter, what, format!("print `{id} measured …` there, or drop the slot"))
    });
    let homeless = printed.difference(&slots).map(|id| {
        let what = format!("`{id} measured` fills no slot of {chapter}");
        fault(example.path, what, format!("add a line `- {id} …` there, or do not print it"))
    });
    idle.chain(homeless).collect()
}

/// The ids that an example prints: `02.1` in `For notes.md:  02.1 measured 11.1 µs`.
fn printed(example: &Example) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for text in strings(example.text) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let measured = words.windows(2).filter(|pair| is_id(pair[0]) && pair[1] == "measured");
        ids.extend(measured.map(|pair| pair[0].to_string()));
    }
    ids
}

/// The version that an example prints in its header is the one in Cargo.lock.
fn version(book: &Book, example: &Example) -> Option<Fault> {
    let (_, rest) = example.text.split_once("const WGPU: &str = \"")?;
    let (printed, locked) = (rest.split('"').next()?, book.locked_version("wgpu")?);
    (printed != locked).then(|| {
        let what = format!("says that it runs wgpu {printed}; Cargo.lock has {locked}");
        fault(example.path, what, "run `just bless`: it copies the version from there")
    })
}

/// The doctor has a line for every lesson after it.
fn outlook(examples: &[Example]) -> Vec<Fault> {
    let Some((doctor, lessons)) = examples.split_first() else { return Vec::new() };
    let row = |lesson: &Example| {
        let name = lesson.stem.get(3..).unwrap_or_default();
        format!("({}, \"{name}\")", lesson.number)
    };
    let missing = lessons.iter().map(row).filter(|row| !doctor.text.contains(row));
    let what =
        |row| fault(doctor.path, "has no line for a lesson", format!("add {row} to LESSONS"));
    missing.map(what).collect()
}

/// Files and rows whose example is gone, or never was.
fn orphans(book: &Book, examples: &[Example]) -> Vec<Fault> {
    let known =
        |stem: &str| number(stem).is_none() || examples.iter().any(|example| example.stem == stem);
    let mut faults = Vec::new();
    for (folder, ending) in [("guide/", ".md"), ("tests/", ".rs")] {
        for (path, stem, _) in stems(book, folder, ending).filter(|(_, stem, _)| !known(stem)) {
            let repair =
                format!("write examples/{stem}.rs, or give the file the name of its example");
            faults.push(fault(path, format!("there is no examples/{stem}.rs"), repair));
        }
    }
    for (name, path, _) in shaders(book) {
        if !users(examples, name).iter().any(|user| owns(user.stem, name)) {
            let repair = "include it in the example of its name, or delete it";
            faults.push(fault(path, "no example of its name includes it", repair));
        }
    }
    for (page, before) in [("README.md", "(guide/"), ("guide/SUMMARY.md", "(")] {
        for (at, line) in book.text(page).lines().enumerate() {
            let target = line.split_once(before).and_then(|(_, rest)| rest.split_once(".md)"));
            if let Some((stem, _)) = target.filter(|(stem, _)| !known(stem)) {
                let what = format!("there is no examples/{stem}.rs for this row");
                faults.push(fault(format!("{page}:{}", at + 1), what, "take the row out"));
            }
        }
    }
    faults
}

/// Pages that SUMMARY.md does not list, and runs and figures that no page shows.
fn unlisted(book: &Book) -> Vec<Fault> {
    let summary = book.text("guide/SUMMARY.md");
    let mut faults = Vec::new();
    for path in book.files.keys() {
        let Some(inside) = path.strip_prefix("guide/") else { continue };
        if inside.starts_with("runs/") || inside.starts_with("figures/") {
            let pages = book.files.iter().filter(|(page, _)| page.ends_with(".md"));
            if !pages.into_iter().any(|(_, text)| text.contains(inside)) {
                let repair = format!("cite `{inside}` where it belongs, or delete it");
                faults.push(fault(path, "no page cites or links it", repair));
            }
        } else if inside.ends_with(".md") && inside != "SUMMARY.md" {
            let link = format!("({inside})");
            if !summary.contains(&link) {
                let repair = format!("add a row with a link to {link}");
                faults.push(fault(path, "is not in guide/SUMMARY.md", repair));
            }
        }
    }
    faults
}

/// The packages that every reader compiles, and the profile that every reader measures with.
fn manifest(book: &Book) -> Vec<Fault> {
    let path = "Cargo.toml";
    let manifest: toml::Table = match book.text(path).parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![fault(path, error.message(), "mend it")],
    };
    let mut faults = Vec::new();
    let named = manifest.get("dependencies").and_then(toml::Value::as_table);
    let named: BTreeSet<&str> =
        named.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if named != BTreeSet::from(PACKAGES) {
        let what = format!("names {}; the examples have {}", list(&named), list(&PACKAGES));
        let repair = "keep to those five: what a check needs belongs in tests/book/Cargo.toml";
        faults.push(fault(path, what, repair));
    }
    for table in ["dev-dependencies", "build-dependencies", "target"] {
        if manifest.contains_key(table) {
            let what = format!("has [{table}], which a reader's first `cargo run` may compile");
            faults.push(fault(path, what, "move it to tests/book/Cargo.toml"));
        }
    }
    let assertions =
        manifest.get("profile").and_then(|table| table.get("dev")?.get("debug-assertions"));
    if assertions.and_then(toml::Value::as_bool) != Some(false) {
        let what = "debug assertions are on in [profile.dev]: wgpu validates, and no time is true";
        faults.push(fault(path, what, "write `debug-assertions = false` there"));
    }
    faults
}

fn list<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> String {
    words.into_iter().copied().collect::<Vec<_>>().join(", ")
}

/// `just all` runs every example in order: in a loop over the files, which the shell sorts, or by name.
fn just_all(book: &Book, examples: &[Example]) -> Option<Fault> {
    let mut lines = book
        .text("justfile")
        .lines()
        .skip_while(|line| line.split([' ', ':']).next() != Some("all"));
    let heading = lines.next().unwrap_or_default();
    let body = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
    let recipe = format!("{heading}\n{}", body.collect::<Vec<_>>().join("\n"));
    let words = recipe.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    let named: Vec<&str> = words.filter(|word| number(word).is_some()).collect();
    let complete = recipe.contains("examples/[0-9]*.rs")
        || named.iter().eq(examples.iter().map(|one| &one.stem));
    (!complete).then(|| {
        let what = "the recipe `all` does not run every example in order";
        fault("justfile", what, "let it loop over `examples/[0-9]*.rs`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_caught;

    const TAX: &str = r#"
        const WGPU: &str = "30.0.2";
        fn main() { (include_wgsl!("../shaders/01_tax.wgsl"), "01.1 measured {a}   01.2 measured 7") }
    "#;
    const CHAPTER: &str = "
- 01.1 a: predict __ µs
- 01.2 b: predict __ µs
[run](runs/a.txt)";
    const MANIFEST: &str = r#"
        [dependencies]
        wgpu = { version = "30" }
        pollster = "1"
        bytemuck = "1"
        env_logger = "0.11"
        flume = "0.12"
        [profile.dev]
        debug-assertions = false
    "#;
    const SUMMARY: &str = "
[Guide](README.md)
- [Doctor](00_doctor.md)
- [Tax](01_tax.md)
- [Limits](reference/limits.md)";
    const LOOP: &str = "for e in examples/[0-9]*.rs; do run $e; done";

    fn right() -> Book {
        let rows = "|00|[doctor](guide/00_doctor.md)|\n|01|[tax](guide/01_tax.md)|\n";
        Book::of(&[
            (".gitignore", &IGNORED.join("\n")),
            ("Cargo.toml", MANIFEST),
            ("README.md", rows),
            ("Cargo.lock", "[[package]]\nname = \"wgpu\"\nversion = \"30.0.2\"\n"),
            ("examples/00_doctor.rs", "const LESSONS: [(u32, &str); 1] = [(1, \"tax\")];"),
            ("examples/01_tax.rs", TAX),
            ("examples/my_try.rs", "not even Rust"),
            ("guide/00_doctor.md", "# Doctor"),
            ("guide/01_tax.md", CHAPTER),
            ("guide/README.md", "# Guide"),
            ("guide/SUMMARY.md", SUMMARY),
            ("guide/reference/limits.md", "# Limits"),
            ("guide/runs/a.txt", "11.1 µs"),
            ("justfile", &format!("check:\n    cargo test\n\nall:\n    {LOOP}\n")),
            ("shaders/01_tax.wgsl", ""),
            ("shaders/my_try.wgsl", "not even WGSL"),
            ("tests/00_doctor.rs", ""),
            ("tests/01_tax.rs", ""),
        ])
    }

    /// The faults of the right book after one edit in one file.
    fn edited(path: &str, from: &str, to: &str) -> Vec<Fault> {
        let mut book = right();
        let text = book.files.get_mut(path).unwrap();
        assert!(text.contains(from), "{from:?} is not in {path}");
        *text = text.replace(from, to);
        faults(&book)
    }

    #[track_caller]
    fn caught(path: &str, from: &str, to: &str, what: &str, repair: &str) {
        assert_caught(&edited(path, from, to), what, repair);
    }

    #[track_caller]
    fn caught_without(path: &str, what: &str, repair: &str) {
        let mut book = right();
        book.files.remove(path).unwrap();
        assert_caught(&faults(&book), what, repair);
    }

    #[track_caller]
    fn caught_with(path: &str, what: &str, repair: &str) {
        let mut book = right();
        book.files.insert(path.into(), String::new());
        assert_caught(&faults(&book), what, repair);
    }

    #[test]
    fn a_right_book_passes() {
        assert_eq!(faults(&right()), []);
        assert_eq!(edited("justfile", LOOP, "run 00_doctor\n    run 01_tax"), []);
    }

    #[test]
    fn what_an_example_lacks_is_caught() {
        caught_without("tests/01_tax.rs", "there is no tests/01_tax.rs", "write tests/01_tax.rs");
        caught_without("guide/00_doctor.md", "there is no guide/00_doctor.md", "write guide/00");
        caught_without("shaders/01_tax.wgsl", "there is no shaders/01_tax.wgsl", "write it");
        caught("README.md", "(guide/01_tax.md)", "", "no row for 01_tax", "add a table row");
        let faults = edited("guide/01_tax.md", "- 01.", "- ");
        assert_caught(&faults[..1], "has no slots", "add a line `- 01.1 …: predict __ µs");
        let borrowed = "f(\"../shaders/01_tax.wgsl\")";
        let what = "includes shaders/01_tax.wgsl, which is another example's";
        caught(
            "examples/00_doctor.rs",
            "const",
            &format!("{borrowed} const"),
            what,
            "stands alone",
        );
        let repair = "add (1, \"tax\") to LESSONS";
        caught("examples/00_doctor.rs", "(1, \"tax\")", "", "has no line for a lesson", repair);
    }

    #[test]
    fn orphans_are_caught() {
        let mut book = right();
        book.files.insert("guide/07_gone.md".into(), String::new());
        book.files.insert("guide/SUMMARY.md".into(), format!("{SUMMARY}\n- [Gone](07_gone.md)"));
        let faults = faults(&book);
        assert_eq!((faults.len(), faults[0].at.as_str()), (2, "guide/07_gone.md"));
        assert_caught(&faults[..1], "there is no examples/07_gone.rs", "write examples/07_gone.rs");
        assert_caught(&faults[1..], "07_gone.rs for this row", "take the row out");
        let rows = "|07|[gone](guide/07_gone.md)|\n|00|";
        caught("README.md", "|00|", rows, "07_gone.rs for this row", "take the row out");
        caught_with(
            "tests/07_gone.rs",
            "there is no examples/07_gone.rs",
            "write examples/07_gone",
        );
        caught_with("shaders/07_gone.wgsl", "no example of its name includes it", "or delete it");
        caught_with("shaders/01_tax_f64.wgsl", "no example of its name includes it", "include it");
        caught_with("guide/runs/b.txt", "no page cites or links it", "cite `runs/b.txt`");
        caught_with("guide/more.md", "is not in guide/SUMMARY.md", "a link to (more.md)");
        let gone = "(reference/limits.md)";
        caught("guide/SUMMARY.md", gone, "", "is not in guide/SUMMARY.md", gone);
    }

    #[test]
    fn names_and_numbers_that_stray_are_caught() {
        caught_with("examples/try.rs", "not called after a lesson", "my_try.rs");
        let mut book = right();
        book.files.insert("examples/03_late.rs".into(), String::new());
        assert_caught(&faults(&book)[..1], "02 is expected in this place", "without a gap");
    }

    #[test]
    fn ids_that_differ_are_caught() {
        let other = "01.2 measures";
        caught("examples/01_tax.rs", "01.2 measured", other, "the slot 01.2 is none", "`01.2 meas");
        caught("guide/01_tax.md", "- 01.2", "- b", "`01.2 measured` fills no", "a line `- 01.2");
    }

    #[test]
    fn a_stale_version_is_caught() {
        caught("examples/01_tax.rs", "30.0.2", "30.0.1", "Cargo.lock has 30.0.2", "`just bless`");
    }

    #[test]
    fn a_heavier_or_slower_manifest_is_caught() {
        let path = "Cargo.toml";
        caught(path, "flume =", "rand = \"1\"\nflume =", "names bytemuck", "tests/book/Cargo.toml");
        caught(path, "flume = \"0.12\"", "", "names bytemuck", "to those five");
        caught(path, "[profile.", "[dev-dependencies]\n[profile.", "[dev-dependencies]", "move it");
        caught(path, "debug-assertions = false", "", "debug assertions are on", "= false`");
        caught(path, "[profile.dev]", "[profile.dev", "unclosed", "mend it");
    }

    #[test]
    fn what_just_and_git_should_know_is_caught() {
        let turned = "run 01_tax\n    run 00_doctor";
        caught("justfile", LOOP, turned, "`all` does not run", "examples/[0-9]*.rs");
        caught_without("justfile", "`all` does not run", "let it loop over");
        caught(".gitignore", "/notes.md", "", "does not ignore /notes.md", "add the line");
    }

    #[test]
    fn the_book() {
        crate::report(faults(&crate::the_book()));
    }
}
