//! Measurements come from recorded runs: quoted lines equal the file they cite, and no figure in prose goes without a
//! source. A figure cited in a line, `runs/x.txt:42`, is a line reference, and references.rs holds it.

use super::excerpts::ELISION;
use super::lines::{Lines, homes, line, where_now};
use super::page::{Block, Kind, Page, Row};
use super::wgpu_sources::is_wgpu;
use super::{Edit, Finding, links, references};
use crate::Book;

const UNITS: [&str; 6] = ["ns", "µs", "μs", "ms", "GB/s", "TB/s"];

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages {
        for (_, rows) in page.fences() {
            if let Some((head, body)) = rows.split_first()
                && head.text.starts_with("# runs/")
            {
                found.extend(quote(book, page, head, body));
            }
        }
        found.extend(page.blocks.iter().filter_map(|block| uncited(page, block)));
    }
    found
}

/// Compares the rows of a quote with its file from the cited line on.
fn quote(book: &Book, page: &Page, head: &Row, body: &[Row]) -> Option<Finding> {
    let at = page.at(head.start);
    let cited = head.text.trim_start_matches("# ");
    let Some((path, Lines { first, .. })) = references::parse(cited) else {
        let what = format!("`{cited}` does not say from which line it quotes");
        return Some(Finding::new(at, what, "write `# runs/FILE.txt:LINE`"));
    };
    let Some(file) = references::resolve(book, path) else {
        let what = format!("quotes {path}, and there is no such file");
        return Some(Finding::new(at, what, "name a file in guide/runs/"));
    };
    let lines: Vec<&str> = book.text(&file).lines().collect();
    let runs: Vec<&[Row]> =
        body.split(|row| row.text.trim() == ELISION).filter(|run| !run.is_empty()).collect();
    let wrong = missing(&lines, &runs, first)?;
    let what = match wrong {
        wrong if runs.first().is_some_and(|run| run[0].start == wrong.start) => {
            let now = line(&lines, first).unwrap_or("past the end");
            format!("{file}:{first} reads `{now}`, and the quote `{}`", wrong.text)
        }
        wrong => format!("`{}` does not stand where the quote has it in {file}", wrong.text),
    };
    // Every line from which the whole quote can be read.
    let starts: Vec<usize> = match runs.first() {
        Some(run) => homes(&lines, run, same)
            .into_iter()
            .filter(|&n| missing(&lines, &runs, n).is_none())
            .collect(),
        None => Vec::new(),
    };
    let [only] = starts[..] else {
        return Some(Finding::new(page.at(wrong.start), what, where_now(&starts, &file)));
    };
    let end = head.start + head.text.len();
    let range = end - (cited.len() - path.len() - 1)..end;
    let edit = Edit { file: page.path.to_string(), range, text: only.to_string() };
    Some(Finding::mended_by(at, what, format!("it quotes from line {only}"), vec![edit]))
}

fn same(line: &str, row: &Row) -> bool {
    line.trim_end() == row.text.trim_end()
}

/// The first row that does not stand in the file: the first run begins on line `first`, each later one somewhere below.
fn missing<'r>(lines: &[&str], runs: &[&'r [Row]], first: usize) -> Option<&'r Row> {
    let mut below = 0;
    for (place, run) in runs.iter().enumerate() {
        let homes = homes(lines, run, same);
        let home =
            homes.iter().find(|&&home| if place == 0 { home == first } else { home > below });
        match home {
            Some(home) => below = home + run.len() - 1,
            None if place == 0 => {
                let wrong = run
                    .iter()
                    .zip(first..)
                    .find(|(row, n)| !line(lines, *n).is_some_and(|l| same(l, row)));
                return wrong.map(|(row, _)| row);
            }
            None => return run.first(),
        }
    }
    None
}

/// A figure in prose without a source in the same block. What the reader fills in and headings are free.
fn uncited(page: &Page, block: &Block) -> Option<Finding> {
    let prose = matches!(block.kind, Kind::Paragraph | Kind::Item | Kind::TableRow);
    if !prose || block.text.contains("__") {
        return None;
    }
    let sources = block.spans.iter().filter_map(|span| references::parse(&span.text));
    let cited = sources.into_iter().any(|(path, _)| is_wgpu(path) || path.contains("runs/"));
    if cited
        || block.links.iter().any(|link| links::is_remote(&link.to) || link.to.contains("runs/"))
    {
        return None;
    }
    let figure = figure(&block.text)?;
    let repair =
        "cite it, `FIGURE` (`runs/FILE.txt:LINE`), or link to its source in the same paragraph";
    Some(Finding::new(page.at(block.range.start), format!("`{figure}` has no source"), repair))
}

