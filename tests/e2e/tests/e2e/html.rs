// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report as a page, in a browser: nothing is requested, nothing complains, and every view works by keyboard.
//!
//! `FIRSTTOUCH_SCREENSHOTS=DIRECTORY` keeps pictures of the pages.

use firsttouch_e2e::browser::Browser;
use firsttouch_e2e::paths::target_dir;
use firsttouch_e2e::process::run;
use firsttouch_e2e::recorded::fixture;
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Serious findings of axe-core, as text.
const AXE: &str = "axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}).then(found => found.violations
    .filter(one => one.impact === 'serious' || one.impact === 'critical')
    .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' | ')))";

/// Writes a page, and checks that the command says where it is.
fn page(firsttouch: &Firsttouch, arguments: &[&str], file: &Path) {
    let outcome = run(firsttouch.command(arguments).args(["--html", text(file)]));
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
    let said = outcome.stderr_text();
    assert!(said.contains(text(file)) && outcome.stdout.is_empty(), "{outcome:?}");
    let has_verdict = ["MISPLACED", "No finding: ", "NOT JUDGED: "].iter().any(|start| said.contains(&format!("firsttouch: {start}")));
    assert!(has_verdict || arguments.first() != Some(&"report"), "{said}");
}

/// A profile whose names would be scripts and markup if they were not text.
fn hostile_profile(folder: &Path) -> PathBuf {
    let file = folder.join("hostile.ftp");
    fs::copy(fixture("dgemv_serial"), &file).expect("a copy");
    let database = rusqlite::Connection::open(&file).expect("a profile");
    let script = "<script>document.title = 'gone'; alert(1)</script><img src=//example.org/x onerror='document.title = 1'>";
    let set = |sql: &str, value: &str| assert!(database.execute(sql, [value]).expect(sql) > 0, "{sql}");
    set("UPDATE frames SET function = ?1, file = '/src/' || ?1 || '.c' WHERE file IS NOT NULL", script);
    set("UPDATE objects SET name = ?1, kind = 'static', call = NULL, site = NULL", script);
    set("UPDATE threads SET name = ?1", &format!("\"'>{script}"));
    set(
        "UPDATE meta SET value = ?1 WHERE key = 'command'",
        &serde_json::json!([format!("</title></script>{script}"), "-->", "]]>"]).to_string(),
    );
    file
}

/// The pages that are looked at: misplaced, well placed, with a prediction, dealt out with many objects, with hostile names, and two compared.
fn pages(firsttouch: &Firsttouch, folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let fixture = |name: &str| text(&fixture(name)).to_owned();
    let (serial, parallel, dynamic) = (fixture("dgemv_serial"), fixture("dgemv_parallel"), fixture("iso3dfd_serial_dynamic"));
    let hostile = hostile_profile(folder);
    let all: [(&str, Vec<&str>); 6] = [
        ("serial", vec!["report", &serial]),
        ("parallel", vec!["report", &parallel]),
        ("machine", vec!["report", &serial, "--machine", "epyc-7451x2"]),
        ("dynamic", vec!["report", &dynamic]),
        ("hostile", vec!["report", text(&hostile)]),
        ("diff", vec!["diff", &serial, &parallel]),
    ];
    let one = |(name, arguments): (&'static str, Vec<&str>)| {
        let file = folder.join(format!("{name}.html"));
        page(firsttouch, &arguments, &file);
        (name, file)
    };
    all.into_iter().map(one).collect()
}

