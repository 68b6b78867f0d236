//! Runs `firsttouch machines` and `firsttouch validate` as a user does.

use crate::firsttouch;
use std::path::Path;

fn printed(arguments: &[&str]) -> String {
    let output = firsttouch(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

/// Check that docs/validation.md matches the model's current predictions.
#[test]
fn the_table_in_the_documentation_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
    let kept = std::fs::read_to_string(page).unwrap();
    let made = printed(&["validate", "--markdown"]);
    let old = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "predictions have changed, first: {old:?}; look at them, then: firsttouch validate --markdown > docs/validation.md"
    );
}

/// Check that the errors in the JSON follow from its figures, and its summary from its rows.
#[test]
fn validation_adds_up() {
    let validation = json(&["validate", "--json"]);
    let (ratios, rows): (Vec<&serde_json::Value>, Vec<_>) =
        validation["rows"].as_array().unwrap().iter().partition(|row| !row["use"].is_null());
    let mut errors = Vec::new();
    for row in &rows {
        let (published, predicted) = (row["published"].as_f64().unwrap(), row["predicted"].as_f64().unwrap());
        let error = row["error"].as_f64().unwrap();
        assert!((predicted / published - 1.0 - error).abs() < 1e-9, "{row}");
        if !row["fitted"].as_bool().unwrap() {
            errors.push(error.abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    let all = &validation["summary"][0];
    assert_eq!(all["of"], "all");
    assert_eq!(all["predicted"].as_u64().unwrap(), errors.len() as u64);
    assert_eq!(all["rows"].as_u64().unwrap(), rows.len() as u64);
    assert_eq!(all["median"].as_f64().unwrap(), errors[errors.len().div_ceil(2) - 1]);
    // Ratios have a summary of their own, half of them judge only, and every one has an interval around its prediction.
    let summary = &validation["ratios"];
    assert_eq!(summary[0]["rows"].as_u64().unwrap(), ratios.len() as u64);
    let judging: Vec<_> = ratios.iter().filter(|row| row["use"] == "validate").collect();
    assert_eq!(summary[1]["rows"].as_u64().unwrap(), judging.len() as u64);
    assert!(2 * judging.len() >= ratios.len() && judging.iter().all(|row| row["fitted"] == false));
    let holds = |row: &&&serde_json::Value| {
        let end = |index: usize| row["interval"][index].as_f64().unwrap();
        let figure = |name: &str| row[name].as_f64().unwrap();
        assert!(end(0) <= figure("predicted") && figure("predicted") <= end(1), "{row}");
        end(0) <= figure("published") && figure("published") <= end(1)
    };
    assert_eq!(summary[1]["covered"].as_u64().unwrap(), judging.iter().filter(|row| holds(row)).count() as u64);
    // Rows whose two placements differ by more than 10 %.
    let differs = |row: &&&&serde_json::Value| !(1.0 / 1.1..=1.1).contains(&row["published"].as_f64().unwrap());
    let better = &summary[1]["better"];
    assert_eq!(better["rows"].as_u64().unwrap(), judging.iter().filter(differs).count() as u64);
    // In none is the published worse one predicted to be better; where a link carries all that is asked of it, the model sees no difference.
    let figure = |row: &serde_json::Value, name: &str| row[name].as_f64().unwrap();
    let is_wrong = |row: &&&&serde_json::Value| {
        let (predicted, published) = (figure(row, "predicted"), figure(row, "published"));
        differs(row) && (predicted - 1.0).abs() > 1e-9 && (predicted > 1.0) != (published > 1.0)
    };
    assert_eq!(judging.iter().filter(is_wrong).count(), 0, "{summary:#}");
    let ties = judging.iter().filter(differs).filter(|row| (figure(row, "predicted") - 1.0).abs() <= 1e-9).count() as u64;
    assert_eq!(better["rows"].as_u64().unwrap(), better["as_published"].as_u64().unwrap() + ties);
}

/// Check that every row that a machine file names as fitted is in the table.
#[test]
fn fitted_rows_exist() {
    let validation = json(&["validate", "--json"]);
    let names: Vec<String> = validation["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{}: {}", row["experiment"].as_str().unwrap(), row["row"].as_str().unwrap()))
        .collect();
    for machine in json(&["machines", "list", "--json"])["machines"].as_array().unwrap() {
        for entry in machine["fitted_to"].as_array().unwrap() {
            let entry = entry.as_str().unwrap();
            let found = entry
                .strip_suffix('*')
                .map_or(names.iter().any(|name| name == entry), |start| names.iter().any(|name| name.starts_with(start)));
            assert!(found, "{machine}: {entry}");
        }
    }
}

/// Check that a machine is shown with its sources, also from a file, and that errors name file and place.
#[test]
fn machines_are_shown() {
    let shown = printed(&["machines", "show", "xeon-e5620x2"]);
    assert!(shown.contains("fitted") && shown.contains("lecture slides") && shown.contains("serial m=20000 threads=2"), "{shown}");
    assert!(printed(&["machines", "list"]).contains("epyc-7451x2"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, "schema = 1").unwrap();
    let output = firsttouch(&["machines", "show", file.to_str().unwrap()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && message.contains("mine.toml") && message.contains("line 1"), "{message}");
    let unknown = firsttouch(&["machines", "show", "pdp-11"]);
    assert!(unknown.status.code() == Some(2) && String::from_utf8(unknown.stderr).unwrap().contains("pdp-11"));
}

/// Check that one command reads every kind of file, which it recognises by the name or the first bytes, and that errors say what it cannot
/// use.
#[test]
fn machines_of_files_are_shown() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let name = |file: &str| fixtures.join(file).display().to_string();
    let mlc = printed(&["machines", "show", &name("mlc/icelake.txt")]);
    assert!(mlc.contains("175.6909") || mlc.contains("2 x 2"), "{mlc}");
    assert!(mlc.contains("assumed: mlc does not tell") && mlc.contains("175.881"), "{mlc}");
    let hmat = json(&["machines", "show", &name("machines/guest-hmat/tools/lstopo.xml"), "--json"]);
    assert_eq!(hmat["nodes"], 2, "{hmat}");
    let numbers = hmat["numbers"].as_array().unwrap();
    let find = |what: &str| numbers.iter().find(|number| number["what"] == what).unwrap()["source"].as_str().unwrap();
    assert!(find("nodes.count").contains("numbered anew") && find("bandwidth.gb_per_s").starts_with("assumed: "), "{hmat}");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let toml = include_str!("../../../machines/epyc-7451x2.toml");
    assert!(printed(&["machines", "show", &file("described", toml)]).contains("epyc-7451x2"));
    for (machine, words) in [
        (name("hwloc/two-packages.xml"), "has no bandwidths (memory attributes), so only its nodes are known: 2 with 16 CPUs"),
        ("virtual:4".to_owned(), "virtual:4 has no numbers"),
        (file("notes", "hello"), "it is neither a description (.toml), nor hwloc XML (lstopo --of xml), nor the output of mlc"),
        (file("bad.txt", "Measuring idle latencies\nNuma node 0\n0 fast\n"), "line 3: expected a number, found 'fast'"),
        (file("tag", "<topology>"), "not well-formed XML"),
        (folder.path().display().to_string(), "it is not a regular file"),
        (folder.path().join("none").display().to_string(), "there is no such file"),
        ("unknown".to_owned(), "expected virtual:N, a file"),
        (folder.path().join("none.toml").display().to_string(), "cannot read the machine description"),
    ] {
        let output = firsttouch(&["machines", "show", &machine]);
        let message = String::from_utf8(output.stderr).unwrap();
        // No file has that name: a usage error.
        let status = if machine == "unknown" { 2 } else { 1 };
        assert!(output.status.code() == Some(status) && message.contains(words), "{machine}: {message}");
    }
}
