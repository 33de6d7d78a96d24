//! Draws charts side by side into one SVG. Colours are plain attributes, which every viewer shows; a style sheet turns
//! them where the page is dark.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub struct Panel<'a> {
    pub above: String,
    pub below: String,
    pub chart: Chart<'a>,
}

pub enum Chart<'a> {
    /// Series over powers of two, both axes logarithmic.
    Lines { x: Axis<'a>, at: Vec<f64>, y: &'a str, series: Vec<(&'a str, Vec<f64>)> },
    /// Points, measured and predicted, about the line where both are equal; both axes logarithmic.
    Predictions { unit: &'a str, groups: Vec<(&'a str, Vec<(f64, f64)>)> },
    /// For each label a column of 100 %, which the parts share.
    Shares { labels: Vec<&'a str>, parts: Vec<(&'a str, Vec<f64>)> },
    /// A bar for each label.
    Bars { bars: Vec<(String, f64)>, unit: &'a str },
}

/// What a logarithmic axis counts, and how its numbers are written.
pub struct Axis<'a> {
    pub name: &'a str,
    pub powers: bool,
}

/// A colour on a light page, and on a dark one.
type Tone = (&'static str, &'static str);

const PAPER: Tone = ("#FFFFFF", "#16191D");
const INK: Tone = ("#24292F", "#DDE2E8");
const RULE: Tone = ("#D8DEE4", "#3A4149");
/// After Okabe and Ito, whose colours stay apart for every kind of colour vision.
const TONES: [Tone; 5] = [
    ("#0063A3", "#56B4E9"),
    ("#C25400", "#F0904A"),
    ("#007A5A", "#2FC79A"),
    ("#A8447F", "#E08FBF"),
    ("#7A6A00", "#E3D04A"),
];

const PANEL: (u32, u32) = (430, 340);
const TITLE: u32 = 36;

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The whole picture, as the text of its file.
pub fn figure(title: &str, panels: Vec<Panel>) -> Result<String, String> {
    let mut svg = String::new();
    let size = (PANEL.0 * panels.len() as u32, TITLE + PANEL.1);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    draw(&area, title, &panels).map_err(|error| error.to_string())?;
    drop(area);
    let spoken = format!("role=\"img\" aria-label=\"{title}\" xmlns=");
    let svg = svg.replacen("xmlns=", &spoken, 1);
    let (head, body) = svg.split_once(">\n").ok_or("plotters began its SVG in an unknown way")?;
    Ok(format!("{head}>\n{}{body}", style()))
}

/// Turns each colour that a dark page turns.
fn style() -> String {
    let turned = [PAPER, INK, RULE].into_iter().chain(TONES).map(|(light, dark)| {
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}\n")
    });
    let turned: String = turned.collect();
    format!("<style>@media (prefers-color-scheme: dark) {{\n{turned}}}</style>\n")
}

fn draw(area: &Area, title: &str, panels: &[Panel]) -> Drawn {
    area.fill(&colour(PAPER))?;
    let centred = |size| text(size).pos(Pos::new(HPos::Center, VPos::Center));
    let (width, _) = area.dim_in_pixel();
    area.draw_text(title, &centred(17), (width as i32 / 2, 20))?;
    let (_, below) = area.split_vertically(TITLE);
    let caption = centred(13);
    for (panel, area) in panels.iter().zip(below.split_evenly((1, panels.len()))) {
        let (width, height) = area.dim_in_pixel();
        area.draw_text(&panel.above, &caption, (width as i32 / 2, 8))?;
        area.draw_text(&panel.below, &caption, (width as i32 / 2, height as i32 - 10))?;
        let inner = area.margin(18, 22, 8, 28);
        match &panel.chart {
            Chart::Lines { x, at, y, series } => lines(&inner, x, at, y, series)?,
            Chart::Predictions { unit, groups } => predictions(&inner, unit, groups)?,
            Chart::Shares { labels, parts } => shares(&inner, labels, parts)?,
            Chart::Bars { bars, unit } => horizontal(&inner, bars, unit)?,
        }
    }
    area.present()?;
    Ok(())
}

