//! Every text of a profile on one line, because it may come from anywhere.

use super::metadata::Metadata;
use super::{Profile, RankPlace};
use crate::shown::make_one_line;

impl Profile {
    /// Replaces what could control a terminal, or begin a line, in every text.
    pub fn make_names_safe(&mut self) {
        self.meta.make_names_safe();
        let machine = &mut self.machine;
        [&mut machine.hostname, &mut machine.kernel, &mut machine.transparent_huge_pages].into_iter().for_each(make_one_line);
        let known = |text: &mut Option<String>| text.iter_mut().for_each(make_one_line);
        for evidence in &mut self.evidence {
            make_one_line(&mut evidence.source);
            make_one_line(&mut evidence.detail);
        }
        for lost in &mut self.lost {
            make_one_line(&mut lost.source);
            make_one_line(&mut lost.reason);
        }
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
        self.shared_memory.values_mut().for_each(|memory| make_one_line(&mut memory.memory));
        self.folded_objects.iter_mut().for_each(|folded| make_one_line(&mut folded.call));
        self.small_blocks.iter_mut().for_each(|block| make_one_line(&mut block.call));
        self.policies.values_mut().for_each(|policy| make_one_line(&mut policy.policy));
        self.counters.iter_mut().for_each(|counter| make_one_line(&mut counter.name));
        self.hosts.iter_mut().for_each(|host| make_one_line(&mut host.name));
        for part in &mut self.parts {
            make_one_line(&mut part.source);
            part.place.iter_mut().for_each(RankPlace::make_names_safe);
            part.meta.make_names_safe();
            make_one_line(&mut part.machine.hostname);
        }
    }
}

impl RankPlace {
    fn make_names_safe(&mut self) {
        make_one_line(&mut self.launcher);
        self.job.iter_mut().for_each(make_one_line);
        self.bound_cpus.iter_mut().for_each(make_one_line);
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
