//! A job of several ranks: a table of the ranks, and the objects that they have in common.

use super::Style;
use super::layout::{clean, cut, pad, width, wrap};
use super::words::{capital, count, interval, percent, thousands};
use firsttouch_analysis::job::{ObjectAcrossRanks, OverRanks, RankView};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_model::rows::{Id, MOST_COMMANDS};
use firsttouch_model::topology::format_list;
use firsttouch_model::{format_bytes, signal_words};
use std::collections::BTreeMap;

/// Ranks in the table; of more, those that differ most.
const MOST_RANKS: usize = 16;
/// Objects in the table of objects.
const MOST_OBJECTS: usize = 6;
/// A rank is on one node if it makes this part of its accesses from there, or to there.
const ON_ONE: f64 = 0.95;
/// Smaller parts of a rank on a node are not named.
const LEAST_PART: f64 = 0.01;
/// Columns of a name.
const MOST_NAME: usize = 28;
/// Columns of a host's name.
const MOST_HOST: usize = 16;

/// `4 ranks on 2 hosts`; `None` if there are no ranks.
pub fn heading(analysis: &Analysis) -> Option<String> {
    let ranks = analysis.ranks.len();
    if ranks == 0 {
        return None;
    }
    let is_job = analysis.ranks.iter().any(|rank| rank.rank.is_some());
    let parts = if is_job { count(ranks, "rank") } else { format!("{} merged", count(ranks, "profile")) };
    let missing = analysis.missing_ranks.len();
    let of = if missing > 0 { format!(" of {}", thousands((ranks + missing) as u64)) } else { String::new() };
    let hosts = if analysis.hosts.len() > 1 { format!(" on {}", count(analysis.hosts.len(), "host")) } else { String::new() };
    Some(format!("{parts}{of}{hosts}"))
}

/// The table of ranks, what is missing of the job, and the objects over ranks.
pub fn push(out: &mut Vec<String>, analysis: &Analysis, style: Style) {
    if analysis.ranks.is_empty() {
        return;
    }
    let (shown, rest) = shown(analysis);
    let mut rows = vec![header(analysis)];
    rows.extend(shown.iter().map(|rank| row(analysis, rank)));
    push_table(out, &rows, style);
    if let Some(words) = others(&rest) {
        out.extend(wrap(&words, style.width));
    }
    for words in [programs(analysis), missing(analysis), died(analysis)].into_iter().flatten() {
        out.extend(wrap(&words, style.width));
    }
    out.push(String::new());
    let objects = objects(analysis);
    if objects.len() > 1 {
        push_table(out, &objects, style);
        let left = in_use(analysis).len().saturating_sub(MOST_OBJECTS);
        if left > 0 {
            out.push(format!("and {}", count(left, "more object")));
        }
        out.push(String::new());
    }
}

/// Objects, those together that are one over the ranks; each set is where its first one was.
pub fn alike<'a>(analysis: &Analysis, objects: &[&'a ObjectView]) -> Vec<Vec<&'a ObjectView>> {
    let set_of: BTreeMap<Id, usize> =
        analysis.across_ranks.iter().enumerate().flat_map(|(set, over)| over.objects.iter().map(move |id| (*id, set))).collect();
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    let mut sets: Vec<Vec<&ObjectView>> = Vec::new();
    for object in objects {
        let at = set_of.get(&object.id).map_or(sets.len(), |set| *place.entry(*set).or_insert(sets.len()));
        match sets.get_mut(at) {
            Some(set) => set.push(object),
            None => sets.push(vec![object]),
        }
    }
    sets
}

/// `0-3 (of 4 ranks); the lines, the map and the threads (0-1) are those of rank 0`; `None` if the profile has no ranks.
pub fn of_finding(analysis: &Analysis, finding: &Finding) -> Option<String> {
    if analysis.ranks.is_empty() || finding.ranks.is_empty() {
        return None;
    }
    let all = analysis.ranks.len() + analysis.missing_ranks.len();
    let ranks = format!("{} (of {})", format_list(&finding.ranks), count(all, "rank"));
    let object = finding.object.and_then(|id: Id| analysis.objects.iter().find(|object| object.id == id));
    let shown = object.filter(|object| object.shared_by.is_none()).and_then(|object| analysis.rank_of(object.process));
    let number = |rank: &RankView| rank.rank.filter(|_| finding.ranks.len() > 1 || rank.first_thread > 0);
    Some(match shown.and_then(|rank| Some((number(rank)?, threads(rank)))) {
        Some((number, threads)) => format!("{ranks}; the lines, the map and the threads ({threads}) are those of rank {number}"),
        None => ranks,
    })
}

fn name(rank: &RankView) -> String {
    rank.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string())
}

fn threads(rank: &RankView) -> String {
    match rank.threads {
        0 => "-".to_owned(),
        1 => rank.first_thread.to_string(),
        many => format!("{}-{}", rank.first_thread, rank.first_thread + many - 1),
    }
}

