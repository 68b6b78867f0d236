//! The formats of other tools: sums are those of the profile, and names cannot break a format.

use crate::html::fixtures;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::RowAccessor;
use firsttouch_analysis::Analysis;
use firsttouch_analysis::pictures::{AccessSample, AccessSamples, Timeline};
use firsttouch_model::rows::Frame;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_report::export::{Counted, Export, callgrind, csv, firefox, folded, is_pprof, parquet, pprof};
use std::collections::BTreeMap;

/// Fields of a protocol buffer: number, and either a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Result<u64, Vec<u8>>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        if key & 7 == 0 {
            list.push((key >> 3, Ok(varint(&mut bytes))));
        } else {
            assert_eq!(key & 7, 2);
            let length = usize::try_from(varint(&mut bytes)).unwrap();
            list.push((key >> 3, Err(bytes[..length].to_vec())));
            bytes = &bytes[length..];
        }
    }
    list
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    // A packed list reads as the values of fields without keys.
    let mut list = vec![0u64];
    let mut shift = 0;
    for byte in bytes {
        *list.last_mut().unwrap() |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            list.push(0);
            shift = 0;
        }
    }
    list.pop();
    list
}

/// The sums of the values, and the texts, of a pprof profile.
fn read_pprof(bytes: &[u8]) -> (Vec<u64>, Vec<String>) {
    let (mut sums, mut texts) = (vec![0; 4], Vec::new());
    for (field, value) in fields(bytes) {
        match (field, value) {
            (2, Err(sample)) => {
                let values = fields(&sample).into_iter().find_map(|(field, value)| (field == 2).then(|| value.unwrap_err())).unwrap();
                sums.iter_mut().zip(numbers(&values)).for_each(|(sum, value)| *sum += value);
            }
            (6, Err(text)) => texts.push(String::from_utf8(text).unwrap()),
            _ => {}
        }
    }
    (sums, texts)
}

fn sum_of_folded(text: &str) -> u64 {
    text.lines()
        .map(|line| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            assert!(stack.split(';').all(|frame| !frame.trim().is_empty()), "{line}");
            count.parse::<u64>().unwrap()
        })
        .sum()
}

/// The rows of a table of samples: object, whether remote, accesses, function.
fn rows_of_parquet(bytes: Vec<u8>) -> Vec<(String, bool, i64, String)> {
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows = file.get_row_iter(None).unwrap().map(Result::unwrap);
    let text = |row: &::parquet::record::Row, at| row.get_string(at).cloned().unwrap_or_default();
    rows.map(|row| (text(&row, 4), row.get_bool(7).unwrap_or(false), row.get_long(9).unwrap(), text(&row, 11))).collect()
}

/// The sums of a format: accesses, and those of them that are remote.
fn sums(export: &Export<'_>) -> BTreeMap<&'static str, (u64, u64)> {
    let (of_pprof, _) = read_pprof(&pprof(export));
    let of_callgrind = callgrind(export);
    let totals: Vec<u64> =
        of_callgrind.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap().split(' ').map(|one| one.parse().unwrap()).collect();
    let mut lines = [0; 3];
    for line in of_callgrind.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        line.split(' ').skip(1).zip(&mut lines).for_each(|(value, sum)| *sum += value.parse::<u64>().unwrap());
    }
    assert_eq!(totals, lines);
    let of_firefox = firefox(export).unwrap();
    let weights = of_firefox["threads"].as_array().unwrap().iter().flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
    let weight: u64 = weights.map(|weight| weight.as_u64().unwrap()).sum();
    let rows: Vec<Vec<u64>> = csv(export)
        .unwrap()
        .lines()
        .skip(1)
        .map(|row| {
            // The columns before the names of code, after those of the object.
            let fields: Vec<&str> = row.split(',').collect();
            let end = fields.len();
            [end - 7, end - 5].map(|at| fields[at].parse().unwrap_or(0)).to_vec()
        })
        .collect();
    let of_rows = (rows.iter().map(|row| row[1]).sum(), rows.iter().filter(|row| row[0] == 1).map(|row| row[1]).sum());
    let of_parquet =
        rows_of_parquet(parquet::samples(export).unwrap()).into_iter().fold((0, 0), |(all, remote), (_, is_remote, accesses, _)| {
            let accesses = u64::try_from(accesses).unwrap();
            (all + accesses, remote + if is_remote { accesses } else { 0 })
        });
    let bytes = sum_of_folded(&folded(export, Counted::Bytes).unwrap());
    assert_eq!((of_pprof[2], of_pprof[3], bytes), (8 * of_pprof[0], 8 * of_pprof[1], 8 * of_pprof[0]));
    let remote = totals[1];
    [
        (
            "folded",
            (sum_of_folded(&folded(export, Counted::Accesses).unwrap()), sum_of_folded(&folded(export, Counted::RemoteAccesses).unwrap())),
        ),
        ("pprof", (of_pprof[0], of_pprof[1])),
        ("callgrind", (totals.iter().sum(), remote)),
        ("firefox", (weight, remote)),
        ("csv", of_rows),
        ("parquet", of_parquet),
    ]
    .into()
}

