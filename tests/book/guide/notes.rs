//! What the reader fills in: slots, card lines and questions, each with an id of its own, and `notes_template.md`, which
//! is made out of them.

use super::page::{Block, Kind, Page, pages};
use super::{Edit, Finding};
use crate::Book;
use std::collections::BTreeMap;

pub const TEMPLATE: &str = "guide/notes_template.md";

const OPENING: &str = "\
# My notes

Before a run, write a number into each `predict __`; after it, one into each `measured __`. Answer a question before you
unfold the book's answer. Keep a slot on its one line, with its number and unit. What your adapter cannot measure gets
the word `none`.
";

/// A line of the notes as a chapter has it.
struct Entry<'p> {
    block: &'p Block,
    /// `02.1`, `card.submit`, `02.A`.
    id: String,
    /// The line, or the question without its id.
    text: String,
}

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    // Where each id stands first.
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for page in pages {
        let (slots, cards, questions) = (slots(page), cards(page), questions(page));
        for entry in slots.iter().chain(&cards).chain(&questions) {
            let at = page.at(entry.block.range.start);
            if let Some(first) = seen.get(&entry.id) {
                let what = format!("{} is used before, at {first}", entry.id);
                found.push(Finding::new(at, what, "give this one an id of its own"));
            } else {
                seen.insert(entry.id.clone(), at);
            }
        }
        found.extend(slots.iter().chain(&cards).filter_map(|entry| misshapen(page, entry)));
        found.extend(numbering(page, &slots, |place| format!("{}", place + 1)));
        found.extend(numbering(page, &questions, |place| {
            char::from(b'A' + place as u8).to_string()
        }));
        found.extend(questions.iter().filter_map(|entry| unanswered(page, entry)));
        found.extend(unnamed_questions(page));
    }
    found.extend(stale_template(book));
    found
}

/// `notes_template.md` out of the chapters, in SUMMARY.md's order. None for a book without chapters.
pub fn template(book: &Book) -> Option<String> {
    let pages = pages(book);
    let summary = pages.iter().find(|page| page.path == "guide/SUMMARY.md")?;
    let rows = summary.blocks.iter().flat_map(|block| &block.links);
    let paths: Vec<String> = rows.map(|link| format!("guide/{}", link.to)).collect();
    let chapters: Vec<&Page> = paths
        .iter()
        .filter_map(|path| pages.iter().find(|page| page.path == *path && page.chapter().is_some()))
        .collect();
    let mut text = OPENING.to_string();
    let cards: Vec<Entry> = chapters.iter().flat_map(|page| cards(page)).collect();
    if !cards.is_empty() {
        text.push_str("\n## My machine\n\n");
    }
    for card in cards {
        text.push_str(&format!("{}\n", card.text));
    }
    for page in &chapters {
        let (slots, questions) = (slots(page), questions(page));
        if slots.is_empty() && questions.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {}\n", title(page)));
        if !slots.is_empty() {
            text.push('\n');
        }
        for slot in slots {
            text.push_str(&format!("{}\n", slot.text));
        }
        for question in questions {
            text.push_str(&format!("\n{}\n\n- {} answer: __\n", question.text, question.id));
        }
    }
    (!chapters.is_empty()).then_some(text)
}

/// `02 Fixed tax` of `guide/02_fixed_tax.md`.
fn title(page: &Page) -> String {
    let stem = page.path.trim_start_matches("guide/").trim_end_matches(".md").replace('_', " ");
    let (number, name) = stem.split_once(' ').unwrap_or((&stem, ""));
    let mut letters = name.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase().to_string()).unwrap_or_default();
    format!("{number} {first}{}", letters.as_str())
}

/// The slots of a page: list items that begin with an id of two digits, a point and a number.
fn slots<'p>(page: &'p Page) -> Vec<Entry<'p>> {
    let is_slot = |id: &str| {
        let (chapter, number) = id.split_once('.').unwrap_or_default();
        chapter.len() == 2
            && [chapter, number]
                .iter()
                .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    items(page).filter(|entry| is_slot(&entry.id) && entry.text.contains("__")).collect()
}

fn cards<'p>(page: &'p Page) -> Vec<Entry<'p>> {
    items(page).filter(|entry| entry.id.starts_with("card.")).collect()
}

fn items<'p>(page: &'p Page) -> impl Iterator<Item = Entry<'p>> {
    page.blocks.iter().filter(|block| block.kind == Kind::Item).filter_map(|block| {
        let text = page.source[block.range.clone()].trim_end();
        let id = text.strip_prefix("- ")?.split(' ').next()?;
        Some(Entry { block, id: id.to_string(), text: text.to_string() })
    })
}

