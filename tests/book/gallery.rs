//! The failure gallery is data, and `guide/reference/errors.md` has an index of it: from each text, or from what there
//! is to be seen where there is no text, to its cause, its cure and its exhibit. Here the table of exhibits is read out
//! of the example's source, held to its form, and the index held equal to it. `just bless` writes the index.

use syn::spanned::Spanned;

use crate::Book;
use crate::guide::Finding;
use crate::guide::mend::Edit;

const EXAMPLE: &str = "examples/13_failure_gallery.rs";
const PAGE: &str = "guide/reference/errors.md";
const END: &str = "<!-- /gallery -->";
/// A shelf as the table names it, and as the page's mark does.
const SHELVES: [(&str, &str); 3] =
    [("Call", "raised at the call"), ("Later", "raised later"), ("Never", "never raised")];
/// Both versions of an exhibit fit into so many lines, or it shows more than one thing.
const LONGEST: usize = 20;

/// One row of `EXHIBITS`.
#[derive(Default)]
struct Exhibit {
    /// The line on which its name stands.
    line: usize,
    name: String,
    shelf: String,
    telling: String,
    cause: String,
    cure: String,
    see: String,
    /// The lines of its function's body.
    lines: usize,
}

/// What is wrong with the gallery and its index; nothing where there is no gallery.
pub fn findings(book: &Book) -> Vec<Finding> {
    if !book.files.contains_key(EXAMPLE) {
        return Vec::new();
    }
    let exhibits = match exhibits(book.text(EXAMPLE)) {
        Ok(exhibits) => exhibits,
        Err((line, why)) => {
            let repair = "write each exhibit as `Exhibit { name: \"…\", shelf: Shelf::…, … }`";
            return vec![Finding::new(format!("{EXAMPLE}:{line}"), why, repair)];
        }
    };
    let mut found: Vec<Finding> = exhibits.iter().filter_map(misshapen).collect();
    for (place, one) in exhibits.iter().enumerate() {
        if exhibits[..place].iter().any(|other| other.name == one.name) {
            let what = format!("there are two exhibits `{}`", one.name);
            found.push(Finding::new(one.at(), what, "give this one a name of its own"));
        }
    }
    for (shelf, title) in SHELVES {
        found.extend(index(book, &exhibits, shelf, title));
    }
    found
}

impl Exhibit {
    fn at(&self) -> String {
        format!("{EXAMPLE}:{}", self.line)
    }
}

fn misshapen(exhibit: &Exhibit) -> Option<Finding> {
    let Exhibit { name, lines, telling, cause, cure, .. } = exhibit;
    let (what, repair) = if *lines > LONGEST {
        (format!("`{name}` takes {lines} lines; {LONGEST} are the most"), "show less at once")
    } else if [telling, cause, cure].iter().any(|text| text.is_empty() || text.ends_with('.')) {
        let repair = "write telling, cause and cure, without a full stop: they go into sentences";
        (format!("a text of `{name}` is empty, or ends in a full stop"), repair)
    } else if !SHELVES.iter().any(|(shelf, _)| *shelf == exhibit.shelf) {
        (format!("`{name}` is on no shelf"), "write Shelf::Call, Shelf::Later or Shelf::Never")
    } else {
        return None;
    };
    Some(Finding::new(exhibit.at(), what, repair))
}

/// The index of one shelf, if the page has another.
fn index(book: &Book, exhibits: &[Exhibit], shelf: &str, title: &str) -> Option<Finding> {
    let page = book.text(PAGE);
    let begin = format!("<!-- gallery: {title} -->");
    if page.matches(&begin).count() > 1 {
        let what = format!("has two places for the exhibits that are {title}");
        return Some(Finding::new(
            PAGE.into(),
            what,
            "delete the second: only the first is checked",
        ));
    }
    let range = page.find(&begin).and_then(|start| {
        let end = page[start..].find(END)?;
        Some(start..start + end + END.len())
    });
    let Some(range) = range else {
        let repair = format!("write `{begin}` and `{END}` there, and run `just bless`");
        let what = format!("has no place for the exhibits that are {title}");
        return Some(Finding::new(PAGE.into(), what, repair));
    };
    let rows: Vec<String> =
        exhibits.iter().filter(|one| one.shelf == shelf).map(|one| row(book, one)).collect();
    let text = format!("{begin}\n\n{}\n\n{END}", rows.join("\n"));
    if page[range.clone()] == text {
        return None;
    }
    let line = page[..range.start].lines().count() + 1;
    let what = format!("the index of what is {title} is not that of {EXAMPLE}");
    let edit = Edit { file: PAGE.into(), range, text };
    Some(Finding::mended_by(
        format!("{PAGE}:{line}"),
        what,
        "it writes the index".into(),
        vec![edit],
    ))
}

