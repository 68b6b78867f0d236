//! Makes a valid profile of any size: `large-profile FILE ROWS THREADS OBJECTS watch|sample`.

use firsttouch_scale::{By, Size, profile, write};
use std::path::Path;
use std::process::ExitCode;

fn size(words: &[String]) -> Option<(&Path, Size)> {
    let [file, rows, threads, objects, by] = words else { return None };
    let by = match by.as_str() {
        "watch" => By::Watch,
        "sample" => By::Sample,
        _ => return None,
    };
    let number = |text: &String| text.parse().ok().filter(|number| *number > 0);
    Some((Path::new(file), Size { rows: number(rows)?, threads: number(threads)?, objects: number(objects)?, by }))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((file, size)) = size(&words) else {
        eprintln!("usage: large-profile FILE ROWS THREADS OBJECTS watch|sample");
        return ExitCode::from(2);
    };
    match write(&profile(&size), file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large-profile: {error:#}");
            ExitCode::FAILURE
        }
    }
}