/// Check that all formats have the sums of the profile, that their remote part is that of the report, and that the same profile gives the same bytes.
#[test]
fn sums_are_those_of_the_profile() {
    for path in fixtures() {
        let analysed = AnalysedProfile::open(&path, &AnalysisRequest::parse(None, None).unwrap().with_samples()).unwrap();
        let pictures = analysed.pictures.as_ref().unwrap();
        let export = Export {
            analysis: &analysed.analysis,
            samples: &pictures.samples,
            timeline: pictures.timeline.as_ref(),
            start_unix_s: Some(1),
        };
        let exact: f64 = pictures.samples.list.iter().map(|sample| sample.accesses).sum();
        assert!(exact > 0.0);
        let found = sums(&export);
        let (all, remote) = found["pprof"];
        assert!((all as f64 - exact).abs() <= 1.0, "{}: {all} {exact}", path.display());
        assert!(found.values().all(|one| *one == (all, remote)), "{}: {found:?}", path.display());
        let counted = |is_remote: bool| {
            let counts = |sample: &&AccessSample| sample.counts && (!is_remote || sample.is_remote() == Some(true));
            pictures.samples.list.iter().filter(counts).map(|sample| sample.accesses).sum::<f64>()
        };
        let reported = analysed.analysis.remote_fraction.unwrap();
        assert!((counted(true) / counted(false) - reported).abs() < 0.02, "{}: {reported}", path.display());
        assert_eq!(pprof(&export), pprof(&export));
        assert_eq!(parquet::samples(&export).unwrap(), parquet::samples(&export).unwrap());
        assert_eq!(firefox(&export).unwrap().to_string(), firefox(&export).unwrap().to_string());
        assert!(is_pprof(&pprof(&export)) && !is_pprof(b"SQLite format 3"));
    }
}

/// Check names that mean something in one of the formats.
#[test]
fn names_stay_names() {
    for name in ["a;b 12", "(1) x", "fn=y\nob=z", "\"q\",1", "=1+1", "\u{1b}[31m", " ", "", "</script>", "\u{2028}", "a\\"] {
        let mut analysis: Analysis = crate::text::serial();
        analysis.objects[0].name = name.into();
        let frame = Frame {
            function: Some(name.into()),
            file: Some(format!("/src/{name}.c")),
            line: Some(3),
            module: Some(name.into()),
            ..Frame::default()
        };
        let sample = AccessSample {
            time_ns: 5,
            thread: 1,
            thread_node: 1,
            object: 7,
            position: 0,
            home: Some(0),
            accesses: 10.0,
            counts: true,
            site: Some(1),
        };
        let unknown = AccessSample { home: None, site: None, counts: false, ..sample.clone() };
        let samples = AccessSamples { source: None, list: vec![sample, unknown], stacks: [(1, vec![frame])].into() };
        let timeline = Timeline::default();
        let export = Export { analysis: &analysis, samples: &samples, timeline: Some(&timeline), start_unix_s: None };
        let stacks = folded(&export, Counted::Accesses).unwrap();
        assert_eq!((sum_of_folded(&stacks), stacks.lines().count()), (20, 2), "{stacks:?}");
        let text = callgrind(&export);
        assert_eq!(text.lines().filter(|line| line.starts_with("fn=")).count(), 2, "{text}");
        assert!(!text.contains("=("), "{text}");
        assert_eq!(read_pprof(&pprof(&export)).0, [20, 10, 160, 80]);
        assert_eq!(firefox(&export).unwrap()["threads"][0]["samples"]["weight"], serde_json::json!([10, 10]));
        let rows = csv(&export).unwrap();
        assert!(rows.lines().count() == 3, "{rows}");
        let rows = rows_of_parquet(parquet::samples(&export).unwrap());
        assert_eq!(rows.iter().map(|row| (row.1, row.2)).collect::<Vec<_>>(), [(true, 10), (false, 10)]);
        assert!(rows.iter().all(|row| row.0 == rows[0].0 && !row.0.contains(char::is_control)), "{rows:?}");
        assert!(parquet::is_parquet(&parquet::objects(&export).unwrap()));
    }
}