/// Starts a browser and makes the pages; `None` if the test is skipped.
fn start(test: &str, folder: &Path) -> Option<(Browser, Vec<(&'static str, PathBuf)>)> {
    let firsttouch = Firsttouch::find(test)?;
    let browser = Browser::start().map_err(|why| skipped(test, &why)).ok()?;
    Some((browser, pages(&firsttouch, folder)))
}

/// Keeps a picture of the page, if pictures are wanted.
fn keep_picture(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("FIRSTTOUCH_SCREENSHOTS") else { return };
    let picture = browser.picture();
    fs::write(Path::new(&folder).join(format!("{name}.png")), decoded(&picture)).expect("the picture is written");
}

/// The bytes of a text in base64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(digit).collect();
    let bytes = |group: &[u32]| {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(bytes).collect()
}

/// Check that pages request nothing and complain about nothing, and that no text is beyond the right edge, narrow and wide, light and dark.
#[test]
fn pages_are_self_contained() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("pages_are_self_contained", folder.path()) else { return };
    for (name, file) in pages {
        browser.show(1000, "light");
        browser.open(&file);
        for (width, scheme) in [(1600, "light"), (400, "dark")] {
            browser.show(width, scheme);
            let wide = browser.value("document.documentElement.scrollWidth").as_u64().expect("a width");
            assert!(wide <= u64::from(width), "{name} is {wide} px wide in a window of {width} px");
            let background = browser.value("getComputedStyle(document.body).backgroundColor");
            assert_eq!(background == "rgb(255, 255, 255)", scheme == "light", "{name}: {background}");
            keep_picture(&mut browser, &format!("{name}-{width}-{scheme}"));
        }
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
        let title = browser.value("document.title");
        assert!(title.as_str().is_some_and(|title| title.ends_with(" - firsttouch")), "{name}: {title}");
        assert_eq!(browser.value("document.querySelectorAll('script, img').length"), 2, "{name}");
    }
}

/// Check that the page says the same without its script, except for what only the script can do.
#[test]
fn pages_are_readable_without_the_script() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("pages_are_readable_without_the_script", folder.path()) else { return };
    let (_, file) = &pages[0];
    let words = "document.querySelector('main').textContent.replace(/\\s+/g, '')";
    browser.open(file);
    let with = browser.value(words);
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
    browser.open(file);
    assert!(browser.value("document.querySelector('th button') === null").as_bool().expect("a boolean"));
    assert_eq!(browser.value(words), with);
}

/// Check sorting, filtering, zooming and selecting by keyboard.
#[test]
fn pages_work_by_keyboard() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("pages_work_by_keyboard", folder.path()) else { return };
    let file = |name: &str| &pages.iter().find(|(one, _)| *one == name).expect("a page").1;
    browser.show(1200, "light");
    browser.open(file("dynamic"));
    // The first stop leads past the navigation.
    browser.press("Tab", false);
    assert_eq!(browser.value("document.activeElement.textContent"), "Skip to the report");

    let bytes = "[...document.querySelectorAll('#objects-table tbody tr')].map(row => Number(row.cells[1].dataset.v))";
    browser.value("document.querySelectorAll('#objects-table th button')[1].focus()");
    browser.press("Enter", false);
    let numbers =
        |value: serde_json::Value| -> Vec<f64> { value.as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).collect() };
    let descending = numbers(browser.value(bytes));
    assert!(descending.len() > 1 && descending.is_sorted_by(|a, b| a >= b), "{descending:?}");
    browser.press("Enter", false);
    assert!(numbers(browser.value(bytes)).is_sorted(), "the second time the other way");
    assert_eq!(browser.value("document.querySelectorAll('#objects-table th')[1].getAttribute('aria-sort')"), "ascending");

    browser.value("document.activeElement.blur()");
    browser.press("/", false);
    assert_eq!(browser.value("document.activeElement.id"), "filter");
    for letter in "mapping".chars() {
        browser.press(&letter.to_string(), false);
    }
    let shown =
        browser.value("[...document.querySelectorAll('#objects-table tbody tr')].filter(row => !row.hidden).map(row => row.textContent)");
    let rows = shown.as_array().expect("a list");
    assert!(!rows.is_empty() && rows.len() < descending.len(), "{shown}");
    assert!(rows.iter().all(|row| row.as_str().is_some_and(|text| text.to_lowercase().contains("mapping"))), "{shown}");

    browser.open(file("serial"));
    browser.value("document.querySelector('.view').focus()");
    let readout = "document.querySelector('.map .readout').textContent";
    browser.press("End", false);
    let said = browser.value(readout);
    let said = said.as_str().expect("a text");
    assert!(said.contains("used by thread 7 (node 1)") && said.contains("lies on node 0") && said.contains("100\u{a0}% ["), "{said}");
    browser.press("+", false);
    browser.press("+", false);
    assert_eq!(browser.value("document.querySelector('.map').dataset.zoom"), "4.00");
    browser.press("ArrowLeft", false);
    assert_ne!(browser.value(readout), said);
    browser.press("0", false);
    assert_eq!(browser.value("document.querySelector('.map').dataset.zoom"), "1.00");

    browser.value("document.getElementById('time').focus()");
    for _ in 0..12 {
        browser.press("ArrowRight", true);
    }
    let said = browser.value("document.getElementById('stretch').textContent");
    assert!(said.as_str().is_some_and(|text| text.contains("first touched: ") && text.contains(" s to ")), "{said}");
    browser.press("Escape", false);
    assert_eq!(browser.value("document.getElementById('stretch').hidden"), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The accesses of the exported samples from one time to another, as the report weighs them.
#[derive(Debug, Default)]
struct Exported {
    all: f64,
    by_object: BTreeMap<String, f64>,
    remote: BTreeMap<String, f64>,
    /// By object, thread and the thread's node.
    by_thread: BTreeMap<(String, String, String), f64>,
    by_nodes: BTreeMap<(String, String), f64>,
}

/// The fields of a row of CSV; those with commas are in quotes.
fn fields(row: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut is_quoted = false;
    for c in row.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => list.push(String::new()),
            c => list.last_mut().expect("a field").push(c),
        }
    }
    list
}

