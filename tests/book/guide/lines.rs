//! Line numbers as the guide writes them, and where in a file a line stands.

/// `69` or `69-75`, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lines {
    pub first: usize,
    pub last: usize,
}

impl Lines {
    /// Reads `69` or `69-75`.
    pub fn parse(text: &str) -> Option<Lines> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Lines { first: number(first)?, last: number(last)? }.in_order()
    }

    /// Reads a link's fragment, `L69` or `L69-L75`.
    pub fn parse_fragment(text: &str) -> Option<Lines> {
        let text = text.strip_prefix('L')?;
        let (first, last) = text.split_once("-L").unwrap_or((text, text));
        Lines { first: number(first)?, last: number(last)? }.in_order()
    }

    pub fn text(self) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{}-{}", self.first, self.last)
        }
    }

    pub fn fragment(self) -> String {
        if self.first == self.last {
            format!("L{}", self.first)
        } else {
            format!("L{}-L{}", self.first, self.last)
        }
    }

    /// As many lines, from another first one on.
    pub fn moved_to(self, first: usize) -> Lines {
        Lines { first, last: first + self.last - self.first }
    }

    fn in_order(self) -> Option<Lines> {
        (1 <= self.first && self.first <= self.last).then_some(self)
    }
}

fn number(text: &str) -> Option<usize> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The line of this number, counted from 1.
pub fn line<'t>(lines: &[&'t str], number: usize) -> Option<&'t str> {
    lines.get(number.checked_sub(1)?).copied()
}

/// The numbers of the lines on which a run of lines begins that `same` accepts, row by row.
pub fn homes<R>(lines: &[&str], run: &[R], same: impl Fn(&str, &R) -> bool) -> Vec<usize> {
    let begins = |window: &[&str]| window.iter().zip(run).all(|(line, row)| same(line, row));
    let windows = lines.windows(run.len().max(1)).enumerate();
    windows.filter(|(_, window)| begins(window)).map(|(before, _)| before + 1).collect()
}

/// The repair of something that has lost its line, from the lines where it stands now.
pub fn where_now(homes: &[usize], file: &str) -> String {
    match homes {
        [] => format!("it stands nowhere in {file}; quote what does"),
        [one] => format!("it stands on line {one} of {file}"),
        [first, second, ..] => {
            let count = homes.len();
            format!(
                "it stands {count} times in {file}, on lines {first} and {second} first; quote more, or set the number"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written() {
        assert_eq!(Lines::parse("69"), Some(Lines { first: 69, last: 69 }));
        assert_eq!(Lines::parse("69-75").unwrap().text(), "69-75");
        assert_eq!(Lines::parse_fragment("L69-L75").unwrap().fragment(), "L69-L75");
        assert_eq!(Lines::parse("69-75").unwrap().moved_to(70).text(), "70-76");
        for wrong in ["", "0", "9-8", "a", "1-2-3", "+1"] {
            assert_eq!(Lines::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_run_is_found_wherever_it_begins() {
        let lines = ["a", "b", "a", "b", "c"];
        assert_eq!(homes(&lines, &["a", "b"], |line, row| line == *row), [1, 3]);
        assert_eq!(homes(&lines, &["b", "c"], |line, row| line == *row), [4]);
        assert!(homes(&lines, &["c", "d"], |line, row| line == *row).is_empty());
    }
}
