//! The strip map: which thread uses each part of an object, and on which node the part is. A row that would show the same for all parts is in
//! words.

use super::Style;
use super::layout::{pad, width, wrap};
use super::paint::Paint;
use firsttouch_analysis::ObjectMap;

const SEVERAL: i64 = -1;
pub const UNKNOWN: i64 = -2;
/// Columns of the names of the rows.
const HEAD: usize = 7;

/// How many of the parts are known.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Most,
    Few,
}

/// What a row shows.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Nothing,
    /// The same for all parts of which anything is known, and whether these are most.
    Same(i64, Extent),
    Picture,
}

pub fn push_map(out: &mut Vec<String>, map: &ObjectMap, label_columns: usize, style: Style) {
    push_map_beside(out, map, &[], label_columns, style);
}

/// The map, with a row of the nodes that the parts should be on.
pub fn push_map_beside(out: &mut Vec<String>, map: &ObjectMap, wanted: &[i64], label_columns: usize, style: Style) {
    let cell = map.users.iter().chain(&map.homes).map(|piece| symbol(*piece).len()).max().unwrap_or(1) + 1;
    let room = style.width.saturating_sub(label_columns + HEAD);
    let pieces = map.users.len().max(map.homes.len());
    // Halving the number of pieces keeps them equal.
    let mut fold = 1;
    while pieces.div_ceil(fold) * cell > room && fold < pieces {
        fold *= 2;
    }
    let folded = |values: &[i64]| values.chunks(fold).map(merge).collect::<Vec<_>>();
    let (users, homes, wanted) = (folded(&map.users), folded(&map.homes), folded(wanted));
    let mut rows: Vec<(&str, &str, &[i64])> = vec![("thread ", "who uses each part", &users)];
    if row(&homes) != Row::Nothing {
        rows.push(("node   ", "where it is", &homes));
    }
    if row(&wanted) != Row::Nothing {
        rows.push(("wanted ", "where it should be", &wanted));
    }
    let words = match (row(&users), row(&homes)) {
        (Row::Nothing, Row::Nothing) => return,
        (Row::Picture, _) | (_, Row::Picture) => return push_rows(out, &rows, (cell, room), label_columns, style),
        (Row::Nothing, Row::Same(node, extent)) => on_node(node, extent),
        (Row::Same(thread, extent), Row::Nothing) => by_thread(thread, extent),
        (Row::Same(thread, uses), Row::Same(node, extent)) => format!("{}; {}", by_thread(thread, uses), on_node(node, extent)),
    };
    for (index, line) in wrap(&words, style.width.saturating_sub(label_columns)).into_iter().enumerate() {
        out.push(format!("{}{line}", label(index, label_columns, style)));
    }
}

fn row(pieces: &[i64]) -> Row {
    let mut known = pieces.iter().filter(|piece| **piece != UNKNOWN);
    match known.next() {
        None => Row::Nothing,
        Some(first) if known.all(|piece| piece == first) => {
            let seen = pieces.iter().filter(|piece| **piece != UNKNOWN).count();
            Row::Same(*first, if 2 * seen > pieces.len() { Extent::Most } else { Extent::Few })
        }
        Some(_) => Row::Picture,
    }
}

fn by_thread(thread: i64, extent: Extent) -> String {
    let who = if thread == SEVERAL { "several threads use".to_owned() } else { format!("thread {thread} uses") };
    format!("{who} {}", if extent == Extent::Most { "each part" } else { "the few parts whose use was seen" })
}

fn on_node(node: i64, extent: Extent) -> String {
    let place = if node == SEVERAL { "on several nodes".to_owned() } else { format!("on node {node}") };
    match extent {
        Extent::Most => format!("each part is {place}"),
        Extent::Few => format!("the few parts whose place was seen are {place}"),
    }
}

fn label(index: usize, columns: usize, style: Style) -> String {
    style.paint(Paint::Faint, &pad(if index == 0 { "   map" } else { "" }, columns))
}

/// Rows of symbols: name, meaning, pieces. A row of one symbol only is in words.
fn push_rows(out: &mut Vec<String>, rows: &[(&str, &str, &[i64])], (cell, room): (usize, usize), label_columns: usize, style: Style) {
    let widest = rows.iter().map(|(_, meaning, _)| width(meaning)).max().unwrap_or(0);
    for (index, (name, meaning, pieces)) in rows.iter().enumerate() {
        let several = pieces.iter().all(|piece| *piece == SEVERAL);
        let cells: String = match several {
            true => "several in each part".to_owned(),
            false => pieces.iter().map(|piece| pad(&symbol(*piece), cell)).collect(),
        };
        let mut line = format!("{}{name}{cells}", label(index, label_columns, style));
        // The longest meaning decides for all rows.
        if !several && width(&cells) + 3 + widest <= room {
            line = format!("{line}  {}", style.paint(Paint::Faint, meaning));
        }
        out.push(line.trim_end().to_owned());
    }
}

/// Several pieces as one: pieces of which nothing is known do not make it another thread's.
fn merge(part: &[i64]) -> i64 {
    let mut known = part.iter().filter(|piece| **piece != UNKNOWN);
    match known.next() {
        None => UNKNOWN,
        Some(first) if known.all(|piece| piece == first) => *first,
        Some(_) => SEVERAL,
    }
}

fn symbol(piece: i64) -> String {
    match piece {
        SEVERAL => "*".to_owned(),
        UNKNOWN => ".".to_owned(),
        number => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(users: &[i64], homes: &[i64]) -> Vec<String> {
        let mut out = Vec::new();
        let map = ObjectMap { users: users.to_vec(), homes: homes.to_vec() };
        push_map(&mut out, &map, 8, Style { width: 70, colour: false });
        out
    }

    /// Check that rows of one symbol are words, and that a picture is kept where parts differ.
    #[test]
    fn uniform_rows_are_words() {
        let (several, nothing) = (SEVERAL, UNKNOWN);
        assert_eq!(shown(&[several; 4], &[0; 4]), ["   map  several threads use each part; each part is on node 0"]);
        assert_eq!(
            shown(&[several, nothing, several], &[several; 3]),
            ["   map  several threads use each part; each part is on several nodes"]
        );
        assert_eq!(shown(&[several; 4], &[nothing; 4]), ["   map  several threads use each part"]);
        assert_eq!(shown(&[3; 4], &[1; 4]), ["   map  thread 3 uses each part; each part is on node 1"]);
        assert_eq!(shown(&[nothing; 4], &[nothing; 4]), [""; 0]);
        assert_eq!(shown(&[nothing; 4], &[1; 4]), ["   map  each part is on node 1"]);
        assert_eq!(
            shown(&[nothing, 1, nothing, nothing], &[nothing; 4]),
            ["   map  thread 1 uses the few parts whose use was seen"],
            "a stack of 8 MiB with 8 KiB of pages"
        );
        assert_eq!(
            shown(&[0, 1], &[0, 0]),
            ["   map  thread 0 1   who uses each part", "        node   0 0   where it is"],
            "who owns what is news, even if all of it is on one node"
        );
        assert_eq!([merge(&[1, nothing]), merge(&[nothing; 2]), merge(&[1, nothing, 2])], [1, nothing, several], "narrow terminals");
        assert_eq!(shown(&[several, several], &[0, 1]), ["   map  thread several in each part", "        node   0 1   where it is"]);
        assert_eq!(shown(&[0, 1], &[several; 2]), ["   map  thread 0 1   who uses each part", "        node   several in each part"]);
    }
}