fn exported(firsttouch: &Firsttouch, profile: &str, (from, to): (f64, f64)) -> Exported {
    let outcome = run(&mut firsttouch.command(["export", profile, "--to", "csv", "-o", "-"]));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let rows = outcome.stdout_text();
    let mut sums = Exported::default();
    for row in rows.lines().skip(1) {
        let fields = fields(row);
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let [time, thread, thread_node, object, _, _, home, remote, counts, accesses, ..] = fields[..] else { panic!("{row}") };
        let (time, accesses): (f64, f64) = (time.parse().expect("a time"), accesses.parse().expect("a number"));
        if time >= from && time < to {
            sums.all += accesses;
            *sums.by_object.entry(object.to_owned()).or_default() += accesses;
            *sums.by_thread.entry((object.to_owned(), thread.to_owned(), thread_node.to_owned())).or_default() += accesses;
            *sums.remote.entry(object.to_owned()).or_default() += if remote == "1" { accesses } else { 0.0 };
            assert_eq!(counts, "1", "the fixture has only samples that count: {row}");
            *sums.by_nodes.entry((thread_node.to_owned(), home.to_owned())).or_default() += accesses;
        }
    }
    sums
}

/// Check that a map which is zoomed in shows parts of its pieces: the samples in each are those of the export.
#[test]
fn maps_show_parts_of_pieces() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("maps_show_parts_of_pieces", folder.path()) else { return };
    let firsttouch = Firsttouch::find("maps_show_parts_of_pieces").expect("it was there");
    browser.show(1200, "light");
    browser.open(&pages.iter().find(|(one, _)| *one == "serial").expect("a page").1);
    browser.value("document.querySelector('.view').focus()");
    let pieces = browser.value("document.querySelectorAll('.map [data-row=\"used by\"] rect').length").as_u64().expect("a number");
    browser.press("Home", false);
    let is_close = "document.querySelector('.map').classList.contains('parts')";
    for _ in 0..12 {
        if !browser.value(is_close).as_bool().expect("a boolean") {
            browser.press("+", false);
        }
    }
    assert_eq!(browser.value(is_close), true, "the map has parts");
    keep_picture(&mut browser, "parts");
    let said =
        |browser: &mut Browser| browser.value("document.querySelector('.map .readout').textContent").as_str().expect("a text").to_owned();
    let first = said(&mut browser);
    assert!(first.starts_with("0\u{a0}B to "), "{first}");
    let close = "JSON.parse(document.getElementById('data').textContent).maps[document.querySelector('.map').dataset.map].close";
    let bytes = browser.value(&format!("{close}.bytes")).as_u64().expect("a number");

    let object = browser.value("document.querySelector('.map').dataset.map").as_str().expect("an id").to_owned();
    let outcome = run(&mut firsttouch.command(["export", text(&fixture("dgemv_serial")), "--to", "csv", "-o", "-"]));
    let mut samples: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for row in outcome.stdout_text().lines().skip(1) {
        let fields = fields(row);
        if fields[3] == object {
            samples.entry(fields[5].parse::<u64>().expect("a position") / bytes).or_default().push(fields[1].clone());
        }
    }
    let (mut seen, mut unseen) = (0, 0);
    for part in 0..120 {
        let said = said(&mut browser);
        let threads = samples.get(&part).map_or(&[][..], Vec::as_slice);
        let counted = match threads.len() {
            0 => "no use seen".to_owned(),
            1 => "; 1 sample".to_owned(),
            count => format!("; {count} samples"),
        };
        assert!(said.contains(&counted), "part {part}, threads {threads:?}: {said}");
        if let [thread, others @ ..] = threads
            && others.iter().all(|other| other == thread)
        {
            assert!(said.contains(&format!("used by thread {thread} ")), "part {part}, threads {threads:?}: {said}");
            seen += 1;
        }
        unseen += u32::from(threads.is_empty());
        assert!(said.contains("first touched by thread 0 ") && said.contains("lies on node 0"), "{said}");
        browser.press("ArrowRight", false);
    }
    assert!(seen >= 30 && unseen >= 1, "{seen} parts with samples of one thread, {unseen} without samples: {first}");

    // Zoomed out, the whole map is there again.
    browser.press("0", false);
    assert_eq!(browser.value(is_close), false);
    assert_eq!(browser.value("document.querySelectorAll('.map [data-row=\"used by\"] rect').length"), pieces);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The first percentage of a text, as a part; 0 without one.
