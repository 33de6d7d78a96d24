//! Figures are drawn from recorded runs and never by hand: each `guide/figures/*.svg` equals what its entry in `FIGURES`
//! draws from tables under `guide/runs/`, and bless writes it anew. Axes carry units, the foot names machine and date.

mod draw;
mod table;

use super::{Edit, Finding};
use crate::Book;
use draw::{Axis, Chart, Panel, figure};
use table::Table;

/// What draws `guide/figures/NAME.svg`.
type Draw = fn(&Book) -> Result<String, String>;

const FIGURES: &[(&str, Draw)] = &[
    ("02_crossover", crossover),
    ("02_tax_split", tax_split),
    ("04_kernels", kernels),
    ("08_roads", roads),
    ("09_sweep", sweep),
    ("14_predicted", predicted),
];

pub fn findings(book: &Book) -> Vec<Finding> {
    // The small books of the checks' own tests have no recorded runs to draw from.
    let real = book.files.contains_key(&table::path(H200));
    if !real {
        return Vec::new();
    }
    let drawn = FIGURES.iter().filter_map(|&(name, draw)| finding(book, name, draw));
    drawn.chain(book.files.keys().filter_map(|path| by_hand(path))).collect()
}

/// A figure that no entry draws: a hand made it, or an entry went without it.
fn by_hand(path: &str) -> Option<Finding> {
    let name = path.strip_prefix("guide/figures/")?.strip_suffix(".svg");
    if FIGURES.iter().any(|&(drawn, _)| Some(drawn) == name) {
        return None;
    }
    let repair = "add what draws it to FIGURES, or delete it";
    Some(Finding::new(path.to_string(), "nothing draws it from a recorded run", repair))
}

fn finding(book: &Book, name: &str, draw: Draw) -> Option<Finding> {
    let path = format!("guide/figures/{name}.svg");
    let drawn = match draw(book) {
        Ok(drawn) => drawn,
        Err(why) => {
            let repair = "record the table anew, or teach tests/book/guide/figures.rs its new form";
            return Some(Finding::new(path, format!("cannot be drawn: {why}"), repair));
        }
    };
    let now = book.text(&path);
    if now == drawn {
        return None;
    }
    let edit = Edit { file: path.clone(), range: 0..now.len(), text: drawn };
    let what = "is not what its recorded runs draw";
    Some(Finding::mended_by(path, what, "it draws the figure anew".to_string(), vec![edit]))
}

const H200: &str = "2026-11-30-h200";
const LLVMPIPE: &str = "2026-11-30-llvmpipe";
/// A card, and a CPU that plays one.
const MACHINES: [&str; 2] = [H200, LLVMPIPE];

const N: Axis = Axis { name: "n, elements", powers: true };

/// What the CPU takes, a call with its upload, and a call on data that is there already, over n.
fn crossover(book: &Book) -> Result<String, String> {
    let panel = |run| {
        let table = Table::read(book, run, "02_fixed_tax", "n")?;
        let series = vec![
            ("CPU, one thread", table.numbers("CPU 1")?),
            ("CPU, all cores", table.numbers("CPU all")?),
            ("GPU, streamed", table.numbers("call")?),
            ("GPU, resident", table.sums(&["encode", "GPU", "beyond", "map"])?),
        ];
        Ok(table.panel(Chart::Lines { x: N, at: table.numbers("n")?, y: "µs", series }))
    };
    figure("One sum of n floats: who is faster, and from which n on", panels(MACHINES, panel)?)
}

/// What share of a streamed call each of its parts has, over n.
fn tax_split(book: &Book) -> Result<String, String> {
    let panel = |run| {
        let table = Table::read(book, run, "02_fixed_tax", "n")?;
        let part = |name| Ok((name, table.numbers(name)?));
        let parts: Result<_, String> =
            ["upload", "encode", "GPU", "beyond", "map"].map(part).into_iter().collect();
        Ok(table.panel(Chart::Shares { labels: table.words("n")?, parts: parts? }))
    };
    figure("What a streamed call consists of, phase by phase", panels(MACHINES, panel)?)
}

/// How fast each kernel shape reads, beside a copy.
fn kernels(book: &Book) -> Result<String, String> {
    let panel = |run| {
        let table = Table::read(book, run, "04_tree_reduction", "kernel")?;
        Ok(table.panel(Chart::Bars { bars: table.bars(&["kernel"], "GB/s")?, unit: "GB/s" }))
    };
    figure("One sum, kernel by kernel, beside a copy", panels(MACHINES, panel)?)
}