fn questions<'p>(page: &'p Page) -> Vec<Entry<'p>> {
    let paragraphs = page.blocks.iter().filter(|block| block.kind == Kind::Paragraph);
    let question = |block: &'p Block| {
        page.source[block.range.clone()].strip_prefix("**Question ")?;
        let (id, text) = block.text.strip_prefix("Question ")?.split_once(". ")?;
        let (chapter, letter) = id.split_once('.')?;
        let named = chapter.len() == 2
            && letter.len() == 1
            && letter.bytes().all(|b| b.is_ascii_uppercase());
        named.then(|| Entry { block, id: id.to_string(), text: text.to_string() })
    };
    paragraphs.filter_map(question).collect()
}

/// A paragraph that means to be a question and is not read as one.
fn unnamed_questions(page: &Page) -> Vec<Finding> {
    let read: Vec<usize> = questions(page).iter().map(|entry| entry.block.range.start).collect();
    let meant = page
        .blocks
        .iter()
        .filter(|block| page.source[block.range.clone()].starts_with("**Question"));
    meant
        .filter(|block| block.kind == Kind::Paragraph && !read.contains(&block.range.start))
        .map(|block| {
            let number = page.chapter().unwrap_or("NN");
            let repair =
                format!("open it with `**Question {number}.A.** `, and leave it outside lists");
            Finding::new(page.at(block.range.start), "a question whose id cannot be read", repair)
        })
        .collect()
}

fn misshapen(page: &Page, entry: &Entry) -> Option<Finding> {
    let form = match entry.id.strip_prefix("card.") {
        Some(_) => format!("- {} what it is: __ µs", entry.id),
        None => format!("- {} what it is: predict __ µs  measured __ µs", entry.id),
    };
    let fields = entry.text.split_once(": ").map(|(_, fields)| fields);
    let well = match (fields, entry.id.starts_with("card.")) {
        (Some(fields), true) => fields.starts_with("__"),
        (Some(fields), false) => {
            let (predict, measured) = fields.split_once("  ").unwrap_or_default();
            let unit = predict.strip_prefix("predict __");
            unit.is_some() && unit == measured.strip_prefix("measured __")
        }
        (None, _) => false,
    };
    let one_line = !entry.text.contains('\n');
    (!(well && one_line)).then(|| {
        let what = format!("{} is not written as the notes need it", entry.id);
        Finding::new(
            page.at(entry.block.range.start),
            what,
            format!("write it on one line as `{form}`"),
        )
    })
}

/// Ids begin with the chapter's number and count from the first, so that the notes have no holes.
fn numbering(page: &Page, entries: &[Entry], name: impl Fn(usize) -> String) -> Option<Finding> {
    let number = page.chapter().unwrap_or("NN");
    let expected = |place| format!("{number}.{}", name(place));
    let (place, entry) =
        entries.iter().enumerate().find(|(place, entry)| entry.id != expected(*place))?;
    let what = format!("{} stands where {} is next", entry.id, expected(place));
    let repair = "number slots from 1 and letter questions from A, in the chapter of that number";
    Some(Finding::new(page.at(entry.block.range.start), what, repair))
}

/// The answer is folded: `<details>` just after the question, with something between its summary and its end.
fn unanswered(page: &Page, entry: &Entry) -> Option<Finding> {
    let below = page.blocks.iter().skip_while(|block| block.range.start <= entry.block.range.start);
    let below: Vec<&str> = below.map(|block| block.text.trim_end()).collect();
    let opens =
        |text: &str| text.starts_with("<details>") && text.ends_with("<summary>Answer</summary>");
    // The fold's end, or another fold's beginning where it has none.
    let end = below
        .iter()
        .skip(1)
        .position(|text| text.starts_with("</details>") || text.starts_with("<details>"));
    let answered = below.first().is_some_and(|text| opens(text))
        && end.is_some_and(|answer| answer > 0 && below[answer + 1].starts_with("</details>"));
    (!answered).then(|| {
        let what = format!("question {} has no answer", entry.id);
        let repair = "put below it: <details>, <summary>Answer</summary>, an empty line, the answer, an empty line, </details>";
        Finding::new(page.at(entry.block.range.start), what, repair)
    })
}

