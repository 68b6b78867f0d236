//! Objects as areas: by their bytes, or by their remote accesses. Squarified (Bruls, Huizing and van Wijk 2000): areas stay close to squares.

use super::markup::{Markup, across};
use super::remote_of;
use crate::text::words::{percent, thousands};
use firsttouch_analysis::ObjectView;
use firsttouch_model::format_bytes;

/// Areas that are drawn.
const MOST: usize = 120;
/// Smaller areas have no name in them: parts of the picture's width and height.
const LEAST_NAMED: (f64, f64) = (0.06, 0.16);
/// The picture's shape, as its width over its height on a usual screen.
const SHAPE: f64 = 4.0;

/// A part of the unit square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Draws the objects by some weight, those with the largest.
pub fn draw(html: &mut Markup, objects: &[ObjectView], weight: impl Fn(&ObjectView) -> f64, (id, title): (&str, &str)) {
    let mut order: Vec<((usize, &ObjectView), f64)> =
        objects.iter().enumerate().map(|(index, object)| ((index, object), weight(object))).collect();
    order.retain(|(_, weight)| *weight > 0.0 && weight.is_finite());
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words =
        if order.len() > MOST { format!("{title}, the {MOST} largest of {}", thousands(order.len() as u64)) } else { title.to_owned() };
    order.truncate(MOST);
    let weights: Vec<f64> = order.iter().map(|(_, weight)| *weight).collect();
    let label = format!("{id}-t");
    html.within("figure", &[], |html| {
        html.element("figcaption", &[], &words);
        html.within(
            "svg",
            &[("class", "treemap"), ("id", id), ("width", "100%"), ("height", "220"), ("role", "img"), ("aria-labelledby", &label)],
            |html| {
                html.element("title", &[("id", &label)], &words);
                for (((index, object), _), area) in order.iter().zip(squarified(&weights)) {
                    let (x, y, width, height) = (across(area.x), across(area.y), across(area.width), across(area.height));
                    let number = index.to_string();
                    let attributes = [("data-object", number.as_str()), ("x", &x), ("y", &y), ("width", &width), ("height", &height)];
                    html.within("svg", &attributes, |html| {
                        html.empty("rect", &[("class", "box"), ("width", "100%"), ("height", "100%")]);
                        area_of(html, object, area.width >= LEAST_NAMED.0 && area.height >= LEAST_NAMED.1);
                    });
                }
            },
        );
    });
}

fn area_of(html: &mut Markup, object: &ObjectView, has_room: bool) {
    if let Some(remote) = remote_of(object).filter(|remote| *remote > 0.005) {
        let opacity = format!("{:.2}", 0.1 + 0.6 * remote);
        html.empty("rect", &[("class", "heat"), ("width", "100%"), ("height", "100%"), ("fill-opacity", &opacity)]);
    }
    let remote = remote_of(object).map_or_else(String::new, |remote| format!(", {} remote", percent(remote)));
    let size = format!("{}{remote}", format_bytes(object.total_bytes));
    if has_room {
        html.element("text", &[("class", "name"), ("x", "6"), ("y", "16")], &object.name);
        html.element("text", &[("x", "6"), ("y", "31")], &size);
    }
    html.element("title", &[], &format!("{}: {size}", object.name));
}

/// Areas of the unit square in proportion to weights, which descend.
#[must_use]
pub fn squarified(weights: &[f64]) -> Vec<Area> {
    let total: f64 = weights.iter().sum();
    let mut left = Area { x: 0.0, y: 0.0, width: SHAPE, height: 1.0 };
    let mut areas = Vec::with_capacity(weights.len());
    let mut rest: Vec<f64> = weights.iter().map(|weight| weight / total * SHAPE).collect();
    while !rest.is_empty() {
        let short = left.width.min(left.height).max(f64::MIN_POSITIVE);
        let worst = |count: usize| {
            let sum: f64 = rest[..count].iter().sum();
            let side = sum / short;
            rest[..count].iter().map(|area| (side * side / area).max(area / (side * side))).fold(0.0, f64::max)
        };
        let mut count = 1;
        while count < rest.len() && worst(count + 1) <= worst(count) {
            count += 1;
        }
        left = lay(&mut areas, &rest[..count], left);
        rest.drain(..count);
    }
    areas.into_iter().map(|area| Area { x: area.x / SHAPE, width: area.width / SHAPE, ..area }).collect()
}

/// Lays some areas along the shorter side, and returns what is left.
fn lay(areas: &mut Vec<Area>, row: &[f64], left: Area) -> Area {
    let sum: f64 = row.iter().sum();
    let Area { mut x, mut y, width, height } = left;
    if width >= height {
        let side = sum / height.max(f64::MIN_POSITIVE);
        for area in row {
            let tall = area / side.max(f64::MIN_POSITIVE);
            areas.push(Area { x, y, width: side, height: tall });
            y += tall;
        }
        return Area { x: x + side, y: left.y, width: (width - side).max(0.0), height };
    }
    let side = sum / width.max(f64::MIN_POSITIVE);
    for area in row {
        let wide = area / side.max(f64::MIN_POSITIVE);
        areas.push(Area { x, y, width: wide, height: side });
        x += wide;
    }
    Area { x: left.x, y: y + side, width, height: (height - side).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that areas are in proportion, fill the square and stay within it.
    #[test]
    fn areas_are_in_proportion() {
        for weights in [&[1.0][..], &[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], &[1e9, 1.0, 1.0], &[5.0; 40]] {
            let areas = squarified(weights);
            let total: f64 = weights.iter().sum();
            for (area, weight) in areas.iter().zip(weights) {
                assert!((area.width * area.height - weight / total).abs() < 1e-9, "{weights:?}: {area:?}");
                assert!(area.x >= -1e-9 && area.y >= -1e-9 && area.x + area.width <= 1.0 + 1e-6 && area.y + area.height <= 1.0 + 1e-6);
            }
        }
        assert!(squarified(&[]).is_empty());
    }
}