/// How fast each road to the device is, beside what bounds it.
fn roads(book: &Book) -> Result<String, String> {
    let panel = |run| {
        let table = Table::read(book, run, "08_upload_ring", "ceiling or road")?;
        let bars = table.bars(&["ceiling or road", "threads", "KiB a chunk"], "GB/s")?;
        // Copies within the device cross nothing, and would make all other bars short.
        let bars = bars.into_iter().filter(|(road, _)| !road.starts_with("copy")).collect();
        Ok(table.panel(Chart::Bars { bars, unit: "GB/s; a road, its threads, KiB a chunk" }))
    };
    let title = "Roads to the device, and the CPU's own copies";
    figure(title, panels(["2026-12-01-h200-08", "2026-12-01-llvmpipe-08"], panel)?)
}

/// What a width costs on its first run, and in the middle of many, over the width.
fn sweep(book: &Book) -> Result<String, String> {
    let panel = |run| {
        let table = Table::read(book, run, "09_workgroup_sweep", "scale")?;
        let widths = table.numbers("scale")?;
        // One width is outside the contest, and shows idle lanes: it belongs to no curve.
        let contest = |column: Vec<f64>| {
            let pairs = widths.iter().zip(column).filter(|(width, _)| width.log2().fract() == 0.0);
            pairs.map(|(_, value)| value).collect::<Vec<_>>()
        };
        let series = vec![
            ("first run, cold", contest(table.numbers("cold")?)),
            ("median of all rounds", contest(table.numbers("median")?)),
        ];
        let x = Axis { name: "lanes in a workgroup", powers: false };
        Ok(table.panel(Chart::Lines { x, at: contest(widths.clone()), y: "µs", series }))
    };
    let title = "A streaming kernel by the width of its workgroups";
    figure(title, panels(["2026-12-01-h200-09", "2026-12-01-llvmpipe-09"], panel)?)
}

/// What the model says of operators that it has not seen, beside what they take.
fn predicted(book: &Book) -> Result<String, String> {
    let panel = |(run, command): (&'static str, &'static str)| {
        let table = Table::read(book, run, command, "operator, n")?;
        let pairs = |name, measured, predicted| {
            let measured = table.numbers(measured)?.into_iter();
            Ok((name, measured.zip(table.numbers(predicted)?).collect()))
        };
        let groups: Result<_, String> = [
            pairs("CPU", "CPU m", "CPU p"),
            pairs("GPU, streamed", "strmd m", "strmd p"),
            pairs("GPU, resident", "resid m", "resid p"),
        ]
        .into_iter()
        .collect();
        Ok(table.panel(Chart::Predictions { unit: "µs", groups: groups? }))
    };
    let runs =
        [("2026-12-01-h200-14", "14_break_even"), ("2026-12-01-llvmpipe-14", "14_break_even 25")];
    figure(
        "Five operators, 2^16 to 2^25: predicted and measured, and lines at 2 ×",
        panels(runs, panel)?,
    )
}

fn panels<'a, T, const N: usize>(
    of: [T; N],
    panel: impl Fn(T) -> Result<Panel<'a>, String>,
) -> Result<Vec<Panel<'a>>, String> {
    of.into_iter().map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{mend, plain};
    use crate::{assert_caught, the_book};

    #[test]
    fn a_figure_that_is_not_its_runs_is_caught_and_drawn_anew() {
        let mut book = the_book();
        let path = "guide/figures/02_crossover.svg";
        book.files.entry(path.to_string()).or_default().push_str("by hand");
        assert_caught(&plain(findings(&book)), "not what its recorded runs draw", "just bless");
        mend::bless(&mut book);
        assert!(findings(&book).is_empty());
        book.files.remove(path);
        assert_eq!(findings(&book).len(), 1);
    }

    #[test]
    fn a_figure_that_nothing_draws_is_caught() {
        let mut book = the_book();
        book.files.insert("guide/figures/04_hand.svg".into(), "<svg/>".into());
        assert_caught(&plain(findings(&book)), "nothing draws it", "add what draws it");
    }

    #[test]
    fn a_run_without_the_table_is_named() {
        let mut book = the_book();
        let run = book.files.get_mut(&table::path(H200)).unwrap();
        *run = run.replace("04_tree_reduction", "04_another");
        assert_caught(&plain(findings(&book)), "cannot be drawn", "record the table anew");
    }
}
