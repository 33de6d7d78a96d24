//! Excerpts: fences with gutter numbers, equal to their file row by row.

use super::lines::{homes, line, where_now};
use super::page::{Page, Row};
use super::{Edit, Finding};
use crate::Book;

pub const ELISION: &str = "…";

/// A row of an excerpt: its number, where that ends in the row, and the line.
struct Numbered<'p> {
    number: usize,
    column: usize,
    line: &'p str,
    row: &'p Row,
}

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages {
        for (info, rows) in page.fences() {
            match rows.split_first() {
                Some((head, body)) if header(&head.text).is_some() => {
                    found.extend(check(book, page, head, body))
                }
                Some((head, _))
                    if ["rust", "wgsl", "toml"].contains(&info) && read(head).is_some() =>
                {
                    let repair =
                        "open the fence with `// examples/NAME.rs`, or leave the line numbers out";
                    found.push(Finding::new(
                        page.at(head.start),
                        "numbered rows that name no file",
                        repair,
                    ));
                }
                _ => {}
            }
        }
    }
    found
}

/// The path in an excerpt's first row.
fn header(row: &str) -> Option<&str> {
    let path = row.strip_prefix("// ").or_else(|| row.strip_prefix("# "))?;
    let in_book = ["examples/", "shaders/", "tests/"].iter().any(|folder| path.starts_with(folder));
    ((in_book && !path.contains(' ')) || ["Cargo.toml", "justfile"].contains(&path)).then_some(path)
}

fn read(row: &Row) -> Option<Numbered<'_>> {
    let unpadded = row.text.trim_start();
    let digits = unpadded.bytes().take_while(u8::is_ascii_digit).count();
    let number = unpadded[..digits].parse().ok()?;
    let column = row.text.len() - unpadded.len() + digits;
    let line = match &unpadded[digits..] {
        "" => "",
        rest => rest.strip_prefix("  ")?,
    };
    Some(Numbered { number, column, line, row })
}

fn check(book: &Book, page: &Page, head: &Row, body: &[Row]) -> Vec<Finding> {
    let path = header(&head.text).unwrap_or_default();
    if !book.files.contains_key(path) {
        let what = format!("an excerpt from {path}, and there is no such file");
        return vec![Finding::new(page.at(head.start), what, "name the file that it is from")];
    }
    let mut runs: Vec<Vec<Numbered>> = vec![Vec::new()];
    for row in body {
        if row.text.trim() == ELISION {
            runs.push(Vec::new());
        } else if let Some(numbered) = read(row) {
            runs.last_mut().expect("one run to begin with").push(numbered);
        } else {
            let repair =
                "write the line's number, two spaces and the line, or `…` alone for lines left out";
            return vec![Finding::new(
                page.at(row.start),
                "a row of an excerpt without its line number",
                repair,
            )];
        }
    }
    runs.retain(|run| !run.is_empty());
    if let Some(finding) = shape(page, &runs) {
        return vec![finding];
    }
    drift(book, page, path, &runs)
}

/// Numbers ascend, by one within a run, and end in the same column.
fn shape(page: &Page, runs: &[Vec<Numbered>]) -> Option<Finding> {
    let rows: Vec<&Numbered> = runs.iter().flatten().collect();
    for pair in rows.windows(2) {
        let (above, row) = (pair[0], pair[1]);
        let at = page.at(row.row.start);
        if row.number <= above.number {
            let what = format!("line {} below line {}", row.number, above.number);
            return Some(Finding::new(at, what, "put the rows in the file's order"));
        }
        if row.column != above.column {
            return Some(Finding::new(
                at,
                "numbers that do not end in one column",
                "align the numbers to the right",
            ));
        }
    }
    for pair in runs.iter().flat_map(|run| run.windows(2)) {
        if pair[1].number != pair[0].number + 1 {
            let what = format!("line {} just below line {}", pair[1].number, pair[0].number);
            return Some(Finding::new(
                page.at(pair[1].row.start),
                what,
                "put a row `…` between them",
            ));
        }
    }
    None
}

fn same(line: &str, row: &Numbered) -> bool {
    line.trim_end() == row.line.trim_end()
}

