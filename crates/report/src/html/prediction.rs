//! What each placement of the memory would cost, with intervals.

use super::Page;
use super::markup::{Document, Figure, Markup, across};
use crate::predict::PredictJson;

/// Draws the comparison of placements.
pub fn draw(html: &mut Markup, page: &Page<'_>) {
    let Some(forecast) = page.forecast else {
        return;
    };
    let json = PredictJson::new(page.analysis, forecast);
    let most = json.placements.iter().map(|one| one.interval[1].max(one.slowdown)).fold(1.0, f64::max);
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Placements compared")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "placements")], |html| {
            html.element("caption", &[], &format!("Predicted time on {}, over that of the best placement", json.machine.title));
            html.within("tr", &[], |html| {
                for (name, class) in [("placement", ""), ("time", "n"), ("95 % interval", ""), ("", "wide"), ("remote", "n")] {
                    html.element("th", &[("scope", "col"), ("class", class)], name);
                }
            });
            for (index, one) in json.placements.iter().enumerate() {
                let at = |key: &str| format!("/placements/{index}/{key}");
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], one.title());
                    html.within("td", &[("class", "n")], |html| {
                        html.figure(Document::Predict, &at("slowdown"), Figure::Times(one.slowdown))
                    });
                    html.within("td", &[], |html| html.figure(Document::Predict, &at("interval"), Figure::TimesInterval(one.interval)));
                    html.within("td", &[("class", "wide")], |html| whisker(html, one.slowdown, one.interval, most));
                    let remote = Figure::Percent(one.remote_fraction);
                    html.within("td", &[("class", "n")], |html| html.figure(Document::Predict, &at("remote_fraction"), remote));
                });
            }
        });
    });
    if let Some(open) = json.not_judged {
        html.within("p", &[("class", "open-note")], |html| {
            html.element("b", &[], "NOT JUDGED: ");
            html.text(open);
            html.text(".");
        });
    }
    html.within("details", &[], |html| {
        html.element("summary", &[], "What the prediction assumes");
        html.within("ul", &[], |html| json.assumptions.iter().for_each(|assumption| html.element("li", &[], assumption)));
    });
}

/// A bar up to the time, and a line over its interval.
fn whisker(html: &mut Markup, time: f64, [low, high]: [f64; 2], most: f64) {
    html.within(
        "svg",
        &[("class", "whisker"), ("width", "100%"), ("height", "16"), ("aria-hidden", "true"), ("focusable", "false")],
        |html| {
            let class = if time <= 1.0 + 1e-9 { "best" } else { "slower" };
            html.empty("rect", &[("class", class), ("y", "3"), ("width", &across(time / most)), ("height", "10")]);
            let (x1, x2) = (across(low.max(0.0) / most), across(high / most));
            html.empty("line", &[("class", "range"), ("x1", &x1), ("x2", &x2), ("y1", "8"), ("y2", "8")]);
        },
    );
}