/// The first number with a unit of time or bandwidth.
fn figure(text: &str) -> Option<String> {
    for (at, _) in text.match_indices(|c: char| c.is_ascii_digit()) {
        let number: &str = &text[at..];
        let length = number
            .find(|c: char| !(c.is_ascii_digit() || ".,".contains(c)))
            .unwrap_or(number.len());
        let rest = number[length..].trim_start_matches([' ', '\u{a0}', '\u{202f}', '`']);
        let word =
            rest.split(|c: char| !(c.is_alphanumeric() || c == '/')).next().unwrap_or_default();
        if UNITS.contains(&word) {
            return Some(format!("{} {word}", &number[..length]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    const RUN: &str =
        "# llvmpipe\n\n| n | call |\n|---|---|\n| 1 | 184.5 |\n| 2 | 190.0 |\n| 1 | 184.5 |\nend\n";

    fn check(page: &str) -> Vec<Fault> {
        let book =
            Book::of(&[("guide/02_x.md", page), ("guide/runs/2026-11-30-llvmpipe.txt", RUN)]);
        plain(findings(&book, &pages(&book)))
    }

    fn quoted(line: usize, rows: &str) -> Vec<Fault> {
        check(&format!("```console\n# runs/2026-11-30-llvmpipe.txt:{line}\n{rows}\n```\n"))
    }

    #[test]
    fn right_quotes_hold() {
        report(quoted(3, "| n | call |\n|---|---|\n…\n| 2 | 190.0 |\n…\nend"));
        report(quoted(7, "| 1 | 184.5 |\nend"));
    }

    #[test]
    fn a_misquoted_measurement_is_caught() {
        let faults = quoted(5, "| 1 | 184.6 |");
        assert_caught(
            &faults,
            "txt:5 reads `| 1 | 184.5 |`, and the quote `| 1 | 184.6 |`",
            "stands nowhere",
        );
        assert_caught(
            &quoted(3, "| n | call |\n…\n| 3 | 1.0 |"),
            "`| 3 | 1.0 |` does not stand",
            "stands nowhere",
        );
        assert_caught(
            &quoted(6, "| 2 | 190.0 |\n| 1 | 184.6 |"),
            "`| 1 | 184.6 |` does not stand",
            "stands nowhere",
        );
    }

    #[test]
    fn a_moved_quote_is_caught() {
        assert_caught(
            &quoted(5, "| 2 | 190.0 |"),
            "and the quote `| 2 | 190.0 |`",
            "it quotes from line 6",
        );
        assert_caught(&quoted(6, "| 1 | 184.5 |"), "and the quote", "stands 2 times");
    }

    #[test]
    fn a_quote_without_line_or_file_is_caught() {
        assert_caught(
            &check("```console\n# runs/2026-11-30-llvmpipe.txt\nend\n```"),
            "from which line",
            "FILE.txt:LINE",
        );
        assert_caught(
            &check("```console\n# runs/none.txt:3\nend\n```"),
            "no such file",
            "guide/runs/",
        );
    }

    #[test]
    fn cited_figures_hold() {
        report(check(
            "# It took 9 ms\n\nA call takes `184.5` µs (`runs/2026-11-30-llvmpipe.txt:5`).\n",
        ));
        report(check("It slept 1 ms ([#8119](https://example.org/8119)).\n"));
        report(check("It slept 1 ms (`sleep` `wgpu-hal/src/metal/device.rs:20`).\n"));
        report(check("- 02.1 a call of 1 ms: predict __ µs  measured __ µs\n"));
        report(check("In 2 s, 3 msgs and 4 answers of 5 GB.\n\n```text\n1 ms\n```\n"));
    }

    #[test]
    fn an_uncited_figure_is_caught() {
        let faults = check("First.\n\nA call takes 184.5 µs.\n");
        assert_caught(&faults, "`184.5 µs` has no source", "runs/FILE.txt:LINE");
        assert_eq!(faults[0].at, "guide/02_x.md:3");
        assert_caught(&check("- memory of `9.1` GB/s\n"), "`9.1 GB/s`", "link to its source");
        assert_caught(&check("| call |\n|---|\n| 3 ms |\n"), "`3 ms`", "link to its source");
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
