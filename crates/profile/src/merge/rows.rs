//! Writes the rows of a part.

use crate::Writer;
use firsttouch_model::error::Result;
use firsttouch_model::rows::Profile;

impl Writer {
    /// Writes all rows of a profile, except what belongs to the whole recording.
    pub fn rows(&mut self, profile: Profile) -> Result<()> {
        profile.processes.iter().try_for_each(|row| self.process(row))?;
        profile.threads.iter().try_for_each(|row| self.thread(row))?;
        profile.thread_cpus.iter().try_for_each(|(&(thread, cpu), seen)| self.thread_cpu(thread, cpu, *seen))?;
        profile.sites.values().try_for_each(|row| self.site(row))?;
        profile.objects.iter().try_for_each(|row| self.object(row))?;
        profile.shared_memory.iter().try_for_each(|(object, row)| self.shared_memory(*object, row))?;
        profile.folded_objects.iter().try_for_each(|row| self.folded_objects(row))?;
        profile.small_blocks.iter().try_for_each(|row| self.small_block(row))?;
        profile.fault_periods.iter().try_for_each(|row| self.fault_period(*row))?;
        profile.releases.iter().try_for_each(|row| self.release(row))?;
        profile.populations.iter().try_for_each(|row| self.population(row))?;
        profile.appeared.iter().try_for_each(|row| self.appeared(row))?;
        profile.fault_counts.iter().try_for_each(|row| self.fault_count(row))?;
        profile.python_lines.iter().try_for_each(|row| self.python_line(row))?;
        profile.operand_counts.iter().try_for_each(|row| self.operand_count(row))?;
        profile.bandwidth.iter().try_for_each(|row| self.bandwidth(row))?;
        profile.pages.iter().try_for_each(|row| self.page(row))?;
        profile.policies.iter().try_for_each(|(object, row)| self.policy(*object, row))?;
        profile.regions.iter().try_for_each(|row| self.region(row))?;
        profile.windows.iter().try_for_each(|row| self.window(row))?;
        profile.accesses.iter().try_for_each(|row| self.access(row))?;
        profile.first_touches.into_iter().try_for_each(|row| self.first_touch(row))?;
        profile.samples.into_iter().try_for_each(|row| self.sample(row))?;
        profile.sampled_accesses.into_iter().try_for_each(|row| self.sampled_access(row))
    }
}
