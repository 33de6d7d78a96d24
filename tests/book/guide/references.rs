//! Line references, literal and as links, into the book and into wgpu: each has a witness, which stands on its line.

use super::lines::{Lines, homes, line, where_now};
use super::page::{Block, Kind, Page, Row};
use super::wgpu_sources::{Absent, Crates, is_wgpu};
use super::{Edit, Finding, links};
use crate::Book;
use std::fmt;
use std::ops::Range;

/// What may stand around a reference in the row of a fence.
const AROUND: [char; 9] = [' ', ',', ';', '(', ')', '[', ']', '│', '|'];

/// Where the fault stands that wgpu's sources are absent: on no page, since no page is wrong.
const UNREAD: &str = "Cargo.lock";

/// A reference as the page writes it.
struct Reference<'p> {
    page: &'p Page<'p>,
    /// The path as written: `01_object_ladder.rs`, `wgpu/src/lib.rs`, `runs/x.txt`.
    path: String,
    lines: Lines,
    witness: Option<String>,
    /// Where in the page its line numbers stand.
    range: Range<usize>,
    link: Option<LinkForm>,
}

/// Where a reference in link form points, and where in the page that is written.
struct LinkForm {
    to: String,
    range: Range<usize>,
}

impl Reference<'_> {
    fn at(&self) -> String {
        self.page.at(self.range.start)
    }
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "`{}:{}`", self.path, self.lines.text())
    }
}

pub fn findings(book: &Book, pages: &[Page], crates: &Crates) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for page in pages {
        for block in &page.blocks {
            let references = match block.kind {
                Kind::Fence(_) => in_rows(page, &block.rows),
                _ => in_spans(page, block),
            };
            found.extend(
                references.iter().filter_map(|reference| check(book, crates, reference).err()),
            );
            found.extend(unnumbered_links(page, block));
            found.extend(outside_code(page, block));
        }
    }
    // Without wgpu's sources every reference into them has the same fault; once is enough.
    let mut unread = 0;
    found.retain(|finding| {
        unread += usize::from(finding.fault.at == UNREAD);
        finding.fault.at != UNREAD || unread == 1
    });
    found
}

/// Reads `PATH:LINES` where the path has an ending that a file of the book or of wgpu may have.
pub fn parse(text: &str) -> Option<(&str, Lines)> {
    let (path, lines) = text.rsplit_once(':')?;
    let lines = Lines::parse(lines)?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = [".rs", ".wgsl", ".toml", ".txt", ".md", ".lock"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    // my_* is the reader's own, and no check's business.
    ((known || name == "justfile") && plain && !name.starts_with("my_")).then_some((path, lines))
}

/// The file of the book that a reference's path names. A bare name lies in examples/ or shaders/.
pub fn resolve(book: &Book, path: &str) -> Option<String> {
    let places = ["", "examples/", "shaders/", "guide/"];
    places.iter().map(|place| format!("{place}{path}")).find(|path| book.files.contains_key(path))
}

fn in_spans<'p>(page: &'p Page, block: &Block) -> Vec<Reference<'p>> {
    let mut references = Vec::new();
    let mut before: Option<&str> = None;
    for span in &block.spans {
        if let Some((path, lines)) = parse(&span.text) {
            let end = span.range.end
                - page.source[span.range.clone()].bytes().rev().take_while(|&b| b == b'`').count();
            let range = end - lines.text().len()..end;
            let link = span.link.map(|link| &block.links[link]);
            let link = link.map(|link| LinkForm { to: link.to.clone(), range: link.range.clone() });
            let witness = before.map(str::to_string);
            references.push(Reference {
                page,
                path: path.to_string(),
                lines,
                witness,
                range,
                link,
            });
        }
        // A reference is nobody's witness.
        before = parse(&span.text).is_none().then_some(span.text.as_str());
    }
    references
}