fn lines(area: &Area, x: &Axis, at: &[f64], y: &str, series: &[(&str, Vec<f64>)]) -> Drawn {
    let (least, most) = decades(series.iter().flat_map(|(_, values)| values.iter().copied()));
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(40)
        .y_label_area_size(66)
        // A decade more is room for the legend.
        .build_cartesian_2d(
            (at[0]..at[at.len() - 1]).log_scale().base(2.0),
            (least..most * 10.0).log_scale(),
        )?;
    axes(chart.configure_mesh().disable_x_mesh(), x.name, y)
        .x_labels(at.len())
        .x_label_formatter(&|number| {
            if x.powers { format!("2^{}", number.log2().round()) } else { number.to_string() }
        })
        .y_label_formatter(&|y| y.to_string())
        .draw()?;
    for ((name, values), tone) in series.iter().zip(TONES) {
        let points = at.iter().copied().zip(values.iter().copied());
        let stroke = colour(tone).stroke_width(2);
        let sample = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], stroke);
        chart.draw_series(LineSeries::new(points.clone(), stroke))?.label(*name).legend(sample);
        chart.draw_series(points.map(|point| Circle::new(point, 2, colour(tone).filled())))?;
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).label_font(text(12)).draw()?;
    Ok(())
}

fn predictions(area: &Area, unit: &str, groups: &[(&str, Vec<(f64, f64)>)]) -> Drawn {
    let values = groups.iter().flat_map(|(_, points)| points.iter().flat_map(|&(x, y)| [x, y]));
    let (least, most) = decades(values);
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(40)
        .y_label_area_size(66)
        .build_cartesian_2d((least..most).log_scale(), (least..most).log_scale())?;
    let (x, y) = (format!("measured, {unit}"), format!("predicted, {unit}"));
    axes(&mut chart.configure_mesh(), &x, &y)
        .x_label_formatter(&|x| x.to_string())
        .y_label_formatter(&|y| y.to_string())
        .draw()?;
    for (factor, width) in [(0.5, 1), (1.0, 2), (2.0, 1)] {
        let from = least.max(least / factor);
        let to = most.min(most / factor);
        let line = [(from, from * factor), (to, to * factor)];
        chart.draw_series(LineSeries::new(line, colour(INK).stroke_width(width)))?;
    }
    for ((name, points), tone) in groups.iter().zip(TONES) {
        let dots = points.iter().map(|&point| Circle::new(point, 3, colour(tone).filled()));
        let sample = move |(x, y)| Circle::new((x + 9, y), 3, colour(tone).filled());
        chart.draw_series(dots)?.label(*name).legend(sample);
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).label_font(text(12)).draw()?;
    Ok(())
}

/// Whole powers of ten, from below the least value to above the greatest.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let least = values.clone().fold(f64::MAX, f64::min);
    let most = values.fold(least, f64::max);
    (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()))
}

/// What the axes of all charts share.
fn axes<'m, 'a, 'b, X, Y, B>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
    x: &str,
    y: &str,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    B: DrawingBackend,
{
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(colour(RULE))
        .axis_style(colour(INK))
        .label_style(text(12))
        .axis_desc_style(text(13))
        .x_desc(x)
        .y_desc(y)
}

fn shares(area: &Area, labels: &[&str], parts: &[(&str, Vec<f64>)]) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(-0.5..labels.len() as f64 - 0.5, 0.0..125.0)?;
    axes(chart.configure_mesh().disable_x_mesh(), "n, elements", "share of all phases")
        .x_labels(labels.len())
        .x_label_formatter(&|at| labels.get(at.round() as usize).unwrap_or(&"").to_string())
        .y_labels(6)
        .y_label_formatter(&|&share| {
            if share > 100.0 { String::new() } else { format!("{share:.0} %") }
        })
        .draw()?;
    let mut below = vec![0.0; labels.len()];
    for (place, ((name, values), tone)) in parts.iter().zip(TONES).enumerate() {
        let mut columns = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let whole: f64 = parts.iter().map(|(_, values)| values[at]).sum();
            let above = below[at] + value / whole * 100.0;
            let (left, right) = (at as f64 - 0.36, at as f64 + 0.36);
            let corners = [(left, below[at]), (right, above)];
            columns.push(Rectangle::new(corners, colour(tone).filled()));
            below[at] = above;
        }
        chart.draw_series(columns)?;
        // A legend in one row, over the columns.
        let (x, y) = (72 + 68 * place as i32, 14);
        area.draw(&Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour(tone).filled()))?;
        area.draw_text(name, &beside(12), (x + 14, y))?;
    }
    Ok(())
}

