//! Try edits: a `diff` fence is applied to a copy of its file in memory, which must still be a shader or a program.

use super::Finding;
use super::lines::{homes, where_now};
use super::page::{Page, Row};
use crate::{Book, shaders};

/// Rows that replace each other: what stands in the file, and what comes instead.
#[derive(Default)]
struct Hunk<'p> {
    start: usize,
    old: Vec<&'p str>,
    new: Vec<&'p str>,
    edits: bool,
}

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages {
        for (info, rows) in page.fences() {
            let mut words = info.split([' ', ',']);
            if words.next() == Some("diff") {
                found.extend(check(book, page, rows, words.any(|word| word == "rejected")).err());
            }
        }
    }
    found
}

/// What a fence makes of its file: the file's path, and its text after the edit.
fn applied<'p>(book: &Book, page: &Page, rows: &'p [Row]) -> Result<(&'p str, String), Finding> {
    let (head, body) = rows.split_first().expect("a fence with rows");
    let fault = |at: usize, what: String, repair: &str| Finding::new(page.at(at), what, repair);
    let path = head.text.strip_prefix("--- ").unwrap_or_default();
    if !book.files.contains_key(path) {
        let what = format!("an edit of `{path}`, and there is no such file");
        return Err(fault(
            head.start,
            what,
            "open the fence with `--- shaders/X.wgsl` or `--- examples/X.rs`",
        ));
    }
    let mut lines: Vec<&str> = book.text(path).lines().collect();
    for hunk in hunks(body) {
        if hunk.old.is_empty() {
            let what = "added lines without a place".to_string();
            return Err(fault(hunk.start, what, "put the line above them first, after a space"));
        }
        let homes = homes(&lines, &hunk.old, |line, old| line.trim() == old.trim());
        match homes[..] {
            [home] => drop(lines.splice(home - 1..home - 1 + hunk.old.len(), hunk.new)),
            // Context below an edit is there to be seen, and may be as plain as a brace.
            [_, ..] if !hunk.edits => {}
            _ => {
                let what = format!("`{}` has no one place in {path}", hunk.old[0].trim());
                return Err(fault(hunk.start, what, &where_now(&homes, path)));
            }
        }
    }
    Ok((path, lines.join("\n") + "\n"))
}

fn check(book: &Book, page: &Page, rows: &[Row], rejected: bool) -> Result<(), Finding> {
    let Some(head) = rows.first() else { return Ok(()) };
    let fault = |what: String, repair: &str| Finding::new(page.at(head.start), what, repair);
    let (path, edited) = applied(book, page, rows)?;
    let verdict = match path.rsplit('.').next() {
        Some("wgsl") => validate(book, path, &edited),
        Some("rs") => parse(&edited),
        _ => Ok(()),
    };
    match verdict {
        Err(why) if !rejected => {
            let what = format!("{path} is not valid after this edit: {why}");
            Err(fault(what, "mend the edit, or call it ```diff rejected where that is its point"))
        }
        // Whether Rust compiles is more than parsing tells, so only a shader can be rejected here.
        Ok(()) if rejected && path.ends_with(".wgsl") => {
            let what =
                format!("{path} is still valid after this edit, which the fence says is rejected");
            Err(fault(what, "take `rejected` off the fence, or mend the edit"))
        }
        _ => Ok(()),
    }
}

/// Every edit of a program, applied: where it stands, and the program that it makes.
pub fn programs(book: &Book, pages: &[Page]) -> Vec<(String, String)> {
    let mut programs = Vec::new();
    for page in pages {
        for (info, rows) in page.fences() {
            let Some(head) = rows.first().filter(|_| info.starts_with("diff")) else { continue };
            match applied(book, page, rows) {
                Ok((path, text)) if path.ends_with(".rs") => {
                    programs.push((page.at(head.start), text));
                }
                // An edit without a place is a fault already.
                _ => {}
            }
        }
    }
    programs
}

/// A hunk is context, then `-` rows, then `+` rows; the next one begins at the next context, or after a gap.
fn hunks(rows: &[Row]) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut last = None;
    for row in rows {
        let mark = match row.text.chars().next() {
            Some(mark @ (' ' | '-' | '+')) if !row.text.starts_with("+++ ") => mark,
            // An empty row, `…`, `@@ … @@` or `+++ shaders/my_X.wgsl`.
            _ => {
                last = None;
                continue;
            }
        };
        if last.is_none() || last == Some('+') && mark != '+' || last == Some('-') && mark == ' ' {
            hunks.push(Hunk { start: row.start, ..Hunk::default() });
        }
        last = Some(mark);
        let hunk = hunks.last_mut().expect("one was pushed");
        let line = &row.text[1..];
        if mark != '+' {
            hunk.old.push(line);
        }
        if mark != '-' {
            hunk.new.push(line);
        }
        hunk.edits |= mark != ' ';
    }
    hunks
}

fn parse(source: &str) -> Result<(), String> {
    syn::parse_file(source).map(drop).map_err(|e| format!("line {}: {e}", e.span().start().line))
}

