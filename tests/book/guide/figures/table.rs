//! Reads a table that a program printed, out of a recorded run.

use super::draw::{Chart, Panel};
use crate::Book;

pub struct Table<'a> {
    /// `NVIDIA H200, 2026-11-30`
    pub machine: String,
    /// `runs/2026-11-30-h200.txt:82`
    pub source: String,
    head: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

pub fn path(run: &str) -> String {
    format!("guide/runs/{run}.txt")
}

impl<'a> Table<'a> {
    /// The first table under `$ cargo run --example COMMAND` whose first column is headed `first`.
    pub fn read(book: &'a Book, run: &str, command: &str, first: &str) -> Result<Self, String> {
        let path = path(run);
        let lines: Vec<&str> = book.text(&path).lines().collect();
        let command = format!("$ cargo run --example {command}");
        let find = |from: usize, wanted: &dyn Fn(&str) -> bool| {
            (from..lines.len()).find(|&line| wanted(lines[line]))
        };
        let begin = find(0, &|line| line == command)
            .ok_or_else(|| format!("{path} has no line `{command}`"))?;
        let end = find(begin + 1, &|line| line.starts_with("$ ")).unwrap_or(lines.len());
        let head = find(begin, &|line| cells(line).is_some_and(|cells| cells[0] == first))
            .filter(|&head| head < end)
            .ok_or_else(|| format!("{path}:{} has no table headed `{first}`", begin + 1))?;
        let rows: Vec<_> = lines[head + 2..end].iter().map_while(|line| cells(line)).collect();
        let said = |key: &str| lines.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let machine = said("Recorded run: ").ok_or_else(|| format!("{path} names no machine"))?;
        // What follows a comma says which lessons were recorded, and no figure needs it.
        let machine = machine.split(',').next().unwrap_or(machine);
        let date = said("date ").ok_or_else(|| format!("{path} has no date"))?;
        Ok(Table {
            machine: format!("{machine}, {date}"),
            source: format!("runs/{run}.txt:{}", head + 1),
            head: cells(lines[head]).unwrap_or_default(),
            rows,
        })
    }

    /// A column as it stands there.
    pub fn words(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let column = self.head.iter().position(|&head| head == name);
        let column = column.ok_or_else(|| format!("{} has no column `{name}`", self.source))?;
        // A row that says why it has no figures has fewer cells.
        Ok(self.rows.iter().map(|row| row.get(column).copied().unwrap_or("")).collect())
    }

    /// A column of numbers, with nothing where a row has none.
    pub fn some(&self, name: &str) -> Result<Vec<Option<f64>>, String> {
        Ok(self.words(name)?.into_iter().map(number).collect())
    }

    /// A column that has a number in every row.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, String> {
        let numbers: Option<Vec<f64>> = self.some(name)?.into_iter().collect();
        numbers.ok_or_else(|| format!("{}: not every `{name}` is a number", self.source))
    }

    /// A column as bars, each with its row's words in the other columns; without the rows that have no number.
    pub fn bars(&self, words: &[&str], value: &str) -> Result<Vec<(String, f64)>, String> {
        let columns: Vec<_> =
            words.iter().map(|name| self.words(name)).collect::<Result<_, _>>()?;
        let label = |row: usize| {
            let cells = columns.iter().map(|column| column[row]);
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(", ")
        };
        let values = self.some(value)?.into_iter().enumerate();
        Ok(values.filter_map(|(row, value)| Some((label(row), value?))).collect())
    }

    /// A chart of this table, which says whose it is.
    pub fn panel(&self, chart: Chart<'a>) -> Panel<'a> {
        Panel { above: self.machine.clone(), below: self.source.clone(), chart }
    }

    /// Row by row, the sum of some columns.
    pub fn sums(&self, names: &[&str]) -> Result<Vec<f64>, String> {
        let mut sums = vec![0.0; self.rows.len()];
        for name in names {
            sums.iter_mut().zip(self.numbers(name)?).for_each(|(sum, value)| *sum += value);
        }
        Ok(sums)
    }
}

/// `| a | b |` is a row of two cells.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// `11.1`, `2^14`, `104%` and `1.5×` are numbers.
fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim_end_matches(['%', '×']);
    match cell.split_once('^') {
        Some((base, exponent)) => Some(base.parse::<f64>().ok()?.powi(exponent.parse().ok()?)),
        None => cell.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "Recorded run: a card, twice

date      2026-11-30

$ cargo run --example 02_x

| what | µs |
|------|---:|
| wait | 11 |

| n    | µs | why |
|-----:|---:|-----|
| 2^14 | 1.5 | a |
| 2^15 | needs more |

$ cargo run --example 03_x

| k | µs |
|--:|---:|
| 1 | 70% |
";

    fn table<'a>(book: &'a Book, command: &str, first: &str) -> Result<Table<'a>, String> {
        Table::read(book, "a", command, first)
    }

    fn book() -> Book {
        Book::of(&[("guide/runs/a.txt", RUN)])
    }

    #[test]
    fn a_table_is_found_by_its_command_and_its_first_column() {
        let book = book();
        let read = table(&book, "02_x", "n").unwrap();
        assert_eq!(
            (read.machine.as_str(), read.source.as_str()),
            ("a card, 2026-11-30", "runs/a.txt:11")
        );
        assert_eq!(read.words("n").unwrap(), ["2^14", "2^15"]);
        assert_eq!(read.numbers("n").unwrap(), [16384.0, 32768.0]);
        assert_eq!(read.some("why").unwrap(), [None, None]);
        assert_eq!(read.some("µs").unwrap(), [Some(1.5), None]);
        assert_eq!(read.bars(&["n", "why"], "µs").unwrap(), [("2^14, a".to_string(), 1.5)]);
        assert_eq!(table(&book, "03_x", "k").unwrap().numbers("µs").unwrap(), [70.0]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let book = book();
        let error = |command, first| table(&book, command, first).err().unwrap_or_default();
        assert!(error("04_x", "n").contains("has no line `$ cargo run --example 04_x`"));
        // The next command's table is not this one's.
        assert!(error("02_x", "k").contains("guide/runs/a.txt:5 has no table headed `k`"));
        let read = table(&book, "02_x", "n").unwrap();
        assert!(read.words("ms").unwrap_err().contains("runs/a.txt:11 has no column `ms`"));
        assert!(read.numbers("µs").unwrap_err().contains("not every `µs` is a number"));
        assert!(Table::read(&book, "b", "02_x", "n").is_err());
    }
}
