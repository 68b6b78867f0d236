//! Writes a profile while the target runs. Each flush is one transaction in WAL mode, so a reader (or a crash) sees complete flushes.

use crate::bulk::Bulk;
use crate::fold;
use crate::merge::DRAFT;
use crate::place::{self, Created, Older, Output};
use crate::reserve::{Layout, Reserve};
use crate::sqlite::InWords;
use crate::{APPLICATION_ID, SCHEMA, SCHEMA_VERSION};
use firsttouch_model::error::{Context, Result};
use firsttouch_model::rows::metadata::Entry;
use firsttouch_model::rows::{
    Access, Appeared, Bandwidth, Counter, Evidence, FaultCount, FaultPeriod, FirstTouch, FoldedObjects, Id, Machine, Object, OperandCount,
    Page, Policy, Population, Process, PythonLine, Region, Release, SampledAccess, Seen, SharedMemory, Site, SmallBlock, SourceFile,
    Thread, TimerSample, Window,
};
use firsttouch_system::proc::limits;
use rusqlite::{Connection, OpenFlags, params};
use std::path::Path;

/// Statements that are kept prepared: more than there are.
const STATEMENTS: usize = 64;

/// An open profile. Rows go into one transaction that [`Writer::flush`] commits.
pub struct Writer {
    connection: Connection,
    first_touches: Bulk<FirstTouch>,
    samples: Bulk<TimerSample>,
    sampled_accesses: Bulk<SampledAccess>,
    created: Created,
    in_transaction: bool,
    /// An older profile, until this one is kept.
    older: Option<Older>,
    /// Space to say in the file that writing failed.
    reserve: Option<Reserve>,
}

/// A profile that could not be written to its end.
pub struct Abandoned(Writer);

impl Abandoned {
    /// Notes how many rows are missing, and closes the file. The failure itself is in the file already, if anything could be written.
    pub fn finish(self, missing_rows: u64) {
        let _ = self.0.meta(Entry::MissingRows(missing_rows));
        self.0.merge_wal();
        let created = self.0.created;
        if fold::has_wal(&created.path) && place::is_ours(&created) {
            let _ = fold::fold(self.0.connection, &created.path);
        }
    }
}