/// Whether a line has the witness in it. A figure must stand there whole: `4.0` is not in `54.0`, nor `15` in `15.5`.
fn stands_in(line: &str, witness: &str) -> bool {
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let ends_in_digit = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    line.match_indices(witness).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + witness.len()..]);
        let begun =
            ends_in_digit(before) || before.strip_suffix(['.', ',']).is_some_and(ends_in_digit);
        let goes_on = digit(after) || after.strip_prefix(['.', ',']).is_some_and(digit);
        let cut = (digit(witness) && begun) || (ends_in_digit(witness) && goes_on);
        !cut
    })
}

/// In a fence the first column is the witness. Excerpts, quotes and edits have checks of their own.
fn in_rows<'p>(page: &'p Page, rows: &[Row]) -> Vec<Reference<'p>> {
    let mut references = Vec::new();
    let quotes = rows
        .first()
        .is_some_and(|row| ["// ", "# ", "--- "].iter().any(|mark| row.text.starts_with(mark)));
    for row in rows.iter().filter(|_| !quotes) {
        let mut start = 0;
        for piece in row.text.split_inclusive(AROUND) {
            let word = piece.trim_end_matches(AROUND).trim_end_matches(['.', ':']);
            if let Some((path, lines)) = parse(word) {
                let column = first_column(&row.text[..start]);
                let witness = (!column.is_empty()).then(|| column.to_string());
                let end = row.start + start + word.len();
                let range = end - lines.text().len()..end;
                let path = path.to_string();
                references.push(Reference { page, path, lines, witness, range, link: None });
            }
            start += piece.len();
        }
    }
    references
}

fn first_column(row: &str) -> &str {
    let row = row.trim_start_matches([' ', '│', '|']);
    let end = ["  ", "│", "|"].iter().filter_map(|end| row.find(end)).min().unwrap_or(row.len());
    row[..end].trim_end()
}

fn check(book: &Book, crates: &Crates, reference: &Reference) -> Result<(), Finding> {
    let (file, text) = source(book, crates, reference)?;
    let Some(witness) = &reference.witness else {
        let repair = "put what stands on that line, as a code span, just before the reference";
        return Err(Finding::new(reference.at(), format!("{reference} has no witness"), repair));
    };
    let linked = linked(book, reference, &file)?;
    let lines: Vec<&str> = text.lines().collect();
    let holds = |line: &str| stands_in(line, witness);
    let stands = |number: usize| line(&lines, number).is_some_and(holds);
    let what = if reference.lines.last > lines.len() {
        format!("{reference}: {file} has {} lines", lines.len())
    } else if !stands(reference.lines.first) {
        let line = line(&lines, reference.lines.first).unwrap_or_default().trim();
        format!("`{witness}` is not on {reference}, which reads `{line}`")
    } else if linked != reference.lines {
        format!("{reference} links to #{}", linked.fragment())
    } else {
        return Ok(());
    };
    // Where text and link differ, one of them may still be right; otherwise the witness's only home decides.
    let homes = homes(&lines, &[witness], |line, _| holds(line));
    let right = [reference.lines.first, linked.first].into_iter().find(|&number| stands(number));
    let first = right.or(if let [only] = homes[..] { Some(only) } else { None });
    let moved = first.map(|first| reference.lines.moved_to(first));
    // A record does not move: a figure that is not where it should be may as well be the wrong one.
    let moved = moved.filter(|moved| moved.last <= lines.len() && !file.starts_with("guide/runs/"));
    match moved.and_then(|moved| Some((moved, edits(reference, moved)?))) {
        Some((moved, edits)) => {
            let does = format!("it writes {}", moved.text());
            Err(Finding::mended_by(reference.at(), what, does, edits))
        }
        None => Err(Finding::new(reference.at(), what, where_now(&homes, &file))),
    }
}

/// The lines that a reference's link names, which should be its own. Without a link they are.
fn linked(book: &Book, reference: &Reference, file: &str) -> Result<Lines, Finding> {
    let Some(link) = &reference.link else { return Ok(reference.lines) };
    let (target, fragment) = link.to.split_once('#').unwrap_or((&link.to, ""));
    if !leads_to(book, reference.page.path, target, file) {
        let what = format!("{reference} links to {target}");
        return Err(Finding::new(reference.at(), what, format!("link to {file}")));
    }
    Lines::parse_fragment(fragment).ok_or_else(|| {
        let repair = format!("end the link in #{}", reference.lines.fragment());
        Finding::new(reference.at(), format!("{reference} links to no line"), repair)
    })
}