/// Validates as a device does that has what the shader's example asks for.
fn validate(book: &Book, path: &str, source: &str) -> Result<(), String> {
    let name = path.trim_start_matches("shaders/").trim_end_matches(".wgsl");
    shaders::validate(source, shaders::asked(book, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    const SHADER: &str = "\
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn fold(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < 8u) {
        out[id.x] = 1u;
    }
}
";
    const EXAMPLE: &str = "fn main() {\n    let n = 1;\n    work();\n    work();\n}\n";

    fn check(info: &str, rows: &str) -> Vec<Fault> {
        let page = format!("```{info}\n{rows}\n```\n");
        let files = [
            ("guide/02_x.md", page.as_str()),
            ("shaders/02_x.wgsl", SHADER),
            ("examples/02_x.rs", EXAMPLE),
        ];
        let book = Book::of(&files);
        plain(findings(&book, &pages(&book)))
    }

    #[test]
    fn right_edits_hold() {
        report(check(
            "diff",
            "--- shaders/02_x.wgsl\n-        out[id.x] = 1u;\n+        out[id.x] = 2u;",
        ));
        report(check(
            "diff",
            "--- shaders/02_x.wgsl\n+++ shaders/my_x.wgsl\n-@compute @workgroup_size(64)\n+@compute @workgroup_size(128)\n…\n-if (id.x < 8u) {\n+if (id.x < 9u) {\n     out[id.x] = 1u;\n }",
        ));
        report(check("diff", "--- examples/02_x.rs\n     let n = 1;\n+    let m = 2;"));
        report(check(
            "diff rejected",
            "--- shaders/02_x.wgsl\n-        out[id.x] = 1u;\n+        out[id.x] = 1.5;",
        ));
    }

    #[test]
    fn a_try_edit_whose_line_is_gone_is_caught() {
        let faults = check("diff", "--- shaders/02_x.wgsl\n-out[id.x] = 3u;\n+out[id.x] = 2u;");
        assert_caught(
            &faults,
            "`out[id.x] = 3u;` has no one place",
            "it stands nowhere in shaders/02_x.wgsl",
        );
        assert_caught(
            &check("diff", "--- examples/02_x.rs\n-    work();\n+    rest();"),
            "no one place",
            "stands 2 times",
        );
    }

    #[test]
    fn a_shader_edit_that_no_longer_validates_is_caught() {
        let edit = "--- shaders/02_x.wgsl\n-        out[id.x] = 1u;\n+        out[id.x] = 1.5;";
        assert_caught(
            &check("diff", edit),
            "shaders/02_x.wgsl is not valid after this edit",
            "```diff rejected",
        );
        let edit = edit.replace("1.5", "2u");
        assert_caught(
            &check("diff rejected", &edit),
            "still valid after this edit",
            "take `rejected` off",
        );
    }

    #[test]
    fn a_rust_edit_that_no_longer_parses_is_caught() {
        let faults = check("diff", "--- examples/02_x.rs\n-    let n = 1;\n+    let n = ;");
        assert_caught(
            &faults,
            "examples/02_x.rs is not valid after this edit: line 2",
            "mend the edit",
        );
    }

    #[test]
    fn an_edit_without_file_or_place_is_caught() {
        assert_caught(&check("diff", "-    let n = 1;"), "no such file", "--- shaders/X.wgsl");
        assert_caught(
            &check("diff", "--- examples/02_x.rs\n+    let m = 2;"),
            "without a place",
            "the line above them",
        );
    }

    #[test]
    fn every_edit_of_a_program_is_found_and_applied() {
        let page = "```diff\n--- examples/02_x.rs\n-    let n = 1;\n+    let n = 2;\n```\n\n```diff\n--- shaders/02_x.wgsl\n-fn f() {}\n```\n\n```rust\nlet n = 3;\n```\n";
        let book = Book::of(&[("guide/02_x.md", page), ("examples/02_x.rs", EXAMPLE)]);
        let edited = EXAMPLE.replace("n = 1", "n = 2");
        let found = programs(&book, &pages(&book));
        assert_eq!(found, [("guide/02_x.md:2".to_string(), edited)]);
    }

    /// Parsing is not compiling: a project of its own has every edited program as an example. It shares the target
    /// folder, and so the packages that are compiled already, and compiles its own code without optimising.
    #[test]
    fn every_edit_of_a_program_compiles() {
        let book = the_book();
        let programs = programs(&book, &pages(&book));
        assert!(!programs.is_empty());
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
        let project = target.join("book/tries");
        _ = std::fs::remove_dir_all(&project);
        let write = |path: &str, text: &str| {
            let path = project.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mut manifest = book.text("Cargo.toml").replace("members = [\"tests/book\"]", "");
        manifest =
            manifest.replace("name = \"gpu-workbook\"", "name = \"tries\"\nautoexamples = false");
        manifest += "\n[profile.dev.package.tries]\nopt-level = 0\n";
        for (name, (_, text)) in programs.iter().enumerate() {
            manifest += &format!("\n[[example]]\nname = \"try_{name}\"\n");
            write(&format!("examples/try_{name}.rs"), text);
        }
        write("Cargo.toml", &manifest);
        write("Cargo.lock", book.text("Cargo.lock"));
        // What they include: the shaders, and the heads of the examples that they are copies of.
        let included = |path: &str| path.starts_with("shaders/") || path.starts_with("examples/");
        book.files
            .iter()
            .filter(|(path, _)| included(path))
            .for_each(|(path, text)| write(path, text));
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "--offline", "--keep-going", "--examples"]);
        cargo
            .args(["--message-format", "short", "--manifest-path"])
            .arg(project.join("Cargo.toml"));
        let built = cargo.env("CARGO_TARGET_DIR", &target).output().expect("cargo starts");
        let said = String::from_utf8_lossy(&built.stderr);
        let mut faults = Vec::new();
        // `examples/try_7.rs:506:9: error[E0425]: cannot find …`
        for line in said.lines().filter(|line| line.contains(": error")) {
            let place = line.strip_prefix("examples/try_").and_then(|line| line.split_once(".rs:"));
            let Some((Ok(name), why)) = place.map(|(name, why)| (name.parse::<usize>(), why))
            else {
                continue;
            };
            let what = format!("the edited program does not compile: line {why}");
            faults.push(Finding::new(programs[name].0.clone(), what, "mend the edit").fault);
        }
        report(faults);
        assert!(built.status.success(), "{said}");
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
