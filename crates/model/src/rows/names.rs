//! Every text of a profile on one line, because it may come from anywhere.

use super::metadata::Metadata;
use super::{Counter, Evidence, Lost, Machine, Part, Profile, RankPlace};
use crate::shown::make_one_line;

impl Profile {
    /// Replaces what could control a terminal, or begin a line, in every text.
    pub fn make_names_safe(&mut self) {
        self.meta.make_names_safe();
        self.machine.make_names_safe();
        make_counts_safe(&mut self.evidence, &mut self.lost, &mut self.counters);
        self.hosts.iter_mut().for_each(|host| make_one_line(&mut host.name));
        self.parts.iter_mut().for_each(Part::make_names_safe);
        let known = |text: &mut Option<String>| text.iter_mut().for_each(make_one_line);
        self.processes.iter_mut().for_each(|process| known(&mut process.exe));
        for thread in &mut self.threads {
            known(&mut thread.name);
            known(&mut thread.allowed_cpus);
        }
        for frame in self.sites.values_mut().flat_map(|site| &mut site.frames) {
            known(&mut frame.module);
            known(&mut frame.function);
            known(&mut frame.file);
        }
        for object in &mut self.objects {
            known(&mut object.call);
            known(&mut object.name);
        }
        self.bandwidth.iter_mut().for_each(|row| make_one_line(&mut row.source));
        self.shared_memory.values_mut().for_each(|memory| make_one_line(&mut memory.memory));
        self.folded_objects.iter_mut().for_each(|folded| make_one_line(&mut folded.call));
        self.small_blocks.iter_mut().for_each(|block| make_one_line(&mut block.call));
        self.policies.values_mut().for_each(|policy| make_one_line(&mut policy.policy));
    }
}

/// What is counted for a whole recording.
fn make_counts_safe(evidence: &mut [Evidence], lost: &mut [Lost], counters: &mut [Counter]) {
    let evidence = evidence.iter_mut().flat_map(|evidence| [&mut evidence.source, &mut evidence.detail]);
    let lost = lost.iter_mut().flat_map(|lost| [&mut lost.source, &mut lost.reason]);
    evidence.chain(lost).chain(counters.iter_mut().map(|counter| &mut counter.name)).for_each(make_one_line);
}

impl Machine {
    fn make_names_safe(&mut self) {
        [&mut self.hostname, &mut self.kernel, &mut self.transparent_huge_pages].into_iter().for_each(make_one_line);
    }
}

impl Part {
    fn make_names_safe(&mut self) {
        make_one_line(&mut self.source);
        self.place.iter_mut().for_each(RankPlace::make_names_safe);
        self.meta.make_names_safe();
        self.machine.make_names_safe();
        make_counts_safe(&mut self.evidence, &mut self.lost, &mut self.counters);
    }
}

impl RankPlace {
    fn make_names_safe(&mut self) {
        let known = [&mut self.job, &mut self.bound_cpus].into_iter().flatten();
        known.chain([&mut self.launcher]).for_each(make_one_line);
    }
}

impl Metadata {
    fn make_names_safe(&mut self) {
        self.command.iter_mut().for_each(make_one_line);
        self.tool_version.iter_mut().for_each(make_one_line);
        self.variables.values_mut().for_each(make_one_line);
        self.notes.iter_mut().for_each(make_one_line);
        self.write_failure.iter_mut().for_each(make_one_line);
        self.rank.iter_mut().for_each(RankPlace::make_names_safe);
    }
}