fn row(book: &Book, exhibit: &Exhibit) -> String {
    let Exhibit { line, name, telling, cause, cure, see, shelf, .. } = exhibit;
    // What wgpu says is code; what there is to be seen is prose.
    let telling = match (shelf.as_str(), telling.contains('`')) {
        ("Never", _) => format!("*{telling}*"),
        (_, true) => format!("`` {telling} ``"),
        (_, false) => format!("`{telling}`"),
    };
    let file = EXAMPLE.trim_start_matches("examples/");
    let mut row = format!("- {telling}: {cause}. Cure: {cure}. `{name}` (`{file}:{line}`)");
    let (label, link) = match see.split_once('_') {
        Some((number, _)) if number.len() == 2 => (number.to_string(), format!("../{see}.md")),
        _ => (see.replace('_', " "), format!("{see}.md")),
    };
    // A chapter that is not written yet has no link.
    let folder = if link.starts_with("../") { "guide" } else { "guide/reference" };
    if book.files.contains_key(&format!("{folder}/{see}.md")) {
        row += &format!(", [{label}]({link})");
    }
    row + "."
}

/// The table of exhibits out of the source of the example; or the line that cannot be read, and why.
fn exhibits(source: &str) -> Result<Vec<Exhibit>, (usize, String)> {
    let file = syn::parse_file(source)
        .map_err(|error| (error.span().start().line, format!("cannot be read as Rust: {error}")))?;
    let table = file.items.iter().find_map(|item| match item {
        syn::Item::Const(item) if item.ident == "EXHIBITS" => Some(&*item.expr),
        _ => None,
    });
    let table = table.ok_or((1, "there is no `const EXHIBITS`".to_string()))?;
    let syn::Expr::Reference(table) = table else { return Err(unreadable(table)) };
    let syn::Expr::Array(array) = &*table.expr else { return Err(unreadable(&table.expr)) };
    array.elems.iter().map(exhibit).collect()
}

fn unreadable(expr: &syn::Expr) -> (usize, String) {
    (expr.span().start().line, "this is not a row of the table of exhibits".to_string())
}