fn horizontal(area: &Area, bars: &[(String, f64)], unit: &str) -> Drawn {
    let most = bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
    let longest = bars.iter().map(|bar| bar.0.chars().count() as u32).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(38)
        .y_label_area_size(7 * longest + 14)
        .build_cartesian_2d(0.0..most * 1.2, -0.5..bars.len() as f64 - 0.5)?;
    axes(chart.configure_mesh().disable_y_mesh(), unit, "")
        .x_labels(6)
        .x_label_formatter(&|x| x.to_string())
        .y_labels(bars.len())
        .y_label_formatter(&|at| {
            let from_above = bars.len() as f64 - 1.0 - at.round();
            bars.get(from_above as usize).map_or(String::new(), |bar| bar.0.clone())
        })
        .draw()?;
    let place = |at: usize| (bars.len() - 1 - at) as f64;
    chart.draw_series(bars.iter().enumerate().map(|(at, bar)| {
        let corners = [(0.0, place(at) - 0.32), (bar.1, place(at) + 0.32)];
        Rectangle::new(corners, colour(TONES[0]).filled())
    }))?;
    chart.draw_series(bars.iter().enumerate().map(|(at, bar)| {
        let said = if bar.1 < 100.0 { format!("{:.1}", bar.1) } else { format!("{:.0}", bar.1) };
        EmptyElement::at((bar.1, place(at))) + Text::new(said, (4, 0), beside(12))
    }))?;
    Ok(())
}

fn colour(tone: Tone) -> RGBColor {
    let part = |at| u8::from_str_radix(&tone.0[at..at + 2], 16).unwrap_or_default();
    RGBColor(part(1), part(3), part(5))
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour(INK))
}

/// Text that begins at its point.
fn beside(size: u32) -> TextStyle<'static> {
    text(size).pos(Pos::new(HPos::Left, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(chart: Chart) -> String {
        figure(
            "A title",
            vec![Panel { above: "a card".into(), below: "runs/a.txt:1".into(), chart }],
        )
        .unwrap()
    }

    #[test]
    fn a_figure_says_what_it_shows_and_turns_its_colours() {
        let series = vec![("first", vec![1.0, 20.0]), ("second", vec![3.0, 4.0])];
        let svg = one(Chart::Lines {
            x: Axis { name: "n, elements", powers: true },
            at: vec![2.0, 4.0],
            y: "µs",
            series,
        });
        for text in ["A title", "a card", "runs/a.txt:1", "n, elements", "µs", "first", "2^1"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(svg.contains("prefers-color-scheme: dark"));
        // Every colour in use is one that a dark page turns.
        for (at, _) in svg.match_indices("=\"#") {
            let used = &svg[at + 2..at + 9];
            assert!(style().contains(used), "{used} stays as it is on a dark page");
        }
    }

    #[test]
    fn each_kind_of_chart_draws_what_it_is_given() {
        let marks = |svg: &str, mark: &str| svg.matches(mark).count();
        let shares = one(Chart::Shares {
            labels: vec!["2^1", "2^2"],
            parts: vec![("up", vec![1.0, 2.0]), ("down", vec![3.0, 2.0])],
        });
        // The paper, two columns of two parts, and a sample of each part.
        assert_eq!(marks(&shares, "<rect"), 1 + 4 + 2);
        let bars = one(Chart::Bars {
            bars: vec![("copy".into(), 123.0), ("sum".into(), 4.56)],
            unit: "GB/s",
        });
        assert_eq!(marks(&bars, "<rect"), 1 + 2);
        assert!(bars.contains("123") && bars.contains("4.6"));
        let groups = vec![("CPU", vec![(10.0, 12.0), (100.0, 90.0)])];
        let points = one(Chart::Predictions { unit: "µs", groups });
        // Two points and the legend's.
        assert_eq!(marks(&points, "<circle"), 3);
    }
}