fn header(analysis: &Analysis) -> Vec<String> {
    let host = if analysis.hosts.len() > 1 { Some("host") } else { None };
    let columns = ["rank"].into_iter().chain(host).chain(["threads", "run on", "memory on", "remote", "accesses", "findings", "end"]);
    columns.map(str::to_owned).collect()
}

fn row(analysis: &Analysis, rank: &RankView) -> Vec<String> {
    let remote = rank.remote_fraction.zip(rank.remote_interval);
    let host = || cut(&clean(analysis.hosts.get(rank.host).map_or("-", |host| host.name.as_str())), MOST_HOST);
    let mut row = vec![name(rank)];
    if analysis.hosts.len() > 1 {
        row.push(host());
    }
    row.extend([
        threads(rank),
        nodes(analysis, rank, &rank.thread_nodes),
        nodes(analysis, rank, &rank.memory_nodes),
        remote.map_or_else(|| "not known".to_owned(), |(value, range)| format!("{} {}", percent(value), interval(range))),
        rank.access_share.map_or_else(|| "-".to_owned(), percent),
        if rank.findings.is_empty() { "-".to_owned() } else { rank.findings.len().to_string() },
        end(rank),
    ]);
    row
}

/// `0`, or `0 52 %, 1 48 %`: the nodes of a rank, on its host.
fn nodes(analysis: &Analysis, rank: &RankView, shares: &[f64]) -> String {
    let first = analysis.hosts.get(rank.host).map_or(0, |host| host.first_node as usize);
    let own = |node: usize| node.saturating_sub(first);
    let mut parts: Vec<(usize, f64)> = shares.iter().copied().enumerate().filter(|(_, share)| *share >= LEAST_PART).collect();
    if let Some((node, _)) = parts.iter().find(|(_, share)| *share >= ON_ONE) {
        return own(*node).to_string();
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let more = if parts.len() > 2 { " ..." } else { "" };
    let named: Vec<String> = parts.iter().take(2).map(|(node, share)| format!("{} {}", own(*node), percent(*share))).collect();
    if named.is_empty() { "-".to_owned() } else { format!("{}{more}", named.join(", ")) }
}

fn end(rank: &RankView) -> String {
    match (rank.signal, rank.exit_code) {
        _ if rank.unfinished => "recorder died".to_owned(),
        _ if rank.abort_status.is_some() => "MPI_Abort".to_owned(),
        (Some(signal), _) => signal_words(signal),
        (None, Some(0)) => String::new(),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => String::new(),
    }
}

/// The ranks in the table, in order, and the others.
fn shown(analysis: &Analysis) -> (Vec<&RankView>, Vec<&RankView>) {
    let remote = |rank: &RankView| rank.remote_fraction.unwrap_or(0.0);
    let matters = |rank: &RankView| (!end(rank).is_empty(), !rank.findings.is_empty(), remote(rank));
    let mut order: Vec<usize> = (0..analysis.ranks.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (matters(&analysis.ranks[*a]), matters(&analysis.ranks[*b]));
        (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2))
    });
    let mut first: Vec<usize> = order.iter().copied().take(MOST_RANKS).collect();
    first.sort_unstable();
    let rest = order.iter().skip(MOST_RANKS).map(|index| &analysis.ranks[*index]).collect();
    (first.iter().map(|index| &analysis.ranks[*index]).collect(), rest)
}

/// `and 48 more ranks with 0 to 3.1 % remote`
fn others(rest: &[&RankView]) -> Option<String> {
    let remote: Vec<f64> = rest.iter().filter_map(|rank| rank.remote_fraction).collect();
    let (low, high) = (remote.iter().copied().fold(f64::INFINITY, f64::min), remote.iter().copied().fold(0.0, f64::max));
    let figures = if remote.is_empty() { String::new() } else { format!(", with {} to {} remote", percent(low), percent(high)) };
    (!rest.is_empty()).then(|| format!("and {}{figures}", count(rest.len(), "more rank")))
}

/// The commands of the ranks of a job, each with its ranks, in their order. Of other merged profiles, each with no ranks.
pub fn commands(analysis: &Analysis) -> Vec<(&[String], Vec<u32>)> {
    let mut all: Vec<(&[String], Vec<u32>)> = Vec::new();
    for rank in analysis.ranks.iter().filter(|rank| !rank.command.is_empty()) {
        match all.iter_mut().find(|(command, _)| *command == rank.command) {
            Some((_, ranks)) => ranks.extend(rank.rank),
            None => all.push((&rank.command, rank.rank.into_iter().collect())),
        }
    }
    all
}

/// `Ranks 0-1 ran ./ocean; ranks 2-3 ran ./ice.`; `None` if all ran the same.
fn programs(analysis: &Analysis) -> Option<String> {
    let all = commands(analysis);
    let one = |(command, ranks): &(&[String], Vec<u32>)| {
        let word = if ranks.len() == 1 { "rank" } else { "ranks" };
        format!("{word} {} ran {}", format_list(ranks), clean(&command.join(" ")))
    };
    let is_job = all.iter().all(|(_, ranks)| !ranks.is_empty());
    if all.len() < 2 || !is_job {
        return None;
    }
    let more = if all.len() > MOST_COMMANDS { format!("; {}", count(all.len() - MOST_COMMANDS, "more command")) } else { String::new() };
    let words = all.iter().take(MOST_COMMANDS).map(one).collect::<Vec<_>>().join("; ");
    Some(format!("{}{more}.", capital(&words)))
}

