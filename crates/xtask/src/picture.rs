//! `cargo xtask picture RESULT.json PICTURE.svg`: the picture in README, from what `albireo bench ch --format json` printed.
//!
//! Responsible for: two charts, transactions per second of every turn alone and beside queries, and the median time of
//! every query meanwhile. Not responsible for: any figure; all come from the file.

use std::fs;
use std::path::Path;

use plotters::prelude::*;
use serde_json::Value;

const SIZE: (u32, u32) = (960, 360);
const ALONE: RGBColor = RGBColor(43, 108, 176);
const MIXED: RGBColor = RGBColor(214, 138, 16);
const QUERY: RGBColor = RGBColor(90, 90, 110);

/// What is drawn.
#[derive(Debug, PartialEq)]
struct Figures {
    title: String,
    /// Transactions per second of each turn alone, and beside queries.
    alone: Vec<f64>,
    mixed: Vec<f64>,
    /// The queries with their median times in milliseconds.
    queries: Vec<(String, f64)>,
}

/// Draws `picture` from the result in `json`.
///
/// # Errors
/// The file is not a result of `bench ch` with both phases, or the picture cannot be written.
pub fn run(json: &str, picture: &str) -> Result<(), String> {
    let text = fs::read_to_string(json).map_err(|error| format!("{json}: {error}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{json}: {error}"))?;
    let figures = figures(&value).ok_or_else(|| format!("{json}: not a result of `albireo bench ch`"))?;
    let svg = draw(&figures).map_err(|error| format!("{picture}: {error}"))?;
    fs::write(Path::new(picture), svg).map_err(|error| format!("{picture}: {error}"))
}

fn figures(result: &Value) -> Option<Figures> {
    let turns = |phase: &str| -> Option<Vec<f64>> {
        let turns: Vec<f64> = result[phase]["turns"].as_array()?.iter().filter_map(Value::as_f64).collect();
        (!turns.is_empty()).then_some(turns)
    };
    let queries = result["queries"].as_array()?.iter();
    let queries = queries.filter_map(|query| {
        let name = query["name"].as_str()?.trim_start_matches('Q').to_owned();
        Some((name, query["median_ms"].as_f64()?))
    });
    let warehouses = result["warehouses"].as_i64()?;
    let partitions = result["partitions"].as_i64()?;
    Some(Figures {
        title: format!(
            "TPC-C, {warehouses} warehouses, {partitions} partition thread{}",
            if partitions == 1 { "" } else { "s" }
        ),
        alone: turns("oltp_alone")?,
        mixed: turns("oltp_mixed")?,
        queries: queries.collect(),
    })
}

fn draw(figures: &Figures) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(400);
        draw_turns(&left, figures)?;
        draw_queries(&right, figures)?;
        area.present()?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_turns(area: &Area<'_>, figures: &Figures) -> Result<(), Box<dyn std::error::Error>> {
    let turns = figures.alone.len().max(figures.mixed.len());
    let top = figures.alone.iter().chain(&figures.mixed).copied().fold(0.0, f64::max) * 1.25;
    let mut chart = ChartBuilder::on(area)
        .caption(&figures.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..turns as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .x_desc("turns, one after the other")
        .y_desc("transactions per second")
        .y_label_formatter(&|rate| format!("{:.0} k", rate / 1_000.0))
        .draw()?;
    for (rates, start, color, label) in
        [(&figures.alone, 0.1, ALONE, "alone"), (&figures.mixed, 0.5, MIXED, "beside analytical queries")]
    {
        let bars = rates.iter().enumerate().map(|(turn, rate)| {
            let x = turn as f64 + start;
            Rectangle::new([(x, 0.0), (x + 0.38, *rate)], color.filled())
        });
        chart
            .draw_series(bars)?
            .label(label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], color.filled()));
    }
    let legend = SeriesLabelPosition::UpperLeft;
    chart.configure_series_labels().position(legend).background_style(WHITE.mix(0.9)).draw()?;
    Ok(())
}

fn draw_queries(area: &Area<'_>, figures: &Figures) -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<&str> = figures.queries.iter().map(|(name, _)| name.as_str()).collect();
    let top = figures.queries.iter().map(|(_, ms)| *ms).fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption("CH-benCHmark queries at the same time, each on a fresh snapshot", ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(54)
        .build_cartesian_2d((0..names.len().saturating_sub(1)).into_segmented(), 0.0..top)?;
    let name = |segment: &SegmentValue<usize>| match segment {
        SegmentValue::CenterOf(index) => names.get(*index).copied().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(names.len())
        .x_label_formatter(&name)
        .x_desc("query")
        .y_desc("median time, ms")
        .draw()?;
    chart.draw_series(figures.queries.iter().enumerate().map(|(index, (_, ms))| {
        let corners = [(SegmentValue::Exact(index), 0.0), (SegmentValue::Exact(index + 1), *ms)];
        let mut bar = Rectangle::new(corners, QUERY.filled());
        bar.set_margin(0, 0, 3, 3);
        bar
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_shows_every_turn_and_every_query_that_ran() {
        let text = r#"{"warehouses": 5, "partitions": 1, "oltp_alone": {"turns": [200000.0, 210000.0]},
            "oltp_mixed": {"turns": [190000.0, 195000.0]},
            "queries": [{"name": "Q1", "median_ms": 3.5}, {"name": "top10", "median_ms": null},
                        {"name": "Q6", "median_ms": 1.25}]}"#;
        let figures = figures(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(figures.queries, [("1".to_owned(), 3.5), ("6".to_owned(), 1.25)]);
        let svg = draw(&figures).unwrap();
        // Four bars, two in the legend, two for queries, one background.
        assert!(svg.matches("<rect").count() >= 9 && svg.contains("beside analytical queries"), "{svg}");
    }

    #[test]
    fn result_without_queries_is_refused() {
        let text = r#"{"warehouses": 5, "partitions": 1, "oltp_alone": {"turns": [1.0]}, "oltp_mixed": null, "queries": []}"#;
        assert_eq!(figures(&serde_json::from_str(text).unwrap()), None);
    }
}