fn stale_template(book: &Book) -> Option<Finding> {
    let template = template(book)?;
    let present = book.text(TEMPLATE);
    (present != template).then(|| {
        let what = "differs from what the chapters' slots, cards and questions make";
        let edit = Edit { file: TEMPLATE.to_string(), range: 0..present.len(), text: template };
        Finding::mended_by(TEMPLATE.to_string(), what, "it writes the file".to_string(), vec![edit])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    const ANSWER: &str = "<details>\n<summary>Answer</summary>\n\nIt waits.\n\n</details>\n";

    fn check(page: &str) -> Vec<Fault> {
        let book = Book::of(&[("guide/02_fixed_tax.md", page)]);
        plain(findings(&book, &pages(&book)))
    }

    fn chapter() -> String {
        format!(
            "# Tax\n\n- card.submit empty submit and wait: __ µs\n\n\
             - 02.1 empty submit and wait: predict __ µs  measured __ µs\n\
             - 02.2 the winner: predict __  measured __\n\n\
             **Question 02.A.** Why does `wait`\ncost 1.5 as much? Say.\n\n{ANSWER}"
        )
    }

    #[test]
    fn a_right_chapter_holds() {
        report(check(&chapter()));
    }

    #[test]
    fn a_used_id_is_caught() {
        let twice = "- card.submit one: __ µs\n- card.submit two: __ µs\n";
        let faults = check(twice);
        assert_caught(
            &faults,
            "card.submit is used before, at guide/02_fixed_tax.md:1",
            "an id of its own",
        );
        let slot = "- 02.1 a: predict __ µs  measured __ µs\n";
        let book = Book::of(&[("guide/02_x.md", slot), ("guide/03_x.md", slot)]);
        let faults = plain(findings(&book, &pages(&book)));
        assert_caught(&faults[..1], "02.1 is used before, at guide/02_x.md:1", "an id of its own");
        assert_caught(&faults[1..], "02.1 stands where 03.1 is next", "number slots from 1");
    }

    #[test]
    fn a_misshapen_slot_is_caught() {
        for slot in [
            "- 02.1 a: predict __ µs measured __ µs",
            "- 02.1 a: predict __ µs  measured __ ms",
            "- 02.1 a: __",
            "- 02.1 a: predict __ µs  measured __ µs\n  and more",
        ] {
            assert_caught(
                &check(slot),
                "02.1 is not written",
                "- 02.1 what it is: predict __ µs  measured __ µs",
            );
        }
        assert_caught(
            &check("- card.submit __"),
            "card.submit is not written",
            "- card.submit what it is: __ µs",
        );
        report(check("- 12.5 GB/s is no slot"));
    }

    #[test]
    fn a_question_without_an_answer_is_caught() {
        assert_caught(
            &check("**Question 02.A.** Why?\n"),
            "question 02.A has no answer",
            "<summary>Answer</summary>",
        );
        let empty =
            "**Question 02.A.** Why?\n\n<details>\n<summary>Answer</summary>\n\n</details>\n";
        assert_caught(&check(empty), "question 02.A has no answer", "an empty line, the answer");
        let raw =
            "**Question 02.A.** Why?\n\n<details><summary>Answer</summary>It waits.</details>\n";
        assert_caught(&check(raw), "question 02.A has no answer", "an empty line");
        let late = format!("**Question 02.A.** Why?\n\nBecause.\n\n{ANSWER}");
        assert_caught(&check(&late), "question 02.A has no answer", "put below it");
    }

    #[test]
    fn a_question_out_of_order_or_without_an_id_is_caught() {
        assert_caught(
            &check(&format!("**Question 02.B.** Why?\n\n{ANSWER}")),
            "where 02.A is next",
            "letter questions",
        );
        assert_caught(
            &check(&format!("**Question 2.A** Why?\n\n{ANSWER}")),
            "cannot be read",
            "**Question 02.A.**",
        );
    }

    #[test]
    fn the_template_is_made_out_of_the_chapters() {
        let summary = "# Summary\n\n- [Ladder](01_ladder.md)\n- [Tax](02_fixed_tax.md)\n";
        let mut book = Book::of(&[
            ("guide/SUMMARY.md", summary),
            ("guide/01_ladder.md", "- card.rungs all rungs: __ ms\n"),
            ("guide/02_fixed_tax.md", &chapter()),
        ]);
        assert_caught(
            &plain(findings(&book, &pages(&book))),
            "differs from what the chapters",
            "just bless",
        );
        let expected = format!(
            "{OPENING}\n## My machine\n\n- card.rungs all rungs: __ ms\n- card.submit empty submit and wait: __ µs\n\n\
             ## 02 Fixed tax\n\n- 02.1 empty submit and wait: predict __ µs  measured __ µs\n\
             - 02.2 the winner: predict __  measured __\n\n\
             Why does `wait` cost 1.5 as much? Say.\n\n- 02.A answer: __\n"
        );
        assert_eq!(template(&book), Some(expected.clone()));
        book.files.insert(TEMPLATE.to_string(), expected);
        report(plain(findings(&book, &pages(&book))));
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