fn part_of(text: &str) -> f64 {
    text.split('\u{a0}').next().and_then(|number| number.trim().parse::<f64>().ok()).unwrap_or(0.0) / 100.0
}

/// Waits until the views show what is selected.
fn wait_for_views(browser: &mut Browser) {
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
}

/// The text of all cells of a table.
fn texts_of(browser: &mut Browser, table: &str) -> Vec<Vec<String>> {
    let expression = format!("[...document.querySelectorAll('#{table} tr')].map(row => [...row.cells].map(cell => cell.textContent))");
    serde_json::from_value(browser.value(&expression)).expect("rows of texts")
}

/// Check the figures of all views against the exported samples of a stretch.
fn check_views(browser: &mut Browser, sums: &Exported) {
    let close = |text: &str, sum: f64, of: &str| {
        let part = part_of(text);
        assert!((part - sum).abs() < 0.008, "{of}: {text} {sum}");
    };
    let ids =
        browser.value("[...document.querySelectorAll('#objects-table a')].map(link => link.getAttribute('href').replace('#map-', ''))");
    let ids: Vec<String> = serde_json::from_value(ids).expect("ids");
    let (objects, threads) = (texts_of(browser, "objects-table"), texts_of(browser, "threads-matrix"));
    for (row, id) in ids.iter().enumerate().map(|(at, id)| (at + 1, id)) {
        let all = sums.by_object.get(id).copied().unwrap_or(0.0);
        close(&objects[row][2], all / sums.all, "accesses");
        if objects[row][3] != "\u{2013}" {
            close(&objects[row][3], sums.remote[id] / all, "remote part");
        }
        for (head, text) in threads[0].iter().zip(&threads[row]).skip(1) {
            // Of many threads, the sums of each node.
            let (kind, number) = head.split_once(' ').expect("a thread or a node");
            let number = number.split(' ').next().unwrap_or_default();
            let own = |(of, thread, node): &(String, String, String)| of == id && number == if kind == "node" { node } else { thread };
            let own: f64 = sums.by_thread.iter().filter(|(key, _)| own(key)).map(|(_, accesses)| accesses).sum();
            close(text, own / all.max(1.0), "threads");
        }
    }
    let nodes = texts_of(browser, "nodes-matrix");
    let arrows = browser.value(
        "Object.fromEntries([...document.querySelectorAll('.flow-of')].map(one => [one.dataset.from + one.dataset.to, one.textContent]))",
    );
    for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let own = sums.by_nodes.get(&(from.to_string(), to.to_string())).copied().unwrap_or(0.0) / sums.all;
        close(&nodes[from + 1][to + 1], own, "nodes");
        if from != to {
            close(arrows[format!("{from}{to}")].as_str().expect("a part"), own, "arrow");
        }
    }
}

