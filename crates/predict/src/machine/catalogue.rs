//! The machines that come with firsttouch: `machines/*.toml`.

use super::{MachineError, MachineModel};

const FILES: &[(&str, &str)] = &[
    ("a64fx", include_str!("../../machines/a64fx.toml")),
    ("epyc-7451x2", include_str!("../../machines/epyc-7451x2.toml")),
    ("epyc-7452", include_str!("../../machines/epyc-7452.toml")),
    ("epyc-7763x2", include_str!("../../machines/epyc-7763x2.toml")),
    ("kunpeng-920-4826x2", include_str!("../../machines/kunpeng-920-4826x2.toml")),
    ("kunpeng-920-6426x2", include_str!("../../machines/kunpeng-920-6426x2.toml")),
    ("thunderx2-cn9980x2", include_str!("../../machines/thunderx2-cn9980x2.toml")),
    ("xeon-cascadelake-sp-x2", include_str!("../../machines/xeon-cascadelake-sp-x2.toml")),
    ("xeon-e5-2620v4x2", include_str!("../../machines/xeon-e5-2620v4x2.toml")),
    ("xeon-e5-2660v2x2", include_str!("../../machines/xeon-e5-2660v2x2.toml")),
    ("xeon-e5-2695v3x2", include_str!("../../machines/xeon-e5-2695v3x2.toml")),
    ("xeon-e5-2695v4x2", include_str!("../../machines/xeon-e5-2695v4x2.toml")),
    ("xeon-e5-2697v4x2-cod", include_str!("../../machines/xeon-e5-2697v4x2-cod.toml")),
    ("xeon-e5-2699v4x2", include_str!("../../machines/xeon-e5-2699v4x2.toml")),
    ("xeon-e5620x2", include_str!("../../machines/xeon-e5620x2.toml")),
    ("xeon-gold-6148x2", include_str!("../../machines/xeon-gold-6148x2.toml")),
    ("xeon-gold-6148x2-snc", include_str!("../../machines/xeon-gold-6148x2-snc.toml")),
    ("xeon-haswell-ep-x2", include_str!("../../machines/xeon-haswell-ep-x2.toml")),
    ("xeon-icelake-sp-x2", include_str!("../../machines/xeon-icelake-sp-x2.toml")),
    ("xeon-ivybridge-ep-x2", include_str!("../../machines/xeon-ivybridge-ep-x2.toml")),
    ("xeon-skylake-sp-x2-breniac", include_str!("../../machines/xeon-skylake-sp-x2-breniac.toml")),
    ("xeon-skylake-sp-x2-genius", include_str!("../../machines/xeon-skylake-sp-x2-genius.toml")),
];

/// Names of the catalogue's machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The descriptions of the catalogue.
pub fn texts() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(_, text)| *text)
}

/// A machine of the catalogue.
///
/// # Errors
/// When the catalogue lacks the name.
pub fn find(name: &str) -> Result<MachineModel, MachineError> {
    let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        let reason = "there is no such machine in the catalogue (`firsttouch machines list` shows it)".to_owned();
        return Err(MachineError { place: name.to_owned(), reason });
    };
    MachineModel::parse(text).map_err(|error| MachineError { place: format!("{name}: {}", error.place), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every file describes a machine under its own name, and that each number has a source.
    #[test]
    fn every_machine_is_usable() {
        for name in names() {
            let machine = find(name).unwrap();
            assert_eq!(machine.name, name);
            assert!(!machine.facts.is_empty());
        }
        assert_eq!(names().count(), 22);
        assert!(find("pdp-11").unwrap_err().to_string().contains("pdp-11"));
    }
}