/// The file that a reference names, by its whole path, and its text.
fn source(
    book: &Book,
    crates: &Crates,
    reference: &Reference,
) -> Result<(String, String), Finding> {
    let at = reference.at();
    if !is_wgpu(&reference.path) {
        return match resolve(book, &reference.path) {
            Some(file) => Ok((file.clone(), book.text(&file).to_string())),
            None => {
                let repair = "write its path from the repository's root; a bare name lies in examples/ or shaders/";
                Err(Finding::new(at, format!("{reference}: the book has no such file"), repair))
            }
        };
    }
    match crates.text(book, &reference.path) {
        Ok(text) => Ok((reference.path.clone(), text)),
        Err(Absent::File) => {
            let what = format!("{reference}: the version in Cargo.lock has no such file");
            Err(Finding::new(at, what, "name the file that holds it in that version"))
        }
        Err(Absent::Crate) => {
            let what = "wgpu's sources are not in cargo's registry folder, so references into them cannot be read";
            Err(Finding::new(UNREAD.to_string(), what, "run `cargo fetch`"))
        }
    }
}

/// Whether a link on a page leads to a file, whatever its line.
fn leads_to(book: &Book, page: &str, target: &str, file: &str) -> bool {
    if links::is_remote(target) {
        // A line on a code host means something only at a release: the one in Cargo.lock.
        let release = format!("/v{}/", book.locked_version("wgpu").unwrap_or_default());
        return target.contains(&release) && target.ends_with(&format!("/{file}"));
    }
    links::join(page, target).as_deref() == Some(file)
}

/// The edits that set a reference's lines, in its text and in its link. A link that is defined elsewhere on the page
/// (`[text][label]`) is not bless's to edit.
fn edits(reference: &Reference, lines: Lines) -> Option<Vec<Edit>> {
    let file = reference.page.path.to_string();
    let mut edits =
        vec![Edit { file: file.clone(), range: reference.range.clone(), text: lines.text() }];
    if let Some(link) = &reference.link {
        let (_, fragment) = link.to.split_once('#')?;
        let at = link.range.start
            + reference.page.source[link.range.clone()].rfind(&format!("#{fragment}"))?
            + 1;
        edits.push(Edit { file, range: at..at + fragment.len(), text: lines.fragment() });
    }
    Some(edits)
}

/// A link to a line whose text does not say the line: nothing would hold its number.
fn unnumbered_links(page: &Page, block: &Block) -> Vec<Finding> {
    let held = |place: usize| {
        block.spans.iter().any(|span| span.link == Some(place) && parse(&span.text).is_some())
    };
    let lines =
        |to: &str| to.split_once('#').and_then(|(_, fragment)| Lines::parse_fragment(fragment));
    let mut found = Vec::new();
    for (place, link) in block.links.iter().enumerate() {
        if let Some(lines) = lines(&link.to).filter(|_| !held(place)) {
            let what = format!("links to a line, {}, that its text does not name", link.to);
            let repair = format!(
                "make the text of the link a reference, `FILE:{}`, with its witness before it",
                lines.text()
            );
            found.push(Finding::new(page.at(link.range.start), what, repair));
        }
    }
    found
}

/// A reference in plain text would be read by nobody.
fn outside_code(page: &Page, block: &Block) -> Option<Finding> {
    if block.kind == Kind::Html {
        return None;
    }
    // Backticks in `text` stand around code spans only, so every other piece lies outside them.
    let outside =
        block.text.split('`').step_by(2).flat_map(|piece| piece.split([' ', ',', ';', '(', ')']));
    let words = outside.map(|word| word.trim_end_matches(['.', ':']));
    let word = words.into_iter().find(|word| parse(word).is_some())?;
    let what = format!("{word} is not in a code span");
    Some(Finding::new(
        page.at(block.range.start),
        what,
        format!("write `{word}`, with its witness before it"),
    ))
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
