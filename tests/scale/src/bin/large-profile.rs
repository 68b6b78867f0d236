//! Makes a valid profile of any size: `large-profile FILE ROWS THREADS OBJECTS watch|sample [BESIDE COUNT]`.

use firsttouch_scale::{Beside, By, Size, profile, write};
use std::path::Path;
use std::process::ExitCode;

type Asked<'a> = (&'a Path, Size, Option<(Beside, usize)>);

fn asked(words: &[String]) -> Option<Asked<'_>> {
    let [file, rows, threads, objects, by, beside @ ..] = words else { return None };
    let by = match by.as_str() {
        "watch" => By::Watch,
        "sample" => By::Sample,
        _ => return None,
    };
    let number = |text: &String| text.parse().ok().filter(|number| *number > 0);
    let beside = match beside {
        [] => None,
        [what, count] => Some((Beside::ALL.iter().find(|(name, _)| name == what)?.1, number(count)?)),
        _ => return None,
    };
    Some((Path::new(file), Size { rows: number(rows)?, threads: number(threads)?, objects: number(objects)?, by }, beside))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((file, size, beside)) = asked(&words) else {
        let names = Beside::ALL.map(|(name, _)| name).join("|");
        eprintln!("usage: large-profile FILE ROWS THREADS OBJECTS watch|sample [{names} COUNT]");
        return ExitCode::from(2);
    };
    let mut profile = profile(&size);
    if let Some((beside, count)) = beside {
        beside.add(&mut profile, &size, count);
    }
    match write(&profile, file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large-profile: {error:#}");
            ExitCode::FAILURE
        }
    }
}
