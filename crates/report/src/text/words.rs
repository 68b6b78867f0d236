//! Figures and shares of threads in words.

use super::layout::GLUE;
use firsttouch_analysis::{FirstTouchView, Interval, ObjectView, PartitionKind, acting_of};

/// `49 %`, `1.2 %`, `0 %`.
pub fn percent(fraction: f64) -> String {
    format!("{}{GLUE}%", digits(fraction))
}

/// `[47, 52]`, in percent.
pub fn interval([low, high]: Interval) -> String {
    format!("[{},{GLUE}{}]", digits(low), digits(high))
}

/// A percentage with one decimal below ten, else none.
fn digits(fraction: f64) -> String {
    let value = fraction * 100.0;
    if (0.05..9.95).contains(&value) { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `[1.6, 2.0]`
pub fn times([low, high]: Interval) -> String {
    format!("[{low:.1},{GLUE}{high:.1}]")
}

/// `[0.98, 1.06]`
pub fn hundredths([low, high]: Interval) -> String {
    format!("[{low:.2},{GLUE}{high:.2}]")
}

/// `1,904`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 thread`, `8 threads`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", thousands(number as u64)) }
}

/// `1 access`, `1,904 accesses`.
pub fn counted_as(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { several })
}

/// From this share on, one thread counts as doing all of it.
const ALL: f64 = 0.995;
const NEARLY_ALL: f64 = 0.9;

/// The threads that count among shares by thread: as in a finding's message.
pub fn acting(shares: &[f64]) -> Vec<usize> {
    acting_of(shares.iter().copied().enumerate())
}

/// The threads behind shares by thread and a partition: `all by thread 0`, `8 threads, each its own block`.
pub fn by_threads(shares: &[f64], partition: PartitionKind) -> String {
    by(shares, partition, |_| None)
}

/// Who touches an object first, where one thread alone does at some of its lines: `thread 0 alone in 2 of 3 lines, 8 threads in the other`. `None` if
/// all lines are alike.
pub fn by_lines(touch: &FirstTouchView) -> Option<String> {
    let alone: Vec<usize> = touch.at.iter().filter_map(|place| place.alone).collect();
    let (first, lines) = (*alone.first()?, touch.at.len());
    let who = if alone.iter().all(|thread| *thread == first) { format!("thread {first} alone") } else { "one thread alone".to_owned() };
    Some(match lines - alone.len() {
        0 => format!("{who} in each of {lines} lines"),
        others => {
            let threads = count(acting(&touch.by_thread.to_vec()).len(), "thread");
            format!("{who} in {} of {lines} lines, {threads} in the other{}", alone.len(), if others == 1 { "" } else { "s" })
        }
    })
}

/// `estimated`: the interval of a thread's share, if that is no count.
fn by(shares: &[f64], partition: PartitionKind, estimated: impl Fn(usize) -> Option<Interval>) -> String {
    let total: f64 = shares.iter().sum();
    let Some((top, share)) = shares.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return String::new();
    };
    if total <= 0.0 {
        return String::new();
    }
    if share / total >= ALL {
        return format!("all by thread {top}");
    }
    if share / total >= NEARLY_ALL {
        let estimated = estimated(top).map_or_else(String::new, |estimated| format!(" {}", interval(estimated)));
        return format!("{}{estimated} by thread {top}", percent(share / total));
    }
    let threads = count(acting(shares).len(), "thread");
    match partition {
        PartitionKind::Block => format!("{threads}, each its own block"),
        PartitionKind::BlockCyclic => format!("{threads}, blocks in turn"),
        PartitionKind::Shared => format!("{threads}, each all over it"),
        PartitionKind::Irregular => format!("{threads}, no fixed parts"),
        PartitionKind::Single | PartitionKind::Unknown => threads,
    }
}

/// The threads that use an object.
pub fn by_users(object: &ObjectView) -> String {
    let used = object.used_by_thread.to_vec();
    match object.partition_period {
        Some(_) => format!("{}, in turn, parts below a page", count(acting(&used).len(), "thread")),
        None => by(&used, object.partition, |thread| object.used_by_thread_interval.to_vec().get(thread).copied()),
    }
}

/// The text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().to_string() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_analysis::CodeLocation;

    /// Check the number of digits of figures.
    #[test]
    fn figures_read_well() {
        for (fraction, text) in [(0.49, "49 %"), (1.0, "100 %"), (0.0, "0 %"), (0.012, "1.2 %"), (0.0996, "10 %"), (0.0001, "0 %")] {
            assert_eq!(percent(fraction), text.replace(' ', "\u{a0}"));
        }
        assert_eq!(interval([0.47, 0.52]), "[47,\u{a0}52]");
        assert_eq!(interval([0.0, 0.12]), "[0,\u{a0}12]");
        assert_eq!(interval([0.003, 0.021]), "[0.3,\u{a0}2.1]");
        assert_eq!([0, 1, 1904].map(|n| counted_as(n, "access", "accesses")), ["0 accesses", "1 access", "1,904 accesses"]);
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(123_456), "123,456");
    }

    /// Check what is said of first touches at several lines: how many of them one thread alone made, and nothing where all lines are alike.
    #[test]
    fn lines_of_one_thread_read_well() {
        let touch = |alone: &[Option<usize>]| FirstTouchView {
            by_thread: vec![0.7, 0.1, 0.1, 0.1].into(),
            at: alone.iter().map(|&alone| CodeLocation { alone, share: 0.3, ..CodeLocation::default() }).collect(),
            partition: PartitionKind::Unknown,
            cause: None,
            samples: 100,
            by_kernel: 0.0,
            recycled: 0.0,
            of_misplaced_part: false,
            serial_allocations: None,
        };
        for (alone, text) in [
            (&[None, None][..], None),
            (&[Some(0), None], Some("thread 0 alone in 1 of 2 lines, 4 threads in the other")),
            (&[Some(0), Some(0), None], Some("thread 0 alone in 2 of 3 lines, 4 threads in the other")),
            (&[Some(2), None, None], Some("thread 2 alone in 1 of 3 lines, 4 threads in the others")),
            (&[Some(0), Some(1)], Some("one thread alone in each of 2 lines")),
        ] {
            assert_eq!(by_lines(&touch(alone)).map(|words| words.replace(GLUE, " ")).as_deref(), text);
        }
    }

    /// Check the sentences about threads.
    #[test]
    fn threads_read_well() {
        for (shares, partition, text) in [
            (&[1.0, 0.0][..], PartitionKind::Single, "all by thread 0"),
            (&[0.0, 0.03, 0.97], PartitionKind::Block, "97 % by thread 2"),
            (&[0.25, 0.25, 0.25, 0.25], PartitionKind::Block, "4 threads, each its own block"),
            (&[0.0, 0.5, 0.5, 0.001], PartitionKind::Shared, "2 threads, each all over it"),
            (&[0.5, 0.5], PartitionKind::Unknown, "2 threads"),
            (&[0.0, 0.0], PartitionKind::Block, ""),
            (&[], PartitionKind::Block, ""),
        ] {
            assert_eq!(by_threads(shares, partition).replace(GLUE, " "), text);
        }
    }
}