/// Check that all views show a stretch of time that is selected by keyboard, with the figures of the samples of that stretch, and the whole run again
/// after Escape.
#[test]
fn views_show_a_stretch_of_time() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("views_show_a_stretch_of_time", folder.path()) else { return };
    let Some(firsttouch) = Firsttouch::find("views_show_a_stretch_of_time") else { return };
    for (name, profile) in [("dynamic", "iso3dfd_serial_dynamic"), ("serial", "dgemv_serial")] {
        browser.show(1200, "light");
        browser.open(&pages.iter().find(|(one, _)| *one == name).expect("a page").1);
        let whole = browser.value("document.querySelector('main').innerHTML");
        let objects = texts_of(&mut browser, "objects-table");

        // All stretches together are the whole run.
        browser.value("document.getElementById('time').focus()");
        browser.press("Home", false);
        browser.press("End", true);
        wait_for_views(&mut browser);
        for (row, of_run) in texts_of(&mut browser, "objects-table").iter().zip(&objects).skip(1) {
            for column in [2, 3] {
                assert!((part_of(&row[column]) - part_of(&of_run[column])).abs() < 0.008, "{row:?} {of_run:?}");
            }
        }

        browser.press("Home", false);
        (0..50).for_each(|_| browser.press("ArrowRight", false));
        (0..25).for_each(|_| browser.press("ArrowRight", true));
        wait_for_views(&mut browser);
        let step = browser.value("JSON.parse(document.getElementById('data').textContent).time.bin_s").as_f64().expect("seconds");
        assert_eq!(browser.value("JSON.parse(document.getElementById('data').textContent).by_time.bins"), 1);
        check_views(&mut browser, &exported(&firsttouch, text(&fixture(profile)), (50.0 * step, 76.0 * step)));

        let stretch = format!("{:.2} s to {:.2} s", 50.0 * step, 76.0 * step);
        assert_eq!(browser.value("document.querySelector('.chosen .timed').textContent"), stretch.as_str());
        let labels = browser.value("[...document.querySelectorAll('section:not(#time-view) > .about')].map(about => about.textContent)");
        for label in labels.as_array().expect("labels").iter().filter_map(serde_json::Value::as_str) {
            assert!(label.contains(&stretch) && label.contains("Whole run: Escape"), "{label}");
        }
        browser.value("document.querySelector('.view').focus()");
        browser.press("End", false);
        let said = browser.value("document.querySelector('.map .readout').textContent");
        assert!(said.as_str().is_some_and(|said| said.contains(&format!("use: {stretch}"))), "{said}");
        if let Ok(axe) = fs::read_to_string(target_dir().join("axe/axe.min.js")) {
            browser.value(&format!("{axe}; true"));
            assert_eq!(browser.value(AXE), serde_json::json!([]), "{name}");
        }
        for (width, scheme) in [(1600, "light"), (400, "dark")] {
            browser.show(width, scheme);
            let wide = browser.value("document.documentElement.scrollWidth").as_u64().expect("a width");
            assert!(wide <= u64::from(width), "{wide} px wide in a window of {width} px");
            keep_picture(&mut browser, &format!("stretch-{name}-{width}-{scheme}"));
        }

        browser.press("Escape", false);
        wait_for_views(&mut browser);
        assert_eq!(texts_of(&mut browser, "objects-table"), objects);
        // What differs is the script's own: the mark, the readouts, and the cursor of the map.
        let is_same =
            "(() => { const one = document.createElement('main'); one.innerHTML = ORIGINAL; const two = document.querySelector('main');
            for (const all of [one, two]) all.querySelectorAll('.readout, .brush, .cursor').forEach(element => element.remove());
            return one.innerHTML === two.innerHTML; })()";
        assert_eq!(browser.value(&is_same.replace("ORIGINAL", &whole.to_string())), true, "something is left of the stretch");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