impl Writer {
    /// Creates a file. An older profile at that path is renamed until [`Writer::keep`] or [`Writer::withdraw`]; anything else at that
    /// path is refused and stays unchanged.
    ///
    /// # Errors
    /// When the path holds something that is not a profile, or cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_at(&Output::File(path.to_owned()))
    }

    /// Creates a profile. The file is claimed for this process: see [`Writer::created`].
    ///
    /// # Errors
    /// As [`Writer::create`]; also if another process is writing the profile.
    pub fn create_at(output: &Output) -> Result<Self> {
        let (writer, older) = place::take(output, Self::fill)?;
        Ok(Self { older, ..writer })
    }

    fn fill(created: Created) -> Result<Self> {
        let context = || {
            let limit = limits::file_size_remedy();
            format!("cannot create profile {}{limit}", created.path.display())
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reserve = Reserve::beside(&created.path);
        if reserve.as_ref().is_some_and(|reserve| reserve.is_little) {
            return Ok(Self { reserve, ..Self::prepare(&created, flags, Layout::LITTLE_SPACE).with_context(context)? });
        }
        // Some file systems (9p in guests) accept WAL mode but do not support its shared memory.
        let writer = Self::prepare(&created, flags, Layout::USUAL).or_else(|_| {
            let path = &created.path;
            place::remove_sides(path).and_then(|()| std::fs::File::create(path).map(drop)).with_context(context)?;
            Self::prepare(&created, flags, Layout::WITHOUT_SHARED_MEMORY).with_context(context)
        })?;
        Ok(Self { reserve, ..writer })
    }

    /// Creates the tables in an empty file.
    fn prepare(created: &Created, flags: OpenFlags, layout: Layout) -> Result<Self> {
        let context = || "cannot prepare its tables";
        let connection = Connection::open_with_flags(crate::reader::plain(&created.path), flags).in_words(&created.path, context)?;
        connection.pragma_update(None, "page_size", layout.page_bytes).in_words(&created.path, context)?;
        // Without waiting for the disk, a crash of the machine may destroy the profile, a crash of firsttouch does not.
        connection.pragma_update(None, "synchronous", "OFF").in_words(&created.path, context)?;
        // In the file itself, not its WAL: they say what it is.
        connection.pragma_update(None, "application_id", APPLICATION_ID).in_words(&created.path, context)?;
        connection.pragma_update(None, "user_version", SCHEMA_VERSION).in_words(&created.path, context)?;
        // On a file system without shared memory (some network ones), SQLite has no WAL and uses a rollback journal.
        connection.query_row(&format!("PRAGMA journal_mode = {}", layout.journal), [], |_| Ok(())).in_words(&created.path, context)?;
        connection.pragma_update(None, "cache_size", -4096).in_words(&created.path, context)?;
        // One transaction: some hundred system calls fewer before the program starts than one for each table.
        connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;")).in_words(&created.path, context)?;
        let mut writer = Self::of(connection, created.clone());
        writer.begin()?;
        Ok(writer)
    }

    /// The file, and what became of an older profile. The file stays claimed for this process until the value is dropped, also after
    /// [`Writer::finish`].
    #[must_use]
    pub fn created(&self) -> Created {
        self.created.clone()
    }

    /// Opens an existing profile to complete it (symbols).
    ///
    /// # Errors
    /// When it is not a profile of this version or cannot be written.
    pub fn reopen(path: &Path) -> Result<Self> {
        let connection = crate::reader::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", "OFF").in_words(path, || format!("cannot open profile {}", path.display()))?;
        // Writing takes as long as it takes.
        connection.progress_handler(0, None::<fn() -> bool>);
        let created = Created { path: path.to_owned(), ..Created::default() };
        let mut writer = Self::of(connection, created);
        writer.begin()?;
        Ok(writer)
    }

    /// Creates a profile that counts only when it is whole: a crash loses it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn create_draft(path: &Path) -> Result<Self> {
        let created = Created { path: path.to_owned(), ..Created::default() };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::prepare(&created, flags, Layout::DRAFT).with_context(|| format!("cannot create profile {}", shown(path)))
    }

    fn of(connection: Connection, created: Created) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            connection,
            first_touches: Bulk::default(),
            samples: Bulk::default(),
            sampled_accesses: Bulk::default(),
            created,
            in_transaction: false,
            older: None,
            reserve: None,
        }
    }

    /// Writing failed: notes the cause in the file, which keeps what earlier flushes wrote.
    #[must_use]
    pub fn abandon(mut self, cause: &str) -> Abandoned {
        let _ = self.connection.execute_batch("ROLLBACK");
        self.in_transaction = false;
        drop(self.reserve.take());
        self.connection.flush_prepared_statement_cache();
        if self.meta(Entry::WriteFailure(cause)).is_err() {
            // Where the size of the WAL is limited, its place can be used again once its rows are in the file.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.meta(Entry::WriteFailure(cause));
        }
        self.merge_wal();
        Abandoned(self)
    }

    /// Moves the rows of the WAL into the file and removes it, as far as there is space.
    fn merge_wal(&self) {
        let _ = self.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
    }

    fn begin(&mut self) -> Result<()> {
        self.connection.execute_batch("BEGIN").in_words(&self.created.path, || self.failed())?;
        self.in_transaction = true;
        Ok(())
    }

    fn failed(&self) -> String {
        let limit = limits::file_size_remedy();
        format!("cannot write profile {}{limit}", shown(&self.created.path))
    }

    /// Keeps this profile, and removes the one that it replaces.
    pub fn keep(&mut self) {
        if let Some(older) = self.older.take().filter(|older| !older.is_kept) {
            let _ = place::remove(&older.path);
        }
    }

    /// Removes the file, and restores an older profile.
    pub fn withdraw(mut self) {
        let (created, older) = (self.created.clone(), self.older.take());
        drop(self);
        place::withdraw(&created, older);
    }

    pub(crate) fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).in_words(&self.created.path, || self.failed())?;
        statement.execute(values).in_words(&self.created.path, || self.failed())?;
        Ok(())
    }

    /// Commits what was written so far.
    ///
    /// # Errors
    /// When the disk is full or the file was removed; earlier flushes stay readable.
    pub fn flush(&mut self) -> Result<()> {
        let Self { connection, first_touches, samples, sampled_accesses, .. } = self;
        let written =
            first_touches.write(connection).and_then(|()| samples.write(connection)).and_then(|()| sampled_accesses.write(connection));
        written.in_words(&self.created.path, || self.failed())?;
        if self.in_transaction {
            self.in_transaction = false;
            if let Err(error) = self.connection.execute_batch("COMMIT") {
                // A failed commit (full disk) leaves the transaction open: roll it back, so that the file stays consistent.
                let _ = self.connection.execute_batch("ROLLBACK");
                return Err(error).in_words(&self.created.path, || self.failed());
            }
        }
        self.begin()
    }

    /// Commits, and merges the WAL into the file. Nothing can be written after it.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn merge(&mut self) -> Result<()> {
        if !self.in_transaction {
            return Ok(());
        }
        self.flush()?;
        self.in_transaction = false;
        self.connection.execute_batch("ROLLBACK").in_words(&self.created.path, || self.failed())?;
        match self.connection.execute_batch("PRAGMA journal_mode = DELETE") {
            // Another process has the profile open: its rows stay in the WAL, which the last reader merges.
            Err(error) if is_busy(&error) => Ok(()),
            merged => merged.in_words(&self.created.path, || self.failed()),
        }
    }

    /// Commits, merges the WAL into the file and closes it, so that the profile is one file.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn finish(mut self) -> Result<()> {
        self.merge()?;
        let path = self.created.path;
        self.connection.close().map_err(|(_, error)| error).in_words(&path, || format!("cannot close profile {}", path.display()))
    }

    /// Writes a row of the table `meta`, replacing an earlier one.
    pub fn meta(&self, entry: Entry<'_>) -> Result<()> {
        self.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", params![entry.key(), entry.text()])
    }

    pub fn machine(&self, machine: &Machine) -> Result<()> {
        let value = serde_json::to_value(machine).context("cannot store the machine description")?;
        if let serde_json::Value::Object(map) = value {
            for (key, value) in map {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.run("INSERT OR REPLACE INTO machine VALUES (?, ?)", params![key, text])?;
            }
        }
        Ok(())
    }

    pub fn evidence(&self, e: &Evidence) -> Result<()> {
        self.run("INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?)", params![e.source, e.available, signed(e.samples), e.detail])
    }

    pub fn process(&self, p: &Process) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO processes VALUES (?, ?, ?, ?, ?, ?)",
            params![p.id, p.pid, p.parent, p.exe, signed(p.born_ns), p.died_ns.map(signed)],
        )
    }

    pub fn thread(&self, t: &Thread) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                t.id,
                t.process,
                t.tid,
                t.parent,
                t.name,
                signed(t.born_ns),
                t.died_ns.map(signed),
                t.cpu_ns.map(signed),
                t.omp_number,
                t.user_faults.map(signed),
                t.all_faults.map(signed),
                t.allowed_cpus,
                signed(t.node_moves)
            ],
        )
    }

    pub fn thread_cpu(&self, thread: Id, cpu: u32, seen: Seen) -> Result<()> {
        let Seen { samples, looks } = seen;
        self.run("INSERT OR REPLACE INTO thread_cpus VALUES (?, ?, ?, ?)", params![thread, cpu, signed(samples), signed(looks)])
    }

    /// Writes a site with its frames, replacing earlier frames of the same site.
    pub fn site(&self, site: &Site) -> Result<()> {
        self.run("INSERT OR REPLACE INTO sites VALUES (?, ?)", params![site.id, site.process])?;
        self.run("DELETE FROM frames WHERE site = ?", params![site.id])?;
        for (depth, f) in site.frames.iter().enumerate() {
            self.run(
                "INSERT INTO frames VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![site.id, depth, signed(f.address), f.module, f.offset.map(signed), f.inlined, f.function, f.file, f.line, f.column],
            )?;
        }
        Ok(())
    }

    pub fn object(&self, o: &Object) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                o.id,
                o.process,
                o.kind.as_str(),
                o.call,
                o.name,
                signed(o.address),
                signed(o.bytes),
                signed(o.born_ns),
                o.died_ns.map(signed),
                o.site,
                o.thread
            ],
        )
    }

    pub fn source_file(&self, path: &str, file: &SourceFile) -> Result<()> {
        self.run("INSERT OR REPLACE INTO source_files VALUES (?, ?, ?)", params![path, signed(file.bytes), file.modified_ns])
    }

    pub fn shared_memory(&self, object: Id, s: &SharedMemory) -> Result<()> {
        self.run("INSERT OR REPLACE INTO shared_memory VALUES (?, ?, ?, ?)", params![object, s.memory, signed(s.offset), s.present])
    }

    pub fn folded_objects(&self, f: &FoldedObjects) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO folded_objects VALUES (?, ?, ?, ?, ?)",
            params![f.site, f.call, signed(f.bytes), signed(f.count), f.word_ns],
        )
    }

    pub fn small_block(&self, b: &SmallBlock) -> Result<()> {
        self.run(
            "INSERT INTO small_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![b.process, b.thread, b.site, b.call, signed(b.address), signed(b.bytes), b.weight, signed(b.time_ns)],
        )
    }

    pub fn first_touch(&mut self, row: FirstTouch) -> Result<()> {
        self.first_touches.add(row, &self.connection).in_words(&self.created.path, || self.failed())
    }

    pub fn fault_period(&self, period: FaultPeriod) -> Result<()> {
        self.run("INSERT INTO fault_periods VALUES (?, ?, ?)", params![signed(period.time_ns), signed(period.faults), period.part])
    }

    pub fn release(&self, r: &Release) -> Result<()> {
        self.run("INSERT INTO releases VALUES (?, ?, ?, ?)", params![r.process, signed(r.time_ns), signed(r.address), signed(r.bytes)])
    }

    pub fn population(&self, p: &Population) -> Result<()> {
        self.run(
            "INSERT INTO populations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![p.process, p.thread, signed(p.time_ns), p.call, signed(p.address), signed(p.bytes), p.future, p.site],
        )
    }

    pub fn appeared(&self, a: &Appeared) -> Result<()> {
        self.run(
            "INSERT INTO appeared VALUES (?, ?, ?, ?, ?, ?)",
            params![a.process, signed(a.from_ns), signed(a.to_ns), signed(a.address), signed(a.bytes), signed(a.page_bytes)],
        )
    }

    pub fn fault_count(&self, c: &FaultCount) -> Result<()> {
        self.run("INSERT INTO fault_counts VALUES (?, ?, ?, ?)", params![c.process, c.thread, signed(c.time_ns), signed(c.faults)])
    }

    pub fn python_line(&self, l: &PythonLine) -> Result<()> {
        self.run("INSERT INTO python_lines VALUES (?, ?, ?)", params![l.thread, signed(l.time_ns), l.site])
    }

    pub fn operand_count(&self, c: &OperandCount) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO operand_counts VALUES (?, ?, ?, ?)",
            params![c.process, signed(c.instruction), signed(c.known), signed(c.unknown)],
        )
    }

    pub fn policy(&self, object: Id, p: &Policy) -> Result<()> {
        self.run("INSERT OR REPLACE INTO policies VALUES (?, ?, ?)", params![object, p.policy, signed(p.time_ns)])
    }

    pub fn counter(&self, c: &Counter) -> Result<()> {
        let node = c.node.map_or(-1, i64::from);
        self.run("INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?)", params![c.name, node, signed(c.at_start), signed(c.at_end)])
    }

    pub fn bandwidth(&self, b: &Bandwidth) -> Result<()> {
        let (read, local) = (b.read_bytes.map(signed), b.local_bytes.map(signed));
        self.run(
            "INSERT INTO bandwidth VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![b.source, b.node, signed(b.from_ns), signed(b.to_ns), signed(b.bytes), read, local, b.part],
        )
    }

    pub fn window(&self, w: &Window) -> Result<()> {
        self.run(
            "INSERT INTO windows VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                w.id,
                signed(w.round),
                w.object,
                signed(w.address),
                signed(w.start_ns),
                signed(w.held_ns),
                signed(w.round_ns),
                w.inclusion
            ],
        )
    }

    pub fn access(&self, a: &Access) -> Result<()> {
        self.run(
            "INSERT INTO accesses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![a.window, a.thread, a.site, signed(a.hits), a.estimate, signed(a.watched_ns), a.cut, a.cpu, a.cpu_ns.map(signed)],
        )
    }

    pub fn sample(&mut self, row: TimerSample) -> Result<()> {
        self.samples.add(row, &self.connection).in_words(&self.created.path, || self.failed())
    }

    pub fn sampled_access(&mut self, row: SampledAccess) -> Result<()> {
        self.sampled_accesses.add(row, &self.connection).in_words(&self.created.path, || self.failed())
    }

    /// Removes the samples that were taken before this time, with their accesses. Their space is used again.
    pub fn forget_samples(&self, before_ns: u64) -> Result<()> {
        let before_ns = signed(before_ns);
        self.run(
            "DELETE FROM sampled_accesses WHERE sample < coalesce((SELECT min(id) FROM samples WHERE time_ns >= ?), 0)",
            params![before_ns],
        )?;
        self.run("DELETE FROM python_lines WHERE time_ns < ?", params![before_ns])?;
        self.run("DELETE FROM samples WHERE time_ns < ?", params![before_ns])
    }

    pub fn page(&self, p: &Page) -> Result<()> {
        self.run(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?)",
            params![p.process, p.object, signed(p.address), signed(p.time_ns), p.node, signed(p.page_bytes)],
        )
    }

    pub fn region(&self, r: &Region) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO regions VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![r.id, r.process, signed(r.begin_ns), r.end_ns.map(signed), r.site, r.team_size, r.thread],
        )
    }

    pub fn lost(&self, source: &str, reason: &str, count: u64) -> Result<()> {
        self.run("INSERT OR REPLACE INTO lost VALUES (?, ?, ?)", params![source, reason, signed(count)])
    }
}

/// The name of the file that is written, also while it has a name for a draft.
fn shown(path: &Path) -> String {
    let name = path.display().to_string();
    name.rsplit_once(DRAFT).map_or(name.clone(), |(before, _)| before.to_owned())
}

/// Whether another connection stands in the way.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
}

/// SQLite integers are signed; addresses keep their bits.
pub(crate) fn signed(value: u64) -> i64 {
    value.cast_signed()
}