fn exhibit(expr: &syn::Expr) -> Result<Exhibit, (usize, String)> {
    let syn::Expr::Struct(fields) = expr else { return Err(unreadable(expr)) };
    let mut exhibit = Exhibit::default();
    for field in &fields.fields {
        let syn::Member::Named(name) = &field.member else { return Err(unreadable(expr)) };
        let name = name.to_string();
        if name == "name" {
            exhibit.line = field.span().start().line;
        }
        match (name.as_str(), &field.expr) {
            ("run", run) => {
                // The lines between the brackets of the body.
                let span = run.span();
                exhibit.lines = (span.end().line - span.start().line).saturating_sub(1);
            }
            ("shelf", syn::Expr::Path(path)) => {
                let last = path.path.segments.last().map(|segment| segment.ident.to_string());
                exhibit.shelf = last.unwrap_or_default();
            }
            (_, syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => {
                let place = match name.as_str() {
                    "name" => &mut exhibit.name,
                    "telling" => &mut exhibit.telling,
                    "cause" => &mut exhibit.cause,
                    "cure" => &mut exhibit.cure,
                    "see" => &mut exhibit.see,
                    _ => return Err(unreadable(&field.expr)),
                };
                *place = text.value();
            }
            (_, other) => return Err(unreadable(other)),
        }
    }
    Ok(exhibit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{faults, mend};
    use crate::{Fault, assert_caught, report};

    const TABLE: &str = r#"
pub const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "entry_point",
        shelf: Shelf::Call,
        telling: "Unable to find `x`",
        cause: "the name is wrong",
        cure: "write it right",
        see: "01_ladder",
        run: |gpu, cured| {
            gpu.whole(cured)
        },
    },
    Exhibit {
        name: "tail",
        shelf: Shelf::Never,
        telling: "counts too high",
        cause: "no guard, \
                and a tail",
        cure: "a guard",
        see: "09_later",
        run: |gpu, cured| gpu.whole(cured),
    },
];
"#;
    const INDEX: &str = "# Errors

<!-- gallery: raised at the call -->

- `` Unable to find `x` ``: the name is wrong. Cure: write it right. `entry_point` (`13_failure_gallery.rs:4`), [01](../01_ladder.md).

<!-- /gallery -->

By hand.

<!-- gallery: raised later -->



<!-- /gallery -->

<!-- gallery: never raised -->

- *counts too high*: no guard, and a tail. Cure: a guard. `tail` (`13_failure_gallery.rs:15`).

<!-- /gallery -->
";

    fn book(table: &str, index: &str) -> Book {
        Book::of(&[(EXAMPLE, table), (PAGE, index), ("guide/01_ladder.md", "# Ladder")])
    }

    fn check(table: &str, index: &str) -> Vec<Fault> {
        findings(&book(table, index)).into_iter().map(|finding| finding.fault).collect()
    }

    /// The faults after one edit of the table, beside the index that bless then makes.
    fn edited(from: &str, to: &str) -> Vec<Fault> {
        assert!(TABLE.contains(from), "{from:?} is not in the table");
        let mut book = book(&TABLE.replacen(from, to, 1), INDEX);
        mend::bless(&mut book);
        findings(&book).into_iter().map(|finding| finding.fault).collect()
    }

    #[test]
    fn a_right_index_passes() {
        report(check(TABLE, INDEX));
        assert_eq!(faults(&book(TABLE, INDEX)), []);
        // Without a gallery there is nothing to index.
        assert!(findings(&Book::of(&[(PAGE, "# Errors")])).is_empty());
    }

    #[test]
    fn a_stale_index_is_caught_and_mended() {
        let stale = [("is wrong", "was wrong"), (":4`", ":5`"), ("- *counts", "- counts")];
        for (from, to) in stale {
            let index = INDEX.replacen(from, to, 1);
            assert_caught(&check(TABLE, &index), "the index of what is", "just bless");
            let mut book = book(TABLE, &index);
            mend::bless(&mut book);
            assert_eq!(book.text(PAGE), INDEX);
        }
    }

    /// All line numbers move, and some get longer, both in the index and where a page refers to the file.
    #[test]
    fn an_index_is_mended_along_with_references_in_the_page() {
        let index =
            INDEX.replace("By hand.", "By hand: `name: \"tail\"` (`13_failure_gallery.rs:15`).");
        let mut book = book(&format!("{}{TABLE}", "\n".repeat(90)), &index);
        mend::bless(&mut book);
        let moved = index.replace("rs:15`", "rs:105`").replace("rs:4`", "rs:94`");
        assert_eq!(book.text(PAGE), moved);
        assert_eq!(faults(&book), []);
    }

    #[test]
    fn a_page_without_a_place_for_a_shelf_is_caught() {
        let index = INDEX.replace("<!-- gallery: raised later -->", "");
        let what = "has no place for the exhibits that are raised later";
        assert_caught(&check(TABLE, &index), what, "<!-- gallery: raised later -->");
        let twice = format!("{INDEX}\n<!-- gallery: raised later -->\n\n<!-- /gallery -->\n");
        assert_caught(&check(TABLE, &twice), "has two places", "delete the second");
        let open = INDEX.trim_end().trim_end_matches(END);
        assert_caught(&check(TABLE, open), "no place for the exhibits that are never", END);
    }

    #[test]
    fn an_exhibit_that_strays_from_the_form_is_caught() {
        assert_caught(&edited("\"a guard\"", "\"a guard.\""), "a text of `tail`", "full stop");
        assert_caught(&edited("\"counts too high\"", "\"\""), "a text of `tail`", "write telling");
        assert_caught(&edited("Shelf::Never", "Shelf::Seldom"), "`tail` is on no", "Shelf::Call");
        assert_caught(&edited("\"tail\"", "\"entry_point\""), "two exhibits `entry", "its own");
        let long = format!("{{\n{}", "step();\n".repeat(20));
        assert_caught(
            &edited("{\n            gpu", &format!("{long}gpu")),
            "takes 21",
            "show less",
        );
    }

    #[test]
    fn a_table_that_cannot_be_read_is_caught() {
        let repair = "Exhibit { name";
        assert_caught(&edited("name: \"tail\"", "name: TAIL"), "not a row of the table", repair);
        assert_caught(&edited("telling:", "text:"), "not a row of the table", repair);
        assert_caught(&edited("EXHIBITS", "ROWS"), "there is no `const EXHIBITS`", repair);
        assert_caught(&edited("&[\n", "[\n"), "not a row of the table", repair);
        assert_caught(&edited("];", "]"), "cannot be read as Rust", repair);
    }

    #[test]
    fn the_book() {
        let found = findings(&crate::the_book());
        report(found.into_iter().map(|finding| finding.fault).collect());
    }
}