/// Check that the machine is drawn with eight nodes, and that its picture says which arrows there are.
#[test]
fn machines_of_eight_nodes_are_drawn() {
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("machines_of_eight_nodes_are_drawn", folder.path()) else { return };
    browser.show(1200, "light");
    browser.open(&pages.iter().find(|(one, _)| *one == "machine").expect("a page").1);
    let count = |browser: &mut Browser, what: &str| browser.value(&format!("document.querySelectorAll('#machine-picture {what}').length"));
    assert_eq!(count(&mut browser, ".box"), 8);
    let shown = count(&mut browser, ".flow-of:not([visibility])").as_u64().expect("a number");
    assert!((1..=12).contains(&shown), "{shown}");
    let cut = "[...document.querySelectorAll('#machine-picture text')].filter(text => { const box = text.getBBox();
        const view = document.getElementById('machine-picture').viewBox.baseVal;
        return box.x < 0 || box.y < 0 || box.x + box.width > view.width || box.y + box.height > view.height; }).length";
    assert_eq!(browser.value(cut), 0);
}

/// Check pages with axe-core, light and dark: no serious findings.
#[test]
fn pages_are_accessible() {
    let axe = target_dir().join("axe/axe.min.js");
    let Ok(axe) = fs::read_to_string(&axe) else {
        return skipped("pages_are_accessible", "axe-core is not in target/axe (`make deps` gets it from registry.npmjs.org)");
    };
    let folder = temporary_directory();
    let Some((mut browser, pages)) = start("pages_are_accessible", folder.path()) else { return };
    for (name, file) in pages {
        browser.show(1200, if name == "serial" { "dark" } else { "light" });
        browser.open(&file);
        browser.value(&format!("{axe}; true"));
        assert_eq!(browser.value(AXE), serde_json::json!([]), "{name}");
    }
}

/// Check which files a page may replace, that nothing is left of a failed attempt, and that options that contradict each other are refused.
#[test]
fn pages_replace_pages_only() {
    let Some(firsttouch) = Firsttouch::find("pages_replace_pages_only") else { return };
    let folder = temporary_directory();
    let (profile, file) = (fixture("dgemv_serial"), folder.path().join("page.html"));
    for _ in 0..2 {
        page(&firsttouch, &["report", text(&profile)], &file);
    }
    let whole = fs::read(&file).expect("the page");
    let source = folder.path().join("a.c");
    fs::write(&source, "int main(void) {}\n").expect("a file");
    let refused = run(&mut firsttouch.command(["report", text(&profile), "--html", text(&source)]));
    assert_eq!(refused.status, 1);
    assert!(refused.stderr_text().contains("another kind of file is already there"), "{refused:?}");
    assert_eq!(fs::read_to_string(&source).expect("the file"), "int main(void) {}\n");
    let nowhere = run(&mut firsttouch.command(["report", text(&profile), "--html", "/no/such/folder/x.html"]));
    assert!(nowhere.status == 1 && nowhere.stderr_text().contains("cannot write /no/such/folder/x.html"), "{nowhere:?}");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let both = run(&mut firsttouch.command(["report", text(&profile), "--json", "--html", text(&file)]));
    assert_eq!(both.status, 2, "{both:?}");
    let printed = run(&mut firsttouch.command(["report", text(&profile), "--html", "-"]));
    assert_eq!(printed.stdout, whole);
    let hidden = run(&mut firsttouch.command(["report", text(&profile), "--no-source", "--html", "-"]));
    let hidden = hidden.stdout_text();
    assert!(!hidden.contains("malloc(") && !hidden.contains("class=\"source\""), "lines of the source are shown");
}
