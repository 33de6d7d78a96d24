//! A page of the guide as the checks see it: its blocks in order, each with its code spans, links and rows, and where
//! in the file they stand.

use crate::Book;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

pub struct Page<'b> {
    /// From the repository's root: `guide/02_fixed_tax.md`.
    pub path: &'b str,
    pub source: &'b str,
    pub blocks: Vec<Block>,
}

/// The stretch of a page in which a witness or a citation counts: a heading, a paragraph, a list item (with all its
/// paragraphs, without the items inside it), a table row, a fence, or raw HTML.
pub struct Block {
    pub kind: Kind,
    pub range: Range<usize>,
    /// What the block says, in one line: code spans keep their backticks, other markup is dropped. HTML stays as it is.
    pub text: String,
    pub spans: Vec<Span>,
    pub links: Vec<Link>,
    /// The rows of a fence.
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Heading,
    Paragraph,
    Item,
    TableRow,
    /// With its info string.
    Fence(String),
    Html,
}

/// A code span.
pub struct Span {
    pub text: String,
    /// With its backticks.
    pub range: Range<usize>,
    /// The link that it is the text of, by its place in the block's `links`.
    pub link: Option<usize>,
}

pub struct Link {
    pub to: String,
    pub range: Range<usize>,
}

#[derive(Clone)]
pub struct Row {
    pub text: String,
    /// Where it starts in the file, after the indentation of the list that the fence may stand in.
    pub start: usize,
}

impl Row {
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

impl Page<'_> {
    /// A place in the file as faults name it: `guide/02_fixed_tax.md:17`.
    pub fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path, 1 + self.source[..offset].matches('\n').count())
    }

    /// The number of a chapter, `02` of `guide/02_fixed_tax.md`.
    pub fn chapter(&self) -> Option<&str> {
        let number = self.path.strip_prefix("guide/")?.split('_').next()?;
        (number.len() == 2 && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
    }

    /// The fences, each with its info string and its rows.
    pub fn fences(&self) -> impl Iterator<Item = (&str, &[Row])> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Fence(info) => Some((info.as_str(), block.rows.as_slice())),
            _ => None,
        })
    }
}

/// The pages that the checks read: the README and the guide, but for the notes that are made out of it.
pub fn pages(book: &Book) -> Vec<Page<'_>> {
    let written = |path: &str| {
        path == "README.md"
            || path.starts_with("guide/") && path.ends_with(".md") && path != super::notes::TEMPLATE
    };
    book.files
        .iter()
        .filter(|(path, _)| written(path))
        .map(|(path, source)| parse(path, source))
        .collect()
}

fn parse<'b>(path: &'b str, source: &'b str) -> Page<'b> {
    let mut blocks: Vec<Block> = Vec::new();
    // The blocks that we are inside of, and the link, if any.
    let mut open: Vec<usize> = Vec::new();
    let mut link = None;
    for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(tag) = &event
            && let Some(kind) = kind(tag)
        {
            // A paragraph of a list item belongs to the item.
            let in_item = open.last().is_some_and(|&b| blocks[b].kind == Kind::Item);
            if !(kind == Kind::Paragraph && in_item) {
                open.push(blocks.len());
                let (text, spans, links, rows) = Default::default();
                blocks.push(Block { kind, range, text, spans, links, rows });
            }
            continue;
        }
        let Some(&innermost) = open.last() else { continue };
        let block = &mut blocks[innermost];
        match event {
            Event::Text(text) if matches!(block.kind, Kind::Fence(_)) => {
                add_rows(&mut block.rows, &text, range.start)
            }
            Event::Text(text) | Event::Html(text) => block.text.push_str(&text),
            Event::Code(code) => {
                block.text.push_str(&format!("`{code}`"));
                block.spans.push(Span { text: code.to_string(), range, link });
            }
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell) => {
                block.text.push(' ')
            }
            Event::Start(Tag::Link { dest_url: to, .. } | Tag::Image { dest_url: to, .. }) => {
                link = Some(block.links.len());
                block.links.push(Link { to: to.to_string(), range });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => link = None,
            Event::End(TagEnd::Paragraph) if block.kind == Kind::Item => block.text.push(' '),
            Event::End(tag) if closes(tag) => {
                open.pop();
            }
            _ => {}
        }
    }
    Page { path, source, blocks }
}

fn kind(tag: &Tag) -> Option<Kind> {
    match tag {
        Tag::Heading { .. } => Some(Kind::Heading),
        Tag::Paragraph => Some(Kind::Paragraph),
        Tag::Item => Some(Kind::Item),
        Tag::TableHead | Tag::TableRow => Some(Kind::TableRow),
        Tag::CodeBlock(CodeBlockKind::Fenced(info)) => Some(Kind::Fence(info.to_string())),
        Tag::CodeBlock(CodeBlockKind::Indented) => Some(Kind::Fence(String::new())),
        Tag::HtmlBlock => Some(Kind::Html),
        _ => None,
    }
}

fn closes(tag: TagEnd) -> bool {
    use TagEnd::*;
    matches!(tag, Heading(_) | Paragraph | Item | TableHead | TableRow | CodeBlock | HtmlBlock)
}

/// The parser hands over a fence's text in one piece, or a piece per row where the fence stands in a list.
fn add_rows(rows: &mut Vec<Row>, text: &str, mut start: usize) {
    for line in text.split_inclusive('\n') {
        rows.push(Row { text: line.trim_end_matches('\n').to_string(), start });
        start += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# The `tax`

One `a` and [`b.rs:1`](../b.rs#L1).

- item `c`

  still the item `d`
  - inner `e`

  ```text
    row 1
  row 2
  ```

| head `f` | x |
|---|---|
| `g` | `h` |

<details>
<summary>Answer</summary>

Yes.

</details>
";

    #[test]
    fn blocks_come_in_order_with_their_spans() {
        let book = Book::of(&[("guide/02_x.md", PAGE)]);
        let pages = pages(&book);
        let kinds: Vec<(&Kind, String)> = pages[0]
            .blocks
            .iter()
            .map(|block| {
                (
                    &block.kind,
                    block.spans.iter().map(|span| span.text.as_str()).collect::<Vec<_>>().join(" "),
                )
            })
            .collect();
        let fence = Kind::Fence("text".to_string());
        let expected = [
            (&Kind::Heading, "tax"),
            (&Kind::Paragraph, "a b.rs:1"),
            (&Kind::Item, "c d"),
            (&Kind::Item, "e"),
            (&fence, ""),
            (&Kind::TableRow, "f"),
            (&Kind::TableRow, "g h"),
            (&Kind::Html, ""),
            (&Kind::Paragraph, ""),
            (&Kind::Html, ""),
        ];
        assert_eq!(kinds, expected.map(|(kind, spans)| (kind, spans.to_string())));
        assert_eq!(pages[0].blocks[1].text, "One `a` and `b.rs:1`.");
        assert_eq!(pages[0].chapter(), Some("02"));
    }

    #[test]
    fn rows_know_where_they_stand() {
        let book = Book::of(&[("guide/02_x.md", PAGE)]);
        let page = &pages(&book)[0];
        let (_, rows) = page.fences().next().unwrap();
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["  row 1", "row 2"]);
        for row in rows {
            assert_eq!(&PAGE[row.range()], row.text);
        }
        assert_eq!(page.at(rows[1].start), "guide/02_x.md:12");
    }
}
