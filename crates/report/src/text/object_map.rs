//! The strip map: which thread uses each part of an object, and on which node the part is.

use super::Style;
use super::layout::{pad, width};
use super::paint::Paint;
use firsttouch_analysis::ObjectMap;

const SEVERAL: i64 = -1;
const UNKNOWN: i64 = -2;

pub fn push_map(out: &mut Vec<String>, map: &ObjectMap, label_columns: usize, style: Style) {
    let known = |pieces: &[i64]| pieces.iter().any(|piece| *piece != UNKNOWN);
    if !known(&map.users) && !known(&map.homes) {
        return;
    }
    let lines = [("thread ", &map.users, "who uses each part"), ("node   ", &map.homes, "where it is")];
    let cell = lines.iter().flat_map(|line| line.1).map(|piece| symbol(*piece).len()).max().unwrap_or(1) + 1;
    let head = width(lines[0].0);
    let room = style.width.saturating_sub(label_columns + head);
    let pieces = map.users.len().max(map.homes.len());
    // Halving the number of pieces keeps them equal.
    let mut fold = 1;
    while pieces.div_ceil(fold) * cell > room && fold < pieces {
        fold *= 2;
    }
    let legend = pieces.div_ceil(fold) * cell + 3 + width(lines[0].2) <= room;
    for (index, (name, values, meaning)) in lines.into_iter().enumerate() {
        let label = if index == 0 { "   map" } else { "" };
        let cells: String = values.chunks(fold).map(|part| pad(&symbol(merge(part)), cell)).collect();
        let mut line = format!("{}{name}{cells}", style.paint(Paint::Faint, &pad(label, label_columns)));
        if legend {
            line = format!("{line}  {}", style.paint(Paint::Faint, meaning));
        }
        out.push(line.trim_end().to_owned());
    }
}

fn merge(part: &[i64]) -> i64 {
    match part {
        [first, rest @ ..] if rest.iter().all(|piece| piece == first) => *first,
        _ => SEVERAL,
    }
}

fn symbol(piece: i64) -> String {
    match piece {
        SEVERAL => "*".to_owned(),
        UNKNOWN => ".".to_owned(),
        number => number.to_string(),
    }
}
