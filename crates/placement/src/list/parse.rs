//! The list itself: `[!][+]item,item,...`.

use super::numbered::Numbered;
use super::{Device, FindDevice};
use crate::scan::{At, Fault, LARGEST, Scanner};
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// `!`: all allowed numbers except these.
    inverted: bool,
    /// `+`: numbers count the allowed ones.
    relative: bool,
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    All,
    One(At<u32>),
    Range(At<u32>, At<u32>),
    Device(At<Device>),
}

impl Tree {
    pub fn parse(text: &str, takes_devices: bool) -> Result<Self, Fault> {
        let mut scanner = Scanner::new(text);
        let (inverted, relative) = (scanner.eat("!"), scanner.eat("+"));
        let mut items = Vec::new();
        loop {
            items.push(item(&mut scanner, takes_devices)?);
            if !scanner.eat(",") {
                break;
            }
        }
        scanner.end("',' or the end")?;
        Ok(Self { inverted, relative, items })
    }

    /// The numbers, sorted. The ends of a range must be allowed; numbers in between are skipped if they are not.
    pub fn resolve(&self, known: &Numbered, devices: FindDevice) -> Result<Vec<u32>, Fault> {
        let allowed = |number: At<u32>| {
            let found = if self.relative { known.nth(*number) } else { known.check(*number).map(|()| *number) };
            found.map_err(|error| Fault::new(number.offset, error.to_string()))
        };
        let mut numbers = BTreeSet::new();
        for item in &self.items {
            match item {
                Item::All => numbers.extend(known.allowed()),
                Item::One(number) => numbers.extend([allowed(*number)?]),
                Item::Range(first, last) => {
                    let (first, last) = (allowed(*first)?, allowed(*last)?);
                    numbers.extend(known.allowed().iter().filter(|number| (first..=last).contains(number)));
                }
                Item::Device(device) => {
                    let found = devices(device).and_then(|found| found.iter().try_for_each(|n| known.check(*n)).map(|()| found));
                    numbers.extend(found.map_err(|error| Fault::new(device.offset, format!("{error:#}")))?);
                }
            }
        }
        if self.inverted {
            numbers = known.allowed().iter().copied().filter(|number| !numbers.contains(number)).collect();
        }
        if numbers.is_empty() {
            return Err(Fault::new(0, format!("this selects no {}", known.noun())));
        }
        Ok(numbers.into_iter().collect())
    }
}

fn item(scanner: &mut Scanner, takes_devices: bool) -> Result<Item, Fault> {
    scanner.blanks();
    let offset = scanner.offset();
    if scanner.word() == "all" {
        scanner.eat("all");
        return Ok(Item::All);
    }
    if takes_devices && let Some(value) = Device::parse(scanner)? {
        return Ok(Item::Device(At { value, offset }));
    }
    let first = number(scanner)?;
    if !scanner.eat("-") {
        return Ok(Item::One(first));
    }
    let last = number(scanner)?;
    if *first > *last {
        return Err(Fault::new(first.offset, "a range must run upwards"));
    }
    Ok(Item::Range(first, last))
}

/// A number as numactl reads it with strtoul(3), except that octal numbers (with a leading 0) are refused: they are mistakes.
fn number(scanner: &mut Scanner) -> Result<At<u32>, Fault> {
    let offset = scanner.offset();
    if scanner.eat("0x") || scanner.eat("0X") {
        let digits = scanner.take(|c| c.is_ascii_hexdigit());
        return match u32::from_str_radix(digits, 16) {
            Ok(value) if value <= LARGEST => Ok(At { value, offset }),
            _ => Err(Fault::new(offset, "expected a number, decimal or 0x and hexadecimal digits")),
        };
    }
    match scanner.peek() {
        Some('+') => return Err(scanner.fault("'+' stands once, before the first number, and holds for all")),
        Some('!') => return Err(scanner.fault("'!' stands once, at the start (before '+'), and holds for all")),
        Some('0') if scanner.word().len() > 1 && scanner.word().bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(scanner.fault("a number with a leading 0 is octal for numactl: write it without"));
        }
        _ => {}
    }
    scanner.number("a number or 'all'")
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.inverted { "!" } else { "" })?;
        f.write_str(if self.relative { "+" } else { "" })?;
        for (index, item) in self.items.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            match item {
                Item::All => f.write_str("all")?,
                Item::One(number) => number.value.fmt(f)?,
                Item::Range(first, last) => write!(f, "{}-{}", first.value, last.value)?,
                Item::Device(device) => device.value.fmt(f)?,
            }
        }
        Ok(())
    }
}
