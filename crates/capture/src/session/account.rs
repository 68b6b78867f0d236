//! What a run writes of itself: its circumstances, which evidence there is, and how it went.

use super::{Outcome, Session, Summary};
use crate::agent::ring::{SILENT_ADDRESS_SPACE, SILENT_SANDBOX};
use firsttouch_model::metadata::{Entry, Mode};
use firsttouch_model::rows::Evidence;
use firsttouch_system::clock::monotonic_ns;

impl Session<'_> {
    pub(super) fn write_head(&mut self, mode: Mode) {
        let command: Vec<String> = self.options.command.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let command = if command.is_empty() { vec![format!("pid {}", self.pid)] } else { command };
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let entries = [
            Entry::Command(&command),
            Entry::StartNs(monotonic_ns()),
            Entry::StartUnixS(unix),
            Entry::MinSizeBytes(self.options.min_size),
            Entry::ToolVersion(env!("CARGO_PKG_VERSION")),
            Entry::Mode(mode),
        ];
        let (machine, notes) = (&self.options.machine, &self.options.notes);
        let trap = self.rounds.as_ref().map(|r| r.trap_ns);
        self.tracker.sink.write(|w| {
            w.machine(machine)?;
            for entry in entries {
                w.meta(entry)?;
            }
            if !notes.is_empty() {
                w.meta(Entry::Notes(notes))?;
            }
            if let Some(trap) = trap {
                w.meta(Entry::TrapNs(trap))?;
            }
            Ok(())
        });
        self.write_evidence();
        self.read_counters(monotonic_ns(), false);
        self.tracker.sink.flush();
    }

    pub(super) fn write_evidence(&mut self) {
        let t = &self.tracker;
        let touch_detail = match &self.touch {
            Err(reason) => format!("{reason}; continuing without first-touch evidence"),
            Ok(touch) if !touch.sees_kernel => "faults in system calls are not seen at this privilege (perf_event_paranoid > 1): memory filled by read() is inferred from pages without a record; set perf_event_paranoid to 1 or run with CAP_PERFMON to see them".to_owned(),
            Ok(_) => String::new(),
        };
        let watch_detail = self.watch_missing.as_ref().map_or(String::new(), |r| format!("{r}; continuing without access evidence"));
        let rows = [
            Evidence { source: "touch".to_owned(), available: self.touch.is_ok(), samples: t.touch_samples, detail: touch_detail },
            Evidence {
                source: "watch".to_owned(),
                available: self.rounds.is_some() && self.watch_missing.is_none(),
                samples: self.rounds.as_ref().map_or(0, |r| r.hits),
                detail: watch_detail,
            },
            Evidence {
                source: "resident".to_owned(),
                available: self.resident_missing.is_none(),
                samples: t.pages_queried,
                detail: self.resident_missing.clone().unwrap_or_default(),
            },
            Evidence {
                source: "agent".to_owned(),
                available: self.agent_missing.is_none(),
                samples: self.ring.as_ref().map_or(0, |r| u64::from(r.attached())),
                detail: self.agent_missing.clone().or_else(|| self.agent_silent()).unwrap_or_default(),
            },
        ];
        let hint = self.hint_evidence();
        self.tracker.sink.write(|w| rows.iter().chain(&hint).try_for_each(|e| w.evidence(e)));
    }

    /// The kernel's hinting faults, where it makes any.
    fn hint_evidence(&self) -> Option<Evidence> {
        let touch = self.touch.as_ref().ok().filter(|_| self.tracker.scope.may_hint)?;
        let detail = if touch.tells_pages {
            ""
        } else {
            "this kernel does not tell hinting faults from first touches (Linux 5.11 does): later faults on memory that was never given back are left out"
        };
        let source = "hint".to_owned();
        Some(Evidence { source, available: touch.tells_pages, samples: self.tracker.hints, detail: detail.to_owned() })
    }

    /// What the agent did not see because the program locked itself in.
    fn agent_silent(&self) -> Option<String> {
        let silent = self.ring.as_ref().is_some_and(|ring| ring.silent() & SILENT_SANDBOX != 0);
        silent.then(|| {
            "the program restricted its own system calls (seccomp, PR_SET_TSC), so the agent fell silent: allocations and releases after that were not seen"
                .to_owned()
        })
    }

    /// Closes the file and says how it went.
    pub(super) fn finish(mut self, exit_code: Option<i32>) -> Outcome {
        if let Ok(touch) = &mut self.touch {
            touch.stop();
        }
        self.drain(u64::MAX, false);
        self.tracker.add_waiting_statics(usize::MAX);
        if let Some(rounds) = &mut self.rounds {
            rounds.stop(&mut self.tracker);
        }
        let mut agent_lost = 0;
        if let Some(ring) = &self.ring {
            agent_lost = ring.lost();
            if ring.silent() & SILENT_ADDRESS_SPACE != 0 && self.agent_missing.is_none() {
                self.agent_missing = Some(
                    "the limit on the program's address space is too tight for the agent: objects are named by mapping; raise it (ulimit -v)"
                        .to_owned(),
                );
            }
            if ring.attached() == 0 && self.agent_missing.is_none() {
                self.agent_missing = Some("the agent was not loaded by the program: objects are named by mapping".to_owned());
            }
        }
        self.tracker.lose("agent", "records of allocations dropped because the ring was full", agent_lost);
        let end = self.end_ns;
        self.tracker.finish(end);
        self.read_counters(end, true);
        self.write_evidence();
        self.tracker.sink.write(|w| w.meta(Entry::EndNs(end)));
        if self.tracker.children_left > 0 {
            let children = self.tracker.children_left;
            self.tracker.sink.write(|w| w.meta(Entry::ChildrenLeft(children)));
        }
        if let Some(code) = exit_code {
            self.tracker.sink.write(|w| w.meta(Entry::ExitCode(code)));
        }
        self.tracker.sink.write(|w| w.meta(Entry::StartNs(self.start_ns)));
        let replaced = self.tracker.replaced_files();
        if !replaced.is_empty() {
            let told = replaced
                .iter()
                .map(|path| format!("{path} was replaced while the program ran: its code stays without names and lines; profile again"));
            let notes: Vec<String> = self.options.notes.iter().cloned().chain(told).collect();
            self.tracker.sink.write(|w| w.meta(Entry::Notes(&notes)));
        }
        self.tracker.sink.finish();
        let t = &self.tracker;
        let mut messages: Vec<String> = Vec::new();
        if let Err(reason) = &self.touch {
            messages.push(format!("{reason}; continuing without first-touch evidence"));
        }
        messages.extend(self.watch_missing.iter().map(|r| format!("{r}; continuing without access evidence")));
        messages.extend(self.agent_missing.clone().or_else(|| self.agent_silent()));
        messages.extend(self.resident_missing.clone());
        messages.dedup();
        Outcome {
            replaced,
            exit_code: None,
            profile_error: t.sink.failure.as_ref().map(|e| format!("{e:#}")),
            messages,
            summary: Summary {
                threads: t.threads_seen.unsigned_abs(),
                wall_s: self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9,
                watch_hits: self.rounds.as_ref().map_or(0, |r| r.hits),
                watch_windows: self.rounds.as_ref().map_or(0, |r| r.windows),
                first_touches: t.touch_samples,
                touch_weight: t.touch_weight,
                lost: t.lost.values().sum(),
            },
        }
    }
}
