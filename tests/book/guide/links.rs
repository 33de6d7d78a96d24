//! Links resolve: files, headings and line numbers inside the repository. What lies on the network is not asked.

use super::Finding;
use super::lines::Lines;
use super::page::{Block, Kind, Page};
use crate::Book;
use std::collections::BTreeMap;

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let anchors: BTreeMap<&str, Vec<String>> =
        pages.iter().map(|page| (page.path, anchors(page))).collect();
    let mut found = Vec::new();
    for page in pages {
        for block in &page.blocks {
            let links = block.links.iter().map(|link| (link.to.as_str(), link.range.start));
            let in_html = html_links(block).into_iter().map(|to| (to, block.range.start));
            for (to, at) in links.chain(in_html) {
                if let Some((what, repair)) = broken(book, &anchors, page.path, to) {
                    found.push(Finding::new(page.at(at), what, repair));
                }
            }
        }
    }
    found
}

pub fn is_remote(target: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

/// The path from the root of a link's target, which is relative to the folder of its page. None where it leads out.
pub fn join(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// What is wrong with a link, and the repair.
fn broken(
    book: &Book,
    anchors: &BTreeMap<&str, Vec<String>>,
    page: &str,
    to: &str,
) -> Option<(String, String)> {
    if is_remote(to) {
        return None;
    }
    let (target, anchor) = to.split_once('#').unwrap_or((to, ""));
    let path = if target.is_empty() { Some(page.to_string()) } else { join(page, target) };
    let is_folder =
        |path: &str| book.files.keys().any(|file| file.starts_with(&format!("{path}/")));
    let Some(path) =
        path.filter(|path| book.files.contains_key(path) || path.is_empty() || is_folder(path))
    else {
        let repair = "link to a file of the book, relative to this page's folder".to_string();
        return Some((format!("links to {to}, and there is no such file"), repair));
    };
    if anchor.is_empty() {
        return None;
    }
    if let Some(lines) = Lines::parse_fragment(anchor) {
        let count = book.text(&path).lines().count();
        let what = format!("links to {to}, and {path} has {count} lines");
        return (lines.last > count).then(|| (what, "link to a line that is there".to_string()));
    }
    let known = anchors.get(path.as_str()).map_or(&[][..], Vec::as_slice);
    (!known.iter().any(|slug| slug == anchor)).then(|| {
        let what = format!("links to {to}, and {path} has no heading of that name");
        (
            what,
            format!(
                "its headings are {}",
                known.iter().map(|slug| format!("#{slug}")).collect::<Vec<_>>().join(" ")
            ),
        )
    })
}

/// The anchors of a page's headings, as code hosts and mdBook make them.
fn anchors(page: &Page) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = page.blocks.iter().filter(|block| block.kind == Kind::Heading);
    headings
        .map(|heading| {
            let kept = heading.text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
            // The second heading of the same name gets -1, the third -2.
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        })
        .collect()
}

/// The targets in raw HTML, such as a figure's `<img src="figures/tax.svg">`.
fn html_links(block: &Block) -> Vec<&str> {
    if block.kind != Kind::Html {
        return Vec::new();
    }
    let after = |attribute| {
        block.text.split(attribute).skip(1).filter_map(|rest: &str| rest.split('"').next())
    };
    after("src=\"").chain(after("srcset=\"")).chain(after("href=\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    fn check(text: &str) -> Vec<Fault> {
        let other = "# Two words\n\n## The `tax`, again\n\n# Two words\n";
        let book = Book::of(&[
            ("guide/02_x.md", text),
            ("guide/reference/limits.md", other),
            ("guide/figures/tax.svg", "<svg/>"),
            ("examples/02_x.rs", "one\ntwo\n"),
        ]);
        plain(findings(&book, &pages(&book)))
    }

    #[test]
    fn links_that_resolve_hold() {
        report(check(
            "# Here\n\n[a](#here) [b](reference/limits.md) [c](reference/limits.md#the-tax-again) [d](../examples/)\n\
             [e](../examples/02_x.rs#L2) [f](https://example.org/nowhere#x) ![g](figures/tax.svg)\n\
             [h](reference/limits.md#two-words-1)\n\n<img src=\"figures/tax.svg\">\n",
        ));
    }

    #[test]
    fn a_broken_link_is_caught() {
        assert_caught(
            &check("[a](reference/limit.md)"),
            "reference/limit.md",
            "relative to this page's folder",
        );
        assert_caught(&check("[a](../../x.md)"), "../../x.md", "relative to this page's folder");
        assert_caught(
            &check("<img src=\"figures/no.svg\">"),
            "figures/no.svg",
            "relative to this page's folder",
        );
    }

    #[test]
    fn a_broken_anchor_is_caught() {
        assert_caught(
            &check("[a](reference/limits.md#tax)"),
            "no heading",
            "#two-words #the-tax-again #two-words-1",
        );
    }

    #[test]
    fn a_line_past_the_end_is_caught() {
        assert_caught(&check("[a](../examples/02_x.rs#L3)"), "has 2 lines", "a line that is there");
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