/// Compares the rows with the file. Rows that moved as a whole, or a run with one home, are bless's to renumber.
fn drift(book: &Book, page: &Page, path: &str, runs: &[Vec<Numbered>]) -> Vec<Finding> {
    let lines: Vec<&str> = book.text(path).lines().collect();
    let stands =
        |row: &Numbered, number: usize| line(&lines, number).is_some_and(|line| same(line, row));
    let Some(first) = runs.iter().flatten().next().map(|row| row.number) else { return Vec::new() };
    // Where the first row must go for all the others to stand after the same move.
    let moves = |to: usize| runs.iter().flatten().all(|row| stands(row, row.number - first + to));
    if moves(first) {
        return Vec::new();
    }
    let whole: Vec<usize> = (1..=lines.len()).filter(|&to| moves(to)).collect();
    if let [to] = whole[..] {
        let rows: Vec<&Numbered> = runs.iter().flatten().collect();
        return vec![renumber(page, path, &rows, to)];
    }
    let mut found = Vec::new();
    for run in runs {
        let Some(wrong) = run.iter().find(|row| !stands(row, row.number)) else { continue };
        let homes = homes(&lines, run, same);
        if let [to] = homes[..] {
            let rows: Vec<&Numbered> = run.iter().collect();
            found.push(renumber(page, path, &rows, to));
            continue;
        }
        let now = line(&lines, wrong.number).unwrap_or("past the end");
        let what = format!(
            "{path}:{} reads `{}`, and the excerpt `{}`",
            wrong.number,
            now.trim(),
            wrong.line.trim()
        );
        let repair = match homes.len() {
            0 => format!("quote the lines of {path} as they are now"),
            _ => where_now(&homes, path),
        };
        found.push(Finding::new(page.at(wrong.row.start), what, repair));
    }
    found
}

fn renumber(page: &Page, path: &str, rows: &[&Numbered], to: usize) -> Finding {
    let first = rows[0].number;
    let edit = |row: &&Numbered| {
        let text = format!("{:>width$}", row.number - first + to, width = row.column);
        Edit { file: page.path.to_string(), range: row.row.start..row.row.start + row.column, text }
    };
    let what = format!("these lines of {path} have moved");
    Finding::mended_by(
        page.at(rows[0].row.start),
        what,
        format!("they begin on line {to}"),
        rows.iter().map(edit).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    const LADDER: &str =
        "//! One.\n\nfn main() {\n    let x = 1;\n\n    end();\n}\n\nfn end() {\n}\n";

    fn check(rows: &str) -> Vec<Fault> {
        let page = format!("# X\n\n```rust\n// examples/01_ladder.rs\n{rows}\n```\n");
        let book = Book::of(&[("guide/02_x.md", &page), ("examples/01_ladder.rs", LADDER)]);
        plain(findings(&book, &pages(&book)))
    }

    #[test]
    fn a_right_excerpt_holds() {
        report(check("  3  fn main() {\n  4      let x = 1;\n  5\n  6      end();\n  …\n 10  }"));
    }

    #[test]
    fn a_drifted_row_is_caught() {
        let faults = check("  3  fn main() {\n  4      let x = 2;");
        assert_caught(
            &faults,
            "examples/01_ladder.rs:4 reads `let x = 1;`, and the excerpt `let x = 2;`",
            "as they are now",
        );
        assert_eq!(faults[0].at, "guide/02_x.md:6");
    }

    #[test]
    fn a_moved_excerpt_is_caught() {
        assert_caught(
            &check("  4  fn main() {\n  5      let x = 1;\n  …\n  8  }"),
            "have moved",
            "begin on line 3",
        );
        assert_caught(
            &check("  3  fn main() {\n  …\n  7      end();"),
            "have moved",
            "begin on line 6",
        );
        assert_caught(&check("  8  }"), "examples/01_ladder.rs:8 reads ``", "stands 2 times");
    }

    #[test]
    fn a_misshapen_excerpt_is_caught() {
        assert_caught(
            &check("  3  fn main() {\n  6      end();"),
            "line 6 just below line 3",
            "`…` between",
        );
        assert_caught(
            &check("  4      let x = 1;\n  …\n  3  fn main() {"),
            "line 3 below line 4",
            "file's order",
        );
        assert_caught(&check("  3  fn main() {\n   4      let x = 1;"), "one column", "align");
        assert_caught(&check("fn main() {"), "without its line number", "two spaces");
    }

    #[test]
    fn an_excerpt_without_its_file_is_caught() {
        let check = |page| {
            let book = Book::of(&[("guide/02_x.md", page)]);
            plain(findings(&book, &pages(&book)))
        };
        assert_caught(
            &check("```rust\n// examples/07_none.rs\n  1  x\n```"),
            "no such file",
            "name the file",
        );
        assert_caught(&check("```rust\n  1  x\n```"), "name no file", "open the fence with");
        report(check("```rust\n// examples of this are many\nlet x = 1;\n```"));
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