fn missing(analysis: &Analysis) -> Option<String> {
    let ranks = &analysis.missing_ranks;
    let what = if ranks.len() == 1 { "Rank" } else { "Ranks" };
    let verb = if ranks.len() == 1 { "has" } else { "have" };
    (!ranks.is_empty()).then(|| format!("{what} {} of the job {verb} no profile here.", format_list(ranks)))
}

/// Ranks whose end is not that of a program which did its work.
fn died(analysis: &Analysis) -> Option<String> {
    let died: Vec<String> = analysis
        .ranks
        .iter()
        .filter(|rank| rank.signal.is_some() || rank.abort_status.is_some() || rank.unfinished)
        .map(|rank| format!("{} ({})", name(rank), end(rank)))
        .collect();
    let what = if died.len() == 1 { "Rank that died" } else { "Ranks that died" };
    (!died.is_empty()).then(|| format!("{what}: {}. Their figures hold until then.", died.join(", ")))
}

/// The largest part of a rank's accesses that go to an object.
fn share(one: &ObjectAcrossRanks) -> f64 {
    one.access_share.map_or(0.0, |share| share.max)
}

/// The objects that ranks use, without the own memory of libraries.
fn in_use(analysis: &Analysis) -> Vec<&ObjectAcrossRanks> {
    let is_library = |id: &Id| analysis.objects.iter().any(|object| object.id == *id && object.library.is_some());
    let is_used = |one: &&ObjectAcrossRanks| share(one) >= LEAST_PART && !one.objects.first().is_some_and(is_library);
    analysis.across_ranks.iter().filter(is_used).collect()
}

fn objects(analysis: &Analysis) -> Vec<Vec<String>> {
    if analysis.across_ranks.is_empty() || analysis.ranks.len() < 2 {
        return Vec::new();
    }
    let mut all = in_use(analysis);
    all.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let header = ["object over ranks", "ranks", "size", "accesses", "remote", "outlier"].map(str::to_owned).to_vec();
    let row = |one: &&ObjectAcrossRanks| {
        let ranks = one.objects.len().to_string();
        let outlier = [one.remote_fraction, one.access_share, Some(one.bytes)].into_iter().flatten().find_map(|figure| figure.outlier);
        vec![
            cut(&clean(&one.name), MOST_NAME),
            ranks,
            spread(&one.bytes, &|value| format_bytes(value as u64)),
            one.access_share.map_or_else(|| "-".to_owned(), |figure| spread(&figure, &percent)),
            one.remote_fraction.map_or_else(|| "not judged".to_owned(), |figure| spread(&figure, &percent)),
            outlier.map_or_else(String::new, |rank| format!("rank {rank}")),
        ]
    };
    std::iter::once(header).chain(all.iter().take(MOST_OBJECTS).map(row)).collect()
}

/// `48 %`, or `45 / 50 / 98 %`: least, middle and most.
fn spread(figure: &OverRanks, words: &dyn Fn(f64) -> String) -> String {
    let (min, median, max) = (words(figure.min), words(figure.median), words(figure.max));
    if min == max {
        return median;
    }
    let unit = |text: &str| text.rsplit([' ', '\u{a0}']).next().unwrap_or_default().to_owned();
    let bare = |text: &str| match unit(text) == unit(&max) {
        true => text
            .strip_suffix(&unit(text))
            .map_or(text, |rest| rest.trim_end_matches([' ', '\u{a0}']))
            .trim_end_matches(super::GLUE)
            .to_owned(),
        false => text.to_owned(),
    };
    format!("{} / {} / {max}", bare(&min), bare(&median))
}

fn push_table(out: &mut Vec<String>, rows: &[Vec<String>], style: Style) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_empty = |column: usize| rows.iter().skip(1).all(|row| row.get(column).is_none_or(String::is_empty));
    let kept: Vec<usize> = (0..columns).filter(|&column| !is_empty(column)).collect();
    let widths: Vec<usize> =
        kept.iter().map(|&column| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)).collect();
    for row in rows {
        let cells: Vec<String> =
            kept.iter().zip(&widths).map(|(&column, &most)| pad(row.get(column).map_or("", String::as_str), most)).collect();
        out.push(cut(cells.join("  ").trim_end(), style.width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_over_ranks_are_short() {
        let over = |min, median, max| OverRanks { min, median, max, outlier: None };
        let shown = |figure: OverRanks| spread(&figure, &percent).replace(super::super::GLUE, " ");
        assert_eq!(shown(over(0.45, 0.5, 0.98)), "45 / 50 / 98 %");
        assert_eq!(shown(over(0.5, 0.5, 0.5)), "50 %");
        let bytes = |figure: OverRanks| spread(&figure, &|value| format_bytes(value as u64));
        assert_eq!(bytes(over(1024.0, 1024.0, 1048576.0)), "1 KiB / 1 KiB / 1 MiB");
    }
}
